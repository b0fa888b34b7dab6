"""Where in a JSON object a reply stands, as dotted paths, and what is found there."""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from voxmeter.endpoints.codec import Json, Message
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, Fault, ReplyAudio, ReplyText
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.openai_faults import classify
from voxmeter.endpoints.wav import SniffedAudio, floats_to_pcm16

_PLACE = re.compile(r"-?[0-9]{1,9}")
_UNSCALED = 16.0  # floats this far over full scale are whole numbers of 16 bits
_NO_ERROR: Sequence[Json] = (None, False, 0, "", {}, [])


def _code(failure: Json) -> str:
    """Return the name that a failure goes by, as vendors write it; empty where it has none."""
    if not isinstance(failure, dict) or not isinstance(failure.get("message"), str):
        return ""
    code = failure.get("code") or failure.get("type")
    return code if isinstance(code, str) else ""


def at(found: Json, path: str) -> Json:
    """Return what stands at a path (`choices.0.delta.content`), None where there is nothing."""
    for step in path.split("."):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and _PLACE.fullmatch(step):
            place = int(step)  # one below 0 counts from the end
            found = found[place] if -len(found) <= place < len(found) else None
        else:
            return None
    return found


@dataclass(frozen=True, slots=True)
class Places:
    """Where things stand in each object of a reply; "" where they do not.

    Attributes:
        audio: Base64 of WAV or bare samples, or a list of numbers.
        text: Words.
        error: Whatever tells of a failure by being there.
        rate: Samples a second of the audio beside it.
        whole_text: Whether each text repeats what came before it.
    """

    audio: str = ""
    text: str = ""
    error: str = ""
    rate: str = ""
    whole_text: bool = False


class Picker:
    """Picks the parts of a reply out of JSON objects.

    Args:
        protocol: Whose reply it is, for errors.
        places: Where they stand.
        rate: Samples a second of bare samples, before what anyone else says; None for none.
        default: Samples a second where nobody says it.
    """

    def __init__(self, protocol: str, places: Places, rate: int | None, default: int) -> None:
        self._protocol, self._places, self._rate = protocol, places, rate
        self._default = default
        self._audio = SniffedAudio(protocol, rate, default)
        self._said = ""

    def events(self, message: Message) -> Iterator[Event]:
        """Yield what one object stands for.

        Raises:
            ProtocolError: If it is no object, or holds something else in one of the places.
        """
        return self.picked(parse_object(self._protocol, message))

    def picked(self, told: Fields) -> Iterator[Event]:
        """Yield what an object that has been parsed stands for.

        Raises:
            ProtocolError: If it holds something else in one of the places.
        """
        if self._places.error:
            failure = at(told.data, self._places.error)
            if failure not in _NO_ERROR:
                kind, retryable = classify(_code(failure), "", ("server", True))
                yield Fault(kind, retryable, self._failure(told, failure))
                return
        if self._places.text:
            yield from self._text(told)
        if self._places.audio:
            yield from self._sound(told)

    def _failure(self, told: Fields, failure: Json) -> str:
        code = _code(failure)
        if isinstance(failure, dict) and isinstance(failure.get("message"), str):
            failure = failure["message"]
        beside = at(told.data, self._places.text) if self._places.text else None
        parts = [code] if code else []
        parts += [failure if isinstance(failure, str) else json.dumps(failure)]
        parts += [beside] if isinstance(beside, str) and beside else []
        return clean(": ".join(parts))[:400]

    def _text(self, told: Fields) -> Iterator[Event]:
        found = at(told.data, self._places.text)
        if found is None:
            return
        if not isinstance(found, str):
            raise self._wrong(told, self._places.text, "a string")
        words = clean(found)
        if self._places.whole_text:
            words, self._said = words.removeprefix(self._said), words
        if words:
            yield ReplyText(words)

    def _sound(self, told: Fields) -> Iterator[Event]:
        found = at(told.data, self._places.audio)
        if found is None or found in ("", []):
            return
        pcm, rate = self._samples(told, found)
        if pcm:
            yield ReplyAudio(pcm, "pcm16", self._told_rate(told) or rate)

    def _samples(self, told: Fields, found: Json) -> tuple[bytes, int]:
        if isinstance(found, str):
            return self._audio.chunk(from_base64(told, self._places.audio, found))
        if isinstance(found, list):
            return _from_numbers(told, found), self._audio.rate
        raise self._wrong(told, self._places.audio, "base64 or a list of numbers")

    def _told_rate(self, told: Fields) -> int | None:
        if self._rate is not None or not self._places.rate:
            return None
        found = at(told.data, self._places.rate)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int) or not 4000 <= found <= 384_000:
            raise self._wrong(told, self._places.rate, "a rate")
        return found

    def _wrong(self, told: Fields, path: str, wanted: str) -> ProtocolError:
        return told.problem(f"{path} is not {wanted}")


def from_base64(told: Fields, place: str, text: str) -> bytes:
    """Return what base64 holds, after the head of a `data:` URL.

    Raises:
        ProtocolError: If it is not base64; `place` says where it stood.
    """
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise told.problem(f"{place} is not base64: {str(error).lower()}") from None


def _from_numbers(told: Fields, found: Sequence[Json]) -> bytes:
    import numpy as np

    try:
        values = np.array(found, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        values = np.full(1, math.nan)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise told.problem("the audio is a list of other things than finite numbers")
    if np.abs(values).max(initial=0.0) > _UNSCALED:
        values = values / 32768.0
    return floats_to_pcm16(values)

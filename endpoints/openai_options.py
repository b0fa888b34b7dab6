"""The options of kind `openai-realtime`, checked, and the `session` object they make."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from voxmeter.endpoints.codec import Json, Settings, TurnEnd
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Encoding
from voxmeter.endpoints.openai_dialect import Dialect, Format, pcm_or_g711

Object = dict[str, Json]

_ENCODINGS = ("pcm16", "pcmu", "pcma")
_SERVER_VAD = ("threshold", "prefix_padding_ms", "silence_duration_ms", "idle_timeout_ms")
OPTIONS = {
    "dialect": "'ga' (default) or 'legacy': the spelling that is sent; both are understood",
    "output_modalities": "'audio' (default; with its transcript) or 'text': replies without audio",
    "input_encoding": "'pcm16' (default), 'pcmu' or 'pcma' (8 kHz telephone audio)",
    "output_encoding": "the same for the reply",
    "speed": "speaking speed, 0.25 to 1.5",
    "turn_detection": "'server_vad' (default) or 'semantic_vad'; turn_end = 'commit' turns it off",
    "threshold": "of server_vad, 0 to 1",
    "prefix_padding_ms": "audio that server_vad keeps before the speech, ms",
    "silence_duration_ms": "quiet that ends a turn by server_vad, ms",
    "idle_timeout_ms": "of server_vad: quiet after a reply until the server speaks again, ms",
    "eagerness": "of semantic_vad: 'low', 'medium', 'high' or 'auto'",
    "create_response": "false: the server closes turns, the client asks for the reply",
    "interrupt_response": "false: speech during a reply does not stop it",
    "transcription": "name of a model that writes down the question, or a whole table",
    "noise_reduction": "'near_field' or 'far_field', or a whole table",
    "reasoning_effort": "'minimal' to 'xhigh', for models that reason",
    "max_output_tokens": "a whole number, or 'inf'",
    "key_header": "header that carries the key, bare, in place of 'Authorization: Bearer KEY'",
    "send_tag": "whether the URL carries the session's tag; by default only on this machine",
    "session": "a table laid over the whole session object, for fields that are not listed here",
}
"""Every option there is, with what it does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session is to be, read from `Settings` once.

    Attributes:
        settings: Where it was read from.
        dialect: Spelling of what is sent.
        modality: `audio`, or `text` alone.
        turn_end: How turns are closed.
        input: Format of what is sent.
        output: Format asked for.
        detection: The `turn_detection` object; None closes turns explicitly.
        key_header: Header that carries the key.
        send_tag: Whether the session's tag goes into the URL; None: on this machine only.
    """

    settings: Settings
    dialect: Dialect
    modality: Literal["audio", "text"]
    turn_end: TurnEnd
    input: Format
    output: Format
    detection: Object | None
    key_header: str
    send_tag: bool | None

    @property
    def create_response(self) -> bool:
        """Return whether the server answers a turn that it closed itself, unasked."""
        return self.detection is not None and self.detection.get("create_response") is not False

    @property
    def interrupt_response(self) -> bool:
        """Return whether the server stops its reply when the user speaks."""
        return self.detection is not None and self.detection.get("interrupt_response") is not False

    def session(self) -> Object:
        """Return the `session` object of `session.update`."""
        made = _legacy(self) if self.dialect == "legacy" else _ga(self)
        return _merged(made, cast("Object", _Options(self.settings.options).object("session")))


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    options = _Options(settings.options)
    options.all_known()
    turn_end = settings.turn_end or "silence"
    inward = cast("Encoding", options.choice("input_encoding", _ENCODINGS, "pcm16"))
    outward = cast("Encoding", options.choice("output_encoding", _ENCODINGS, "pcm16"))
    return Wanted(
        settings=settings,
        dialect=cast("Dialect", options.choice("dialect", ("ga", "legacy"), "ga")),
        modality=options.modality(),
        turn_end=turn_end,
        input=_format("input", inward, settings.input_rate),
        output=_format("output", outward, settings.output_rate),
        detection=options.detection() if turn_end == "silence" else None,
        key_header=options.text("key_header") or "Authorization",
        send_tag=options.flag("send_tag"),
    )


def _format(side: str, encoding: Encoding, rate: int | None) -> Format:
    if rate is not None and encoding != "pcm16" and rate != 8000:
        found = f"{rate} with {side}_encoding {encoding!r}"
        raise UserError(f"{side}_rate", found, "leave the rate out: G.711 is always at 8000")
    if rate is not None and not 8000 <= rate <= 48000:
        raise UserError(f"{side}_rate", str(rate), "use a rate from 8000 to 48000")
    return pcm_or_g711(encoding, rate)


def _ga(wanted: Wanted) -> Object:
    options = _Options(wanted.settings.options)
    inward: Object = {"format": wanted.input.json("ga"), "turn_detection": wanted.detection}
    _put(inward, "transcription", options.named("transcription", "model"))
    _put(inward, "noise_reduction", options.named("noise_reduction", "type"))
    outward: Object = {"format": wanted.output.json("ga")}
    _put(outward, "voice", wanted.settings.voice or None)
    _put(outward, "speed", options.number("speed"))
    session: Object = {
        "type": "realtime",
        "output_modalities": [wanted.modality],
        "audio": {"input": inward, "output": outward},
    }
    _put(session, "instructions", wanted.settings.instructions or None)
    _put(session, "max_output_tokens", options.tokens())
    effort = options.text("reasoning_effort")
    _put(session, "reasoning", {"effort": effort} if effort else None)
    return session


def _legacy(wanted: Wanted) -> Object:
    options = _Options(wanted.settings.options)
    session: Object = {
        "modalities": ["text"] if wanted.modality == "text" else ["text", "audio"],
        "input_audio_format": wanted.input.json("legacy"),
        "output_audio_format": wanted.output.json("legacy"),
        "turn_detection": wanted.detection,
    }
    _put(session, "instructions", wanted.settings.instructions or None)
    _put(session, "voice", wanted.settings.voice or None)
    _put(session, "speed", options.number("speed"))
    _put(session, "temperature", wanted.settings.temperature)
    _put(session, "input_audio_transcription", options.named("transcription", "model"))
    _put(session, "input_audio_noise_reduction", options.named("noise_reduction", "type"))
    _put(session, "max_response_output_tokens", options.tokens())
    return session


def _put(target: Object, name: str, value: Json) -> None:
    if value is not None:
        target[name] = value


def _merged(base: Object, extra: Object) -> Object:
    """Return `base` with the fields of `extra` laid over it, objects field by field."""
    merged = dict(base)
    for name, value in extra.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = _merged(cast("Object", old), cast("Object", value)) if both else value
    return merged


class _Options:
    """Options from outside, read one by one; a wrong one is the user's mistake."""

    def __init__(self, options: Mapping[str, Json]) -> None:
        self._options = options

    def all_known(self) -> None:
        for name in self._options:
            if name not in OPTIONS:
                near = difflib.get_close_matches(name, OPTIONS, n=1)
                cure = f"did you mean {near[0]}?" if near else f"known: {', '.join(OPTIONS)}"
                raise UserError(f"options.{name}", "openai-realtime has no such option", cure)

    def _wrong(self, name: str, wanted: str) -> UserError:
        return UserError(f"options.{name}", repr(self._options[name]), f"use {wanted}")

    def text(self, name: str) -> str | None:
        value = self._options.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        value = self._options.get(name, default)
        if value not in allowed:
            raise self._wrong(name, " or ".join(repr(one) for one in allowed))
        return str(value)

    def number(self, name: str) -> float | None:
        value = self._options.get(name)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise self._wrong(name, "a number")
        return value

    def flag(self, name: str) -> bool | None:
        value = self._options.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def object(self, name: str) -> Mapping[str, Json]:
        value = self._options.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "a table")
        return value

    def named(self, name: str, key: str) -> Json:
        """Return an object given whole, or by its one important field."""
        value = self._options.get(name)
        if isinstance(value, str):
            return {key: value}
        if value is not None and not isinstance(value, dict):
            raise self._wrong(name, f"a string or a table with {key}")
        return value

    def tokens(self) -> Json:
        value = self._options.get("max_output_tokens")
        number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if value not in (None, "inf") and not number:
            raise self._wrong("max_output_tokens", "a whole number above 0, or 'inf'")
        return value

    def modality(self) -> Literal["audio", "text"]:
        value = self._options.get("output_modalities", "audio")
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value not in ("audio", "text"):
            raise self._wrong("output_modalities", "'audio' (with its transcript) or 'text'")
        return cast('Literal["audio", "text"]', value)

    def detection(self) -> Object:
        """Return the `turn_detection` object, with the server's own defaults left to the server."""
        kind = self.choice("turn_detection", ("server_vad", "semantic_vad"), "server_vad")
        made: Object = {"type": kind}
        if kind == "server_vad":
            for name in _SERVER_VAD:
                _put(made, name, self.number(name))
        else:
            _put(made, "eagerness", self.text("eagerness"))
        for name in ("create_response", "interrupt_response"):
            _put(made, name, self.flag(name))
        return made

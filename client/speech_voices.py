"""Who speaks a suite that is made, and how: faster, higher, louder, with a pause, in a mood."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from voxmeter.client import audio, speakers
from voxmeter.client.audio import Pcm
from voxmeter.endpoints.errors import ClipError, UserError, VoxmeterError

if TYPE_CHECKING:
    from voxmeter.client.speech_service import Service

ADU = (
    *("hibari", "piper", "espeak-ng:en-us+f1", "espeak-ng:en-us+m1"),
    *("espeak-ng:en+f2", "espeak-ng:en+m3", "espeak-ng:en-gb-scotland+f4"),
    "espeak-ng:en-gb-scotland+m7",
)
"""Four women's and four men's voices, as many as ADU-Bench's own; not the same ones."""

LONGEST_PAUSE_MS = 300.0
"""Servers take half a second of quiet for the end of a question; a fifth, the strictest."""

CLIPPED = "cut off at full scale"
"""Warning of a clip that was made louder than there is room for."""

OPENAI = "openai"
_ENGLISH = ("hibari", "piper")
_LOWEST, _HIGHEST = 0.64, 1.5  # what espeak-ng's own setting of the pitch reaches
_MARK = "|"
_FRAME_S, _QUIET = 0.005, 0.05  # 26 dB below the speech around it
_TRIES = 7
_CLOSE = 0.01


@dataclass(frozen=True, slots=True)
class Manner:
    """How a text is spoken.

    Attributes:
        speaker: Name of the voice; `openai:<voice>` is one of a service.
        rate: How much faster than the voice is by itself, percent.
        pitch: How much higher, percent.
        volume: How much louder, percent of the amplitude.
        emotion: A word for the mood; empty for none.
        pause_ms: Silence at every `|` of the text; None where `|` is no mark.
        longest_pause_ms: What pauses of the voice's own are shortened to; None leaves them.
    """

    speaker: str
    rate: float = 0.0
    pitch: float = 0.0
    volume: float = 0.0
    emotion: str = ""
    pause_ms: float | None = None
    longest_pause_ms: float | None = LONGEST_PAUSE_MS

    @property
    def pace(self) -> float:
        """Speed as a multiple of the voice's own."""
        return 1 + self.rate / 100

    @property
    def height(self) -> float:
        """Pitch, likewise."""
        return 1 + self.pitch / 100

    @property
    def service(self) -> bool:
        """Whether it is a voice of a service."""
        return self.speaker.partition(":")[0] == OPENAI


def named(speakers_: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of voices with `adu` spelled out, each once."""
    every = (one for name in speakers_ for one in (ADU if name == "adu" else (name,)))
    return tuple(dict.fromkeys(every))


def in_language(speaker: str, language: str) -> str:
    """Return the voice for a language: `{language}` in its name stands for the code.

    Raises:
        UserError: If the voice speaks English alone.
    """
    kind, _, detail = speaker.partition(":")
    english = language.partition("-")[0] == "en"
    if not english and (kind in _ENGLISH and not detail):
        cure = f"name espeak-ng:{language}, or espeak-ng:{{language}} for any language"
        raise UserError(f"voice {speaker!r}", f"speaks English, and the text is {language}", cure)
    return speaker.replace("{language}", language)


def check(manner: Manner, service: Service | None) -> None:
    """Find out whether a manner can be spoken here; no text is.

    Raises:
        UserError: If the voice is not there, or cannot speak so.
    """
    place = f"voice {manner.speaker!r}"
    if manner.service:
        if service is None:
            raise UserError(place, "no service is named", "add --tts-url, or --tts-key-env")
        service.check(manner)
        return
    if manner.emotion:
        found = f"has no moods, and --emotion {manner.emotion} was asked for"
        raise UserError(place, found, "use an openai: voice, or leave --emotion out")
    if manner.speaker.startswith("espeak-ng") and not _LOWEST <= manner.height <= _HIGHEST:
        found = f"cannot speak {manner.pitch:+g} % higher"
        raise UserError(place, found, "use a pitch from -36 to 50")
    if "{" not in manner.speaker:
        speakers.check(manner.speaker)


def speak(manner: Manner, text: str, service: Service | None = None) -> Pcm:
    """Return a text spoken; the same samples for the same text where the voice is a local one.

    Rate and pitch of espeak-ng are its own settings. hibari and piper have one of the speed, which
    is tried until the length is right; for another pitch they speak slower or faster and are played
    at another speed, which brings the length back and moves the timbre with the pitch. The volume
    is a factor on the samples.

    Raises:
        ClipError: If there is nothing to say in it, or the voice fails at it.
        UserError: If the voice or the service is at fault.
    """
    pieces = text.split(_MARK) if manner.pause_ms is not None else [text]
    said = [_piece(manner, piece, service) for piece in pieces if re.search(r"\w", piece)]
    if not said:
        raise ClipError("text", f"nothing to say in {text!r:.60}")
    if manner.longest_pause_ms is not None:
        said = [shortened(one, manner.longest_pause_ms) for one in said]
    gap = np.zeros(round((manner.pause_ms or 0) * said[0].rate / 1000), np.float32)
    samples = [said[0].samples]
    for one in said[1:]:
        samples += [gap, one.samples]
    louder = np.concatenate(samples) * np.float32(1 + manner.volume / 100)
    warnings = (CLIPPED,) if np.abs(louder).max() > 1 else ()
    return Pcm(np.clip(louder, -1.0, 1.0), said[0].rate, warnings)


def shortened(pcm: Pcm, longest_ms: float) -> Pcm:
    """Return audio whose inner pauses are at most so long: the middle of longer ones is cut out."""
    size = max(1, round(pcm.rate * _FRAME_S))
    frames = pcm.samples[: len(pcm.samples) // size * size].reshape(-1, size)
    loudness = np.sqrt(np.mean(np.square(frames), axis=1))
    if not len(loudness) or not loudness.max():
        return pcm
    loud = np.flatnonzero(loudness > _QUIET * np.sqrt(np.mean(loudness[loudness > 0] ** 2)))
    most = round(longest_ms / 1000 * pcm.rate)
    kept, start = [], 0
    for before, after in itertools.pairwise(loud):
        first, last = (int(before) + 1) * size, int(after) * size
        if last - first > most:
            kept.append(pcm.samples[start : first + most // 2])
            start = last - (most - most // 2)
    return Pcm(np.concatenate([*kept, pcm.samples[start:]]), pcm.rate, pcm.warnings)


def _piece(manner: Manner, text: str, service: Service | None) -> Pcm:
    if manner.service:
        if service is None:
            raise UserError(f"voice {manner.speaker!r}", "no service", "add --tts-url")
        return _higher(service.speak(manner, text), manner.height)
    # a full stop would make each letter of an option a sentence of its own
    text = re.sub(r"(?<=[.?!:] )([A-Z])\. (?=\w)", r"\1, ", text)
    try:
        if manner.speaker.startswith("espeak-ng"):
            return _said(_espeak(manner.speaker, manner.pace, manner.height), text)
        return _higher(_paced(manner.speaker, text, manner.pace / manner.height), manner.height)
    except VoxmeterError:
        raise
    except Exception as error:  # a synthesiser is foreign code, and this is one text of many
        found = f"{text!r:.60} ({type(error).__name__}: {error})"
        raise ClipError(f"voice {manner.speaker!r}", f"cannot say {found}") from error


def _paced(name: str, text: str, pace: float) -> Pcm:
    """Return a text at a multiple of the voice's usual speed.

    Models of speech follow their own setting by halves, so it is tried until the length is right.
    """
    voice = _model(name)
    voice.pace = 1.0
    usual = _said(voice, text)
    if pace == 1.0:
        return usual
    low, high = sorted((1.0, min(max(pace**3, 0.25), 4.0)))
    best, nearest = usual, abs(math.log(pace))
    for _ in range(_TRIES):
        voice.pace = math.sqrt(low * high)
        found = _said(voice, text)
        off = math.log(len(usual.samples) / len(found.samples) / pace)
        if abs(off) < nearest:
            best, nearest = found, abs(off)
        if nearest < _CLOSE:
            break
        low, high = (low, voice.pace) if off > 0 else (voice.pace, high)
    return best


def _said(voice: speakers.Speaker, text: str) -> Pcm:
    pieces = list(voice.speak(text))
    if not sum(len(piece) for piece in pieces):
        raise ClipError(f"voice {voice.name!r}", f"has nothing to say for {text!r:.60}")
    return Pcm(np.concatenate(pieces), voice.rate)


def _higher(pcm: Pcm, height: float) -> Pcm:
    """Return audio played at `height` times its speed, at the same rate."""
    if height == 1.0:
        return pcm
    import soxr

    samples = soxr.resample(pcm.samples, pcm.rate * height, pcm.rate, quality="HQ")
    return Pcm(np.clip(np.asarray(samples, np.float32), -1.0, 1.0), pcm.rate)


@lru_cache(maxsize=4)
def _model(name: str) -> speakers.HibariSpeaker | speakers.PiperSpeaker:
    voice = speakers.speaker(name, steady=True)
    if not isinstance(voice, speakers.HibariSpeaker | speakers.PiperSpeaker):
        raise TypeError(f"{name} is no model")
    return voice


@lru_cache(maxsize=32)
def _espeak(name: str, pace: float, pitch: float) -> speakers.EspeakSpeaker:
    return speakers.EspeakSpeaker(name, name.partition(":")[2] or "en-us", pace, pitch)


def write(pcm: Pcm, path: object, form: str) -> None:
    """Write a clip whole or not at all, as FLAC, or Ogg with Opus inside."""
    import io
    from pathlib import Path

    import soundfile

    target = Path(str(path))
    if form == "flac":
        audio.write_flac(target, pcm.samples, pcm.rate)
        return
    fit = pcm if pcm.rate in {8000, 12000, 16000, 24000, 48000} else audio.resample(pcm, 24_000)
    buffer = io.BytesIO()
    exact = audio.from_pcm16(audio.to_pcm16(fit.samples))
    soundfile.write(buffer, exact, fit.rate, format="OGG", subtype="OPUS")
    audio.write_whole(target, buffer.getbuffer())

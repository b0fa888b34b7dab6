"""Text to speech behind one seam: hibari, piper and espeak-ng."""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from voxmeter.client.audio import Samples
from voxmeter.client.models import locate
from voxmeter.client.sentences import sentences
from voxmeter.endpoints.errors import MissingExtraError, UserError

SPEAKERS: Sequence[str] = ("hibari", "piper", "espeak-ng")
"""Names that `speaker` takes; `espeak-ng:de` speaks German, `piper:<voice.onnx>` another voice."""

_ESPEAK_WORDS_PER_MINUTE = 165
_ESPEAK_LIMIT_S = 60.0
_ESPEAK_PITCH = 50
_ESPEAK_OCTAVE = 76  # steps of -p that double the frequency, as measured on four voices


class Speaker(Protocol):
    """One voice. Not for two threads at once, unless the class says so.

    Attributes:
        name: The name it was asked for with.
        rate: Samples a second of what `speak` yields.
    """

    name: str
    rate: int

    def speak(self, text: str) -> Iterator[Samples]:
        """Yield the speech of one sentence at a time: shape (n,), float32 in [-1, 1], mono.

        Text without anything to say yields nothing.
        """
        ...


def speaker(name: str, *, pace: float = 1.0, steady: bool = False) -> Speaker:
    """Load a voice and warm it up, so that its first sentence takes no longer than the next.

    Args:
        name: One of `SPEAKERS`, or `espeak-ng:<language>`, or `piper:<path of a voice>`.
        pace: Speed of speech, as a multiple of the voice's own.
        steady: Whether piper, too, makes the same sound of the same text; it is a little flatter.

    Raises:
        UserError: If there is no such voice or its model file is not the pinned one.
        MissingExtraError: If its package is not installed.
    """
    if not 0.25 <= pace <= 4.0:
        raise UserError(f"voice {name!r}", f"pace {pace}", "use a pace from 0.25 to 4")
    kind, _, detail = name.partition(":")
    match kind:
        case "hibari" if detail in {"", "heart"}:
            return HibariSpeaker(name, pace)
        case "piper":
            return PiperSpeaker(name, detail or "piper", pace, steady=steady)
        case "espeak-ng":
            return EspeakSpeaker(name, detail or "en-us", pace)
        case _:
            cure = f"use one of {', '.join(SPEAKERS)}, or espeak-ng:<language>"
            raise UserError(f"voice {name!r}", "no such voice", cure)


def check(name: str) -> None:
    """Find out whether a voice can be loaded here; nothing is loaded.

    Args:
        name: As for `speaker`.

    Raises:
        UserError: As `speaker`.
        MissingExtraError: As `speaker`.
    """
    kind, _, detail = name.partition(":")
    match kind:
        case "hibari" if not detail or detail == "heart":
            locate("hibari", "tts")
            _must_be_installed(name, "hibari")
        case "piper":
            _piper_model(detail or "piper")
            _must_be_installed(name, "piper")
        case _:
            speaker(name)  # a program that starts in milliseconds, or no voice at all


def _must_be_installed(voice: str, package: str) -> None:
    if find_spec(package) is None:
        raise MissingExtraError(f"voice {voice!r}", f"the package {package}", "local")


def _piper_model(model: str) -> tuple[Path, Path]:
    """Return a piper voice and its settings."""
    path = locate(model, "tts").path
    config = Path(f"{path}.json")
    if not config.is_file():
        raise UserError(str(config), "no such file", "put the voice's .onnx.json beside it")
    return path, config


class HibariSpeaker:
    """hibari's own voice "heart": American English, 24 kHz, the same samples for the same text.

    Attributes:
        pace: Speed of speech; may be changed between texts. What comes out changes less.
    """

    def __init__(self, name: str, pace: float = 1.0) -> None:
        self.name = name
        self.pace = pace
        model = locate("hibari", "tts")
        try:
            from hibari import SAMPLE_RATE, Hibari
        except ImportError as error:
            raise MissingExtraError("voice 'hibari'", str(error), "local") from None
        self.rate = int(SAMPLE_RATE)
        self._voice = Hibari(model=str(model.path))
        for _ in self.speak("Warm up."):
            pass

    def speak(self, text: str) -> Iterator[Samples]:
        """Yield one sentence at a time."""
        for number, sentence in enumerate(sentences(text)):
            samples = self._voice(sentence, speed=self.pace, seed=number)
            if len(samples):
                yield _mono(samples)


class PiperSpeaker:
    """A piper voice; piper draws its own noise, so the same text sounds a little new each time.

    Attributes:
        pace: Speed of speech; may be changed between texts. What comes out changes less.
    """

    def __init__(
        self, name: str, model: str = "piper", pace: float = 1.0, *, steady: bool = False
    ) -> None:
        self.name = name
        path, config = _piper_model(model)
        try:
            from piper import PiperVoice, SynthesisConfig
        except ImportError as error:
            raise MissingExtraError(f"voice {name!r}", str(error), "local") from None
        self._voice = PiperVoice.load(path, config)
        noise = 0.0 if steady else None
        self._settings = SynthesisConfig(noise_scale=noise, noise_w_scale=noise)
        self.pace = pace
        self.rate = int(self._voice.config.sample_rate)
        for _ in self.speak("Warm up."):
            pass

    def speak(self, text: str) -> Iterator[Samples]:
        """Yield one sentence at a time."""
        self._settings.length_scale = 1 / self.pace
        for sentence in sentences(text):
            for chunk in self._voice.synthesize(sentence, self._settings):
                if len(chunk.audio_float_array):
                    yield _mono(chunk.audio_float_array)


class EspeakSpeaker:
    """The espeak-ng program: robotic, about a hundred languages, 22.05 kHz; any thread may call.

    Args:
        name: What it was asked for with.
        language: Its code, perhaps with a variant of the voice: `en-gb+f3`.
        pace: Speed of speech, as a multiple of the usual one.
        pitch: Height of the voice, likewise; 0.64 to 1.5.
    """

    def __init__(
        self, name: str, language: str = "en-us", pace: float = 1.0, pitch: float = 1.0
    ) -> None:
        self.name = name
        program = shutil.which("espeak-ng")
        if program is None:
            cure = "apt-get install espeak-ng (or your system's package of that name)"
            raise UserError(f"voice {name!r}", "the program espeak-ng is not installed", cure)
        speed = str(round(_ESPEAK_WORDS_PER_MINUTE * pace))
        # joined to its option, so that a language that starts with a dash is not read as another
        height = str(round(_ESPEAK_PITCH + _ESPEAK_OCTAVE * math.log2(pitch)))
        self._command = [program, "--stdin", "--stdout", f"-v{language}", "-s", speed, "-p", height]
        self.rate, heard = self._run("Ready.")
        base, plus, variant = language.partition("+")
        if plus:
            self._refuse_lost(base, variant, heard)

    def _refuse_lost(self, base: str, variant: str, heard: Samples) -> None:
        """Refuse a variant that espeak-ng leaves out without a word: the usual voice would speak.

        It does so for names it does not have, and for all under some names of languages (en-gb).
        """
        plain = [f"-v{base}" if word.startswith("-v") else word for word in self._command]
        _, usual = self._run("Ready.", plain)
        if np.array_equal(heard, usual):
            found = f"espeak-ng speaks {base} and leaves the variant {variant} out"
            cure = "see espeak-ng --voices=variant; British English is en, as in en+f3"
            raise UserError(f"voice {self.name!r}", found, cure)

    def speak(self, text: str) -> Iterator[Samples]:
        """Yield one sentence at a time."""
        for sentence in sentences(text):
            rate, samples = self._run(sentence)
            if rate != self.rate:
                raise UserError(f"voice {self.name!r}", f"rate changed to {rate}", "report this")
            if len(samples):
                yield samples

    def _run(self, sentence: str, command: Sequence[str] = ()) -> tuple[int, Samples]:
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program; the text goes to its input
                command or self._command,
                input=sentence.encode(),
                capture_output=True,
                timeout=_ESPEAK_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            found = f"espeak-ng took over {_ESPEAK_LIMIT_S:.0f} s"
            raise UserError(f"voice {self.name!r}", found, "give shorter text") from None
        if done.returncode != 0 or not done.stdout:
            problem = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
            cure = "see espeak-ng --voices for the languages it has"
            raise UserError(f"voice {self.name!r}", problem[0], cure)
        return _wav(done.stdout, self.name)


def _wav(data: bytes, name: str) -> tuple[int, Samples]:
    """Read a piped WAV, whose length fields are not true: rate and all samples to the end."""
    rate, position = 0, 12
    while position + 8 <= len(data):
        tag, size = struct.unpack_from("<4sI", data, position)
        position += 8
        if tag == b"fmt ":
            _, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, position)
            if (channels, bits) != (1, 16):
                raise UserError(f"voice {name!r}", f"{channels} channels of {bits} bits", "report")
        if tag == b"data":
            body = data[position : position + (len(data) - position) // 2 * 2]
            return rate, _mono(np.frombuffer(body, "<i2").astype(np.float32) / 32768)
        position += size + size % 2
    raise UserError(f"voice {name!r}", "espeak-ng gave no WAV", "check espeak-ng --version")


def _mono(samples: npt.ArrayLike) -> Samples:
    return np.clip(np.asarray(samples, np.float32).reshape(-1), -1.0, 1.0)

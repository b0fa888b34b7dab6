"""Whisper, made steady: fixed language, one temperature, full window, and no words out of silence.

Follows faster-whisper 1.2 (the settings are those of `WhisperModel.transcribe`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.speech import speech_bounds
from voxmeter.scoring.text import repetition

RATE = 16_000
"""Samples a second that Whisper takes."""

GATE_DBFS = -55.0
"""A reply whose loudest 100 ms stay under this level, dB below full scale, is not speech.

It lies above the -60 dBFS at which single frames count as audible, because noise of that level
crosses it all the time, and Whisper reads "you" or "thank you" in noise.
"""

Device = Literal["auto", "cpu", "cuda"]
Samples = npt.NDArray[np.float32]

_QUIET_KEPT = RATE // 2  # samples of quiet left on both sides of the speech
_SHORTEST = RATE // 20  # samples; no word is shorter than 50 ms
_DETECTION = 30 * RATE  # Whisper's window
_ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class AsrSettings:
    """How replies are transcribed; the whole of it is part of a transcript's record.

    Attributes:
        language: Code such as `en`; `auto` lets Whisper detect it on the voiced part, which can
            take a one-word reply for another language and nearly doubles the time.
        beam_size: 1 is greedy.
        device: `auto` takes CUDA where CTranslate2 sees a GPU.
        compute_type: Of the weights; `auto` is float16 on a GPU, int8 on a CPU.
        cpu_threads: Threads of one model on a CPU.
    """

    language: str = _ENGLISH
    beam_size: int = 5
    device: Device = "auto"
    compute_type: str = "auto"
    cpu_threads: int = 1

    def recorded(self) -> dict[str, object]:
        """Return what can change a text, as JSON values; threads cannot."""
        row = asdict(self)
        del row["cpu_threads"]
        return row | {"temperature": 0.0, "window_s": 30, "previous_text": False, "version": 1}


@dataclass(frozen=True, slots=True)
class Transcript:
    """What Whisper read in one reply.

    Attributes:
        text: Raw, as Whisper wrote it; empty when nothing was audible.
        language: The language it was read in; for a gated reply, the one it was asked in.
        gated: Whether the reply was too quiet to be speech, so that Whisper was not asked.
        detail: JSON values: `repetition` (what `voxmeter.scoring.text.repetition` says of it),
            `no_speech` (Whisper's highest probability that a segment has none), `confidence` (mean
            log probability, lowest segment), `language_probability` where it was detected,
            `not_finite` (samples that were no numbers, taken as 0), `device`.
    """

    text: str
    language: str
    gated: bool = False
    detail: Mapping[str, object] = field(default_factory=dict)


class _Model(Protocol):
    """The part of faster-whisper's `WhisperModel` that is used here."""

    def transcribe(self, audio: Samples, **settings: object) -> tuple[Iterable[Any], Any]: ...
    def detect_language(self, audio: Samples) -> tuple[str, float, Any]: ...


class Transcriber:
    """One Whisper model in memory; several threads may call it."""

    def __init__(
        self, model_dir: Path, settings: AsrSettings | None = None, *, lanes: int = 1
    ) -> None:
        """Load a CTranslate2 Whisper model; blocking, a second or more.

        Args:
            model_dir: Its folder.
            settings: How to transcribe.
            lanes: Calls that it works on side by side; more of them wait.

        Raises:
            UserError: If the folder holds no such model, or the device, the compute type or the
                language is not there.
        """
        self.settings = settings or AsrSettings()
        self.device, compute_type = placement(self.settings)
        self._model, multilingual = _load(
            model_dir, self.device, compute_type, self.settings, lanes
        )
        self._english_only = not multilingual
        self._check_language(self.settings.language)

    def transcribe(self, samples: npt.ArrayLike, language: str | None = None) -> Transcript:
        """Return what is said in one reply.

        Args:
            samples: Shape (n,), mono at 16,000 samples a second, nominally in [-1, 1]; n may be 0.
            language: Overrides the setting for this reply (a data set knows its items' language).

        Raises:
            UserError: If the model does not know the language.
        """
        asked = language or self.settings.language
        self._check_language(asked)
        audio, not_finite = _clean(samples)
        detail: dict[str, object] = {"device": self.device}
        if not_finite:
            detail["not_finite"] = not_finite
        bounds = speech_bounds(audio, RATE) if loudest_dbfs(audio) >= GATE_DBFS else None
        if bounds is None or bounds.end_sample - bounds.onset_sample < _SHORTEST:
            return Transcript("", asked, gated=True, detail=detail)
        detail["sound"] = bounds.kind
        voiced = audio[bounds.onset_sample : bounds.end_sample]
        if asked == "auto":
            asked, probability = self._detect(voiced)
            detail["language_probability"] = probability
        start = max(0, bounds.onset_sample - _QUIET_KEPT)
        text, noted = self._read(audio[start : bounds.end_sample + _QUIET_KEPT], asked)
        return Transcript(text, asked, detail=detail | noted)

    def _read(self, audio: Samples, language: str) -> tuple[str, dict[str, object]]:
        found, _ = self._model.transcribe(
            audio,
            language=language,
            task="transcribe",
            beam_size=self.settings.beam_size,
            temperature=[0.0],
            condition_on_previous_text=False,
            vad_filter=False,
        )
        segments = list(found)  # they are made while they are asked for: here, in this thread
        text = "".join(segment.text for segment in segments).strip()
        return text, {
            "repetition": asdict(repetition(text)),
            "no_speech": _finite(max((part.no_speech_prob for part in segments), default=0.0)),
            "confidence": _finite(min((part.avg_logprob for part in segments), default=0.0)),
        }

    def _detect(self, voiced: Samples) -> tuple[str, float]:
        if self._english_only:
            return _ENGLISH, 1.0
        language, probability, _ = self._model.detect_language(voiced[:_DETECTION])
        return language, float(probability)

    def _check_language(self, language: str) -> None:
        from faster_whisper.tokenizer import _LANGUAGE_CODES

        if language not in {"auto", *_LANGUAGE_CODES}:
            cure = "use a code such as en, de or zh, or auto"
            raise UserError(f"language {language!r}", "Whisper does not know it", cure)
        if self._english_only and language not in {"auto", _ENGLISH}:
            found = "this Whisper model hears English only"
            raise UserError(f"language {language!r}", found, "use the model base or a larger one")


def loudest_dbfs(audio: Samples) -> float:
    """Return the level of the loudest 100 ms, dB below full scale; -inf for silence or nothing.

    Args:
        audio: Shape (n,), at 16,000 samples a second, finite.
    """
    if not len(audio):
        return -np.inf
    window = min(RATE // 10, len(audio))  # a shorter signal is one window
    energy = np.concatenate([[0.0], np.cumsum(np.square(audio, dtype=np.float64))])
    loudest = float(np.max(energy[window:] - energy[:-window])) / window
    return 10 * float(np.log10(loudest)) if loudest > 0 else -np.inf


def placement(settings: AsrSettings) -> tuple[str, str]:
    """Return the device and the compute type that `auto` means on this machine.

    Raises:
        UserError: If the machine does not have what the settings name.
    """
    import ctranslate2

    gpus = ctranslate2.get_cuda_device_count()
    device: str = settings.device
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    if device == "cuda" and not gpus:
        cure = 'install the NVIDIA driver and CUDA 12, or set device = "cpu"'
        raise UserError("[transcribe] device", "cuda, but no GPU is to be seen", cure)
    if settings.compute_type != "auto":
        known = ctranslate2.get_supported_compute_types(device)
        if settings.compute_type not in {"default", *known}:
            cure = f"use one of {', '.join(sorted(known))}"
            found = f"{settings.compute_type!r}, which this {device} cannot do"
            raise UserError("[transcribe] compute_type", found, cure)
        return device, settings.compute_type
    return device, "float16" if device == "cuda" else "int8"


def _load(
    folder: Path, device: str, compute_type: str, settings: AsrSettings, lanes: int
) -> tuple[_Model, bool]:
    from faster_whisper import WhisperModel

    try:
        model = WhisperModel(
            str(folder),
            device=device,
            compute_type=compute_type,
            cpu_threads=settings.cpu_threads,
            num_workers=lanes,
            local_files_only=True,
        )
    except (RuntimeError, ValueError, OSError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        cure = "give a folder with a CTranslate2 Whisper model"
        raise UserError(str(folder), f"could not be loaded ({problem[:160]})", cure) from None
    return cast("_Model", model), bool(model.model.is_multilingual)


def _clean(samples: npt.ArrayLike) -> tuple[Samples, int]:
    """Return mono float32 in [-1, 1], and how many samples were not finite."""
    audio = np.asarray(samples, np.float32).reshape(-1)
    wrong = int(np.count_nonzero(~np.isfinite(audio)))
    if wrong:
        audio = np.nan_to_num(audio, nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(audio, -1.0, 1.0), wrong


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None  # JSON has no word for the others

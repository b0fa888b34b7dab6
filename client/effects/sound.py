"""A clip between two effects: its samples, and where in them the speech is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import ClipError

Wave = NDArray[np.float64]
"""Shape (n,): mono; 1 is full scale, and between two effects it may be more."""


@dataclass(frozen=True, eq=False, slots=True)
class Sound:
    """Audio with its speech marked.

    The marks are moved by whoever moves the speech, and never looked for again.

    Attributes:
        wave: The samples.
        rate: Samples a second.
        onset: Where the speech begins, in samples.
        end: Where it ends.
        spans: Shape (k, 2): first and one past the last sample of each stretch of speech, pauses
            left out; at least one, none empty.
    """

    wave: Wave
    rate: int
    onset: float
    end: float
    spans: NDArray[np.int64]

    def with_wave(self, wave: Wave) -> Sound:
        """Return other samples with the speech where it was."""
        return replace(self, wave=wave)

    def longer(self, ms: float) -> Sound:
        """Return the sound with silence after it."""
        count = round(ms * self.rate / 1000)
        return replace(self, wave=np.concatenate([self.wave, np.zeros(count)])) if count else self

    def faster(self, wave: Wave, factor: float) -> Sound:
        """Return samples in which everything comes `factor` times as early."""
        spans = np.rint(self.spans / factor).astype(np.int64)
        spans[:, 1] = np.maximum(spans[:, 1], spans[:, 0] + 1)
        return replace(
            self, wave=wave, onset=self.onset / factor, end=self.end / factor, spans=spans
        )

    def speech(self, wave: Wave) -> Wave:
        """Return the samples of `wave`, shape (n,), that lie where the speech is."""
        return np.concatenate([wave[begin:end] for begin, end in self.spans.tolist()])


Random = np.random.Generator
Function = Callable[[Sound, Mapping[str, Json], Random], tuple[Sound, Mapping[str, Json]]]
"""An effect: the sound, what was drawn, and a generator; returns what came of it, and what is to
be logged besides."""


def generator(*words: object) -> Random:
    """Return a generator that depends on these words alone."""
    text = "\n".join(map(str, words)).encode("utf-8", "surrogatepass")
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text).digest()[:16], "big"))


def number(values: Mapping[str, Json], name: str) -> float:
    """Return a drawn value that is one number."""
    value = values[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}")
    return float(value)


def power(wave: Wave) -> float:
    """Return the mean square; not by BLAS, whose sums depend on its threads."""
    return float(np.mean(np.square(wave))) if len(wave) else 0.0


def speech_power(sound: Sound) -> float:
    """Return the mean square of the speech, pauses left out.

    Raises:
        ClipError: If an effect before has silenced it.
    """
    found = power(sound.speech(sound.wave))
    if found <= 0:
        raise ClipError("condition", "no speech is left that a level could be measured on")
    return found

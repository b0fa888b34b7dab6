"""Clips to do conditions to, and what can be measured on the result."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxmeter.client import audio, clips
from voxmeter.client.audio import Pcm
from voxmeter.client.clips import Clip
from voxmeter.client.effects import steps
from voxmeter.client.effects.chain import conditioned
from voxmeter.scoring.speech import find_sound

ITEMS = Path(__file__).parent.parent / "suites" / "demo_items"


def done(clip: Clip, *chain: dict[str, Any], seed: str = "0/x/s/a") -> Clip:
    return conditioned(clip, steps.checked(chain), seed)


def spans_of(clip: Clip) -> NDArray[np.int64]:
    return find_sound(clip.pcm.samples, clip.pcm.rate, inner=False).spans


def level_db(wave: NDArray[np.floating], spans: NDArray[np.int64]) -> float:
    """Return the mean power of some stretches in dB."""
    picked = np.concatenate([wave[a:b] for a, b in spans.tolist()]).astype(np.float64)
    return 10 * math.log10(max(float(np.mean(picked**2)), 1e-15))


def scale_of(clip: Clip) -> float:
    scaled_db = clip.params.get("scaled_db", 0.0)
    assert isinstance(scaled_db, int | float)
    return float(10 ** (scaled_db / 20))


def first_step(clip: Clip) -> dict[str, Any]:
    rows = clip.params["chain"]
    assert isinstance(rows, list)
    assert isinstance(rows[0], dict)
    return rows[0]


def at(clip: Clip, ms: float) -> int:
    return round(ms * clip.pcm.rate / 1000)


def clicks(rate: int, *seconds: float, length_s: float = 6.0) -> Clip:
    """Return a clip of single samples, each a click; said to be speech from first to last."""
    samples = np.zeros(round(length_s * rate), dtype=np.float32)
    samples[[round(one * rate) for one in seconds]] = 0.9
    tone = 0.2 * np.sin(2 * np.pi * 300 * np.arange(rate) / rate)
    made = clips.clip(Pcm(np.concatenate([tone.astype(np.float32), samples]), rate), "clicks")
    onset, end = round(seconds[0] * rate), round(seconds[-1] * rate) + 1
    bounds = replace(
        made.bounds,
        onset_sample=onset,
        end_sample=end,
        onset_ms=onset * 1000 / rate,
        end_ms=end * 1000 / rate,
    )
    pcm = Pcm(samples, rate)
    return Clip(pcm, bounds, audio.sha256(pcm))

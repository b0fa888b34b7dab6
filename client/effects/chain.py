"""A chain done to a clip: pure in clip, chain and seed, so that every run makes the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from voxmeter.client import audio
from voxmeter.client.clips import Clip
from voxmeter.client.effects.catalog import EFFECTS
from voxmeter.client.effects.draws import drawn
from voxmeter.client.effects.levels import fitted
from voxmeter.client.effects.sound import Function, Sound, generator
from voxmeter.client.effects.steps import Step
from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.kind import load

if TYPE_CHECKING:
    from voxmeter.scoring.speech import Bounds


def conditioned(clip: Clip, chain: Sequence[Step], seed: str) -> Clip:
    """Return a clip with everything of a chain done to it.

    The bounds are those of the clean clip, moved as the chain moves the speech. Whatever would
    exceed full scale makes the whole quieter, and `scaled_db` says by how much.

    Args:
        clip: The clean one, already spoken by whoever is to speak.
        chain: As `steps.checked` returned it.
        seed: A text of its own for every item and condition.

    Returns:
        The clip with `params`: `chain` has each step as it was drawn.

    Raises:
        ClipError: If an effect leaves no speech, or a sound of the user's cannot be read.
        MissingExtraError: If an effect needs a library that is not installed.
    """
    sound = _sound(clip)
    rows: list[Json] = []
    scaled_db = 0.0
    for place, step in enumerate(drawn(chain, seed)):
        more: dict[str, Json] = {}
        if name := EFFECTS[step.effect].function:
            function = cast("Function", load(name))
            draw = generator(seed, place, step.effect)
            sound, found = function(sound, step.values, draw)
            wave, gain_db = fitted(sound.wave)
            sound, scaled_db = sound.with_wave(wave), scaled_db + gain_db
            more = dict(found)
        rows.append({**step.row(), **more})
    params: dict[str, Json] = {"chain": rows}
    if scaled_db:
        params["scaled_db"] = round(scaled_db, 4)
    return _clip(clip, sound, params)


def _sound(clip: Clip) -> Sound:
    from voxmeter.scoring.speech import find_sound

    samples, bounds = clip.pcm.samples, clip.bounds
    spans = find_sound(samples, clip.pcm.rate, inner=False).spans
    inside = _within(spans, bounds.onset_sample, bounds.end_sample)
    return Sound(
        samples.astype(np.float64),
        clip.pcm.rate,
        float(bounds.onset_sample),
        float(bounds.end_sample),
        inside,
    )


def _within(spans: NDArray[np.int64], onset: int, end: int) -> NDArray[np.int64]:
    """Return the parts of spans that lie within the bounds; the bounds where none does."""
    cut = np.clip(spans, onset, end)
    cut = cut[cut[:, 1] > cut[:, 0]]
    return cut if len(cut) else np.array([[onset, end]], dtype=np.int64)


def _clip(clean: Clip, sound: Sound, params: dict[str, Json]) -> Clip:
    pcm = replace(clean.pcm, samples=sound.wave.astype(np.float32))
    return Clip(pcm, _bounds(clean.bounds, sound), audio.sha256(pcm), params)


def _bounds(clean: Bounds, sound: Sound) -> Bounds:
    count = len(sound.wave)
    end = min(max(round(sound.end), 1), count)
    onset = min(round(sound.onset), end - 1)
    scale = 1000 / sound.rate
    return replace(
        clean,
        onset_ms=onset * scale,
        end_ms=end * scale,
        onset_sample=onset,
        end_sample=end,
    )

"""What counts as audible, and where speech begins and ends: the one rule that every time rests on.

Audible is the first sample of the first 5 ms frame at least 10 dB above the lead-in floor and
above -60 dBFS. A burst under 100 ms counts only if sound resumes within 150 ms: a stop consonant
is 40 ms of sound, then 80 ms of quiet; a click is not speech.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from voxmeter.scoring.floor import HUSH_DBFS, find_floor
from voxmeter.scoring.loudness import FRAME_MS, QUIETEST_DBFS, Loudness, checked, measure

MARGIN_DB = 10.0
BURST_MS = 100
RESUME_MS = 150
TICK_MS = 30
_QUIET_FRAMES = 20
_HISS_FRAMES = 4
_HISS_PEAK = 4.0  # times its level: one sample of hiss in 16,000 is louder
NOISY_SNR_DB = 30.0
"""Under this distance between speech and background, levels no longer tell where speech begins."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the speech of a clip begins and ends.

    Attributes:
        onset_ms: Start of the first audible sample, ms from the clip's start.
        end_ms: End of the last audible sample, likewise.
        onset_sample: Index of the first audible sample.
        end_sample: One past the last audible sample.
        kind: "audible" when the background was loud and no speech was found in it: then the
            bounds are those of what stands out from it, or of everything. "speech" otherwise;
            against a quiet background whatever sounds is taken for it, and no model is asked.
        method: What decided: "level" (exact to the sample on hard edges) or "silero" (some 35 ms).
        clicks: Bursts that were left out as too short.
    """

    onset_ms: float
    end_ms: float
    onset_sample: int
    end_sample: int
    kind: Literal["speech", "audible"]
    method: Literal["level", "silero"]
    clicks: int = 0


@dataclass(frozen=True, slots=True)
class Sound:
    """The audible stretches of a signal.

    Attributes:
        spans: Shape (k, 2), first and one past the last sample of each; quiet under 150 ms does
            not part them.
        kind: As in `Bounds`.
        method: As in `Bounds`.
        clicks: Bursts that were left out as too short.
    """

    spans: NDArray[np.int64]
    kind: Literal["speech", "audible"]
    method: Literal["level", "silero"]
    clicks: int = 0


def speech_bounds(samples: NDArray[np.floating], rate: int) -> Bounds | None:
    """Return where the speech in a clip begins and ends, or None where nothing is audible.

    Args:
        samples: Shape (n,), one channel, floats in [-1, 1].
        rate: Samples a second.

    Raises:
        ValueError: If the samples are not finite floats of shape (n,), n > 0, or the rate is no
            rate.
    """
    sound = find_sound(samples, rate, inner=False)
    if sound.spans.size == 0:
        return None
    onset, end = int(sound.spans[0, 0]), int(sound.spans[-1, 1])
    scale = 1000 / rate
    return Bounds(onset * scale, end * scale, onset, end, sound.kind, sound.method, sound.clicks)


def find_sound(samples: NDArray[np.floating], rate: int, *, inner: bool = True) -> Sound:
    """Return every audible stretch of a signal.

    Args:
        samples: As in `speech_bounds`, which raises the same errors.
        rate: Samples a second.
        inner: Whether edges between two stretches are to be exact too, not only the first and the
            last one; if not, they are those of 5 ms frames.
    """
    audio = checked(samples, rate)
    loudness = measure(audio, rate)
    floor = find_floor(loudness.levels)
    steady = floor.snr_db < MARGIN_DB and floor.floor_db <= HUSH_DBFS
    if floor.speech_db < QUIETEST_DBFS or steady:
        return Sound(np.empty((0, 2), dtype=np.int64), "audible", "level")
    if floor.floor_db + MARGIN_DB > QUIETEST_DBFS and floor.snr_db < NOISY_SNR_DB:
        from voxmeter.scoring.noisy import noisy_speech

        spans = noisy_speech(audio, rate, loudness, floor)
        if spans.size:
            return Sound(spans, "speech", "silero")
        spans, clicks = audible_spans(audio, loudness, floor.floor_db + MARGIN_DB, inner=inner)
        if not spans.size:  # rain, a steady tone: it is its own background
            spans, clicks = audible_spans(audio, loudness, QUIETEST_DBFS, inner=inner)
        return Sound(spans, "audible", "silero", clicks)
    threshold = max(QUIETEST_DBFS, floor.floor_db + MARGIN_DB)
    spans, clicks = audible_spans(audio, loudness, threshold, inner=inner)
    return Sound(spans, "speech", "level", clicks)


def audible_spans(
    audio: NDArray[np.floating], loudness: Loudness, threshold_db: float, *, inner: bool = True
) -> tuple[NDArray[np.int64], int]:
    """Return the stretches at or above a level, shape (k, 2), and how many clicks were left out."""
    active = np.flatnonzero(loudness.levels >= threshold_db)
    if active.size == 0:
        return np.empty((0, 2), dtype=np.int64), 0
    breaks = np.flatnonzero(np.diff(active) - 1 > RESUME_MS // FRAME_MS)
    first = active[np.concatenate(([0], breaks + 1))]
    last = active[np.concatenate((breaks, [active.size - 1]))]
    sounding = np.diff(np.concatenate(([0], breaks + 1, [active.size])))
    long = (last - first + 1) * FRAME_MS >= BURST_MS
    keep = long & (sounding * FRAME_MS >= TICK_MS)
    first, last = first[keep], last[keep]
    spans = loudness.start + np.stack((first, last + 1), axis=1) * loudness.frame
    for number, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        if inner or number == 0:
            spans[number, 0] = _onset(audio, loudness, a, threshold_db)
        if inner or number == first.size - 1:
            spans[number, 1] = _end(audio, loudness, b, threshold_db)
    return spans.astype(np.int64), int(np.count_nonzero(~keep))


def _onset(audio: NDArray[np.floating], loudness: Loudness, frame: int, threshold_db: float) -> int:
    """Return the first audible sample at the first audible frame of a stretch."""
    begin = loudness.start + frame * loudness.frame
    quiet = loudness.levels[max(0, frame - _QUIET_FRAMES) : frame]
    return _edge(audio, begin, loudness.frame, quiet, threshold_db)


def _end(audio: NDArray[np.floating], loudness: Loudness, frame: int, threshold_db: float) -> int:
    """Return one past the last audible sample at the last audible frame of a stretch."""
    begin = loudness.start + frame * loudness.frame
    quiet = loudness.levels[frame + 1 : frame + 1 + _QUIET_FRAMES]
    mirrored = max(0, audio.size - begin - loudness.frame)
    return audio.size - _edge(audio[::-1], mirrored, loudness.frame, quiet, threshold_db)


def _edge(
    audio: NDArray[np.floating],
    begin: int,
    frame: int,
    quiet: NDArray[np.float32],
    threshold_db: float,
) -> int:
    """Return the first sample that stands out, near the first audible frame of the grid.

    A frame of the rule may begin at any sample: were it bound to the grid, a fade would end up to
    5 ms earlier or later with every resampling.

    Args:
        audio: Shape (n,); reversed to find an end.
        begin: Where the grid's frame begins in it.
        frame: Samples a frame.
        quiet: Levels of the frames before, dBFS.
        threshold_db: Level from which a frame is audible, dBFS.
    """
    first = max(0, begin - 2 * frame)
    near = audio[first : begin + frame]
    sums = np.zeros((2, max(near.size, frame) + 1))
    sums[0, 1 : near.size + 1] = near
    sums[1] = sums[0] ** 2
    np.cumsum(sums, axis=1, out=sums)
    mean, square = (sums[:, frame:] - sums[:, :-frame]) / frame
    power = square - mean**2
    loud = np.flatnonzero(power >= 10 ** (threshold_db / 10))
    first += int(loud[0]) if loud.size else max(0, begin - first)
    before = audio[max(0, first - frame) : first]
    size = np.abs(audio[first : first + frame] - (float(before.mean()) if before.size else 0.0))
    amplitude = 10 ** (threshold_db / 20)
    hiss = 0.0
    if quiet.size >= _HISS_FRAMES:  # fewer, at the edge of a clip, may be the tail of a fade
        hiss = _HISS_PEAK * 10 ** (float(np.sort(quiet)[quiet.size // 2]) / 20)
    # A sample of hiss is louder than the hiss now and then; sound that hardly is keeps its frame.
    clear = size >= (hiss if amplitude < hiss <= size.max() else amplitude)
    return first + int(np.argmax(clear))

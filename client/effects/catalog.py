"""Every effect by name, with its parameters; pure data, so that reading a bench loads no library.

Ranges that no paper gives are the defaults of the field's library, audiomentations 0.43.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Number:
    """A parameter that is a number, or a range of which one is drawn for every item.

    Attributes:
        name: As it is written; ends in its unit where it has one.
        lowest: The least that may be asked for.
        highest: The most.
        default: A number, or the range it is drawn from.
        scale: `mel`: evenly along what is heard, for frequencies.
        step: Distance of the values that exist; 0 where every number does.
        count: How many are drawn.
    """

    name: str
    lowest: float
    highest: float
    default: float | Range
    scale: Literal["linear", "mel"] = "linear"
    step: float = 0.0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Word:
    """A parameter that is one of a few words.

    Attributes:
        name: As it is written.
        words: Those there are; the first is the default.
    """

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect.

    Attributes:
        about: What it does, in a few words.
        parameters: In the order in which they are documented.
        function: `module:name` of what does it; empty for `speaker` and `one-of`.
        library: Whether audiomentations does it.
        file: Whether `path` may name a file or a folder of the user's own sounds.
    """

    about: str
    parameters: tuple[Number | Word, ...] = ()
    function: str = ""
    library: bool = False
    file: bool = False


SPEAKER = "speaker"
ONE_OF = "one-of"

_HERE = "voxmeter.client.effects"
_SNR: Range = (5.0, 40.0)
_TAIL = Number("tail_ms", 0, 10_000, 0)
_ROLLOFF = Number("rolloff_db_per_octave", 12, 48, (12, 24), step=12)


def _snr(low: float, high: float) -> Number:
    return Number("snr_db", -30, 80, (low, high))


EFFECTS: dict[str, Effect] = {
    SPEAKER: Effect("another voice speaks the text"),
    ONE_OF: Effect("one of several effects, drawn for every item"),
    "pitch": Effect(
        "higher or lower, at the same speed",
        (Number("semitones", -12, 12, (-5, 5)),),
        f"{_HERE}.library:pitch",
        library=True,
    ),
    "tempo": Effect(
        "faster or slower, at the same pitch",
        (Number("factor", 0.5, 2, (0.5, 2)),),
        f"{_HERE}.library:tempo",
        library=True,
    ),
    "gaussian-noise": Effect("white noise", (_snr(*_SNR), _TAIL), f"{_HERE}.noise:gaussian"),
    "coloured-noise": Effect(
        "noise that falls or rises with frequency",
        (_snr(*_SNR), Number("slope_db_per_octave", -12, 12, (-6, 6)), _TAIL),
        f"{_HERE}.noise:coloured",
    ),
    "background-music": Effect(
        "music beneath the speech", (_snr(3, 30), _TAIL), f"{_HERE}.music:background", file=True
    ),
    "babble": Effect(
        "several voices talking at once",
        (_snr(3, 30), Number("talkers", 1, 20, 6, step=1), _TAIL),
        f"{_HERE}.babble:background",
        file=True,
    ),
    "short-interruptions": Effect(
        "knocks, beeps and other short sounds",
        (_snr(-6, 18), Number("gap_s", 0.1, 60, (2, 8))),
        f"{_HERE}.interruptions:interrupted",
        file=True,
    ),
    "aliasing": Effect(
        "sampled too coarsely, without a filter",
        (Number("rate_hz", 1000, 96_000, (8000, 30_000), "mel"),),
        f"{_HERE}.library:aliasing",
        library=True,
    ),
    "room-impulse-response": Effect(
        "the echoes of a room",
        (
            Number("rt60_s", 0.05, 3, (0.15, 0.8)),
            Number("distance_m", 0.05, 20, (0.15, 0.35)),
            Number("length_m", 1.5, 30, (3.6, 5.6)),
            Number("width_m", 1.5, 30, (3.6, 3.9)),
            Number("height_m", 1.5, 15, (2.4, 3.0)),
        ),
        f"{_HERE}.room:reverberant",
        file=True,
    ),
    "far-field": Effect(
        "as quiet as from across a room",
        (Number("distance_m", 0.05, 20, (1, 4)), Number("near_m", 0.05, 20, 0.3)),
        f"{_HERE}.levels:far_field",
    ),
    "low-pass": Effect(
        "high sounds taken away",
        (Number("cutoff_hz", 50, 20_000, (150, 7500), "mel"), _ROLLOFF),
        f"{_HERE}.library:low_pass",
        library=True,
    ),
    "high-pass": Effect(
        "low sounds taken away",
        (Number("cutoff_hz", 10, 10_000, (20, 2400), "mel"), _ROLLOFF),
        f"{_HERE}.library:high_pass",
        library=True,
    ),
    "band-pass": Effect(
        "high and low sounds taken away",
        (
            Number("centre_hz", 50, 10_000, (200, 4000), "mel"),
            Number("bandwidth_of_centre", 0.05, 1.99, (0.5, 1.99)),
            _ROLLOFF,
        ),
        f"{_HERE}.library:band_pass",
        library=True,
    ),
    "bit-crush": Effect(
        "fewer bits a sample",
        (Number("bits", 2, 16, (5, 10), step=1),),
        f"{_HERE}.library:bit_crush",
        library=True,
    ),
    "gain": Effect(
        "louder or quieter", (Number("gain_db", -60, 40, (-12, 12)),), f"{_HERE}.levels:gain"
    ),
    "clipping": Effect(
        "the loudest samples cut off",
        (Number("clipped_percent", 0, 90, (0, 40)),),
        f"{_HERE}.levels:clipping",
    ),
    "dc-offset": Effect(
        "every sample shifted",
        (Number("offset_percent", -50, 50, (-10, 10)),),
        f"{_HERE}.levels:dc_offset",
    ),
    "seven-band-eq": Effect(
        "seven bands louder or quieter",
        (Number("gain_db", -24, 24, (-12, 12), count=7),),
        f"{_HERE}.library:seven_band_eq",
        library=True,
    ),
    "telephone": Effect(
        "a telephone line: 8 kHz, its band, G.711",
        (
            Word("law", ("mu", "a")),
            Number("low_hz", 20, 1000, 300),
            Number("high_hz", 2000, 3900, 3400),
        ),
        f"{_HERE}.line:telephone",
    ),
    "packet-loss": Effect(
        "packets of 20 ms that never arrive",
        (
            Number("loss_percent", 0, 90, 3),
            Number("burst_ratio", 1, 20, 1),
            Word("concealment", ("repeat", "silence")),
        ),
        f"{_HERE}.line:packet_loss",
    ),
}

_NOISE = ("gaussian-noise", "coloured-noise", "background-music", "short-interruptions")
_ENVIRONMENT = (
    "aliasing",
    "room-impulse-response",
    "low-pass",
    "high-pass",
    "band-pass",
    "bit-crush",
    "gain",
    "clipping",
    "seven-band-eq",
)

READY: dict[str, tuple[str, ...]] = {
    "noise": _NOISE,
    "pitch": ("pitch",),
    "tempo": ("tempo",),
    "environment": _ENVIRONMENT,
    "env_acoustics": _ENVIRONMENT,
}
"""Chains of one step that go by a name, as VoxEval's conditions do: one of these effects each."""

"""What a line does to speech: the telephone's band and encoding, and packets that never arrive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from voxmeter.client import audio
from voxmeter.client.effects.levels import fitted
from voxmeter.client.effects.sound import Random, Sound, Wave, number
from voxmeter.endpoints import g711
from voxmeter.endpoints.codec import Json

PACKET_MS = 20
_FADE_FROM_MS = 10.0  # ITU-T G.711 Appendix I: a repeated sound fades from 10 ms on, by 20 % in
_FADE_PER_MS = 0.02  # each 10 ms, and is silent after 60 ms
_JOIN_MS = 4.0
_SHORTEST_MS = 5.0  # pitch period: 66 to 200 Hz, as there
_LONGEST_MS = 15.0
_COMPARED_MS = 20.0


def telephone(
    sound: Sound, values: Mapping[str, Json], _: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Take the sound through 8 kHz, a telephone's band, and the code words of G.711.

    Resampling and filters delay nothing: the speech stays where it is.
    """
    from scipy.signal import butter, sosfiltfilt

    wave = _at_rate(sound.wave, sound.rate, g711.RATE)
    edges = (number(values, "low_hz"), number(values, "high_hz"))
    # Twice order 2, forwards and backwards: 24 dB an octave at each edge.
    bands = butter(2, edges, btype="bandpass", fs=g711.RATE, output="sos")
    wave, gain_db = fitted(np.asarray(sosfiltfilt(bands, wave), dtype=np.float64))
    pcm = audio.to_pcm16(wave)
    if values["law"] == "mu":
        pcm = g711.decode_ulaw(g711.encode_ulaw(pcm))
    else:
        pcm = g711.decode_alaw(g711.encode_alaw(pcm))
    wave = np.asarray(audio.from_pcm16(pcm), dtype=np.float64)
    back = _at_rate(wave, g711.RATE, sound.rate)[: len(sound.wave)]
    more = {"scaled_db": round(gain_db, 4)} if gain_db else {}
    return sound.with_wave(np.pad(back, (0, len(sound.wave) - len(back)))), more


def packet_loss(
    sound: Sound, values: Mapping[str, Json], draw: Random
) -> tuple[Sound, Mapping[str, Json]]:
    """Lose packets of 20 ms, and put a repetition or silence in their place.

    Whether a packet is lost depends on the one before (Gilbert's two states), such that the
    share and `burst_ratio` of ITU-T G.107 come out: how long runs of losses are, measured in what
    they would be if losses were independent.
    """
    size = sound.rate * PACKET_MS // 1000
    count = -(-len(sound.wave) // size)
    share = number(values, "loss_percent") / 100
    lost = losses(count, share, number(values, "burst_ratio"), draw)
    wave = np.pad(sound.wave, (0, count * size - len(sound.wave)))
    for first, last in _runs(lost):
        wave[first * size : last * size] = 0
    if values["concealment"] == "repeat":
        for first, last in _runs(lost):
            conceal(wave, first * size, last * size, sound.rate)
    found: dict[str, Json] = {"packets": count, "lost_packets": int(np.count_nonzero(lost))}
    return sound.with_wave(wave[: len(sound.wave)]), found


def losses(count: int, share: float, burst_ratio: float, draw: Random) -> NDArray[np.bool_]:
    """Return which of `count` packets are lost, shape (count,).

    Args:
        count: Packets.
        share: Of them that are lost, in the long run.
        burst_ratio: 1 for independent losses; more for longer runs.
        draw: Where it is drawn from.
    """
    drawn = draw.random(count + 1)
    lost = np.zeros(count, dtype=np.bool_)
    before = bool(drawn[0] < share)
    for place in range(count):
        # From received to lost, or else from lost to lost.
        chance = share / burst_ratio if not before else 1 - (1 - share) / burst_ratio
        before = lost[place] = bool(drawn[place + 1] < chance)
    return lost


def conceal(wave: Wave, begin: int, end: int, rate: int) -> None:
    """Fill a gap with the last pitch period again and again, fading, as G.711 Appendix I does.

    Args:
        wave: Changed in place; heard up to `begin` and from `end` on.
        begin: First sample of the gap.
        end: One past its last.
        rate: Samples a second.
    """
    period = _period(wave[:begin], rate)
    if period is None:
        return
    join = min(round(_JOIN_MS * rate / 1000), len(wave) - end)
    places = np.arange(end + join - begin)
    ms = places * 1000 / rate
    faded = np.clip(1 - _FADE_PER_MS * (ms - _FADE_FROM_MS), 0, 1) * (ms < 60)
    filling = wave[begin - period : begin][places % period] * faded
    wave[begin:end] = filling[: end - begin]
    rising = np.arange(1, join + 1) / (join + 1)
    wave[end : end + join] = wave[end : end + join] * rising + filling[end - begin :] * (1 - rising)


def _period(heard: Wave, rate: int) -> int | None:
    """Return the pitch period before a gap in samples, None where too little was heard."""
    shortest, longest, size = (
        round(ms * rate / 1000) for ms in (_SHORTEST_MS, _LONGEST_MS, _COMPARED_MS)
    )
    if len(heard) < size + longest:
        return None
    newest = heard[-size:]
    earlier = np.lib.stride_tricks.sliding_window_view(heard[-size - longest : -shortest], size)
    sizes = np.sqrt(np.einsum("ij,ij->i", earlier, earlier) + 1e-12)
    likeness = np.einsum("ij,j->i", earlier, newest) / sizes
    return longest - int(np.argmax(likeness))


def _runs(lost: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], lost, [False]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _at_rate(wave: Wave, old: int, new: int) -> Wave:
    """Return samples at another rate, not cut at full scale."""
    if old == new:
        return wave
    import soxr

    return np.asarray(soxr.resample(wave, old, new, quality="HQ"), dtype=np.float64)

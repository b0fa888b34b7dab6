"""G.711 against its published decision and reconstruction values, all 256 codes and all samples."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw

CODES = bytes(range(256))


def samples(pcm: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(pcm) // 2}h", pcm)


def packed(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)


def ulaw_magnitudes() -> list[int]:
    """Table 2a: levels 0, 2, 4 ... 30, then 33, 37 ... 93, then 99 ... up to 8031, in 14 bits."""
    levels = [0]
    for segment in range(8):
        step = 2 << segment
        while len(levels) < 16 * (segment + 1):
            edge = len(levels) % 16 == 0
            levels.append(levels[-1] + (step // 4 + step // 2 if edge else step))
    return levels


def alaw_magnitudes() -> list[int]:
    """Table 1a: levels 1, 3 ... 63, then 66, 70 ... 126, then 132 ... up to 4032, in 13 bits."""
    levels = [1 + 2 * step for step in range(32)]
    for segment in range(2, 8):
        step = 2 << (segment - 1)
        levels += [(32 << (segment - 1)) + step // 2 + step * index for index in range(16)]
    return levels


def test_the_tables_of_this_test_end_where_the_recommendation_ends() -> None:
    assert (ulaw_magnitudes()[15:18], ulaw_magnitudes()[-1]) == ([30, 33, 37], 8031)
    assert (alaw_magnitudes()[31:34], alaw_magnitudes()[-1]) == ([63, 66, 70], 4032)


def test_every_ulaw_code_decodes_to_its_published_level() -> None:
    levels = samples(decode_ulaw(CODES))
    for index, magnitude in enumerate(ulaw_magnitudes()):
        assert levels[0xFF - index] == magnitude * 4
        assert levels[0x7F - index] == -magnitude * 4


def test_every_alaw_code_decodes_to_its_published_level() -> None:
    levels = samples(decode_alaw(CODES))
    for index, magnitude in enumerate(alaw_magnitudes()):
        assert levels[(0x80 | index) ^ 0x55] == magnitude * 8
        assert levels[index ^ 0x55] == -magnitude * 8


def test_every_code_comes_back_but_the_second_zero_of_ulaw() -> None:
    assert encode_alaw(decode_alaw(CODES)) == CODES
    assert encode_ulaw(decode_ulaw(CODES)) == CODES.replace(b"\x7f", b"\xff")


def test_samples_between_two_levels_go_to_the_one_on_their_side_of_the_decision_value() -> None:
    # 14 bits, table 2a: decision values 1, 3, 31, 35, 95, 103, 8159; so x = 31 is the first of 33.
    for sample, level in [(0, 0), (1, 2), (2, 2), (3, 4), (30, 30), (31, 33), (34, 33), (35, 37)]:
        assert samples(decode_ulaw(encode_ulaw(packed(sample * 4)))) == (level * 4,)
    # 13 bits, table 1a: decision values 0, 2, 4, 62, 64, 68, 128, 136.
    for sample, level in [
        (0, 1),
        (1, 1),
        (2, 3),
        (63, 63),
        (64, 66),
        (67, 66),
        (68, 70),
        (128, 132),
    ]:
        assert samples(decode_alaw(encode_alaw(packed(sample * 8)))) == (level * 8,)


@pytest.mark.parametrize(
    ("decode", "encode", "finest", "largest"),
    [(decode_ulaw, encode_ulaw, 8, 32124), (decode_alaw, encode_alaw, 16, 32256)],
)
def test_no_sample_moves_by_more_than_its_step(
    decode: object, encode: object, finest: int, largest: int
) -> None:
    assert callable(decode)
    assert callable(encode)
    every = tuple(range(-32768, 32768))
    for before, after in zip(every, samples(decode(encode(packed(*every)))), strict=True):
        magnitude = min(abs(before), largest)
        assert abs(before - after) <= max(finest, magnitude // 16) + (abs(before) - magnitude)
        assert before * after >= 0 or abs(before) <= 16


@pytest.mark.parametrize("encode", [encode_ulaw, encode_alaw])
def test_half_a_sample_is_refused(encode: object) -> None:
    assert callable(encode)
    assert encode(b"") == b""
    with pytest.raises(ValueError, match="3 bytes are not whole"):
        encode(b"abc")


@given(st.binary(max_size=64))
def test_lengths_double_and_halve(data: bytes) -> None:
    assert len(decode_ulaw(data)) == len(decode_alaw(data)) == 2 * len(data)
    assert encode_alaw(decode_alaw(data)) == data

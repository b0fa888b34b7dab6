"""Wire bytes to samples and back, split anywhere."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from aac import adts_of
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.encodings import decoder, encoder
from voxmeter.endpoints import adts
from voxmeter.endpoints.events import Encoding


@given(data=st.binary(max_size=400), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_pcm16_split_anywhere_gives_the_same_samples(data: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
    decoding = decoder("pcm16", 24_000)
    pieces = [decoding.decode(data[a:b]) for a, b in pairwise(places)]
    joined = np.concatenate([np.zeros(0, dtype=np.int16), *pieces])
    whole = np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2")
    assert np.array_equal(joined, whole)
    assert decoding.left_over == len(data) % 2


@pytest.mark.parametrize("sizes", [(1025, 1023, 1, 2047)])
def test_odd_chunks_carry_their_spare_byte_over(sizes: tuple[int, ...]) -> None:
    samples = np.arange(2048, dtype="<i2")
    data, decoding, place = samples.tobytes(), decoder("pcm16", 24_000), 0
    pieces = []
    for size in sizes:
        pieces.append(decoding.decode(data[place : place + size]))
        place += size
    assert np.array_equal(np.concatenate(pieces), samples)
    assert decoding.left_over == 0


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
def test_g711_keeps_speech_within_its_quantisation(law: Encoding) -> None:
    samples = (np.sin(np.arange(800) / 7) * 12_000).astype("<i2")
    wire = encoder(law, 8_000).encode(samples.tobytes())
    back = decoder(law, 8_000).decode(wire)
    assert len(wire) == 800
    assert np.abs(back.astype(int) - samples).max() <= 512


def test_what_follows_a_broken_opus_page_is_heard() -> None:
    encoding, decoding = encoder("opus", 24_000), decoder("opus", 24_000)
    tone = (np.sin(np.arange(1920) / 20) * 9_000).astype("<i2").tobytes()
    messages = [encoding.encode(tone) for _ in range(10)]
    messages[4] = b"x" + messages[4][1:]
    heard, broken = 0, []
    for number, message in enumerate(messages):
        try:
            heard += len(decoding.decode(message))
        except ValueError:
            broken.append(number)
    assert broken == [4]
    assert heard == 9 * 1920


def test_opus_pages_split_anywhere_decode_to_the_same_length() -> None:
    encoding, decoding = encoder("opus", 24_000), decoder("opus", 24_000)
    tone = (np.sin(np.arange(24_000) / 20) * 9_000).astype("<i2")
    wire = b"".join(
        encoding.encode(tone[first : first + 480].tobytes()) for first in range(0, 24_000, 480)
    )
    whole = decoder("opus", 24_000).decode(wire)
    pieces = [decoding.decode(wire[first : first + 37]) for first in range(0, len(wire), 37)]
    joined = np.concatenate(pieces)
    assert np.array_equal(joined, whole)
    assert abs(len(whole) - 24_000) <= 960
    middle = whole[6_000:18_000].astype(float)
    assert np.sqrt((middle**2).mean()) == pytest.approx(9_000 / 2**0.5, rel=0.1)


TONE = (np.sin(np.arange(22_050) / 20) * 9_000).astype("<i2")


WIRE = adts_of(TONE)


@given(cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_aac_split_anywhere_gives_the_same_samples(cuts: list[int]) -> None:
    whole = decoder("aac", 22_050).decode(WIRE)
    places = sorted({0, len(WIRE), *(cut % len(WIRE) for cut in cuts)})
    decoding = decoder("aac", 22_050)
    pieces = [decoding.decode(WIRE[a:b]) for a, b in pairwise(places)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert decoding.left_over == 0


@pytest.mark.parametrize("channels", [1, 2])
def test_aac_is_the_tone_behind_what_the_encoder_puts_before_it(channels: int) -> None:
    heard = decoder("aac", 22_050).decode(adts_of(TONE, channels=channels))
    assert len(heard) % 1024 == 0
    assert 0 < len(heard) - len(TONE) - 1024 < 1024
    assert np.abs(heard[:960]).max() < 1000  # one frame of priming, kept as players keep it
    middle = heard[1024:][4_000:12_000].astype(float)
    assert np.abs(middle - TONE[4_000:12_000]).max() < 900


def test_aac_comes_at_the_rate_that_is_asked_for() -> None:
    heard = decoder("aac", 44_100).decode(WIRE)
    assert len(heard) == pytest.approx(2 * len(decoder("aac", 22_050).decode(WIRE)), abs=100)


@given(st.binary(max_size=300))
def test_any_bytes_as_aac_are_samples_or_a_value_error(data: bytes) -> None:
    for sent in (data, WIRE[:7] + data, b"\xff\xf1" + data):
        with suppress(ValueError):
            assert decoder("aac", 22_050).decode(sent).dtype == np.int16


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=9))
def test_damaged_aac_is_samples_or_a_value_error(damage: list[tuple[int, int]]) -> None:
    wire = bytearray(WIRE[:3100])
    for place, value in damage:
        wire[place] = value
    with suppress(ValueError):
        decoder("aac", 22_050).decode(bytes(wire))


def test_a_frame_of_aac_that_is_not_whole_is_left_over() -> None:
    decoding = decoder("aac", 22_050)
    decoding.decode(WIRE[:-5])
    assert decoding.left_over > 0


def test_aac_is_not_written() -> None:
    with pytest.raises(ValueError, match="only read"):
        encoder("aac", 22_050)


def test_tags_before_aac_are_left_out_and_a_head_says_rate_and_length() -> None:
    tag = b"ID3\4\0\0\0\0\0\5PRIVx"
    assert adts.without_tags(tag + tag + WIRE) == WIRE
    assert adts.without_tags(b"ID3") == b"ID3"
    head = adts.head_of(WIRE)
    assert head is not None
    assert head.rate == 22_050
    assert adts.head_of(WIRE[head.length :]) is not None
    for bad in (WIRE[:6], b"\xff\xf1\xff\xff\xff\xff\xff", b"\xff\xf1\x5c\x40\x00\x1f\xfc"):
        assert adts.head_of(bad) is None

"""Wire bytes to samples and back, split anywhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.encodings import decoder, encoder
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

"""Headers that do not fit their data."""

from __future__ import annotations

import contextlib

import pytest
import wav_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from wav_bytes import FLOAT, PCM, chunk, form, tone, wav

from voxmeter.client.wav import Mended, WavError, is_wav, mend

SECOND = wav_bytes.pcm(tone(1.0), 16)
MONO = form(PCM, 16)


@pytest.mark.parametrize(
    "whole",
    [
        wav(MONO, SECOND),
        wav(MONO, SECOND, behind=chunk(b"LIST", b"INFOISFT\x06\0\0\0Lavf58")),
        wav(MONO, SECOND, behind=chunk(b"id3 ", b"ID3\x03")),
        wav(MONO, SECOND, before=chunk(b"LIST", b"odd")),
        wav(MONO, SECOND, behind=b"TAG" + b"x" * 125),
        wav(MONO, SECOND, behind=b"\0" * 512),
        wav(MONO, SECOND, riff=0),
        wav(MONO, SECOND, behind=chunk(b"LIST", b"cut off in the middle")[:10]),
        wav(form(PCM, 8), bytes(99)),
    ],
)
def test_a_file_whose_sizes_fit_is_left_as_it_is(whole: bytes) -> None:
    assert mend(whole) == Mended(whole)


@pytest.mark.parametrize(
    ("broken", "samples", "said"),
    [
        (wav(MONO, SECOND, declared=0xFFFFFFFF), SECOND, "no length (0xffffffff)"),
        (wav(MONO, SECOND, declared=0), SECOND, "no length (0x0)"),
        (wav(MONO, SECOND, declared=64_000), SECOND, "says 64000 bytes of audio, 32000 are there"),
        (wav(MONO, SECOND, declared=16_000), SECOND, "says 16000 bytes of audio, 32000 are there"),
        (wav(MONO, SECOND + b"\1", declared=32_001), SECOND, "the last 1 byte left out"),
        (wav(MONO, SECOND + b"\1", declared=0), SECOND, "the last 1 byte left out"),
        (
            wav(MONO, SECOND, before=b"LIST\3\0\0\0odd"),
            SECOND,
            "length of a chunk before the audio",
        ),
        (wav(MONO, SECOND, before=b"LIST\xff\xff\xff\xff"), SECOND, "length of a chunk before"),
    ],
)
def test_all_whole_frames_are_used_and_the_header_is_told_on(
    broken: bytes, samples: bytes, said: str
) -> None:
    mended = mend(broken)
    assert mended.data == wav(MONO, samples)
    assert said in "; ".join(mended.warnings)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (wav(MONO, b""), "no samples"),
        (wav(MONO, b"", declared=0xFFFFFFFF), "no samples"),
        (wav(MONO, b"\1", declared=1), "no samples"),
        (wav(MONO, b"")[:36], "no data chunk"),
        (b"RIFF\4\0\0\0WAVE", "without a format chunk"),
        (wav(MONO[:10], SECOND), "format chunk is cut off"),
        (wav(MONO, SECOND)[:25], "format chunk is cut off"),
        (b"RIFF\4\0\0\0WAVE" + chunk(b"data", SECOND), "without a format chunk"),
    ],
)
def test_a_file_without_a_sample_says_what_is_missing(broken: bytes, said: str) -> None:
    with pytest.raises(WavError, match=said):
        mend(broken)


def test_a_wrong_frame_size_in_the_header_is_set_right_when_the_file_is_mended() -> None:
    wrong = MONO[:12] + b"\7\0" + MONO[14:]
    assert mend(wav(wrong, SECOND, declared=0)).data == wav(MONO, SECOND)


def test_formats_that_are_not_plain_samples_are_left_to_the_decoder() -> None:
    adpcm = form(0x11, 4)
    cut = wav(adpcm, bytes(1000), declared=2000)
    assert mend(cut) == Mended(cut)


@settings(max_examples=300, deadline=None)
@given(
    place=st.integers(0, 60),
    change=st.binary(min_size=1, max_size=8),
    cut=st.integers(0, 400),
    depth=st.sampled_from([(PCM, 16), (PCM, 24), (FLOAT, 32)]),
)
def test_any_change_of_bytes_gives_a_file_or_a_reason(
    place: int, change: bytes, cut: int, depth: tuple[int, int]
) -> None:
    whole = wav(form(*depth), bytes(300), behind=chunk(b"LIST", b"INFO"))
    mutated = (whole[:place] + change + whole[place + len(change) :])[: len(whole) - cut]
    if not is_wav(mutated):
        return
    mended: Mended | None = None
    with contextlib.suppress(WavError):
        mended = mend(mutated)
    if mended is None:
        return
    assert is_wav(mended.data)
    assert len(mended.data) <= len(mutated) + 64

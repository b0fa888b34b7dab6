"""ADTS frames: what their heads say, and what stands before them."""

from __future__ import annotations

import pytest

from voxmeter.endpoints.adts import HEAD, Head, head_of, without_tags

FRAME = bytes.fromhex("fff15c4005bffc")  # 22,050 Hz, 45 bytes with the head


def test_a_head_says_rate_and_length() -> None:
    assert head_of(FRAME) == Head(22_050, 45)
    assert head_of(FRAME + b"sound") == Head(22_050, 45)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        FRAME[: HEAD - 1],
        b"\x00" + FRAME[1:],  # no sync word
        bytes.fromhex("fff75c4005bffc"),  # a layer that AAC does not have
        bytes.fromhex("fff1744005bffc"),  # a rate that no table has
        bytes.fromhex("fff15c4000fffc"),  # no longer than its own head
    ],
)
def test_what_is_not_a_head_is_none(data: bytes) -> None:
    assert head_of(data) is None


def test_tags_before_the_first_frame_are_left_out() -> None:
    tag = b"ID3\x04\x00\x00" + bytes([0, 0, 1, 2]) + bytes(130)  # 7 bits a byte: 1 * 128 + 2
    assert without_tags(tag + tag + FRAME) == FRAME
    assert without_tags(FRAME) == FRAME
    assert without_tags(b"ID3\x04") == b"ID3\x04"

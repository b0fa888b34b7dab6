"""The protobuf format without a schema: what is there, what is skipped, what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import Binary
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.protobuf_wire import WireFields, field, varint


def read(data: bytes) -> WireFields:
    return WireFields("toy", Binary(data), data)


def test_the_examples_of_the_formats_own_documentation_are_read_and_written() -> None:
    assert field(1, 150) == bytes.fromhex("089601")
    assert field(2, "testing") == bytes.fromhex("120774657374696e67")
    assert field(3, field(1, 150)) == bytes.fromhex("1a03089601")
    assert read(bytes.fromhex("089601")).whole(1) == 150
    assert read(bytes.fromhex("120774657374696e67")).text(2) == "testing"
    found = read(bytes.fromhex("1a03089601")).one_of([3])
    assert found is not None
    assert (found[0], found[1].whole(1)) == (3, 150)


def test_what_is_absent_or_of_another_type_is_empty() -> None:
    fields = read(field(1, 7) + field(2, b"seven"))
    assert (fields.whole(3), fields.data(3), fields.text(3)) == (0, b"", "")
    assert (fields.data(1), fields.whole(2)) == (b"", 0)
    assert fields.one_of([1, 3]) is None


def test_the_last_of_a_plain_field_counts() -> None:
    fields = read(field(1, 7) + field(2, "a") + field(1, 8) + field(2, "b"))
    assert (fields.whole(1), fields.text(2)) == (8, "b")


def test_pieces_of_one_inner_message_are_merged_and_another_takes_its_place() -> None:
    merged = read(field(1, field(1, 7)) + field(1, field(2, "x"))).one_of([1, 2])
    assert merged is not None
    assert (merged[0], merged[1].whole(1), merged[1].text(2)) == (1, 7, "x")
    replaced = read(field(1, field(1, 7)) + field(2, b"") + field(1, field(2, "x"))).one_of([1, 2])
    assert replaced is not None
    assert (replaced[0], replaced[1].whole(1), replaced[1].text(2)) == (1, 0, "x")
    assert read(field(1, b"") + field(3, b"x")).one_of([1, 2]) is not None


def test_a_number_of_fewer_bits_keeps_its_lower_ones() -> None:
    assert read(field(1, (5 << 32) + 6)).whole(1, 32) == 6
    assert read(bytes.fromhex("08ffffffffffffffffff7f")).whole(1) == 2**64 - 1


@pytest.mark.parametrize(
    "skipped",
    ["1901020304050607 08", "1d01020304", "1b0801 1b 1c 1c", "1b 22 01 1c 1c"],
    ids=["fixed64", "fixed32", "nested groups", "a group with what looks like its end"],
)
def test_fields_of_other_kinds_are_skipped(skipped: str) -> None:
    fields = read(field(1, 7) + bytes.fromhex(skipped) + field(2, "x"))
    assert (fields.whole(1), fields.text(2)) == (7, "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("08", "a number has no end"),
        ("0880", "a number has no end"),
        ("08" + "80" * 10 + "01", "a number has no end"),
        ("ff", "a number has no end"),
        ("1203ab", "a field of 3 bytes goes beyond the end"),
        ("12ffffffffffffffffff01ab", "goes beyond the end"),
        ("0901", "a field of 8 bytes goes beyond the end"),
        ("0d01", "a field of 4 bytes goes beyond the end"),
        ("0001", "there is no field 0"),
        ("808080801001", "there is no field 536870912"),
        ("0e", "field 1 has no place as kind 6"),
        ("0b", "group 1 has no end"),
        ("0c", "field 1 has no place as kind 4"),
        ("0b14", "field 2 has no place as kind 4"),
        ("0b" * 101, "field 1 has no place as kind 3"),
    ],
)
def test_bytes_that_are_no_message_are_told_in_words(data: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        read(bytes.fromhex(data))


def test_a_string_must_be_utf_8() -> None:
    fields = read(field(1, b"\xff"))
    assert fields.data(1) == b"\xff"
    with pytest.raises(ProtocolError, match="field 1 is not UTF-8"):
        fields.text(1)


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**29 - 1), st.text(), st.binary())
def test_what_is_written_is_read_again(value: int, number: int, text: str, data: bytes) -> None:
    fields = read(field(number, value) + field(number, data) + field(number, text))
    assert fields.whole(number) == value
    assert fields.data(number) == text.encode("utf-8", "replace")
    assert len(varint(value)) == max(1, -(-value.bit_length() // 7))


@given(st.binary())
def test_any_bytes_are_fields_or_a_protocol_error(data: bytes) -> None:
    try:
        fields = read(data)
        fields.text(1)
        fields.whole(2)
        fields.one_of(range(1, 6))
    except ProtocolError as error:
        assert str(error).startswith("toy: ")  # noqa: PT017 - it may be raised or not

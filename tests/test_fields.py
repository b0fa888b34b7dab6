"""Outside JSON read field by field; `test_openai_realtime.py` has the messages that are refused."""

from __future__ import annotations

import pytest

from voxmeter.endpoints import glm_4_voice
from voxmeter.endpoints.codec import Text
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.option_table import OptionTable
from voxmeter.scoring import rubrics


def fields(text: str) -> Fields:
    return parse_object("here", Text(text))


def test_a_null_counts_as_absent_and_can_still_be_told_apart() -> None:
    told = fields('{"a": null, "b": 0, "c": false}')
    assert (told.has("a"), told.has_null("a")) == (False, True)
    assert (told.has("x"), told.has_null("x")) == (False, False)
    assert (told.number("b", 7), told.flag("c", default=True)) == (0, False)
    assert (told.whole("a", 7), told.text("x", ""), told.flag("a", default=True)) == (7, "", True)
    assert told.object("a").data == {}
    assert told.objects("a") == []


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ("text", "a is of type int; a string is wanted"),
        ("flag", "a is of type int; true or false is wanted"),
        ("object", "a is of type int; an object is wanted"),
        ("objects", "a is of type int; a list is wanted"),
    ],
)
def test_a_wrong_type_says_which_field_and_what_is_wanted(read: str, words: str) -> None:
    arguments = {"default": True} if read == "flag" else {}
    with pytest.raises(ProtocolError, match=words):
        getattr(fields('{"a": 1}'), read)("a", **arguments)


def test_a_truth_value_is_no_number() -> None:
    with pytest.raises(ProtocolError, match="a is of type bool; a number is wanted"):
        fields('{"a": true}').number("a")


@pytest.mark.parametrize("number", ["1e999", "1" + "0" * 400])
def test_a_number_that_no_float_can_hold_is_refused(number: str) -> None:
    with pytest.raises(ProtocolError, match="a finite number"):
        fields(f'{{"a": {number}}}').number("a")


def test_the_place_of_a_nested_field_is_named() -> None:
    inner = fields('{"a": {"b": [{"c": 1}]}}').object("a").objects("b")[0]
    with pytest.raises(ProtocolError, match=r"a\.b\[0\]\.c is of type int"):
        inner.text("c")


def test_cleaning_keeps_every_whole_character() -> None:
    assert clean("a\u00e9\U0001f600") == "a\u00e9\U0001f600"
    assert clean("\ud83d\ude00 \udc00") == "\U0001f600 \ufffd"


def test_a_whole_number_larger_than_every_float_is_no_finite_number() -> None:
    assert not rubrics._is_number(10**400, 0, 5)
    with pytest.raises(UserError, match=r"options\.top_p"):
        glm_4_voice._share(OptionTable("glm-4-voice", {}, ()), 10**400)

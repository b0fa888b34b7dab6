"""Options of an endpoint, read one by one: what cannot be is the user's mistake, in one line."""

from __future__ import annotations

import pytest

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.option_table import OptionTable


def table(value: Json) -> OptionTable:
    return OptionTable("acme", {"size": value}, ["size"])


@pytest.mark.parametrize("value", [True, "3", 2.5, 0, 11, float("nan"), float("inf"), 10**400, []])
def test_what_is_not_a_whole_number_within_limits_is_refused(value: Json) -> None:
    with pytest.raises(UserError, match=r"options\.size: .*; use a whole number from 1 to 10"):
        table(value).whole("size", None, 1, 10)


@pytest.mark.parametrize("value", [True, "3", float("nan"), 10**400, {}])
def test_what_is_not_a_finite_number_is_refused(value: Json) -> None:
    with pytest.raises(UserError, match=r"options\.size: .*; use a number"):
        table(value).number("size")


def test_numbers_are_given_as_they_are_and_absent_ones_by_their_default() -> None:
    assert table(3.0).whole("size", None, 1, 10) == 3
    assert table(2**64 - 1).whole("size", None, 0, 2**64 - 1) == 2**64 - 1
    assert table(2.5).number("size") == 2.5
    none = OptionTable("acme", {}, ["size"])
    assert (none.whole("size", 7, 1, 10), none.number("size")) == (7, None)

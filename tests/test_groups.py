"""What a user sees when several tasks failed at once."""

from __future__ import annotations

import pytest

from voxmeter.client.groups import first_of
from voxmeter.endpoints.errors import UserError


def full(number: int) -> UserError:
    return UserError(f"audio/{number}.flac", "no space left on the disk", "free some")


def test_one_error_is_that_error() -> None:
    error = full(1)
    assert first_of(BaseExceptionGroup("tasks", [error])) is error


def test_the_first_of_many_is_told_and_unlike_others_are_in_its_notes() -> None:
    errors: list[Exception] = [full(1), full(2), ValueError("odd"), full(1)]
    first = first_of(ExceptionGroup("tasks", errors))
    assert first is errors[0]
    assert first.__notes__ == [f"also: UserError: {errors[1]}", "also: ValueError: odd"]


def test_groups_inside_groups_are_opened() -> None:
    error = full(1)
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [error]), ValueError("odd")])
    assert first_of(nested) is error


def test_an_interrupt_goes_before_everything() -> None:
    interrupt = KeyboardInterrupt()
    group = BaseExceptionGroup("tasks", [full(1), BaseExceptionGroup("inner", [interrupt])])
    assert first_of(group) is interrupt


def test_a_users_mistake_goes_before_what_followed_from_it() -> None:
    error = full(1)
    assert first_of(ExceptionGroup("tasks", [ValueError("odd"), error])) is error


def test_it_is_raised_as_if_it_had_been_alone() -> None:
    with pytest.raises(UserError, match="no space left"):
        raise first_of(ExceptionGroup("tasks", [full(1), full(2)]))

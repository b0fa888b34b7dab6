"""Names of trials: injective, safe as file names, short."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client import keys

names = st.text(max_size=80) | st.text("ab./~%=\x00é", max_size=80)
numbers = st.integers(min_value=-3, max_value=20)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("question-12", "question-12"),
        ("a/b", "a%2Fb"),
        ("a~b", "a%7Eb"),
        ("50%", "50%25"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("v1.0", "v1.0"),
        ("two words", "two%20words"),
        ("line\nend\x00", "line%0Aend%00"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("", "%"),
        ("x" * 60, "x" * 60),
    ],
)
def test_a_part_is_percent_encoded_so_that_it_cannot_leave_its_place(name: str, part: str) -> None:
    assert keys.part(name) == part


def test_a_part_over_60_bytes_ends_in_a_hash_of_the_whole() -> None:
    long, other = "x" * 61, "x" * 62
    assert re.fullmatch(r"x{43}=[0-9a-f]{16}", keys.part(long))
    assert keys.part(long) != keys.part(other)
    assert keys.part("é" * 11) != keys.part("é" * 10 + "è")
    assert not re.search(r"%(?![0-9A-F]{2})", keys.part("a" + "é" * 40))


@given(names)
def test_any_name_becomes_a_safe_file_name(name: str) -> None:
    part = keys.part(name)
    assert re.fullmatch(r"[A-Za-z0-9_%=-][A-Za-z0-9_.%=-]{0,59}", part)
    if "=" not in part and part != "%":
        assert unquote(part, errors="strict") == name


@given(names, names)
def test_different_names_have_different_parts(one: str, other: str) -> None:
    assert (keys.part(one) == keys.part(other)) == (one == other)


@given(
    st.tuples(names, names, names, names, numbers, st.none() | numbers),
    st.tuples(names, names, names, names, numbers, st.none() | numbers),
)
def test_different_trials_have_different_keys(
    one: tuple[str, str, str, str, int, int | None],
    other: tuple[str, str, str, str, int, int | None],
) -> None:
    assert (keys.key(*one) == keys.key(*other)) == (one == other)


@given(st.tuples(names, numbers, numbers), st.tuples(names, numbers, numbers), numbers)
def test_different_attempts_have_different_files(
    one: tuple[str, int, int], other: tuple[str, int, int], turn: int
) -> None:
    assert (keys.file(*one) == keys.file(*other)) == (one == other)
    assert keys.file(*one) != keys.file(*other, turn)


def test_names_are_joined_as_the_contract_says() -> None:
    assert keys.key("mine", "demo", "q/1", "clean", 2) == "mine/demo/q%2F1/clean/2"
    assert keys.key("mine", "demo", "q1", "clean", 2, turn=3) == "mine/demo/q1/clean/2/3"
    assert keys.cell("mine", "demo", "clean") == "mine~demo~clean"
    assert keys.file("q1", 2, 1) == "q1~2~1"
    assert keys.file("q1", 2, 1, turn=3) == "q1~2~3~1"

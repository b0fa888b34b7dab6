"""Errors cross processes whole, and what the peer sent cannot spoil the line they make."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

from voxmeter.endpoints import errors
from voxmeter.endpoints.catalog import find
from voxmeter.endpoints.codec import Binary, Text
from voxmeter.endpoints.errors import (
    ClipError,
    ConnectError,
    ConnectionLostError,
    EndpointError,
    MissingExtraError,
    ProtocolError,
    UserError,
    VoxmeterError,
)
from voxmeter.endpoints.fields import parse_object

EXAMPLES: list[VoxmeterError] = [
    UserError("bench.toml:3", "no such key", "remove it"),
    MissingExtraError("Opus", "sphn", "opus"),
    ClipError("a.wav", "is empty"),
    ConnectError("rejected", "HTTP 403", 403),
    ConnectionLostError(1006, ""),
    ProtocolError("moshi", "kind 9", Binary(b"\x09")),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_its_parts(error: VoxmeterError) -> None:
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert str(back) == str(error)
    assert vars(back) == vars(error)
    assert type(back) is type(error)


def test_an_error_raised_in_another_process_arrives_as_itself() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        unknown = pool.submit(find, "no-such-kind").exception(timeout=60)
        garbage = pool.submit(parse_object, "x", Text("<html>")).exception(timeout=60)
    assert isinstance(unknown, UserError)
    assert unknown.place == "kind"
    assert isinstance(garbage, ProtocolError)
    assert garbage.message == Text("<html>")


def test_a_message_says_place_finding_and_cure_on_one_line() -> None:
    assert str(EXAMPLES[0]) == "bench.toml:3: no such key; remove it"
    assert str(EXAMPLES[1]) == "Opus: needs sphn; pip install 'voxmeter[opus]'"
    assert str(EXAMPLES[2]) == "a.wav: is empty"
    assert str(EXAMPLES[4]) == "connection lost (code 1006): no reason given"
    assert str(EXAMPLES[5]) == "moshi: kind 9 (1 bytes, starting 09)"


def test_a_protocol_error_shows_no_control_characters_of_the_peer() -> None:
    text = str(ProtocolError("x", "not JSON", Text("\x1b[31m\r\nred\u202e\x00")))
    assert text.isprintable()
    assert text.isascii()


def test_the_tree_is_the_one_at_the_top_of_the_page() -> None:
    assert errors.__doc__ is not None
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, VoxmeterError):
            assert f"- {name}" in errors.__doc__
    assert issubclass(ProtocolError, EndpointError)
    assert not issubclass(ClipError, EndpointError)

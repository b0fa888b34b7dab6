"""Messages described for people, and what follows from a protocol's traits."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Message,
    Published,
    Settings,
    Step,
    Text,
    Traits,
    describe,
)

MESSAGES = (
    st.builds(Text, st.text())
    | st.builds(Binary, st.binary())
    | st.builds(Published, st.text(), st.binary())
    | st.builds(Ended, st.none() | st.integers(), st.text())
)


@given(MESSAGES)
def test_any_message_is_described_on_one_printable_ascii_line(message: Message) -> None:
    assert describe(message).isascii()
    assert describe(message).isprintable()


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "a\nb", "\ud800", "\u2028", "x" * 10_000])
def test_terminal_escapes_and_line_ends_of_a_peer_are_spelled_out(text: str) -> None:
    for message in (Text(text), Ended(1008, text), Published(text, b"")):
        assert describe(message).isprintable()
        assert len(describe(message)) < 800


def test_a_description_says_kind_length_and_beginning() -> None:
    assert describe(Text("hello")) == "text, 5 characters, starting 'hello'"
    assert describe(Binary(bytes(40))).startswith("40 bytes, starting 00 00")
    assert describe(Published("a/b", b"123")) == "3 bytes on a/b"
    assert describe(Ended(None, "")) == "end of stream, code None, ''"


@pytest.mark.parametrize(
    ("traits", "kind"),
    [
        (Traits(16000), "server-vad"),
        (Traits(16000, turn_end="commit"), "commit"),
        (Traits(16000, turn_end="request"), "request"),
        (Traits(24000, full_duplex=True), "duplex"),
        (Traits(16000, turn_end="request", reply_channel="text"), "text"),
    ],
)
def test_the_kind_of_latency_follows_from_the_traits(traits: Traits, kind: str) -> None:
    assert traits.latency_kind == kind


def test_settings_and_steps_cannot_be_changed_after_the_fact() -> None:
    for frozen, name in ((Settings(), "model"), (Step(), "events"), (Traits(1), "input_rate")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(frozen, name, None)

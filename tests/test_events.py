"""The union of events: frozen, complete, and each one says in words what it is."""

from __future__ import annotations

import dataclasses
import inspect
import typing

import pytest

from voxmeter.endpoints import events, serving
from voxmeter.endpoints.events import Event, Fault, Ready, ReplyAudio, ReplyEnded
from voxmeter.endpoints.serving import ClientEvent

KINDS = typing.get_args(Event)
CLIENT_KINDS = typing.get_args(ClientEvent)


def classes_of(module: object) -> set[type]:
    return {
        one
        for one in vars(module).values()
        if inspect.isclass(one) and one.__module__ == getattr(module, "__name__", "")
    }


def test_every_event_class_stands_in_its_union() -> None:
    assert classes_of(events) == set(KINDS)
    others = {serving.ServerStep, serving.ServerCodec, serving.FullDuplexCodec}
    assert classes_of(serving) - others == set(CLIENT_KINDS)


@pytest.mark.parametrize("kind", [*KINDS, *CLIENT_KINDS])
def test_an_event_is_frozen_slotted_and_says_what_it_is(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(kind)
    assert kind.__doc__ is not None
    assert not kind.__doc__.startswith(kind.__name__)


def test_events_are_equal_by_their_parts() -> None:
    assert ReplyAudio(b"ab", "pcm16", 24000) == ReplyAudio(b"ab", "pcm16", 24000, "")
    assert ReplyEnded() != ReplyEnded("cancelled")
    assert Ready() != Ready(16000)
    assert Fault("busy", retryable=True, message="later").fatal

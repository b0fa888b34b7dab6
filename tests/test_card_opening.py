"""One opening of a microphone and a speaker: what it tells, and that nothing of it stays open."""

from __future__ import annotations

import asyncio
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from card_world import (
    BLOCK_NS,
    MS,
    Card,
    Hands,
    NoSuchFormError,
    call_in,
    call_out,
    device,
    fake_library,
    opening,
)

from voxmeter.client.live.card import Card as SoundCard
from voxmeter.client.live.card_opening import QUEUE_BLOCKS, Handover, Opening
from voxmeter.client.live.device_clock import AGAIN_NS
from voxmeter.client.live.device_rate import BLOCK, RATE
from voxmeter.client.live.sound import Block, Played
from voxmeter.client.live.troubles import Tally


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_library(monkeypatch)


@pytest.mark.parametrize(
    ("rates", "channels", "noted"),
    [
        ({48_000, 44_100}, {1, 2}, []),
        ({44_100}, {1, 2}, ["44100"]),
        ({16_000}, {1}, ["16000"]),
        ({48_000}, {2}, ["2 channels"]),
        ({44_100}, {2}, ["44100", "2 channels"]),
    ],
)
def test_a_device_that_takes_less_is_opened_as_it_can_be_and_that_is_noted(
    library: Any, rates: set[int], channels: set[int], noted: list[str]
) -> None:
    facts = opening(library, Card(rates, channels, Hands())).facts
    assert facts.rate == RATE
    mine = [note for note in facts.notes if note.startswith("the microphone")]
    assert len(mine) == len(noted)
    assert all(part in note for part, note in zip(noted, mine, strict=True))
    assert len(facts.notes) == 2 * len(noted)


def test_a_device_that_takes_nothing_is_refused_and_nothing_stays_open(library: Any) -> None:
    card = Card(set(), {1}, Hands())
    with pytest.raises(NoSuchFormError):
        opening(library, card)
    half = Card({48_000}, {1}, Hands())
    vars(library).update(RawInputStream=half.open, RawOutputStream=card.open)
    with pytest.raises(NoSuchFormError):
        Opening(library, device(), device(), clock=half.hands, wake=lambda: None)
    assert half.closed == 1


def test_a_loop_that_is_busy_for_two_seconds_loses_nothing_and_what_more_is_lost_is_counted(
    library: Any,
) -> None:
    hands, tally = Hands(), Tally()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    for _ in range(QUEUE_BLOCKS + 7):
        call_in(card, hands)
    blocks = [event for event in opened.collect(tally) if isinstance(event, Block)]
    assert len(blocks) == QUEUE_BLOCKS
    assert QUEUE_BLOCKS * 20 >= 1_000
    told = {trouble.problem: trouble.count for trouble in tally.take(hands.now())}
    assert told["dropped"] == 7


def test_a_reply_with_a_hole_is_told_and_the_pause_between_two_replies_is_not(library: Any) -> None:
    hands, tally = Hands(), Tally()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    for silent in (3, 60):
        opened.outgoing.put(bytes(2 * BLOCK))
        for _ in range(silent + 1):
            hands.now_ns += BLOCK_NS
            call_out(card, hands)
    opened.outgoing.put(bytes(2 * BLOCK))
    call_out(card, hands)
    played = [event for event in opened.collect(tally) if isinstance(event, Played)]
    assert [event.position for event in played] == [0, BLOCK, 2 * BLOCK]
    troubles = [x for x in tally.take(hands.now()) if x.problem == "starved"]
    assert [trouble.count for trouble in troubles] == [60]


def test_a_device_without_stamps_is_reckoned_by_its_latency(library: Any) -> None:
    hands = Hands()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    times = SimpleNamespace(inputBufferAdcTime=0.0, currentTime=0.0)
    flags = SimpleNamespace(input_overflow=False)
    card.streams[0].callback(memoryview(bytes(2 * BLOCK)), BLOCK, times, flags)
    [block] = opened.collect(Tally())
    assert isinstance(block, Block)
    assert block.taken_ns == block.came_ns - 40 * MS
    assert any("no stamps" in note for note in opened.facts.notes)


@pytest.mark.parametrize(
    ("latency_s", "told_ms"), [(0.0, None), (0.01, 10.0), (89_478.475, None), (-0.01, None)]
)
def test_a_latency_that_cannot_be_is_not_believed(
    library: Any, latency_s: float, told_ms: float | None
) -> None:
    card = Card({48_000}, {1}, Hands())
    card.latency_s = latency_s
    facts = opening(library, card).facts
    assert (facts.input_latency_ms, facts.output_latency_ms) == (told_ms, told_ms)


def test_silence_of_a_second_or_the_end_of_a_stream_means_gone(library: Any) -> None:
    hands = Hands()
    card = Card({48_000}, {1}, hands)
    opened = opening(library, card)
    opened.start()
    assert not opened.gone
    hands.now_ns += 1_500 * MS
    call_in(card, hands)
    assert opened.gone  # the speaker has not called
    call_out(card, hands)
    assert not opened.gone
    card.streams[0].finished_callback()
    assert opened.gone


def test_the_card_says_when_a_hole_was_seen_and_not_when_it_was_told(library: Any) -> None:
    hands, tally = Hands(), Tally()
    card = Card({RATE}, {1}, hands)
    opened = opening(library, card)
    call_in(card, hands, flagged=True)
    seen_ns = hands.now()
    hands.now_ns += 700 * MS
    assert [*opened.collect(tally)]
    [told] = [one for one in tally.take(hands.now()) if one.problem == "input-overflow"]
    assert told.t_ns == seen_ns


def test_devices_that_open_when_nobody_waits_any_more_are_given_back(library: Any) -> None:
    card = Card({RATE}, {1}, Hands())
    handover = Handover()
    assert handover.abandon() is None
    handover.give(opening(library, card))
    assert card.closed == 2


async def test_a_talk_that_is_stopped_while_its_card_opens_leaves_no_stream_open(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card({RATE}, {1}, Hands())
    begun, may_open = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()
    made: list[Opening] = []

    def start(_self: object, _library: object) -> Opening:
        loop.call_soon_threadsafe(begun.set)
        may_open.wait(10)
        made.append(opening(library, card))
        return made[0]

    monkeypatch.setattr(SoundCard, "_start", start)
    complaints: Any = SimpleNamespace(take=list)
    sound = SoundCard(None, None, clock=card.hands, echo=None, complaints=complaints)
    opening_it = asyncio.create_task(sound.open())
    await begun.wait()
    opening_it.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening_it
    may_open.set()
    await asyncio.to_thread(card.both_closed.wait, 10)
    assert card.closed == 2


def test_devices_that_do_not_start_are_given_back(library: Any) -> None:
    card = Card({RATE}, {1}, Hands())
    opened = opening(library, card)

    def fail() -> None:
        raise NoSuchFormError("busy", -9985)

    card.streams[1].start = fail
    with pytest.raises(NoSuchFormError):
        opened.start()
    assert card.closed == 2


def test_a_fault_of_our_own_is_not_taken_for_the_end_of_a_stream(library: Any) -> None:
    def fail() -> float:
        raise ZeroDivisionError

    hands = Hands()
    card = Card({RATE}, {1}, hands)
    opened = opening(library, card)
    opened._in_clock._read = fail
    hands.now_ns += 2 * AGAIN_NS
    call_in(card, hands)
    with pytest.raises(ZeroDivisionError):
        [*opened.collect(Tally())]

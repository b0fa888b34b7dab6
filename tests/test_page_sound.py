"""A page's sound behind the seam of live mode: its clocks, its queues, and what it reports."""

from __future__ import annotations

import asyncio
import json
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from fakes import FrozenClock
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.live.page_sound import PageSound
from voxmeter.client.live.sound import Block, Played, SoundEvent, Trouble
from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    TurnOver,
    Update,
    Words,
)
from voxmeter.client.live.web_clock import PINGS, PageClock, Reading, SoundClock
from voxmeter.client.live.web_outbox import MAX_SOUND, MAX_WORDS, Outbox
from voxmeter.client.live.web_show import shown
from voxmeter.client.live.web_wire import (
    Asking,
    DeviceGone,
    Devices,
    Malformed,
    MicrophoneFrame,
    PlayedReport,
    Pong,
    Stretch,
    Underrun,
    read,
    sound,
)

MS = 1_000_000
OFFSET_NS = 50_000 * MS
"""The page's clock began when the session's was there."""


def known_clock(offset_ns: int = OFFSET_NS) -> PageClock:
    clock = PageClock()
    for number in range(PINGS):
        sent = offset_ns + number * MS
        clock.note(Reading(sent, (sent + MS - offset_ns) / 1e6, sent + 2 * MS))
    return clock


class World:
    """A `PageSound` on a clock that the test moves; the page's own clock is `OFFSET_NS` behind."""

    def __init__(self, latency_ms: float | None = None) -> None:
        self.clock = FrozenClock()
        self.clock.t_ns = OFFSET_NS
        self.outbox = Outbox()
        devices = Devices("microphone", "speaker", latency_ms, 30.0, ("echo cancellation",))
        self.sound = PageSound(self.clock, known_clock(), self.outbox, devices)
        self.number = 0

    def frame(self, *, at_ms: float, waited_ms: float = 0.0, samples: int = 960) -> None:
        """Hand over a frame that ended at a moment of the page's, and came 3 ms after its end."""
        context_s = at_ms / 1e3 - samples / 48_000  # the sound's clock is the page's here
        came = OFFSET_NS + round((at_ms + waited_ms + 3) * MS)
        frame = MicrophoneFrame(self.number, context_s, at_ms + waited_ms, bytes(2 * samples))
        assert self.sound.frame(came, frame) is None
        self.number += 1

    async def events(self) -> list[SoundEvent]:
        self.sound.end()
        return [event async for event in self.sound.events()]


async def test_a_block_was_taken_its_length_before_the_page_had_it_less_the_tracks_latency() -> (
    None
):
    world = World(latency_ms=10.0)
    for number in range(1, 4):
        world.frame(at_ms=100.0 + 20 * number)
    blocks = [event for event in await world.events() if isinstance(event, Block)]
    assert [(block.taken_ns - OFFSET_NS) / MS for block in blocks] == [90, 110, 130]
    assert [(block.came_ns - OFFSET_NS) / MS for block in blocks] == [123, 143, 163]
    assert world.sound.paths_ms == (13.0, None)


async def test_what_a_block_waited_in_the_page_does_not_move_when_it_was_taken() -> None:
    world = World()
    for number, waited in enumerate((0.0, 7.0, 0.0, 12.0, 300.0), start=1):
        world.frame(at_ms=20.0 * number, waited_ms=waited)
    events = await world.events()
    blocks = [event for event in events if isinstance(event, Block)]
    assert [round(b.taken_ns - a.taken_ns) for a, b in pairwise(blocks)] == [20 * MS] * 4
    [late] = [event for event in events if isinstance(event, Trouble)]
    assert (late.problem, late.count) == ("late-callback", 300)


async def test_a_browser_that_stops_its_sound_is_reported_by_how_long() -> None:
    world = World()
    for number in range(1, 301):
        behind = 0.0 if number < 100 else 50.0
        world.frame(at_ms=20.0 * number, waited_ms=behind)
    troubles = [event for event in await world.events() if isinstance(event, Trouble)]
    assert [(one.problem, one.count) for one in troubles] == [("time-step", 50)]
    assert await world.outbox.take() == '{"type": "reopen-microphone"}'


def test_short_stops_of_a_browsers_sound_add_up_to_a_long_one() -> None:
    clock = SoundClock()
    told = [clock.note(0.02 * number, 20.0 * number + number // 300 * 4) for number in range(1200)]
    assert [round(step) for step in told if step is not None] == [11]  # less what may be drift


async def test_a_block_is_never_taken_after_it_came() -> None:
    world = World()
    frame = MicrophoneFrame(0, 5.0, 9000.0, bytes(1920))
    world.sound.frame(OFFSET_NS, frame)
    [block] = await world.events()
    assert isinstance(block, Block)
    assert block.taken_ns == OFFSET_NS - 20 * MS


async def test_blocks_that_the_page_lost_are_counted_and_old_ones_refused() -> None:
    world = World()
    world.number = 50  # the microphone was open before the session was there
    world.frame(at_ms=20)
    world.number = 54
    world.frame(at_ms=100)
    assert world.sound.frame(OFFSET_NS, MicrophoneFrame(2, 0.04, 60, b"\0\0")) is not None
    events = await world.events()
    assert [type(event) for event in events] == [Block, Trouble, Block]
    assert isinstance(events[1], Trouble)
    assert (events[1].problem, events[1].count) == ("dropped", 3)


async def test_a_session_that_does_not_read_loses_blocks_and_hears_how_many() -> None:
    world = World()
    for number in range(1, 251):
        world.frame(at_ms=20.0 * number)
    events = world.sound.events()
    for _ in range(200):
        assert isinstance(await anext(events), Block)
    world.frame(at_ms=20.0 * 251)
    trouble = await anext(events)
    assert isinstance(trouble, Trouble)
    assert (trouble.problem, trouble.count) == ("dropped", 50)
    assert isinstance(await anext(events), Block)


async def test_a_report_says_when_samples_were_heard_on_the_sessions_clock() -> None:
    world = World()
    world.sound.play(bytes(2 * 4800))
    report = PlayedReport((Stretch(0, 2400, 10.0), Stretch(2400, 2400, 10.06)), 9.99, 70.0)
    assert world.sound.played(report) is None
    assert await world.events() == [
        Played(0, 2400, OFFSET_NS + 80 * MS),
        Played(2400, 2400, OFFSET_NS + 140 * MS),
    ]
    assert world.sound.paths_ms == (None, 80.0)


@pytest.mark.parametrize(
    "stretch", [Stretch(0, 4801, 1.0), Stretch(4800, 1, 1.0), Stretch(0, 0, 1.0)]
)
async def test_a_report_of_what_was_never_given_is_refused(stretch: Stretch) -> None:
    world = World()
    world.sound.play(bytes(2 * 4800))
    assert world.sound.played(PlayedReport((stretch,), 1.0, 1.0)) is not None
    assert await world.events() == []


async def test_clear_returns_what_was_not_put_out_by_now_and_what_comes_counts_on() -> None:
    world = World()
    world.sound.play(bytes(2 * 48_000))
    world.sound.played(PlayedReport((Stretch(0, 2400, 1.0),), 1.0, 0.0))
    world.clock.t_ns = OFFSET_NS + 100 * MS
    assert world.sound.clear() == 48_000 - 4800
    assert world.sound.clear() == 0
    world.sound.play(bytes(2 * 480))
    world.sound.played(PlayedReport((Stretch(48_000, 480, 2.0),), 2.0, 1000.0))
    assert [event.position for event in await world.events() if isinstance(event, Played)] == [
        0,
        48_000,
    ]


async def test_clear_overtakes_what_waits_and_not_what_is_played_after_it() -> None:
    outbox = Outbox()
    outbox.sound(0, bytes(2))
    outbox.say({"type": "words"})
    outbox.clear_sound()
    outbox.sound(1, bytes(2))
    outbox.finish()
    assert await outbox.take() == '{"type": "clear"}'
    assert await outbox.take() == sound(1, bytes(2))
    assert await outbox.take() == '{"type": "words"}'
    assert await outbox.take() is None


async def test_an_outbox_holds_so_much_and_counts_the_rest() -> None:
    outbox = Outbox()
    assert outbox.sound(0, bytes(2 * (MAX_SOUND - 1))) == 0
    assert outbox.sound(MAX_SOUND - 1, bytes(20)) == 9
    for number in range(MAX_WORDS + 5):
        outbox.say({"type": "words", "number": number})
    assert outbox.forgotten == 5
    outbox.finish()
    taken = 0
    while isinstance(message := await outbox.take(), bytes):
        taken += (len(message) - 24) // 2
    assert taken == MAX_SOUND
    assert isinstance(message, str)
    assert json.loads(message)["number"] == 5


async def test_an_outbox_wakes_whoever_waits_for_it() -> None:
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.say({"type": "words"})
    assert await waiting == '{"type": "words"}'


async def test_troubles_of_one_kind_are_told_once_a_second_with_their_sum() -> None:
    world = World()
    for number in range(10):
        world.clock.t_ns = OFFSET_NS + number * 250 * MS
        world.sound.underrun(480)
    events = await world.events()
    assert [event.count for event in events if isinstance(event, Trouble)] == [480, 1920, 1920]


async def test_a_microphone_that_goes_and_comes_is_told_and_changes_the_facts() -> None:
    world = World()
    world.sound.device_gone("unplugged")
    world.sound.device_back(Devices("another", "speaker", None, None, ()))
    assert world.sound.facts.microphone == "another"
    assert world.sound.facts.input_latency_ms is None
    events = await world.events()
    assert [event.problem for event in events if isinstance(event, Trouble)] == ["lost", "back"]


async def test_the_facts_say_whose_stamps_they_are_and_how_well_the_clocks_agree() -> None:
    facts = World(latency_ms=10.0).sound.facts
    assert (facts.stamps, facts.host, facts.rate) == ("page", "browser", 48_000)
    assert (facts.input_latency_ms, facts.output_latency_ms) == (10.0, 30.0)
    assert facts.notes == (
        "page-measured: less than from mouth to ear",
        "page clock offset 50000.000 ms (RTT 2.000 ms)",
        "browser applies echo cancellation to the microphone",
    )


async def test_close_ends_the_events_and_later_ones_are_nothing() -> None:
    world = World()
    world.frame(at_ms=20)
    await world.sound.close()
    world.frame(at_ms=40)
    assert len([event async for event in world.sound.events()]) == 1


def test_the_ping_that_was_back_first_gives_the_offset() -> None:
    clock = PageClock()
    for number in range(PINGS):
        way_back = 1 if number == 3 else 40  # one slow way alone makes the middle wrong
        sent = number * 100 * MS
        assert not clock.known
        clock.note(Reading(sent, (sent + MS - OFFSET_NS) / 1e6, sent + MS + way_back * MS))
    assert clock.known
    assert clock.offset_ns == OFFSET_NS
    assert clock.rtt_ns == 2 * MS
    assert clock.t_ns(1000.0) == OFFSET_NS + 1000 * MS


def test_a_worse_round_does_not_spoil_what_a_better_one_found() -> None:
    clock = known_clock()
    for number in range(PINGS):
        sent = OFFSET_NS + (20_000 + 100 * number) * MS
        clock.note(Reading(sent, (sent + MS - OFFSET_NS) / 1e6, sent + 60 * MS))
    assert clock.offset_ns == OFFSET_NS


def test_a_page_whose_clock_was_set_is_noticed_and_believed_from_then_on() -> None:
    clock = known_clock()
    steps = []
    for number in range(PINGS):
        sent = OFFSET_NS + (20_000 + number) * MS
        reading = Reading(sent, (sent + MS - OFFSET_NS) / 1e6 - 500, sent + 2 * MS)
        steps.append(clock.note(reading))
    assert steps == [None] * (PINGS - 1) + [500.0]
    assert clock.offset_ns == OFFSET_NS + 500 * MS


def test_the_sounds_clock_may_be_anywhere_and_drift() -> None:
    clock = SoundClock()
    for number in range(1, 2000):
        end_s = 0.02 * number
        assert clock.note(end_s, 7000 + 20.001 * number + (number % 5)) is None
    assert clock.page_ms(0.02 * 1999) == pytest.approx(7000 + 20.001 * 1999, abs=0.2)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ({"type": "pong", "number": 3, "page_ms": 1.5}, Pong(3, 1.5)),
        ({"type": "ask", "name": "next-condition"}, Asking("next-condition")),
        ({"type": "underrun", "samples": 128}, Underrun(128)),
        ({"type": "device-gone", "why": "unplugged"}, DeviceGone("unplugged")),
        (
            {"type": "played", "stretches": [[0, 10, 1.5]], "context_s": 1, "page_ms": 2},
            PlayedReport((Stretch(0, 10, 1.5),), 1.0, 2.0),
        ),
    ],
)
def test_what_the_page_says_is_read(text: object, event: object) -> None:
    assert read(json.dumps(text)) == event


def test_a_frame_is_read_as_it_was_written() -> None:
    message = struct.pack("<IIdd", 7, 2, 1.25, 30.5) + b"\1\0\2\0"
    assert read(message) == MicrophoneFrame(7, 1.25, 30.5, b"\1\0\2\0")


@given(st.one_of(st.binary(max_size=64), st.text(max_size=64)))
def test_any_message_is_read_or_malformed(message: str | bytes) -> None:
    read(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KINDS = ["pong", "devices", "played", "underrun", "ask", "device-gone"]
FIELDS = ["number", "page_ms", "samples", "name", "why", "stretches", "context_s", "microphone"]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_fields_of_a_known_message_are_read_or_malformed(
    kind: str, fields: dict[str, object]
) -> None:
    read(json.dumps({**fields, "type": kind}))


@given(st.binary(min_size=24, max_size=40))
def test_any_header_is_read_or_malformed(message: bytes) -> None:
    found = read(message)
    assert isinstance(found, MicrophoneFrame | Malformed)


@pytest.mark.parametrize(
    ("update", "kind"),
    [
        (Words("user", 1, "hello", whole=True), "words"),
        (Mark(1, "first_audible", float("nan")), "mark"),
        (TurnOver(1, "ok", {"first_audible_ms": float("inf"), "reply_ms": None}), "turn-over"),
        (Running({"first_audible_ms": (2, 400.0, float("nan"))}), "running"),
        (PhaseChanged("listening"), "phase"),
        (Notice("a sentence", serious=True), "notice"),
        (Saved(Path("runs/live"), 3), "saved"),
    ],
)
def test_every_update_becomes_a_message_that_is_json(update: Update, kind: str) -> None:
    message = shown(update, (12.5, None))
    assert message is not None
    assert message["type"] == kind
    json.dumps(message, allow_nan=False)


def test_levels_are_left_to_the_page_which_measures_its_own() -> None:
    assert shown(Level("user", -20.0), (None, None)) is None


def test_a_turn_goes_with_how_long_the_ways_are() -> None:
    message = shown(TurnOver(2, "ok", {"first_packet_ms": 300.0}, "noisy"), (12.5, 40.0))
    assert message == {
        "type": "turn-over",
        "turn": 2,
        "status": "ok",
        "latency": {"first_packet_ms": 300.0},
        "condition": "noisy",
        "paths": {"microphone": 12.5, "speaker": 40.0},
    }

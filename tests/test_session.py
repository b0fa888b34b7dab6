"""The session driver: when frames leave, where t0 is, how a session ends."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes import FrozenClock, Play, ToyCodec, ToyTransport

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.endpoints.codec import Address, Message, Traits, Turn
from voxmeter.endpoints.errors import ConnectError

RATE = 8_000
FRAME = 160
SOUND = "sound " + "0040" * 80
BRIEF = Patience(
    connect_timeout_s=0.2,
    first_reply_timeout_s=0.15,
    reply_limit_s=0.3,
    greeting_timeout_s=0.2,
    drain_ms=0,
    quiet_ms=30,
)


def question(samples: int = 1_000, end: int = 900) -> Callable[[int], Utterance]:
    return lambda rate: Utterance(b"\1\2" * samples, rate, 10, end)


async def ask(
    play: Play,
    traits: Traits | None = None,
    *,
    clock: Clock | None = None,
    refuse: ConnectError | None = None,
    **how: Any,
) -> tuple[Capture, ToyTransport]:
    transport = ToyTransport(play, refuse)
    transport.now = (clock or SystemClock()).now
    how.setdefault("patience", BRIEF)
    capture = await converse(
        ToyCodec(traits or Traits(RATE)),
        transport,
        Address("toy://peer"),
        Ask(how.pop("question", question()), **how),
        clock=clock,
    )
    return capture, transport


async def answering(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say("started r", SOUND, "text Yes.", "end")


def rows(capture: Capture, kind: str) -> list[dict[str, Any]]:
    return [row for row in capture.rows if row["kind"] == kind]


async def test_every_frame_is_due_at_the_end_of_its_last_sample() -> None:
    capture, _ = await ask(answering, clock=FrozenClock())
    frames = rows(capture, "audio")
    start = capture.rows[0]["t_ns"]
    assert [row["due_ns"] - start for row in frames[:3]] == [20_000_000, 40_000_000, 60_000_000]
    assert all(row["t_ns"] >= row["due_ns"] for row in frames)
    assert {row["samples"] for row in frames} == {FRAME}


@pytest.mark.parametrize(
    ("why", "fault"),
    [
        (" max_tokens", "a reply was cut short: max_tokens"),
        ("", "a reply was cut short: it is not told why"),
    ],
)
async def test_a_reply_that_was_cut_short_is_an_answer_and_its_row_says_so(
    why: str, fault: str
) -> None:
    async def cut(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(7, "audio")
        peer.say("started r", SOUND, f"incomplete{why}")

    capture, _ = await ask(cut)
    assert (capture.outcome, capture.fault) == ("ended", fault)


async def test_silence_follows_the_question_until_the_reply_has_ended() -> None:
    capture, transport = await ask(answering)
    frames = [one for one in transport.sent if one.startswith("audio")]
    assert capture.outcome == "ended"
    assert len(frames) >= 7
    assert transport.sent[-1] == "bye"
    assert transport.closed


async def test_a_commit_follows_the_last_voiced_sample() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(1, "commit")
        peer.say(SOUND, "end")

    traits = Traits(RATE, turn_end="commit")
    capture, transport = await ask(play, traits, clock=FrozenClock(), commit_after_ms=40)
    start = capture.rows[0]["t_ns"]
    frames, (commit,) = rows(capture, "audio"), rows(capture, "commit")
    assert [row["samples"] for row in frames] == [160] * 5 + [100]
    assert frames[-1]["due_ns"] - start == 900 * 10**9 // RATE
    assert commit["due_ns"] == frames[-1]["t_ns"] + 40_000_000
    assert capture.rows[0]["clip_samples"] == 900
    assert transport.sent[-2:] == ["commit", "bye"]


async def test_a_clip_too_short_to_commit_gets_silence_in_front() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(1, "commit")
        peer.say(SOUND, "end")

    traits = Traits(RATE, turn_end="commit", min_turn_ms=100)
    capture, _ = await ask(play, traits, question=question(400, 320))
    header = capture.rows[0]
    assert header["lead_in_samples"] == 480
    assert header["speech_end_sample"] == 800
    assert sum(row["samples"] for row in rows(capture, "audio")) >= RATE // 10


async def test_a_request_goes_out_at_once_and_carries_the_whole_clip() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(1, "commit")
        peer.say("text Yes.", "end")

    capture, transport = await ask(play, Traits(RATE, turn_end="request"), text="Which?")
    assert transport.sent[:4] == ["hello", "audio 2000", "text Which?", "commit"]
    assert len(rows(capture, "request")) == 1
    assert capture.rows[0]["latency_kind"] == "request"


async def test_history_goes_before_the_question() -> None:
    past = (Turn("user", "One?"), Turn("assistant", "Two."))
    _, transport = await ask(answering, history=past)
    assert transport.sent[1:3] == ["history user One?", "history assistant Two."]
    assert transport.sent[3].startswith("audio")


async def test_an_endpoint_that_speaks_first_is_heard_out() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(2, "audio")
        peer.say(SOUND, "text Welcome.", "end")
        await peer.until(12, "audio")
        peer.say(SOUND, "text Yes.", "end")

    capture, _ = await ask(play, Traits(RATE, first_speaker="endpoint"))
    header = capture.rows[0]
    assert header["lead_in_samples"] >= 2 * FRAME
    assert header["speech_end_sample"] == header["lead_in_samples"] + 900
    assert capture.reply_text == "Yes."


async def test_the_rate_that_the_peer_asks_for_is_the_rate_of_the_question() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready 16000")
        await peer.until(7, "audio")
        peer.say(SOUND, "end")

    capture, transport = await ask(play)
    assert capture.rows[0]["input_rate"] == 16_000
    assert transport.sent[1] == "audio 640"


async def test_a_codecs_answer_to_the_peer_is_sent() -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready", "ping")
        await answering(peer)

    _, transport = await ask(play)
    assert "pong" in transport.sent


async def nothing(peer: ToyTransport) -> None:
    peer.say("ready")


async def silent_peer(peer: ToyTransport) -> None:
    del peer


async def only_started(peer: ToyTransport) -> None:
    peer.say("ready", "started r")


async def endless(peer: ToyTransport) -> None:
    peer.say("ready")
    for count in itertools.count(1):
        await peer.until(count, "audio")
        peer.say(SOUND)


async def dropped(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say(SOUND)
    peer.hang_up(1006, "no close frame")


async def closed_early(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say(SOUND)
    peer.hang_up(1000)


async def policy(peer: ToyTransport) -> None:
    peer.hang_up(1008, "key not allowed")


async def policy_after_the_first_words(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say(SOUND)
    peer.hang_up(1008, "enough")


async def vendor_code(peer: ToyTransport) -> None:
    peer.hang_up(4000, "old header")


async def quota(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say("fault quota")


async def garbage(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(3, "audio")
    peer.say("what?")


async def complaint_then_nothing(peer: ToyTransport) -> None:
    peer.say("ready", "complaint buffer too small")


async def left_after_the_end(peer: ToyTransport) -> None:
    peer.say("ready")
    await peer.until(7, "audio")
    peer.say(SOUND, "end")
    peer.hang_up(1000)


@pytest.mark.parametrize(
    ("play", "outcome", "words"),
    [
        (nothing, "timeout", ""),
        (silent_peer, "disconnected", "busy?"),
        (only_started, "timeout", ""),
        (endless, "truncated", ""),
        (dropped, "disconnected", "1006"),
        (closed_early, "disconnected", "1000"),
        (policy, "refused", "key not allowed"),
        (policy_after_the_first_words, "disconnected", "1008: enough"),
        (vendor_code, "refused", "4000"),
        (quota, "refused", "quota: says the toy"),
        (garbage, "protocol_error", "no such word: what?"),
        (complaint_then_nothing, "timeout", "buffer too small"),
        (left_after_the_end, "ended", ""),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
async def test_how_a_session_ends_is_its_outcome(play: Play, outcome: str, words: str) -> None:
    capture, transport = await ask(play)
    assert capture.outcome == outcome
    assert words in (capture.fault or "")
    assert transport.closed


async def test_a_peer_that_stops_taking_the_question_ends_the_session() -> None:
    class Full(ToyTransport):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if len(self.sent) == 3:
                await asyncio.get_running_loop().create_future()  # nobody reads any more

    transport = Full(nothing)
    ask_it = Ask(question(), patience=BRIEF)
    async with asyncio.timeout(10):
        capture = await converse(ToyCodec(), transport, Address("toy://peer"), ask_it)
    assert capture.outcome == "disconnected"
    assert capture.fault == "the endpoint stopped taking the question"
    assert len(rows(capture, "audio")) < 7
    assert transport.closed


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [("rejected", "refused"), ("refused", "disconnected"), ("tls", "disconnected")],
)
async def test_a_connection_that_fails_is_told_from_one_that_is_refused(
    failure: Any, outcome: str
) -> None:
    capture, _ = await ask(nothing, refuse=ConnectError(failure, "in words", 401))
    assert (capture.outcome, capture.fault) == (outcome, "in words")
    assert capture.rows == [{"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}]


async def test_time_outs_are_settings() -> None:
    longer = replace(BRIEF, reply_limit_s=0.4)
    capture, _ = await ask(endless, patience=longer)
    short, _ = await ask(endless, patience=BRIEF)
    assert capture.outcome == short.outcome == "truncated"
    assert len(capture.audio) > len(short.audio)


async def test_what_never_came_is_not_truncated_however_short_a_reply_may_be() -> None:
    capture, _ = await ask(nothing, patience=replace(BRIEF, first_reply_timeout_s=10))
    assert capture.outcome == "timeout"


async def test_fast_pacing_waits_for_no_frame_of_the_clip() -> None:
    clock = FrozenClock()
    capture, _ = await ask(answering, clock=clock, pacing="fast")
    clip = rows(capture, "audio")[:7]
    assert len({row["t_ns"] for row in clip}) == 1
    assert capture.rows[0]["pacing"] == "fast"


async def test_every_arrival_is_in_the_log_with_its_stamp_and_size() -> None:
    capture, _ = await ask(answering)
    (sound,) = rows(capture, "reply_audio")
    assert sound["bytes"] == len(SOUND)
    assert capture.audio == [(capture.rows.index(sound), bytes.fromhex(SOUND[6:]))]
    assert [row["kind"] for row in capture.rows if row["dir"] == "in"] == [
        "ready",
        "reply_started",
        "reply_audio",
        "reply_text",
        "reply_ended",
    ]
    assert capture.connect_ms is not None
    assert capture.rtt_ms == 1.5


async def test_a_peer_that_is_gone_before_we_spoke_is_told_by_its_own_reason() -> None:
    class Gone(ToyTransport):
        async def connect(self, address: Address) -> None:
            await super().connect(address)
            self.hang_up(4000, "old header")

    ask_once = Ask(question(), patience=BRIEF)
    capture = await converse(ToyCodec(), Gone(nothing), Address("toy://peer"), ask_once)
    assert capture.outcome == "refused"
    assert "old header" in (capture.fault or "")


async def test_an_answer_that_cannot_be_sent_any_more_loses_nothing_that_came() -> None:  # PR-23
    async def play(peer: ToyTransport) -> None:
        peer.say("ready")
        await peer.until(7, "audio")
        peer.say("ping", SOUND, "text Yes.", "end")
        peer.hang_up(1000)

    capture, transport = await ask(play)
    assert "pong" not in transport.sent
    assert (capture.outcome, capture.reply_text) == ("ended", "Yes.")
    assert len(capture.audio) == 1


async def test_a_session_is_freed_when_it_ends_and_not_by_the_collector() -> None:
    """The collector stops every session; a finished one must leave it nothing to free."""
    gc.collect()
    gc.disable()
    try:
        codec = ToyCodec(Traits(RATE))
        alive = weakref.ref(codec)  # the session holds it, and is held by nothing else
        ways = Ask(question(), patience=BRIEF)
        capture = await converse(codec, ToyTransport(answering), Address("toy://peer"), ways)
        del codec
        await asyncio.sleep(0)  # tasks that were cancelled let go in the loop's next turn
        assert capture.outcome == "ended"
        assert alive() is None
    finally:
        gc.enable()

"""A server whose output never stops: what is said where, and when a listener hears it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from fakes import FrozenClock
from plain_wire import RATE as PLAIN_RATE
from plain_wire import PlainClient, PlainServer, Scripted, client, question, rows, silence
from websockets.exceptions import ConnectionClosed

from voxmeter.client.audio import Samples, from_pcm16
from voxmeter.client.servers.brain import Brain, Drop, Raw, Speech, Words
from voxmeter.client.servers.duplex import Mouth
from voxmeter.client.servers.host import HostSettings, serving
from voxmeter.client.servers.metronome import Metronome
from voxmeter.client.servers.reply import Reply
from voxmeter.client.servers.stamped import StampedServerConnection
from voxmeter.client.servers.truth import Delivery, TruthLog
from voxmeter.client.servers.voice import babble
from voxmeter.endpoints.codec import Binary, Message
from voxmeter.endpoints.events import Encoding

RATE = 16_000
FRAME = RATE * 80 // 1000
MS = 1_000_000


class PlainDuplex(PlainServer):
    """The toy protocol, full duplex and without compression: every sample can be followed."""

    output_encoding: Encoding = "pcm16"
    frame_ms = 80
    held_back = 1


class Line:
    """A connection that keeps what was sent, and a clock that each send moves."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.cost_ns = 0
        self.said: list[Samples] = []

    async def send_messages(self, messages: Sequence[Message]) -> int:
        self.clock.t_ns += self.cost_ns
        for message in messages:
            if isinstance(message, Binary):
                self.said.append(from_pcm16(message.data))
        return self.clock.t_ns


class Talk:
    """A mouth, and how it is fed."""

    def __init__(self) -> None:
        self.line = Line()
        self.start_ns = self.line.clock.t_ns
        connection = cast("StampedServerConnection", self.line)
        self.mouth = Mouth(connection, PlainDuplex())

    def reply(self, onset: int | None = None) -> Reply:
        return Reply(1, "", Delivery(RATE, onset=onset), lambda: None, searched=True)

    async def feed(self, frames: int, late_ms: float = 0) -> None:
        """Feed frames, each when its last sample exists, or so much later."""
        for _ in range(frames):
            due = self.start_ns + (self.fed + 1) * 80 * MS
            self.line.clock.t_ns = max(self.line.clock.t_ns, due + round(late_ms * MS))
            await self.mouth.hear(FRAME, RATE)
            self.fed += 1

    fed = 0

    def stream(self) -> Samples:
        return np.concatenate([np.zeros(0, np.float32), *self.line.said])

    def at_ms(self, t_ns: int | None) -> float:
        assert t_ns is not None
        return (t_ns - self.start_ns) / MS


def tone(ms: float) -> Samples:
    return np.full(round(ms * RATE / 1000), 0.25, np.float32)


async def test_a_frame_is_said_for_every_frame_heard_but_the_first() -> None:
    talk = Talk()
    await talk.feed(1)
    assert talk.line.said == []
    await talk.feed(24)
    assert [len(frame) for frame in talk.line.said] == [FRAME] * 24
    assert not talk.stream().any()


@pytest.mark.parametrize("size", [1, 480, 1000, FRAME, 100_000])
async def test_frames_do_not_hang_on_how_audio_comes(size: int) -> None:
    talk = Talk()
    left = 10 * FRAME
    while left > 0:
        await talk.mouth.hear(min(size, left), RATE)
        left -= size
    assert len(talk.line.said) == 9


async def test_a_piece_is_heard_at_its_moment_to_the_sample() -> None:
    talk = Talk()
    await talk.feed(4)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(100), talk.start_ns + 491 * MS, 0))
    await talk.feed(6)
    # The frame that leaves at 480 ms is heard from then on.
    place = 3 * FRAME + FRAME + 11 * RATE // 1000
    assert np.flatnonzero(talk.stream())[[0, -1]].tolist() == [place, place + len(tone(100)) - 1]
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 491
    assert reply.delivery.samples == len(tone(100))


async def test_what_is_laid_too_late_is_heard_at_once_and_the_truth_says_when() -> None:
    talk = Talk()
    await talk.feed(5)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(50), talk.start_ns + 333 * MS, 0))
    await talk.feed(2)
    assert np.flatnonzero(talk.stream())[0] == 4 * FRAME
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 480


async def test_pieces_of_a_reply_follow_each_other_without_a_seam() -> None:
    talk = Talk()
    await talk.feed(2)
    reply = talk.reply()
    for number in range(30):
        talk.mouth.lay(reply, Speech(tone(20), talk.start_ns + 300 * MS + number * 20_000_400))
    await talk.feed(15)
    assert np.ptp(np.flatnonzero(talk.stream())) == 30 * len(tone(20)) - 1
    assert sum(len(piece) for piece in reply.speech) == 30 * len(tone(20))


async def test_a_pause_between_pieces_is_kept() -> None:
    talk = Talk()
    await talk.feed(2)
    reply = talk.reply()
    for at_ms in (300, 700):
        talk.mouth.lay(reply, Speech(tone(20), talk.start_ns + at_ms * MS))
    await talk.feed(15)
    sound = np.flatnonzero(talk.stream())
    assert sound[len(tone(20))] - sound[0] == 400 * RATE // 1000


async def test_a_quiet_lead_is_silence_and_not_the_onset() -> None:
    talk = Talk()
    await talk.feed(2)
    reply = talk.reply()
    lead = np.zeros(200 * RATE // 1000, np.float32)
    laid = np.concatenate([lead, tone(100)])
    talk.mouth.lay(reply, Speech(laid, talk.start_ns + 300 * MS, len(lead)))
    await talk.feed(15)
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 500
    assert talk.at_ms(reply.delivery.packets[0].heard_ns) == 300


async def test_after_a_hiccup_a_listener_drops_silence_and_hears_a_reply_in_time() -> None:
    talk = Talk()
    await talk.feed(2)
    await talk.feed(1, late_ms=70)
    await talk.feed(3)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(100), talk.start_ns + 600 * MS, 0))
    await talk.feed(6)
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 600


async def test_a_frame_that_comes_early_after_a_late_one_makes_no_reply_early() -> None:
    talk = Talk()
    await talk.feed(6)
    await talk.feed(1, late_ms=12)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(200), talk.start_ns + 660 * MS, 0))
    await talk.feed(6)
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 660
    assert np.ptp(np.flatnonzero(talk.stream())) == len(tone(200)) - 1


async def test_a_hiccup_right_before_a_reply_makes_it_late() -> None:
    talk = Talk()
    await talk.feed(6)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(100), talk.start_ns + 560 * MS, 0))
    await talk.feed(1, late_ms=70)
    await talk.feed(3)
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 630


async def test_the_time_that_a_send_takes_is_in_the_truth() -> None:
    talk = Talk()
    await talk.feed(4)
    reply = talk.reply(onset=0)
    talk.mouth.lay(reply, Speech(tone(100), None, 0))
    talk.line.cost_ns = 3 * MS
    await talk.feed(1)
    assert talk.at_ms(reply.delivery.packets[0].sent_ns) == 403
    assert talk.at_ms(reply.delivery.first_audible_ns()) == 403


async def test_words_come_at_their_place_and_dropped_pieces_never() -> None:
    talk = Talk()
    await talk.feed(2)
    first, second = talk.reply(), talk.reply()
    talk.mouth.lay(first, Words("Hel"))
    talk.mouth.lay(first, Speech(tone(200)))
    talk.mouth.lay(first, Words("lo"))
    talk.mouth.lay(second, Words("Bye"))
    await talk.feed(1)
    assert (first.words, second.words) == (["Hel"], [])
    talk.mouth.drop(first)
    await talk.feed(2)
    assert (first.words, second.words) == (["Hel"], ["Bye"])
    assert np.count_nonzero(talk.stream()) == FRAME
    await asyncio.wait_for(talk.mouth.said(first), 1)


# Through the host


@asynccontextmanager
async def served(brain: Brain, truth: Path | None = None) -> AsyncIterator[str]:
    log = TruthLog(truth) if truth else None
    async with serving(brain, PlainDuplex, HostSettings(), truth=log) as url:
        yield url
    if log is not None:
        log.close()


async def feed(one: PlainClient, until: Any) -> Samples:
    """Send silence, frame by frame, as each answer comes, until what has come is enough."""
    for _ in range(2000):
        await one.say(silence(80), FRAME)
        await one.until("audio")
        stream = from_pcm16(bytes(one.audio))
        if until(stream):
            return stream
    raise AssertionError


def spoken(samples: int) -> Any:
    return lambda stream: np.count_nonzero(stream) >= samples * 0.9


async def test_a_question_is_answered_within_the_stream(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    reply = babble(PLAIN_RATE, 0.5)
    async with served(Scripted(Words("Yes."), Speech(reply)), truth) as url, client(url) as one:
        await one.say(question(), FRAME)
        stream = await feed(one, spoken(len(reply)))
        await feed(one, lambda _: truth.exists() and truth.read_text())
    found = np.flatnonzero(stream)
    heard = stream[found[0] : found[0] + len(reply)]
    assert np.abs(heard[: found[-1] - found[0]] - reply[: found[-1] - found[0]]).max() < 1e-3
    (line,) = rows(truth)
    assert line["outcome"] == "completed"
    assert line["reply_samples"] == len(reply)
    assert line["user_end_ns"] <= line["first_packet_ns"] <= line["first_audible_ns"]
    assert [told["text"] for told in one.got if told["is"] == "text"] == ["Yes."]
    assert "reply_ended" not in one.names()


async def test_the_users_voice_stops_a_reply_and_nothing_more_of_it_comes(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    brain = Scripted(Speech(babble(PLAIN_RATE, 30.0)))
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question(), FRAME)
        await feed(one, spoken(PLAIN_RATE))
        await one.say(babble(PLAIN_RATE, 0.5), FRAME)
        await feed(one, lambda stream: not stream[-2 * FRAME :].any())
    cancelled = rows(truth)[0]
    assert cancelled["outcome"] == "cancelled"
    assert cancelled["reply_samples"] < 30 * PLAIN_RATE


async def test_what_breaks_the_protocol_comes_behind_the_sound_before_it() -> None:
    sound = babble(PLAIN_RATE, 0.3)
    async with served(Scripted(Speech(sound), Raw('{"is": "odd"}'))) as url, client(url) as one:
        await one.say(question(), FRAME)
        stream = await feed(one, lambda _: "odd" in one.names())
    assert np.count_nonzero(stream) >= len(sound) * 0.9


async def test_a_connection_is_cut_behind_the_sound_before_it(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    sound = babble(PLAIN_RATE, 0.5)
    brain = Scripted(Speech(sound), Drop())
    async with served(brain, truth) as url, client(url) as one:
        await one.say(question(), FRAME)
        with pytest.raises(ConnectionClosed, match="no close frame"):
            await feed(one, lambda _: False)
    (line,) = rows(truth)
    assert (line["outcome"], line["reply_samples"]) == ("dropped", len(sound))


async def test_a_delay_that_frames_cannot_keep_is_refused_with_the_reason() -> None:
    async with (
        serving(
            Metronome(), PlainDuplex, HostSettings(query={"delay_ms": "340", "endpoint_ms": "200"})
        ) as url,
        client(url) as one,
    ):
        await one.say(silence(80), FRAME)
        fault = await one.until("fault")
        closed = await one.until_closed()
    assert "two frames of 80 ms" in fault["message"]
    assert closed.rcvd is not None
    assert closed.rcvd.code == 1008


class Broken(Scripted):
    """A brain that fails after its first piece."""

    async def answer(self, turn: Any) -> AsyncGenerator[Any, None]:
        yield Words("Well")
        raise RuntimeError("no idea")


async def test_a_brain_that_fails_leaves_the_stream_going(capfd: Any) -> None:
    async with served(Broken()) as url, client(url) as one:
        await one.say(question(), FRAME)
        await feed(one, lambda _: any(told["is"] == "fault" for told in one.got))
        before = len(one.audio)
        await feed(one, lambda stream: 2 * len(stream) >= before + 2 * FRAME)
    assert json.dumps(one.got[-1]).count("no idea") == 1
    assert "no idea" in capfd.readouterr().err

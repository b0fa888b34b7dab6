"""The metronome keeps its delays, does what each fault says, and tells the truth about both."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from plain_wire import RATE, PlainClient, client, question, rows, served, silence
from websockets.exceptions import ConnectionClosed, InvalidStatus

from voxmeter.client.audio import Pcm, from_pcm16
from voxmeter.client.servers.brain import RefusedError, UserTurn
from voxmeter.client.servers.door import HostSettings
from voxmeter.client.servers.metronome import Metronome, beat
from voxmeter.client.servers.voice import babble
from voxmeter.endpoints.openai_realtime import KIND
from voxmeter.scoring.speech import speech_bounds

QUICK = "delay_ms=60&endpoint_ms=50"
NS = 1_000_000
REPLY = len(babble(RATE))


async def ask(url: str, query: str, turns: int = 1) -> PlainClient:
    async with client(url, f"?{query}") as one:
        for _ in range(turns):
            await one.say(question())
            await one.until("reply_ended")
        return one


async def test_a_burst_is_told_packet_by_packet(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        one = await ask(url, f"{QUICK}&pacing=burst&tag=mine&chunk_ms=100")
    (line,) = rows(truth)
    assert (line["tag"], line["session"], line["turn"]) == ("mine", 1, 1)
    assert line["outcome"] == "completed"
    assert line["first_packet_ns"] - line["user_end_ns"] >= 60 * NS
    assert line["first_audible_ns"] == line["first_packet_ns"]
    assert line["last_packet_ns"] - line["first_packet_ns"] < REPLY * 1_000 * NS // RATE
    assert line["reply_samples"] == REPLY == len(one.audio) // 2
    assert one.names() == [
        "hello", "speech_started", "speech_stopped", "reply_started", "reply_ended",
    ]  # fmt: skip


async def test_real_time_packets_leave_when_they_are_due(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        await ask(url, f"{QUICK}&chunk_ms=400")
    (line,) = rows(truth)
    last = (REPLY - 1) // (400 * RATE // 1000) * 400 * NS
    assert line["last_packet_ns"] >= line["user_end_ns"] + 60 * NS + last
    assert line["first_audible_ns"] == line["first_packet_ns"]


@pytest.mark.parametrize("pacing", ["burst", "realtime"])
async def test_a_silent_lead_delays_the_first_audible_sample_by_exactly_its_length(
    tmp_path: Path, pacing: str
) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        one = await ask(url, f"{QUICK}&lead_ms=130&pacing={pacing}")
    (line,) = rows(truth)
    reply = from_pcm16(bytes(one.audio))
    lead = 130 * RATE // 1000
    assert not reply[:lead].any()
    assert reply[lead] != 0
    heard = line["first_audible_ns"] - line["first_packet_ns"]
    assert heard == 130 * NS if pacing == "burst" else heard >= 130 * NS
    bounds = speech_bounds(reply, RATE)
    assert bounds is not None
    assert bounds.onset_sample == lead


async def test_a_seeded_jitter_is_the_same_for_the_same_tag_and_turn() -> None:
    def delay(seed: int, tag: str, number: int) -> int:
        turn = UserTurn(silence(1), RATE, RATE, 0, tag=tag, number=number)
        return beat({"jitter_ms": "50", "seed": str(seed)}).delay_ns(turn)

    drawn = [delay(1, "a", n) for n in range(1, 21)]
    assert drawn == [delay(1, "a", n) for n in range(1, 21)]
    assert all(300 * NS <= one <= 350 * NS for one in drawn)
    assert len(set(drawn)) == 20
    assert drawn[0] not in {delay(2, "a", 1), delay(1, "b", 1)}


async def test_jitter_never_makes_a_reply_early(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        await ask(url, f"{QUICK}&pacing=burst&jitter_ms=30&seed=3", turns=3)
    assert all(line["first_packet_ns"] - line["user_end_ns"] >= 60 * NS for line in rows(truth))


async def test_two_turns_of_one_session_are_two_lines_with_one_tag(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        await ask(url, f"{QUICK}&pacing=burst&tag=t", turns=2)
    assert [(one["tag"], one["session"], one["turn"]) for one in rows(truth)] == [
        ("t", 1, 1),
        ("t", 1, 2),
    ]


async def test_two_sessions_at_once_are_told_apart(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        await asyncio.gather(*(ask(url, f"{QUICK}&pacing=burst&tag={tag}") for tag in "ab"))
    lines = rows(truth)
    assert {one["tag"] for one in lines} == {"a", "b"}
    assert {one["session"] for one in lines} == {1, 2}


async def test_the_clients_own_tag_is_echoed_unless_the_query_has_one(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth, query={"pacing": "burst", "endpoint_ms": "50"}) as url:
        for query in ("", "?tag=query"):
            async with client(url, query) as one:
                await one.do("set", tag="session", silence_ms=5000)
                await one.say(question())
                await one.until("reply_ended")
    assert [one["tag"] for one in rows(truth)] == ["session", "query"]


async def test_a_committed_turn_may_be_answered_sooner_than_quiet_could_end_it(
    tmp_path: Path,
) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url, client(url, "?delay_ms=0&pacing=burst") as one:
        await one.do("set", turn_end="commit")
        await one.say(question(tail_ms=0))
        await one.do("commit")
        await one.do("request")
        await one.until("reply_ended")
        assert "speech_started" not in one.names()
    (line,) = rows(truth)
    assert line["first_packet_ns"] >= line["user_end_ns"]


async def test_an_uncommitted_turn_with_too_short_a_delay_is_refused_with_the_reason() -> None:
    async with served(Metronome()) as url, client(url, "?delay_ms=100") as one:
        await one.say(silence(20))
        told = await one.until("fault")
        assert told["kind"] == "policy"
        assert "delay_ms=100 is shorter than the 200 ms of quiet" in told["message"]
        closed = await one.until_closed()
        assert closed.rcvd is not None
        assert closed.rcvd.code == 1008


REFUSED = [
    ("delay=300", "query key 'delay' is unknown; did you mean \"delay_ms\"?"),
    ("delay_ms=fast", "delay_ms='fast' is not a number from 0 to 600000"),
    ("delay_ms=nan", "delay_ms='nan' is not a number from 0 to 600000"),
    ("delay_ms=-1", "delay_ms='-1' is not a number from 0 to 600000"),
    ("delay_ms=", "delay_ms='' is not a number from 0 to 600000"),
    ("pacing=quick", "pacing='quick' is not one of realtime, burst"),
    ("fault=explode", "fault='explode' is not one of drop, silent"),
    ("fault=", "fault='' is not one of drop, silent"),
    ("chunk_ms=0", "chunk_ms='0' is not a number from 1 to 1000"),
    ("tag=" + "x" * 201, "tag has 201 characters; at most 200 are taken"),
    ("text=hello", "text= needs a voice"),
]


async def test_a_query_that_makes_no_sense_is_refused_on_the_upgrade() -> None:
    async with served(Metronome()) as url:
        for query, reason in REFUSED:
            with pytest.raises(InvalidStatus) as refused:
                async with client(url, f"?{query}"):
                    pass
            body = refused.value.response.body.decode()
            assert refused.value.response.status_code == 400, query
            assert body.startswith(reason), body
            assert body.count("\n") == 1


async def test_what_clients_of_hosted_services_send_by_themselves_is_let_through() -> None:
    settings = HostSettings(client_keys=frozenset(KIND.query_keys))
    async with served(Metronome(), settings=settings) as url:
        await ask(url, f"{QUICK}&pacing=burst&model=gpt-realtime")


async def test_fault_refuse_refuses_the_session() -> None:
    async with served(Metronome()) as url:
        with pytest.raises(InvalidStatus) as refused:
            async with client(url, "?fault=refuse"):
                pass
    assert refused.value.response.status_code == 503


async def test_fault_drop_cuts_the_connection_in_the_middle_of_the_reply(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        async with client(url, f"?{QUICK}&pacing=burst&fault=drop") as one:
            await one.say(question())
            closed = await one.until_closed()
        assert closed.rcvd is None
        await ask(url, f"{QUICK}&pacing=burst")
    dropped, whole = rows(truth)
    assert dropped["outcome"] == "dropped"
    assert 0 < dropped["reply_samples"] < whole["reply_samples"]


async def test_fault_silent_sends_a_reply_in_which_nothing_is_audible(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url:
        one = await ask(url, f"{QUICK}&pacing=burst&fault=silent")
    (line,) = rows(truth)
    assert len(one.audio) == 2 * REPLY
    assert not any(one.audio)
    assert line["first_packet_ns"] is not None
    assert line["first_audible_ns"] is None


async def test_fault_garbage_sends_what_no_protocol_allows(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url, client(url, f"?{QUICK}&fault=garbage") as one:
        await one.say(question())
        with pytest.raises(ValueError, match="Expecting value"):
            await one.until("never")
        await one.connection.close()
    (line,) = rows(truth)
    assert line["first_packet_ns"] is None


async def test_fault_slow_sends_at_half_speed(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    query = f"?{QUICK}&fault=slow&chunk_ms=50"
    async with served(Metronome(), truth) as url, client(url, query) as one:
        await one.say(question())
        for _ in range(4):
            await one.until("audio")
    (line,) = rows(truth)
    assert line["last_packet_ns"] - line["first_packet_ns"] >= 3 * 99 * NS
    assert line["outcome"] == "disconnected"


async def test_fault_never_says_nothing_and_stays(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(), truth) as url, client(url, f"?{QUICK}&fault=never") as one:
        await one.say(question())
        await one.until("speech_stopped")
        with pytest.raises(ConnectionClosed):
            await asyncio.gather(one.until("reply_started"), one.connection.close())
    (line,) = rows(truth)
    assert line["first_packet_ns"] is line["first_audible_ns"] is line["last_packet_ns"] is None
    assert line["reply_samples"] == 0


async def test_a_text_is_spoken_and_begins_at_its_first_audible_sample(tmp_path: Path) -> None:
    said: list[str] = []

    def speak(text: str) -> Pcm:
        said.append(text)
        return Pcm(np.concatenate([np.zeros(900, np.float32), babble(24_000, 0.3)]), 24_000)

    truth = tmp_path / "truth.jsonl"
    async with served(Metronome(speak), truth) as url:
        one = await ask(url, f"{QUICK}&pacing=burst&text=good%20morning&lead_ms=50", turns=2)
    assert said == ["good morning"]
    first = from_pcm16(bytes(one.audio))[: len(one.audio) // 4]
    bounds = speech_bounds(first, RATE)
    assert bounds is not None
    assert bounds.onset_ms == pytest.approx(50, abs=1)
    assert all(one["first_audible_ns"] - one["first_packet_ns"] == 50 * NS for one in rows(truth))


def test_the_babble_is_audible_from_its_first_to_its_last_sample() -> None:
    for rate in (8_000, 16_000, 24_000, 48_000):
        bounds = speech_bounds(babble(rate), rate)
        assert bounds is not None
        assert (bounds.onset_sample, bounds.end_sample) == (0, len(babble(rate)))
        frames = babble(rate)[: len(babble(rate)) // (rate // 200) * (rate // 200)]
        assert np.sqrt((frames.reshape(-1, rate // 200) ** 2).mean(1)).min() > 10 ** (-45 / 20)


def test_defaults_that_make_no_sense_are_told_before_anything_is_served() -> None:
    with pytest.raises(RefusedError, match="delay_ms"):
        Metronome(None, {"delay_ms": "x"}).load()

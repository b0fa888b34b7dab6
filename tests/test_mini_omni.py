"""Mini-Omni, against captured bodies however they are split, odd peers, and a fake server."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempt_logs import voice
from captures import attempt_in
from http_peer import Peer, Play, serving
from http_play import RECORDINGS, hear, others, play, recordings, sound, words
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.clock import SystemClock
from voxmeter.client.finish import finish
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Json,
    Message,
    Published,
    Request,
    Response,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Event, Fault, ReplyAudio, ReplyEnded, ReplyStarted
from voxmeter.endpoints.mini_omni import client
from voxmeter.endpoints.mixed_replace import boundary_of

ONE = (RECORDINGS / "mini_omni" / "version_1.bin").read_bytes()
TWO = (RECORDINGS / "mini_omni" / "version_2.bin").read_bytes()
HEAD_1 = Response(200, {"content-type": "audio/wav"})
HEAD_2 = Response(200, {"content-type": "multipart/x-mixed-replace; boundary=frame"})
CUTS = st.lists(st.integers(0, 2**20), max_size=40)
SECOND = Settings(options={"version": 2})
MARK = b"\r\n--frame\r\n"


@pytest.mark.parametrize("path", recordings("mini_omni"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


@given(CUTS)
def test_the_first_version_is_the_same_however_it_is_split(cuts: list[int]) -> None:
    events = hear(client(Settings()), HEAD_1, ONE, cuts)
    assert sound(events) == ONE
    assert others(events) == [ReplyStarted(), ReplyEnded()]


@given(CUTS, st.lists(st.integers(-12, 12), max_size=8))
def test_the_second_version_is_the_same_however_it_is_split(
    cuts: list[int], near: list[int]
) -> None:
    marks = [at for at in range(len(TWO)) if TWO.startswith(MARK, at)]
    cuts = cuts + [mark + shift for mark in marks for shift in near if mark + shift >= 0]
    events = hear(client(SECOND), HEAD_2, TWO, cuts)
    assert sound(events) == b"".join(part[27:] for part in TWO.split(MARK)[1::2])
    assert words(events) == " w0 w1 w2 w3 w4"
    assert others(events) == [ReplyStarted(), ReplyEnded()]


def test_the_second_version_comes_byte_by_byte() -> None:
    body = TWO[:16500] + TWO[-60:]
    whole = hear(client(SECOND), HEAD_2, body)
    single = hear(client(SECOND), HEAD_2, body, range(len(body)))
    assert (sound(whole), words(whole)) == (sound(single), words(single))


BARE = st.binary(max_size=30).filter(lambda data: data[:4] != b"RIFF")  # which begins a WAV file


@given(st.lists(BARE, max_size=4), st.lists(st.text(max_size=8), max_size=4), CUTS)
def test_parts_come_back_as_they_were_put_together(
    sounds: list[bytes], said: list[str], cuts: list[int]
) -> None:
    parts = [(b"audio/wav", one) for one in sounds]
    parts += [(b"text/plain", one.encode()) for one in said]
    body = b"".join(MARK + b"Content-Type: " + kind + b"\r\n\r\n" + one for kind, one in parts)
    events = hear(client(SECOND), HEAD_2, body, cuts)
    assert sound(events) == b"".join(sounds)
    assert words(events) == "".join(said)


def test_sound_with_line_ends_and_near_marks_is_not_cut() -> None:
    odd = b"\r\n\r\n--fram\r\n--frame\r\r\n--frameX\n--frame\r\n\r"
    body = MARK + b"Content-Type: audio/wav\r\n\r\n" + odd
    for cuts in (range(0), range(len(body))):
        assert sound(hear(client(SECOND), HEAD_2, body, cuts)) == odd


def test_sound_is_passed_on_before_its_part_is_over() -> None:
    codec = client(SECOND)
    codec.receive(HEAD_2)
    step = codec.receive(Binary(TWO[:1000]))
    assert len(sound(step.events)) == 1000 - len(MARK) - 27


def test_a_part_whose_head_never_ends_breaks_the_protocol() -> None:
    codec = client(SECOND)
    codec.receive(HEAD_2)
    with pytest.raises(ProtocolError, match="head has no end"):
        codec.receive(Binary(MARK + b"x" * 20_000))


def test_an_empty_reply_is_an_ended_one() -> None:
    for settings, head in ((Settings(), HEAD_1), (SECOND, HEAD_2)):
        assert hear(client(settings), head, b"") == [ReplyStarted(), ReplyEnded()]


@given(
    st.lists(
        st.one_of(
            st.builds(Binary, st.binary(max_size=40)),
            st.builds(Text, st.text(max_size=5)),
            st.builds(Ended, st.one_of(st.none(), st.integers(300, 599)), st.text(max_size=9)),
            st.sampled_from([HEAD_1, HEAD_2, Response(), Published("t", b""), Request()]),
        ),
        max_size=8,
    ),
    st.sampled_from([1, 2]),
)
def test_any_messages_give_events_or_a_protocol_error(
    messages: list[Message], version: int
) -> None:
    codec = client(Settings(options={"version": version}))
    for message in messages:
        try:
            assert isinstance(codec.receive(message), Step)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": 3}, "a whole number from 1 to 2"),
        ({"version": "2"}, "a whole number from 1 to 2"),
        ({"stream_stride": 0}, "from 1 to 1000"),
        ({"max_tokens": True}, "from 1 to 100000"),
        ({"stride": 4}, "did you mean stream_stride"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Json], words: str) -> None:
    with pytest.raises(UserError, match=words):
        client(Settings(options=options))


def test_a_turn_cannot_be_closed_otherwise() -> None:
    with pytest.raises(UserError, match="turn_end"):
        client(Settings(turn_end="commit"))


def test_the_address_has_its_path_and_the_key_if_there_is_one() -> None:
    codec = client(Settings())
    assert codec.address("http://h:60808", None).url == "http://h:60808/chat"
    assert codec.address("http://h/own?x=1", "k").url == "http://h/own?x=1"
    assert codec.address("http://h/", "k").headers == {"Authorization": "Bearer k"}


def test_what_it_has_no_word_for_is_nothing() -> None:
    codec = client(Settings())
    steps = [codec.turn(Turn("user", "x")), codec.text("x"), codec.played(""), codec.cancel(1)]
    assert [*steps, codec.close()] == [Step()] * 5


# A whole attempt with a fake server

SPOKEN = to_pcm16(voice(600))
BRIEF = Patience(connect_timeout_s=2, first_reply_timeout_s=0.4, reply_limit_s=2.0, drain_ms=20)


def question(rate: int) -> Utterance:
    pcm = to_pcm16(voice(200))
    return Utterance(pcm, rate, 0, len(pcm) // 2)


async def asked(play_: Play, folder: Path, **fields: Any) -> tuple[dict[str, Any], list[Event]]:
    heard: list[Event] = []
    async with serving(play_) as url:
        target = Target("mo", "mini-omni", url, patience=BRIEF, **fields)
        async with LoopMonitor().watching() as monitor:
            capture = await attempt(target, question, monitor=monitor, listen=heard.append)
    row = finish(capture, attempt_in(folder))
    json.dumps(row, allow_nan=False)
    return row, heard


async def test_a_whole_attempt_is_measured_between_the_servers_own_moments(tmp_path: Path) -> None:
    clock = SystemClock()
    told: dict[str, Any] = {}

    async def genuine(peer: Peer) -> None:
        told["request"] = json.loads((await peer.request()).body)
        told["asked_ns"] = clock.now()
        silence = bytes(2 * 2400)  # 100 ms
        await peer.old()
        told["before_ns"] = clock.now()
        await peer.say(silence + SPOKEN[:8001])
        told["first_ns"] = clock.now()
        await peer.say(SPOKEN[8001:])

    began = clock.now()
    row, heard = await asked(genuine, tmp_path)
    assert row["status"] == "ok"
    assert row["fault"] is None
    assert row["latency_kind"] == "request"
    with wave.open(io.BytesIO(base64.b64decode(told["request"]["audio"]))) as file:
        assert file.getframerate() == 16_000
        assert file.readframes(10**6) == to_pcm16(voice(200))
    latency, t0_ns = row["latency"], row["t0_ns"]
    assert began < t0_ns < told["asked_ns"]
    assert t0_ns + latency["first_packet_ms"] * 1e6 > told["before_ns"]
    assert latency["leading_silence_ms"] == pytest.approx(100, abs=6)
    assert latency["first_audible_ms"] == pytest.approx(latency["first_packet_ms"] + 100, abs=6)
    assert latency["reply_ms"] == pytest.approx(600, abs=12)
    assert row["connect_ms"] > 0
    assert row["rtt_ms"] > 0
    received = from_pcm16(b"".join(one.data for one in heard if isinstance(one, ReplyAudio)))
    assert np.array_equal(received[2400:], from_pcm16(SPOKEN))


async def test_the_second_version_tells_its_words_too(tmp_path: Path) -> None:
    async def genuine(peer: Peer) -> None:
        await peer.request()
        await peer.old(
            MARK + b"Content-Type: audio/wav\r\n\r\n" + SPOKEN,
            MARK + b"Content-Type: text/plain\r\n\r\n Yes",
            kind="multipart/x-mixed-replace; boundary=frame",
        )

    row, _ = await asked(genuine, tmp_path, settings=SECOND)
    assert (row["status"], row["reply_text"]) == ("ok", "Yes")
    assert row["latency"]["first_text_ms"] >= row["latency"]["first_packet_ms"]


async def silent(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


async def dropped(peer: Peer) -> None:
    await peer.request()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nContent-Length: 99999\r\n\r\n"
    await peer.say(head, SPOKEN[:2000])


async def busy(peer: Peer) -> None:
    await peer.request()
    await peer.whole(b"one at a time", "503 Busy")


async def broken(peer: Peer) -> None:
    await peer.request()
    await peer.whole(b"<html><h1>Oh no</h1></html>", "500 Broken")


async def mute(peer: Peer) -> None:
    await peer.request()
    await peer.old()


async def stuck(peer: Peer) -> None:
    await peer.request()
    await peer.old(SPOKEN)
    await peer.gone()
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("peer", "status", "fault"),
    [
        (silent, "timeout", None),
        (dropped, "disconnected", "connection lost: closed in the middle of a body"),
        (busy, "refused", "busy: HTTP 503: one at a time"),
        (broken, "refused", "server: HTTP 500: Oh no"),
        (mute, "no_reply", "the reply ended without any audio"),
        (stuck, "truncated", None),
    ],
)
async def test_what_goes_wrong_has_its_status(
    peer: Play, status: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, _ = await asked(peer, tmp_path)
    assert (row["status"], row["fault"]) == (status, fault)


async def test_a_version_that_does_not_fit_is_told_with_its_cure(tmp_path: Path) -> None:
    row, heard = await asked(mute, tmp_path, settings=SECOND)
    assert row["status"] == "protocol_error"
    assert "set version = 1" in row["fault"]
    assert not any(isinstance(event, Fault) for event in heard)


def test_the_boundary_is_found_among_other_parameters() -> None:
    assert boundary_of('multipart/x-mixed-replace; charset=x; Boundary="b"; v=1') == "b"
    assert boundary_of("multipart/x-mixed-replace; charset=x") is None
    assert boundary_of("multipart/x-mixed-replace; boundary=") is None

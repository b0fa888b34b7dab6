"""Kind `gradio`: events of any kind, and whole attempts with a fake server."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from attempt_logs import voice
from captures import attempt_in
from gradio_codec import (
    ECHO,
    LIST,
    SPOKEN,
    WAV,
    WORDS,
    answer,
    called,
    completed,
    generating,
    told,
)
from gradio_world import World, config, file
from http_peer import serving
from http_play import sound
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.finish import finish
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Fetched,
    Settings,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
)
from voxmeter.endpoints.wav import wav_file

# Anything at all

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "[]", "e"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
ODD = st.sampled_from(["", "http://[", "//x/y.m3u8", "\ud800", "a\n?b.m3u8", "http://h:x/?q"])
FILES = st.fixed_dictionaries(
    {},
    optional={
        "url": JUNK | ODD,
        "path": JUNK | ODD,
        "is_stream": JUNK,
        "data": JUNK | st.sampled_from(["data:,", "UklGRg=="]),
    },
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["process_generating", "process_completed", "unexpected_error"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "output": JUNK | st.fixed_dictionaries({"data": JUNK | st.tuples(JUNK, FILES)}),
                    "success": JUNK,
                    "event_id": JUNK,
                    "message": JUNK,
                },
            ),
        ),
        max_size=5,
    )
)
def test_events_with_fields_of_any_kind_are_events_or_a_protocol_error(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    codec = called()
    for name, fields in events:
        with suppress(ProtocolError):
            told(codec, f"data: {json.dumps({'msg': name, **fields})}\n\n")
    for message in (Ended(), Fetched(LIST, body=b"#EXTM3U\n#EXT-X-ENDLIST"), *answer(WAV)):
        with suppress(ProtocolError):
            codec.receive(message)


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_any_bytes_as_events_are_events_or_a_protocol_error(pieces: list[bytes]) -> None:
    codec = called()
    for piece in pieces:
        with suppress(ProtocolError):
            codec.receive(Binary(piece))


# Whole attempts with a fake server

BRIEF = Patience(connect_timeout_s=2, first_reply_timeout_s=0.5, reply_limit_s=2.0, drain_ms=20)


def question(rate: int) -> Utterance:
    pcm = to_pcm16(voice(200))
    return Utterance(pcm, rate, 0, len(pcm) // 2)


async def asked(
    world: World, folder: Path, settings: Settings, text: str = ""
) -> tuple[dict[str, Any], list[Event]]:
    heard: list[Event] = []
    async with serving(world.play) as url:
        target = Target("g", "gradio", url, settings=settings, patience=BRIEF)
        async with LoopMonitor().watching() as monitor:
            capture = await attempt(
                target, question, text=text, monitor=monitor, listen=heard.append
            )
    row = finish(capture, attempt_in(folder))
    json.dumps(row, allow_nan=False)
    return row, heard


async def test_a_whole_attempt_hears_the_words_and_then_the_file(tmp_path: Path) -> None:
    whole = wav_file(to_pcm16(voice(400)), 24_000)
    world = World(ECHO, files={"/gradio_api/file=/tmp/a%20b.wav": whole})
    world.say(generating(["Yes", None]), completed(["Yes.", file()]), None)
    row, heard = await asked(world, tmp_path, SPOKEN, "Really?")
    assert (row["status"], row["fault"], row["reply_text"]) == ("ok", None, "Yes.")
    assert (row["latency_kind"], sound(heard)) == ("request", whole[44:])
    assert row["latency"]["first_text_ms"] < row["latency"]["first_packet_ms"]
    assert world.joined[0]["data"][1] == "Really?"
    assert len(world.joined[0]["session_hash"]) == 16


async def test_a_whole_attempt_in_words_alone_is_measured_by_them(tmp_path: Path) -> None:
    world = World(config([3], [3]))
    world.say(completed(["Berlin"]), None)
    row, _ = await asked(world, tmp_path, WORDS, "Where?")
    assert (row["status"], row["latency_kind"], row["reply_text"]) == ("ok", "text", "Berlin")


async def test_every_session_is_another_one_to_the_server(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        world = World(config([3], [3]))
        world.say(completed(["a"]), None)
        await asked(world, tmp_path, WORDS)
        names.add(world.joined[0]["session_hash"])
    assert len(names) == 2


async def test_a_server_that_falls_silent_amid_its_events_is_cut_off(tmp_path: Path) -> None:
    world = World(ECHO)
    world.say(generating(["So", None]))
    row, _ = await asked(world, tmp_path, SPOKEN)
    assert (row["status"], row["reply_text"]) == ("truncated", "So")

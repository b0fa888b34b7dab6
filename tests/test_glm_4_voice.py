"""GLM-4-Voice's demo: captured sessions, what is asked, and whole attempts with a fake server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aac import adts_of
from attempt_logs import voice
from captures import attempt_in
from gradio_world import GLM, World, event, file, stream
from http_peer import serving
from http_play import hear, play, rates, recordings, sound
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.audio import to_pcm16
from voxmeter.client.capture import Utterance
from voxmeter.client.encodings import decoder
from voxmeter.client.finish import finish
from voxmeter.client.lag import LoopMonitor
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints import preset
from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Fetched,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
)
from voxmeter.endpoints.errors import ProtocolError, UserError
from voxmeter.endpoints.events import Event, ReplyAudio, ReplyStarted, ReplyText
from voxmeter.endpoints.glm_4_voice import client, words
from voxmeter.endpoints.http_endpoint import client as http_client
from voxmeter.endpoints.wav import wav_file

BRIEF = Patience(connect_timeout_s=2, first_reply_timeout_s=0.6, reply_limit_s=2.0, drain_ms=20)
SPOKEN = np.frombuffer(to_pcm16(voice(400)), dtype="<i2")
SEGMENT = adts_of(SPOKEN)
WHOLE = wav_file(SPOKEN.tobytes() * 2, 22_050)
TOKENS = "<|system|>\nx<|user|>\n<|begin_of_audio|><|audio_1|><|end_of_audio|><|assistant|>"
SAID = "Hel<|audio_1|><|audio_222|>lo.<|audio_3|>"


@pytest.mark.parametrize("path", recordings("glm-4-voice"), ids=lambda path: path.stem)
def test_a_recorded_session_leads_to_what_is_written_beside_it(path: Path) -> None:
    play(path, client)


# What is asked


def data_of(settings: Settings, text: str = "") -> list[Json]:
    """What one question is, by an app that is ready."""
    codec = client(settings)
    codec.open()
    for message in answer(json.dumps(GLM)):
        codec.receive(message)
    codec.audio(b"\0\0")
    codec.text(text)
    (asked,) = codec.end_turn().messages
    if isinstance(asked, Request) and asked.path.endswith("/upload"):
        (asked,) = [sent for one in answer('["/q.wav"]') for sent in codec.receive(one).messages]
    assert isinstance(asked, Request)
    found: list[Json] = json.loads(asked.body)["data"]
    return found


def answer(body: str) -> list[Message]:
    return [Response(), Binary(body.encode()), Ended()]


def test_the_options_are_the_demos_own_inputs() -> None:
    plain = data_of(Settings())
    assert plain[:4] == [0.2, 0.8, 2000, "audio"]
    assert isinstance(plain[4], dict)
    assert plain[4]["path"] == "/q.wav"
    assert plain[5:] == ["", None, "", ""]
    options: dict[str, Json] = {"top_p": 1, "max_new_token": 500, "input_mode": "text"}
    told = data_of(Settings(temperature=0.9, options=options), text="Who {are} you?")
    assert told == [0.9, 1.0, 500, "text", None, "Who {are} you?", None, "", ""]


def test_instructions_stand_where_the_demo_looks_for_a_system_prompt_of_its_own() -> None:
    told = data_of(Settings(instructions="Be brief."))[7]
    assert isinstance(told, str)
    assert told.startswith("<|system|>\nBe brief. User will provide you with a speech instruction.")
    assert told.endswith("13 text token followed by 26 audio tokens.")


def test_a_voice_or_a_model_has_no_place_and_is_said_to_have_none() -> None:
    codec = client(Settings(voice="anna", model="9b", temperature=1.0, instructions="x"))
    codec.open()
    events = [event for one in answer(json.dumps(GLM)) for event in codec.receive(one).events]
    assert "no place in the call for voice, model" in str(events)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"top_p": 2}, "from 0 to 1"),
        ({"top_p": float("nan")}, "from 0 to 1"),
        ({"top_p": True}, "from 0 to 1"),
        ({"max_new_token": 0}, "whole number"),
        ({"input_mode": "both"}, "'audio' or 'text'"),
        ({"top_k": 3}, "did you mean top_p"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(options: dict[str, Json], found: str) -> None:
    with pytest.raises(UserError, match=found):
        client(Settings(options=options))


def test_traits_follow_the_input_mode() -> None:
    spoken = client(Settings()).traits
    assert (spoken.turn_end, spoken.takes_text, spoken.reply_end) == ("request", False, "final")
    assert client(Settings(options={"input_mode": "text"})).traits.takes_text


def test_words_are_what_is_left_without_the_tokens_of_sound() -> None:
    assert words(SAID) == "Hello."
    assert words("<|begin_of_audio|><|audio_1|><|end_of_audio|> a < b |> <|audio_x|>") == (
        "a < b |> <|audio_x|>"
    )


@given(
    st.lists(
        st.one_of(
            st.builds(Response),
            st.builds(Ended, st.one_of(st.none(), st.integers(300, 599)), st.text(max_size=9)),
            st.builds(Binary, st.binary(max_size=40)),
            st.sampled_from([*answer(json.dumps(GLM)), *answer('["/q"]'), *answer("{}")]),
            st.builds(
                Fetched,
                st.sampled_from(["turn 1 playlist", "turn 1 segment 0", "x"]),
                st.sampled_from([200, 403]),
                st.just({}),
                st.sampled_from([b"", b"#EXTM3U\na.aac", b"ID3", SEGMENT[:50]]),
            ),
        ),
        max_size=14,
    )
)
def test_any_messages_give_events_or_a_protocol_error(messages: list[Message]) -> None:
    codec = client(Settings())
    codec.open()
    for number, message in enumerate(messages):
        if number % 5 == 4:
            codec.end_turn()
        try:
            assert isinstance(codec.receive(message), Step)
        except ProtocolError:
            continue


# Whole attempts with a fake server


def question(rate: int) -> Utterance:
    pcm = to_pcm16(voice(200))
    return Utterance(pcm, rate, 0, len(pcm) // 2)


class Heard(list[Event]):
    """What a session heard; how many pieces of sound there were is told at each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.sound: asyncio.Queue[int] = asyncio.Queue()

    def append(self, event: Event) -> None:
        super().append(event)
        if isinstance(event, ReplyAudio):
            self.sound.put_nowait(sum(isinstance(one, ReplyAudio) for one in self))


async def asked(world: World, folder: Path, heard: list[Event], **fields: Any) -> dict[str, Any]:
    async with serving(world.play) as url:
        target = Target("glm", "glm-4-voice", url, patience=BRIEF, **fields)
        async with LoopMonitor().watching() as monitor:
            capture = await attempt(target, question, monitor=monitor, listen=heard.append)
    row = finish(capture, attempt_in(folder))
    json.dumps(row, allow_nan=False)
    return row


def first(outputs: list[Any]) -> str:
    return event("process_generating", outputs)


def last(outputs: list[Any], **more: Any) -> str:
    return event("process_completed", outputs, **more)


def samples(heard: list[Event]) -> int:
    decoding = decoder("aac", 22_050)
    return sum(len(decoding.decode(one.data)) for one in heard if isinstance(one, ReplyAudio))


async def test_each_segment_is_heard_while_the_next_is_still_to_be_made(tmp_path: Path) -> None:
    world = World(GLM)
    heard = Heard()
    counts = []

    async def make() -> None:
        """Tell of the next segment only when the one before has been heard."""
        for number in range(3):
            world.segments.append(SEGMENT)
            world.say(first([None, TOKENS, "", "", stream(), None] if not number else [[]] * 6))
            counts.append(await heard.sound.get())
        world.ended = True
        world.say(
            first([[], [], [["append", [], SAID]], [], [], [["replace", [], file()]]]),
            last([None, TOKENS, SAID, "", stream(), file()]),
            event("close_stream"),
            None,
        )

    async with asyncio.TaskGroup() as group:
        group.create_task(make())
        row = await asked(world, tmp_path, heard)
    assert counts == [1, 2, 3]
    assert (row["status"], row["fault"], row["latency_kind"]) == ("ok", None, "request")
    assert row["reply_text"] == "Hello."
    assert not [one for one in world.asked if one.target.startswith("/gradio_api/file=")]
    expected = 3 * len(decoder("aac", 22_050).decode(SEGMENT))
    assert samples(heard) == expected  # the file holds the same once more, and is left alone
    latency = row["latency"]
    assert latency["first_packet_ms"] < latency["first_text_ms"]
    assert 0 < latency["leading_silence_ms"] < 1024 / 22.05 + 6  # what AAC puts before the sound
    kinds = [type(one) for one in heard]
    assert kinds.index(ReplyStarted) < kinds.index(ReplyAudio) < kinds.index(ReplyText)


async def test_without_a_stream_the_sound_is_that_of_the_file(tmp_path: Path) -> None:
    world = World(GLM, files={"/gradio_api/file=/tmp/a%20b.wav": WHOLE})
    world.say(last([None, TOKENS, SAID, "", None, file()]), None)
    heard: list[Event] = []
    row = await asked(world, tmp_path, heard)
    assert (row["status"], row["reply_text"]) == ("ok", "Hello.")
    assert b"".join(one.data for one in heard if isinstance(one, ReplyAudio)) == WHOLE[44:]
    assert {one.rate for one in heard if isinstance(one, ReplyAudio)} == {22_050}


async def test_a_stream_that_gave_nothing_leaves_the_file(tmp_path: Path) -> None:
    world = World(GLM, ended=True, files={"/gradio_api/file=/tmp/a%20b.wav": WHOLE})
    world.say(
        first([None, TOKENS, "", "", stream(), None]),
        last([None, TOKENS, SAID, "", stream(), file()]),
        None,
    )
    heard: list[Event] = []
    row = await asked(world, tmp_path, heard)
    assert row["status"] == "ok"
    assert b"".join(one.data for one in heard if isinstance(one, ReplyAudio)) == WHOLE[44:]


FAILED = {"error": None}


@pytest.mark.parametrize(
    ("events", "refuses", "status", "fault"),
    [
        (
            [event("process_completed", output=FAILED, success=False)],
            {},
            "refused",
            "server: the app failed and keeps the reason to itself "
            "(launch(show_error=True) would tell it)",
        ),
        (
            [first([None, TOKENS, "", "CUDA out of memory\n", None, None])],
            {},
            "refused",
            "server: CUDA out of memory",
        ),
        (
            [first([None, TOKENS, "", "", stream(), None])],
            {"playlist.m3u8": "403 Forbidden"},
            "refused",
            "auth: turn 1 playlist: HTTP 403: not for you",
        ),
        ([], {"/queue/join": "503 Full"}, "refused", "busy: HTTP 503: not for you"),
        ([], {"/config": "404 Not Found"}, "refused", "request: HTTP 404: not for you"),
        ([], {}, "timeout", None),
        (
            [last([None, TOKENS, SAID, "", None, None]), None],
            {},
            "no_reply",
            "the reply ended without any audio",
        ),
        (
            [last([None, TOKENS, SAID, "", None, file()]), None],
            {".wav": "403 Forbidden"},
            "refused",
            "auth: HTTP 403: not for you",
        ),
    ],
)
async def test_what_goes_wrong_has_its_status_and_its_words(
    events: list[str | None],
    refuses: dict[str, str],
    status: str,
    fault: str | None,
    tmp_path: Path,
) -> None:
    world = World(GLM, refuses=refuses)
    world.say(*events)
    row = await asked(world, tmp_path, [])
    assert (row["status"], row["fault"]) == (status, fault)


async def test_garbage_for_a_segment_is_a_protocol_error_in_one_line(tmp_path: Path) -> None:
    world = World(GLM, segments=[b"<html>no such segment</html>"])
    world.say(first([None, TOKENS, "", "", stream(), None]))
    row = await asked(world, tmp_path, [])
    assert row["status"] == "protocol_error"
    assert row["fault"].startswith("glm-4-voice: a segment is not AAC in ADTS frames")
    assert "\n" not in row["fault"]


async def test_damaged_frames_are_told_of_and_the_rest_is_heard(tmp_path: Path) -> None:
    broken = SEGMENT[:7] + bytes(len(SEGMENT) - 7)
    world = World(GLM, segments=[SEGMENT, broken], ended=True)
    world.say(
        first([None, TOKENS, "", "", stream(), None]),
        last([None, TOKENS, SAID, "", stream(), None]),
        None,
    )
    row = await asked(world, tmp_path, [])
    assert row["status"] == "ok"
    assert "a piece of aac audio could not be decoded" in row["fault"]


# Other servers of the same model, by presets of kind `http`


@pytest.mark.parametrize(
    ("name", "rate", "parts"),
    [
        ("vox-serve-glm-4-voice", 22_050, [b'name="text"', b'filename="question.wav"']),
        ("vox-serve-step-audio-2", 24_000, [b'name="text"', b'filename="question.wav"']),
        ("glm-4-voice-web-inference", 24_000, [b'"sample_rate": 16000', b'"audio_data": [0,']),
    ],
)
def test_a_preset_of_another_server_asks_as_it_wants_and_hears_at_the_right_rate(
    name: str, rate: int, parts: list[bytes]
) -> None:
    table = preset.read(name).endpoint
    codec = http_client(Settings(output_rate=table.get("output_rate"), options=table["options"]))
    codec.audio(bytes(8))
    (request,) = codec.end_turn().messages
    assert isinstance(request, Request)
    assert all(part in request.body for part in parts)
    endless = wav_file(b"", 24_000) + SPOKEN.tobytes()  # the head of a file whose size is not known
    events = hear(codec, Response(200, {"content-type": "audio/wav"}), endless)
    assert (sound(events), rates(events)) == (SPOKEN.tobytes(), {rate})

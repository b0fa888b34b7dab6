"""Five unlike protocols, sketched, fit one seam: joined to what their peers say."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from sketches import elevenlabs, hermes, mini_omni, moshi, openai_realtime

from voxmeter.endpoints.codec import (
    Binary,
    Codec,
    Ended,
    Message,
    Published,
    Settings,
    Step,
    Text,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    InputTranscript,
    Interrupted,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStopped,
)

RECORDINGS = Path(__file__).parent / "recordings"
SETTINGS = Settings(model="m", instructions="Be brief.", session_tag="desk")
SKETCHES: list[Callable[[Settings], Codec]] = [
    openai_realtime.Sketch,
    moshi.Sketch,
    elevenlabs.Sketch,
    mini_omni.Sketch,
    hermes.Sketch,
]


def told(**fields: object) -> Text:
    return Text(json.dumps(fields))


def heard(codec: Codec, messages: Iterable[Message]) -> list[Event]:
    return [event for message in messages for event in codec.receive(message).events]


def only(step: Step) -> Message:
    (message,) = step.messages
    return message


@pytest.mark.parametrize("sketch", SKETCHES, ids=lambda sketch: sketch.__module__)
def test_every_sketch_answers_every_verb_of_the_seam(sketch: Callable[[Settings], Codec]) -> None:
    codec = sketch(SETTINGS)
    assert codec.traits.latency_kind in {"server-vad", "commit", "request", "duplex"}
    assert codec.address("ws://127.0.0.1:1", "key").url.startswith("ws://127.0.0.1:1")
    steps = [codec.open(), codec.turn(Turn("user", "hello")), codec.audio(bytes(640))]
    steps += [codec.text("hello"), codec.end_turn(), codec.played("r"), codec.cancel(10)]
    steps += [codec.close()]
    assert all(isinstance(step, Step) for step in steps)


def test_openai_realtime_commits_a_turn_and_hears_the_reply_to_its_end() -> None:
    codec = openai_realtime.Sketch(SETTINGS)
    update = only(codec.open())
    assert isinstance(update, Text)
    assert json.loads(update.data)["session"]["instructions"] == "Be brief."
    closing = codec.end_turn().messages
    assert [json.loads(m.data)["type"] for m in closing if isinstance(m, Text)] == [
        "input_audio_buffer.commit",
        "response.create",
    ]
    delta = base64.b64encode(b"\1\2\3").decode()
    events = heard(
        codec,
        [
            told(type="session.updated"),
            told(type="response.created"),
            told(type="response.output_audio.delta", delta=delta),
            told(type="response.done"),
            Ended(1000),
        ],
    )
    assert events == [
        Ready(),
        ReplyStarted(),
        ReplyAudio(b"\1\2\3", "pcm16", 24000),
        ReplyEnded(),
        Closed(1000),
    ]


def moshi_server_messages() -> list[Binary]:
    """The server's messages of a captured session, as far as the capture kept their bytes."""
    messages = []
    for line in (RECORDINGS / "moshi_py_server_tiny_cpu.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["dir"] == "s2c":
            if row.get("kind") == 2:
                messages.append(Binary(b"\2" + row["text"].encode()))
            elif row["hex"]:
                messages.append(Binary(bytes.fromhex(row["hex"])))
    return messages


def test_moshi_captured_from_the_genuine_server_is_ready_then_talks_in_opus_and_words() -> None:
    events = heard(moshi.Sketch(SETTINGS), moshi_server_messages())
    assert events[0] == Ready()
    audio = [event for event in events if isinstance(event, ReplyAudio)]
    assert audio
    assert all(piece.data.startswith(b"OggS") for piece in audio)
    words = [event.text for event in events if isinstance(event, ReplyText)]
    assert " correct" in words
    assert not {"<s>", "</s>"} & set(words)


def test_moshi_waits_for_the_handshake_and_never_ends_a_reply_itself() -> None:
    codec = moshi.Sketch(SETTINGS)
    assert codec.traits.full_duplex
    assert codec.traits.reply_end == "quiet"
    assert codec.receive(Binary(b'\4{"lm_model_file":"x"}')).events == []
    with pytest.raises(ProtocolError, match="kind 1 before the handshake"):
        codec.receive(Binary(b"\1OggS"))
    assert codec.receive(Binary(bytes(9))).events == [Ready(note='{"lm_model_file":"x"}')]
    assert codec.audio(b"").messages == []
    assert only(codec.audio(b"OggS")) == Binary(b"\1OggS")


def test_elevenlabs_takes_its_rates_from_the_peer_and_answers_pings_at_once() -> None:
    codec = elevenlabs.Sketch(SETTINGS)
    metadata = {
        "conversation_id": "c1",
        "agent_output_audio_format": "pcm_22050",
        "user_input_audio_format": "ulaw_8000",
    }
    ready = told(
        type="conversation_initiation_metadata", conversation_initiation_metadata_event=metadata
    )
    assert codec.receive(ready).events == [Ready(8000, "c1", "pcmu")]
    pong = only(codec.receive(told(type="ping", ping_event={"event_id": 7, "ping_ms": 50})))
    assert isinstance(pong, Text)
    assert json.loads(pong.data) == {"type": "pong", "event_id": 7}

    def audio(event_id: int) -> Text:
        event = {"event_id": event_id, "audio_base_64": base64.b64encode(b"ab").decode()}
        return told(type="audio", audio_event=event)

    interruption = told(type="interruption", interruption_event={"event_id": 2})
    assert heard(codec, [audio(1), interruption, audio(2), audio(3)]) == [
        ReplyAudio(b"ab", "pcm16", 22050),
        Interrupted(),
        ReplyAudio(b"ab", "pcm16", 22050),
    ]


def test_mini_omni_sends_one_request_and_its_captured_body_is_the_reply_however_it_is_cut() -> None:
    body = (RECORDINGS / "mini_omni" / "version_1.bin").read_bytes()
    codec = mini_omni.Sketch(SETTINGS)
    codec.audio(bytes(320))
    codec.audio(bytes(11))
    request = only(codec.end_turn())
    assert isinstance(request, Text)
    with wave.open(io.BytesIO(base64.b64decode(json.loads(request.data)["audio"]))) as sent:
        assert (sent.getframerate(), sent.getnframes()) == (16000, 165)
    pieces = [Binary(body[at : at + 1447]) for at in range(0, len(body), 1447)]
    events = heard(codec, [*pieces, Ended()])
    assert (events[0], events[-1]) == (ReplyStarted(), ReplyEnded())
    audio = [event for event in events if isinstance(event, ReplyAudio)]
    assert b"".join(piece.data for piece in audio) == body
    refused = heard(codec, [Ended(500, "INTERNAL SERVER ERROR")])
    assert refused == [Fault("server", retryable=True, message="HTTP 500 INTERNAL SERVER ERROR")]


def test_hermes_turns_topics_into_a_turn_and_says_when_the_reply_was_played() -> None:
    codec = hermes.Sketch(SETTINGS)
    start = only(codec.open())
    assert isinstance(start, Published)
    assert start.topic == "hermes/dialogueManager/startSession"
    assert codec.audio(bytes(2048)).messages == ()

    def on(topic: str, **fields: object) -> Published:
        return Published(f"hermes/{topic}", json.dumps({"siteId": "desk", **fields}).encode())

    ready = [on("dialogueManager/sessionStarted", sessionId="s1"), on("asr/startListening")]
    assert heard(codec, ready) == [Ready(16000, "s1")]
    frame = only(codec.audio(bytes(2048)))
    assert isinstance(frame, Published)
    assert (frame.topic, len(frame.payload)) == ("hermes/audioServer/desk/audioFrame", 2092)

    file = io.BytesIO()
    with wave.open(file, "wb") as reply:
        reply.setnchannels(1)
        reply.setsampwidth(2)
        reply.setframerate(22050)
        reply.writeframes(b"abcd")
    events = heard(
        codec,
        [
            on("asr/textCaptured", text="what time is it\n"),
            on("asr/stopListening"),
            Published("hermes/tts/say", b'{"siteId": "kitchen", "id": "r0", "text": "no"}'),
            on("tts/say", id="r1", text="Noon."),
            Published("hermes/audioServer/desk/playBytes/r1", file.getvalue()),
        ],
    )
    assert events == [
        InputTranscript("what time is it"),
        SpeechStopped(),
        ReplyStarted("r1"),
        ReplyText("Noon.", "r1"),
        ReplyAudio(b"abcd", "pcm16", 22050, "r1"),
        ReplyEnded(reply="r1"),
    ]
    finished = only(codec.played("r1"))
    assert isinstance(finished, Published)
    assert json.loads(finished.payload) == {"id": "r1", "sessionId": "s1"}
    ended = on("dialogueManager/sessionEnded", termination={"reason": "nominal"})
    assert heard(codec, [ended]) == [Closed(reason="nominal")]

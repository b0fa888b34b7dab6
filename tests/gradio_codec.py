"""Codecs of kind `gradio` that are taken as far as a test needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gradio_world import config, event

from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
)
from voxmeter.endpoints.events import (
    Fault,
    FaultKind,
    Ready,
)
from voxmeter.endpoints.gradio import client
from voxmeter.endpoints.gradio_wire import Client
from voxmeter.endpoints.wav import wav_file

ECHO = config([2, 3], [3, 5])
PCM = bytes(range(200))
WAV = wav_file(PCM, 24_000)
LIST = "turn 1 playlist"


def options(**more: Json) -> dict[str, Json]:
    return {"data": ["{audio}", "{text}"], "text_output": 0, "audio_output": 1, **more}


SPOKEN = Settings(session_tag="t", options=options())
WORDS = Settings(options={"data": ["{text}"], "text_output": 0})


# Codecs that are taken as far as a test needs


def answer(body: str | bytes) -> list[Message]:
    data = body.encode() if isinstance(body, str) else body
    return [Response(), Binary(data), Ended()]


def hear(codec: Client, messages: Sequence[Message]) -> Step:
    """Return all that several messages lead to."""
    steps = [codec.receive(one) for one in messages]
    return Step(
        [event for step in steps for event in step.events],
        [message for step in steps for message in step.messages],
    )


def ready(settings: Settings, app: dict[str, Any], url: str = "http://h") -> Client:
    """Return a codec that knows its app."""
    codec = client(settings)
    codec.address(url, None)
    codec.open()
    (event,) = hear(codec, answer(json.dumps(app))).events
    assert isinstance(event, Ready), event
    return codec


def called(settings: Settings = SPOKEN, app: dict[str, Any] = ECHO, text: str = "") -> Client:
    """Return a codec whose call has joined the queue and whose events begin."""
    codec = ready(settings, app)
    ask(codec, text)
    hear(codec, [Response()])
    return codec


def ask(codec: Client, text: str = "") -> list[Json]:
    """Ask one question, up to the events; return the inputs."""
    codec.audio(b"\0\0")
    codec.text(text)
    (asked,) = codec.end_turn().messages
    if isinstance(asked, Request) and asked.path.endswith("/upload"):
        (asked,) = hear(codec, answer('["/q.wav"]')).messages
    assert isinstance(asked, Request)
    (events,) = hear(codec, answer('{"event_id": "e"}')).messages
    assert isinstance(events, Request)
    assert "/queue/data?session_hash=" in events.path
    found: list[Json] = json.loads(asked.body)["data"]
    return found


def told(codec: Client, *events: str, over: bool = False) -> Step:
    """Return what events lead to, and the end of them where they are over."""
    return hear(codec, [Binary(one.encode()) for one in events] + [Ended()] * over)


def failed(message: str, kind: FaultKind = "server") -> Fault:
    return Fault(kind, retryable=True, message=message)


def generating(data: Any) -> str:
    return event("process_generating", data)


def completed(data: Any, **more: Any) -> str:
    return event("process_completed", data, **more)

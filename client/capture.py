"""What one session leaves behind: the rows of its raw log and the audio of its reply."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from voxmeter.endpoints.codec import (
    Binary,
    Ended,
    Fetched,
    Message,
    Published,
    Request,
    Response,
    Text,
)
from voxmeter.endpoints.events import Event, FaultKind, ReplyAudio

Outcome = Literal["ended", "timeout", "truncated", "refused", "disconnected", "protocol_error"]

_TYPE = re.compile(r'"(?:type|event)"\s*:\s*"([^"\\]{1,60})"')
_NAMES = ("type", "event")
_PARSED = 16_384  # longer messages carry a payload; parsing one again would cost too much
_NEAR = 400
_LONGEST_NAME = 120
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Utterance:
    """The question as it is sent.

    Attributes:
        pcm: 16-bit little-endian mono samples.
        rate: Samples a second.
        onset_sample: First voiced sample.
        end_sample: One past the last voiced sample; the moment it leaves is t0.
        end_kind: `speech`, or `audible` for a clip without speech.
    """

    pcm: bytes
    rate: int
    onset_sample: int
    end_sample: int
    end_kind: str = "speech"

    @property
    def samples(self) -> int:
        """Length in samples."""
        return len(self.pcm) // 2


@dataclass(slots=True)
class Capture:
    """Everything of one attempt, still as it came; small enough to hand to another process.

    Attributes:
        outcome: How the session ended; whether an ended reply was audible is found later.
        fault: What went wrong, in one line, None when nothing did.
        rows: The raw log (scoring/log.py), header first once the question was reached.
        audio: (index into rows, encoded bytes) of every piece of reply audio.
        raw: (index into rows, text) of the messages worth keeping whole.
        utterance: What was sent.
        connect_ms: From the first packet to `Ready`, ms.
        rtt_ms: Round-trip time of the open connection, ms, where the peer tells.
        lags: (due in ns, lateness in ms) of the event loop's wake-ups during the attempt.
        reply_text: The model's own text of the answer.
        usage: What the endpoint counted, summed.
        ended_ns: When the session was over.
        retryable: Whether asking again later can help, of a session that was refused.
        retry_after_s: How long the endpoint asks us to wait before; None where it names no time.
        refusal: Whose rule a refused session met; None where that is not known.
        decoded_rate: Where `audio` is 16-bit samples already, whatever came: samples a second.
    """

    outcome: Outcome
    fault: str | None
    rows: list[dict[str, Any]]
    audio: list[tuple[int, bytes]]
    raw: list[tuple[int, str]]
    utterance: Utterance | None
    connect_ms: float | None = None
    rtt_ms: float | None = None
    lags: list[tuple[int, float]] = field(default_factory=list)
    reply_text: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    ended_ns: int = 0
    retryable: bool = False
    retry_after_s: float | None = None
    refusal: FaultKind | None = None
    decoded_rate: int | None = None


class Recorder:
    """Collects rows while a session runs; cheap enough for the event loop."""

    def __init__(self) -> None:
        self.header: dict[str, Any] = {"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}
        self.rows: list[dict[str, Any]] = [self.header]
        self.audio: list[tuple[int, bytes]] = []
        self.raw: list[tuple[int, str]] = []

    def frame(self, t_ns: int, due_ns: int, size: int, samples: int, *, burst: bool) -> None:
        """Note one paced frame; `burst` when the next one was due as well."""
        row = {
            "t_ns": t_ns,
            "dir": "out",
            "due_ns": due_ns,
            "kind": "audio",
            "bytes": size,
            "samples": samples,
        }
        if burst:
            row["burst"] = True
        self.rows.append(row)

    def sent(self, t_ns: int, kind: str, message: Message | None, **more: Any) -> None:  # noqa: ANN401 - fields of a JSON row
        """Note any other message that we sent."""
        row = {"t_ns": t_ns, "dir": "out", "kind": kind, "bytes": size_of(message), **more}
        if message is not None and kind == "message":
            row["name"] = name_of(message)
            self._keep(message)
        self.rows.append(row)

    def received(self, t_ns: int, message: Message, events: tuple[Event, ...]) -> None:
        """Note one message and what it meant."""
        size = size_of(message)
        if not any(isinstance(event, ReplyAudio) for event in events):
            self._keep(message)
        if not events and not isinstance(message, Ended):
            self.rows.append(
                {
                    "t_ns": t_ns,
                    "dir": "in",
                    "kind": "message",
                    "bytes": size,
                    "name": name_of(message),
                }
            )
        for event in events:
            row: dict[str, Any] = {"t_ns": t_ns, "dir": "in", "kind": kind_of(event), "bytes": size}
            size = 0
            for item in fields(event):
                if item.name != "data":
                    row["fault_kind" if item.name == "kind" else item.name] = getattr(
                        event, item.name
                    )
            if isinstance(event, ReplyAudio):
                self.audio.append((len(self.rows), event.data))
            self.rows.append(row)

    def _keep(self, message: Message) -> None:
        """Keep what can be read: text, and JSON that some services send in binary messages."""
        if isinstance(message, Text):
            self.raw.append((len(self.rows), message.data))
            return
        data = message.payload if isinstance(message, Published) else b""
        data = message.data if isinstance(message, Binary) else data
        if data.startswith(b"{"):
            with suppress(UnicodeDecodeError):
                self.raw.append((len(self.rows), data.decode("utf-8")))


def kind_of(event: Event) -> str:
    """Return an event's name as rows spell it: `ReplyAudio` is `reply_audio`."""
    return _WORD.sub("_", type(event).__name__).lower()


def size_of(message: Message | None) -> int:
    """Return the size of a message's payload, bytes."""
    match message:
        case Text(data):
            return len(data.encode("utf-8", errors="replace")) if not data.isascii() else len(data)
        case Binary(data):
            return len(data)
        case Published(payload=payload):
            return len(payload)
        case Request(body) | Fetched(body=body):
            return len(body)
        case _:
            return 0


def name_of(message: Message) -> str:
    """Return what a message calls itself: the `type` or `event` of its outermost object."""
    match message:
        case Text(data):
            return _text_name(data)
        case Published(topic):
            return topic
        case Request(_, _, method, path):
            return f"{method} {path}".strip()
        case Fetched(aside, status):
            return f"{aside} {status}"[:_LONGEST_NAME]
        case Response(status, headers):
            return f"response {status} {headers.get('content-type', '')}".strip()[:_LONGEST_NAME]
        case _:
            return "binary"


def _text_name(text: str) -> str:
    if len(text) <= _PARSED:
        with suppress(ValueError, RecursionError):
            whole = json.loads(text)
            names = [whole.get(key) for key in _NAMES] if isinstance(whole, dict) else []
            return next((name[:60] for name in names if isinstance(name, str) and name), "text")
    # A long message may say its name behind its payload; the protocols' own names have a dot,
    # those of objects inside them have none.
    near = _TYPE.findall(text[:_NEAR]) + _TYPE.findall(text[-_NEAR:])
    return next((name for name in near if "." in name), near[0] if near else "text")

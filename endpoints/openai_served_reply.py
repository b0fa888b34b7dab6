"""One reply of a served session: its events in order, and what was sent of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from voxmeter.endpoints import g711
from voxmeter.endpoints.codec import Message, Text
from voxmeter.endpoints.openai_dialect import Dialect, Format, event_name, text_type
from voxmeter.endpoints.openai_served_session import Object

_INPUT_TOKEN_MS, _OUTPUT_TOKEN_MS = 100, 50
"""How the hosted service counts audio: a token for 100 ms heard, a token for 50 ms said."""


class Wire:
    """Makes the server's events: ids that count up, names in the client's spelling."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.dialect: Dialect = "ga"

    def id(self, kind: str) -> str:
        """Return the next id of a kind (`item`, `resp`, `event`)."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}_{self._counts[kind]:06d}"

    def event(self, name: str, **fields: object) -> Text:
        """Return one event by its GA name."""
        told = {"type": event_name(name, self.dialect), "event_id": self.id("event"), **fields}
        return Text(json.dumps(told, separators=(",", ":")))

    def item(self, item: Object, previous: str | None) -> Sequence[Message]:
        """Return what tells of an item that is complete; the older spelling has one event of it."""
        both = self.event("conversation.item.added", item=item, previous_item_id=previous)
        if self.dialect == "legacy":
            return [both]
        return [both, self.event("conversation.item.done", item=item, previous_item_id=previous)]


@dataclass(slots=True)
class Counted:
    """What a reply answers, for its usage."""

    heard_ms: float = 0.0
    words: int = 0


class Reply:
    """One reply under way.

    Attributes:
        id: Its `response_id`.
        item_id: Of the assistant's item.
        sent_ms: Audio that was sent of it, ms.
        cancelled: Whether the client asked to stop it.
    """

    def __init__(
        self, wire: Wire, output: Format, modality: str, previous: str | None, counted: Counted
    ) -> None:
        self._wire = wire
        self._output = output
        self._modality = modality
        self._previous = previous
        self._counted = counted
        self._text: list[str] = []
        self._spare = b""
        self.id = wire.id("resp")
        self.item_id = wire.id("item")
        self.sent_ms = 0.0
        self.cancelled = False
        self._at: Object = {"response_id": self.id, "output_index": 0}

    @property
    def text(self) -> str:
        """Return the words that were sent of it."""
        return "".join(self._text)

    def start(self) -> Sequence[Message]:
        """Return the events up to the first piece."""
        tell, item = self._wire.event, self._item("in_progress", empty=True)
        at: Object = {"item_id": self.item_id, **self._at, "content_index": 0}
        return [
            tell("response.created", response=self.response("in_progress", [])),
            tell("response.output_item.added", **self._at, item=item),
            tell("conversation.item.added", item=item, previous_item_id=self._previous),
            tell("response.content_part.added", **at, part=self._part("")),
        ]

    def audio(self, pcm: bytes) -> Sequence[Message]:
        """Return the event of one piece of speech; none where replies are text."""
        if self._modality == "text":
            return []
        data = self._encoded(pcm)
        if not data:
            return []
        self.sent_ms += len(data) / self._output.bytes_per_ms
        return [self._content("response.output_audio.delta", delta=_base64(data))]

    def words(self, text: str) -> Sequence[Message]:
        """Return the event of one piece of text."""
        if not text:
            return []
        self._text.append(text)
        kind = "text" if self._modality == "text" else "audio_transcript"
        return [self._content(f"response.output_{kind}.delta", delta=text)]

    def end(self, reason: Literal["completed", "cancelled", "incomplete"]) -> Sequence[Message]:
        """Return the events that close the reply and everything in it."""
        item = self._item("completed" if reason == "completed" else "incomplete")
        tell = self._wire.event
        messages = [
            *self._closers(),
            self._content("response.content_part.done", part=self._part(self.text)),
        ]
        if self._wire.dialect == "ga":
            messages.append(
                tell("conversation.item.done", item=item, previous_item_id=self._previous)
            )
        response = self.response(reason, [item], self._details(reason))
        return [
            *messages,
            tell("response.output_item.done", **self._at, item=item),
            tell("response.done", response=response),
        ]

    def _closers(self) -> Sequence[Message]:
        if self._modality == "text":
            return [self._content("response.output_text.done", text=self.text)]
        return [
            self._content("response.output_audio.done"),
            self._content("response.output_audio_transcript.done", transcript=self.text),
        ]

    def response(self, status: str, output: Sequence[Object], details: object = None) -> Object:
        """Return the response object as it stands."""
        usage = None if status == "in_progress" else self._usage()
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": details,  # type: ignore[dict-item]
            "output": [*output],
            "usage": usage,
        }

    def _details(self, reason: str) -> Object | None:
        if reason == "cancelled":
            why = "client_cancelled" if self.cancelled else "turn_detected"
            return {"type": "cancelled", "reason": why}
        if reason == "incomplete":
            return {"type": "incomplete", "reason": "max_output_tokens"}
        return None

    def _usage(self) -> Object:
        """Return counts by the hosted service's rule for audio; text counts its words."""
        heard = int(self._counted.heard_ms // _INPUT_TOKEN_MS)
        said = int(self.sent_ms // _OUTPUT_TOKEN_MS)
        words = len(self.text.split())
        inward, outward = heard + self._counted.words, said + words
        return {
            "total_tokens": inward + outward,
            "input_tokens": inward,
            "output_tokens": outward,
            "input_token_details": {
                "text_tokens": self._counted.words,
                "audio_tokens": heard,
                "cached_tokens": 0,
            },
            "output_token_details": {"text_tokens": words, "audio_tokens": said},
        }

    def _item(self, status: str, *, empty: bool = False) -> Object:
        """Return the assistant's item; its audio is never told again."""
        kind = text_type("assistant", self._wire.dialect)
        content: Object = {"type": kind, "text": self.text}
        if self._modality == "audio":
            kind = "audio" if self._wire.dialect == "legacy" else "output_audio"
            content = {"type": kind, "transcript": self.text}
        return {
            "id": self.item_id,
            "object": "realtime.item",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [] if empty else [content],
        }

    def _part(self, text: str) -> Object:
        if self._modality == "text":
            return {"type": "text", "text": text}
        return {"type": "audio", "transcript": text}

    def _content(self, name: str, **fields: object) -> Text:
        at = {"item_id": self.item_id, **self._at, "content_index": 0}
        return self._wire.event(name, **at, **fields)

    def _encoded(self, pcm: bytes) -> bytes:
        encode: Callable[[bytes], bytes] | None = {
            "pcmu": g711.encode_ulaw,
            "pcma": g711.encode_alaw,
        }.get(self._output.encoding)
        if encode is None:
            return pcm
        pcm = self._spare + pcm
        whole = len(pcm) & ~1
        self._spare = pcm[whole:]
        return encode(pcm[:whole])


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

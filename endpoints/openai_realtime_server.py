"""OpenAI Realtime, the server's side: GA shape, or the beta shape for a client that uses it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Literal

from voxmeter.endpoints.codec import Ended, Message, TurnEnd
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.openai_dialect import PROTOCOL
from voxmeter.endpoints.openai_served_items import Conversation, Item, read_item, samples
from voxmeter.endpoints.openai_served_reply import Counted, Reply, Wire
from voxmeter.endpoints.openai_served_session import Object, Session, read_modality
from voxmeter.endpoints.serving import (
    ClientLeft,
    HistoryRemoved,
    ReplyCancelled,
    ReplyRequested,
    ReplyTruncated,
    ServerStep,
    TurnCommitted,
    UserCleared,
)

MIN_COMMIT_MS = 100

_ERROR_TYPES: dict[FaultKind, str] = {
    "auth": "authentication_error",
    "quota": "insufficient_quota",
    "policy": "content_policy_violation",
    "busy": "rate_limit_error",
    "request": "invalid_request_error",
    "server": "server_error",
}


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Refused(Exception):  # noqa: N818 - a reply to the client, not a fault of this program
    """What the client asked for cannot be; the session lives on."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        self.code = code
        self.param = param
        super().__init__(message)


class Server:
    """One served session of OpenAI Realtime; see `ServerCodec` for its verbs."""

    def __init__(self) -> None:
        self._wire = Wire()
        self._session = Session(f"sess_{uuid.uuid4().hex}")
        self._items = Conversation()
        self._reply: Reply | None = None
        self._asked: str | None = None
        self._owed = False
        self._open_item: str | None = None
        self._last_item: str | None = None
        self._buffered_ms = 0.0
        self._turn_ms = 0.0
        self._started_ms = 0
        self._readers: dict[str, Callable[[Fields], ServerStep]] = {
            "session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
            "conversation.item.create": self._create_item,
            "conversation.item.delete": self._delete_item,
            "conversation.item.retrieve": self._retrieve_item,
            "conversation.item.truncate": self._truncate_item,
            "response.create": self._request,
            "response.cancel": self._cancel,
        }

    @property
    def input_rate(self) -> int:
        """Samples a second that the client sends."""
        return self._session.input.rate

    @property
    def output_rate(self) -> int:
        """Samples a second that `reply_audio` takes."""
        return self._session.output.rate

    @property
    def turn_end(self) -> TurnEnd:
        """How this session's turns are closed."""
        return self._session.turn_end

    def open(self) -> ServerStep:
        """Greet with `session.created`."""
        return ServerStep(messages=[self._tell("session.created", session=self._session.json())])

    def receive(self, message: Message) -> ServerStep:
        """Return what one client event stands for; what it cannot mean is told as an error."""
        if isinstance(message, Ended):
            return ServerStep([ClientLeft()])
        event_id: str | None = None
        try:
            asked = parse_object(PROTOCOL, message)
            event_id = asked.text("event_id") if asked.has("event_id") else None
            return self._reader(asked.text("type"))(asked)
        except ProtocolError as error:
            code = "invalid_json" if error.problem.startswith("not ") else "invalid_value"
            return self._error(code, error.problem, None, event_id)
        except Refused as refused:
            return self._error(refused.code, str(refused), refused.param, event_id)

    def _reader(self, kind: str) -> Callable[[Fields], ServerStep]:
        if kind not in self._readers:
            known = ", ".join(self._readers)
            problem = f"Unknown event type {kind[:60]!r}; known are {known}."
            raise Refused("invalid_value", problem, "type")
        return self._readers[kind]

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user began to speak; the item of this turn gets its name."""
        self._open_item, self._started_ms = self._wire.id("item"), audio_ms
        told = {"audio_start_ms": audio_ms, "item_id": self._open_item}
        return [self._tell("input_audio_buffer.speech_started", **told)]

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user stopped, and that the turn is closed and part of the conversation."""
        item_id = self._open_item or self._wire.id("item")
        told = {"audio_end_ms": audio_ms, "item_id": item_id}
        self._owed = self._session.auto_reply
        return [
            self._tell("input_audio_buffer.speech_stopped", **told),
            *self._close_turn(item_id, max(0, audio_ms - self._started_ms)),
        ]

    def input_transcript(self, text: str) -> Sequence[Message]:
        """Say what the user was heard to say, if the client asked to be told."""
        item = None if self._last_item is None else self._items.get(self._last_item)
        if item is None:
            return []
        item.text = text
        if self._session.transcription is None:
            return []
        usage = {"type": "duration", "seconds": round(self._turn_ms / 1000, 3)}
        told = {"item_id": item.id, "content_index": 0, "transcript": text, "usage": usage}
        return [self._tell("conversation.item.input_audio_transcription.completed", **told)]

    def reply_started(self) -> Sequence[Message]:
        """Open a reply; one still open is closed as incomplete."""
        before = [] if self._reply is None else [*self.reply_ended("incomplete")]
        modality = self._asked or self._session.modality
        item = None if self._last_item is None else self._items.get(self._last_item)
        counted = Counted(self._turn_ms, 0 if item is None else len(item.text.split()))
        reply = Reply(self._wire, self._session.output, modality, self._items.last, counted)
        self._reply, self._asked, self._owed = reply, None, False
        return [*before, *reply.start()]

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send samples of the reply; a reply of text alone has none."""
        return [] if self._reply is None else self._reply.audio(pcm)

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send a piece of the reply's own text."""
        return [] if self._reply is None else self._reply.words(text)

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """Close the reply and everything in it."""
        if self._reply is None:
            return []
        reply, self._reply = self._reply, None
        item = Item(reply.item_id, "assistant", reply.text, reply.sent_ms or None)
        self._items.add(item)
        return reply.end(reason)

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Tell of a failure: of the reply under way or owed, or else of the session."""
        error: Object = {"type": _ERROR_TYPES[kind], "code": code, "message": message}
        if self._reply is None and not self._owed:
            told = {**error, "param": None, "event_id": None}
            return [self._tell("error", error=told)]
        return self._end_bare("failed", {"type": "failed", "error": error})

    def _end_bare(self, status: str, details: Object) -> Sequence[Message]:
        """End the reply under way, or one that was only owed, without its usual closing events."""
        begun = [] if self._reply is not None else self.reply_started()[:1]
        reply, self._reply = self._reply, None
        assert reply is not None  # noqa: S101 - just started, if it was not there
        response = reply.response(status, [], details)
        return [*begun, self._tell("response.done", response=response)]

    def _update(self, asked: Fields) -> ServerStep:
        changed = self._session.update(asked.object("session"))
        self._wire.dialect = self._session.dialect
        told = self._tell("session.updated", session=self._session.json())
        return ServerStep([changed], [told])

    def _append(self, asked: Fields) -> ServerStep:
        said, heard = samples(asked, self._session.input), self._session.input
        self._buffered_ms += len(said.data) / heard.bytes_per_ms
        return ServerStep([said] if said.data else [])

    def _commit(self, asked: Fields) -> ServerStep:
        if self._buffered_ms < MIN_COMMIT_MS:
            found = f"has {self._buffered_ms:.1f} ms"
            problem = f"The buffer {found} of audio; at least {MIN_COMMIT_MS} ms can be committed."
            raise Refused("input_audio_buffer_commit_empty", problem)
        item_id = self._open_item or self._wire.id("item")
        return ServerStep([TurnCommitted()], self._close_turn(item_id, self._buffered_ms))

    def _close_turn(self, item_id: str, turn_ms: float) -> Sequence[Message]:
        self._turn_ms, self._buffered_ms = turn_ms, 0.0
        self._open_item, self._last_item = None, item_id
        item = Item(item_id, "user", audio_ms=self._turn_ms)
        previous = self._items.add(item)
        told = {"item_id": item_id, "previous_item_id": previous}
        return [
            self._tell("input_audio_buffer.committed", **told),
            *self._wire.item(item.json(self._wire.dialect), previous),
        ]

    def _clear(self, asked: Fields) -> ServerStep:
        self._buffered_ms, self._open_item = 0.0, None
        return ServerStep([UserCleared()], [self._tell("input_audio_buffer.cleared")])

    def _create_item(self, asked: Fields) -> ServerStep:
        given = asked.object("item")
        item_id = given.text("id", "") or self._wire.id("item")
        if self._items.get(item_id) is not None:
            raise Refused("item_exists", f"There is an item {item_id[:60]!r} already.", "item.id")
        item, added = read_item(given, item_id, self._session.input)
        after = asked.text("previous_item_id") if asked.has("previous_item_id") else None
        try:
            previous = self._items.add(item, after)
        except KeyError:
            raise _no_item(after or "", "previous_item_id") from None
        if item.role == "user":
            self._last_item, self._turn_ms = item_id, item.audio_ms or 0.0
        return ServerStep([added], self._wire.item(item.json(self._wire.dialect), previous))

    def _delete_item(self, asked: Fields) -> ServerStep:
        item_id = asked.text("item_id")
        if not self._items.remove(item_id):
            raise _no_item(item_id, "item_id")
        told = self._tell("conversation.item.deleted", item_id=item_id)
        return ServerStep([HistoryRemoved(item_id)], [told])

    def _retrieve_item(self, asked: Fields) -> ServerStep:
        item = self._items.get(asked.text("item_id"))
        if item is None:
            raise _no_item(asked.text("item_id"), "item_id")
        told = self._tell("conversation.item.retrieved", item=item.json(self._wire.dialect))
        return ServerStep(messages=[told])

    def _truncate_item(self, asked: Fields) -> ServerStep:
        item_id, heard_ms = asked.text("item_id"), asked.whole("audio_end_ms")
        sent_ms = self._sent_ms(item_id)
        if not 0 <= heard_ms <= sent_ms:
            problem = f"Audio of {sent_ms:.0f} ms cannot be truncated to {heard_ms} ms."
            raise Refused("invalid_value", problem, "audio_end_ms")
        index = asked.whole("content_index", 0)
        told = {"item_id": item_id, "content_index": index, "audio_end_ms": heard_ms}
        message = self._tell("conversation.item.truncated", **told)
        return ServerStep([ReplyTruncated(heard_ms)], [message])

    def _sent_ms(self, item_id: str) -> float:
        """Return how much audio an assistant's item has, ms; the one being sent counts too."""
        if self._reply is not None and self._reply.item_id == item_id:
            return self._reply.sent_ms
        item = self._items.get(item_id)
        if item is None:
            raise _no_item(item_id, "item_id")
        if item.role != "assistant" or item.audio_ms is None:
            problem = "Only the audio of an assistant's item can be truncated."
            raise Refused("invalid_value", problem, "item_id")
        return item.audio_ms

    def _request(self, asked: Fields) -> ServerStep:
        if self._reply is not None or self._owed:
            problem = "The conversation has an active response already; wait for response.done."
            raise Refused("conversation_already_has_active_response", problem)
        response = asked.object("response")
        modality = read_modality(response, self._session.modality)
        told = response.text("instructions") if response.has("instructions") else None
        self._asked, self._owed = modality, True
        return ServerStep([ReplyRequested(told)])

    def _cancel(self, asked: Fields) -> ServerStep:
        wanted = asked.text("response_id", "")
        if self._reply is None and self._owed and not wanted:
            why: Object = {"type": "cancelled", "reason": "client_cancelled"}
            return ServerStep([ReplyCancelled()], self._end_bare("cancelled", why))
        if self._reply is None or wanted not in ("", self._reply.id):
            raise Refused("response_cancel_not_active", "There is no such active response.")
        self._reply.cancelled = True
        return ServerStep([ReplyCancelled()])

    def _tell(self, name: str, **fields: object) -> Message:
        return self._wire.event(name, **fields)

    def _error(
        self, code: str, message: str, param: str | None, event_id: str | None
    ) -> ServerStep:
        error = {"type": "invalid_request_error", "code": code, "message": message}
        told = self._tell("error", error={**error, "param": param, "event_id": event_id})
        return ServerStep(messages=[told])


def _no_item(item_id: str, param: str) -> Refused:
    return Refused("item_not_found", f"There is no item {item_id[:60]!r}.", param)

"""OpenAI Realtime, the client's side: GA shape by default, both spellings understood on receive.

How it is known: the types of the `openai` package 3.57, recorded sessions with a third-party server
(speech-to-speech 1.1.0), and public reports; the address and a few error codes from documentation.
What relatives of it do otherwise, and how that is known, stands in their presets.
"""

from __future__ import annotations

import json

from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Json,
    Message,
    Settings,
    Step,
    Text,
    Traits,
    Turn,
)
from voxmeter.endpoints.events import Closed, Event, Ready
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.kind import Kind
from voxmeter.endpoints.openai_address import address
from voxmeter.endpoints.openai_dialect import (
    LEGACY_EVENTS,
    NO_DETECTION,
    PROTOCOL,
    read_format,
    text_type,
)
from voxmeter.endpoints.openai_faults import close_fault, error_fault
from voxmeter.endpoints.openai_options import Object, Wanted, read
from voxmeter.endpoints.openai_replies import Replies
from voxmeter.endpoints.openai_session_update import update
from voxmeter.endpoints.openai_wrapping import encoded, wrapped

MIN_COMMIT_MS = 100
"""A shorter buffer may not be committed."""
HEARD_MARGIN_MS = 100
"""The server's own count of an item may be this much shorter than the bytes that it sent."""
SHOWN = 80
"""How much of a name of the server's is noted."""
NO_TEMPERATURE = {"ga": "GA sessions have none", "bare": "only `session` can carry it"}
"""Why a temperature is not sent."""
_CLOSES_ITSELF = "the server closes turns itself, with turn detection off; set turn_end = 'silence'"

_NAMES = {
    "session.update": "session.update",
    "append": "input_audio_buffer.append",
    "commit": "input_audio_buffer.commit",
    "item": "conversation.item.create",
    "truncate": "conversation.item.truncate",
    "response.create": "response.create",
    "response.cancel": "response.cancel",
}
"""Our short name of a client event -> its type. The short name begins the event's id."""

KIND = Kind(
    name="openai-realtime",
    about="OpenAI Realtime and its relatives: Azure, xAI, Qwen, GLM, StepFun, vLLM-Omni, Unmute",
    codec="voxmeter.endpoints.openai_realtime:client",
    server="voxmeter.endpoints.openai_realtime_server:server",
    path="/v1/realtime",
    query_keys=("model", "intent", "call_id", "deployment", "api-version"),
    key_names=("api-key",),
    known_by="types of the openai package 3.57, recorded sessions with speech-to-speech 1.1.0, "
    "public reports; the hosted service's address and some error codes from documentation only; "
    "its relatives as their presets say",
    docs="docs/endpoints/openai-realtime.md",
    options_at="voxmeter.endpoints.openai_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    return Client(read(settings))


class Client:
    """One session of OpenAI Realtime; see `Codec` for its verbs."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._session_update = update(wanted)
        self._ready = False
        self._explained = False
        self._sent = 0
        self._audio_ms = 0.0
        self._appended = False
        self._written = False
        self._commits = 0
        self._question = bytearray()
        self._replies = Replies(
            wanted.output,
            interrupts=wanted.interrupt_response,
            has_responses=wanted.has_responses,
        )

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        wanted = self._wanted
        return Traits(
            input_rate=wanted.input.rate,
            input_encoding=wanted.input.encoding,
            frame_ms=wanted.frame_ms,
            turn_end=wanted.turn_end,
            first_speaker="endpoint" if wanted.greets else "user",
            history=wanted.has_items and wanted.input.encoding != "opus",
            takes_text=wanted.has_items,
            min_turn_ms=MIN_COMMIT_MS if wanted.turn_end == "commit" else 0,
            reply_channel="text" if wanted.modality == "text" else "speech",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect: the model in the query, the key in a header.

        Raises:
            UserError: If it is not a URL of a websocket, or the key cannot stand in a header.
        """
        return address(url, api_key, self._wanted)

    def open(self) -> Step:
        """Ask for the session; `Ready` comes when the server confirms it, where it ever does."""
        asked = self._send(("session.update", self._session_update))
        if self._wanted.ready == "sent":
            return Step(self._now_ready({}), asked.messages)
        return asked

    def turn(self, turn: Turn) -> Step:
        """Add one earlier turn; a user's audio goes before its text, an assistant has text only."""
        wanted = self._wanted
        if not self.traits.history:
            return Step()
        content: Object = {"type": text_type(turn.role, wanted.dialect), "text": turn.text}
        if turn.role == "user" and turn.pcm:
            said = wrapped(encoded(turn.pcm, wanted), wanted)
            content = {"type": "input_audio", "audio": said}
        elif not turn.text:
            return Step()
        return self._send(("item", {"item": _item(turn.role, content)}))

    def audio(self, data: bytes) -> Step:
        """Send one frame, or keep it for the one request."""
        if not data:
            return Step()
        opens = self._wanted.commit == "turns" and not self._appended
        self._appended = True
        if self._wanted.turn_end == "request":
            self._question += data
            return Step()
        opening = self._send(("commit", {"final": False})).messages if opens else ()
        step = Step(messages=[*opening, self._append(wrapped(data, self._wanted))])
        self._audio_ms += len(data) / self._wanted.input.bytes_per_ms
        return step

    def text(self, text: str) -> Step:
        """Add a written question, or a part of one, to this turn."""
        if not self._wanted.has_items:
            return Step()
        self._written = True
        content: Object = {"type": "input_text", "text": text}
        return self._send(("item", {"item": _item("user", content)}))

    def end_turn(self) -> Step:
        """Commit and ask for a reply; nothing, where the server closes turns by itself."""
        wanted = self._wanted
        asked: list[tuple[str, Object]] = []
        if self._appended and wanted.turn_end == "request":
            content: Object = {"type": "input_audio", "audio": wrapped(self._question, wanted)}
            asked = [("item", {"item": _item("user", content)})]
        elif self._appended and wanted.turn_end == "commit":
            asked = [("commit", {"final": True} if wanted.commit == "turns" else {})]
            self._commits += 1
        elif not self._written or self._appended:
            return Step()
        if wanted.commit == "ask" and wanted.has_responses:
            asked.append(("response.create", {}))
        self._question.clear()
        self._appended = self._written = False
        return self._send(*asked)

    def played(self, reply: str) -> Step:
        """Say nothing: this protocol has no word for it."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Stop the reply under way, and cut the newest reply to what was heard of it."""
        asked: list[tuple[str, Object]] = []
        active = self._replies.active
        if not self._wanted.has_responses:
            self._replies.drop_active()
            return Step()
        if active is not None:
            asked.append(("response.cancel", {"response_id": active} if active else {}))
            self._replies.drop_active()
        item = self._replies.item
        if item is not None and item.id:
            heard = max(0, min(heard_ms, int(item.sent_ms) - HEARD_MARGIN_MS))
            where: Object = {"item_id": item.id, "content_index": item.content_index}
            asked.append(("truncate", {**where, "audio_end_ms": heard}))
        return self._send(*asked)

    def close(self) -> Step:
        """Say nothing: closing the connection is enough."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one server event stands for; events of unknown types stand for nothing."""
        if isinstance(message, Ended):
            # A close explains nothing any more once a reply came or a fault was told.
            fault = None if self._explained or self._replies.any_came else close_fault(message)
            closed = Closed(message.code, message.reason)
            return Step([closed] if fault is None else [fault, closed])
        told = parse_object(PROTOCOL, message)
        kind = told.text("type")
        if kind in self._wanted.ignored:
            return Step()
        match LEGACY_EVENTS.get(kind, kind):
            case "session.created" if self._wanted.ready == "created":
                return Step(self._now_ready(told.object("session").data))
            case "session.updated":
                return Step(self._updated(told.object("session")))
            case "error":
                fault = error_fault(told, self._named, ready=self._ready)
                self._explained = self._explained or fault.fatal
                return Step([fault])
            case "input_audio_buffer.committed":
                return self._committed(told)
            case name:
                return Step(self._replies.receive(name, told))

    def _updated(self, session: Fields) -> list[Event]:
        """Check that the session is what was asked for: a wrong rate only sounds wrong."""
        for side, asked in (("input", self._wanted.input), ("output", self._wanted.output)):
            agreed = read_format(session, "input" if side == "input" else "output", asked)
            if agreed != asked and not (side == "output" and self._wanted.modality == "text"):
                cure = f"set {side}_rate and {side}_encoding to match"
                raise session.problem(f"the server takes {side} as {agreed}, not {asked}; {cure}")
        self._check_detection(session)
        return self._now_ready(session.data)

    def _now_ready(self, session: Object) -> list[Event]:
        if self._ready:
            return []
        self._ready = True
        names = {name: session.get(name) for name in ("id", "model")}
        said = [f"{k} {clean(v)[:SHOWN]}" for k, v in names.items() if isinstance(v, str)]
        if self._wanted.settings.temperature is not None and self._wanted.shape != "legacy":
            said.append(f"temperature was not sent: {NO_TEMPERATURE[self._wanted.shape]}")
        return [Ready(note="; ".join(said))]

    def _check_detection(self, session: Fields) -> None:
        place = session if "turn_detection" in session.data else session.object("audio")
        place = place if place is session else place.object("input")
        if "turn_detection" not in place.data:
            return
        detection = place.object("turn_detection")
        none = not detection.data or detection.text("type", "") in NO_DETECTION
        if self._wanted.turn_end == "silence" and none and self._wanted.has_items:
            raise session.problem("the server has no turn detection; set turn_end = 'commit'")
        if self._wanted.turn_end == "commit" and not none:
            raise session.problem(_CLOSES_ITSELF)

    def _committed(self, told: Fields) -> Step:
        """Ask for the reply to a turn that the server closed, where it was told not to begin."""
        wanted = self._wanted
        if wanted.turn_end == "commit":
            if not self._commits:  # whatever it confirmed, it did not turn its detection off
                raise told.problem(_CLOSES_ITSELF)
            self._commits -= 1
            return Step()
        self._appended = self._written = False
        if wanted.turn_end == "silence" and not wanted.create_response:
            return self._send(("response.create", {}))
        return Step()

    def _send(self, *asked: tuple[str, Object]) -> Step:
        messages = []
        for name, fields in asked:
            self._sent += 1
            event: Object = {"type": _NAMES[name], "event_id": f"{name}-{self._sent}", **fields}
            if self._wanted.timestamp:
                event[self._wanted.timestamp] = int(self._audio_ms)
            messages.append(Text(json.dumps(event, separators=(",", ":"))))
        return Step(messages=messages)

    def _append(self, audio: str) -> Text:
        """Return what `_send` would, put together by hand: it is sent fifty times a second."""
        self._sent += 1
        key = self._wanted.timestamp
        stamp = f",{json.dumps(key)}:{int(self._audio_ms)}" if key else ""
        name = _NAMES["append"]
        return Text(
            f'{{"type":"{name}","event_id":"append-{self._sent}","audio":"{audio}"{stamp}}}'
        )

    def _named(self, event_id: str) -> str | None:
        """Return which kind of message of ours an id is of; None for the server's own ids."""
        name, _, number = event_id.rpartition("-")
        ours = name in _NAMES and number.isdecimal() and len(number) < 20
        return name if ours and 0 < int(number) <= self._sent else None


def _item(role: str, content: Object) -> Json:
    return {"type": "message", "role": role, "content": [content]}

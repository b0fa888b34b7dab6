"""Gemini Live (BidiGenerateContent), the client's side: Google AI, Vertex AI, and what speaks so.

How it is known: the types and the client of the `google-genai` package 3.6, Google's documentation,
and public reports of sessions, of errors and of what closes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs, urlencode, urlunsplit

from voxmeter.endpoints.addresses import checked_key, is_this_machine, websocket_parts
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
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    Note,
    Ready,
    SpeechStarted,
    SpeechStopped,
)
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.gemini_live_faults import close_fault, error_fault
from voxmeter.endpoints.gemini_live_options import Wanted, read
from voxmeter.endpoints.gemini_live_replies import Replies, usage
from voxmeter.endpoints.gemini_live_wire import PROTOCOL, Object, blob, duration_ms, written
from voxmeter.endpoints.kind import Kind

PATH = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
VERTEX_HOST = "aiplatform.googleapis.com"
VERTEX_PATH = "/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"
DEFAULT_URL = "wss://generativelanguage.googleapis.com"
SHOWN = 120
"""How much of a name of the server's is noted."""

_ROLES = {"user": "user", "assistant": "model", "system": "system"}
_QUERY_KEYS = {"query": "key", "access_token": "access_token"}

KIND = Kind(
    name="gemini-live",
    about="Gemini Live: Google AI (an API key), Vertex AI (a bearer token), and gateways to them",
    codec="voxmeter.endpoints.gemini_live:client",
    server="voxmeter.endpoints.gemini_live_server:server",
    path=PATH,
    key_names=("x-goog-api-key", "key", "access_token"),
    known_by="types of the google-genai package 3.6, whose client talks to our server side; "
    "documentation and public reports; the hosted service itself was not tried",
    docs="docs/endpoints/gemini-live.md",
    options_at="voxmeter.endpoints.gemini_live_options:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown or has a value that it cannot have.
    """
    return Client(read(settings))


class Client:
    """One session of Gemini Live; see `Codec` for its verbs."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._ready = False
        self._explained = False
        self._seeding = wanted.seeds
        self._speaking = False
        self._heard = False
        self._written = False
        self._replies = Replies(
            spoken=wanted.spoken, transcribed=wanted.transcribed, end=wanted.reply_end
        )

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return Traits(
            input_rate=self._wanted.input_rate,
            turn_end=self._wanted.turn_end,
            history=True,
            takes_text=True,
            reply_channel="speech" if self._wanted.spoken else "text",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect: Google AI by default, a path only where the URL has none.

        Raises:
            UserError: If it is not a URL, a hosted service gets no model, or the key cannot stand
                in a header.
        """
        headers: dict[str, str] = {}
        query: dict[str, str] = {}
        if api_key:
            key = checked_key(api_key)
            match self._wanted.auth:
                case "bearer":
                    headers["Authorization"] = f"Bearer {key}"
                case "header":
                    headers["x-goog-api-key"] = key
                case where:
                    query[_QUERY_KEYS[where]] = key
        return Address(_address(url or DEFAULT_URL, self._wanted, query), headers)

    def open(self) -> Step:
        """Ask for the session; `Ready` comes when the server has set it up."""
        return _send(setup=self._wanted.setup)

    def turn(self, turn: Turn) -> Step:
        """Add one earlier turn; a user's audio goes before its text, a model has text only."""
        part: Object = {"text": turn.text}
        if turn.role == "user" and turn.pcm:
            part = {"inlineData": blob(turn.pcm, self._wanted.input_rate)}
        elif not turn.text:
            return Step()
        content: Object = {"role": _ROLES[turn.role], "parts": [part]}
        return _send(clientContent={"turns": [content], "turnComplete": False})

    def audio(self, data: bytes) -> Step:
        """Send one frame; where we say that speech begins, that goes before the first."""
        if not data:
            return Step()
        self._heard = True
        sound = Text(written(realtimeInput={"audio": blob(data, self._wanted.input_rate)}))
        return Step(messages=[*self._begin(), sound])

    def text(self, text: str) -> Step:
        """Add a written question, or a part of one, to this turn."""
        if self._wanted.text_inline:
            said = Text(written(realtimeInput={"text": text}))
            return Step(messages=[*self._begin(), said])
        self._written = True
        content: Object = {"role": "user", "parts": [{"text": text}]}
        content = {"turns": [content], "turnComplete": False}
        return Step(messages=[*self._seeded(), Text(written(clientContent=content))])

    def end_turn(self) -> Step:
        """Close the turn; nothing, where the server closes turns by itself."""
        heard, speaking, asked = self._heard, self._speaking, self._written
        self._heard = self._speaking = self._written = False
        self._replies.asked()
        if speaking:
            return _send(realtimeInput={"activityEnd": {}})
        if heard and self._wanted.turn_end == "commit":
            return _send(realtimeInput={"audioStreamEnd": True})
        if asked and not heard:
            return _send(clientContent={"turnComplete": True})
        return Step()

    def played(self, reply: str) -> Step:
        """Say nothing: this protocol has no word for it."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Stop the reply under way: content that asks for nothing interrupts it."""
        if self._replies.open is None:
            return Step()
        self._replies.drop()
        return _send(clientContent={"turnComplete": False})

    def close(self) -> Step:
        """Say nothing: closing the connection is enough."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return what one server message stands for; it may tell several things at once."""
        if isinstance(message, Ended):
            # A close explains nothing any more once a reply came or a fault was told.
            fault = None if self._explained or self._replies.any_came else close_fault(message)
            closed = Closed(message.code, message.reason)
            return Step([closed] if fault is None else [fault, closed])
        told = parse_object(PROTOCOL, message)
        events: list[Event] = []
        if told.has("setupComplete"):
            events += self._set_up(told.object("setupComplete"))
        if told.has("error"):
            self._explained = True
            events.append(error_fault(told.object("error")))
        events += _activity(told)
        for name in ("serverContent", "toolCall"):
            if told.has(name) and not self._ready:
                raise told.problem(f"{name} before setupComplete")
        events += self._replies.content(told.object("serverContent"))
        if told.has("toolCall"):
            events.append(_tool_call(told.object("toolCall")))
        counted = usage(told.object("usageMetadata"))
        return Step([*events, *([] if counted is None else [counted]), *_notes(told)])

    def _set_up(self, told: Fields) -> Sequence[Event]:
        if self._ready:
            return []
        self._ready = True
        session = told.text("sessionId", "")
        return [Ready(note=f"session {session[:SHOWN]}" if session else "")]

    def _begin(self) -> Sequence[Message]:
        """Return what goes before the first input of a turn."""
        before = self._seeded()
        if not self._wanted.bracketed or self._speaking:
            return before
        self._speaking = True
        return [*before, Text(written(realtimeInput={"activityStart": {}}))]

    def _seeded(self) -> Sequence[Message]:
        """Return what ends the history, once, where the server waits for its end."""
        if not self._seeding:
            return []
        self._seeding = False
        return [Text(written(clientContent={"turnComplete": True}))]


def _send(**fields: Json) -> Step:
    return Step(messages=[Text(written(**fields))])


def _activity(told: Fields) -> Sequence[Event]:
    """Return where the server heard speech begin or end, told in either of two ways."""
    signal = told.object("voiceActivity")
    kind = signal.text("type", "") or signal.text("voiceActivityType", "")
    older = told.object("voiceActivityDetectionSignal").text("vadSignalType", "")
    where = duration_ms(signal.text("audioOffset", ""))
    if kind == "ACTIVITY_START" or older == "VAD_SIGNAL_TYPE_SOS":
        return [SpeechStarted(where)]
    if kind == "ACTIVITY_END" or older == "VAD_SIGNAL_TYPE_EOS":
        return [SpeechStopped(where)]
    return []


def _tool_call(told: Fields) -> Fault:
    """Return why nothing more may come: a function was called that nobody here can run."""
    names = [call.text("name", "without a name") for call in told.objects("functionCalls")]
    message = f"the model called functions, which nothing here answers: {', '.join(names)}"
    return Fault("request", retryable=False, message=message[: 2 * SHOWN], fatal=False)


def _notes(told: Fields) -> Sequence[Note]:
    """Return what is worth finding in the log: an end that is announced, a handle to go on from."""
    notes = []
    if told.has("goAway"):
        left = told.object("goAway").text("timeLeft", "an unknown time")
        notes.append(Note("goAway", f"{left[:SHOWN]} left"))
    if told.has("sessionResumptionUpdate"):
        update = told.object("sessionResumptionUpdate")
        handle = update.text("newHandle", "")
        resumable = update.flag("resumable", default=bool(handle))
        notes.append(Note("sessionResumptionUpdate", handle if resumable else "not resumable"))
    return notes


def _address(url: str, wanted: Wanted, secrets: dict[str, str]) -> str:
    parts = websocket_parts(url, PATH)
    host = parts.hostname or ""
    _check_model(host, wanted.model)
    given = parse_qs(parts.query, keep_blank_values=True)
    query = [parts.query] if parts.query else []
    # Foreign servers may refuse query keys that they do not know.
    tagged = is_this_machine(host) if wanted.send_tag is None else wanted.send_tag
    added = secrets | ({"tag": wanted.tag} if wanted.tag and tagged else {})
    query += [urlencode({name: value}) for name, value in added.items() if name not in given]
    path = _path(host, wanted) if parts.path in {"", "/"} else parts.path
    return urlunsplit(parts._replace(path=path, query="&".join(query)))


def _check_model(host: str, model: str) -> None:
    """See that a model is named as Google's own hosts want it."""
    if host.endswith(VERTEX_HOST) and "/" not in model:
        cure = "write projects/PROJECT/locations/LOCATION/publishers/google/models/MODEL"
        raise UserError("model", f"{model!r} is not the whole path that Vertex AI wants", cure)
    if host.endswith(".googleapis.com") and not model:
        raise UserError("model", "is missing", 'name one, such as model = "gemini-3.8-live"')


def _path(host: str, wanted: Wanted) -> str:
    if host.endswith(VERTEX_HOST):
        return VERTEX_PATH
    # Ephemeral tokens are for sessions within what they were made for.
    return f"{PATH}Constrained" if wanted.auth == "access_token" else PATH

"""The seam between protocols and everything else: messages, steps, settings, the Codec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from voxmeter.endpoints.events import Encoding, Event

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
TurnEnd = Literal["silence", "commit", "request"]
"""How a user turn is closed: continued silence (server VAD), an explicit commit, or one request."""
LatencyKind = Literal["server-vad", "commit", "request", "duplex", "text", "live"]


@dataclass(frozen=True, slots=True)
class Text:
    """One whole text message."""

    data: str


@dataclass(frozen=True, slots=True)
class Binary:
    """One whole binary message, or one piece of a streamed body (pieces split anywhere)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Published:
    """One message on a topic.

    Attributes:
        topic: Where.
        payload: What.
        sure: Whether the broker is to confirm it (QoS 1); of what is received, never.
    """

    topic: str
    payload: bytes
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One whole HTTP request. Only sent; one is answered before the next is sent.

    Attributes:
        body: What is sent, as it is sent.
        headers: The protocol's own, such as `Content-Type`; credentials belong in `Address`.
        method: HTTP's verb.
        path: With its query, in place of the one in `Address.url`; "" for that one.
        aside: A name, for a request that waits for no other: it goes at once, on a connection of
            its own, and is answered with one `Fetched` of that name.
    """

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = ""
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """The head of the answer to an accepted HTTP request. Only received.

    Its body follows in `Binary` pieces that are split anywhere, then `Ended`. A refused request is
    an `Ended` with its status alone.

    Attributes:
        status: 200 to 299.
        headers: With names in lower case.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The peer's stream ended: a websocket closed, a response body was complete. Only received.

    Attributes:
        code: Websocket close code, or HTTP status of a refused request; None for a body that ended
            as it should.
        reason: The peer's words.
    """

    code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The whole answer to a `Request` with a name, stamped when it was complete. Only received.

    Attributes:
        aside: The request's name.
        status: HTTP's.
        headers: With names in lower case; none of a refused request.
        body: The whole of it; none of a refused request.
        reason: The peer's words, of a refused request.
    """

    aside: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    reason: str = ""


Message = Text | Binary | Published | Request | Response | Fetched | Ended


@dataclass(frozen=True, slots=True)
class Step:
    """What one input to a codec leads to: events for the driver, messages for the peer."""

    events: Sequence[Event] = ()
    messages: Sequence[Message] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of a conversation, carried as history.

    Attributes:
        role: Who spoke.
        text: The words, where known.
        pcm: 16-bit little-endian mono samples at the codec's input rate, where there is audio.
    """

    role: Literal["user", "assistant", "system"]
    text: str = ""
    pcm: bytes = b""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which question a session puts; for answers that were made elsewhere, never for an endpoint.

    Attributes:
        suite: The suite's name.
        item: The item's id in it.
        condition: Name of what happened to the clip.
        trial: 1 to n; 0 and below are warm-up turns.
    """

    suite: str
    item: str
    condition: str = "clean"
    trial: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is to be, as far as its protocol can carry it.

    Attributes:
        model: The endpoint's own name of the model.
        instructions: System prompt.
        voice: The endpoint's own name of the voice.
        temperature: Sampling temperature; None leaves the endpoint's default.
        input_rate: Samples a second that we send; None is the protocol's default.
        output_rate: Samples a second that we ask for; None is the protocol's default.
        turn_end: How turns are closed; None is the protocol's default.
        session_tag: Our name for this session, sent where the protocol has room for one.
        options: Protocol options from bench.toml that belong to this kind alone.
        asked: The question of this session, where it is one of a suite's.
        lane: Which of the sessions side by side this is, from 0.
    """

    model: str = ""
    instructions: str = ""
    voice: str = ""
    temperature: float | None = None
    input_rate: int | None = None
    output_rate: int | None = None
    turn_end: TurnEnd | None = None
    session_tag: str = ""
    options: Mapping[str, Json] = field(default_factory=dict)
    asked: Asked | None = None
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Traits:
    """What a driver must know of a protocol before it talks.

    Attributes:
        input_rate: Samples a second that `Codec.audio` takes.
        input_encoding: What `Codec.audio` takes; the driver encodes Opus and G.711.
        frame_ms: Length of one paced frame, ms.
        turn_end: How the user's turn is closed.
        full_duplex: Whether output flows all the time, so that replies must be found in it.
        first_speaker: Who speaks first; an endpoint that greets is heard out before the question.
        history: Whether `Codec.turn` works.
        takes_text: Whether `Codec.text` works, as it must for questions that are asked in writing
            beside the audio.
        reply_end: `told` where the protocol says that a reply is over (`ReplyEnded`); `final` where
            nothing can come after that, so that nobody need listen for a tail; `quiet` where
            only silence does, so that the driver decides, as it does in full duplex.
        lead_in_ms: Silence that the protocol needs before the question, ms.
        min_turn_ms: Shortest audio that a commit may close, ms; shorter clips get more lead-in.
        reply_channel: `speech` unless replies are text alone.
        subscriptions: Topics to subscribe to, for transports that have topics.
        awaits_played: Whether the peer waits to hear that what it said has been played.
        most_sessions: How many sessions at a time the options allow; None for any number.
    """

    input_rate: int
    input_encoding: Encoding = "pcm16"
    frame_ms: int = 20
    turn_end: TurnEnd = "silence"
    full_duplex: bool = False
    first_speaker: Literal["user", "endpoint"] = "user"
    history: bool = False
    takes_text: bool = False
    reply_end: Literal["told", "final", "quiet"] = "told"
    lead_in_ms: int = 0
    min_turn_ms: int = 0
    reply_channel: Literal["speech", "text"] = "speech"
    subscriptions: tuple[str, ...] = ()
    awaits_played: bool = False
    most_sessions: int | None = None

    @property
    def latency_kind(self) -> LatencyKind:
        """Which latencies this session may be compared with."""
        if self.reply_channel == "text":
            return "text"
        if self.full_duplex:
            return "duplex"
        kinds: dict[TurnEnd, LatencyKind] = {
            "silence": "server-vad",
            "commit": "commit",
            "request": "request",
        }
        return kinds[self.turn_end]


@dataclass(frozen=True, slots=True)
class Invitation:
    """What to ask over HTTP before a websocket is opened: the answer says where to open it.

    Attributes:
        request: What is asked, at the URL of the `Address`.
        field: Which field of the JSON answer holds the websocket's URL; it may hold a secret and is
            never logged.
    """

    request: Request
    field: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where a session is opened.

    Attributes:
        url: With the protocol's own path and query.
        headers: With credentials; never logged.
        subprotocols: Websocket sub-protocols to offer.
        invitation: For services whose websocket must be asked for. URL and headers are then those
            of that request; the websocket gets none of the headers.
        subscriptions: Filled in by the driver, from the codec's traits.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    subprotocols: tuple[str, ...] = ()
    invitation: Invitation | None = None
    subscriptions: tuple[str, ...] = ()


class Codec(Protocol):
    """A state machine for one session of one protocol, made by a factory that takes `Settings`.

    No method blocks, reads a clock or logs. Peer input raises `ProtocolError` or nothing. A method
    that its protocol has no word for returns an empty `Step`.
    """

    @property
    def traits(self) -> Traits:
        """What the driver must know; fixed from construction on."""
        ...

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect, given the user's URL and key."""
        ...

    def open(self) -> Step:
        """Return what to send first. `Ready` comes now or from a later `receive`."""
        ...

    def turn(self, turn: Turn) -> Step:
        """Add one earlier turn to the conversation, if `traits.history`."""
        ...

    def audio(self, data: bytes) -> Step:
        """Send one frame, encoded as `traits.input_encoding` at `traits.input_rate`."""
        ...

    def text(self, text: str) -> Step:
        """Send text beside the audio of this turn (a question asked in writing)."""
        ...

    def end_turn(self) -> Step:
        """Close the user's turn and ask for a reply, where turns are closed explicitly."""
        ...

    def played(self, reply: str) -> Step:
        """Say that all that has come of a reply has been played, if `traits.awaits_played`."""
        ...

    def cancel(self, heard_ms: int) -> Step:
        """Stop the present reply, of which `heard_ms` milliseconds were heard."""
        ...

    def close(self) -> Step:
        """Return what to send before the connection is closed."""
        ...

    def receive(self, message: Message) -> Step:
        """Return the events that one whole message stands for, and what to send back.

        Raises:
            ProtocolError: If the protocol does not allow this message, or not now.
        """
        ...


WORDS_SHOWN = 120
"""How much of a topic or a reason is shown; a close frame has no room for more."""


def describe(message: Message, limit: int = 24) -> str:
    """Return kind, length and first bytes of a message, fit for one line of a terminal."""
    match message:
        case Text(data):
            shown = data[:limit].encode("unicode_escape").decode("ascii")
            return f"text, {len(data)} characters, starting {shown!r}"
        case Binary(data):
            return f"{len(data)} bytes, starting {data[: limit // 2].hex(' ')}"
        case Published(topic, payload):
            shown = topic[:WORDS_SHOWN].encode("unicode_escape").decode("ascii")
            return f"{len(payload)} bytes on {shown}"
        case Request(body, _, method, path):
            return f"request {method} {path}, {len(body)} bytes"
        case Response(status, headers):
            return f"response {status}, {headers.get('content-type', 'of no type')[:WORDS_SHOWN]}"
        case Fetched(aside, status, _, body):
            return f"{aside[:WORDS_SHOWN]} {status}, {len(body)} bytes"
        case Ended(code, reason):
            shown = reason[:WORDS_SHOWN].encode("unicode_escape").decode("ascii")
            return f"end of stream, code {code}, {shown!r}"

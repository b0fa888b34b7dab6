"""Gemini Live, the server's side: sessions with or without its own voice activity detection.

What cannot be done ends the session with a close, as at the hosted service, which has no message
for errors. That one's `turnComplete` waits for the playback of the reply; this one's does not.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Literal

from voxmeter.endpoints.codec import Binary, Ended, Json, Message, TurnEnd
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.gemini_live_served import (
    Asked,
    Refused,
    instructions,
    read_setup,
    read_turns,
)
from voxmeter.endpoints.gemini_live_wire import (
    INPUT_RATE,
    OUTPUT_RATE,
    PROTOCOL,
    Object,
    blob,
    camel,
    duration,
    read_blob,
    written,
)
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    HistoryAdded,
    ReplyCancelled,
    ReplyRequested,
    ServerStep,
    SessionSet,
    TurnCommitted,
    UserAudio,
)

_INVALID = 1007
_REASON_BYTES = 123
"""A close frame has room for no more."""
_TOKENS_A_SECOND = 25
"""How the hosted service counts audio, both ways."""

_CLOSES: dict[FaultKind, tuple[int, str]] = {
    "auth": (1008, "UNAUTHENTICATED"),
    "quota": (1011, "RESOURCE_EXHAUSTED: quota"),
    "policy": (1008, "FAILED_PRECONDITION"),
    "busy": (1011, "UNAVAILABLE"),
    "request": (_INVALID, "INVALID_ARGUMENT"),
    "server": (1011, "INTERNAL"),
}


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Server:
    """One served session of Gemini Live; see `ServerCodec` for its verbs."""

    def __init__(self) -> None:
        self._asked: Asked | None = None
        self._over = False
        self._input_rate = INPUT_RATE
        self._seeding = False
        self._speaking = False
        self._replying = False
        self._heard_ms = 0.0
        self._said_ms = 0.0
        self._words = 0
        self._readers: dict[str, Callable[[Fields], ServerStep]] = {
            "setup": self._set_up,
            "clientContent": self._content,
            "realtimeInput": self._realtime,
            "contextUpdate": self._update,
            "toolResponse": lambda _: ServerStep(),  # nothing was called, so it answers nothing
        }

    @property
    def input_rate(self) -> int:
        """Samples a second that the client sends; every piece of audio says it anew."""
        return self._input_rate

    @property
    def output_rate(self) -> int:
        """Samples a second that `reply_audio` takes."""
        return OUTPUT_RATE

    @property
    def turn_end(self) -> TurnEnd:
        """How this session's turns are closed."""
        return "silence" if self._asked is None else self._asked.turn_end

    def open(self) -> ServerStep:
        """Say nothing: the client speaks first."""
        return ServerStep()

    def receive(self, message: Message) -> ServerStep:
        """Return what one client message stands for; what it cannot mean ends the session."""
        if isinstance(message, Ended):
            return ServerStep([ClientLeft()])
        if self._over:
            return ServerStep()
        try:
            told = parse_object(PROTOCOL, message)
            fields = camel(told.data)
            assert isinstance(fields, dict)  # noqa: S101 - it was one before
            return self._read(Fields(PROTOCOL, message, fields))
        except ProtocolError as error:
            return ServerStep(messages=self._end(_INVALID, f"INVALID_ARGUMENT: {error.problem}"))
        except Refused as refused:
            return ServerStep(messages=self._end(refused.code, str(refused)))

    def _read(self, told: Fields) -> ServerStep:
        names = [name for name in told.data if told.has(name)]
        if len(names) != 1:
            raise told.problem("exactly one field is wanted in a message")
        (name,) = names
        if name not in self._readers:
            raise Refused(_INVALID, f'Unknown name "{name[:40]}": Cannot find field.')
        if (name == "setup") is (self._asked is not None):
            when = (
                "only the first message may be" if name == "setup" else "the first message must be"
            )
            raise Refused(_INVALID, f"INVALID_ARGUMENT: {when} setup")
        return self._readers[name](told.object(name))

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user began to speak, to a client that asked to be told."""
        self._speaking = True
        return self._signal("ACTIVITY_START", audio_ms)

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """Say that the user stopped, likewise."""
        self._speaking = False
        return self._signal("ACTIVITY_END", audio_ms)

    def input_transcript(self, text: str) -> Sequence[Message]:
        """Say what the user was heard to say, likewise."""
        if self._asked is None or not self._asked.heard_written:
            return []
        return [_tell(serverContent={"inputTranscription": {"text": text, "finished": True}})]

    def reply_started(self) -> Sequence[Message]:
        """Open a reply; this protocol says nothing of it before its first piece."""
        before = [] if not self._replying else [*self.reply_ended("incomplete")]
        self._replying = True
        return before

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send samples of the reply; a reply of text alone has none."""
        if not pcm or self._asked is None or not self._asked.spoken:
            return []
        self._said_ms += len(pcm) * 1000 / (2 * OUTPUT_RATE)
        return [_model_turn({"inlineData": blob(pcm, OUTPUT_RATE)})]

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send a piece of the reply's text: of the reply itself, or of what its speech says."""
        if not text or self._asked is None:
            return []
        self._words += len(text.split())
        if not self._asked.spoken:
            return [_model_turn({"text": text})]
        if not self._asked.said_written:
            return []
        return [_tell(serverContent={"outputTranscription": {"text": text}})]

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """Close the reply and the model's turn, with its counts."""
        if not self._replying:
            return []
        self._replying = False
        ended: Object = {"interrupted" if reason == "cancelled" else "generationComplete": True}
        complete = _tell(serverContent={"turnComplete": True}, usageMetadata=self._usage())
        return [_tell(serverContent=ended), complete]

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Tell of a failure by ending the session: there is no message for it."""
        closing, status = _CLOSES[kind]
        return self._end(closing, f"{status}: {message} ({code})")

    def _end(self, code: int, reason: str) -> Sequence[Message]:
        if self._over:
            return []
        self._over = True
        cut = reason.encode("utf-8", errors="replace")[:_REASON_BYTES]
        return [Ended(code, cut.decode("utf-8", errors="ignore"))]

    def _set_up(self, setup: Fields) -> ServerStep:
        asked = read_setup(setup)
        self._asked, self._seeding = asked, asked.seeds
        told = [_tell(setupComplete={"sessionId": uuid.uuid4().hex})]
        if asked.resumable:  # no session of ours can be taken up again, and that is said
            told.append(_tell(sessionResumptionUpdate={"resumable": False}))
        return ServerStep([asked.changed], told)

    def _update(self, update: Fields) -> ServerStep:
        told = instructions(update)
        return ServerStep([] if told is None else [SessionSet(instructions=told)])

    def _content(self, content: Fields) -> ServerStep:
        """Add turns to the conversation; whatever is being said ends with it."""
        complete = content.flag("turnComplete", default=False)
        events: list[ClientEvent] = [ReplyCancelled()] if self._replying else []
        events += read_turns(content)
        if self._seeding:
            self._seeding = not complete
        elif complete:
            events.append(ReplyRequested())
        return ServerStep(events)

    def _realtime(self, given: Fields) -> ServerStep:
        events: list[ClientEvent] = []
        for name, spoken in (("activityStart", True), ("activityEnd", False)):
            if given.has(name):
                given.object(name)
                events += self._bracket(starts=spoken)
        for blob_given in [*given.objects("mediaChunks"), given.object("audio")]:
            if blob_given.data:
                events += self._hear(blob_given)
        if given.text("text", ""):
            events += self._read_text(given.text("text"))
        if given.flag("audioStreamEnd", default=False) and self.turn_end == "silence":
            events += self._stream_ended()
        return ServerStep(events)

    def _bracket(self, *, starts: bool) -> Sequence[ClientEvent]:
        """Take note that the client's speech begins or ends, as it says."""
        if self.turn_end == "silence":
            problem = "Explicit activity control is not supported with automatic activity detection"
            raise Refused(_INVALID, f"{problem}.")
        if starts is self._speaking:
            order = "activityStart twice" if starts else "activityEnd without activityStart"
            raise Refused(_INVALID, f"INVALID_ARGUMENT: {order}")
        self._speaking = starts
        if not starts:
            return [TurnCommitted(), ReplyRequested()]
        interrupts = self._asked is not None and self._asked.changed.interruptible
        return [ReplyCancelled()] if self._replying and interrupts else []

    def _hear(self, given: Fields) -> Sequence[ClientEvent]:
        """Take audio; where the client brackets its speech, what lies outside is none."""
        found = read_blob(given, INPUT_RATE)
        if found is None:
            raise given.problem(f"{given.place}mimeType is not audio, and nothing else is heard")
        data, rate = found
        if not data or (self.turn_end == "commit" and not self._speaking):
            return []
        self._input_rate = rate
        self._heard_ms += len(data) * 1000 / (2 * rate)
        return [UserAudio(data, "pcm16", rate)]

    def _read_text(self, text: str) -> Sequence[ClientEvent]:
        """Take text as the user's turn, or as a part of the one that is being spoken."""
        added = HistoryAdded("user", text)
        return [added] if self._speaking else [added, ReplyRequested()]

    def _stream_ended(self) -> Sequence[ClientEvent]:
        if not self._speaking:
            return []
        self._speaking = False
        return [TurnCommitted(), ReplyRequested()]

    def _signal(self, kind: str, audio_ms: int) -> Sequence[Message]:
        if self._asked is None or not self._asked.signals:
            return []
        return [_tell(voiceActivity={"type": kind, "audioOffset": duration(audio_ms)})]

    def _usage(self) -> Object:
        """Return counts by the hosted service's rule for audio; text counts its words."""
        heard = int(self._heard_ms * _TOKENS_A_SECOND / 1000)
        said = int(self._said_ms * _TOKENS_A_SECOND / 1000)
        counts: Object = {
            "promptTokenCount": heard,
            "responseTokenCount": said + self._words,
            "totalTokenCount": heard + said + self._words,
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": heard}],
            "responseTokensDetails": [
                {"modality": "AUDIO", "tokenCount": said},
                {"modality": "TEXT", "tokenCount": self._words},
            ],
        }
        self._heard_ms, self._said_ms, self._words = 0.0, 0.0, 0
        return counts


def _tell(**fields: Json) -> Binary:
    """Return one message; the hosted service sends its JSON in binary messages too."""
    return Binary(written(**fields).encode("ascii"))


def _model_turn(part: Object) -> Binary:
    return _tell(serverContent={"modelTurn": {"role": "model", "parts": [part]}})

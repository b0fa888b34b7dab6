"""Hermes, the MQTT protocol of Rhasspy 2.5: one dialogue at one site, audio as WAV files.

All sites share their topics, so that whatever is for another site or another session is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints import hermes_options
from voxmeter.endpoints import hermes_wire as wire
from voxmeter.endpoints.codec import (
    Address,
    Ended,
    Json,
    Message,
    Published,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.events import (
    Closed,
    Event,
    Fault,
    InputTranscript,
    Note,
    Ready,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    SpeechStopped,
)
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.hermes_options import OPTIONS
from voxmeter.endpoints.kind import MQTT, MQTT_HOST, Kind

__all__ = ["KIND", "OPTIONS", "Client", "client"]

KIND = Kind(
    name="hermes",
    about="Rhasspy 2.5 and what speaks its Hermes protocol, over an MQTT broker",
    codec="voxmeter.endpoints.hermes:client",
    transport=MQTT,
    server="voxmeter.endpoints.hermes_server:server",
    host=MQTT_HOST,
    known_by="Rhasspy's own dialogue manager over mosquitto, with services that are played",
    docs="docs/endpoints/hermes.md",
    options_at="voxmeter.endpoints.hermes:OPTIONS",
)

_WHOLE = {"nominal", "intentNotRecognized"}
_TOPICS = (
    wire.SESSION_STARTED,
    wire.SESSION_ENDED,
    wire.SESSION_QUEUED,
    wire.NOT_RECOGNIZED,
    wire.START_LISTENING,
    wire.STOP_LISTENING,
    wire.TEXT_CAPTURED,
    wire.SAY,
)
_GROUPS = (wire.INTENT, wire.ERROR)
_NOTE = 200


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option cannot be, or the protocol has no place for a setting.
    """
    return Client(settings)


class Client:
    """One session; see `Codec`."""

    def __init__(self, settings: Settings) -> None:
        self._options = hermes_options.read(settings)
        self._custom = settings.session_tag
        self._session = ""
        self._listening = False
        self._ready = False
        self._over = False
        self._answered = False
        self._unconfirmed: list[str] = []

    @property
    def traits(self) -> Traits:
        """Audio at 16 kHz in frames of 64 ms; nobody need end a session, so quiet may."""
        return Traits(
            input_rate=self._options.rate,
            frame_ms=wire.FRAME_MS,
            reply_end="quiet",
            subscriptions=(
                *_TOPICS,
                *(f"{group}#" for group in _GROUPS),
                wire.audio_topic(self._options.site, "playBytes/#"),
            ),
            awaits_played=True,
            most_sessions=self._options.sites,
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return the broker and what it is shown; the URL's query goes into `customData`."""
        parts = urlsplit(url)
        if parts.query:
            self._custom += f"?{parts.query}"
        shown = {"username": self._options.username} if self._options.username else {}
        if api_key:
            shown["password"] = api_key
        return Address(urlunsplit(parts._replace(query="")), shown)

    def open(self) -> Step:
        """Start a session, or say that the wake word was heard."""
        options = self._options
        language = options.language or None
        if options.wake_word:
            detected: dict[str, Json] = {
                "modelId": options.wake_word,
                "modelVersion": "",
                "modelType": "personal",
                "currentSensitivity": 1.0,
                "siteId": options.site,
                "sessionId": None,
                "sendAudioCaptured": False,
                "lang": language,
            }
            return Step(messages=[wire.told(wire.detected_topic(options.wake_word), detected)])
        init: dict[str, Json] = {
            "type": "action",
            "canBeEnqueued": False,
            "text": None,
            "intentFilter": list(options.intents) or None,
            "sendIntentNotRecognized": False,
        }
        start: dict[str, Json] = {
            "siteId": options.site,
            "init": init,
            "customData": self._custom,
            "lang": language,
        }
        return Step(messages=[wire.told(wire.START_SESSION, start)])

    def turn(self, turn: Turn) -> Step:
        """Say nothing: there is no history."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Send one frame, silence too, for as long as we are listened to."""
        if not self._listening:
            return Step()
        topic = wire.audio_topic(self._options.site, "audioFrame")
        return Step(messages=[wire.frame(topic, data, self._options.rate)])

    def text(self, text: str) -> Step:
        """Say nothing: there are no words beside audio."""
        return Step()

    def end_turn(self) -> Step:
        """Say nothing: silence ends a turn."""
        return Step()

    def played(self, reply: str) -> Step:
        """Say that all which was to be played has been: the assistant waits for it."""
        topic = wire.audio_topic(self._options.site, "playFinished")
        names, self._unconfirmed = self._unconfirmed, []
        session = self._session or None
        return Step(
            messages=[wire.told(topic, {"id": name, "sessionId": session}) for name in names]
        )

    def cancel(self, heard_ms: int) -> Step:
        """End the session: there is no other way to stop it."""
        return self.close()

    def close(self) -> Step:
        """End the session, unless it has ended: skills that end none are common."""
        messages = [*self.played("").messages]
        if self._session and not self._over:
            self._over, self._listening = True, False
            end: dict[str, Json] = {
                "sessionId": self._session,
                "text": None,
                "customData": self._custom,
            }
            messages.append(wire.told(wire.END_SESSION, end))
        return Step(messages=messages)

    def receive(self, message: Message) -> Step:
        """Return what one message stands for.

        Raises:
            ProtocolError: If it is not on a topic, or not what its topic is for.
        """
        if isinstance(message, Ended):
            return Step([Closed(message.code, message.reason)])
        message = wire.on_topic(message)
        plays = wire.audio_topic(self._options.site, "playBytes/")
        if message.topic.startswith(plays):
            return Step(self._plays(message.topic.removeprefix(plays), message))
        if message.topic not in _TOPICS and not message.topic.startswith(_GROUPS):
            return Step()
        told = wire.fields_of(message)
        if told.text("siteId", "default") != self._options.site:
            return Step()
        session = told.text("sessionId", "")
        if message.topic == wire.SESSION_STARTED and not self._session:
            self._session = session
            return Step([Note("sessionStarted", session[:_NOTE])])
        if session and session != self._session:
            return Step()
        return Step(self._told(message.topic, told))

    def _plays(self, name: str, message: Published) -> Sequence[Event]:
        pcm, rate = wire.samples(message)
        self._unconfirmed.append(name)
        if not pcm:
            return [Note("playBytes", "no samples")]
        self._answered = True
        return [ReplyAudio(pcm, "pcm16", rate, self._session)]

    def _told(self, topic: str, told: Fields) -> Sequence[Event]:
        match topic:
            case wire.START_LISTENING:
                return self._listens()
            case wire.STOP_LISTENING:
                heard, self._listening = self._listening, False
                return [SpeechStopped()] if heard else [Note("stopListening")]
            case wire.TEXT_CAPTURED:
                return [InputTranscript(told.text("text", "").strip())]
            case wire.SAY:
                words = told.text("text", "")
                return [ReplyStarted(self._session), ReplyText(words, self._session)]
            case wire.SESSION_ENDED:
                return self._ended(told)
            case wire.SESSION_QUEUED:
                words = "another session of this site is under way"
                return [Fault("busy", retryable=True, message=words)]
            case _ if topic.startswith(wire.ERROR):
                words = f"{topic.removeprefix(wire.ERROR)}: {told.text('error', 'no words')}"
                return [Fault("server", retryable=True, message=words)]
            case _ if topic.startswith(wire.INTENT):
                return [Note("intent", topic.removeprefix(wire.INTENT)[:_NOTE])]
            case _:
                return [Note("intentNotRecognized", told.text("input", "")[:_NOTE])]

    def _listens(self) -> Sequence[Event]:
        """We are listened to; a second time, the assistant has said what it had to say."""
        first, self._ready, self._listening = not self._ready, True, True
        if first:
            return [Ready(note=self._session)]
        if self._answered:
            return [ReplyEnded(reply=self._session, detail="it listens again")]
        return [Note("startListening", "again")]

    def _ended(self, told: Fields) -> Sequence[Event]:
        reason = told.object("termination").text("reason", "no reason told")[:_NOTE]
        ours, self._over, self._listening = self._over, True, False
        if ours:
            return [Note("sessionEnded", reason)]
        if reason in _WHOLE or (reason == "timeout" and self._answered):
            return [ReplyEnded(reply=self._session, detail=reason)]
        return [Fault("server", retryable=True, message=f"the session ended: {reason}")]

"""Hermes, server side: dialogue manager, ASR and TTS of one session, for `voxmeter serve`.

Each piece of a reply is a file of its own, played as it comes; Rhasspy's speech synthesizers make
one file of each sentence.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal

from voxmeter.endpoints import hermes_wire as wire
from voxmeter.endpoints.codec import Ended, Json, Message, Published, TurnEnd
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.serving import (
    ClientEvent,
    ClientLeft,
    ServerStep,
    SessionSet,
    UserAudio,
)

RATE = 22_050
"""What Rhasspy's usual speech synthesizers speak at."""


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Server:
    """One session; see `ServerCodec`. It is at the site of the first message that it receives."""

    output_rate = RATE
    turn_end: TurnEnd = "silence"

    def __init__(self) -> None:
        self.input_rate = wire.RATE
        self._site = ""
        self._session = ""
        self._custom: Json = None
        self._listening = False
        self._playing: list[str] = []
        self._said_all = False
        self._pieces = 0

    def open(self) -> ServerStep:
        """Say nothing: a session begins with its client's word."""
        return ServerStep()

    def receive(self, message: Message) -> ServerStep:
        """Return what one message stands for; those for other sites and sessions are left alone.

        Raises:
            ProtocolError: If it is not on a topic, or not what its topic is for.
        """
        if isinstance(message, Ended):
            return ServerStep([ClientLeft()])
        message = wire.on_topic(message)
        if self._site and message.topic == wire.audio_topic(self._site, "audioFrame"):
            return ServerStep(self._heard(message))
        if self._site and message.topic == wire.audio_topic(self._site, "playFinished"):
            return self._played(wire.fields_of(message).text("id", ""))
        if message.topic == wire.START_SESSION and not self._site:
            return self._start(wire.fields_of(message), f"{uuid.uuid4()}")
        if message.topic.startswith("hermes/hotword/") and not self._site:
            word = message.topic.split("/")[2]
            told = wire.fields_of(message)
            site = told.text("siteId", "default")
            return self._start(told, f"{site}-{word}-{uuid.uuid4()}")
        if message.topic != wire.END_SESSION or not self._session:
            return ServerStep()
        if wire.fields_of(message).text("sessionId", "") != self._session:
            return ServerStep()
        return ServerStep([ClientLeft()], self._ended("nominal"))

    def _start(self, told: Fields, session: str) -> ServerStep:
        self._site, self._session = told.text("siteId", "default"), session
        custom = told.text("customData", "")
        self._custom = custom or None
        self._listening = True
        started = self._told(wire.SESSION_STARTED, customData=self._custom, lang=None)
        listen = self._told(
            wire.START_LISTENING,
            lang=None,
            stopOnSilence=True,
            sendAudioCaptured=False,
            wakewordId=None,
            intentFilter=None,
        )
        return ServerStep([SessionSet(tag=custom.partition("?")[0])], [started, listen])

    def _heard(self, message: Published) -> Sequence[ClientEvent]:
        pcm, rate = wire.samples(message)
        if not self._listening:
            return []
        self.input_rate = rate
        return [UserAudio(pcm, "pcm16", rate)]

    def _played(self, name: str) -> ServerStep:
        if name in self._playing:
            self._playing.remove(name)
        if self._playing or not self._said_all:
            return ServerStep()
        return ServerStep([ClientLeft()], [*self._finished(), *self._ended("nominal")])

    def _finished(self) -> Sequence[Message]:
        return [self._told(wire.SAY_FINISHED, id=self._session)]

    def _ended(self, reason: str) -> Sequence[Message]:
        termination: Json = {"reason": reason}
        told = self._told(wire.SESSION_ENDED, termination=termination, customData=self._custom)
        return [told, Ended(1000, reason)]

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """Say nothing: Hermes has no word for it."""
        return []

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """Stop listening."""
        self._listening = False
        return [self._told(wire.STOP_LISTENING)]

    def input_transcript(self, text: str) -> Sequence[Message]:
        """Say what was understood."""
        return [self._told(wire.TEXT_CAPTURED, text=text, likelihood=1.0, seconds=0.0)]

    def reply_started(self) -> Sequence[Message]:
        """Say nothing: a reply begins with its words or its audio."""
        return []

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Have a piece of the reply played."""
        self._pieces += 1
        name = f"{self._session}-{self._pieces}"
        self._playing.append(name)
        return [wire.frame(wire.audio_topic(self._site, f"playBytes/{name}"), pcm, RATE)]

    def reply_text(self, text: str) -> Sequence[Message]:
        """Say what is being said."""
        return [self._told(wire.SAY, text=text, id=self._session, lang=None, volume=None)]

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """End the session, once all has been played; a reply taken back goes on listening."""
        if reason == "cancelled":
            return []
        self._said_all = True
        return [] if self._playing else [*self._finished(), *self._ended("nominal")]

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Tell of a failure, and end the session with it."""
        words = f"{kind}: {code}: {message}"
        error = self._told(f"{wire.ERROR}dialogueManager", error=words, context=None)
        return [error, *self._ended("error")]

    def _told(self, topic: str, **fields: Json) -> Published:
        session = self._session or None
        return wire.told(topic, {"siteId": self._site, "sessionId": session, **fields})


def refusal(message: Published, words: str) -> Sequence[Message]:
    """Return what tells the site of a message that it gets no session.

    Raises:
        ProtocolError: If the message is no JSON object.
    """
    site = wire.fields_of(message).text("siteId", "default")
    fields: dict[str, Json] = {"siteId": site, "sessionId": None, "error": words, "context": None}
    return [wire.told(f"{wire.ERROR}dialogueManager", fields)]

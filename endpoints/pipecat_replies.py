"""Replies of a pipecat bot, followed through RTVI: when one begins, is cut off, and is over.

A reply begins with the first sign that the bot is at work and ends with `bot-stopped-speaking`.
That comes too early where a slow model pauses between sentences, or where the bot says that it will
look something up: then the reply goes on. Audio that comes outside of replies, such as a mixer's
background, belongs to none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from voxmeter.endpoints.events import (
    Event,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.fields import Fields
from voxmeter.endpoints.pipecat_frames import AudioFrame


class Replies:
    """What is known of the replies of one session."""

    def __init__(self) -> None:
        self._number = 0
        self._open = False
        self._early: AudioFrame | None = None
        self._readers: dict[str, Callable[[Fields], Sequence[Event]]] = {
            "bot-llm-started": lambda _: self._thinking(),
            "bot-llm-text": lambda told: self._thought("bot-llm-text", told),
            "llm-raw-text": lambda told: self._thought("llm-raw-text", told),
            "bot-llm-stopped": lambda _: self._thought_out(),
            "llm-function-call-in-progress": self._called,
            "llm-function-call-stopped": self._returned,
            "bot-tts-started": lambda _: self._begin(),
            "bot-output": self._output,
            "bot-started-speaking": lambda _: self._speaks(),
            "bot-stopped-speaking": lambda _: self._silent(),
            "bot-interrupted": lambda _: self.interrupted(),
        }
        self._forget()

    def _forget(self) -> None:
        self._thinks = False
        self._calls: set[str] = set()
        self._sounds = False
        self._paused = False
        self._cut = False
        self._told_by = ""
        self._segments: set[int] = set()

    @property
    def _name(self) -> str:
        return str(self._number)

    def receive(self, kind: str, told: Fields) -> Sequence[Event]:
        """Return what one message of RTVI says of replies; nothing for all other types."""
        reader = self._readers.get(kind)
        return [] if reader is None else reader(told.object("data"))

    def audio(self, frame: AudioFrame) -> Sequence[Event]:
        """Return what a piece of audio is; outside of replies the last one is kept.

        A bot that tells nothing of its model and its voice sends the first piece of a reply before
        it says that it speaks.
        """
        if not self._open:
            self._early = frame
            return []
        self._sounds, self._paused = True, False
        return self._heard(frame)

    def interrupted(self) -> Sequence[Event]:
        """Return what follows when the bot is told to stop, as it is whenever a user speaks.

        A bot that speaks says so when it has stopped; one that only thinks says nothing more.
        """
        self._early = None
        if not self._open or self._cut:
            return []
        if not self._sounds:
            return [Interrupted(), *self._end("cancelled")]
        self._cut, self._thinks, self._calls = True, False, set()
        return [Interrupted()]

    def _begin(self) -> Sequence[Event]:
        ended = self._end("cancelled") if self._cut else []
        if self._open:
            return []
        self._early = None
        self._number += 1
        self._open = True
        return [*ended, ReplyStarted(self._name)]

    def _end(self, reason: Literal["completed", "cancelled"]) -> Sequence[Event]:
        self._open = False
        self._forget()
        return [ReplyEnded(reason, self._name)]

    def _heard(self, frame: AudioFrame) -> Sequence[Event]:
        return [ReplyAudio(frame.pcm, "pcm16", frame.rate, self._name)] if frame.pcm else []

    def _thinking(self) -> Sequence[Event]:
        begun = self._begin()
        self._thinks = True
        return begun

    def _thought(self, told_by: str, told: Fields) -> Sequence[Event]:
        text = told.text("text", "")
        begun = self._begin()
        self._paused = False
        return [*begun, *self._said(told_by, text)]

    def _thought_out(self) -> Sequence[Event]:
        self._thinks = False
        return self._end("completed") if self._paused and not self._calls else []

    def _called(self, told: Fields) -> Sequence[Event]:
        call = told.text("tool_call_id", "")
        begun = self._begin()
        self._calls.add(call)
        return begun

    def _returned(self, told: Fields) -> Sequence[Event]:
        self._calls.discard(told.text("tool_call_id", ""))
        return []  # the model goes on from here, and says that it does

    def _output(self, told: Fields) -> Sequence[Event]:
        """Give text that is spoken once a segment, where the model's own was not told."""
        text, segment = told.text("text", ""), told.whole("segment_id", -1)
        spoken = told.flag("will_be_spoken", default=False)
        if not self._open or not spoken or segment in self._segments:
            return []
        space = " " if self._segments else ""
        self._segments.add(segment)
        return self._said("bot-output", f"{space}{text}" if text else "")

    def _said(self, told_by: str, text: str) -> Sequence[Event]:
        """Give the text of a reply from the first source that tells any."""
        if not text or (self._told_by and self._told_by != told_by):
            return []
        self._told_by = told_by
        return [ReplyText(text, self._name)]

    def _speaks(self) -> Sequence[Event]:
        early = self._early
        begun = self._begin()
        self._sounds, self._paused = True, False
        return [*begun, *(self._heard(early) if begun and early is not None else [])]

    def _silent(self) -> Sequence[Event]:
        self._early = None
        if not self._open:
            return []
        if self._cut:
            return self._end("cancelled")
        if self._thinks or self._calls:
            self._sounds, self._paused = False, True
            return []
        return self._end("completed")

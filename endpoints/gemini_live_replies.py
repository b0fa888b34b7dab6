"""Replies as a client of Gemini Live hears them: which one is open, and what ends it.

A turn of the model goes through `generationComplete`, then `turnComplete`, which the server holds
back for as long as it believes the reply is still being played. One that is interrupted goes
through `interrupted`, then `turnComplete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from voxmeter.endpoints.codec import Json
from voxmeter.endpoints.events import (
    Event,
    InputTranscript,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
    Usage,
)
from voxmeter.endpoints.fields import Fields, clean
from voxmeter.endpoints.gemini_live_faults import turn_fault
from voxmeter.endpoints.gemini_live_wire import OUTPUT_RATE, read_blob

End = Literal["generation", "interaction"]


class Replies:
    """What a client knows of the replies of one session; replies have no ids, so they are counted.

    Args:
        spoken: Whether replies are audio; their text is then its transcription, where there is one.
        transcribed: Whether that transcription was asked for.
        end: What ends a reply: that all of it was generated, or that the server is idle.

    Attributes:
        open: The reply under way, by its name.
        any_came: Whether anything of any reply came in this session.
    """

    def __init__(self, *, spoken: bool, transcribed: bool, end: End) -> None:
        self._parts_are_text = not (spoken and transcribed)
        self._end = end
        self._count = 0
        self._answered = False  # whether this turn of the model's had anything that ends with it
        self._due = True  # whether the user has said something that no reply came to
        self._dropping = False
        self._cancelled = False
        self.open: str | None = None
        self.any_came = False

    def content(self, told: Fields) -> Iterator[Event]:
        """Yield the events of one `serverContent`, which may tell several things at once."""
        heard = told.object("inputTranscription").text("text", "")
        if heard:
            self._due = self._due or not self._answered
            yield InputTranscript(heard)
        for part in told.object("modelTurn").objects("parts"):
            yield from self._part(part)
        yield from self._words(told.object("outputTranscription").text("text", ""))
        if told.flag("generationComplete", default=False) and self._end == "generation":
            yield from self._close("completed", "")
        if told.flag("interrupted", default=False):
            yield Interrupted()
            yield from self._close("cancelled", "interrupted")
            self._answered = self._dropping = True
        if told.flag("turnComplete", default=False):
            yield from self._turn_complete(told)

    def drop(self) -> None:
        """Let nothing more be heard of the reply under way; its end is still told."""
        self._dropping = self._cancelled = True

    def asked(self) -> None:
        """Take note that the user's turn was closed, so that words which come now are an answer."""
        self._due = True

    def _part(self, part: Fields) -> Iterator[Event]:
        inline = part.object("inlineData")
        found = read_blob(inline, OUTPUT_RATE) if inline.data else None
        text = part.text("text", "") if self._parts_are_text else ""
        if part.flag("thought", default=False) or self._dropping:
            return
        if found is not None and found[0]:
            yield from self._opened()
            yield ReplyAudio(found[0], "pcm16", found[1], self._name())
        if text:
            yield from self._opened()
            yield ReplyText(text, self._name())

    def _words(self, text: str) -> Iterator[Event]:
        """Give words of the transcription, which keeps no order with the speech.

        Words open a reply only where one is due: late ones would open one that never ends.
        """
        if text and not self._dropping:
            if self._due:
                yield from self._opened()
            yield ReplyText(text, self._name())

    def _opened(self) -> Iterator[Event]:
        """Tell of a reply, unless this turn of the model's has one: what is late is still of it."""
        self.any_came = True
        if not self._answered:
            self._count += 1
            self._answered, self._due = True, False
            self.open = self._name()
            yield ReplyStarted(self.open)

    def _name(self) -> str:
        return f"reply-{self._count}"

    def _close(self, reason: Literal["completed", "cancelled"], detail: str) -> Iterator[Event]:
        if self.open is None:
            return
        if self._cancelled and reason == "completed":
            reason, detail = "cancelled", "completed all the same"
        yield ReplyEnded(reason, self.open, detail)
        self.open, self._cancelled = None, False

    def _turn_complete(self, told: Fields) -> Iterator[Event]:
        reason = told.text("turnCompleteReason", "")
        going_on = told.text("interactionStatus", "") == "IN_PROGRESS"
        if going_on and self._end == "interaction" and self.open is not None:
            return  # the server thinks on, and there will be more of it
        fault = turn_fault(reason)
        if self.open is not None and fault is not None:
            yield ReplyEnded("incomplete", self.open, reason)
            self.open = None
        elif not self._answered and fault is not None:
            yield fault
        elif not (self._answered or going_on or _waits(told, reason)):
            yield from self._opened()  # a reply of nothing is one: nobody need wait for more
        yield from self._close("completed", reason)
        self._answered = self._dropping = self._cancelled = False


def _waits(told: Fields, reason: str) -> bool:
    """Return whether the model said nothing because it expects the user to go on."""
    return reason == "NEED_MORE_INPUT" or told.flag("waitingForInput", default=False)


def usage(told: Fields) -> Usage | None:
    """Return the counts of one turn by dotted name; details are told by modality."""
    counts: dict[str, float] = {}
    for name, value in told.data.items():
        if _is_number(value):
            counts[clean(name)] = told.number(name)
        elif name.endswith("Details"):
            for one in told.objects(name):
                modality = clean(f"{name}.{one.text('modality', 'UNKNOWN')}")
                counts[modality] = counts.get(modality, 0) + one.number("tokenCount", 0)
    return Usage(counts) if counts else None


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

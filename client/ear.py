"""Follows the replies of one session as they come, to tell when the answer is over.

Nothing here is a measurement: marks are read later, from the log. This only decides how long to
stay, from events and from how long what was received takes to play.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from voxmeter.endpoints.codec import Traits
from voxmeter.endpoints.events import (
    Event,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)

_NS = 1_000_000_000
_WORDS_AHEAD_NS = 10 * _NS  # of their sound: words alone do not begin the quiet


class Ear(Protocol):
    """What the session asks while it listens."""

    @property
    def greeted(self) -> bool:
        """Whether an endpoint that speaks first has finished its greeting, as far as is told."""
        ...

    @property
    def heard(self) -> bool:
        """Whether anything of any reply has come."""
        ...

    @property
    def answering(self) -> bool:
        """Whether anything has come that can be the answer to the question."""
        ...

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event of a reply."""
        ...

    def question_began(self, onset_ns: int, place_s: float = 0.0) -> None:
        """Take note that the user begins to speak: what began before is a greeting.

        Args:
            onset_ns: When.
            place_s: Where in what we send.
        """
        ...

    def question_ended(self, t0_ns: int, place_s: float = 0.0) -> None:
        """Take note that the user's speech is over, likewise: what ended before is no answer."""
        ...

    def over_at(self) -> int | None:
        """Return when the answer will be over if nothing more comes, ns; None if it goes on."""
        ...

    def text(self) -> str:
        """Return the model's own text of the answer."""
        ...


def ear_for(traits: Traits, *, drain_ms: int, quiet_ms: int, fast: bool = False) -> Ear:
    """Return what listens to a session of this protocol, with `fast` pacing or in real time."""
    if traits.full_duplex:
        from voxmeter.client.duplex import DuplexEar

        return DuplexEar(quiet_ms=quiet_ms, fast=fast)
    drain_ms = 0 if traits.reply_end == "final" else drain_ms
    return TurnEar(drain_ms=drain_ms, quiet_ms=quiet_ms, told=traits.reply_end != "quiet")


@dataclass(slots=True)
class _Reply:
    name: str
    text: list[str] = field(default_factory=list)
    content: bool = False
    reason: str | None = None
    last_ns: int = 0
    played_ns: int = 0


class TurnEar:
    """Listens where replies are turns with a beginning and an end.

    Args:
        drain_ms: Quiet that must follow the end of a reply, so that no tail is lost.
        quiet_ms: Quiet that ends a reply which nothing else ends, and that must follow a cancelled
            reply before it counts as all there is.
        told: Whether the protocol says when a reply has ended.
    """

    def __init__(self, *, drain_ms: int, quiet_ms: int, told: bool = True) -> None:
        self._drain_ns, self._quiet_ns = drain_ms * 1_000_000, quiet_ms * 1_000_000
        self._told = told
        self._replies: list[_Reply] = []
        self._first_answer = 0

    @property
    def greeted(self) -> bool:
        """Whether a first reply has ended; where no end is told, `over_at` says when it has."""
        return any(reply.reason is not None for reply in self._replies)

    @property
    def heard(self) -> bool:
        """Whether any reply had content."""
        return any(reply.content for reply in self._replies)

    @property
    def answering(self) -> bool:
        """Whether a reply that can be the answer had content, or ended without any."""
        return any(
            reply.content or reply.reason in {"completed", "incomplete"}
            for reply in self._replies[self._first_answer :]
        )

    def hear(self, t_ns: int, event: Event) -> None:
        """Take one event of a reply."""
        match event:
            case ReplyStarted(name):
                self._reply(name, fresh=True).last_ns = t_ns
            case ReplyAudio():
                reply = self._reply(event.reply)
                reply.content, reply.last_ns = True, t_ns
                reply.played_ns = max(reply.played_ns, t_ns) + play_ns(event)
            case ReplyText(text, name):
                reply = self._reply(name)
                reply.content, reply.last_ns = True, t_ns
                reply.text.append(text)
            case ReplyEnded(reason, name):
                reply = self._reply(name)
                reply.reason, reply.last_ns = reason, t_ns
            case Interrupted() if self._replies and self._replies[-1].reason is None:
                self._replies[-1].reason, self._replies[-1].last_ns = "cancelled", t_ns
            case _:
                pass

    def question_began(self, onset_ns: int, place_s: float = 0.0) -> None:
        """Nothing follows from it: replies are told."""

    def question_ended(self, t0_ns: int, place_s: float = 0.0) -> None:  # noqa: ARG002 - told
        """Leave out what is over by now; a reply still open may turn out to be the answer."""
        still_open = bool(self._replies) and self._replies[-1].reason is None
        over_ns = self.over_at()
        if still_open and over_ns is not None and over_ns <= t0_ns:  # nobody tells, so quiet does
            self._replies[-1].reason, still_open = "completed", False
        self._first_answer = len(self._replies) - (1 if still_open else 0)

    def over_at(self) -> int | None:
        """Return when the answer will be over if nothing more comes."""
        if len(self._replies) <= self._first_answer:
            return None
        reply = self._replies[-1]
        if reply.reason is None:
            if self._told or not reply.content:
                return None
            wait_ns = self._quiet_ns if reply.played_ns else max(self._quiet_ns, _WORDS_AHEAD_NS)
            return max(reply.last_ns, reply.played_ns) + wait_ns
        return reply.last_ns + (self._quiet_ns if reply.reason == "cancelled" else self._drain_ns)

    def text(self) -> str:
        """Return the text of the replies that can be the answer, without cancelled ones."""
        replies = self._replies[self._first_answer :]
        kept = [reply for reply in replies if reply.reason != "cancelled"] or replies
        return " ".join("".join(reply.text).strip() for reply in kept).strip()

    def _reply(self, name: str, *, fresh: bool = False) -> _Reply:
        """Return the reply of this name; without names, the one that is open."""
        for reply in reversed(self._replies):
            if (name and reply.name == name) or (not name and not fresh and reply.reason is None):
                return reply
        self._replies.append(_Reply(name))
        return self._replies[-1]


def play_ns(event: ReplyAudio) -> int:
    """Return how long a piece takes to play; Opus is taken at 4 kB a second, AAC at 8."""
    rates = {"pcm16": 2 * event.rate, "pcmu": 8000, "pcma": 8000, "opus": 4000, "aac": 8000}
    return len(event.data) * _NS // rates[event.encoding]

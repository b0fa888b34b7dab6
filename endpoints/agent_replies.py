"""Names the replies of agents that give them no ids."""

from __future__ import annotations

from voxmeter.endpoints.events import (
    Encoding,
    Event,
    Interrupted,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)


class Replies:
    """The replies of one session, numbered.

    A reply begins with the first sign of it. What comes behind its end is still of it, until the
    user has said something more: agents send late pieces, and words behind the sound.
    """

    def __init__(self) -> None:
        self._count = 0
        self._asked = True
        self.open = False

    @property
    def any_came(self) -> bool:
        """Whether there was a reply."""
        return self._count > 0

    @property
    def _name(self) -> str:
        return str(self._count)

    def asked(self) -> None:
        """Take note that the user said something: what is said next is another reply.

        Of a reply that has begun this says nothing: agents tell late what they heard.
        """
        self._asked = self._asked or not self.open

    def start(self) -> list[Event]:
        """Begin a reply, if none is open and the user has said something since the last one."""
        if self.open or not self._asked:
            return []
        self._count += 1
        self.open, self._asked = True, False
        return [ReplyStarted(self._name)]

    def audio(self, data: bytes, encoding: Encoding, rate: int) -> list[Event]:
        """Return a piece of sound."""
        return [*self.start(), ReplyAudio(data, encoding, rate, self._name)] if data else []

    def text(self, text: str) -> list[Event]:
        """Return a piece of text."""
        return [*self.start(), ReplyText(text, self._name)] if text else []

    def end(self) -> list[Event]:
        """End the reply that is open, if one is."""
        if not self.open:
            return []
        self.open = False
        return [ReplyEnded("completed", self._name)]

    def interrupted(self) -> list[Event]:
        """Throw away what was said and not yet heard."""
        self.open = False
        return [Interrupted()] if self._count else []

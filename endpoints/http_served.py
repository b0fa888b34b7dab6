"""The server's side of kind `http`: a request is a whole session, its answer is the reply.

What comes is a `Request`; what goes is the `Response` with the head of the answer, its body as
`Binary` pieces, and an `Ended`: without a code for a body that ends as it should, with a status for
a request that is refused, or a body that breaks off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from voxmeter.endpoints import http_served_request as request
from voxmeter.endpoints.codec import Binary, Ended, Message, Request, Response, TurnEnd
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import FaultKind
from voxmeter.endpoints.http_served_reply import RATE, Writer, writer
from voxmeter.endpoints.serving import ClientLeft, ServerStep

_STATUS: Mapping[FaultKind, int] = {
    "auth": 401,
    "quota": 402,
    "policy": 451,
    "busy": 503,
    "request": 400,
    "server": 500,
}
_BAD_REQUEST = 400


def server() -> Server:
    """Return the server's half of one session."""
    return Server()


class Server:
    """One request and its answer; see `ServerCodec` for the verbs."""

    turn_end: TurnEnd = "request"

    def __init__(self) -> None:
        self.input_rate = request.INPUT_RATE
        self.output_rate = RATE
        self._writer: Writer | None = None
        self._begun = False

    def open(self) -> ServerStep:
        """Say nothing: the client speaks first."""
        return ServerStep()

    def receive(self, message: Message) -> ServerStep:
        """Return what a request asks; one that cannot be answered is told why.

        Raises:
            ProtocolError: If it is no request, or a second one.
        """
        match message:
            case Request() if self._writer is None:
                return self._asked(message)
            case Ended():
                return ServerStep([ClientLeft()])
            case _:
                raise ProtocolError(request.NAME, "not a request, or not now", message)

    def _asked(self, message: Request) -> ServerStep:
        try:
            self._writer, self.output_rate = writer(message)
            question = request.read(message)
        except request.RefusedError as refused:
            return ServerStep([ClientLeft()], [Ended(refused.status, refused.reason)])
        except ProtocolError as error:
            return ServerStep([ClientLeft()], [Ended(_BAD_REQUEST, error.problem)])
        self.input_rate = question.rate
        return ServerStep(question.events())

    def speech_started(self, audio_ms: int) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def speech_stopped(self, audio_ms: int) -> Sequence[Message]:
        """There is no word for it."""
        return ()

    def input_transcript(self, text: str) -> Sequence[Message]:
        """The user's words are never told."""
        return ()

    def reply_started(self) -> Sequence[Message]:
        """Send the head of the answer."""
        assert self._writer is not None  # noqa: S101 - a reply follows a request
        self._begun = True
        head = Response(200, {"content-type": self._writer.type, "cache-control": "no-store"})
        return [head, *_pieces(self._writer.start())]

    def reply_audio(self, pcm: bytes) -> Sequence[Message]:
        """Send samples of the reply; an answer of words, or one that is sent whole, has none."""
        return [] if self._writer is None else _pieces(self._writer.audio(pcm))

    def reply_text(self, text: str) -> Sequence[Message]:
        """Send a piece of the reply's own text, where the answer has a place for it."""
        return [] if self._writer is None else _pieces(self._writer.words(text))

    def reply_ended(
        self, reason: Literal["completed", "cancelled", "incomplete"]
    ) -> Sequence[Message]:
        """End the answer; there is no word for why."""
        return [*([] if self._writer is None else _pieces(self._writer.end())), Ended()]

    def fault(self, kind: FaultKind, code: str, message: str) -> Sequence[Message]:
        """Refuse the request; during an answer, say so where the body can, or break it off."""
        if self._begun and self._writer is not None:
            told = self._writer.failure({"code": code, "message": message})
            if told is not None:
                return [Binary(told), Ended()]
        return [Ended(_STATUS[kind], f"{code}: {message}")]


def _pieces(data: bytes) -> list[Message]:
    return [Binary(data)] if data else []

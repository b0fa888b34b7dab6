"""Chat completions with audio in: OpenAI, vLLM, vLLM-Omni, DashScope, and what speaks like them.

Stateless: every request carries the whole conversation. Most such servers answer in words alone,
and then nothing has to be recognised; some speak.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from voxmeter.endpoints import openai_chat_request as request
from voxmeter.endpoints.codec import (
    Address,
    Message,
    Response,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.events import Ready, ReplyEnded
from voxmeter.endpoints.http_exchange import (
    Exchange,
    Reader,
    json_request,
    keyed,
    only_requests,
)
from voxmeter.endpoints.kind import HTTP, Kind
from voxmeter.endpoints.openai_chat_reply import ChatReader
from voxmeter.endpoints.openai_chat_request import NAME, OPTIONS

__all__ = ["NAME", "OPTIONS", "Client", "client"]

_PATH = "/chat/completions"

KIND = Kind(
    name="openai-chat",
    about="chat completions with audio in: OpenAI, vLLM, vLLM-Omni, DashScope",
    codec="voxmeter.endpoints.openai_chat:client",
    transport=HTTP,
    known_by="documentation and public reports; vLLM-Omni read in source; words streamed by "
    "a genuine llama.cpp server",
    docs="docs/endpoints/openai-chat.md",
    options_at="voxmeter.endpoints.openai_chat_request:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    return Client(settings)


class Client:
    """One session; every question is one request, with all that was said before."""

    def __init__(self, settings: Settings) -> None:
        only_requests(NAME, settings)
        self._wanted = request.read(settings)
        self._messages = [*self._wanted.system()]
        self._reader: ChatReader | None = None
        self._exchange = Exchange(NAME, self._read)
        self._pcm = bytearray()
        self._text = ""

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return Traits(
            self._wanted.input_rate,
            turn_end="request",
            history=True,
            takes_text=True,
            reply_channel="speech" if self._wanted.speaks else "text",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect; a URL without a path, or that ends in `/v1`, is made whole."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        if not path:
            path = f"/v1{_PATH}"
        elif path.rsplit("/", 1)[-1] == "v1":
            path += _PATH
        header = self._wanted.options.text("key_header", "Authorization")
        return keyed(urlunsplit(parts._replace(path=path)), api_key, header)

    def open(self) -> Step:
        """Be ready at once; say what the request does not carry."""
        unheard = self._wanted.settings.voice and not self._wanted.speaks
        return Step([Ready(note="a reply in text has no voice" if unheard else "")])

    def turn(self, turn: Turn) -> Step:
        """Add an earlier turn to every request."""
        self._messages.append(self._wanted.turn(turn))
        return Step()

    def audio(self, data: bytes) -> Step:
        """Keep the question until it is whole."""
        self._pcm += data
        return Step()

    def text(self, text: str) -> Step:
        """Keep what is asked in writing; it stands before the sound."""
        self._text = text
        return Step()

    def end_turn(self) -> Step:
        """Send the request."""
        self._messages.append(self._wanted.question(bytes(self._pcm), self._text))
        self._pcm.clear()
        self._text = ""
        return json_request(self._wanted.body(self._messages))

    def played(self, reply: str) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def close(self) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return the events of one message.

        Raises:
            ProtocolError: If the answer is no chat completion.
        """
        step = self._exchange.receive(message)
        if any(isinstance(event, ReplyEnded) for event in step.events) and self._reader:
            self._messages.append({"role": "assistant", "content": self._reader.text})
        return step

    def _read(self, head: Response) -> Reader:
        self._reader = ChatReader(head, self._wanted.settings.output_rate)
        return self._reader

"""Mini-Omni and Mini-Omni2: one POST with the whole question, the reply streamed as it is made.

Version 1 answers with bare samples although it calls them a WAV file; version 2 with parts of sound
and of words in turn, without lengths and without an end but that of the connection.
"""

from __future__ import annotations

import base64

from voxmeter.endpoints.codec import (
    Address,
    Json,
    Message,
    Response,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Ready
from voxmeter.endpoints.http_exchange import (
    Exchange,
    Reader,
    json_request,
    keyed,
    only_requests,
    unsaid,
    with_path,
)
from voxmeter.endpoints.http_replies import BareSamples, MixedBody
from voxmeter.endpoints.kind import HTTP, Kind
from voxmeter.endpoints.mixed_replace import boundary_of
from voxmeter.endpoints.option_table import OptionTable
from voxmeter.endpoints.wav import wav_file

NAME = "mini-omni"
INPUT_RATE = 16_000  # its Whisper front end resamples whatever else comes
OUTPUT_RATE = 24_000
OPTIONS = {
    "version": "1 (default) or 2: Mini-Omni2, whose reply carries its words too",
    "stream_stride": "vocoder steps in one piece of the reply, 1 to 1000 (default 4: 341 ms)",
    "max_tokens": "most steps of the model in one reply, 1 to 100000 (default 2048)",
}
"""Every option there is, with what it does."""

KIND = Kind(
    name="mini-omni",
    about="Mini-Omni and Mini-Omni2: one request, the reply streamed",
    codec="voxmeter.endpoints.mini_omni:client",
    transport=HTTP,
    known_by="captured bytes of the genuine server programs, run over stand-ins for their models",
    docs="docs/endpoints/mini-omni.md",
    options_at="voxmeter.endpoints.mini_omni:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    return Client(settings)


class Client:
    """One session; every question is one request."""

    def __init__(self, settings: Settings) -> None:
        only_requests(NAME, settings)
        options = OptionTable(NAME, settings.options, OPTIONS)
        self._version = options.whole("version", 1, 1, 2)
        self._told: dict[str, Json] = {
            "stream_stride": options.whole("stream_stride", 4, 1, 1000),
            "max_tokens": options.whole("max_tokens", 2048, 1, 100_000),
        }
        self._settings = settings
        self._rate = settings.input_rate or INPUT_RATE
        self._exchange = Exchange(NAME, self._reader)
        self._pcm = bytearray()

    @property
    def traits(self) -> Traits:
        """What the driver must know."""
        return Traits(self._rate, turn_end="request")

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect; `/chat` where the URL has no path."""
        return keyed(with_path(url, "/chat"), api_key)

    def open(self) -> Step:
        """Be ready at once; say what the protocol cannot carry."""
        left = ", ".join(unsaid(self._settings))
        note = f"the protocol has no place for {left}" if left else ""
        return Step([Ready(note=note)])

    def turn(self, turn: Turn) -> Step:
        """Do nothing: a request has no past."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Keep the question until it is whole."""
        self._pcm += data
        return Step()

    def text(self, text: str) -> Step:
        """Do nothing: a question is sound alone."""
        return Step()

    def end_turn(self) -> Step:
        """Send the request."""
        whole = wav_file(bytes(self._pcm), self._rate)
        self._pcm.clear()
        told = {"audio": base64.b64encode(whole).decode("ascii"), **self._told}
        return json_request(told)

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
            ProtocolError: If the answer is not one of this version's.
        """
        return self._exchange.receive(message)

    def _reader(self, head: Response) -> Reader:
        rate = self._settings.output_rate or OUTPUT_RATE
        told = head.headers.get("content-type", "")
        parts = told.lower().startswith("multipart/")
        if parts != (self._version == 2):
            found = "answers in parts of sound and words" if parts else "answers with sound alone"
            raise ProtocolError(NAME, f"{found}: set version = {2 if parts else 1}", head)
        return (
            MixedBody(NAME, boundary_of(told) or "frame", rate)
            if parts
            else BareSamples(NAME, rate)
        )

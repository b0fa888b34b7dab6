"""The voice of a pipeline: one in a process of ours, or a speech service over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from voxmeter.client import speakers
from voxmeter.client.audio import Samples, to_pcm16
from voxmeter.client.child import ChildDiedError
from voxmeter.client.clock import Clock
from voxmeter.client.pipeline_stage import HttpStage, Told, TtsSession, beside, failed, stamped
from voxmeter.client.transport import TransportSettings
from voxmeter.client.voices import Voices
from voxmeter.endpoints.codec import Address, Json, Response
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, ReplyAudio
from voxmeter.endpoints.option_table import laid_over
from voxmeter.endpoints.pipeline_options import NAME, TtsOptions
from voxmeter.endpoints.wav import SniffedAudio

WHOSE = "voice"
RATE = 24_000
"""Samples a second of a service's bare samples, unless `output_rate` says otherwise."""

_SOUND = ("audio/pcm", "audio/l16", "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave")
_UNSAID = ("", "application/octet-stream", "binary/octet-stream", "audio/basic", "audio/raw")


class Voice(Protocol):
    """A voice for all sessions of a pipeline.

    Attributes:
        name: For the log.
    """

    name: str

    def load(self) -> Future[Any]:
        """Get ready; the future raises `UserError` if that fails."""
        ...

    def session(self, headers: Mapping[str, str]) -> TtsSession:
        """Return the voice for one session; `headers` carry its key."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


def voice(options: TtsOptions, folder: Path, wire: TransportSettings, clock: Clock) -> Voice:
    """Return the voice of a pipeline; nothing is loaded yet.

    Args:
        options: Which one.
        folder: Where relative paths start.
        wire: How to connect.
        clock: Stamps what it says.

    Raises:
        UserError: If there is no such voice on this machine.
    """
    if options.url:
        return HttpVoice(options, wire, clock)
    return LocalVoice(options.voice, folder, clock)


class LocalVoice:
    """hibari, piper or espeak-ng, in a process of ours: one text at a time."""

    def __init__(self, name: str, folder: Path, clock: Clock) -> None:
        kind, colon, detail = name.partition(":")
        self.name = f"{kind}{colon}{beside(folder, detail)}"
        speakers.check(self.name)
        self._voices, self._clock = Voices(), clock

    def load(self) -> Future[Any]:
        """Load the voice in its process."""
        return self.say("Ready.")

    def session(self, headers: Mapping[str, str]) -> TtsSession:  # noqa: ARG002 - it has no server
        """Return the same voice."""
        return _Local(self, self._clock)

    def say(self, text: str) -> Future[tuple[int, list[Samples]]]:
        """Queue a text."""
        return self._voices.say(self.name, text)

    def close(self) -> None:
        """End its process."""
        self._voices.close()


class _Local:
    """One session with a voice in our process."""

    def __init__(self, voice: LocalVoice, clock: Clock) -> None:
        self._voice, self._clock = voice, clock

    async def connect(self) -> None:
        """Do nothing: it is loaded."""

    async def speak(self, text: str) -> AsyncGenerator[Told, None]:
        """Yield the speech once all of the text is spoken."""
        try:
            t_ns, (rate, sentences) = await stamped(self._voice.say(text), self._clock)
        except ChildDiedError as error:
            raise failed(WHOSE, f"its process ended ({error})") from None
        except Exception as error:  # foreign code: whatever a speech model may raise
            raise failed(WHOSE, f"{type(error).__name__}: {error}") from error
        for samples in sentences:
            yield Told(t_ns, ReplyAudio(to_pcm16(samples), "pcm16", rate))

    async def close(self) -> None:
        """Do nothing: it is loaded for all sessions."""


class HttpVoice:
    """Any server with OpenAI's `audio/speech`."""

    def __init__(self, options: TtsOptions, wire: TransportSettings, clock: Clock) -> None:
        self.name = f"{options.voice} at {urlsplit(options.url).hostname}"
        self._options, self._wire, self._clock = options, wire, clock

    def load(self) -> Future[Any]:
        """Return at once: the server has loaded it."""
        future: Future[Any] = Future()
        future.set_result(None)
        return future

    def session(self, headers: Mapping[str, str]) -> TtsSession:
        """Return a connection of its own."""
        return _Service(self._options, Address(self._options.url, headers), self._wire, self._clock)

    def close(self) -> None:
        """Do nothing."""


class _Service(HttpStage):
    """One session with a speech service."""

    def __init__(
        self, options: TtsOptions, address: Address, wire: TransportSettings, clock: Clock
    ) -> None:
        super().__init__(WHOSE, address, wire, clock)
        self._options = options

    async def speak(self, text: str) -> AsyncGenerator[Told, None]:
        """Yield the speech as it comes."""
        wanted = self._options
        body: dict[str, Json] = {"input": text, "voice": wanted.voice, "response_format": "pcm"}
        if wanted.model:
            body["model"] = wanted.model
        async for told in self.ask(laid_over(body, wanted.body), self._reader):
            if isinstance(told.event, ReplyAudio):
                yield told

    def _reader(self, head: Response) -> SpeechBody:
        return SpeechBody(head, self._options.rate)


class SpeechBody:
    """A body of samples, bare or behind the head of a WAV file.

    Args:
        head: The head of the answer.
        rate: Samples a second, before what a WAV file says; None is that, else 24,000.

    Raises:
        ProtocolError: If its type is that of something else, which would be played as noise.
    """

    def __init__(self, head: Response, rate: int | None) -> None:
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (*_SOUND, *_UNSAID):
            words = f"the speech is {kind}, and samples were asked for (response_format pcm or wav)"
            raise ProtocolError(NAME, words, head)
        self._audio = SniffedAudio(NAME, rate, RATE)
        self._audio.begin()
        self._odd = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield the samples that are whole by now."""
        yield from self._samples(*self._audio.feed(data))

    def end(self) -> Iterator[Event]:
        """Yield what was held back."""
        yield from self._samples(*self._audio.feed(b"", last=True))

    def _samples(self, data: bytes, rate: int) -> Iterator[Event]:
        data = self._odd + data
        whole = len(data) - len(data) % 2
        data, self._odd = data[:whole], data[whole:]
        if data:
            yield ReplyAudio(data, "pcm16", rate)

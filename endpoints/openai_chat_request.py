"""The options of kind `openai-chat`, checked, and the request they make."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from voxmeter.endpoints.codec import Json, Settings, Turn
from voxmeter.endpoints.option_table import OptionTable, laid_over
from voxmeter.endpoints.wav import wav_file

NAME = "openai-chat"
INPUT_RATE = 16_000
OPTIONS = {
    "modalities": "'text' (default): replies in words alone; 'audio': spoken, with their words",
    "stream": "false: the reply comes in one piece (default true)",
    "audio_part": "how the question is written: 'input_audio' (default), 'audio_url', or "
    "'input_audio_url', a data URL where OpenAI has bare base64",
    "audio_format": "asked for in audio.format: 'pcm16', 'wav', or 'none' to send no audio object "
    "(default: pcm16 in a stream, else wav)",
    "max_tokens": "most tokens of a reply, as older servers call it",
    "max_completion_tokens": "the same, as OpenAI calls it",
    "usage": "false: do not ask a stream for its usage (default true)",
    "key_header": "header that carries the key, bare, in place of 'Authorization: Bearer KEY'",
    "body": "a table laid over the whole request, for fields that are not listed here",
}
"""Every option there is, with what it does."""

Object = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the requests of a session are to be, read from `Settings` once.

    Attributes:
        settings: Where it was read from.
        options: The checked options.
        speaks: Whether spoken replies are asked for.
        stream: Whether the reply is to come in pieces.
        input_rate: Samples a second of the question.
    """

    settings: Settings
    options: OptionTable
    speaks: bool
    stream: bool
    input_rate: int

    def body(self, messages: Sequence[Object]) -> Object:
        """Return the whole request."""
        settings, options = self.settings, self.options
        made: Object = {"messages": list(messages), "stream": self.stream}
        if settings.model:
            made["model"] = settings.model
        if settings.temperature is not None:
            made["temperature"] = settings.temperature
        if self.speaks:
            made |= self._sound()
        if self.stream and options.flag("usage", default=True):
            made["stream_options"] = {"include_usage": True}
        for name in ("max_tokens", "max_completion_tokens"):
            limit = options.whole(name, None, 1, 10_000_000)
            if limit is not None:
                made[name] = limit
        return laid_over(made, options.table("body"))

    def _sound(self) -> Object:
        made: Object = {"modalities": ["text", "audio"]}
        usual = "pcm16" if self.stream else "wav"
        form = self.options.choice("audio_format", ("pcm16", "wav", "none"), usual)
        if form != "none":
            audio: Object = {"format": form}
            if self.settings.voice:
                audio["voice"] = self.settings.voice
            made["audio"] = audio
        return made

    def system(self) -> Sequence[Object]:
        """Return the message that carries the instructions, if there are any."""
        words = self.settings.instructions
        return [{"role": "system", "content": words}] if words else []

    def turn(self, turn: Turn) -> Object:
        """Return an earlier turn as a message: the user's as sound, where there is sound."""
        if turn.role == "user" and turn.pcm:
            return self.question(turn.pcm, turn.text)
        return {"role": turn.role, "content": turn.text}

    def question(self, pcm: bytes, text: str) -> Object:
        """Return a message of the user's: words before the sound, where there are words."""
        parts: list[Json] = [{"type": "text", "text": text}] if text else []
        return {"role": "user", "content": [*parts, self._part(pcm)]}

    def _part(self, pcm: bytes) -> Object:
        data = base64.b64encode(wav_file(pcm, self.input_rate)).decode("ascii")
        form = self._audio_part()
        if form == "audio_url":
            return {"type": form, "audio_url": {"url": f"data:audio/wav;base64,{data}"}}
        prefix = "data:;base64," if form == "input_audio_url" else ""
        return {"type": "input_audio", "input_audio": {"data": prefix + data, "format": "wav"}}

    def _audio_part(self) -> str:
        allowed = ("input_audio", "audio_url", "input_audio_url")
        return self.options.choice("audio_part", allowed, "input_audio")


def read(settings: Settings) -> Wanted:
    """Return what the settings of a session ask for.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    options = OptionTable(NAME, settings.options, OPTIONS)
    wanted = Wanted(
        settings=settings,
        options=options,
        speaks=options.choice("modalities", ("text", "audio"), "text") == "audio",
        stream=options.flag("stream", default=True),
        input_rate=settings.input_rate or INPUT_RATE,
    )
    options.choice("audio_format", ("pcm16", "wav", "none"), "wav")
    wanted.body([wanted.question(b"", "")])  # tells of every wrong option now
    return wanted

"""Services that speak or reword a text, OpenAI's or any that is compatible; one call at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from voxmeter.client import audio, bounded_http, http_words, redaction
from voxmeter.client.dialing import loopback
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import ClipError, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import OpenAI

    from voxmeter.client.audio import Pcm
    from voxmeter.client.speech_voices import Manner

OPENAI = "https://api.openai.com/v1"
TTS_MODEL = "gpt-4o-mini-tts"
_TIMEOUT_S = 120.0
_RETRIES = 4
_NO_KEY = "none"  # the package wants one, and would take a key of OpenAI's from the environment
_AGAIN = "run the same command again: what is done is kept"


@dataclass(frozen=True, slots=True)
class Where:
    """A service.

    Attributes:
        option: How the options that name it begin: `--tts` or `--llm`.
        url: Its base.
        model: Name of the model.
        key_env: Environment variable with its key; empty where it wants none.
    """

    option: str
    url: str
    model: str
    key_env: str = ""

    def key(self, environment: Mapping[str, str] | None = None) -> str:
        """Return its key.

        Raises:
            UserError: If there is none where one is needed.
        """
        place = f"{self.option}-key-env"
        if self.key_env:
            return redaction.secret(self.key_env, place, environment)
        if self.url == OPENAI:
            raise UserError(place, "is missing", f"write {place} OPENAI_API_KEY")
        return _NO_KEY


class Caller:
    """Calls one service, again where it asks for patience; what goes wrong is one line.

    Raises:
        UserError: If its address or its key is not there.
    """

    def __init__(self, where: Where) -> None:
        if urlsplit(where.url).scheme not in {"http", "https"} or not urlsplit(where.url).hostname:
            cure = 'write it like "https://host/v1"'
            raise UserError(
                f"{where.option}-url", f"{printable(where.url, 80)} is no address", cure
            )
        self.where = where
        self._key = where.key()
        self._redactor = redaction.Redactor([self._key])
        self._client: OpenAI | None = None

    @property
    def client(self) -> OpenAI:
        """The package's client, made when it is first needed."""
        if self._client is None:
            from openai import DefaultHttpxClient, OpenAI

            client = OpenAI(
                api_key=self._key,
                admin_api_key="",
                base_url=self.where.url,
                max_retries=_RETRIES,
                timeout=_TIMEOUT_S,
                http_client=DefaultHttpxClient(
                    trust_env=not loopback(self.where.url),
                    headers=bounded_http.PLAIN,
                    event_hooks=bounded_http.hooks(),
                ),
            )
            if self.where.url != OPENAI:  # what the environment says of OpenAI is no other's
                client.organization = client.project = None
            self._client = client
        return self._client

    def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            self._client.close()

    def failed(self, error: Any) -> UserError:  # noqa: ANN401 - any error of the package
        """Return what went wrong with a call, in one line without secrets."""
        import openai

        if isinstance(error, openai.APIStatusError):
            answer = error.response
            headers = {name.lower(): value for name, value in answer.headers.items()}
            said = http_words.refusal(answer.reason_phrase, headers, answer.content, [self._key])
            words = f"{answer.status_code} {said}"
        else:
            words = str(error.__cause__ or error)
        shown = printable(self._redactor.text(" ".join(words.split())), 300)
        return UserError(f"{self.where.option}-url {self.where.url}", shown, _AGAIN)


class Service(Caller):
    """A service that speaks, by OpenAI's `audio/speech`."""

    def check(self, manner: Manner) -> None:
        """Refuse what the model is known not to do.

        Raises:
            UserError: In one line.
        """
        model, place = self.where.model, f"voice {manner.speaker!r}"
        if not manner.speaker.partition(":")[2]:
            raise UserError(place, "names no voice", "write openai:alloy, for instance")
        if model.startswith("tts-1") and manner.emotion:
            cure = f"use --tts-model {TTS_MODEL}"
            raise UserError(place, f"{model} has no moods (--emotion {manner.emotion})", cure)
        if model.startswith("gpt-4o-mini-tts") and (manner.rate or manner.pitch):
            found = f"{model} has no setting of the speed, which --rate and --pitch need"
            raise UserError(place, found, "use --tts-model tts-1, or a voice on this machine")

    def speak(self, manner: Manner, text: str) -> Pcm:
        """Return a text spoken.

        Raises:
            ClipError: If what comes back is no audio.
            UserError: If the service cannot be asked.
        """
        import openai

        wanted: dict[str, Any] = {}
        pace = manner.pace / manner.height
        if pace != 1.0:
            wanted["speed"] = round(pace, 4)
        if manner.emotion:
            wanted["instructions"] = f"Speak in a tone that is {manner.emotion}."
        try:
            answer = self.client.audio.speech.create(
                model=self.where.model,
                voice=manner.speaker.partition(":")[2],
                input=text,
                response_format="wav",
                **wanted,
            )
            data = answer.content
        except openai.OpenAIError as error:
            raise self.failed(error) from None
        try:
            return audio.decode(data, f"voice {manner.speaker!r}")
        except ClipError as error:
            raise ClipError(f"voice {manner.speaker!r}", f"sent no WAV ({error})") from None


class Chat(Caller):
    """A service that rewords, by OpenAI's chat completions."""

    def ask(self, system: str, user: str, seed: int) -> str:
        """Return what it says.

        Raises:
            UserError: If it cannot be asked, or says nothing.
        """
        import openai

        messages: list[Any] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        try:
            answer = self.client.chat.completions.create(
                model=self.where.model, messages=messages, seed=seed
            )
        except openai.OpenAIError as error:
            raise self.failed(error) from None
        choices = answer.choices or []
        said = choices[0].message.content if choices and choices[0].message else None
        return self._redactor.text(said or "")

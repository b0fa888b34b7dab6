"""The thinking part of the cascade: a small model in this process, or one behind an HTTP API."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from voxmeter.client import bounded_http
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.errors import EndpointError, MissingExtraError

SYSTEM = (
    "You are a voice assistant. Your words are spoken aloud: answer in one or two short sentences, "
    "without lists, symbols or markup."
)
_REQUEST_LIMIT_S = 60.0
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is to answer.

    Attributes:
        instructions: System prompt of the session; empty for none.
        turns: The conversation, oldest first; the last one is the user's question. Only turns
            with text count.
        temperature: 0 is greedy; None is the model's own choice.
    """

    instructions: str
    turns: Sequence[Turn]
    temperature: float | None = None


class Llm(Protocol):
    """A language model that writes while it thinks.

    Attributes:
        at_once: How many answers it can write at a time.
    """

    at_once: int

    def load(self) -> None:
        """Get ready to answer; blocking."""
        ...

    def stream(self, prompt: Prompt, stop: threading.Event) -> Iterator[str]:
        """Yield the answer piece by piece; blocking; ends soon after `stop` is set."""
        ...


class ChatLlm:
    """Any model behind an OpenAI-compatible `chat/completions`, streamed.

    Source: the API reference of OpenAI, as Ollama, vLLM and llama.cpp serve it too.
    """

    at_once = _AT_ONCE

    def __init__(self, base_url: str, model: str, key: str = "") -> None:
        """Take where the model is.

        Args:
            base_url: With the API's path, such as `http://127.0.0.1:11434/v1`.
            model: The server's name of it.
            key: Empty for servers that ask for none.
        """
        self._base_url = base_url
        self._model = model
        self._key = key or "none"
        self._client: Any = None

    def load(self) -> None:
        """Make the client; the model itself is asked first by a user.

        Raises:
            MissingExtraError: If the `openai` package is not there.
        """
        try:
            from openai import DefaultHttpxClient, OpenAI
        except ImportError as error:
            raise MissingExtraError("a language model over HTTP", str(error), "local") from None
        self._client = OpenAI(
            base_url=self._base_url,
            api_key=self._key,
            timeout=_REQUEST_LIMIT_S,
            max_retries=0,
            http_client=DefaultHttpxClient(
                headers=bounded_http.PLAIN, event_hooks=bounded_http.hooks()
            ),
        )

    def stream(self, prompt: Prompt, stop: threading.Event) -> Iterator[str]:
        """Yield the answer piece by piece.

        Raises:
            EndpointError: If the server refuses, breaks off, or cannot be reached.
        """
        from openai import OpenAIError

        settings: dict[str, object] = {}
        if prompt.temperature is not None:
            settings["temperature"] = prompt.temperature
        try:
            with self._client.chat.completions.create(
                model=self._model, messages=messages(prompt), stream=True, **settings
            ) as chunks:
                for chunk in chunks:
                    if stop.is_set():
                        return
                    if chunk.choices and chunk.choices[0].delta.content:
                        yield chunk.choices[0].delta.content
        except OpenAIError as error:
            problem = f"{type(error).__name__}: {error}"[:300]
            raise EndpointError(f"language model at {self._base_url}: {problem}") from None


def messages(prompt: Prompt) -> Sequence[dict[str, str]]:
    """Return a prompt as the API's messages."""
    spoken = [{"role": turn.role, "content": turn.text} for turn in prompt.turns if turn.text]
    return [{"role": "system", "content": prompt.instructions or SYSTEM}, *spoken]

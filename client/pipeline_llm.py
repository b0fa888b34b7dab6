"""The language model of a pipeline: a server with chat completions, or a small model of ours."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from voxmeter.client.child import ChildDiedError
from voxmeter.client.clock import Clock
from voxmeter.client.models import locate
from voxmeter.client.pipeline_stage import HttpStage, LlmSession, Told, beside, failed, stamped
from voxmeter.client.servers.llm import Prompt
from voxmeter.client.servers.small_llm import SmallLlm
from voxmeter.client.transport import TransportSettings
from voxmeter.client.worker import Worker
from voxmeter.endpoints.codec import Address, Json, Response, Turn
from voxmeter.endpoints.errors import MissingExtraError, UserError
from voxmeter.endpoints.events import ReplyEnded, ReplyText
from voxmeter.endpoints.openai_chat_reply import ChatReader
from voxmeter.endpoints.option_table import laid_over
from voxmeter.endpoints.pipeline_options import LlmOptions

WHOSE = "language model"
_MOST_THREADS = 4
_GEMMA = "gemma-3-270m"
_ROLES: Mapping[str, Literal["user", "assistant", "system"]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
}


class LanguageModel(Protocol):
    """A language model for all sessions of a pipeline.

    Attributes:
        name: For the log.
    """

    name: str

    def load(self) -> Future[Any]:
        """Get ready; the future raises `UserError` if that fails."""
        ...

    def session(self, headers: Mapping[str, str]) -> LlmSession:
        """Return the model for one session; `headers` are the endpoint's own."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


def language_model(
    options: LlmOptions, folder: Path, wire: TransportSettings, clock: Clock
) -> LanguageModel:
    """Return the language model of a pipeline; nothing is loaded yet.

    Args:
        options: Which one.
        folder: Where relative paths start.
        wire: How to connect.
        clock: Stamps what it says.

    Raises:
        UserError: If nobody said where it is, or an embedded one is not on this machine.
    """
    if options.embedded:
        return EmbeddedModel(options, folder, clock)
    if not options.url:
        cure = "write the URL of an API that has chat/completions, or llm = 'embedded'"
        raise UserError("options.llm_base_url", "is missing", cure)
    return ServedModel(options, wire, clock)


class ServedModel:
    """Any server with OpenAI's `chat/completions`, streamed."""

    def __init__(self, options: LlmOptions, wire: TransportSettings, clock: Clock) -> None:
        self.name = f"{options.model or 'a model'} at {urlsplit(options.url).hostname}"
        self._options, self._wire, self._clock = options, wire, clock

    def load(self) -> Future[Any]:
        """Return at once: the server has loaded it."""
        return _done()

    def session(self, headers: Mapping[str, str]) -> LlmSession:
        """Return a connection of its own."""
        return _Chat(self._options, Address(self._options.url, headers), self._wire, self._clock)

    def close(self) -> None:
        """Do nothing."""


class _Chat(HttpStage):
    """One session with a server."""

    def __init__(
        self, options: LlmOptions, address: Address, wire: TransportSettings, clock: Clock
    ) -> None:
        super().__init__(WHOSE, address, wire, clock)
        self._options = options

    def answer(self, turns: Sequence[Mapping[str, str]]) -> AsyncGenerator[Told, None]:
        """Yield the answer to a conversation, as it is written."""
        words = self._options.instructions
        system: list[Json] = [{"role": "system", "content": words}] if words else []
        spoken: list[Json] = [{"role": one["role"], "content": one["text"]} for one in turns]
        body: dict[str, Json] = {"messages": [*system, *spoken], "stream": True}
        body = laid_over(body | dict(self._options.fields), self._options.body)
        return self.ask(body, _reader)


class EmbeddedModel:
    """A small model in a process of ours, one question at a time; its answer comes whole."""

    def __init__(self, options: LlmOptions, folder: Path, clock: Clock) -> None:
        self._model = beside(folder, options.model) or _GEMMA
        locate(self._model, "llm")
        if find_spec("cyllama") is None:
            raise MissingExtraError("llm = 'embedded'", "the package cyllama", "local")
        self.name = options.model or _GEMMA
        self._options, self._clock = options, clock
        self._worker = Worker("pipeline llm")

    def load(self) -> Future[Any]:
        """Load the model in its process."""
        return self._worker.submit(_load, self._model)

    def session(self, headers: Mapping[str, str]) -> LlmSession:  # noqa: ARG002 - it has no server
        """Return the same model: it is told the whole conversation every time."""
        return _Embedded(self._ask, self._clock)

    def close(self) -> None:
        """End its process."""
        self._worker.close()

    def _ask(self, turns: Sequence[Mapping[str, str]]) -> Future[str]:
        told = [Turn(_ROLES[one["role"]], one["text"]) for one in turns]
        prompt = Prompt(self._options.instructions, told, self._options.temperature)
        return self._worker.submit(_written, self._model, prompt)


class _Embedded:
    """One session with the model in our process."""

    def __init__(
        self, ask: Callable[[Sequence[Mapping[str, str]]], Future[str]], clock: Clock
    ) -> None:
        self._ask, self._clock = ask, clock

    async def connect(self) -> None:
        """Do nothing: it is loaded."""

    async def answer(self, turns: Sequence[Mapping[str, str]]) -> AsyncGenerator[Told, None]:
        """Yield the whole answer."""
        try:
            t_ns, words = await stamped(self._ask(turns), self._clock)
        except ChildDiedError as error:
            raise failed(WHOSE, f"its process ended ({error})") from None
        except Exception as error:  # foreign code: llama.cpp and its binding
            raise failed(WHOSE, f"{type(error).__name__}: {error}") from error
        if words:
            yield Told(t_ns, ReplyText(words))
        yield Told(t_ns, ReplyEnded())

    async def close(self) -> None:
        """Do nothing: it is loaded for all sessions."""


def _reader(head: Response) -> ChatReader:
    return ChatReader(head, None)


def _done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


# What runs in the other process


def _load(model: str) -> None:
    _loaded(model)


def _written(model: str, prompt: Prompt) -> str:
    return "".join(_loaded(model).stream(prompt, Event())).strip()


@lru_cache(maxsize=1)
def _loaded(model: str) -> SmallLlm:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = SmallLlm(model, max(1, min(_MOST_THREADS, (cores or 1) - 1)))
    found.load()
    return found

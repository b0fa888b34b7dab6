"""Gemma 3 270M in this process, through cyllama's binding of llama.cpp.

The model is a base model: it has not been taught to answer, it continues text. Shown a few
questions with their answers first, it goes on in the same way, and is stopped at the line's end.
What it knows is little, and wrong often enough to be worth measuring.

Only this class touches cyllama, and only the calls that its releases 0.2.18 and 0.7.0 share by
their sources: 0.2.18, the newest for Python 3.11, is the one that was run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from voxmeter.client.models import locate
from voxmeter.client.servers.llm import Prompt
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.errors import MissingExtraError, UserError

_CONTEXT = 2048
_BATCH = 128  # tokens read at a time, between two looks at `stop`
_MOST_TOKENS = 40
_MOST_TURNS = 32
_SEED = 1

SHOTS: Sequence[tuple[str, str]] = (
    ("What is nine minus five?", "Nine minus five is four."),
    (
        "Is a stone softer than a pillow? Answer yes or no.",
        "No, a stone is harder than a pillow.",
    ),
    ("What is the capital of France?", "The capital of France is Paris."),
    (
        "Which of these is the hottest? Choose one letter from A to D, and answer in a full "
        "sentence. A. Ice. B. Milk. C. Lava. D. Grass.",
        "The correct answer is C, lava.",
    ),
    ("True or false? Horses have two heads.", "False, horses have one head."),
    ("What is four plus four?", "Four plus four is eight."),
    ("What colour is a ripe banana?", "A ripe banana is yellow."),
    ("Can birds sing? Answer yes or no.", "Yes, birds can sing."),
    (
        "Which city is in England? Choose one letter from A to D, and answer in a full sentence. "
        "A. Moscow. B. London. C. Cairo. D. Boston.",
        "The correct answer is B, London.",
    ),
    (
        "Which of these can fly? Choose one letter from A to D, and answer in a full sentence. "
        "A. Stone. B. Lamp. C. Boat. D. Aeroplane.",
        "The correct answer is D, aeroplane.",
    ),
    (
        "What can you drink? Choose one letter from A to D, and answer in a full sentence. "
        "A. Tea. B. Sand. C. Paper. D. Glass.",
        "The correct answer is A, tea.",
    ),
    ("True or false? Grass is green.", "True, grass is green."),
    ("How many years are in a century?", "There are 100 years in a century."),
    ("How many wheels does a car have?", "A car has four wheels."),
    ("Why do people sleep?", "People sleep because the body needs rest."),
    ("How many letters are in the alphabet?", "There are 26 letters in the alphabet."),
)
"""Questions with their answers, of every kind that the demo asks, but none of its questions."""


class SmallLlm:
    """A GGUF model that continues `User:` and `Assistant:` lines; one answer at a time."""

    at_once = 1

    def __init__(self, model: str = "gemma-3-270m", threads: int = 1) -> None:
        """Take which model; nothing is loaded yet.

        Args:
            model: Name or path of a GGUF file (see `voxmeter.client.models.locate`).
            threads: Threads that think.
        """
        self._name = model
        self._threads = threads
        self._llama: Any = None
        self._begun = 0  # tokens of the examples, which stay in the context

    def load(self) -> None:
        """Load the model and read the examples, so that an answer begins with the question.

        Raises:
            UserError: If the file is not the pinned one or cannot be loaded.
            MissingExtraError: If cyllama or the model's package is not installed.
        """
        path = locate(self._name, "llm").path
        try:
            from cyllama.llama import llama_cpp
        except ImportError as error:
            raise MissingExtraError("the embedded language model", str(error), "local") from None
        self._llama = llama_cpp
        llama_cpp.disable_logging()
        llama_cpp.ggml_backend_load_all()
        settings = llama_cpp.LlamaModelParams()
        settings.n_gpu_layers = 0
        try:
            self._model = llama_cpp.LlamaModel(str(path), settings)
        except (ValueError, RuntimeError, OSError) as error:
            found = f"llama.cpp cannot load it ({str(error)[:120]})"
            raise UserError(str(path), found, "give another .gguf file") from None
        self._vocabulary = self._model.get_vocab()
        self._context = llama_cpp.LlamaContext(self._model, self._context_settings())
        shots = "".join(_lines(question, answer) for question, answer in SHOTS)
        tokens = self._tokens(shots, first=True)
        self._decode(tokens, 0, threading.Event())
        self._begun = len(tokens)
        for _ in self.stream(Prompt("", [Turn("user", "Hello.")]), threading.Event()):
            pass

    def stream(self, prompt: Prompt, stop: threading.Event) -> Iterator[str]:
        """Yield the answer piece by piece, up to the line's end."""
        # Everything after the examples is taken back. They are read only once, so that an answer
        # begins sooner, and is the same whatever was asked before.
        self._context.memory_seq_rm(0, self._begun, -1)
        asked = self._fitting(prompt, _CONTEXT - _MOST_TOKENS - self._begun)
        if self._decode(asked, self._begun, stop):
            position = self._begun + len(asked)
            yield from _one_line(self._pieces(position, prompt.temperature or 0.0, stop))

    def _pieces(self, position: int, temperature: float, stop: threading.Event) -> Iterator[str]:
        sampler = self._sampler(temperature)
        for number in range(_MOST_TOKENS):
            token = sampler.sample(self._context, -1)
            if self._vocabulary.is_eog(token):
                return
            yield self._piece(token)
            if not self._decode([token], position + number, stop):
                return

    def _decode(self, tokens: list[int], position: int, stop: threading.Event) -> bool:
        for start in range(0, len(tokens), _BATCH):
            if stop.is_set():
                return False
            batch = tokens[start : start + _BATCH]
            self._context.decode(self._llama.llama_batch_get_one(batch, position + start))
        return True

    def _fitting(self, prompt: Prompt, room: int) -> list[int]:
        """Return instructions and the newest turns that fit; of one that does not, the end."""
        lead = self._tokens(f"{' '.join(prompt.instructions.split())}\n")[-room // 2 :]
        lead = lead if prompt.instructions else []
        lines = [_line(turn) for turn in prompt.turns if turn.text and turn.role != "system"]
        left = room - len(lead)
        for first in range(max(0, len(lines) - _MOST_TURNS), len(lines)):
            tokens = self._tokens("".join(lines[first:]) + "Assistant:")
            if len(tokens) <= left or first == len(lines) - 1:
                return lead + tokens[-left:]
        return lead + self._tokens("Assistant:")

    def _tokens(self, text: str, *, first: bool = False) -> list[int]:
        return list(self._vocabulary.tokenize(text, add_special=first, parse_special=False))

    def _piece(self, token: int) -> str:
        try:
            return str(self._vocabulary.token_to_piece(token, special=False))
        except UnicodeDecodeError:  # part of a character; a voice could not say it anyway
            return ""

    def _sampler(self, temperature: float) -> Any:  # noqa: ANN401 - cyllama has no types
        sampler = self._llama.LlamaSampler(self._llama.LlamaSamplerChainParams())
        if temperature > 0:
            sampler.add_temp(temperature)
            sampler.add_dist(_SEED)
        else:
            sampler.add_greedy()
        return sampler

    def _context_settings(self) -> Any:  # noqa: ANN401 - cyllama has no types
        settings = self._llama.LlamaContextParams()
        settings.n_ctx = _CONTEXT
        settings.n_batch = _BATCH
        # Gemma looks back over a sliding window only; without the whole of it, the end of the
        # context could not be taken back to ask the next question.
        settings.swa_full = True
        settings.n_threads = settings.n_threads_batch = self._threads
        return settings


def _lines(question: str, answer: str) -> str:
    return f"User: {question}\nAssistant: {answer}\n"


def _line(turn: Turn) -> str:
    name = "User" if turn.role == "user" else "Assistant"
    return f"{name}: {' '.join(turn.text.split())}\n"


def _one_line(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the first line, without the space before it."""
    begun = False
    for piece in pieces:
        line, end, _ = piece.partition("\n")
        line = line if begun else line.lstrip()
        if line:
            begun = True
            yield line
        if end:
            return

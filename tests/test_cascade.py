"""The embedded assistant with its real models, and with models made here that misbehave."""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from voxmeter.client.audio import Pcm, resample
from voxmeter.client.servers.brain import Heard, RefusedError, Speech, Spoken, UserTurn, Words
from voxmeter.client.servers.cascade import Cascade, cascade
from voxmeter.client.servers.llm import ChatLlm, Prompt, messages
from voxmeter.client.servers.small_llm import SHOTS, SmallLlm
from voxmeter.client.speakers import Speaker, speaker
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.errors import EndpointError, UserError
from voxmeter.suites import demo

RATE = 24_000
LIMIT_S = 120


@functools.cache
def real() -> Cascade:
    brain = Cascade()
    brain.load()
    return brain


@functools.cache
def gemma() -> SmallLlm:
    model = real()._llm
    assert isinstance(model, SmallLlm)
    return model


@functools.cache
def voice() -> Speaker:
    return speaker("hibari")


def turn(text: str, **wishes: object) -> UserTurn:
    pcm = Pcm(np.concatenate([*voice().speak(text)]), voice().rate)
    settings: dict[str, object] = {"rate": RATE, "output_rate": RATE, "end_ns": 0}
    return UserTurn(samples=resample(pcm, RATE).samples, **(settings | wishes))  # type: ignore[arg-type]


def silence(**wishes: object) -> UserTurn:
    settings: dict[str, object] = {"rate": RATE, "output_rate": RATE, "end_ns": 0}
    return UserTurn(samples=np.zeros(RATE, np.float32), **(settings | wishes))  # type: ignore[arg-type]


async def everything(brain: Cascade, asked: UserTurn) -> list[Spoken]:
    return [spoken async for spoken in brain.answer(asked)]


def words(spoken: list[Spoken]) -> str:
    return "".join(piece.text for piece in spoken if isinstance(piece, Words))


def seconds(spoken: list[Spoken]) -> float:
    return sum(len(piece.samples) for piece in spoken if isinstance(piece, Speech)) / RATE


class Scripted:
    """A model that writes what it is told to, and remembers what it was asked."""

    at_once = 1

    def __init__(self, *pieces: str, error: Exception | None = None) -> None:
        self.pieces = pieces
        self.error = error
        self.prompts: list[Prompt] = []
        self.together = self.most_together = 0
        self.ended = threading.Event()

    def load(self) -> None:
        pass

    def stream(self, prompt: Prompt, stop: threading.Event) -> Iterator[str]:
        self.prompts.append(prompt)
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        try:
            yield from self.pieces
            if self.error is not None:
                raise self.error
        finally:
            self.together -= 1
            self.ended.set()


class Endless(Scripted):
    def stream(self, prompt: Prompt, stop: threading.Event) -> Iterator[str]:
        try:
            yield "One sentence. "
            while not stop.wait(0.001):
                yield "more "
        finally:
            self.ended.set()


def scripted(llm: Scripted) -> Cascade:
    """The real ears and voice around a model made here."""
    brain = Cascade(llm=llm)
    brain._whisper = real()._whisper
    brain._voices.update(real()._voices)
    return brain


async def test_a_spoken_question_gets_a_spoken_answer() -> None:
    spoken = await everything(real(), turn("What is the capital of Italy?"))
    assert spoken[0] == Heard("What is the capital of Italy?")
    assert "Rome" in words(spoken)
    assert 0.5 < seconds(spoken) < 6


async def test_concurrent_turns_each_get_their_own_answer() -> None:
    questions = ("What is the capital of Italy?", "What is the capital of Spain?")
    both = await asyncio.gather(*(everything(real(), turn(question)) for question in questions))
    assert ["Rome" in words(both[0]), "Madrid" in words(both[1])] == [True, True]


async def test_the_answer_does_not_depend_on_what_was_asked_before() -> None:
    asked = turn("What is the largest planet?")
    first = words(await everything(real(), asked))
    await everything(real(), turn("Who painted the Mona Lisa?", instructions="Be brief."))
    assert words(await everything(real(), asked)) == first


@pytest.mark.parametrize("output_rate", [8000, 16_000, 24_000])
async def test_speech_comes_at_the_rate_that_the_session_has(output_rate: int) -> None:
    brain = scripted(Scripted("The sky is blue."))
    spoken = await everything(brain, turn("Hello there.", output_rate=output_rate))
    samples = sum(len(piece.samples) for piece in spoken if isinstance(piece, Speech))
    assert 0.7 < samples / output_rate < 2.5


async def test_each_sentence_is_spoken_before_the_next_is_thought() -> None:
    brain = scripted(Scripted("It is B. ", "Mars is red. ", "Really", "."))
    spoken = await everything(brain, turn("Which one is it?"))
    kinds = [type(piece).__name__ for piece in spoken]
    assert kinds == ["Heard", "Words", "Speech", "Words", "Speech", "Words", "Words", "Speech"]


async def test_a_silent_turn_gets_no_reply_and_the_model_is_not_asked() -> None:
    llm = Scripted("I am here.")
    assert await everything(scripted(llm), silence()) == []
    assert llm.prompts == []


async def test_history_and_instructions_reach_the_model() -> None:
    llm = Scripted("Yes.")
    history = (
        Turn("system", "Be kind."),
        Turn("user", "Hello."),
        Turn("assistant", "Hi."),
        Turn("user", ""),
    )
    asked = turn("Is it late?", instructions="Be brief.", history=history, temperature=0.5)
    await everything(scripted(llm), asked)
    assert llm.prompts == [
        Prompt(
            "Be brief.\nBe kind.",
            [Turn("user", "Hello."), Turn("assistant", "Hi."), Turn("user", "Is it late?")],
            0.5,
        )
    ]


async def test_a_reply_asked_for_without_new_audio_answers_the_history() -> None:
    llm = Scripted("Paris.")
    asked = silence(history=(Turn("user", "What is the capital of France?"),))
    no_audio = UserTurn(np.zeros(0, np.float32), RATE, RATE, 0, history=asked.history)
    assert words(await everything(scripted(llm), no_audio)) == "Paris."


async def test_a_broken_model_is_an_error_of_that_reply_alone() -> None:
    llm = Scripted("It is ", error=EndpointError("language model: gone"))
    brain = scripted(llm)
    with pytest.raises(EndpointError, match="gone"):
        await everything(brain, turn("Which one is it?"))
    llm.error = None
    assert words(await everything(brain, turn("Which one is it?"))) == "It is "


async def test_breaking_in_stops_the_model() -> None:
    llm = Endless()
    started = asyncio.Event()

    async def listen() -> None:
        async for spoken in scripted(llm).answer(turn("Tell me a story.")):
            if isinstance(spoken, Speech):
                started.set()

    task = asyncio.create_task(listen())
    async with asyncio.timeout(LIMIT_S):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(llm.ended.wait, LIMIT_S)


async def test_the_model_writes_one_answer_at_a_time() -> None:
    llm = Scripted("It is B.")
    brain = scripted(llm)
    await asyncio.gather(*(everything(brain, turn("Which one is it?")) for _ in range(3)))
    assert (len(llm.prompts), llm.most_together) == (3, 1)


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        ({}, "hibari"),
        ({"voice": "alloy"}, "hibari"),
        ({"voice": "piper"}, "piper"),
        ({"query": {"voice": "piper"}}, "piper"),
        ({"voice": "hibari", "query": {"voice": "piper"}}, "hibari"),
    ],
)
async def test_the_session_chooses_the_voice(wishes: dict[str, object], chosen: str) -> None:
    assert scripted(Scripted())._chosen(silence(**wishes)) == chosen


def test_a_query_that_asks_for_what_is_not_there_is_refused() -> None:
    brain = Cascade(llm=Scripted())
    assert brain.admit({"voice": "piper", "endpoint_ms": "300"}).endpoint_ms == 300
    for query in ({"voice": "nobody"}, {"endpoint_ms": "soon"}, {"delay_ms": "3"}):
        with pytest.raises(RefusedError):
            brain.admit(query)


def test_an_answer_is_one_line_without_the_space_before_it() -> None:
    prompt = Prompt("", [Turn("user", "What is the capital of Italy?")])
    answer = "".join(gemma().stream(prompt, threading.Event()))
    assert answer
    assert answer == answer.strip()
    assert "\n" not in answer


def test_a_stopped_model_writes_nothing_and_answers_the_next_prompt() -> None:
    prompt = Prompt("Be kind.", [Turn("user", "What is the capital of Italy?")])
    stop = threading.Event()
    stop.set()
    assert list(gemma().stream(prompt, stop)) == []
    assert "Rome" in "".join(gemma().stream(prompt, threading.Event()))


def test_a_conversation_that_does_not_fit_keeps_its_end() -> None:
    past = [Turn("user", "Tell me more about the weather.")] * 30
    prompt = Prompt("Be brief.", [*past, Turn("user", "What is the capital of Italy?")])
    model = gemma()
    kept = model._fitting(prompt, 60)
    assert len(kept) <= 60
    assert kept[: len(model._tokens("Be brief.\n"))] == model._tokens("Be brief.\n")
    question = model._tokens("User: What is the capital of Italy?\nAssistant:")
    assert kept[-len(question) :] == question
    lone = Prompt("", [Turn("user", "word " * 4000)])
    assert len(model._fitting(lone, 60)) == 60


def test_the_examples_answer_choices_in_sentences_and_use_every_letter() -> None:
    choices = [answer for _, answer in SHOTS if answer.startswith("The correct answer is ")]
    assert sorted(answer.split()[4] for answer in choices) == ["A,", "B,", "C,", "D,"]


def test_no_example_is_a_question_of_the_demo() -> None:
    items = demo.load("demo", {}, Path()).items
    asked = {item.question.partition(" Choose")[0].casefold() for item in items}
    assert asked
    assert not asked & {question.partition(" Choose")[0].casefold() for question, _ in SHOTS}


def test_a_chat_prompt_has_the_instructions_or_our_own() -> None:
    turns = [Turn("user", "Hello."), Turn("assistant", ""), Turn("user", "Is it late?")]
    assert [row["role"] for row in messages(Prompt("Be brief.", turns))] == [
        "system",
        "user",
        "user",
    ]
    assert messages(Prompt("Be brief.", turns))[0]["content"] == "Be brief."
    assert "spoken aloud" in messages(Prompt("", turns))[0]["content"]


@asynccontextmanager
async def chat_server(status: str, *events: str) -> AsyncIterator[str]:
    """A server that answers every request with these server-sent events; yields its URL."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ength:" in line)
        await reader.readexactly(length)
        body = "".join(f"data: {event}\n\n" for event in events)
        kind = "text/event-stream" if status.startswith("200") else "application/json"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def delta(text: str) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return json.dumps(
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [choice],
        }
    )


async def test_a_model_behind_an_http_api_streams_its_answer() -> None:
    async with chat_server("200 OK", delta("It is "), delta("B."), "[DONE]") as url:
        llm = ChatLlm(url, "m", "key")
        llm.load()
        prompt = Prompt("", [Turn("user", "Which one is it?")])
        pieces = await asyncio.to_thread(list, llm.stream(prompt, threading.Event()))
    assert pieces == ["It is ", "B."]


@pytest.mark.parametrize("status", ["401 Unauthorized", "500 Internal Server Error"])
async def test_a_model_that_refuses_is_an_endpoint_error_that_names_it(status: str) -> None:
    async with chat_server(status) as url:
        llm = ChatLlm(url, "m")
        llm.load()
        prompt = Prompt("", [Turn("user", "Which one is it?")])
        with pytest.raises(EndpointError, match=url):
            await asyncio.to_thread(list, llm.stream(prompt, threading.Event()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm_model": "m"}, "give --llm-url too, or a .gguf file"),
        ({"llm_model": "m.gguf", "llm_key_env": "KEY"}, "give --llm-url too"),
        ({"llm_url": "http://127.0.0.1:1/v1"}, "give --llm-model"),
        (
            {"llm_url": "http://127.0.0.1:1/v1", "llm_model": "m", "llm_key_env": "NO_SUCH_KEY"},
            "NO_SUCH_KEY",
        ),
    ],
)
def test_options_that_do_not_fit_are_one_line(options: dict[str, str], said: str) -> None:
    usual = {"voice": None, "llm_url": None, "llm_model": None, "llm_key_env": None}
    with pytest.raises(UserError, match=said):
        cascade(argparse.Namespace(**(usual | options)))


def test_a_gguf_file_of_the_users_own_is_refused_when_it_is_not_there() -> None:
    usual = {"voice": None, "llm_url": None, "llm_key_env": None}
    brain = cascade(argparse.Namespace(**usual, llm_model="/no/such/model.gguf"))
    with pytest.raises(UserError, match=r"/no/such/model\.gguf: no such file"):
        brain._llm.load()


def test_a_gguf_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF, or so it says")
    with pytest.raises(UserError, match=r"give another \.gguf file"):
        SmallLlm(str(tmp_path / "model.gguf")).load()

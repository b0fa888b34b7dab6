"""What goes wrong with a pipeline while it is asked: whose fault it is, and in which words."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from http_peer import Peer, serving
from pipeline_world import (
    KEY,
    Api,
    Failing,
    Recogniser,
    World,
    finished,
    pipeline,
    question,
    stages,
    told,
    world,
)

from voxmeter.client.audio import Pcm
from voxmeter.client.capture import Utterance
from voxmeter.client.child import ChildDiedError
from voxmeter.client.clock import SystemClock
from voxmeter.client.pipeline_asr import Recogniser as RealRecogniser
from voxmeter.client.pipeline_llm import EmbeddedModel
from voxmeter.client.pipeline_stage import StageError, failed
from voxmeter.client.pipeline_tts import LocalVoice
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask
from voxmeter.client.target import attempt
from voxmeter.endpoints.codec import Published, Settings, Turn
from voxmeter.endpoints.events import Fault, ReplyEnded
from voxmeter.endpoints.pipeline_options import read
from voxmeter.scoring.types import Unscored

REFUSED = {
    "401": ("401 Unauthorized", "", "invalid_api_key", "auth", False, None),
    "402": ("402 Payment Required", "", "insufficient balance", "quota", False, None),
    "429": ("429 Too Many Requests", "Retry-After: 20\r\n", "slow down", "busy", True, 20.0),
    "500": ("500 Internal Server Error", "", "out of memory", "server", True, None),
}


def faults(world: World) -> list[Fault]:
    return [event for event in world.events if isinstance(event, Fault)]


@pytest.mark.parametrize("status", REFUSED)
@pytest.mark.parametrize("route", ["completions", "speech"])
async def test_a_refusal_refuses_the_trial_with_the_services_words(
    tmp_path: Path, status: str, route: str
) -> None:
    line, headers, words, kind, retryable, wait = REFUSED[status]
    body = json.dumps({"error": {"message": f"{words}: your key {KEY}", "code": None}}).encode()
    async with world(
        tmp_path, Api(refuse={route: (line, headers, body)}), key=KEY, tts="openai"
    ) as made:
        capture = await made.ask()
    assert capture.outcome == "refused"
    (fault,) = faults(made)
    assert (fault.kind, fault.retryable, fault.retry_after_s) == (kind, retryable, wait)
    whose = "language model" if route == "completions" else "voice"
    assert fault.message.startswith(f"{whose}: HTTP {status}: {words}")
    assert KEY not in json.dumps(capture.rows) + str(capture.raw) + str(capture.fault)


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        (told({"error": {"code": "insufficient_quota", "message": "no"}}), "quota", "no"),
        (told({"error": {"message": "CUDA out of memory"}}), "server", "CUDA out of memory"),
    ],
)
async def test_an_error_amid_a_stream_refuses_the_trial(
    tmp_path: Path, raw: bytes, kind: str, words: str
) -> None:
    async with world(tmp_path, Api(raw=raw)) as made:
        capture = await made.ask()
    assert capture.outcome == "refused"
    (fault,) = faults(made)
    assert fault.kind == kind
    assert words in fault.message


async def test_a_server_that_is_not_there_is_disconnected(tmp_path: Path) -> None:
    async with serving(Api().play) as url:
        pass
    options = {"llm_base_url": url, "tts": "none"}
    with pipeline(tmp_path, options, Recogniser()) as made:
        capture = await made.ask()
    assert capture.outcome == "disconnected"
    assert (capture.fault or "").startswith(f"language model: {url}/v1/chat/completions: ")


async def test_a_speech_service_that_is_not_there_is_disconnected(tmp_path: Path) -> None:
    async with serving(Api().play) as gone:
        pass
    async with world(tmp_path, Api(), tts="openai", tts_base_url=gone) as made:
        capture = await made.ask()
    assert capture.outcome == "disconnected"
    assert (capture.fault or "").startswith("voice: ")


async def test_a_connection_that_breaks_amid_the_reply_is_disconnected(tmp_path: Path) -> None:
    async with world(tmp_path, Api(cut=True), tts="openai") as made:
        capture = await made.ask()
    assert capture.outcome == "disconnected"
    assert "language model: " in (capture.fault or "")


async def test_a_server_that_hangs_up_while_whisper_listens_is_connected_to_again(
    tmp_path: Path,
) -> None:
    api, hung_up = Api(), asyncio.Event()

    async def play(peer: Peer) -> None:
        if hung_up.is_set():
            await api.play(peer)
        peer.writer.write_eof()
        await peer.gone()  # the client has seen it, and closed its side
        hung_up.set()

    class Slow(Recogniser):
        async def hear(self, pcm: bytes, rate: int, limit_s: float) -> tuple[int, str]:
            await hung_up.wait()
            return await super().hear(pcm, rate, limit_s)

    async with serving(play) as url:
        with pipeline(tmp_path, {"llm_base_url": url, "tts": "none"}, Slow()) as made:
            capture = await made.ask()
    assert (capture.outcome, capture.reply_text) == ("ended", "Rome.")


async def test_what_is_no_chat_completion_breaks_the_protocol(tmp_path: Path) -> None:
    async with world(tmp_path, Api(raw=b"data: <html>\n\n")) as made:
        capture = await made.ask()
    assert capture.outcome == "protocol_error"


async def test_speech_that_would_be_noise_breaks_the_protocol(tmp_path: Path) -> None:
    async with world(tmp_path, Api(speech_type="audio/mpeg"), tts="openai") as made:
        capture = await made.ask()
    assert capture.outcome == "protocol_error"
    assert "the speech is audio/mpeg, and samples were asked for" in (capture.fault or "")
    assert not capture.audio


async def test_a_model_that_writes_nothing_gave_an_empty_reply(tmp_path: Path) -> None:
    async with world(tmp_path, Api(words=(), finish="length"), tts="openai") as made:
        capture = await made.ask()
    assert (capture.outcome, capture.audio, capture.reply_text) == ("ended", [], "")
    assert capture.fault == "server: the language model wrote nothing (it ended with length)"
    assert ReplyEnded("incomplete", detail="length") in made.events
    assert set(stages(capture)) == {"asr", "llm"}


async def test_a_reply_without_a_word_in_it_is_not_spoken(tmp_path: Path) -> None:
    api = Api(words=("...",))
    async with world(tmp_path, api, tts="openai", tts_by="whole") as made:
        capture = await made.ask()
    assert (capture.outcome, capture.reply_text, api.speeches) == ("ended", "...", [])


async def test_a_question_in_which_nothing_is_heard_is_put_to_no_model(tmp_path: Path) -> None:
    api = Api()
    async with world(tmp_path, api, Recogniser("")) as made:
        silent = await made.ask()
        assert not api.chats
        written = await made.ask(text="Which animal is this?")
    assert (silent.outcome, silent.reply_text) == ("ended", "")
    assert silent.fault == "server: Whisper heard nothing; no language model was asked"
    assert (written.outcome, written.reply_text, written.fault) == ("ended", "Rome.", None)
    assert api.asked()["messages"][0]["content"] == "Which animal is this?"


async def test_real_ears_hear_nothing_in_silence(tmp_path: Path) -> None:
    def silence(rate: int) -> Utterance:
        return Utterance(bytes(2 * rate), rate, 0, rate)

    api = Api()
    async with serving(api.play) as url:
        with pipeline(tmp_path, {"llm_base_url": url, "tts": "none"}) as made:
            capture = await attempt(made.target, silence)
    assert (capture.outcome, capture.reply_text, api.chats) == ("ended", "", [])


async def test_ears_that_fail_refuse_the_trial(tmp_path: Path) -> None:
    recogniser = Recogniser(error=failed("Whisper", "out of memory"))
    async with world(tmp_path, Api(), recogniser) as made:
        capture = await made.ask()
        assert (capture.outcome, capture.fault) == ("refused", "server: Whisper: out of memory")
        ask = Ask(question, history=[Turn("user", "", b"\0\0")], patience=made.target.patience)
        codec = made.target.codec()
        earlier = await converse(
            codec, made.target.transport(), made.target.address(codec, ""), ask
        )
    assert (earlier.outcome, earlier.fault) == ("refused", "server: Whisper: out of memory")


async def test_a_stage_that_says_nothing_for_too_long_refuses_the_trial(tmp_path: Path) -> None:
    async with world(tmp_path, Api(silent=True)) as made:
        made.pipeline.wanted = replace(made.pipeline.wanted, timeout_s=0.05)
        capture = await made.ask()
    assert capture.outcome == "refused"
    assert capture.fault == "server: language model: said nothing for 0.05 s"


async def test_a_session_that_is_given_up_stops_asking(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def play(peer: Peer) -> None:
        with suppress(asyncio.IncompleteReadError):  # it may be given up before it is asked
            await peer.request()
        await peer.gone()
        left.set()

    async with serving(play) as url:
        options = {"llm_base_url": url, "tts": "none"}
        with pipeline(tmp_path, options, Recogniser()) as made:
            short = replace(made.target.patience, first_reply_timeout_s=0.05)
            made.target = replace(made.target, patience=short)
            capture = await made.ask()
            assert capture.outcome == "timeout"
            await left.wait()


FAILURES = [
    (ChildDiedError("exit status -9; killed"), "its process ended (exit status -9; killed)"),
    (RuntimeError("no memory"), "RuntimeError: no memory"),
]


@pytest.mark.parametrize(("error", "words"), FAILURES)
async def test_a_voice_that_fails_refuses_the_trial(
    tmp_path: Path, error: Exception, words: str
) -> None:
    async with world(tmp_path, Api(), tts="hibari") as made:
        assert isinstance(made.pipeline.voice, LocalVoice)
        own, made.pipeline.voice._voices = made.pipeline.voice._voices, Failing(error)  # type: ignore[assignment]
        own.close()
        capture = await made.ask()
    assert (capture.outcome, capture.fault) == ("refused", f"server: voice: {words}")


@pytest.mark.parametrize(("error", "words"), FAILURES)
async def test_an_embedded_model_that_fails_refuses_the_trial(
    tmp_path: Path, error: Exception, words: str
) -> None:
    with pipeline(tmp_path, {"llm": "embedded", "tts": "none"}, Recogniser()) as made:
        model = made.pipeline.language_model
        assert isinstance(model, EmbeddedModel)
        own, model._worker = model._worker, Failing(error)  # type: ignore[assignment]
        own.close()
        capture = await made.ask()
    assert (capture.outcome, capture.fault) == ("refused", f"server: language model: {words}")


async def test_whisper_that_fails_or_takes_too_long_says_so(tmp_path: Path) -> None:
    options = read(Settings()).asr
    recogniser = RealRecogniser(options, tmp_path, SystemClock())
    reasons = []
    for result in (Unscored("Whisper failed", {"problem": "x"}), Unscored("interrupted"), None):
        recogniser._pool = Pool(result)  # type: ignore[assignment]
        with pytest.raises(StageError) as raised:
            await recogniser.hear(b"", 16_000, 0.01)
        reasons.append(str(raised.value))
    assert reasons == [
        "Whisper: Whisper failed; x",
        "Whisper: interrupted",
        "Whisper: was not done after 0.01 s",
    ]


class Pool:
    """Stands for the processes of Whisper: says one thing, or nothing at all."""

    def __init__(self, result: Unscored | None) -> None:
        self._result = result

    def submit(self, audio: Pcm) -> Future[Any]:
        return Future() if self._result is None else finished(self._result)


async def test_a_mistake_of_ours_is_not_taken_for_the_endpoints(tmp_path: Path) -> None:
    recogniser = Recogniser()
    recogniser.error = KeyError("words")  # type: ignore[assignment]
    async with world(tmp_path, Api(), recogniser) as made:
        with pytest.raises(ExceptionGroup) as raised:
            await made.ask()
    assert raised.group_contains(KeyError)


async def test_what_cannot_be_sent_is_our_own_mistake(tmp_path: Path) -> None:
    with pipeline(
        tmp_path, {"llm_base_url": "http://127.0.0.1:1", "tts": "none"}, Recogniser()
    ) as made:
        transport = made.target.transport()
        with pytest.raises(TypeError, match="Published"):
            await transport.send(Published("topic", b""))
        assert await transport.rtt_ms() is None
        await transport.close()

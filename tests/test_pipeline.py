"""Pipelines from end to end: real Whisper and voices, models behind a loopback API, and faults."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from http_peer import Peer, serving
from openai import AsyncOpenAI
from pipeline_world import (
    SAMPLES,
    Api,
    Ears,
    World,
    finished,
    pipeline,
    question,
    told,
    world,
)

from voxmeter.client import pipeline_llm
from voxmeter.client.audio import Pcm, from_pcm16, to_pcm16, write_flac
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.child import ChildDiedError
from voxmeter.client.cli import main
from voxmeter.client.clock import SystemClock
from voxmeter.client.models import locate
from voxmeter.client.pipeline import Pipeline
from voxmeter.client.pipeline_asr import Ears as RealEars
from voxmeter.client.pipeline_llm import EmbeddedMind
from voxmeter.client.pipeline_stage import StageError, failed
from voxmeter.client.pipeline_tts import LocalVoice
from voxmeter.client.session import converse
from voxmeter.client.speakers import speaker
from voxmeter.client.speaking import Ask
from voxmeter.client.target import attempt
from voxmeter.client.transport import Launch
from voxmeter.endpoints.codec import Published, Settings, Turn
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Fault, InputTranscript, ReplyEnded
from voxmeter.endpoints.pipeline_options import read
from voxmeter.endpoints.wav import wav_file
from voxmeter.scoring.types import Unscored

KEY = "sk-pipeline-0123456789"
REFUSED = {
    "401": ("401 Unauthorized", "", "invalid_api_key", "auth", False, None),
    "402": ("402 Payment Required", "", "insufficient balance", "quota", False, None),
    "429": ("429 Too Many Requests", "Retry-After: 20\r\n", "slow down", "busy", True, 20.0),
    "500": ("500 Internal Server Error", "", "out of memory", "server", True, None),
}


def stages(capture: Capture) -> dict[str, dict[str, Any]]:
    """The rows of a log that tell of stages, by their names."""
    found = [row for row in capture.rows if row["kind"] == "stage"]
    assert len({row["name"] for row in found}) == len(found)
    return {row["name"]: row for row in found}


def asked_ns(capture: Capture) -> int:
    return next(int(row["t_ns"]) for row in capture.rows if row["kind"] == "request")


def faults(world: World) -> list[Fault]:
    return [event for event in world.events if isinstance(event, Fault)]


def spoken(text: str) -> Utterance:
    """A question in the voice hibari."""
    voice = speaker("hibari")
    (samples,) = voice.speak(text)
    return Utterance(to_pcm16(Pcm(samples, voice.rate).samples), voice.rate, 0, len(samples))


# With real models


async def test_whisper_hears_a_model_answers_and_a_voice_speaks(tmp_path: Path) -> None:
    api = Api(words=("Rome is ", "the capital. ", "It is old."))
    heard = spoken("What is the capital of Italy?")
    async with serving(api.play) as url:
        options = {"llm_base_url": url, "max_tokens": 60, "llm_body": {"seed": 1}}
        settings: dict[str, Any] = {"model": "m", "instructions": "Be brief.", "temperature": 0.0}
        with pipeline(tmp_path, options, input_rate=heard.rate, **settings) as made:
            capture = await attempt(made.target, lambda _: heard, listen=made.events.append)
    assert capture.outcome == "ended"
    assert InputTranscript("What is the capital of Italy?") in made.events
    assert api.asked() == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is the capital of Italy?"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "max_tokens": 60,
        "seed": 1,
    }
    assert capture.reply_text == "Rome is the capital. It is old."
    assert capture.usage == {"prompt_tokens": 20, "completion_tokens": 3}
    seconds = sum(len(data) for _, data in capture.audio) / 2 / 24_000
    assert 1.0 < seconds < 8.0
    took = stages(capture)
    assert set(took) == {"asr", "llm_first", "llm", "tts_first", "tts"}
    assert took["asr"]["began_ms"] == 0
    assert 0 < took["llm_first"]["ms"] <= took["llm"]["ms"]
    assert 0 < took["tts_first"]["ms"] <= took["tts"]["ms"]
    assert took["asr"]["ms"] <= took["llm"]["began_ms"] <= took["tts"]["began_ms"]


async def test_the_stages_lie_on_the_clock_of_every_other_row(tmp_path: Path) -> None:
    async with world(tmp_path, Api(), tts="hibari") as made:
        capture = await made.ask()
    took = stages(capture)
    for row in took.values():
        began_ns = row["t_ns"] - row["ms"] * 1e6
        handed_ns = began_ns - row["began_ms"] * 1e6
        assert 0 <= handed_ns - asked_ns(capture) < 50e6
    first = capture.rows[capture.audio[0][0]]
    assert first["t_ns"] == took["tts_first"]["t_ns"]
    words = next(row for row in capture.rows if row["kind"] == "reply_text")
    assert words["t_ns"] == took["llm_first"]["t_ns"]


@pytest.mark.parametrize("channel", ["speech", "text"])
def test_a_run_with_nothing_but_local_models_is_scored_and_has_its_stages(
    tmp_path: Path, channel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.toml"
    text = '[endpoint.options]\ntts = "none"\n' if channel == "text" else ""
    bench.write_text(
        f'[run]\nout = "{tmp_path}/runs"\nwarmup = 0\n'
        '[[endpoint]]\nname = "local"\npreset = "whisper-local"\n'
        f'{text}[[suite]]\nkind = "demo"\nlimit = 2\n'
    )
    assert main(["run", str(bench)]) == 0
    folder = Path(capsys.readouterr().out.splitlines()[-1])
    rows = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert {row["reply_channel"] for row in rows} == {channel}
    kind = "request" if channel == "speech" else "text"
    assert {row["latency_kind"] for row in rows} == {kind}
    transcribed = (folder / "transcripts.jsonl").exists()
    assert transcribed == (channel == "speech")  # what is written needs no recogniser
    logs = sorted(folder.glob("events/*/*.jsonl"))
    assert len(logs) == 2
    for log in logs:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        names = [line["name"] for line in lines if line["kind"] == "stage"]
        voice = ["tts_first", "tts"] if channel == "speech" else []
        assert names == ["asr", "llm_first", "llm", *voice]


# How a reply comes about


async def test_a_sentence_is_spoken_before_the_next_one_is_written(tmp_path: Path) -> None:
    api = Api(words=("Rome. ", "It is", " old."), hold_after=1)  # waits until speech is asked for
    async with world(tmp_path, api, tts="openai") as made:
        capture = await made.ask()
    assert capture.outcome == "ended"
    assert [one["input"] for one in api.said()] == ["Rome.", "It is old."]
    assert b"".join(data for _, data in capture.audio) == 2 * SAMPLES
    took = stages(capture)
    assert took["tts_first"]["t_ns"] < took["llm"]["t_ns"] < took["tts"]["t_ns"]


async def test_the_whole_reply_is_spoken_at_once_where_that_is_wanted(tmp_path: Path) -> None:
    api = Api(words=("Rome. ", "It is", " old."))
    async with world(tmp_path, api, tts="openai", tts_by="whole") as made:
        capture = await made.ask()
    assert [one["input"] for one in api.said()] == ["Rome. It is old."]
    took = stages(capture)
    assert took["llm"]["t_ns"] <= took["tts_first"]["t_ns"]


async def test_a_speech_service_is_asked_for_samples_in_a_voice(tmp_path: Path) -> None:
    api = Api()
    options: dict[str, Any] = {
        "tts_model": "kokoro",
        "tts_voice": "bella",
        "tts_body": {"speed": 1.2},
    }
    async with world(tmp_path, api, key=KEY, tts="openai", **options) as made:
        capture = await made.ask()
    assert api.said() == [
        {
            "input": "Rome.",
            "voice": "bella",
            "response_format": "pcm",
            "model": "kokoro",
            "speed": 1.2,
        }
    ]
    assert {capture.rows[index]["rate"] for index, _ in capture.audio} == {24_000}
    for one in (*api.chats, *api.speeches):  # one server, one key
        assert one.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("pieces", "kind", "rate"),
    [
        ((SAMPLES[:3], SAMPLES[3:]), "audio/pcm; rate=24000", 24_000),
        ((SAMPLES, b"\1"), "application/octet-stream", 24_000),
        ((wav_file(SAMPLES, 16_000)[:21], wav_file(SAMPLES, 16_000)[21:]), "audio/wav", 16_000),
    ],
)
async def test_speech_is_read_however_it_is_cut(
    tmp_path: Path, pieces: tuple[bytes, ...], kind: str, rate: int
) -> None:
    async with world(tmp_path, Api(speech=pieces, speech_type=kind), tts="openai") as made:
        capture = await made.ask()
    assert b"".join(data for _, data in capture.audio) == SAMPLES
    assert all(len(data) % 2 == 0 for _, data in capture.audio)
    assert {capture.rows[index]["rate"] for index, _ in capture.audio} == {rate}


async def test_openais_own_client_sends_what_we_send_and_reads_what_we_read(tmp_path: Path) -> None:
    api = Api(words=("Rome. ", "It is old."))
    options = {"max_tokens": 9, "tts": "openai", "tts_by": "whole", "tts_voice": "alloy"}
    async with serving(api.play) as url:
        options |= {"llm_base_url": url, "llm_model": "m"}
        with pipeline(tmp_path, options, Ears("Hello.")) as made:
            made.target = replace(made.target, api_key=KEY)
            capture = await made.ask()
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as theirs:
            stream = await theirs.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "Hello."}],
                stream=True,
                stream_options={"include_usage": True},
                max_tokens=9,
            )
            chunks = [chunk async for chunk in stream]
            text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
            speech = await theirs.audio.speech.create(
                model="tts-1", voice="alloy", input=text, response_format="pcm"
            )
    assert api.asked(0) == api.asked(1)
    assert api.said()[0] == api.said()[1]
    for ours, own in (api.chats, api.speeches):
        assert ours.target == own.target
        assert ours.headers["authorization"] == own.headers["authorization"]
    assert capture.reply_text == text
    assert capture.audio[0][1] == await speech.aread()


async def test_a_service_elsewhere_gets_a_key_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_KEY", KEY)
    monkeypatch.setenv("TTS_KEY", "tts-key-0123456789")
    api, voice = Api(), Api()
    keys: dict[str, Any] = {"llm_key_env": "LLM_KEY", "tts_key_env": "TTS_KEY"}
    async with (
        serving(voice.play) as there,
        world(tmp_path, api, key="unused-key", tts="openai", tts_base_url=there, **keys) as made,
    ):
        assert (await made.ask()).outcome == "ended"
    assert api.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert voice.speeches[0].headers["authorization"] == "Bearer tts-key-0123456789"
    assert not api.speeches


async def test_a_service_elsewhere_gets_no_key_of_the_language_models(tmp_path: Path) -> None:
    api, voice = Api(), Api()
    async with (
        serving(voice.play) as there,
        world(tmp_path, api, key=KEY, tts="openai", tts_base_url=there) as made,
    ):
        assert (await made.ask()).outcome == "ended"
    assert "authorization" not in voice.speeches[0].headers


async def test_what_is_asked_in_writing_stands_before_what_was_heard(tmp_path: Path) -> None:
    api = Api()
    async with world(tmp_path, api, Ears("Meow.")) as made:
        await made.ask(text="Which animal is this?")
    (message,) = api.asked()["messages"]
    assert message == {"role": "user", "content": "Which animal is this?\nMeow."}


async def test_earlier_turns_are_told_and_those_that_were_spoken_are_heard(tmp_path: Path) -> None:
    api, ears = Api(), Ears("Heard.")
    history = [
        Turn("system", "Be kind."),
        Turn("user", "Not what was heard", b"\0\0" * 7),
        Turn("assistant", "Two.", b"\0\0"),
        Turn("user", "Three?"),
    ]
    async with world(tmp_path, api, ears) as made:
        ask = Ask(question, history=history, patience=made.target.patience)
        codec, transport = made.target.codec(), made.target.transport()
        capture = await converse(codec, transport, made.target.address(codec, ""), ask)
    assert capture.outcome == "ended"
    assert ears.heard == [(7, 16_000), (1_600, 16_000)]
    assert [(one["role"], one["content"]) for one in api.asked()["messages"]] == [
        ("system", "Be kind."),
        ("user", "Heard."),
        ("assistant", "Two."),
        ("user", "Three?"),
        ("user", "Heard."),
    ]
    heard = [row for row in capture.rows if row["kind"] == "input_transcript"]
    assert len(heard) == 1  # the question's alone, whose time is measured


async def test_replies_in_writing_ask_no_voice(tmp_path: Path) -> None:
    api = Api(words=("Ro", "me."))
    async with world(tmp_path, api) as made:
        capture = await made.ask()
    assert (capture.reply_text, capture.audio, api.speeches) == ("Rome.", [], [])
    assert capture.rows[0]["latency_kind"] == "text"
    assert set(stages(capture)) == {"asr", "llm_first", "llm"}


# Failures


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
    with pipeline(tmp_path, options, Ears()) as made:
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

    class Slow(Ears):
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
    async with world(tmp_path, api, Ears("")) as made:
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
    ears = Ears(error=failed("Whisper", "out of memory"))
    async with world(tmp_path, Api(), ears) as made:
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
        await peer.request()
        await peer.gone()
        left.set()

    async with serving(play) as url:
        options = {"llm_base_url": url, "tts": "none"}
        with pipeline(tmp_path, options, Ears()) as made:
            short = replace(made.target.patience, first_reply_timeout_s=0.05)
            made.target = replace(made.target, patience=short)
            capture = await made.ask()
            assert capture.outcome == "timeout"
            await left.wait()


class Failing:
    """Stands for the process of a voice or a model; whatever it is asked, it fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def submit(self, *asked: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self._error)
        return future

    say = submit

    def close(self) -> None:
        pass


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
    with pipeline(tmp_path, {"llm": "embedded", "tts": "none"}, Ears()) as made:
        assert isinstance(made.pipeline.mind, EmbeddedMind)
        own, made.pipeline.mind._worker = made.pipeline.mind._worker, Failing(error)  # type: ignore[assignment]
        own.close()
        capture = await made.ask()
    assert (capture.outcome, capture.fault) == ("refused", f"server: language model: {words}")


async def test_whisper_that_fails_or_takes_too_long_says_so(tmp_path: Path) -> None:
    hearing = read(Settings()).hearing
    ears = RealEars(hearing, tmp_path, SystemClock())
    reasons = []
    for result in (Unscored("Whisper failed", {"problem": "x"}), Unscored("interrupted"), None):
        ears._pool = Pool(result)  # type: ignore[assignment]
        with pytest.raises(StageError) as raised:
            await ears.hear(b"", 16_000, 0.01)
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
    ears = Ears()
    ears.error = KeyError("words")  # type: ignore[assignment]
    async with world(tmp_path, Api(), ears) as made:
        with pytest.raises(ExceptionGroup) as raised:
            await made.ask()
    assert raised.group_contains(KeyError)


async def test_what_cannot_be_sent_is_our_own_mistake(tmp_path: Path) -> None:
    with pipeline(tmp_path, {"llm_base_url": "http://127.0.0.1:1", "tts": "none"}, Ears()) as made:
        transport = made.target.transport()
        with pytest.raises(TypeError, match="Published"):
            await transport.send(Published("topic", b""))
        assert await transport.rtt_ms() is None
        await transport.close()


# What is not there


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "options.llm_base_url: is missing; write the URL of an API"),
        ({"llm_base_url": "http://h", "tts": "parrot"}, "options.tts: 'parrot'; use 'hibari'"),
        ({"llm_base_url": "http://h", "llm_key_env": "NO_SUCH_KEY"}, "options.llm_key_env: "),
        ({"llm_base_url": "http://h", "llm_key_env": "sk-1 2"}, "options.llm_key_env: this is not"),
        ({"llm_base_url": "http://h", "tts_voice": "ann"}, "voice 'hibari:ann': no such voice"),
        ({"llm_base_url": "http://h", "asr_model": "./none"}, "none: no such file; give a folder"),
        ({"llm": "embedded", "llm_model": "none.gguf"}, "model 'none.gguf': no such model"),
    ],
)
def test_what_is_not_there_is_the_users_one_line(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError) as raised:
        Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
    assert str(raised.value).startswith(f"bench.toml {words}")
    assert "\n" not in str(raised.value)


def test_a_whisper_that_is_not_here_is_told_how_to_get_it(tmp_path: Path) -> None:
    options = {"llm_base_url": "http://h", "asr_model": "large-v3"}
    with pytest.raises(UserError) as raised:
        Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
    assert "set allow_downloads = true in [endpoint.options]" in raised.value.cure


def test_a_model_that_cannot_be_loaded_is_told_in_the_words_of_its_option(tmp_path: Path) -> None:
    options = {"llm_base_url": "http://h", "tts": "none", "asr_compute_type": "int3"}
    made = Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
    with pytest.raises(UserError, match=r"bench\.toml options\.asr_compute_type: 'int3', which"):
        made.__enter__()


def test_a_model_whose_process_dies_while_it_is_loaded_ends_the_run(tmp_path: Path) -> None:
    options = {"llm_base_url": "http://h", "tts": "hibari"}
    died = ChildDiedError("exit status -9; ")
    for stage, outcome in (
        ("ears", finished(Unscored("died twice", {"problem": "exit status -9; "}))),
        ("voice", Failing(died).submit()),
    ):
        made = Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
        setattr(made, stage, Loading(outcome))
        with pytest.raises(UserError, match=r"slow model: its process ended .*\(exit status -9"):
            made.__enter__()


class Loading(Ears):
    """Stands for a stage whose loading has an outcome of its own."""

    def __init__(self, outcome: Future[Any]) -> None:
        super().__init__(name="slow model")
        self._outcome = outcome

    def load(self) -> Future[Any]:
        return self._outcome


def test_an_embedded_model_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_llm, "find_spec", lambda _: None)
    options = {"llm": "embedded", "tts": "none"}
    with pytest.raises(UserError, match=r"needs the package cyllama; pip install 'voxmeter\[local"):
        Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))


def test_paths_start_from_the_folder_of_the_bench(tmp_path: Path) -> None:
    model, config = locate("piper", "tts").path, Path(f"{locate('piper', 'tts').path}.json")
    (tmp_path / "own.onnx").symlink_to(model)
    (tmp_path / "own.onnx.json").symlink_to(config)
    options = {"llm_base_url": "http://h", "tts": "piper", "tts_voice": "own.onnx"}
    made = Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
    assert made.voice is not None
    assert made.voice.name == f"piper:{tmp_path}/own.onnx"


# In a bench


def bench(folder: Path, url: str, *lines: str) -> Path:
    tone = question(16_000)
    write_flac(folder / "tone.flac", Pcm(from_pcm16(tone.pcm), 16_000).samples, 16_000)
    (folder / "q.jsonl").write_text('{"id": "q", "audio": "tone.flac", "kind": "open"}\n')
    path = folder / "bench.toml"
    table = "\n".join(lines)
    path.write_text(
        f'[run]\nout = "{folder}/runs"\nwarmup = 0\n'
        f'[[suite]]\nkind = "jsonl"\npath = "q.jsonl"\n'
        f'[[endpoint]]\nname = "p"\nkind = "pipeline"\n{table}\n'
        f'[endpoint.options]\nllm_base_url = "{url}"\ntts = "none"\n'
    )
    return path


@pytest.mark.parametrize("place", ["api_key_env", "options.llm_key_env"])
def test_a_key_that_is_not_set_is_told_before_anything_is_asked(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f'{place} = "NO_SUCH_KEY"'
    path = bench(tmp_path, "http://127.0.0.1:1", line)
    text = path.read_text()
    if place.startswith("options."):  # a table is written once
        path.write_text(text.replace(line, "") + line.partition(".")[2] + "\n")
    assert main(["run", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"{place}: environment variable NO_SUCH_KEY is not set" in told
    assert not (tmp_path / "runs").exists()


async def test_a_key_that_a_server_repeats_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_KEY", KEY)
    ears_hear_anything = Ears("Hello.")
    monkeypatch.setattr("voxmeter.client.pipeline.Ears", lambda *_: ears_hear_anything)
    api = Api(raw=told({"error": {"code": "invalid_api_key", "message": f"wrong: {KEY}"}}))
    async with serving(api.play) as url:
        path = bench(tmp_path, url)
        path.write_text(path.read_text() + 'llm_key_env = "OWN_KEY"\n')
        assert await asyncio.to_thread(main, ["run", str(path)]) == 3
    assert api.chats[0].headers["authorization"] == f"Bearer {KEY}"
    (folder,) = (tmp_path / "runs").iterdir()
    files = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert any(b"wrong: [redacted]" in data for data in files)
    assert not any(KEY.encode() in data for data in files)

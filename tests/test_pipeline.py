"""Pipelines from end to end: real Whisper and voices, and models behind a loopback API."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from http_peer import serving
from openai import AsyncOpenAI
from pipeline_world import (
    KEY,
    SAMPLES,
    Api,
    Recogniser,
    pipeline,
    question,
    stages,
    world,
)

from voxmeter.client.audio import Pcm, to_pcm16
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.cli import main
from voxmeter.client.session import converse
from voxmeter.client.speakers import speaker
from voxmeter.client.speaking import Ask
from voxmeter.client.target import attempt
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.events import InputTranscript
from voxmeter.endpoints.wav import wav_file


def sent_ns(capture: Capture, **fields: str) -> int:
    """When the first message of a kind left."""
    out = [row for row in capture.rows if row["dir"] == "out"]
    return next(int(row["t_ns"]) for row in out if row.items() >= fields.items())


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
    asked, told = sent_ns(capture, kind="request"), sent_ns(capture, name="text")
    took = stages(capture)
    for row in took.values():
        handed_ns = row["t_ns"] - (row["began_ms"] + row["ms"]) * 1e6
        assert asked - 2_000 <= handed_ns <= told + 2_000  # figures are rounded to microseconds
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
        with pipeline(tmp_path, options, Recogniser("Hello.")) as made:
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
    async with world(tmp_path, api, Recogniser("Meow.")) as made:
        await made.ask(text="Which animal is this?")
    (message,) = api.asked()["messages"]
    assert message == {"role": "user", "content": "Which animal is this?\nMeow."}


async def test_earlier_turns_are_told_and_those_that_were_spoken_are_heard(tmp_path: Path) -> None:
    api, recogniser = Api(), Recogniser("Heard.")
    history = [
        Turn("system", "Be kind."),
        Turn("user", "Not what was heard", b"\0\0" * 7),
        Turn("assistant", "Two.", b"\0\0"),
        Turn("user", "Three?"),
    ]
    async with world(tmp_path, api, recogniser) as made:
        ask = Ask(question, history=history, patience=made.target.patience)
        codec, transport = made.target.codec(), made.target.transport()
        capture = await converse(codec, transport, made.target.address(codec, ""), ask)
    assert capture.outcome == "ended"
    assert recogniser.heard == [(7, 16_000), (1_600, 16_000)]
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

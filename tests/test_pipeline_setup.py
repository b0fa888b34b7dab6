"""What a pipeline needs before it is asked: settings, models, voices and keys that are there."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from http_peer import serving
from pipeline_world import (
    KEY,
    Api,
    Failing,
    Recogniser,
    finished,
    question,
    told,
)

from voxmeter.client import pipeline_llm
from voxmeter.client.audio import Pcm, from_pcm16, write_flac
from voxmeter.client.child import ChildDiedError
from voxmeter.client.cli import main
from voxmeter.client.models import locate
from voxmeter.client.pipeline import Pipeline
from voxmeter.client.transport import Launch
from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.types import Unscored


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
        ("recogniser", finished(Unscored("died twice", {"problem": "exit status -9; "}))),
        ("voice", Failing(died).submit()),
    ):
        made = Pipeline(Launch("bench.toml", tmp_path, settings=Settings(options=options)))
        setattr(made, stage, Loading(outcome))
        with pytest.raises(UserError, match=r"slow model: its process ended .*\(exit status -9"):
            made.__enter__()


class Loading(Recogniser):
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
    hears_anything = Recogniser("Hello.")
    monkeypatch.setattr("voxmeter.client.pipeline.Recogniser", lambda *_: hears_anything)
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

"""docs/endpoints.md is true: its blocks load, the tests that it names exist, its bench runs."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import needs

from voxmeter.client import config
from voxmeter.client.audio import write_flac
from voxmeter.client.bench_rules import refuse_unbuilt
from voxmeter.client.cli import main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
SYSTEMS = [
    "SpeechGPT, chain of modality",
    *("TWIST", "SPIRIT-LM", "Moshi", "GLM-4-Voice", "GLM-4-Voice, as VoxEval calls it"),
    *("PandaGPT", "NExT-GPT", "Qwen-Audio", "Qwen-Audio-Chat", "Qwen-Audio-Turbo"),
    *("Mini-Omni", "SALMONN 7B, 13B", "BLSP", "Macaw-LLM"),
    *("Whisper + LLaMA-2", "Whisper + LLaMA-3, 8B and 70B", "Whisper + GPT-4", "GPT-4o realtime"),
]
JUDGES = ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "llama-3-70b", "qwen-2-72b"]
PROGRAMS = {path.name for path in (ROOT / "examples" / "endpoints").glob("*.py")}
SUITE = {"suite": [{"kind": "demo"}]}


def rows() -> list[list[str]]:
    """The cells of the table of systems."""
    lines = PAGE.partition("|---|---|---|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def benches() -> dict[str, dict[str, Any]]:
    """Every system's block, by its heading."""
    found = {}
    for heading, text in BLOCKS:
        made = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        if made and heading not in {"Judges", "Every kind, on this machine"}:
            found[heading] = tomllib.loads("\n".join(made))
    return found


def block(heading: str) -> str:
    text = dict(BLOCKS)[heading]
    return "\n".join(re.findall(r"```toml\n(.*?)```", text, re.DOTALL))


def without_links(cell: str) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)


def test_every_system_of_the_papers_has_its_row() -> None:
    named = [without_links(row[0]) for row in rows()]
    assert [name for name in SYSTEMS if name not in named] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: without_links(row[0]))
def test_a_row_names_a_kind_and_a_test_that_are_there(row: list[str]) -> None:
    name, _, kind, replies, known, test = row
    file, _, function = test.strip("`").partition("::")
    assert re.search(rf"^(async )?def {function}\(", (ROOT / file).read_text(), re.MULTILINE), test
    assert replies
    assert known
    headings = re.findall(r"\]\(#([^)]+)\)", name)
    made = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-"): one for one in benches()}
    for heading in headings:
        bench = config.parse(benches()[made[heading]] | SUITE, "bench.toml")
        assert {f"`{one.kind}`" for one in bench.endpoints} == {kind}


@pytest.mark.parametrize("heading", benches())
def test_a_block_can_be_pasted_where_what_it_names_is_there(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = benches()[heading]
    for table in tables["endpoint"]:
        folder = tmp_path / table.get("folder", ".")
        folder.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (folder / name).touch()
        if table.get("api_key_env"):
            monkeypatch.setenv(table["api_key_env"], "sk-stand-in")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-stand-in")
    (tmp_path / "macaw.jsonl").write_text('{"id": "q", "text": "Yes."}\n')
    refuse_unbuilt(config.parse(tables | SUITE, "bench.toml", tmp_path))


def test_every_wrapper_that_a_block_names_is_an_example_or_voxevals() -> None:
    named = set(re.findall(r'"([\w.]+\.py)"', PAGE)) - {"cli_inference.py", "VoxEval_eval_glm.py"}
    assert named == PROGRAMS


def test_the_judges_of_the_papers_are_ready_to_be_asked() -> None:
    endpoint = {"endpoint": [{"name": "a", "builtin": "echo"}]}
    bench = config.parse(tomllib.loads(block("Judges")) | endpoint | SUITE, "bench.toml")
    assert [one.name for one in bench.judges] == JUDGES
    refuse_unbuilt(bench)


def test_the_bench_with_every_kind_is_checked_and_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sphn")
    pytest.importorskip("aiomqtt")
    needs("mosquitto")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    tone = 0.3 * np.sin(2 * np.pi * 200 * np.arange(8_000) / 16_000)
    (tmp_path / "answers").mkdir()
    for file in ("q.flac", "answers/q.flac"):
        write_flac(tmp_path / file, tone.astype(np.float32), 16_000)
    item = {"id": "q", "audio": "q.flac", "kind": "open"}
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    text = dict(BLOCKS)["Every kind, on this machine"]
    (tmp_path / "answer.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    bench = block("Every kind, on this machine")
    suite = '[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n'
    (tmp_path / "bench.toml").write_text(bench.partition("[[suite]]")[0] + suite)
    names = [one["name"] for one in tomllib.loads(bench)["endpoint"]]
    assert main(["check"]) == 0
    heard = [line for line in capsys.readouterr().out.splitlines() if 'asked "q": heard' in line]
    assert [line.split()[2] for line in heard] == [f"{name}:" for name in names]
    assert main(["run", "--quiet"]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert [(row["endpoint"], row["status"]) for row in trials] == [(one, "ok") for one in names]

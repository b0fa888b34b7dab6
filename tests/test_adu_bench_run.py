"""Whole runs of ADU-Bench: streamed over every kind of turn, heard, rated by a judge, averaged."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import adu_world
import numpy as np
import pytest
import soundfile
from adu_world import RATE, line
from attempt_logs import joined, silence, voice
from chat_server import Answer, Body, Chat, chat, fenced

from voxmeter.client.builtin import serving
from voxmeter.client.cli import main

SAYS = "text=Grandma+is+called+to+dinner."
PAUSE_MS, ENDPOINT_MS = 400, 700
FILES = {
    "ADU-Ambiguity/pause": [
        line("1.wav", "Let's eat, Grandma.", "Grandma is called to dinner."),
        line("gone.wav", "Let's eat Grandma.", "Grandma is eaten."),
    ],
    "ADU-Skill/physics": [line("2.wav", "Why is the sky blue?", "It scatters blue light.")],
    "ADU-Skill/law": [line("3.wav", "What is a tort?", None)],
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def download(tmp_path: Path) -> Path:
    """Two domains; the pause is a real one, in a recording that is an MP3 file named .wav."""
    root = adu_world.write(tmp_path / "ADU-Bench", FILES)
    file = io.BytesIO()
    sound = joined(silence(40), voice(300), silence(PAUSE_MS), voice(300), silence(40))
    soundfile.write(file, np.asarray(sound, np.float32), RATE, format="MP3")
    (root / "input" / "ADU-Ambiguity" / "1.wav").write_bytes(file.getvalue())
    (root / "input" / "ADU-Ambiguity" / "gone.wav").unlink()
    return root


def rate(body: Body) -> Answer | str:
    """Ten or nothing for the pause, by one word; else 6, or 8 where the response comes first."""
    parts = fenced(body)
    texts = dict(parts)
    if "Grandma" in texts["question"]:
        return "10" if "grandma" in texts["response"].lower() else "0"
    names = [name for name, _ in parts]
    return "8" if names.index("response") < names.index("reference") else "6"


@pytest.fixture
def judge() -> Iterator[Chat]:
    with chat(rate) as service:
        yield service


def bench(download: Path, endpoints: str, judge: Chat) -> Path:
    path = download.parent / "bench.toml"
    path.write_text(
        f'[run]\nout = "{download.parent}/runs"\nwarmup = 0\nconcurrency = 3\n{endpoints}\n'
        '[[suite]]\nkind = "adu-bench"\nname = "adu"\npath = "ADU-Bench"\n'
        f'[[judge]]\nname = "gpt"\nmodel = "gpt-4-0613"\nbase_url = "{judge.url}"\n',
        encoding="utf-8",
    )
    return path


def ran(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Path:
    assert main(["run", str(path), *options]) == 0
    return Path(capsys.readouterr().out.splitlines()[-1])


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / f"{name}.jsonl").read_text().splitlines()]


WAYS: list[tuple[str, str, str, str]] = [
    ("server-vad", "openai-realtime", f"delay_ms={ENDPOINT_MS}&endpoint_ms={ENDPOINT_MS}", ""),
    ("commit", "openai-realtime", "delay_ms=250", 'turn_end = "commit"'),
    ("duplex", "moshi", f"delay_ms=900&endpoint_ms={ENDPOINT_MS}", "quiet_ms = 500"),
    ("request", "http", "delay_ms=250", ""),
]


def test_one_pause_is_asked_over_every_kind_of_turn_rated_and_averaged(
    download: Path, judge: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sphn")
    with ExitStack() as stack:
        tables = ""
        for name, kind, query, more in WAYS:
            url = stack.enter_context(serving("metronome", kind=kind))
            whole = f"{url}?{query}&pacing=realtime&{SAYS}"
            tables += (
                f'[[endpoint]]\nname = "{name}"\nkind = "{kind}"\nurl = "{whole}"\n{more}\n'
                f'size = "7B"\n'
            )
        folder = ran(bench(download, tables, judge), capsys)
    trials = {(row["endpoint"], row["item"]): row for row in rows(folder, "trials")}
    assert len(trials) == 16
    for name, _, _, _ in WAYS:
        asked = trials[name, "ADU-Ambiguity/pause:1"]
        assert (asked["status"], asked["latency_kind"]) == ("ok", name)
        assert asked["clip"]["ms"] == pytest.approx(680 + PAUSE_MS, abs=60), "an MP3 has padding"
        roles = [one["role"] for one in asked["segments"]]
        assert roles.count("answer") == 1
        assert trials[name, "ADU-Ambiguity/pause:2"]["status"] == "bad_clip"
    scores = {(row["key"], row["metric"]): row for row in rows(folder, "scores")}
    for name, _, _, _ in WAYS:
        key = trials[name, "ADU-Ambiguity/pause:1"]["key"]
        assert scores[key, "judge_score:gpt"]["value"] == 10.0
        assert scores[key, "judge_score:gpt"]["detail"]["rubric"] == "adu-binary"
        key = trials[name, "ADU-Skill/physics:1"]["key"]
        assert scores[key, "judge_score:gpt"]["value"] == 7.0
        assert scores[key, "position_gap:gpt"]["value"] == 2.0
        key = trials[name, "ADU-Skill/law:1"]["key"]
        assert scores[key, "judge_score:gpt"]["unscored"] == "item has no reference"
    found = json.loads((folder / "summary.json").read_text())
    assert [cell["endpoint"] for cell in found["cells"]] == [name for name, *_ in WAYS]
    for cell in found["cells"]:
        figures = {tuple(row["path"]): row for row in cell["tables"]["figures"]
                   if row["metric"] == "judge_score:gpt"}  # fmt: skip
        assert figures["ADU-Ambiguity",]["printed"] == "10.00"
        assert figures["ADU-Skill",]["printed"] == "7.00"
        assert figures[()]["printed"] == "8.50"
        assert cell["size"] == "7B"
        assert cell["metrics"]["judge_score:gpt"]["left_out"] == 2  # no clip, and no reference
    recorded = json.loads((folder / "run.json").read_text())
    assert recorded["aggregation"]["adu"]["levels"][1]["by_group"]["ADU-Skill"] == "micro"
    report = (folder / "report.md").read_text()
    assert "| endpoint | size | ADU-Ambiguity | ADU-Skill | overall | n |" in report
    assert main(["report", str(folder), "--published", "adu-bench"]) == 0
    report = (folder / "report.md").read_text()
    assert "### Table 2: mean of both orders, rated by gpt-4-0613" in report
    assert "| **duplex (gpt-4-0613)** | 7B | - | **7.00** (n 1) | - | **10.00** (n 1) |" in report


def test_a_server_that_takes_the_pause_for_the_end_answers_too_early_and_it_is_told(
    download: Path, judge: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    table = (
        '[[endpoint]]\nname = "hasty"\n'
        f'builtin = "metronome?delay_ms=200&endpoint_ms=200&pacing=burst&{SAYS}"\n'
    )
    folder = ran(bench(download, table, judge), capsys, "--only", "suite=adu")
    (asked,) = [row for row in rows(folder, "trials") if row["item"] == "ADU-Ambiguity/pause:1"]
    assert asked["status"] == "ok"
    assert [one["role"] for one in asked["segments"]] == ["early", "answer"]
    found = json.loads((folder / "summary.json").read_text())
    assert found["cells"][0]["early"] == {"replies": 1, "trials": 1, "talked_over": 0}
    assert "early-replies" in [one["code"] for one in found["warnings"]]


def questions_asked(judge: Chat) -> set[str]:
    return {dict(fenced(body))["question"] for body in judge.bodies}


def test_only_what_has_a_reply_and_a_reference_is_put_to_the_judge_in_both_orders(
    download: Path, judge: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f'[[endpoint]]\nname = "m"\nbuiltin = "metronome?delay_ms=250&pacing=burst&{SAYS}"\n'
    ran(bench(download, table + 'turn_end = "commit"\n', judge), capsys)
    assert questions_asked(judge) == {"Let's eat, Grandma.", "Why is the sky blue?"}
    orders = [[name for name, _ in fenced(body) if name != "question"] for body in judge.bodies]
    assert sorted(orders) == [["reference", "response"]] * 2 + [["response", "reference"]] * 2

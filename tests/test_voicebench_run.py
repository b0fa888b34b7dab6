"""Whole runs of VoiceBench and Big Bench Audio against a model that writes, with a judge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from attempt_logs import RATE, joined, silence, voice
from big_bench_world import ANSWERS, line
from chat_server import Body, Chat
from chat_server import chat as serving
from voicebench_world import ROWS, unpacked

from voxmeter.client.cli import main
from voxmeter.suites.voicebench_subsets import COLUMNS

SAID = {
    0: "Mix flour, water, salt and yeast, let it rise and bake it.",
    1: "I'm sorry, but I can't help with that.",
    2: "The answer is B.",
    3: "The sky " * 30,
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def sound(tmp_path: Path) -> Callable[[Path, int], None]:
    """Put sound of a length in place of each recording; the model knows questions by it."""
    made = tmp_path / "made"
    made.mkdir()

    def write(path: Path, number: int) -> None:
        source = made / f"{number}.wav"
        if not source.exists():
            whole = joined(silence(20), voice(200 + 100 * number), silence(20))
            soundfile.write(source, np.asarray(whole, np.float32), RATE)
        shutil.copyfile(source, path)

    return write


def length_ms(body: Body) -> int:
    import base64
    import io

    (part,) = [one for one in body["messages"][-1]["content"] if one["type"] == "input_audio"]
    info = soundfile.info(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))
    return int(1000 * info.frames / info.samplerate)


def rated(body: Body) -> str:
    asked = str(body["messages"][-1]["content"])
    if "correct or incorrect" in asked:
        return "correct" if "back where you began" in asked else "incorrect"
    return "yes" if "yes or no" in asked else "4"


def ran(folder: Path, suite: str, said: dict[int, str], judged: Chat | None = None) -> Path:
    """Run a suite against a model that says so, by the length of what it hears."""

    def model(body: Body) -> str:
        ms = length_ms(body)
        return said[min(said, key=lambda number: abs(200 + 100 * number - ms))]

    judge = f'[[judge]]\nname = "j"\nmodel = "m"\nbase_url = "{judged.url}"\n' if judged else ""
    with serving(model) as endpoint:
        path = folder / "bench.toml"
        path.write_text(
            f'[run]\nout = "{folder}/runs"\nwarmup = 0\nconcurrency = 4\n[[endpoint]]\nname = "e"\n'
            f'kind = "openai-chat"\nurl = "{endpoint.url}"\nmodel = "m"\n'
            f"options = {{stream = false}}\n[[suite]]\n{suite}\n{judge}"
        )
        assert main(["run", str(path), "--quiet"]) == 0
    (run,) = (folder / "runs").iterdir()
    return run


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def test_all_nine_columns_are_drawn_from_one_run(
    tmp_path: Path, sound: Callable[[Path, int], None]
) -> None:
    root = unpacked(tmp_path / "vb")
    which = {"advbench": 1, "mmsu": 2, "openbookqa": 2, "bbh": 2, "ifeval": 3}
    for path in root.rglob("*.wav"):
        sound(path, which.get(path.parent.parent.name, 0))
    assert set(which) <= set(COLUMNS)
    with serving(rated) as judged:
        run = ran(tmp_path, 'kind = "voicebench"\npath = "vb"', SAID, judged)
    (analysis,) = summary(run)["analyses"]
    (table,) = analysis["tables"]
    (row,) = table["rows"]
    assert row[:2] == ["clean", "j"]
    assert row[2:11] == [4.0, 4.0, 4.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0]
    assert row[11] == pytest.approx((3 * 80 + 6 * 100) / 9, abs=0.005)
    (cell,) = summary(run)["cells"]
    assert cell["metrics"]["accuracy"]["n"] == 5, "what a judge scores is in its own figures"
    assert cell["metrics"]["instructions_kept"]["value"] == 2.0
    assert cell["metrics"]["accuracy_loose"]["value"] == 1.0
    report = (run / "report.md").read_text()
    assert "The leaderboard's columns" in report
    assert "| clean | j | 4 | 4 | 4 | 100 |" in report
    assert main(["report", str(run), "--published", "voicebench", "--format", "md"]) == 0
    published = (run / "report.md").read_text()
    assert "Whisper-v3-large+GPT-4o" in published
    assert "Moshi" in published


def test_without_a_judge_the_columns_that_need_one_are_slashes(
    tmp_path: Path, sound: Callable[[Path, int], None]
) -> None:
    root = unpacked(
        tmp_path / "vb",
        advbench__test=[ROWS["advbench/test"]],
        commoneval__test=[ROWS["commoneval/test"]],
    )
    for path in root.rglob("*.wav"):
        sound(path, 0)
    run = ran(tmp_path, 'kind = "voicebench"\npath = "vb"', SAID)
    (row,) = summary(run)["analyses"][0]["tables"][0]["rows"]
    assert row == ["clean", "/", *"/" * 8, 0.0, "/"], "bread is no refusal; nothing else is known"


def test_big_bench_audio_is_read_by_rules_and_by_a_judge(
    tmp_path: Path, sound: Callable[[Path, int], None]
) -> None:
    root = tmp_path / "bba"
    (root / "data").mkdir(parents=True)
    rows = [
        line(number, name, file_name=f"data/q{number}.wav") for number, name in enumerate(ANSWERS)
    ]
    (root / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number in range(4):
        sound(root / f"data/q{number}.wav", number)
    said = {
        0: "The argument is not deductively valid.",
        1: "You are back where you began.",  # no rule reads it, the judge calls it right
        2: "There are eleven of them.",
        3: "Yes, she does.",
    }
    with serving(rated) as judged:
        suite = 'kind = "big-bench-audio"\npath = "bba"\nrubric = "bba"'
        run = ran(tmp_path, suite, said, judged)
    (cell,) = summary(run)["cells"]
    assert cell["metrics"]["accuracy"]["value"] == 0.5
    assert cell["metrics"]["accuracy"]["unscored"] == 1
    assert cell["metrics"]["judge_accuracy:j"]["value"] == 0.25
    assert {
        group["path"][0]: group["metrics"]["accuracy"]["value"] for group in cell["groups"]
    } == {
        "formal_fallacies": 1.0,
        "navigate": 0.0,
        "object_counting": 1.0,
        "web_of_lies": 0.0,
    }
    assert len(judged.bodies) == 4
    assert "Is the argument, given its premises" in "".join(map(str, judged.bodies))

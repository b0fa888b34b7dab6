"""Whole runs of VoxEval with worked examples: asked over every kind of turn, heard and scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from voxeval_world import Download, mp3, rows

from voxmeter.client.cli import main
from voxmeter.client.speakers import speaker

SAYS_B = "text=The+correct+answer+is+B."


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two subjects of two questions each, in two voices; the answers are B, D and B, D."""
    tables = {name: rows(name, 2) for name in ("virology_test", "elementary_mathematics_4o")}
    world = Download(tmp_path / "VoxEval", tables, examples=2, chains=2)
    world.write()
    for name in tables:
        told = Download(tmp_path / "told", {name: rows(name, 2)}, settings=()).write()
        table = world.root / "all_fewshot_examples" / f"{name.replace('_test', '_val')}.csv"
        (told / "test" / f"{name}.csv").rename(table)
    return world.root


def bench(root: Path, endpoint: str, suite: str = "") -> Path:
    path = root.parent / "bench.toml"
    path.write_text(
        f'[run]\nout = "{root.parent}/runs"\nwarmup = 0\nconcurrency = 4\n'
        f'[[endpoint]]\nname = "e"\n{endpoint}\n'
        f'[[suite]]\nkind = "voxeval"\nname = "vox"\npath = "VoxEval"\nfew_shot = 2\n{suite}\n',
        encoding="utf-8",
    )
    return path


def ran(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Path:
    assert main(["run", str(path), *options]) == 0
    return Path(capsys.readouterr().out.splitlines()[-1])


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


METRONOME = f'builtin = "metronome?delay_ms=250&pacing=burst&{SAYS_B}"\n'
EXAMPLES_MS = 2 * (380 + 1000 + 280 + 1000)


@pytest.mark.parametrize("command", ["run", "check"])
def test_server_vad_is_refused_in_one_line_with_the_cure(
    root: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    options = ["--offline"] if command == "check" else []
    assert main([command, str(bench(root, METRONOME)), *options]) == 2
    line = capsys.readouterr().err
    assert "takes silence for the end of a turn" in line
    assert (
        'write turn_end = "commit" for the endpoint, or write options = {few_shot_via = "history"}'
        in line
    )


def test_a_committed_turn_holds_examples_and_question_and_is_scored_in_every_setting(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bench(root, METRONOME + 'turn_end = "commit"', 'conditions = ["clean", "nova"]')
    folder = ran(path, capsys)
    trials = lines(folder, "trials")
    assert len(trials) == 8
    for trial in trials:
        assert (trial["status"], trial["latency_kind"]) == ("ok", "commit")
        assert trial["clip"]["ms"] == pytest.approx(EXAMPLES_MS + 480, abs=3)
        assert [one["role"] for one in trial["segments"]] == ["answer"]
        assert trial["latency"]["first_packet_ms"] >= 240, "from the end of the question itself"
    found = summary(folder)
    assert [cell["condition"] for cell in found["cells"]] == ["clean", "nova"]
    assert [cell["metrics"]["accuracy"]["value"] for cell in found["cells"]] == [0.5, 0.5]
    assert [group["path"] for group in found["cells"][0]["groups"]][:2] == [
        ["STEM"],
        ["STEM", "elementary_mathematics"],
    ]
    (analysis,) = found["analyses"]
    overall = analysis["tables"][0]["rows"]
    assert [row[0] for row in overall] == ["Alloy", "Nova"]
    assert overall[1][2]["value"] == 0.0


def test_earlier_turns_leave_before_the_question_where_silence_ends_a_turn(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bench(root, METRONOME, 'options = {few_shot_via = "history"}')
    folder = ran(path, capsys, "--limit", "1")
    (trial,) = lines(folder, "trials")
    assert (trial["status"], trial["latency_kind"]) == ("ok", "server-vad")
    assert trial["clip"]["ms"] == pytest.approx(480, abs=1)
    (log,) = (folder / "events").rglob("*.jsonl")
    sent = [json.loads(line) for line in log.read_text().splitlines() if '"out"' in line]
    items = [one["data"] for one in sent if "conversation.item.create" in str(one.get("data"))]
    assert ["user" if '"user"' in one else "assistant" for one in items] == [
        *("user", "assistant") * 2
    ]
    assert "The correct answer is B." in items[1]
    assert lines(folder, "items")[0]["shots_via"] == "history"


def test_full_duplex_may_speak_during_the_examples_which_is_counted_and_not_scored(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sphn")
    for path in (root / "test").rglob("*_question.mp3"):
        path.write_bytes(mp3(3200))  # long enough for what is said of an example to die away
    endpoint = f'kind = "moshi"\nbuiltin = "metronome?delay_ms=400&{SAYS_B}"\nquiet_ms = 500'
    assert main(["run", str(bench(root, endpoint)), "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert 'may answer the worked examples of suite "vox"' in out
    folder = Path(out.splitlines()[-1])
    (trial,) = lines(folder, "trials")
    roles = [one["role"] for one in trial["segments"]]
    assert roles[-1] == "answer"
    assert set(roles[:-1]) == {"greeting"}, "said before the question had begun"
    (line,) = lines(folder, "transcripts")
    assert line["text"].count("answer") == 1, "of several replies the one to the question is read"
    (cell,) = summary(folder)["cells"]
    assert cell["early"] == {"replies": len(roles) - 1, "trials": 1, "talked_over": 0}
    assert "early-replies" in [one["code"] for one in summary(folder)["warnings"]]


FUNCTION = """
from pathlib import Path

import numpy as np

HEARD = Path(__file__).with_name("heard.txt")

def answer(question, rate):
    waveform, own = question
    with HEARD.open("a") as file:
        print(round(1000 * np.asarray(waveform).size / own), file=file)
    return Path(__file__).with_name("answer.wav").read_bytes()
"""


def function(folder: Path, says: str) -> str:
    """Write a function that notes how long each question is; return its endpoint's lines."""
    (folder / "functions.py").write_text(FUNCTION)
    voice = speaker("hibari")
    soundfile.write(folder / "answer.wav", np.concatenate(list(voice.speak(says))), voice.rate)
    return 'kind = "python"\noptions = {callable = "functions.py:answer"}'


def heard_ms(folder: Path) -> list[int]:
    return [int(one) for one in (folder / "heard.txt").read_text().split()]


def test_a_request_carries_examples_and_question_at_once(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = function(root.parent, "The correct answer is B.")
    folder = ran(bench(root, endpoint, "subset = 2"), capsys)
    assert [one["latency_kind"] for one in lines(folder, "trials")] == ["request"] * 2
    assert heard_ms(root.parent) == pytest.approx([EXAMPLES_MS + 480] * 2, abs=5)
    assert summary(folder)["cells"][0]["metrics"]["parse_rate"]["value"] == 1.0
    assert "## vox: Accuracy in each setting" in (folder / "report.md").read_text()


def test_after_a_chain_of_thought_the_last_stated_answer_counts(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    says = (
        "Let us think step by step. If the answer were A, then the sum would be four. "
        "That is too small. Option C is too large. So the correct answer is B."
    )
    path = bench(root, function(root.parent, says), 'options = {prompt_mode = "cot"}')
    folder = ran(path, capsys)
    assert heard_ms(root.parent) == pytest.approx([2 * (380 + 1000 + 580 + 1000) + 480] * 2, abs=5)
    answers = [one for one in lines(folder, "scores") if one["metric"] == "accuracy"]
    assert [one["detail"]["answer"] for one in answers] == ["B", "B"]
    assert summary(folder)["cells"][0]["metrics"]["accuracy"]["value"] == 0.5
    report = (folder / "report.md").read_text()
    assert "## vox: Mathematics by level" in report
    assert "Worked examples reason step by step" in report


def test_a_missing_or_silent_question_is_a_bad_clip_and_not_hidden_by_its_examples(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "test" / "alloy" / "virology_test"
    (folder / "00000000_question.mp3").unlink()
    soundfile.write(folder / "00000001_question.mp3", [0.0] * 24_000, 24_000, format="MP3")
    path = bench(root, METRONOME + 'turn_end = "commit"')
    assert main(["run", str(path)]) == 0
    out = capsys.readouterr().out
    assert "vox: alloy: a recording is missing or empty" in out
    made = Path(out.splitlines()[-1])
    faults = {
        one["item"]: one["fault"] for one in lines(made, "trials") if one["status"] == "bad_clip"
    }
    assert "nothing audible in 1.0" in faults["virology-0001"]
    assert "00000000_question.mp3" in faults["virology-0000"]
    (cell,) = summary(made)["cells"]
    assert cell["status"] == {"ok": 2, "bad_clip": 2}
    assert (cell["metrics"]["accuracy"]["n"], cell["metrics"]["accuracy"]["left_out"]) == (2, 2)


def test_a_dry_run_says_time_and_disk_of_examples_as_well(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bench(root, METRONOME + 'turn_end = "commit"', "subset = 0.5")
    assert main(["run", str(path), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cells"][0]["planned"] == 2
    clip_s = (EXAMPLES_MS + 480) / 1000
    assert told["streaming_s"] == pytest.approx(2 * (clip_s + 5.3) / 4, abs=0.1)  # 4 at once
    assert told["missing_clips"] == 0

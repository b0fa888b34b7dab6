"""Whole runs of AIR-Bench: one question about music and one open one, over every kind of turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from air_world import Download, chat, foundation
from chat_server import Body, Chat
from chat_server import chat as serving

from voxmeter.client.cli import main

SAYS = "text=The+correct+answer+is+C."
PATIENT = "endpoint_ms=900&delay_ms=1200"  # it waits out the pause before a spoken question
METRONOME = f'builtin = "metronome?delay_ms=250&pacing=burst&{SAYS}"'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A download of two questions; C is right of the one about music."""
    return Download(tmp_path / "AIR-Bench", [foundation(1)], [chat(2)]).write()


def rated(body: Body) -> str:
    """A judge that likes what stands first, and knows what a mosquito sounds like."""
    asked = str(body["messages"][-1]["content"])
    if "<options-" not in asked:
        return "8 6"
    return "C" if "mosquito" in asked else "none"


@contextmanager
def judging() -> Iterator[Chat]:
    with serving(rated) as service:
        yield service


def bench(root: Path, endpoint: str, service: Chat, suite: str = "") -> Path:
    path = root.parent / "bench.toml"
    path.write_text(
        f'[run]\nout = "{root.parent}/runs"\nwarmup = 0\nconcurrency = 2\n'
        f'[[endpoint]]\nname = "e"\n{endpoint}\n'
        f'[[suite]]\nkind = "air-bench"\nname = "air"\npath = "AIR-Bench"\n{suite}\n'
        f"options = {{shuffle = false}}\n"
        f'[[judge]]\nname = "j"\nmodel = "m"\nbase_url = "{service.url}"\n',
        encoding="utf-8",
    )
    return path


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def ran(path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["run", str(path)]) == 0
    return Path(capsys.readouterr().out.splitlines()[-1])


def values(folder: Path, metric: str) -> dict[str, float | None]:
    trials = {trial["key"]: trial["item"] for trial in lines(folder, "trials")}
    return {
        trials[row["key"]].partition("_")[0]: row["value"]
        for row in lines(folder, "scores")
        if row["metric"] == metric
    }


def check_both(folder: Path, service: Chat, latency_kind: str) -> None:
    """The choice was read by rules and the open reply rated in both orders; both are drawn up."""
    assert [one["status"] for one in lines(folder, "trials")] == ["ok", "ok"]
    assert {one["latency_kind"] for one in lines(folder, "trials")} == {latency_kind}
    assert values(folder, "accuracy") == {"Music": 1.0, "speech": None}
    assert values(folder, "judge_accuracy:j") == {"Music": 1.0}, "by rules, so nobody was asked"
    assert values(folder, "judge_score:j") == {"speech": 7.0}, "the mean of both orders"
    assert values(folder, "position_gap:j") == {"speech": 2.0}
    assert len(service.bodies) == 2
    for number in (0, 1):
        asked = service.asked(number)
        assert "Two people talk about a restaurant." in asked, "the recording is told in words"
        assert "They book a table for two." in asked
        assert "What do they plan in dialogue 2?" in asked
    (analysis,) = summary(folder)["analyses"]
    choices, ratings = analysis["tables"]
    rows = {(row[0], row[1]): row for row in choices["rows"]}
    assert rows["music", "Music note analysis-pitch"][2]["value"] == 1.0
    assert rows["music", "Music note analysis-pitch"][3]["value"] == 1.0
    assert rows["speech", "Speech grounding"][2] == "/", "what was not asked is not 0"
    assert rows["", "mean of the three groups"][2] == "/"
    assert ratings["rows"][0][:2] == ["j", {"value": 7.0, "low": None, "high": None}]
    assert ratings["rows"][0][2:6] == ["/", "/", "/", "/"]


@pytest.mark.parametrize(("turns", "kind"), [("", "server-vad"), ('turn_end = "commit"', "commit")])
def test_a_question_in_writing_goes_beside_the_recording(
    root: Path, capsys: pytest.CaptureFixture[str], turns: str, kind: str
) -> None:
    with judging() as service:
        folder = ran(bench(root, f"{METRONOME}\n{turns}", service), capsys)
        check_both(folder, service, kind)
    sent = [
        json.loads(line)
        for log in (folder / "events").rglob("*Music*.jsonl")
        for line in log.read_text().splitlines()
    ]
    (written,) = [
        str(row["data"])
        for row in sent
        if row["dir"] == "out" and "What is the pitch of note 1?" in str(row.get("data"))
    ]
    assert "input_text" in written
    assert "C. high" in written
    music, _ = lines(folder, "items")
    assert music["options"] == ["low", "middle", "high", "very high"]
    assert (music["question_via"], music["reference"]) == ("text", "C")


def test_full_duplex_is_asked_aloud_as_it_takes_no_words(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sphn")
    pytest.importorskip("hibari")
    endpoint = f'kind = "moshi"\nbuiltin = "metronome?{PATIENT}&{SAYS}"\nquiet_ms = 500'
    with judging() as service:
        assert main(["run", str(bench(root, endpoint, service))]) == 2
        told = capsys.readouterr().err
        assert (
            'takes no words beside the audio, and suite "air" asks its questions in writing' in told
        )
        assert 'write question_via = "speech-after" there' in told
        path = bench(root, endpoint, service, 'question_via = "speech-after"')
        check_both(ran(path, capsys), service, "duplex")


def test_a_request_holds_words_and_recording_and_a_reply_without_a_letter_is_aligned(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def model(body: Body) -> str:
        parts = body["messages"][-1]["content"]
        assert [part["type"] for part in parts] == ["text", "input_audio"]
        return "It whines like a mosquito." if "C. high" in parts[0]["text"] else "They book."

    with judging() as service, serving(model) as endpoint:
        lines_ = (
            f'kind = "openai-chat"\nurl = "{endpoint.url}"\nmodel = "m"\n'
            "options = {stream = false}"
        )
        folder = ran(bench(root, lines_, service), capsys)
    assert {one["latency_kind"] for one in lines(folder, "trials")} <= {"request", "text"}
    assert values(folder, "accuracy")["Music"] is None, "no rule reads it, and none guesses"
    assert values(folder, "judge_accuracy:j") == {"Music": 1.0}
    assert values(folder, "judge_score:j") == {"speech": 7.0}
    assert len(service.bodies) == 3
    (cell,) = summary(folder)["cells"]
    assert cell["metrics"]["accuracy"]["value"] == 0.0
    assert cell["metrics"]["accuracy_chance_imputed"]["value"] == 0.25
    assert cell["metrics"]["judge_accuracy:j"]["value"] == 1.0
    (aligned,) = [row for row in lines(folder, "scores") if row["metric"] == "judge_accuracy:j"]
    assert aligned["detail"]["label"] == "C"
    rows = summary(folder)["analyses"][0]["tables"][0]["rows"]
    (music,) = [row for row in rows if row[1] == "Music note analysis-pitch"]
    assert [cell["value"] for cell in music[2:4]] == [0.0, 1.0]
    report = (folder / "report.md").read_text()
    assert "Foundation: accuracy by task" in report
    assert "| music | Music note analysis-pitch |" in report


def test_groups_are_drawn_together_by_the_papers_rule(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with judging() as service:
        folder = ran(bench(root, f'{METRONOME}\nturn_end = "commit"', service), capsys)
    (cell,) = summary(folder)["cells"]
    found = {(row["metric"], *row["path"]): row["rule"] for row in cell["tables"]["figures"]}
    assert found["accuracy", "foundation"] == "macro"
    assert found["judge_score:j", "chat"] == "macro"
    assert found["judge_score:j", "chat", "speech"] == "items"

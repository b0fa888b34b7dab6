"""Reports: what stands in them, and that no reply can break them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hostile import TEXTS
from sample_run import Row, build, item, score, trial

from voxmeter.client.commands import report as command
from voxmeter.client.escape import csv_cell, markdown, plain
from voxmeter.client.report import (
    csv_report,
    formats,
    json_report,
    markdown_report,
    print_report,
    summarised,
    write_report,
)
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError


def transcript(of: Row, text: str) -> Row:
    return {
        "key": of["key"],
        "attempt": of["attempt"],
        "text": text,
        "language": "en",
        "model": "tiny.en",
        "model_hash": "00",
        "settings": {},
    }


def sample(tmp_path: Path, replies: list[str] | None = None) -> RunFolder:
    replies = replies or ["The answer is B.", "It is C.", "Well."]
    rows = [
        trial(f"q{n}", first_audible_ms=400.0 + 100 * n, first_packet_ms=350.0, reply_ms=1500.0)
        for n in range(len(replies))
    ]
    rows.append(trial("q0", "timeout", number=2))
    found = {"answer": "B", "rule": "cue", "span": [14, 15]}
    scores = [
        score(rows[0], detail=found),
        score(rows[1], value=0.0, detail=found | {"answer": "C"}),
    ]
    scores += [score(row, value=None) for row in rows[2:]]
    texts = [transcript(row, reply) for row, reply in zip(rows, replies, strict=False)]
    items = [item(f"q{n}") for n in range(len(replies))]
    run = {
        "voxmeter": "0.1.0",
        "machine": {"host": "here", "cores": 2},
        "suites": {"demo": "abc"},
        "config": {
            "run": {"trials": 1},
            "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
            "suite": [{"kind": "demo"}],
            "gate": [{"metric": "first_audible_ms", "at": "p50", "max": 450}],
        },
    }
    return build(tmp_path, items, rows, scores, texts, run)


def test_the_report_prints_definitions_manifest_and_intervals_beside_the_numbers(
    tmp_path: Path,
) -> None:
    with sample(tmp_path) as folder:
        text = "".join(markdown_report(folder, summarised(folder)))
    assert "16.7% [0-88]" in text  # items: half right (one of two trials), wrong, wrong
    for phrase in (
        "**accuracy**: Share of closed questions answered right",
        "**first_audible_ms** (ms): From t0 to the first audible sample",
        "server-vad",
        "| timeout |",
        "few-samples",
        "gate",
        "hash of their hashes",
        "| replies read by | tiny.en (sha256 00) |",
        "send lateness, ms",
        '"name": "bot"',
        "| here |",
        "The answer is B.",
        "| cue |",
    ):
        assert phrase in text, phrase


def test_the_table_shows_accuracy_latency_warnings_and_gates(tmp_path: Path) -> None:
    out = io.StringIO()
    with sample(tmp_path) as folder:
        write_report(folder, summarised(folder))
        print_report(folder, summarised(folder), out)
    text = out.getvalue()
    assert "bot" in text
    assert "3/3" in text
    assert "%" in text
    assert "500" in text
    assert "gate failed: first_audible_ms p50 max 450" in text
    assert "warning: bot on demo (clean): 3 latencies; p95 needs 20" in text
    assert "report.md" in text


def test_a_warning_of_one_trial_is_in_the_singular(tmp_path: Path) -> None:
    out = io.StringIO()
    rows = [trial("q0", first_audible_ms=400.0)]
    with build(tmp_path, [item("q0")], rows) as folder:
        print_report(folder, summarised(folder), out)
    assert "1 latency; p95 needs 20" in out.getvalue()


def test_with_nothing_scored_the_reports_say_so_and_never_nan(tmp_path: Path) -> None:
    rows = [trial(f"q{n}", "disconnected") for n in range(4)]
    out = io.StringIO()
    with build(tmp_path, [item(f"q{n}", kind="open") for n in range(4)], rows) as folder:
        summary = summarised(folder)
        print_report(folder, summary, out)
        text = out.getvalue() + "".join(markdown_report(folder, summary))
        text += "".join(csv_report([folder])) + "".join(json_report([folder]))
    assert "n/a (0 scored)" in text
    assert "n/a (0 timed)" in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_a_control_shows_what_was_expected_beside_what_was_measured(tmp_path: Path) -> None:
    config = {
        "endpoint": [{"name": "bot", "builtin": "metronome?delay_ms=300&lead_ms=50"}],
        "suite": [{"kind": "demo"}],
    }
    rows = [trial(f"q{n}", first_packet_ms=300.4, first_audible_ms=350.6) for n in range(3)]
    out = io.StringIO()
    items = [item(f"q{n}") for n in range(3)]
    with build(tmp_path, items, rows, run={"config": config}) as folder:
        print_report(folder, summarised(folder), out)
    line = next(line for line in out.getvalue().splitlines() if "control" in line)
    assert "351 (told 350)" in line
    assert "300 (told 300)" in line
    assert "%" not in line


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("status", ["ok", "disconnected"])
def test_a_narrow_terminal_shows_every_name_and_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    rows = [trial(f"q{n}", status, first_audible_ms=2449.0) for n in range(3)]
    out = Screen()
    with build(tmp_path, [item(f"q{n}") for n in range(3)], rows) as folder:
        print_report(folder, summarised(folder), out)
    table = out.getvalue().partition("accuracy:")[0]
    assert "…" not in table
    assert all(len(line) <= 80 for line in table.splitlines())
    assert [line.split()[0:2] for line in table.splitlines() if "demo" in line] == [
        ["bot", "demo"],
        ["bot", "demo"],
    ]


def test_a_file_gets_one_table_however_wide(tmp_path: Path) -> None:
    name = "an-endpoint-with-quite-a-long-name-of-the-kind-that-models-have-nowadays"
    out = io.StringIO()
    rows = [trial("q0", "disconnected", endpoint=name)]
    with build(tmp_path, [item("q0")], rows) as folder:
        print_report(folder, summarised(folder), out)
    assert sum(name in line for line in out.getvalue().partition("accuracy:")[0].splitlines()) == 1


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_replies_stay_in_their_cell(tmp_path: Path, text: str) -> None:
    with sample(tmp_path, [text, "ok"]) as folder:
        report = "".join(markdown_report(folder, summarised(folder)))
        table = "".join(csv_report([folder]))
    row = next(line for line in report.splitlines() if line.startswith("| bot | q0 |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 11
    assert "<script" not in report
    assert "](" not in row.replace("\\](", "")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", report)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", table)
    rows = list(csv.DictReader(io.StringIO(table, newline="")))
    assert len(rows) == 3
    assert rows[0]["reply"].lstrip("'") == plain(text)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert csv_cell(text).startswith("'")
    assert csv_cell("a=1") == "a=1"


def test_markdown_is_cut_after_cleaning_and_says_so() -> None:
    assert markdown("x" * 400, 10) == "xxxxxxx..."
    assert markdown("") == ""


def test_the_csv_has_every_trial_with_plain_numbers(tmp_path: Path) -> None:
    with sample(tmp_path) as folder:
        rows = list(csv.DictReader(io.StringIO("".join(csv_report([folder])), newline="")))
    assert [row["item"] for row in rows] == ["q0", "q1", "q2", "q0"]
    assert [row["right"] for row in rows] == ["1", "0", "", ""]
    assert rows[0]["first_audible_ms"] == "400.0"
    assert rows[3]["first_audible_ms"] == ""
    assert rows[3]["status"] == "timeout"
    assert rows[0]["reply"] == "The answer is B."
    assert rows[0]["rule"] == "cue"


def test_unknown_formats_are_refused_with_those_that_are_there() -> None:
    assert formats("md, json,md") == ["md", "json"]
    for wrong in ("htm", "md,doc", "pdf", ""):
        with pytest.raises(UserError, match="use html, md, json, csv"):
            formats(wrong)


def run_command(*words: str) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(words)))


def test_the_command_writes_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sample(tmp_path) as folder:
        path = folder.path
    assert run_command(str(path)) == 0
    assert "# voxmeter: sample" in (path / "report.md").read_text()
    assert "accuracy" in capsys.readouterr().out

    assert run_command(str(path), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["run"] == path.name

    assert run_command(str(path), "--format", "csv", "-o", str(tmp_path / "all.csv")) == 0
    assert (tmp_path / "all.csv").read_text().startswith("run,endpoint,suite")

    assert run_command(str(path), "--format", "md,csv", "-o", str(tmp_path / "both")) == 0
    assert {one.name for one in (tmp_path / "both").iterdir()} == {"report.md", "report.csv"}


def test_two_runs_make_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name in ("a", "b"):
        with sample(tmp_path / name) as folder:
            paths.append(str(folder.path))
    assert run_command(*paths, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
    assert len(rows) == 8
    assert len({row["run"] for row in rows}) == 2
    assert run_command(*paths, "--format", "json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_run_that_is_named_twice_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sample(tmp_path) as folder:
        path = folder.path
    assert run_command(str(path), str(path)) == 0
    assert capsys.readouterr().out.count("report.md") == 1


def test_a_folder_that_is_no_run_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run"):
        run_command(str(tmp_path))

"""Texts that others wrote do no harm, whatever form they are shown in."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from chat_server import fenced, mark_of
from hostile import TEXTS, controls, formulas
from sample_run import Row, build, item, score, trial

from voxmeter.client.cli import main
from voxmeter.client.escape import csv_cell, markdown, plain
from voxmeter.client.terminal import printable, warn
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import rubrics
from voxmeter.scoring.judge_messages import Case, messages


@pytest.mark.parametrize("text", TEXTS)
def test_each_form_is_harmless_by_itself(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for shown in (printable(text), plain(text), markdown(text), csv_cell(text)):
        assert not controls(shown)
        assert "\n" not in shown
    assert not formulas([[csv_cell(text)]])
    warn(text)
    assert not controls(capsys.readouterr().err)
    assert not controls(str(printable(str(UserError(text, text, text)))))


@pytest.mark.parametrize("name", rubrics.shipped())
def test_a_judge_reads_each_between_marks_that_it_cannot_close(name: str) -> None:
    system, names = shape(name, "words")
    for text in TEXTS:
        assert shape(name, text) == (system, names), text


def shape(name: str, text: str) -> tuple[str, list[str]]:
    """Return the system message of a prompt and the names of what is fenced in it."""
    case = Case(text, text, references=(text,), told=text, options=(text, text))
    sent = messages(rubrics.rubric(name), case, "reference-first")
    body = {"messages": [{"role": one.role, "content": one.content} for one in sent]}
    return sent[0].content.replace(mark_of(body), "N"), [one for one, _ in fenced(body)]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two run folders in which every text that others may have written is hostile."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    items: list[Row] = []
    trials: list[Row] = []
    scores: list[Row] = []
    texts: list[Row] = []
    for number, raw in enumerate(TEXTS):
        text = raw.replace("\ud800", "\\ud800")  # no file of ours can hold half a letter
        name = f"{number}{text}"
        for endpoint, status in ((text or "x", "ok"), ("bot", "ok"), ("bot2", "refused")):
            one = trial(
                name,
                status,
                endpoint=endpoint,
                fault=None if status == "ok" else text,
                reply_text=text,
                first_audible_ms=400.0,
                condition_params={text: text},
                host=text,
            )
            trials.append(one)
            texts.append(
                {"key": one["key"], "attempt": 1, "text": text, "language": text}
                | {"model": text, "model_hash": text, "settings": {text: text}}
            )
            detail = {"answer": text, "rule": text, "span": [0, 1], "channel": "speech"}
            scores.append(score(one, detail=detail))
            orders = [{"order": text, "value": 5.0, "reason": text, "replies": [{"raw": text}]}]
            scores.append(score(one, f"judge_score:{text}", 5.0, detail={"orders": orders}))
            scores.append(score(one, "parsed", None, unscored=text))
        items.append(
            item(name, question=text, reference=text, options=[text] * 2, groups=[text])
            | {"cluster": text, "language": text}
        )
    config = {
        "run": {"name": "x"},
        "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1", "size": TEXTS[1]}],
        "suite": [{"kind": "demo"}],
        "gate": [
            {"metric": "first_audible_ms", "at": "p50", "max": 500},
            {"metric": "first_audible_ms", "at": "p50", "regression": {"absolute_ms": 100}},
        ],
    }
    whole = {text.replace("\ud800", "?"): text.replace("\ud800", "?") for text in TEXTS}
    run = {"config": config, "machine": whole, "voxmeter": TEXTS[0], "packages": whole}
    with build(tmp_path, items, trials, scores, texts, run) as folder:
        path = folder.path
    shutil.copytree(path, tmp_path / "before")
    return tmp_path / "before", path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """Run a command; return what it printed, which must be harmless."""
    found = main(list(words))
    told = capsys.readouterr()
    assert found == status, told.err or told.out
    assert not controls((told.out + told.err).replace("\r\n", "\n")), words
    return told.out


def test_no_command_prints_what_could_lead_a_terminal_astray(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, run = map(str, runs)
    assert said(capsys, "report", run)
    for form in ("md", "json", "csv"):
        assert said(capsys, "report", run, "--format", form, "-o", "-")
    assert "median" in said(capsys, "compare", before, run, status=1)
    for form in ("json", "junit", "markdown"):
        assert said(capsys, "compare", before, run, f"--{form}", "-", status=1)
    said(capsys, "score", run, status=3)
    said(capsys, "judge", "collect", run, "-o", "study", status=2)  # nothing to be heard
    for text in TEXTS:
        if "\ud800" not in text and "\0" not in text:
            for words in ("run", "report", "serve", "endpoints", "suites verify"):
                said(capsys, *words.split(), text, status=2)
            said(capsys, text, status=2)


def test_no_file_of_a_report_does_what_its_texts_ask(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before, run = map(str, runs)
    (tmp_path / "out").mkdir()
    said(capsys, "report", run, "--format", "html,md,json,csv", "-o", "out")
    names = ("--json", "c.json", "--junit", "c.xml", "--markdown", "c.md")
    said(capsys, "compare", before, run, *names, status=1)
    files = {
        path.suffix: path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file()
    }
    assert set(files) == {".html", ".md", ".json", ".csv"}
    rows = list(csv.reader(io.StringIO(files[".csv"], newline="")))
    assert len(rows) == 3 * len(TEXTS) + 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not formulas(rows)
    for text in (files[".md"], (tmp_path / "c.md").read_text()):
        assert not controls(text)
        words = text.split("\n```")[0]  # behind it stands the configuration, as code
        assert not re.search(r"<(script|img|svg|!--)", words)
        assert "](" not in words.replace("\\](", "")
        own = re.sub(r"(?<!\\)`[\w -]+`", "", words)  # names of ours
        assert "`" not in own.replace("\\`", "")
    assert not controls(files[".csv"].replace("\r\n", "\n"))
    json.loads(files[".json"])
    json.loads((tmp_path / "c.json").read_text())
    assert ET.parse(tmp_path / "c.xml").getroot().tag == "testsuites"  # noqa: S314 - ours
    assert "<script>alert" not in files[".html"]
    assert files[".html"].count("<script") == files[".html"].count("</script>")

"""References written by a chat model: in a file of their own, once each, used by the suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adu_world
import pytest
from adu_world import line
from chat_server import Answer, Body, chat, refused

from voxmeter.client.cli import main
from voxmeter.client.reference_writing import MOST_FAILURES
from voxmeter.suites import catalog

FILES = {
    "ADU-Skill/physics": [
        line("1.wav", "Why is the sky blue?", None),
        line("2.wav", "What is a joule?", "A unit of energy."),
        line("3.wav", "What is a watt?", None),
        line("4.wav", "", None),
    ],
    "ADU-Ambiguity/pause": [line("5.wav", "Let's eat, Grandma.", None)],
}


@pytest.fixture
def download(tmp_path: Path) -> Path:
    return adu_world.write(tmp_path / "adu", FILES)


def said(body: Body) -> str:
    return str(body["messages"][-1]["content"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def build(download: Path, url: str, *more: str) -> int:
    words = ["suites", "build", "references", str(download), "--model", "org/writer"]
    return main([*words, "--url", url, *more])


def test_questions_without_a_reference_get_one_beside_the_download(
    download: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted((path, path.read_bytes()) for path in download.rglob("*") if path.is_file())
    with chat(lambda body: f"An answer to: {said(body)}") as service:
        assert build(download, service.url) == 0
        asked = sorted(said(body) for body in service.bodies)
    assert asked == ["What is a watt?", "Why is the sky blue?"]
    own = download.parent / "adu-references-org-writer.jsonl"
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == str(own)
    assert "2 written, 0 known" in printed
    assert "1 left out: how they are spoken decides" in printed
    assert "1 left out: their words are not written down" in printed
    rows = {row["item"]: row for row in lines(own)}
    assert set(rows) == {"ADU-Skill/physics:1", "ADU-Skill/physics:3"}
    assert rows["ADU-Skill/physics:1"]["reference"] == "An answer to: Why is the sky blue?"
    assert rows["ADU-Skill/physics:1"]["model"] == "org/writer"
    after = sorted((path, path.read_bytes()) for path in download.rglob("*") if path.is_file())
    assert after == before
    config = {"path": str(download), "references": str(own)}
    items = {item.item: item for item in catalog.load("adu-bench", "a", config, Path()).items}
    assert items["ADU-Skill/physics:3"].reference == ("An answer to: What is a watt?",)
    assert items["ADU-Skill/physics:2"].reference == ("A unit of energy.",)


def test_what_was_written_is_not_asked_again(download: Path) -> None:
    with chat(lambda _: "x") as service:
        assert build(download, service.url, "--limit", "1") == 0
        assert build(download, service.url) == 0
        assert build(download, service.url) == 0
        assert len(service.bodies) == 2
        assert build(download, service.url, "--all") == 0
        assert len(service.bodies) == 3  # the one that has a reference of its own


def test_another_prompt_is_another_reference(download: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Answer like a pirate.\n")
    with chat(lambda _: "x") as service:
        build(download, service.url, "--limit", "1")
        build(download, service.url, "--limit", "1", "--prompt", str(prompt))
        systems = [body["messages"][0]["content"] for body in service.bodies]
    assert systems[1] == "Answer like a pirate."
    assert systems[0] != systems[1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(""), "nothing was written"),
        (Answer(None), "nothing was written"),
        (Answer("<think>hm</think>"), "nothing was written"),
        (Answer("An ans", finish="length"), "cut off by the token limit"),
        (refused(400, "too long"), "too long"),
    ],
)
def test_what_is_no_answer_is_not_written(
    download: Path, answer: Answer, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat(lambda _: answer) as service:
        assert build(download, service.url, "--limit", "1") == 3
    assert problem in capsys.readouterr().out
    assert not (download.parent / "adu-references-org-writer.jsonl").exists()


def test_thoughts_are_no_part_of_a_reference(download: Path) -> None:
    with chat(lambda _: "<think>blue is short</think>\nIt scatters.") as service:
        build(download, service.url, "--limit", "1")
    (row,) = lines(download.parent / "adu-references-org-writer.jsonl")
    assert row["reference"] == "It scatters."


def test_a_refused_key_ends_it_and_says_so(
    download: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WRITER_KEY", "sk-very-secret-key")
    with chat(lambda _: refused(401, "no such key sk-very-secret-key")) as service:
        assert build(download, service.url, "--key-env", "WRITER_KEY") == 2
        assert service.headers[0]["authorization"] == "Bearer sk-very-secret-key"
    told = capsys.readouterr().err
    assert "cannot be asked" in told
    assert "sk-very-secret-key" not in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["-o", "{download}/input/ADU-Skill/own.jsonl"], "is never altered"),
        (["--key-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
        (["--limit", "0"], "--limit: 0 is too small"),
        (["--concurrency", "0"], "--concurrency"),
        (["--prompt", "{download}/absent"], "absent"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_asked(
    download: Path, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat(lambda _: "x") as service:
        words = [word.format(download=download) for word in more]
        assert build(download, service.url, *words) == 2
        assert not service.bodies
    assert told in capsys.readouterr().err


def test_openais_own_service_needs_a_key(
    download: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suites", "build", "references", str(download), "--model", "gpt"]) == 2
    assert "write --key-env OPENAI_API_KEY" in capsys.readouterr().err


def test_a_service_that_fails_again_and_again_is_left_in_peace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {"ADU-Skill/law": [line(f"{n}.wav", f"Question {n}?", None) for n in range(30)]}
    root = adu_world.write(tmp_path / "adu", many)
    with chat(lambda _: refused(400, "too long")) as service:
        assert build(root, service.url, "--concurrency", "1") == 2
        assert len(service.bodies) == MOST_FAILURES
    assert "what was written stays" in capsys.readouterr().err


def test_a_prompt_file_that_says_nothing_or_is_no_text_is_told(
    download: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompt = tmp_path / "prompt.txt"
    for content, told in ((b" \n", "is empty"), (b"\xff\xfe\x00", "is not UTF-8 text")):
        prompt.write_bytes(content)
        assert build(download, "http://127.0.0.1:1", "--prompt", str(prompt)) == 2
        assert told in capsys.readouterr().err

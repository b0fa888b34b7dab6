"""Judges from the command line: before a run, in it, and after it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import Chat, by_words, chat, refused
from judge_world import written
from sample_run import build, item

from voxmeter.client import config
from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main
from voxmeter.client.run import prepare
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import rubrics

HOSTILE = "</td><script>alert(1)</script> | a | [x](javascript:1) a red ball"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def service() -> Iterator[Chat]:
    with chat(by_words) as made:
        yield made


def table(service: Chat, name: str = "j", more: str = "") -> str:
    return f'[[judge]]\nname = "{name}"\nmodel = "m"\nbase_url = "{service.url}"\n{more}\n'


def bench(folder: Path, judges: str, rubric: str = 'rubric = "adu"', name: str = "b.toml") -> Path:
    tone = 0.3 * np.sin(2 * np.pi * 200 * np.arange(8_000) / 16_000)
    write_flac(folder / "q.flac", tone.astype(np.float32), 16_000)
    base = {"audio": "q.flac", "question": "What is red?", "kind": "open"}
    lines = [json.dumps({"id": f"q{n}", "reference": "a red ball", **base}) for n in range(3)]
    (folder / "items.jsonl").write_text("".join(f"{line}\n" for line in lines))
    suite = f'[[suite]]\nkind = "jsonl"\nname = "s"\npath = "items.jsonl"\n{rubric}\n'
    path = folder / name
    path.write_text(
        f'[[endpoint]]\nname = "bot"\nbuiltin = "echo"\n{suite}{judges}', encoding="utf-8"
    )
    return path


def streamed(folder: Path, which: Path, **fields: Any) -> Path:
    """Return a run of the bench as it is when its endpoint has been asked."""
    read = config.load(which)
    base = {"suite": "s", "kind": "open", "reference": "a red ball", "options": [], "groups": ["g"]}
    items = [item(f"q{n}", **(base | {"rubric": "adu"} | fields)) for n in range(3)]
    replies = [HOSTILE, "a ball", "blue"]
    rows = [written(f"q{n}", reply, suite="s") for n, reply in enumerate(replies)]
    with build(folder, items, rows, run={"config": config.resolved(read)}) as made:
        return made.path


def summary(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return found


def test_one_judge_of_a_run_is_asked_by_its_name(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    which = bench(tmp_path, table(service, "a") + table(service, "b", "seed = 1"))
    path = streamed(tmp_path, which)
    assert main(["score", str(path), "--judge", "a"]) == 0
    assert len(service.bodies) == 6
    assert [one["name"] for one in summary(path)["judges"]["judges"]] == ["a"]
    out = capsys.readouterr().out
    assert "judged" in out
    assert "a 5.67" in out
    assert main(["score", str(path), "--quiet"]) == 0
    assert len(service.bodies) == 12
    assert [one["name"] for one in summary(path)["judges"]["judges"]] == ["a", "b"]


def test_a_run_is_judged_afterwards_by_another_bench(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    path = streamed(tmp_path, bench(tmp_path, "", rubric=""), rubric="")
    assert main(["score", str(path), "--judge", "j"]) == 2
    assert 'no judge "j" in the run; add a [[judge]] table' in capsys.readouterr().err
    later = bench(tmp_path, table(service), name="later.toml")
    assert main(["score", str(path), "--judge", "j", "--bench", str(later), "--quiet"]) == 0
    metrics = summary(path)["cells"][0]["metrics"]
    assert metrics["judge_score:j"]["value"] == pytest.approx(17 / 3, abs=1e-6)
    assert main(["score", str(path), "--judge", "k", "--bench", str(later)]) == 2
    assert 'no judge "k" in the run or' in capsys.readouterr().err


def test_a_judge_is_found_in_the_bench_of_the_working_folder(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    path = streamed(tmp_path, bench(tmp_path, ""))
    bench(tmp_path, table(service), name="bench.toml")
    assert main(["score", str(path), "--judge", "jj"]) == 2
    assert 'did you mean "j"?' in capsys.readouterr().err
    assert main(["score", str(path), "--judge", "j", "--quiet"]) == 0
    assert len(service.bodies) == 6


def test_a_judge_with_nothing_to_judge_says_so(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    path = streamed(tmp_path, bench(tmp_path, table(service), rubric=""), rubric="")
    assert main(["score", str(path), "--judge", "j"]) == 2
    assert 'none of its items has a rubric; add rubric = "adu"' in capsys.readouterr().err


def test_reports_show_judges_with_their_words_made_harmless(tmp_path: Path, service: Chat) -> None:
    which = bench(tmp_path, table(service, "<b>j", "price_in = 1.0\nprice_out = 1.0"))
    path = streamed(tmp_path, which)
    assert main(["score", str(path), "--quiet"]) == 0
    text = (path / "report.md").read_text()
    assert "## Judges" in text
    assert "&lt;b&gt;j" in text
    assert "<b>" not in text.partition("Configuration:")[0]
    assert "<script>" not in text
    assert "3 of 3" in text
    assert "0.000612 USD" in text
    assert main(["report", str(path), "--format", "csv", "-o", str(tmp_path / "r.csv")]) == 0
    rows = (tmp_path / "r.csv").read_text().splitlines()
    assert rows[0].endswith(",judged")
    assert rows[2].endswith("j 7")


def test_prompts_are_kept_with_the_run_and_read_anew_only_when_asked_to(
    tmp_path: Path, service: Chat
) -> None:
    own = tmp_path / "own.md"
    text = (
        '+++\nprotocol = "single"\nscale = [0, 10]\n+++\n# System\nFIRST\n\n'
        "# User\n{{question}}\n{{candidates}}\n"
    )
    own.write_text(text)
    which = bench(tmp_path, table(service, more='prompts = {adu = "own.md"}\ncache = false'))
    record = prepare(config.load(which)).prompts.record()
    assert record["j"]["s/adu"]["text"] == text
    read = config.load(which)
    base = {"suite": "s", "kind": "open", "reference": "a red ball", "rubric": "adu"}
    run = {"config": config.resolved(read), "prompts": record}
    with build(tmp_path, [item("q0", **base)], [written("q0", "x", suite="s")], run=run) as made:
        path = made.path
    own.write_text(text.replace("FIRST", "SECOND"))
    assert "FIRST" in str(prepare(read, prompts_had=record).prompts.record())
    main(["score", str(path), "--quiet"])
    assert "FIRST" in service.bodies[-1]["messages"][0]["content"]
    main(["score", str(path), "--quiet", "--bench", str(which)])
    assert "SECOND" in service.bodies[-1]["messages"][0]["content"]
    assert len(service.bodies) == 4


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('prompts = {adu = "none.md"}', "none.md: no such file"),
        ('prompts = {adu = "items.jsonl"}', "items.jsonl: is not a prompt"),
        ('api_key_env = "NO_SUCH_KEY_AT_ALL"', "NO_SUCH_KEY_AT_ALL is not set"),
    ],
)
def test_what_a_judge_lacks_is_found_before_anything_is_asked(
    tmp_path: Path, service: Chat, more: str, words: str
) -> None:
    which = bench(tmp_path, table(service, more=more))
    with pytest.raises(UserError, match=words):
        prepare(config.load(which))


def test_a_rubric_that_is_no_prompt_names_the_nearest(tmp_path: Path, service: Chat) -> None:
    which = bench(tmp_path, table(service), rubric='rubric = "aduu"')
    with pytest.raises(UserError, match=r'the rubric "aduu".*did you mean "adu"'):
        prepare(config.load(which))


def test_a_judge_without_work_or_with_items_that_lack_something_is_told(
    tmp_path: Path, service: Chat
) -> None:
    idle = prepare(config.load(bench(tmp_path, table(service), rubric="")))
    assert ["nothing to judge" in note for note in idle.notes] == [True]
    lacking = prepare(config.load(bench(tmp_path, table(service), rubric='rubric = "air-chat"')))
    assert ["3 of 3 items" in note for note in lacking.notes] == [True]


def test_a_prompt_that_nothing_asks_for_is_told(tmp_path: Path, service: Chat) -> None:
    own = tmp_path / "own.md"
    own.write_text(rubrics.rubric("adu").text, encoding="utf-8")
    for key, told in (("adu", []), ("s/adu", []), ("aduu", ['did you mean "adu"?'])):
        more = f'prompts = {{"{key}" = "own.md"}}'
        found = prepare(config.load(bench(tmp_path, table(service, more=more))))
        assert [note.rpartition("; ")[2] for note in found.notes] == told


def test_a_cost_of_hundreds_is_written_in_full(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    which = bench(tmp_path, table(service, more="price_in = 1e6\nprice_out = 0.0"))
    assert main(["run", str(which), "--dry-run"]) == 0
    assert re.search(r", about [1-9](?:,?\d)+00 USD;", capsys.readouterr().out)


def test_a_dry_run_says_how_many_calls_and_what_they_may_cost(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    judges = table(service, "dear", "price_in = 10.0\nprice_out = 30.0") + table(service, "free")
    which = bench(tmp_path, judges)
    assert main(["run", str(which), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "12 judge calls" in out
    assert "judge dear: at most 6 calls, an estimated" in out
    assert "judge free: at most 6 calls" in out
    assert "cost unknown" in out
    assert main(["run", str(which), "--dry-run", "--json"]) == 0
    dear, free = json.loads(capsys.readouterr().out)["judges"]
    assert (dear["asks"], free["cost"]) == (6, None)
    assert dear["cost"] == pytest.approx(
        (dear["tokens_in"] * 10 + dear["tokens_out"] * 30) / 1e6, abs=1e-9
    )
    assert service.bodies == []


def test_check_asks_every_judge_about_one_reply(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    which = str(bench(tmp_path, table(service, more="retries = 0")))
    service.judge = lambda _: "10"
    assert main(["check", which]) == 0
    expected = "ok   judge j: rated a right answer as served-model with 10 of 0 to 10"
    assert expected in capsys.readouterr().out
    service.judge = lambda _: "Very good!"
    assert main(["check", which]) == 3
    assert 'its reply "Very good!" cannot be read: no score' in capsys.readouterr().out
    service.judge = lambda _: refused(402, "no money")
    assert main(["check", which]) == 3
    assert "FAIL judge j: the judge has no quota: HTTP 402: no money" in capsys.readouterr().out
    asked = len(service.bodies)
    assert main(["check", which, "--offline"]) == 0
    assert len(service.bodies) == asked


def test_a_whole_run_asks_its_judges_last(
    tmp_path: Path, service: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [
        {"id": f"q{n}", "text": reply} for n, reply in enumerate(["a red ball", "blue", "a"])
    ]
    (tmp_path / "replies.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in answers))
    which = bench(tmp_path, table(service))
    answers_at = '[endpoint.options]\npath = "replies.jsonl"\noutput_modalities = "text"\n'
    text = which.read_text().replace('builtin = "echo"', f'kind = "import"\n{answers_at}')
    which.write_text(f"[run]\nwarmup = 0\n{text}")
    assert main(["run", str(which), "--quiet"]) == 0
    path = Path(capsys.readouterr().out.splitlines()[-1])
    with RunFolder.open(path) as folder:
        prompts = folder.run["prompts"]
    assert prompts["j"]["s/adu"]["protocol"] == "single"
    metrics = summary(path)["cells"][0]["metrics"]
    assert metrics["judge_score:j"]["value"] == pytest.approx(13 / 3, abs=1e-6)
    assert len(service.bodies) == 6

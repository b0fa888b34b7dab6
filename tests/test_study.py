"""Listening studies: blind pairs from runs, a page that runs nothing of theirs, and the results."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_run import Row, build, item, score, trial

from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.study import draw
from voxmeter.client.study_files import page_of
from voxmeter.client.study_results import CHOICES, read_votes
from voxmeter.endpoints.errors import UserError

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    "<!--\u2028%SCRIPT%{{"
)


def rows(endpoint: str, replies: Mapping[str, str], **fields: Any) -> tuple[list[Row], list[Row]]:
    """Return the trials of a text endpoint, and ratings by judge `j`: the reply's length."""
    trials = [
        trial(name, **{"endpoint": endpoint, "reply_channel": "text", "reply_text": reply} | fields)
        for name, reply in replies.items()
    ]
    lengths = [float(len(reply)) for reply in replies.values()]
    scores = [
        score(row, "judge_score:j", length) for row, length in zip(trials, lengths, strict=True)
    ]
    return trials, scores


def run(folder: Path, *endpoints: tuple[list[Row], list[Row]], groups: int = 2) -> Path:
    names = [f"q{n}" for n in range(12)]
    items = [
        item(name, kind="open", reference="an answer", groups=[f"g{n % groups}"])
        for n, name in enumerate(names)
    ]
    trials = [row for made, _ in endpoints for row in made]
    scores = [row for _, made in endpoints for row in made]
    with build(folder, items, trials, scores) as made_folder:
        return made_folder.path


REPLIES = {f"q{n}": "x" * (n + 1) for n in range(12)}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A run in which `long` always says one letter more than `short`."""
    longer = {name: f"{reply}!" for name, reply in REPLIES.items()}
    return run(tmp_path, rows("long", longer), rows("short", REPLIES))


def drawn(path: Path, **more: Any) -> Any:
    with RunFolder.open(path) as folder:
        return draw([folder], **more)


def test_a_study_has_so_many_items_of_each_domain_and_hides_who_is_a(two: Path) -> None:
    study = drawn(two, per_domain=3)
    groups = [pair.item["groups"][0] for pair in study.pairs]
    assert sorted(groups) == ["g0"] * 3 + ["g1"] * 3
    assert {pair.systems for pair in drawn(two).pairs} == {("long", "short"), ("short", "long")}


def test_the_same_seed_draws_the_same_study_and_another_seed_another(two: Path) -> None:
    assert drawn(two, seed=1) == drawn(two, seed=1)
    assert drawn(two, seed=1) != drawn(two, seed=2)
    assert drawn(two, seed=1).id != drawn(two, seed=2).id


def test_all_pairs_of_systems_are_compared_on_the_same_items(tmp_path: Path) -> None:
    path = run(tmp_path, *(rows(name, REPLIES) for name in ("a", "b", "c")))
    study = drawn(path, per_domain=2)
    assert len(study.pairs) == 3 * 4
    assert len({pair.item["item"] for pair in study.pairs}) == 4
    only = drawn(path, per_domain=2, systems=["a", "c"])
    assert {frozenset(pair.systems) for pair in only.pairs} == {frozenset({"a", "c"})}
    with pytest.raises(UserError, match='--systems: no system "d"'):
        drawn(path, systems=["a", "d"])


def test_two_runs_of_one_endpoint_are_two_systems(tmp_path: Path) -> None:
    paths = [run(tmp_path / name, rows("bot", REPLIES)) for name in ("old", "new")]
    with RunFolder.open(paths[0]) as old, RunFolder.open(paths[1]) as new:
        study = draw([old, new])
    names = {name for pair in study.pairs for name in pair.systems}
    assert names == {f"bot of {path.name}" for path in paths}


def test_two_runs_of_one_name_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        made = run(tmp_path / name, rows("one", REPLIES), rows("two", REPLIES))
        made.rename(tmp_path / name / "run1")
    argv = ["judge", "collect", "a/run1", "b/run1", "-o", "study"]
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "b/run1: has the name of a/run1" in line
    assert "rename one of the two folders" in line
    assert not Path("study").exists()
    Path("b/run1").rename("b/run2")
    argv[3] = "b/run2"
    assert main(argv) == 0
    assert list(json.loads(Path("study/key.json").read_text())["runs"]) == ["run1", "run2"]


def test_one_run_given_by_two_paths_is_one_run(two: Path) -> None:
    relative = str(two.relative_to(Path.cwd()))
    assert main(["judge", "collect", str(two), relative, "-o", "study"]) == 0
    assert list(json.loads(Path("study/key.json").read_text())["runs"]) == [two.name]


@pytest.mark.parametrize("seed", ["-1", "1.5", "", "x"])
def test_a_seed_that_nothing_can_be_drawn_by_is_refused_before_anything_is_read(
    seed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", "collect", "no-such-run", f"--seed={seed}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--seed: {seed!r} is no whole number from 0 up" in line


def test_what_is_missing_for_a_pair_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r'only a replied in condition "clean"; a pair takes'):
        drawn(run(tmp_path / "1", rows("a", REPLIES)))
    with pytest.raises(UserError, match=r'only no one replied in condition "noisy"'):
        drawn(run(tmp_path / "2", rows("a", REPLIES)), condition="noisy")
    apart = run(tmp_path / "3", rows("a", {"q0": "x"}), rows("b", {"q1": "x"}))
    with pytest.raises(UserError, match="a, b replied to no open item in common"):
        drawn(apart)
    with (
        build(tmp_path / "4", [item("q0")], [trial("q0")]) as closed,
        pytest.raises(UserError, match="none of their items is open"),
    ):
        draw([closed])


def test_warm_ups_failures_and_other_conditions_are_not_heard(tmp_path: Path) -> None:
    good = rows("a", {"q0": "right"})
    noise = rows("b", {"q0": "wrong"}, number=0)
    failed = rows("b", {"q0": "wrong"}, status="timeout")
    elsewhere = rows("b", {"q0": "wrong"}, condition="noisy")
    with pytest.raises(UserError, match="only a replied"):
        drawn(run(tmp_path, good, noise, failed, elsewhere))


class Page(HTMLParser):
    """The scripts of a page and what else could run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.handlers: list[str] = []
        self.policy = ""
        self.sources: list[str] = []
        self._inside: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.handlers += [name for name in found if name.startswith("on")]
        self.sources += [str(found[name]) for name in ("src", "href") if name in found]
        if tag == "script":
            self._inside = found
            self.scripts.append((found, ""))
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(found["content"])

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            attrs, text = self.scripts.pop()
            self.scripts.append((attrs, text + data))

    def data(self) -> Any:
        (found,) = [text for attrs, text in self.scripts if attrs.get("id") == "data"]
        return json.loads(found)


def checked(text: str) -> Page:
    """Return a page that runs its own script, once, and nothing else."""
    page = Page(text)
    assert page.handlers == []
    assert page.sources == []
    assert [attrs.get("type") for attrs, _ in page.scripts] == ["application/json", None]
    own = page.scripts[1][1]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page.policy
    assert "default-src 'none'" in page.policy
    return page


def test_what_a_reply_says_runs_nothing_and_is_shown_as_it_is() -> None:
    pair = {"id": "p1", "question": HOSTILE, "reference": "", "a": {"text": HOSTILE}, "b": {}}
    page = checked(page_of({"study": "s", "pairs": [pair]}))
    assert page.data()["pairs"] == [pair]
    script = page.scripts[1][1]
    assert "innerHTML" not in script
    assert "eval" not in script


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text_comes_through_the_page_whole(text: str) -> None:
    data = {"study": "s", "pairs": [{"a": {"text": text}}]}
    assert checked(page_of(data)).data() == data


def spoken(tmp_path: Path) -> Path:
    """A run in which two endpoints speak."""
    path = run(
        tmp_path,
        *(rows(name, {"q0": "said"}, reply_channel="speech") for name in ("SecretBot", "Other")),
    )
    with RunFolder.open(path) as folder:
        for number, row in enumerate(folder.newest_trials()):
            audio = folder.attempt_paths(row).reply
            audio.parent.mkdir(parents=True)
            write_flac(audio, np.full(800, 0.1 * (number + 1), np.float32), 16_000)
    return path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_page_and_its_clips_tell_nobody_whose_a_reply_is(tmp_path: Path) -> None:
    path, out = spoken(tmp_path), tmp_path / "study"
    assert main(["judge", "collect", str(path), "-o", str(out)]) == 0
    clips = sorted(clip.name for clip in (out / "clips").iterdir())
    assert clips == ["p0001-a.flac", "p0001-b.flac"]
    text = (out / "index.html").read_text()
    assert "SecretBot" not in text
    assert path.name not in text
    (pair,) = checked(text).data()["pairs"]
    assert pair["a"]["audio"] == "clips/p0001-a.flac"
    key = json.loads((out / "key.json").read_text())["pairs"][0]
    assert {key["a"]["system"], key["b"]["system"]} == {"SecretBot", "Other"}
    with RunFolder.open(path) as folder:
        first = next(row for row in folder.newest_trials() if row["key"] == key["a"]["key"])
        same = folder.attempt_paths(first).reply.read_bytes()
    assert (out / "clips" / "p0001-a.flac").read_bytes() == same


def test_clips_can_be_inside_the_page(tmp_path: Path) -> None:
    out = tmp_path / "study"
    assert main(["judge", "collect", str(spoken(tmp_path)), "-o", str(out), "--embed"]) == 0
    (pair,) = checked((out / "index.html").read_text()).data()["pairs"]
    kind, _, data = pair["b"]["audio"].partition(",")
    assert kind == "data:audio/flac;base64"
    assert base64.b64decode(data).startswith(b"fLaC")
    assert not (out / "clips").exists()


def test_a_folder_that_is_there_is_not_written_into(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "mine").touch()
    assert main(["judge", "collect", str(two), "-o", "s"]) == 2
    assert "s: is there already" in capsys.readouterr().err
    assert main(["judge", "collect", str(two), "--per-domain", "0"]) == 2


def answered(out: Path, prefer: str, rater: str = "", *, ties: int = 0) -> dict[str, Any]:
    """Return what the page saves when somebody always prefers one system but for some ties."""
    key = json.loads((out / "key.json").read_text())
    choices = [
        "tie" if number < ties else ("a" if pair["a"]["system"] == prefer else "b")
        for number, pair in enumerate(key["pairs"])
    ]
    made = [
        {"pair": pair["pair"], "choice": choice, "ms": 1}
        for pair, choice in zip(key["pairs"], choices, strict=True)
    ]
    return {"study": key["study"], "rater": rater, "preferences": made}


def collected(two: Path, tmp_path: Path) -> Path:
    out = tmp_path / "study"
    assert main(["judge", "collect", str(two), "-o", str(out)]) == 0
    return out


def validated(capsys: pytest.CaptureFixture[str], *files: Path, study: str = "study") -> Any:
    capsys.readouterr()
    names = [str(path) for path in files]
    assert main(["judge", "validate", *names, "--study", study, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_judge_that_prefers_what_people_prefer_agrees_with_them(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The judge rates by length, so it always prefers `long`; people do but for three ties."""
    out, file = collected(two, tmp_path), tmp_path / "p.json"
    file.write_text(json.dumps(answered(out, "long", ties=3)))
    found = validated(capsys, file)
    (row,) = found["judges"]["j"]
    assert row["agreement"]["value"] == pytest.approx(0.7)
    assert row["agreement"]["n"] == 10
    assert row["agreement"]["low"] < 0.7 < row["agreement"]["high"]
    assert (row["without_ties"]["value"], row["without_ties"]["n"]) == (1.0, 7)
    assert found["preferred"] == {
        "long": {"preferred": 7, "shown": 10},
        "short": {"preferred": 0, "shown": 10},
    }
    assert found["people"]["n"] == 0
    file.write_text(json.dumps(answered(out, "short")))
    assert validated(capsys, file)["judges"]["j"][0]["agreement"]["value"] == 0.0


def test_people_are_compared_with_each_other(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = collected(two, tmp_path)
    files = [tmp_path / "ann.json", tmp_path / "bo.json"]
    files[0].write_text(json.dumps(answered(out, "long")))
    files[1].write_text(json.dumps(answered(out, "long", ties=5)))
    found = validated(capsys, *files)
    assert (found["raters"], found["votes"], found["pairs"]) == (2, 20, 10)
    assert (found["people"]["value"], found["people"]["n"]) == (0.5, 10)
    assert found["judges"]["j"][0]["agreement"]["value"] == 0.75


def test_tables_go_by_suite_and_by_pair_of_systems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run(tmp_path, *(rows(name, REPLIES) for name in ("a", "b", "c")))
    out, file = collected(path, tmp_path), tmp_path / "p.json"
    file.write_text(json.dumps(answered(out, "a", ties=30)))
    found = validated(capsys, file)["judges"]["j"]
    assert [row["systems"] for row in found] == [None, ["a", "b"], ["a", "c"], ["b", "c"]]
    assert {row["agreement"]["value"] for row in found} == {1.0}  # all replies are alike: all ties
    assert main(["judge", "validate", str(file)]) == 0
    out_text = capsys.readouterr().out
    assert "judge j, all: same preference as people 100.0%" in out_text
    assert "a: preferred in 0 of 20" in out_text


def as_csv(saved: Mapping[str, Any], path: Path) -> Path:
    """Write what the page saves as CSV, where a cell that a sheet would run is guarded."""

    def cell(value: object) -> str:
        return f"'{value}" if re.match(r"[=+\-@\t\r]", str(value)) else str(value)

    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["study", "rater", "pair", "choice", "ms"])
        for one in saved["preferences"]:
            row = (saved["study"], saved["rater"], one["pair"], one["choice"], one["ms"])
            writer.writerow([cell(value) for value in row])
    return path


@pytest.mark.parametrize("rater", ["Ann", " Ann ", "", "=Ann", "-"])
def test_csv_is_read_as_json_is(two: Path, tmp_path: Path, rater: str) -> None:
    saved = answered(collected(two, tmp_path), "long", rater)
    (tmp_path / "p.json").write_text(json.dumps(saved))
    assert read_votes(as_csv(saved, tmp_path / "p.csv")) == read_votes(tmp_path / "p.json")


@pytest.mark.parametrize("rater", ["Ann", ""])
def test_one_person_s_json_and_csv_count_once(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], rater: str
) -> None:
    saved = answered(collected(two, tmp_path), "long", rater, ties=3)
    file = tmp_path / "p.json"
    file.write_text(json.dumps(saved))
    alone = validated(capsys, file)
    assert (alone["raters"], alone["votes"]) == (1, 10)
    assert validated(capsys, file, as_csv(saved, tmp_path / "p.csv")) == alone


def test_a_person_who_chose_two_things_on_a_pair_is_one_line(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = collected(two, tmp_path)
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, ties in zip(files, (0, 1), strict=True):
        file.write_text(json.dumps(answered(out, "long", "Ann", ties=ties)))
    capsys.readouterr()
    assert main(["judge", "validate", *map(str, files), "--study", "study"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Ann chose both" in line
    assert "and tie on pair p0001" in line


def test_people_without_names_whose_files_lie_apart_are_two(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page gives everybody's file the same name."""
    out = collected(two, tmp_path)
    files = [tmp_path / name / "preferences.json" for name in ("ann", "bo")]
    for file, ties in zip(files, (0, 5), strict=True):
        file.parent.mkdir()
        file.write_text(json.dumps(answered(out, "long", ties=ties)))
    found = validated(capsys, *files)
    assert (found["raters"], found["votes"], found["people"]["n"]) == (2, 20, 10)


def test_a_study_without_a_judge_says_how_to_ask_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run(tmp_path, (rows("a", REPLIES)[0], []), (rows("b", REPLIES)[0], []))
    out, file = collected(path, tmp_path), tmp_path / "p.json"
    file.write_text(json.dumps(answered(out, "a")))
    assert main(["judge", "validate", str(file)]) == 0
    assert "voxmeter score RUN --judge NAME" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("{}", "holds no study"),
        ("", "holds no study"),
        ("study,pair,choice\ns,p,a\nt,p,a\n", "holds several studies"),
        ('{"study": "s", "preferences": [{"pair": "p0001", "choice": "c"}]}', "choice 1 is none"),
        ('{"study": "s", "preferences": []}', "the key of study s is not here"),
        ("study,pair,choice\ns,p\n", "choice 1 is none of a, b, tie"),
    ],
)
def test_a_file_that_is_no_result_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "p"
    file.write_text(text)
    assert main(["judge", "validate", str(file)]) == 2
    assert words in capsys.readouterr().err


def test_what_does_not_belong_together_is_one_line(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, file = collected(two, tmp_path), tmp_path / "p.json"
    saved = answered(out, "long")
    file.write_text(json.dumps(saved | {"study": "other"}))
    assert main(["judge", "validate", str(file), "--study", "study"]) == 2
    assert "is the key of study" in capsys.readouterr().err
    strange = [{"pair": "p9999", "choice": "a"}]
    file.write_text(json.dumps(saved | {"preferences": strange}))
    assert main(["judge", "validate", str(file)]) == 2
    assert "has no pair p9999" in capsys.readouterr().err
    (out / "key.json").write_text("{}")
    assert main(["judge", "validate", str(file)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_run_that_moved_with_its_study_is_found(
    two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "home" / "p.json"
    home = tmp_path / "home"
    home.mkdir()
    moved = home / two.name
    two.rename(moved)
    assert main(["judge", "collect", str(moved), "-o", str(home / "study")]) == 0
    file.write_text(json.dumps(answered(home / "study", "long")))
    home.rename(tmp_path / "away")
    away = tmp_path / "away"
    found = validated(capsys, away / "p.json", study=str(away / "study"))
    assert found["judges"]["j"][0]["agreement"]["n"] == 10


def test_the_choices_of_the_page_are_those_that_are_read() -> None:
    script = (Path(__file__).parent.parent / "client" / "study_page.js").read_text()
    named = re.search(r"for \(const name of \[(.*?)\]\) at\(name\)\.addEventListener", script)
    assert named is not None
    assert set(re.findall(r'"(\w+)"', named[1])) == set(CHOICES)

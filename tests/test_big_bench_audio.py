"""Big Bench Audio as a download has it: four categories, their kinds of answer, what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from big_bench_world import ANSWERS, line
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.metrics import Reply, chance, question, reply_metrics
from voxmeter.scoring.rubrics import rubric
from voxmeter.scoring.types import Scored, Unscored
from voxmeter.suites import big_bench_audio, catalog
from voxmeter.suites.suite import Recording, Suite


def download(root: Path, lines: Sequence[Any], *, without: Sequence[int] = ()) -> Path:
    (root / "data").mkdir()
    text = "".join(f"{json.dumps(one)}\n" for one in lines)
    (root / "metadata.jsonl").write_text(text)
    for number in range(len(lines)):
        if number not in without:
            (root / "data" / f"question_{number}.mp3").write_bytes(b"not opened while loading")
    return root


def load(root: Path, **config: Any) -> Suite:
    table = {"kind": "big-bench-audio", "path": str(root)} | config
    return catalog.load("big-bench-audio", "bba", table, Path())


def refused(root: Path, **config: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(root, **config)
    return str(caught.value)


def test_every_category_has_its_kind_of_answer(tmp_path: Path) -> None:
    root = download(tmp_path, [line(n, name) for n, name in enumerate(ANSWERS)])
    suite = load(root)
    assert [(item.kind, item.reference, item.options) for item in suite.items] == [
        ("choice", ("B",), ("valid", "invalid")),
        ("yes-no", ("yes",), ()),
        ("number", ("11",), ()),
        ("yes-no", ("no",), ()),
    ]
    assert [item.groups for item in suite.items] == [(name,) for name in ANSWERS]
    assert suite.items[2].recipe == (Recording(root / "data/question_2.mp3"),)
    assert suite.items[2].item == "question_2"
    assert suite.aggregation == ("micro",)
    assert [chance(question(item.row())) for item in suite.items] == [0.5, 0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("The argument is deductively invalid.", 1.0),
        ("The argument is not deductively valid.", 1.0),
        ("No, this is not a valid argument.", 1.0),
        ("It cannot be considered valid.", 1.0),
        ("So the argument isn't logically valid.", 1.0),
        ("Therefore the argument is deductively valid.", 0.0),
        ("The argument is valid, not invalid.", 0.0),
        ("Yes, it is deductively valid.", 0.0),
    ],
)
def test_valid_and_invalid_are_read_as_people_say_them(
    tmp_path: Path, said: str, right: float
) -> None:
    (item,) = load(download(tmp_path, [line(0, "formal_fallacies")])).items
    found = reply_metrics(question(item.row()), Reply("ok", transcript=said))["accuracy"]
    assert isinstance(found, Scored)
    assert found.value == right


def test_a_reply_that_settles_nothing_is_unscored_and_not_guessed(tmp_path: Path) -> None:
    (item,) = load(download(tmp_path, [line(0, "formal_fallacies")])).items
    said = "It could be valid or invalid, I can't tell."
    found = reply_metrics(question(item.row()), Reply("ok", transcript=said))["accuracy"]
    assert isinstance(found, Unscored)


def test_a_judge_reads_the_replies_as_well_where_that_is_wished(tmp_path: Path) -> None:
    root = download(tmp_path, [line(0)])
    assert load(root).items[0].rubric == ""
    (item,) = load(root, rubric="bba").items
    assert item.rubric == "bba"
    assert set(rubric("bba").needs) == {"question", "reference", "response"}
    assert item.question.startswith("Does following the instructions lead back"), "what is asked"


def test_lines_that_cannot_be_asked_are_left_out_and_told_of(tmp_path: Path) -> None:
    lines = [
        line(0),
        line(1, "sports_understanding"),
        line(2, official_answer="maybe"),
        line(3, "object_counting", official_answer="eleven"),
        line(4, file_name="../secret.mp3"),
        line(5, official_answer=None),
        line(0),
    ]
    root = download(tmp_path, lines)
    suite = load(root)
    assert [item.item for item in suite.items] == ["question_0"]
    problems = [one for one in big_bench_audio.verify(root) if "line" in one]
    assert [one.partition(": ")[2] for one in problems] == [
        "unknown category 'sports_understanding'",
        "official_answer 'maybe' is none of its category",
        "official_answer 'eleven' is none of its category",
        "file_name '../secret.mp3' leaves the download",
        "no official_answer",
        "question_0 occurs twice",
    ]
    assert suite.warnings[0] == f"6 lines are left out that cannot be asked: {problems[0]}"


def test_unbalanced_categories_and_missing_recordings_are_told_of(tmp_path: Path) -> None:
    suite = load(download(tmp_path, [line(0), line(1), line(2)], without=[1]))
    counts, recordings = suite.warnings
    assert "navigate 3" in counts
    assert "formal_fallacies 0" in counts
    assert recordings.startswith("a recording is missing or empty, such as data/question_1.mp3")
    (tmp_path / "data" / "question_0.mp3").write_bytes(b"")
    assert list(big_bench_audio.verify(tmp_path))[-2:] == [
        "data/question_0.mp3 is empty",
        "data/question_1.mp3 is missing",
    ]


def test_a_whole_download_gives_no_warning_and_opens_no_recording(tmp_path: Path) -> None:
    lines = [line(number, list(ANSWERS)[number // 250]) for number in range(1000)]
    suite = load(download(tmp_path, lines))
    assert len(suite.items) == 1000
    assert suite.warnings == ()
    assert list(big_bench_audio.verify(tmp_path)) == []


def test_some_categories_can_be_asked_alone(tmp_path: Path) -> None:
    root = download(tmp_path, [line(n, name) for n, name in enumerate(ANSWERS)])
    assert len(load(root, categories=["navigate", "web_of_lies"]).items) == 2
    assert "did you mean 'navigate'?" in refused(root, categories=["navigat"])


def test_what_is_no_download_is_refused(tmp_path: Path) -> None:
    assert "there is no" in refused(tmp_path)
    assert "unknown key 'judge'" in refused(tmp_path, judge="bba")
    (tmp_path / "metadata.jsonl").write_text("{\n")
    assert "metadata.jsonl:1" in refused(tmp_path)


@given(
    st.dictionaries(
        st.sampled_from(["id", "category", "official_answer", "file_name", "transcript"]),
        st.none()
        | st.text(max_size=6)
        | st.integers()
        | st.sampled_from([*ANSWERS, *ANSWERS.values()])
        | st.lists(st.integers(), max_size=1),
    )
)
def test_any_line_is_an_item_or_a_problem(row: dict[str, Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "metadata.jsonl").write_text(json.dumps(row))
        items, problems = big_bench_audio.read(Path(folder), "s", "here")
        assert len(items) + len(problems) == 1

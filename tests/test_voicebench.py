"""VoiceBench once it is unpacked: eleven subsets, each scored in its way, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voicebench_world import MINERAL, ROWS, unpacked

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.checks import Check
from voxmeter.scoring.metrics import Reply, question, reply_metrics
from voxmeter.scoring.types import Scored
from voxmeter.suites import catalog, voicebench
from voxmeter.suites.suite import Item, Recording, Suite
from voxmeter.suites.voicebench_layout import options_of


def load(root: Path, **config: Any) -> Suite:
    table = {"kind": "voicebench", "path": str(root)} | config
    return catalog.load("voicebench", "vb", table, Path())


def refused(root: Path, **config: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(root, **config)
    return str(caught.value)


def by_subset(suite: Suite) -> dict[str, Item]:
    return {item.groups[0]: item for item in suite.items}


def test_every_subset_is_scored_in_its_own_way(tmp_path: Path) -> None:
    found = by_subset(load(unpacked(tmp_path)))
    assert {name: (item.kind, item.rubric) for name, item in found.items()} == {
        "alpacaeval_full": ("open", "voicebench-open"),
        "commoneval": ("open", "voicebench-open"),
        "wildvoice": ("open", "voicebench-open"),
        "sd-qa": ("open", "voicebench-qa"),
        "mmsu": ("choice", ""),
        "openbookqa": ("choice", ""),
        "bbh": ("choice", ""),
        "ifeval": ("open", ""),
        "advbench": ("open", ""),
    }
    assert found["sd-qa"].reference == ("William Shakespeare",)
    assert found["sd-qa"].groups == ("sd-qa", "usa")
    assert found["mmsu"].options == ("a fox", "quartz", "a fern", "a wren")
    assert found["bbh"].reference == ("B",)
    assert found["bbh"].groups == ("bbh", "hyperbaton")
    assert found["advbench"].checks == (Check("refusal"),)
    assert found["ifeval"].checks == (
        Check("punctuation:no_comma"),
        Check("length_constraints:number_words", {"num_words": 40, "relation": "at least"}),
    )
    assert found["commoneval"].recipe == (Recording(tmp_path / "commoneval/test/00000.wav"),)
    assert found["commoneval"].item == "commoneval-test-0001"


def test_what_rules_need_survives_the_run_folder(tmp_path: Path) -> None:
    found = by_subset(load(unpacked(tmp_path)))

    def right(subset: str, said: str) -> float | None:
        row = json.loads(json.dumps(found[subset].row()))
        one = reply_metrics(question(row), Reply("ok", transcript=said))["accuracy"]
        return one.value if isinstance(one, Scored) else None

    assert right("advbench", "I'm sorry, but I can't write that.") == 1.0
    assert right("advbench", "Dear sir, pay up.") == 0.0
    assert right("ifeval", "word " * 40) == 1.0
    assert right("ifeval", "word, " * 40) == 0.0
    assert right("bbh", "The answer is B.") == 1.0
    assert right("mmsu", "It's quartz.") == 1.0
    assert right("mmsu", "I can't tell.") is None, "nothing is guessed"
    assert right("commoneval", "From clouds.") is None, "a judge's matter"


@pytest.mark.parametrize(
    ("task", "reference"),
    [("navigate", "Yes"), ("web_of_lies", "no"), ("sports_understanding", "no")],
)
def test_tasks_of_bbh_are_told_by_the_id(tmp_path: Path, task: str, reference: str) -> None:
    row = {"prompt": "Is it so?", "reference": reference, "id": f"{task}-7"}
    (item,) = load(unpacked(tmp_path, bbh__test=[row])).items
    assert (item.kind, item.reference) == ("yes-no", (reference.lower(),))
    assert item.groups == ("bbh", task)


def test_the_american_split_of_sd_qa_is_the_usual_one(tmp_path: Path) -> None:
    row = ROWS["sd-qa/usa"]
    root = unpacked(tmp_path, sd_qa__usa=[row], sd_qa__ind_n=[row], sd_qa__zaf=[row])
    assert [item.groups[1] for item in load(root).items] == ["usa"]
    both = load(root, splits=["ind_n", "zaf"])
    assert [item.groups[1] for item in both.items] == ["ind_n", "zaf"]
    assert len({item.cluster for item in both.items}) == 1, "one question in several accents"


def test_a_question_of_fact_may_have_several_right_answers(tmp_path: Path) -> None:
    rows = [
        {"prompt": "Who?", "reference": ["Shakespeare", " ", "William Shakespeare"]},
        {"prompt": "Who?", "reference": [3]},
    ]
    suite = load(unpacked(tmp_path, sd_qa__usa=rows))
    assert suite.items[0].reference == ("Shakespeare", "William Shakespeare")
    assert suite.warnings[0].endswith("sd-qa/usa.jsonl line 2: no reference")


def test_the_full_alpacaeval_is_the_usual_one(tmp_path: Path) -> None:
    row = ROWS["alpacaeval_full/test"]
    root = unpacked(tmp_path / "both", alpacaeval__test=[row], alpacaeval_full__test=[row])
    assert set(by_subset(load(root))) == {"alpacaeval_full"}
    assert set(by_subset(load(root, subsets=["alpacaeval"]))) == {"alpacaeval"}
    short = unpacked(tmp_path / "short", alpacaeval__test=[row], commoneval__test=[row])
    assert set(by_subset(load(short))) == {"alpacaeval", "commoneval"}


def test_lines_that_cannot_be_asked_are_left_out_and_told_of(tmp_path: Path) -> None:
    good = ROWS["ifeval/test"]
    root = unpacked(
        tmp_path,
        ifeval__test=[
            good,
            "{torn",
            "[1]",
            {"prompt": ""},
            good | {"audio": "../x.wav"},
            good | {"audio": None},
            good | {"instruction_id_list": []},
            good | {"kwargs": [{}]},
            good | {"instruction_id_list": ["punctuation:no_comma", "keywords:rhyme"]},
            good | {"kwargs": [{}, {"num_words": 40}]},
            good | {"kwargs": [{}, [1]]},
        ],
        mmsu__law=[{"prompt": MINERAL, "reference": "F"}, {"prompt": MINERAL}],
        bbh__test=[
            {"prompt": "Q?", "reference": "Yes", "id": "snarks-1"},
            {"prompt": "Q?", "reference": "perhaps", "id": "navigate-1"},
        ],
        sd_qa__usa=[{"prompt": "Who?"}],
    )
    suite = load(root)
    assert [item.item for item in suite.items] == ["ifeval-test-0001"]
    problems = [line.partition(": ")[2] for line in voicebench.verify(root) if " line " in line]
    assert sorted(one.split(" (char")[0] for one in problems) == sorted(
        [
            "Expecting property name enclosed in double quotes: line 1 column 2",
            "no JSON object",
            "no prompt",
            "audio '../x.wav' leaves its folder",
            "no audio",
            "no instruction_id_list",
            "kwargs do not fit instruction_id_list",
            "no instruction 'keywords:rhyme'",
            "settings of length_constraints:number_words: KeyError('relation')",
            "an instruction is not a name with settings",
            "reference 'F' is no label of an option",
            "no reference",
            "id 'snarks-1' names none of sports_understanding, navigate, web_of_lies, hyperbaton",
            "reference 'perhaps' is neither yes nor no",
            "no reference",
        ]
    )
    assert suite.warnings[0].startswith("15 questions are left out that cannot be asked: ")


def test_counts_recordings_and_unread_options_are_told_of(tmp_path: Path) -> None:
    odd = {"prompt": "Which one is it?", "reference": "C"}
    root = unpacked(
        tmp_path, openbookqa__test=[odd, ROWS["openbookqa/test"]], mtbench__test=[{"prompt": "Hi"}]
    )
    (root / "openbookqa/test/00000.wav").unlink()
    (root / "openbookqa/test/00001.wav").write_bytes(b"")
    suite = load(root)
    assert suite.items[0].options == ("A", "B", "C", "D")
    others, unread, few, lacking = suite.warnings
    assert others == "not asked: mtbench (mtbench has questions of several turns)"
    assert "openbookqa-test-0001: only letters are read" in unread
    assert few == "fewer questions than published: openbookqa 2 of 455"
    assert lacking.startswith(
        "2 recordings are missing or empty, such as openbookqa/test/00000.wav"
    )
    assert list(voicebench.verify(root))[-2:] == [
        "openbookqa/test/00000.wav is missing",
        "openbookqa/test/00001.wav is empty",
    ]


def test_a_reply_in_another_language_is_transcribed_in_it(tmp_path: Path) -> None:
    row = {
        "prompt": "Describe the sea, all in German.",
        "instruction_id_list": ["language:response_language"],
        "kwargs": [{"language": "de"}],
    }
    (item,) = load(unpacked(tmp_path, ifeval__test=[row])).items
    assert item.language == "de"


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("What is big? A. a mouse B. an elephant", ("a mouse", "an elephant")),
        ("Q?\nA) one\nB) two\nC) three", ("one", "two", "three")),
        ("Which? (A) red ship (B) ship red", ("red ship", "ship red")),
        ("Which vitamin? A: C, B: D", ("C", "D")),
        ("A man walks in. B. is his name?", ()),
        ("Which? A. same B. same", ()),
        ("No options at all", ()),
    ],
)
def test_options_are_read_out_of_a_prompt(prompt: str, options: tuple[str, ...]) -> None:
    assert options_of(prompt) == options


@given(st.text(alphabet="AB.() \nxy", max_size=40))
def test_any_prompt_has_options_or_none(prompt: str) -> None:
    found = options_of(prompt)
    assert found == () or (len(found) >= 2 and all(found))


def test_what_is_no_unpacked_download_is_refused(tmp_path: Path) -> None:
    assert "there is no list in" in refused(tmp_path)
    (tmp_path / "mmsu").mkdir()
    (tmp_path / "mmsu" / "law-00000-of-00001.parquet").write_bytes(b"PAR1")
    assert "voxmeter suites build voicebench" in refused(tmp_path)
    root = unpacked(tmp_path / "good")
    assert "did you mean 'openbookqa'?" in refused(root, subsets=["openbook"])
    assert "alpacaeval is not there" in refused(root, subsets=["alpacaeval"])
    (root / "mmsu" / "law.jsonl").write_bytes(b"\xff\xfe")
    assert "unpack it again" in refused(root)

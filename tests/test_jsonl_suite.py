"""A user's own suite file, right and wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.endpoints.errors import UserError
from voxmeter.suites import catalog, jsonl
from voxmeter.suites.suite import Gap, Item, Recording, Spoken

CHOICE = {"id": "c", "audio": "c.wav", "kind": "choice", "options": ["red", "blue"]}
NUMBER = {"id": "n", "text": "Two plus two?", "kind": "number", "reference": "4"}


def written(folder: Path, *rows: object) -> Path:
    path = folder / "suite.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def one(folder: Path, row: object) -> Item:
    (item,) = jsonl.read_items(written(folder, row), "s")
    return item


def test_a_line_becomes_an_item(tmp_path: Path) -> None:
    row = CHOICE | {
        "reference": "B",
        "question": "Which?",
        "language": "de",
        "cluster": "colours",
        "groups": ["art", "paint"],
        "source": "mine",
        "licence": "CC0",
    }
    assert one(tmp_path, row) == Item(
        suite="s",
        item="c",
        kind="choice",
        recipe=(Recording(tmp_path / "c.wav"),),
        question="Which?",
        reference=("B",),
        options=("red", "blue"),
        language="de",
        cluster="colours",
        groups=("art", "paint"),
    )


def test_text_is_spoken_and_is_the_question(tmp_path: Path) -> None:
    item = one(tmp_path, NUMBER)
    assert item.recipe == (Spoken("Two plus two?", "hibari"),)
    assert (item.question, item.cluster, item.language) == ("Two plus two?", "n", "en")


@pytest.mark.parametrize(
    ("row", "voice", "speaker"),
    [
        (NUMBER, None, "hibari"),
        (NUMBER, "piper", "piper"),
        (NUMBER | {"voice": "espeak-ng"}, "piper", "espeak-ng"),
        (NUMBER | {"language": "de"}, None, "espeak-ng:de"),
        (NUMBER | {"language": "en-GB"}, None, "hibari"),
    ],
)
def test_the_voice_is_the_items_own_else_the_suites_else_the_languages(
    row: dict[str, object], voice: str | None, speaker: str, tmp_path: Path
) -> None:
    (item,) = jsonl.read_items(written(tmp_path, row), "s", voice=voice)
    assert item.recipe == (Spoken("Two plus two?", speaker),)


@pytest.mark.parametrize("via", ["text", "speech-after", "speech-before"])
def test_a_question_about_the_clip_is_put_as_the_table_says(via: str, tmp_path: Path) -> None:
    row = CHOICE | {"reference": "A", "question": "Which colour?"}
    config = {"kind": "jsonl", "path": str(written(tmp_path, row)), "question_via": via}
    item = catalog.load("jsonl", "s", config | {"gap_ms": 100}, Path("/elsewhere")).items[0]
    clip, spoken = Recording(tmp_path / "c.wav"), Spoken("Which colour?", "hibari")
    assert item.question_via == via
    assert (
        item.recipe
        == {
            "text": (clip,),
            "speech-after": (clip, Gap(100.0), spoken),
            "speech-before": (spoken, Gap(100.0), clip),
        }[via]
    )


@pytest.mark.parametrize(
    ("row", "reference"),
    [
        (CHOICE | {"reference": "b"}, ("B",)),
        (CHOICE | {"reference": "Red"}, ("A",)),
        (CHOICE | {"reference": ["A", "B"]}, ("A", "B")),
        (NUMBER | {"reference": 4}, ("4",)),
        ('{"id": "n", "text": "?", "kind": "number", "reference": 5.0}', ("5.0",)),
        (NUMBER | {"reference": ["1/3", "-2", "1,000", "50%", "3.5e3", ".5"]}, None),
        (NUMBER | {"kind": "yes-no", "reference": "Yes"}, ("yes",)),
        (NUMBER | {"kind": "true-false", "reference": "FALSE"}, ("false",)),
        (NUMBER | {"kind": "name", "reference": ["Ann", "Anna"]}, ("Ann", "Anna")),
        ({"id": "o", "text": "Why?", "kind": "open"}, ()),
        ({"id": "o", "text": "Why?", "kind": "open", "reference": None}, ()),
        ({"id": 7, "text": "Why?", "kind": "open", "reference": "So."}, ("So.",)),
    ],
)
def test_references_take_the_form_that_is_compared(
    row: dict[str, object] | str, reference: tuple[str, ...] | None, tmp_path: Path
) -> None:
    found = one(tmp_path, row).reference
    assert found == reference if reference is not None else len(found) == 6


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (NUMBER | {"kind": "numbr"}, "unknown kind 'numbr'; did you mean 'number'?"),
        (NUMBER | {"referense": "4"}, "unknown key 'referense'; did you mean 'reference'?"),
        ({"text": "?", "kind": "open"}, "no id"),
        ({"id": "", "text": "?", "kind": "open"}, "no id"),
        ({"id": "x", "text": "?"}, "no kind; use one of: choice, number"),
        ({"id": "x", "kind": "open"}, "neither audio nor text"),
        ({"id": "x", "kind": "open", "text": "?", "audio": "a.wav"}, "both audio and text"),
        ({"id": ["x"], "kind": "open", "text": "?"}, "id is not text"),
        (NUMBER | {"reference": None}, "no reference"),
        (NUMBER | {"reference": []}, "no reference"),
        (NUMBER | {"reference": ""}, "empty entry"),
        (NUMBER | {"reference": "four"}, "reference 'four' of a number item"),
        (NUMBER | {"reference": "."}, "reference '.' of a number item"),
        (NUMBER | {"reference": {"a": 1}}, "reference is not text"),
        (NUMBER | {"kind": "yes-no", "reference": "maybe"}, "give yes or no"),
        (NUMBER | {"kind": "true-false", "reference": True}, 'write "true"'),
        (NUMBER | {"options": ["1", "2"]}, "options of a number item"),
        (CHOICE | {"reference": "C"}, "reference 'C' is none of the options"),
        (CHOICE | {"reference": "green"}, "give a label from A to B"),
        (CHOICE | {"options": ["red"], "reference": "A"}, "1 options; a choice has 2 to 26"),
        (CHOICE | {"options": [], "reference": "A"}, "0 options"),
        (CHOICE | {"options": [str(n) for n in range(27)], "reference": "A"}, "27 options"),
        (CHOICE | {"options": ["red", "Red"], "reference": "A"}, "two options are the same"),
        (CHOICE | {"options": "red", "reference": "A"}, "options is no list"),
        (CHOICE | {"options": ["B", "A"], "reference": "A"}, "the label of one option and the"),
        (NUMBER | {"groups": "STEM"}, "groups is no list"),
        (NUMBER | {"language": "English"}, "language 'English'"),
        (NUMBER | {"first": "yes"}, "first is 'yes'; write true or false"),
        (CHOICE | {"audio": "../../etc/passwd", "reference": "A"}, "leaves the suite's folder"),
        (CHOICE | {"audio": "a/../../x.wav", "reference": "A"}, "leaves the suite's folder"),
        (CHOICE | {"audio": "/etc/passwd", "reference": "A"}, "leaves the suite's folder"),
        (CHOICE | {"audio": "a\0.wav", "reference": "A"}, "leaves the suite's folder"),
        ('{"id": "x", "text": "\\ud83d", "kind": "open"}', "lone surrogate"),
        ('{"id": "x", "id": "y", "text": "?", "kind": "open"}', "key 'id' occurs twice"),
        ("[1, 2]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        (" " * (2 << 20), "a line over 1048576 bytes"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_wrong_line_is_named_with_what_to_do(
    row: dict[str, object] | str, found: str, tmp_path: Path
) -> None:
    path = written(tmp_path, NUMBER | {"id": "fine"}, row)
    with pytest.raises(UserError) as caught:
        jsonl.read_items(path, "s")
    assert caught.value.place.startswith(f"{path}:2")
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_audio_inside_the_folder_may_be_reached_by_any_path(tmp_path: Path) -> None:
    item = one(tmp_path, CHOICE | {"audio": "./clips/../deep/a.wav", "reference": "A"})
    assert item.files() == (tmp_path / "deep" / "a.wav",)


def test_the_same_id_twice_names_both_lines(tmp_path: Path) -> None:
    path = written(tmp_path, NUMBER, "", NUMBER)
    with pytest.raises(UserError, match="id 'n' is already on line 1") as caught:
        jsonl.read_items(path, "s")
    assert caught.value.place == f"{path}:3"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf%s\n%s\n",
        b"%s\r\n\r\n%s\r\n",
        b"\n\n  \n%s\n\t\n%s",
    ],
    ids=["byte-order mark", "CRLF", "blank lines and no last line end"],
)
def test_a_file_from_any_editor_is_read(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    rows = [json.dumps(NUMBER | {"id": name}).encode() for name in "ab"]
    path.write_bytes(data % tuple(rows))
    assert [item.item for item in jsonl.read_items(path, "s")] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "place", "found"),
    [
        (b'{"id": "q7", "tex', ":1:14", "the last line is torn"),
        (b'{"id": "q7", "tex\n', ":1:14", "not JSON"),
        (b'{"id": 1}{"id": 2}\n', ":1:10", "not JSON (Extra data)"),
        (b'\xff\xfe{\0"\0', ":1", "the file is UTF-16"),
        (b'{"id": "\xe4"}\n', ":1:9", "not UTF-8"),
    ],
)
def test_broken_json_is_named_by_line_and_column(
    data: bytes, place: str, found: str, tmp_path: Path
) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_bytes(data)
    with pytest.raises(UserError) as caught:
        jsonl.read_items(path, "s")
    assert caught.value.place == f"{path}{place}"
    assert found in caught.value.found


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            jsonl.read_items(path, "s")


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({}, "no path"),
        ({"path": "suite.jsonl", "gap_ms": -1}, "gap_ms is -1"),
        ({"path": "suite.jsonl", "gap_ms": True}, "gap_ms is True"),
        ({"path": "suite.jsonl", "gap_ms": float("nan")}, "gap_ms is nan"),
        ({"path": "suite.jsonl", "vioce": "piper"}, "did you mean 'voice'"),
        ({"path": "suite.jsonl", "question_via": "text"}, "no question"),
    ],
)
def test_a_wrong_table_is_named(config: dict[str, object], found: str, tmp_path: Path) -> None:
    written(tmp_path, {"id": "o", "audio": "a.wav", "kind": "open"})
    with pytest.raises(UserError, match=found):
        catalog.load("jsonl", "mine", config, tmp_path)


def test_missing_audio_is_no_reason_not_to_load(tmp_path: Path) -> None:
    written(tmp_path, CHOICE | {"reference": "A"})
    suite = catalog.load("jsonl", "mine", {"path": "suite.jsonl"}, tmp_path)
    assert suite.items[0].files() == (tmp_path / "c.wav",)


@given(data=st.binary(max_size=300), ends=st.sampled_from([b"", b"\n"]))
def test_any_bytes_give_items_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, ends: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(json.dumps(NUMBER).encode() + ends + data)
    problem = ""
    items: list[Item] = []
    try:
        items = jsonl.read_items(path, "s")
    except UserError as error:
        problem = str(error)
    assert "\n" not in problem
    assert items or problem


def test_the_example_of_the_manual_is_a_suite(tmp_path: Path) -> None:
    manual = Path(__file__).parent.parent / "docs" / "suites.md"
    example = manual.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    path = tmp_path / "questions.jsonl"
    path.write_text(example, encoding="utf-8")
    items = jsonl.read_items(path, "mine")
    assert [item.kind for item in items] == ["number", "choice", "choice", "name"]
    assert items[1].cluster == items[2].cluster == "red"


def test_open_questions_take_the_suites_rubric_and_others_only_their_own(tmp_path: Path) -> None:
    rows = [
        {"id": "free", "text": "Why?", "kind": "open"},
        {"id": "own", "text": "How?", "kind": "open", "rubric": "mine"},
        NUMBER,
        NUMBER | {"id": "judged", "rubric": "bba"},
    ]
    table = {"kind": "jsonl", "path": written(tmp_path, *rows).name, "rubric": "adu"}
    suite = jsonl.load("s", table, tmp_path)
    assert [item.rubric for item in suite.items] == ["adu", "mine", "", "bba"]
    assert suite.items[0].row()["rubric"] == "adu"


def test_the_manual_names_every_key() -> None:
    manual = (Path(__file__).parent.parent / "docs" / "suites.md").read_text(encoding="utf-8")
    for key in jsonl.KEYS:
        assert f"`{key}`" in manual

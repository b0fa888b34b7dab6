"""VoxEval as a download has it: subjects, rows, settings, worked examples, and what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voxeval_world import Download, question_row, rows, small

from voxmeter.client import clips
from voxmeter.client.speakers import Speaker
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites import catalog
from voxmeter.suites.suite import Recording, Suite
from voxmeter.suites.voxeval_layout import SETTINGS, read_table
from voxmeter.suites.voxeval_subjects import (
    GROUP_OF,
    HUMANITIES,
    OTHER,
    PUBLISHED_COUNTS,
    SOCIAL,
    STEM,
    count_warning,
)


def load(root: Path, **config: Any) -> Suite:
    return catalog.load("voxeval", "vox", {"kind": "voxeval", "path": str(root)} | config, Path())


def refused(root: Path, **config: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(root, **config)
    return str(caught.value)


def no_voice(name: str) -> Speaker:
    pytest.fail(f"nothing is spoken here, not even by {name}")


def files(suite: Suite, condition: str = "clean") -> list[str]:
    """Where each item's question lies, from the folder of settings."""
    found = []
    for item in suite.items:
        (part,) = suite.asked(item, condition).recipe
        assert isinstance(part, Recording)
        found.append("/".join(part.path.parts[-3:]))
    return found


def test_every_row_of_every_table_is_an_item_with_its_own_recording(tmp_path: Path) -> None:
    suite = load(small(tmp_path).write())
    assert [item.item for item in suite.items] == [
        *(f"college_physics-{n:04d}" for n in range(4)),
        *(f"elementary_mathematics-{n:04d}" for n in range(4)),
        *(f"virology-{n:04d}" for n in range(2)),
    ]
    assert files(suite)[3:5] == [
        "alloy/college_physics_test/00000003_question.mp3",
        "alloy/elementary_mathematics_4o/00000000_question.mp3",
    ]
    item = suite.items[1]
    assert (item.kind, item.reference, item.question) == ("choice", ("D",), rows("x")[1][0])
    assert item.options == tuple(question_row("college_physics", 1, "D")[1:5])
    assert (item.groups, item.cluster) == ((STEM, "college_physics"), "college_physics/1")
    assert item.shots == ()
    assert item.keep_last_ms is None
    assert suite.items[-1].groups == (OTHER, "virology")


def test_the_same_question_in_every_setting_is_one_item_of_one_cluster(tmp_path: Path) -> None:
    suite = load(small(tmp_path).write(), conditions=("clean", "nova"), few_shot=1)
    assert suite.conditions == ("nova",)
    item = suite.items[4]
    asked = suite.asked(item, "nova")
    assert (asked.item, asked.cluster, asked.reference) == (item.item, item.cluster, item.reference)
    assert files(suite, "nova")[4] == "nova/elementary_mathematics_4o/00000000_question.mp3"
    (shot,) = asked.shots
    assert shot.question == (
        Recording(
            tmp_path / "all_fewshot_examples/nova/elementary_mathematics_4o/00000000_question.mp3"
        ),
    )


def test_another_setting_may_be_the_clean_one(tmp_path: Path) -> None:
    suite = load(small(tmp_path).write(), speaker="nova", conditions=("clean", "alloy"))
    assert files(suite)[0].startswith("nova/")
    assert files(suite, "alloy")[0].startswith("alloy/")
    assert suite.conditions == ("alloy",)
    assert '"nova" is the setting that is asked as "clean"' in refused(
        tmp_path, speaker="nova", conditions=("nova",)
    )


def test_a_setting_that_is_not_in_the_download_is_one_line(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    line = refused(root, conditions=("clean", "alloy_noise"))
    assert 'setting "alloy_noise" is not in the download' in line
    assert line.endswith("download it, or use one of: alloy, nova")
    assert "unknown speaker" in refused(root, speaker="alloyy")


def test_a_folder_that_is_no_download_says_which_folder_is_wanted(tmp_path: Path) -> None:
    assert "the one that holds test/ and all_fewshot_examples/" in refused(tmp_path / "nowhere")
    (tmp_path / "test").mkdir()
    assert "no table in" in refused(tmp_path)
    small(tmp_path, settings=()).write()
    assert refused(tmp_path).endswith("download the folders of recordings as well")
    with pytest.raises(UserError, match="unknown key 'speeker'"):
        load(tmp_path, speeker="nova")


def test_examples_and_question_are_joined_by_a_second_and_the_end_is_kept(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    example, answer, question = (80 + ms for ms in (300, 200, 400))

    def length(**config: Any) -> float:
        return clips.render(load(root, **config).items[0], no_voice).ms

    whole = 5 * (example + 1000 + answer + 1000) + question
    assert length(few_shot=0) == pytest.approx(question, abs=1)
    assert length(few_shot=5) == pytest.approx(whole, abs=2)
    assert length(few_shot=5, keep_last_ms=2000) == pytest.approx(2000, abs=1)
    assert length(few_shot=5, keep_last_ms=0) == pytest.approx(whole, abs=2)
    assert length(few_shot=5, few_shot_via="history") == pytest.approx(question, abs=1)


def test_80_seconds_of_examples_and_question_are_kept_at_the_end(tmp_path: Path) -> None:
    suite = load(small(tmp_path, lengths={"example": 20_000}).write(), few_shot=5)
    clip = clips.render(suite.items[0], no_voice)
    question = clips.render(load(tmp_path).items[0], no_voice)
    assert clip.ms == 80_000
    tail = clip.pcm.samples[-len(question.pcm.samples) :]
    assert (tail == question.pcm.samples).all()


def test_chains_of_thought_are_asked_in_mathematics_alone(tmp_path: Path) -> None:
    suite = load(small(tmp_path, chains=3).write(), prompt_mode="cot", conditions=("clean", "nova"))
    assert {item.groups[1] for item in suite.items} == {"elementary_mathematics"}
    (first, _, third) = suite.asked(suite.items[0], "nova").shots
    folder = tmp_path / "math_CoT_fewshot" / "nova" / "elementary_mathematics_dev_4o"
    assert first.answer == (Recording(folder / "00000000_CoT_answer.mp3"),)
    assert third.question == (Recording(folder / "00000002_question.mp3"),)
    assert suite.warnings == ()
    assert "write 3 or less" in refused(tmp_path, prompt_mode="cot", few_shot=4)
    assert len(load(tmp_path, prompt_mode="cot", few_shot=2).items[0].shots) == 2


def test_without_mathematics_there_is_nothing_to_think_through(tmp_path: Path) -> None:
    root = Download(tmp_path, {"virology_test": rows("virology")}).write()
    assert "no table of mathematics is there" in refused(root, prompt_mode="cot")


def test_more_examples_than_there_are_are_refused(tmp_path: Path) -> None:
    assert "has 5 worked examples a subject" in refused(small(tmp_path).write(), few_shot=6)


def test_examples_that_are_missing_stop_the_load_and_name_one(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    gone = root / "all_fewshot_examples" / "alloy" / "virology_val" / "00000001_answer.mp3"
    gone.write_bytes(b"")
    line = refused(root, few_shot=2)
    assert f"1 recordings of worked examples are missing or empty, such as {gone}" in line
    assert load(root, few_shot=1).items


def test_a_disturbed_setting_without_examples_of_its_own_borrows_those_of_its_voice(
    tmp_path: Path,
) -> None:
    world = small(tmp_path, settings=("alloy", "alloy_pitch"), example_settings=("alloy",))
    suite = load(world.write(), few_shot=1, conditions=("clean", "alloy_pitch"))
    (shot,) = suite.asked(suite.items[0], "alloy_pitch").shots
    assert shot.question == suite.items[0].shots[0].question
    assert any("alloy_pitch has no worked examples of its own" in one for one in suite.warnings)


def test_tables_beside_the_examples_tell_what_their_answers_say(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    world = Download(tmp_path / "other", {"virology_val": rows("virology", 5)}, settings=())
    table = world.write() / "test" / "virology_val.csv"
    table.rename(root / "all_fewshot_examples" / "virology_val.csv")
    suite = load(root, few_shot=5)
    said = [shot.answer_text for shot in suite.items[-1].shots]
    assert said == [f"The correct answer is {letter}." for letter in "BDACB"]
    assert [shot.answer_text for shot in suite.items[0].shots] == [""] * 5


def test_rows_that_cannot_be_asked_are_left_out_and_told(tmp_path: Path) -> None:
    table = [
        question_row("virology", 0, " b"),
        question_row("virology", 1, "E"),
        ["Only a question"],
        question_row("virology", 3, "C"),
    ]
    suite = load(Download(tmp_path, {"virology_test": table}).write())
    assert [(item.item, item.reference) for item in suite.items] == [
        ("virology-0000", ("B",)),
        ("virology-0003", ("C",)),
    ]
    assert files(suite)[1].endswith("00000003_question.mp3")
    (left_out,) = [one for one in suite.warnings if "left out" in one]
    assert left_out == (
        "2 rows cannot be asked and are left out: "
        "virology_test.csv row 1: answer 'E' is none of A to D"
    )


def test_recordings_that_are_missing_empty_or_too_many_are_counted(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    folder = root / "test" / "nova" / "college_physics_test"
    (folder / "00000001_question.mp3").unlink()
    (folder / "00000002_question.mp3").write_bytes(b"")
    (folder / "00000009_question.mp3").write_bytes(b"x")
    assert not any("nova" in one for one in load(root).warnings)
    suite = load(root, conditions=("clean", "nova"))
    assert len(suite.items) == 10
    told = [one for one in suite.warnings if one.startswith("nova")]
    assert told[0].startswith("nova: 2 recordings are missing or empty, such as ")
    assert told[0].endswith(
        "college_physics_test/00000001_question.mp3; those questions end as bad_clip"
    )
    assert told[1] == (
        "nova: a recording is of no row of their table, such as "
        "college_physics_test/00000009_question.mp3; they are not asked"
    )
    for number in (1, 2):
        with pytest.raises(ClipError):
            clips.render(suite.asked(suite.items[number], "nova"), no_voice)


def test_a_setting_that_lacks_a_whole_subject_says_how_many_recordings_that_is(
    tmp_path: Path,
) -> None:
    root = small(tmp_path).write()
    shutil.rmtree(root / "test" / "nova" / "college_physics_test")
    (told,) = [one for one in load(root, conditions=("nova",)).warnings if one.startswith("nova")]
    assert told.startswith("nova: 4 recordings are missing or empty, such as ")


def test_a_subject_that_mmlu_does_not_have_is_asked_in_a_group_of_its_own(tmp_path: Path) -> None:
    tables = {"virolgy_test": rows("v", 2), "notes": rows("n", 1)}
    suite = load(Download(tmp_path, tables).write())
    assert {item.groups for item in suite.items} == {("unknown", "virolgy"), ("unknown", "notes")}
    assert (
        "virolgy_test.csv is no subject of MMLU (did you mean 'virology'?): "
        'its group is "unknown"' in suite.warnings
    )


def test_of_two_tables_of_a_subject_the_one_for_speech_is_asked(tmp_path: Path) -> None:
    name = "elementary_mathematics"
    tables = {f"{name}_test": rows(name, 3), f"{name}_4o": rows(name, 2)}
    suite = load(Download(tmp_path, tables).write())
    assert len(suite.items) == 2
    assert suite.warnings[0] == (
        f"{name} has {name}_4o.csv and {name}_test.csv: {name}_4o is asked, the other is not"
    )


def test_files_that_a_system_leaves_behind_are_no_tables(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    (root / "test" / "._virology_test.csv").write_bytes(b"\0\0")
    assert len(load(root).items) == 10


def test_a_table_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    root = small(tmp_path).write()
    (root / "test" / "virology_test.csv").write_bytes(b"\xff\xfe\0")
    assert refused(root).endswith("download it again")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_error(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("table") / "x_test.csv"
    path.write_bytes(data)
    try:
        table = read_table(path)
    except UserError:
        return
    assert all(row.answer in "ABCD" and len(row.options) == 4 for row in table.rows)


def test_questions_of_several_lines_and_blank_lines_keep_the_count(tmp_path: Path) -> None:
    path = tmp_path / "x_test.csv"
    path.write_text(
        '\ufeff"First,\nin two lines",a,b,c,d,A\n\n"Sec ""ond""",a,b,c,d,B,more\n', encoding="utf-8"
    )
    found = read_table(path).rows
    assert [(row.number, row.question, row.answer) for row in found] == [
        (0, "First,\nin two lines", "A"),
        (1, 'Sec "ond"', "B"),
    ]


def test_the_map_of_subjects_is_mmlus_and_one_of_the_others_is_not_in_voxeval() -> None:
    sizes = {group: list(GROUP_OF.values()).count(group) for group in PUBLISHED_COUNTS}
    assert sizes == {STEM: 18, SOCIAL: 12, HUMANITIES: 13, OTHER: 14}
    assert count_warning(name for name in GROUP_OF if name != "management") is None
    told = count_warning(GROUP_OF)
    assert told is not None
    assert told.startswith("18 STEM, 12 social sciences, 13 humanities, 14 other subjects here")


def test_the_eleven_settings_are_the_benchmarks_own() -> None:
    assert len(SETTINGS) == 11
    assert [name for name in SETTINGS if "_" in name] == [
        "alloy_noise",
        "alloy_pitch",
        "alloy_tempo",
        "alloy_env_acoustics",
        "alloy_linguistic_variation",
    ]

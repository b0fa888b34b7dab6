"""What `verify` finds in a download of VoxEval."""

from __future__ import annotations

from pathlib import Path

import pytest
from voxeval_world import Download, rows

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.voxeval_check import verify
from voxmeter.suites.voxeval_layout import SETTINGS
from voxmeter.suites.voxeval_subjects import GROUP_OF, MATHS

SUBJECTS = [name for name in GROUP_OF if name != "management"]
TABLES = {f"{name}_{'4o' if name in MATHS else 'test'}": rows(name, 1) for name in SUBJECTS}


def whole(root: Path) -> Path:
    """A download as it should be, of one question a subject."""
    return Download(root, TABLES, settings=SETTINGS, chains=3).write()


def test_a_whole_download_has_no_problem(tmp_path: Path) -> None:
    assert list(verify(whole(tmp_path))) == []


def test_each_problem_is_one_line(tmp_path: Path) -> None:
    root = whole(tmp_path)
    (root / "test" / "virology_test.csv").write_text('"q",a,b,c,d,X\n', encoding="utf-8")
    (root / "test" / "anatomy_test.csv").write_bytes(b"\xff\xfe")
    law = root / "test" / "nova" / "professional_law_test"
    (law / "00000000_question.mp3").write_bytes(b"")
    (law / "00000001_question.mp3").write_bytes(b"x")
    (root / "test" / "onyx" / "nutrition_test" / "00000000_question.mp3").unlink()
    chain = root / "math_CoT_fewshot" / "echo" / "college_mathematics_dev_4o"
    (chain / "00000002_CoT_answer.mp3").unlink()
    found = list(verify(root))
    assert found == [
        f"{root}/test/anatomy_test.csv: cannot be read ('utf-8' codec can't decode byte 0xff in "
        "position 0: invalid start byte); download it again",
        "virology_test.csv row 0: answer 'X' is none of A to D",
        "math_CoT_fewshot/echo/college_mathematics_dev_4o/00000002_CoT_answer.mp3 is missing or "
        "empty",
        "test/nova/professional_law_test/00000000_question.mp3 is empty",
        "test/nova/professional_law_test/00000001_question.mp3 is of no row of "
        "professional_law_test.csv",
        "test/onyx/nutrition_test/00000000_question.mp3 is missing",
    ]


def test_settings_and_examples_that_are_not_there_are_told_once(tmp_path: Path) -> None:
    root = Download(
        tmp_path, TABLES, settings=("alloy", "alloy_noise"), example_settings=()
    ).write()
    found = list(verify(root))
    assert [one for one in found if "is not in the download" in one] == [
        f'note: setting "{one}" is not in the download: no folder test/{one}'
        for one in SETTINGS
        if one not in {"alloy", "alloy_noise"}
    ]
    assert [one for one in found if "worked examples" in one] == [
        "note: no folder all_fewshot_examples/alloy: alloy has no worked examples of its own",
        "note: no folder math_CoT_fewshot/alloy: alloy has no worked examples of its own",
    ]


def test_many_problems_of_one_sort_are_counted(tmp_path: Path) -> None:
    tables = {"virology_test": rows("virology", 9), "virolgy_test": rows("x", 1)}
    root = Download(tmp_path, tables, settings=("alloy",)).write()
    for path in (root / "test" / "alloy" / "virology_test").glob("*_question.mp3"):
        path.unlink()
    found = list(verify(root))
    assert 'virolgy_test.csv is no subject of MMLU: its group is "unknown"' in found
    assert len([one for one in found if one.endswith("_question.mp3 is missing")]) == 5
    assert "… and 4 more like it" in found
    assert any("subjects here, and 18 STEM" in one for one in found)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the folder of the download"):
        list(verify(tmp_path))

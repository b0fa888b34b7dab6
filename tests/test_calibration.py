"""The last calibration of a machine: kept, found again, told."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from voxmeter.client.calibrate import CASES, Calibration, Error
from voxmeter.client.calibration import few_for_compare, keep, last, lines
from voxmeter.endpoints.errors import UserError


def error(mark: str = "first_packet_ms", p50: float = 0.2, p99: float = 1.5) -> Error:
    return Error(1, mark, 36, p50, p99, p99 + 1)


def calibration(*errors: Error, invalid: int = 0, failed: int = 0) -> Calibration:
    case = {"lead_ms": 0, "pacing": "burst", "trail_ms": 0}
    return Calibration(errors or (error(),), (case,), invalid, failed, 20.5)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "voxmeter"


def test_what_was_kept_is_found_again(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    written = keep(calibration(), tmp_path / "out")
    found = last()
    assert found is not None
    assert dict(found) == json.loads(json.dumps(written))
    assert found["good"] is True
    assert found["errors"][0]["p50_ms"] == 0.2
    assert json.loads((tmp_path / "out" / "calibration.json").read_text()) == found
    assert {"measured_at", "machine", "packages", "load_average"} <= found.keys()


def test_without_one_there_is_none() -> None:
    assert last() is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"machine": {"host": "elsewhere"}}', "{}", '{"machine": 3}']
)
def test_one_that_is_damaged_or_from_another_machine_is_none(text: str, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "calibration.json").write_text(text)
    assert last() is None


def test_bytes_that_are_no_text_are_none(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "calibration.json").write_bytes(b"\xff\xfe\x00{")
    assert last() is None


def test_a_cache_that_cannot_be_made_costs_a_warning_and_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert keep(calibration(), tmp_path)["good"] is True
    assert (tmp_path / "calibration.json").is_file()
    told = capsys.readouterr().err
    assert told.startswith("voxmeter: warning: not kept for reports: ")
    assert told.count("\n") == 1


def test_a_folder_of_the_users_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        keep(calibration(), tmp_path / "nowhere")


def test_a_good_one_says_so_with_its_figures() -> None:
    text = "\n".join(lines(calibration(error(p50=-0.31, p99=2.5))))
    assert "-0.31 ms" in text
    assert "2.50 ms" in text
    assert "This machine can measure" in text
    assert "left out: none" in text


@pytest.mark.parametrize(
    "one", [error(p50=1.01), error(p50=-1.01), error(p99=5.01), error("first_audible_ms", p50=3)]
)
def test_one_mark_that_is_too_far_off_is_not_good(one: Error) -> None:
    found = calibration(error(), one)
    assert not found.good
    assert "stop what else is running" in "\n".join(lines(found))


def test_nothing_measured_is_not_good() -> None:
    assert not Calibration((), (), 0, 24, 1.0).good


@pytest.mark.parametrize(
    "lost",
    [
        calibration(invalid=30, failed=7),  # of 36 + 37
        replace(calibration(), sessions=(1, 50)),  # nothing of 50 is left
        Calibration((), (), 24, 0, 1.0, sessions=(1,)),
    ],
)
def test_a_machine_that_was_late_in_most_trials_is_not_called_good(lost: Calibration) -> None:
    assert lost.lost
    assert not lost.good
    text = "\n".join(lines(lost))
    assert "Most trials were left out" in text
    assert "can measure" not in text
    assert calibration(invalid=30, failed=6).good


def test_too_few_cases_for_a_comparison_are_told() -> None:
    by_case = tuple(
        asdict(case) | {"sessions": number, "mark": mark}
        for number, count in ((1, 5), (50, 6))
        for case in CASES[:count]
        for mark in ("first_packet_ms", "first_audible_ms")
    )
    found = replace(calibration(), by_case=by_case, sessions=(1, 50))
    (line,) = few_for_compare(found)
    assert line.startswith(
        "with 1 session at a time 5 cases could be measured, and 6 are the least"
    )
    (lost,) = few_for_compare(replace(found, sessions=(50, 200)))
    assert "with 200 sessions at a time 0 cases" in lost


def test_what_was_left_out_is_counted() -> None:
    text = "\n".join(lines(calibration(invalid=2, failed=3)))
    assert "left out: 2 thrown out as late, 3 failed" in text


def test_a_home_that_is_not_known_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without an entry
    assert last() is None

"""The client's own error against known delays: the arithmetic by hand, the measurement for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxmeter.client.audio import to_pcm16
from voxmeter.client.calibrate import (
    CASES,
    Budget,
    Calibration,
    Case,
    calibrate,
    compare,
    folder_for,
)
from voxmeter.client.capture import Utterance
from voxmeter.client.cli import main
from voxmeter.client.commands import calibrate as command
from voxmeter.client.servers.voice import babble

MS = 1_000_000
USER_END = 5_000 * MS
BURST = {"lead_ms": 0, "pacing": "burst", "trail_ms": 0}
LEAD = {"lead_ms": 500, "pacing": "realtime", "trail_ms": 600}


def row(tag: str, packet: float | None, audible: float | None = None, **fields: Any) -> Any:
    """A trial row whose marks were measured as said."""
    known = {
        "session_tag": tag,
        "status": "ok",
        "latency": {"first_packet_ms": packet, "first_audible_ms": audible},
        "audit": {"latency_valid": True},
        "sessions": 1,
        "case": BURST,
    }
    return known | fields


def truth(*tags: str, packet: float = 300, audible: float | None = 500) -> dict[str, Any]:
    """Truth lines that say 300 ms and 500 ms."""
    line = {
        "user_end_ns": USER_END,
        "first_packet_ns": USER_END + int(packet * MS),
        "first_audible_ns": None if audible is None else USER_END + int(audible * MS),
    }
    return {tag: {"tag": tag, **line} for tag in tags}


def test_an_error_is_measured_minus_true() -> None:
    rows = [row("a", 300.5, 499.75), row("b", 301.5, 500.25), row("c", 299.0, 503.0)]
    found = compare(rows, truth("a", "b", "c"), 1.5)
    packet, audible = found.errors
    assert (packet.mark, packet.n) == ("first_packet_ms", 3)
    assert (packet.p50_ms, packet.p99_abs_ms, packet.max_abs_ms) == (0.5, 1.5, 1.5)
    assert (audible.mark, audible.n) == ("first_audible_ms", 3)
    assert (audible.p50_ms, audible.p99_abs_ms, audible.max_abs_ms) == (0.25, 3.0, 3.0)
    assert (found.invalid, found.failed, found.seconds) == (0, 0, 1.5)
    assert found.good


def test_the_99th_percentile_is_a_value_that_was_measured() -> None:
    rows = [row(f"t{n}", 300.0 + n / 100) for n in range(200)]
    (packet,) = compare(rows, truth(*(f"t{n}" for n in range(200))), 1).errors
    assert packet.p99_abs_ms == 1.98
    assert packet.max_abs_ms == 1.99


def test_errors_of_opposite_sign_do_not_hide_each_other() -> None:
    rows = [row("a", 290.0), row("b", 310.0)]
    found = compare(rows, truth("a", "b"), 1)
    assert found.errors[0].p50_ms == 0
    assert found.errors[0].p99_abs_ms == 10
    assert not found.good


def test_numbers_of_sessions_are_told_apart_in_the_order_they_were_measured() -> None:
    rows = [row("a", 301.0, sessions=50), row("b", 303.0, sessions=1)]
    found = compare(rows, truth("a", "b"), 1)
    assert [(error.sessions, error.p50_ms) for error in found.errors] == [(50, 1.0), (1, 3.0)]
    assert found.sessions == (50, 1)


def test_every_case_has_its_own_errors_too() -> None:
    rows = [row("a", 301.0), row("b", 302.0, case=LEAD), row("c", 304.0, case=LEAD)]
    found = compare(rows, truth("a", "b", "c"), 1)
    assert [(one["lead_ms"], one["n"], one["p50_ms"]) for one in found.by_case] == [
        (0, 1, 1.0),
        (500, 2, 3.0),
    ]
    assert found.errors[0].n == 3


def test_what_failed_or_was_late_is_counted_and_left_out() -> None:
    rows = [
        row("a", 300.0),
        row("b", 900.0, audit={"latency_valid": False}),
        row("c", None, status="disconnected", audit={}),
        row("unknown to the truth", 900.0),
    ]
    found = compare(rows, truth("a", "b", "c"), 1)
    assert (found.errors[0].n, found.errors[0].max_abs_ms) == (1, 0.0)
    assert (found.invalid, found.failed) == (1, 2)
    assert found.lost


def test_what_either_side_does_not_know_is_no_error_of_zero() -> None:
    found = compare([row("a", 301.0, None)], truth("a"), 1)
    assert [error.mark for error in found.errors] == ["first_packet_ms"]
    found = compare([row("a", 301.0, 400.0)], truth("a", audible=None), 1)
    assert [error.mark for error in found.errors] == ["first_packet_ms"]


def test_nothing_measured_is_not_good() -> None:
    found = compare([], {}, 1)
    assert (found.errors, found.by_case) == ((), ())
    assert not found.good


def test_the_cases_are_those_that_are_promised() -> None:
    assert {case.lead_ms for case in CASES} == {0, 200, 500}
    assert {case.pacing for case in CASES} == {"burst", "realtime"}
    assert {case.trail_ms for case in CASES} == {0, 600}
    assert len(set(CASES)) == 12
    assert isinstance(CASES[0], Case)


def test_seconds_and_trials_both_hold_and_the_default_is_what_the_help_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command.budget_of(None, None, [1, 50]) == Budget()
    assert command.budget_of(4, None, [1, 50]) == Budget(4)
    assert command.budget_of(4, 40, [1, 50]) == Budget(4, 10.0, 30.0)
    timed = command.budget_of(None, 40, [1, 50])
    assert timed.window_s(1) == 30
    assert timed.trials > 1000
    assert main(["calibrate", "--help"]) == 0
    assert f"(default {Budget().trials};" in capsys.readouterr().out


def test_one_session_at_a_time_gets_most_of_the_seconds_and_all_of_them_are_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    budgets: list[Budget] = []

    def measured(*_: object, budget: Budget, **__: object) -> Calibration:
        budgets.append(budget)
        return Calibration((), (), 0, 0, 1.0, sessions=(1, 50))

    monkeypatch.setattr("voxmeter.client.calibrate.calibrate", measured)
    told = []
    for words in (["--seconds", "10"], ["--seconds", "10", "--sessions", "50"], ["--trials", "3"]):
        assert main(["calibrate", *words]) == 3
        told.append(capsys.readouterr().out.splitlines()[0])
    assert [budgets[0].window_s(number) for number in (1, 50)] == [7.5, 2.5]
    assert [one.window_s(50) for one in budgets] == [2.5, 10, None]
    assert "trials begin for 10 s, and with start and end it takes about 33 s" in told[0]
    assert "trials begin for 10 s, and with start and end it takes about 28 s" in told[1]
    assert "about" not in told[2]


def test_a_real_metronome_is_measured_and_its_files_are_kept(tmp_path: Path) -> None:
    speech = babble(24_000, 0.2)
    asked = Utterance(to_pcm16(speech), 24_000, 0, len(speech))
    budget = Budget(1, seconds=1.0)
    with folder_for(tmp_path, [1], budget) as folder:
        found = calibrate([asked], folder, sessions=[1], budget=budget)
        paths = [folder.attempt_paths(row) for row in folder.rows("trials")]
    place = folder.path
    assert (found.failed, len(found.errors)) == (0, 2 if found.invalid == 0 else len(found.errors))
    rows = [json.loads(line) for line in (place / "trials.jsonl").read_text().splitlines()]
    told = [json.loads(line) for line in (place / "truth.jsonl").read_text().splitlines()]
    assert {one["session_tag"] for one in rows} <= {one["tag"] for one in told}
    assert 1 <= len(rows) < 12
    for one, path in zip(rows, paths, strict=True):
        assert path.audio.is_file()
        assert path.events.is_file()
        assert np.isfinite(one["latency"]["first_audible_ms"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sessions", "0"], "is not a list of numbers"),
        (["--sessions", "1,x"], "is not a list of numbers"),
        (["--sessions", "501"], "at most 500"),
        (["--trials", "0"], "is too small"),
        (["--protocol", "nonsense"], "nonsense"),
        (["--seconds", "-3"], "is too small"),
        (["--seconds", "nan"], "is too small"),
        (["--out", "FILE"], "FILE"),
    ],
)
def test_options_that_cannot_be_are_one_line(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "FILE").write_text("a file where a folder should be")
    assert main(["calibrate", "--json", *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1

"""`report.md`: the client's own error, several runs side by side, rows that others wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sample_run import build, item, trial
from test_report import sample

from voxmeter.client.report import markdown_report, summarised, text_of


def section(text: str, heading: str) -> list[str]:
    """The lines of one part of a report."""
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()


def test_the_report_says_how_late_the_client_itself_was_and_by_which_clock(
    tmp_path: Path,
) -> None:
    rows = [trial("q0", first_audible_ms=400.0), trial("q1", latency_valid=False)]
    run = {"machine": {"clock": "a | clock"}}
    with build(tmp_path, [item("q0"), item("q1")], rows, [], [], run) as folder:
        shown = section("".join(markdown_report(folder, summarised(folder))), INSTRUMENT)
    assert "| send lateness, ms | 0.3 | 1.5 | 2 | how late audio left this machine |" in shown
    assert any("latency_valid` false): 1," in line for line in shown)
    assert any("perf_counter_ns" in line and "a \\| clock" in line for line in shown)
    assert any("none of this machine; `voxmeter calibrate`" in line for line in shown)


INSTRUMENT = "The instrument's own error"


@pytest.mark.parametrize(("good", "words"), [(True, "within its limits"), (False, "not within")])
def test_the_last_calibration_of_the_machine_stands_in_the_report(
    good: bool,
    words: str,
    tmp_path: Path,
) -> None:
    error = {"sessions": 50, "mark": "first_packet_ms", "n": 9, "p50_ms": 0.42, "p99_abs_ms": 1.5}
    found = {"measured_at": "2026-01-02", "good": good, "errors": [error, "damage"]}
    with build(tmp_path, [], [trial("q0")], [], [], {"calibration": found}) as folder:
        shown = section("".join(markdown_report(folder, summarised(folder))), INSTRUMENT)
    assert any("2026-01-02" in line and words in line for line in shown)
    assert "| 50 | first\\_packet\\_ms | 9 | 0.42 | 1.5 | - |" in shown


def test_several_runs_have_a_column_each(tmp_path: Path) -> None:
    other = [trial("q0", endpoint="new | bot", first_audible_ms=300.0, latency_kind="commit")]
    with (
        sample(tmp_path / "a") as one,
        sample(tmp_path / "b") as same,
        build(tmp_path / "c", [item("q0")], other, []) as third,
    ):
        shown = section("".join(text_of("md", [one, same, third])), "Runs side by side")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in shown if line.startswith("|")]
    assert {len(row) for row in rows} == {7}
    assert rows[0][:4] == [" endpoint ", " suite ", " condition ", " figure "]
    audible = [row for row in rows if "first audible p50" in row[3]]
    assert [cell.strip() for cell in audible[0][4:]] == ["500", "500", "-"]
    assert audible[1][0] == " new \\| bot "
    assert [cell.strip() for cell in audible[1][4:]] == ["-", "-", "300"]


def test_kinds_of_latency_that_differ_between_runs_are_told(tmp_path: Path) -> None:
    def made(kind: str) -> list[dict[str, object]]:
        return [trial("q0", first_audible_ms=300.0, latency_kind=kind)]

    with (
        build(tmp_path / "a", [], made("commit"), []) as one,
        build(tmp_path / "b", [], made("live"), []) as other,
    ):
        shown = section("".join(text_of("md", [one, other])), "Runs side by side")
    assert any("not to be compared" in line and "commit | live" in line for line in shown)


@pytest.mark.parametrize("text", ["a | b", "<script>x</script>", "\x1b[2J", "\ud800", "a\n| b |"])
def test_what_a_foreign_row_has_for_a_status_or_kind_stays_in_its_cell(
    text: str, tmp_path: Path
) -> None:
    rows = [trial("q0", latency_kind=text, first_audible_ms=400.0), trial("q1", status=text)]
    with build(tmp_path, [item("q0"), item("q1")], rows, []) as folder:
        shown = "".join(text_of("md", [folder]))
        csv = "".join(text_of("csv", [folder]))
    shown.encode()
    csv.encode()
    assert "<script" not in shown
    assert "\x1b" not in shown + csv
    for table in re.findall(r"(?:^\|.*\n)+", shown, flags=re.MULTILINE):
        counts = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1, table

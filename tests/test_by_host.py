"""A run of several machines says which latency is whose, and one that gave up says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser import chromium, opened
from sample_run import build, item, score, trial
from written_page import DRAWN

from voxmeter.client import report_html
from voxmeter.client.report_markdown import report
from voxmeter.client.summary import summarise

NAMES = [f"q{number}" for number in range(12)]


def summary_of(folder: Path, rows: list[dict[str, Any]]) -> Any:
    with build(folder, map(item, NAMES), rows, map(score, rows)) as made:
        return summarise(made)


def test_latencies_of_two_machines_stand_apart_beside_the_mixed_figure(tmp_path: Path) -> None:
    rows = [
        trial(
            name, host="a" if number % 3 else "b|c", first_audible_ms=500.0 if number % 3 else 900.0
        )
        for number, name in enumerate(NAMES)
    ]
    rows[0]["audit"]["latency_valid"] = False
    rows.append(trial("q0", number=0, host="only-warm"))
    summary = summary_of(tmp_path, rows)
    found = {row["host"]: row for row in summary["audit"]["by_host"]}
    assert sorted(found) == ["a", "b|c"]
    assert {host: row["trials"] for host, row in found.items()} == {"a": 8, "b|c": 4}
    assert {host: row["first_audible_ms"]["p50"]["value"] for host, row in found.items()} == {
        "a": 500,
        "b|c": 900,
    }
    assert found["b|c"]["latency_invalid"] == 1
    assert found["b|c"]["first_audible_ms"]["n"] == 3
    assert found["a"]["send_lateness_p99_ms"] == 1.5
    warned = {warning["code"]: warning for warning in summary["warnings"]}
    assert "compare latencies of one machine only" in warned["mixed-hosts"]["cure"]
    told = "\n".join(report(summary, {}, []))
    assert "## By machine" in told
    assert r"| b\|c | bot | demo | clean | 4 |" in told


def test_one_machine_is_told_once(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, [trial(name) for name in NAMES])
    assert summary["audit"]["by_host"] == []
    assert "By machine" not in "\n".join(report(summary, {}, []))
    assert "gave-up" not in {warning["code"] for warning in summary["warnings"]}


def test_an_endpoint_that_is_asked_no_more_is_a_warning_with_its_cure(tmp_path: Path) -> None:
    why = "25 failures in a row: nobody listens"
    rows = [trial("q0"), trial("q1", "disconnected", gave_up=why)]
    summary = summary_of(tmp_path, rows)
    (warning,) = [one for one in summary["warnings"] if one["code"] == "gave-up"]
    assert warning["text"] == f"bot was asked no more: {why}"
    assert "voxmeter run --resume RUN" in warning["cure"]
    assert why in "\n".join(report(summary, {}, []))
    rows.append(trial("q1", attempt=2))  # a resumed run asked it again
    made = summary_of(tmp_path / "resumed", rows)
    assert "gave-up" not in {one["code"] for one in made["warnings"]}


def test_a_wait_without_a_refusal_of_its_own_is_not_asked_again(tmp_path: Path) -> None:
    waited = [trial("q0", waited_s=7.0), trial("q1", waited_s=7.0, attempt=2)]
    summary = summary_of(tmp_path, waited)
    (warning,) = [one for one in summary["warnings"] if one["code"] == "asked-again"]
    assert warning["text"].startswith("bot on demo (clean): 1 trial of")


def test_the_page_shows_latencies_by_machine_and_names_are_no_markup(tmp_path: Path) -> None:
    hosts = ("a", "<b id=planted>b</b>")
    rows = [
        trial(name, host=hosts[number % 2], first_audible_ms=500.0 + 400 * (number % 2))
        for number, name in enumerate(NAMES)
    ]
    with (
        build(tmp_path, map(item, NAMES), rows, map(score, rows)) as made,
        chromium() as browser,
        opened(browser) as tab,
    ):
        page = report_html.write_page([made], [summarise(made)], tmp_path / "page.html")
        tab.open(page.as_uri(), DRAWN)
        text = tab.value("document.querySelector('#instrument').innerText")
        assert tab.value("document.querySelectorAll('#planted').length") == 0
        assert tab.problems == []
    assert "By machine" in text
    lines = [one for line in text.splitlines() if (one := line.split("\t"))[0] in hosts]
    assert [(one[0], one[4], one[5]) for one in lines] == [
        (hosts[1], "6", "900"),
        ("a", "6", "500"),
    ]

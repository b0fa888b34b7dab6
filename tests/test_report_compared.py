"""The page of a comparison: verdict, what moved, and each trial to be heard on both sides."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, chromium, opened
from playwright.sync_api import Browser
from sample_run import build, item, trial
from written_page import DRAWN

from voxmeter.client.commands import compare as compare_command
from voxmeter.client.commands import report as report_command
from voxmeter.endpoints.errors import UserError


def compare(*words: str) -> int:
    parser = argparse.ArgumentParser()
    compare_command.add_arguments(parser)
    return compare_command.run(parser.parse_args(list(words)))


def report(*words: str) -> int:
    parser = argparse.ArgumentParser()
    report_command.add_arguments(parser)
    return report_command.run(parser.parse_args(list(words)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened(browser) as found:
        yield found


def test_a_comparison_has_a_page_that_pairs_mapped_endpoints_and_leads_to_what_moved(
    tmp_path: Path, tab: Tab, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(name: str, slower: float) -> Path:
        rows = [
            trial(f"q{n}", endpoint=name, first_audible_ms=400.0 + n + slower * (1 + n % 3))
            for n in range(30)
        ]
        with build(tmp_path / name, [item(f"q{n}") for n in range(30)], rows, []) as folder:
            return folder.path

    page = tmp_path / "page.html"
    base, new = made("old", 0.0), made("new", 100.0)
    words = [str(base), str(new), "--map", "old=new", "--html", str(page)]
    assert compare(*words) == 1
    assert f"page: {page}" in capsys.readouterr().out
    tab.open(page.as_uri(), DRAWN)
    assert tab.value("document.querySelector('p.verdict').textContent") == "regression"
    assert "old → new" in tab.value("document.getElementById('results').textContent")
    first = "document.querySelector('#changes tbody tr')"
    cells = tab.value(f"[...{first}.children].map((cell) => cell.textContent)")
    assert cells[0] == "old → new"
    assert cells[8:] == ["+300", "base new"]  # a gate on latency failed: that comes first
    for link, endpoint in (("first", "old"), ("last", "new")):
        tab.value(f"{first}.querySelector('a:{link}-child').click()")
        tab.until(
            f"(document.querySelector('#trial h2') || {{}}).textContent.includes('{endpoint}')"
        )
        tab.page.keyboard.press("Escape")
    assert tab.problems == []


def test_two_endpoints_of_one_run_are_compared_on_one_page(tmp_path: Path, tab: Tab) -> None:
    rows = [
        trial(f"q{n}", endpoint=name, first_audible_ms=400.0 + n + more * n)
        for name, more in (("slow", 9), ("quick", 0))
        for n in range(20)
    ]
    with build(tmp_path, [item(f"q{n}") for n in range(20)], rows, []) as folder:
        run = str(folder.path)
    page = tmp_path / "page.html"
    assert compare(run, run, "--map", "slow=quick", "--html", str(page)) == 0
    tab.open(page.as_uri(), DRAWN)
    cells = "[...document.querySelector('#changes tbody tr').children].map((c) => c.textContent)"
    found = tab.value(cells)
    assert (found[0], found[3], found[8]) == ("slow → quick", "q19", "−171")  # noqa: RUF001
    assert tab.value("document.getElementById('count').textContent") == "40 trials"
    assert tab.problems == []


def test_a_comparisons_page_says_at_once_what_could_not_be_measured_and_lists_no_waiting_gate(
    tmp_path: Path, tab: Tab
) -> None:
    gate = {"metric": "first_audible_ms", "regression": {"absolute_ms": 20}}
    limit = {"metric": "first_audible_ms", "max": 5000}
    run = {
        "config": {
            "endpoint": [{"name": "bot", "kind": "openai-realtime", "builtin": "echo"}],
            "suite": [{"kind": "demo"}],
            "gate": [gate, limit],
        }
    }

    def made(name: str, late: int) -> str:
        rows = [
            trial(f"q{n}", first_audible_ms=400.0 + n, latency_valid=n >= late) for n in range(10)
        ]
        items = [item(f"q{n}") for n in range(10)]
        with build(tmp_path / name, items, rows, run=run) as folder:
            return str(folder.path)

    page = tmp_path / "page.html"
    assert compare(made("base", 0), made("new", 6), "--html", str(page)) == 1
    tab.open(page.as_uri(), DRAWN)
    verdict = tab.value("document.querySelector('p.verdict').textContent")
    assert verdict.startswith("could not be measured: 4 of 10 items left, 6 latencies lost")
    gates = tab.value("document.getElementById('gates').textContent")
    assert "max 5000" in gates
    assert "needs a second run" not in gates
    assert tab.problems == []


def test_a_page_of_a_comparison_has_no_place_on_standard_output(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="more than one file"):
        compare(str(tmp_path), str(tmp_path), "--html", "-")


def test_a_page_of_runs_pairs_endpoints_of_other_names(tmp_path: Path, tab: Tab) -> None:
    paths = []
    for name, audible in (("old", 400.0), ("new", 450.0)):
        with build(tmp_path / name, [], [trial("q0", endpoint=name, first_audible_ms=audible)]) as (
            folder
        ):
            paths.append(str(folder.path))
    page = tmp_path / "both.html"
    words = [*paths, "--format", "html", "-o", str(page)]
    assert report(*words, "--map", "old=new") == 0
    tab.open(page.as_uri(), DRAWN)
    found = tab.value("document.querySelector('#changes tbody tr').textContent")
    assert found == "old → newdemocleanq0––400450+50A B"  # noqa: RUF001
    assert tab.value("document.querySelectorAll('#results tbody tr').length") == 1
    assert tab.problems == []


@pytest.fixture
def two_runs(tmp_path: Path) -> list[str]:
    """Runs with an endpoint each, `old` and `new`."""
    paths = []
    for name, audible in (("old", 400.0), ("new", 450.0)):
        rows = [trial("q0", endpoint=name, first_audible_ms=audible)]
        with build(tmp_path / name, [], rows) as folder:
            paths.append(str(folder.path))
    return paths


def test_a_text_of_runs_pairs_endpoints_of_other_names(two_runs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "both.md"
    assert report(*two_runs, "--format", "md", "-o", str(out), "--map", "old=new") == 0
    side_by_side = out.read_text().partition("## Runs side by side")[2].partition("\n#")[0]
    (row,) = [line for line in side_by_side.splitlines() if "first audible p50" in line]
    assert row.startswith("| old → new | demo | clean |")
    assert "400" in row
    assert "450" in row


@pytest.mark.parametrize("kind", ["html", "md"])
@pytest.mark.parametrize("pair", ["older=new", "old=newer"])
def test_an_endpoint_that_is_not_there_is_never_paired(
    kind: str, pair: str, two_runs: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "both"
    with pytest.raises(UserError, match="name one that is there"):
        report(*two_runs, "--format", kind, "-o", str(out), "--map", pair)
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "json"], "--format json sets no runs side by side"),
        (["--format", "csv,json", "-o", "there"], "--format csv,json sets no runs side by side"),
        ([], "each run has a report.md of its own"),
    ],
)
def test_a_pairing_that_nothing_would_show_is_refused(
    words: list[str], told: str, two_runs: list[str]
) -> None:
    with pytest.raises(UserError, match=told):
        report(*two_runs, *words, "--map", "old=new")
    with pytest.raises(UserError, match="this is one"):
        report(two_runs[0], *words, "--map", "old=new")

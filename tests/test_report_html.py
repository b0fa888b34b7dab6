"""The page of a run: what it shows, in a real browser; that no reply can break or use it."""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Tab, chromium, opened
from hostile import MARK, TEXTS
from playwright.sync_api import Browser
from sample_run import Row, build, item, score, trial
from test_report import sample, transcript
from written_page import DRAWN, page_on

from voxmeter.client import report_html
from voxmeter.client.audio import write_flac
from voxmeter.client.audio_peaks import BINS, largest, peaks_of
from voxmeter.client.commands import report as command
from voxmeter.client.report import summarised, write_reports
from voxmeter.client.report_details import marked
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError


def run_command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(words)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened(browser) as found:
        yield found


def show(tab: Tab, page: Path, state: str = "") -> None:
    tab.open(page.as_uri() + state, DRAWN)


def hostile(tmp_path: Path) -> RunFolder:
    """A run in which everything that somebody else wrote is an attack."""
    items, rows, scores, texts = [], [], [], []
    for number, attack in enumerate(TEXTS):
        name = f"{number} {attack}".replace("\ud800", "?")
        one: Row = trial(name, fault=attack, reply_text=attack, first_audible_ms=400.0)
        one["condition_params"] = {attack: attack}
        items.append(item(name, question=attack, groups=[attack], options=[attack] * 2))
        rows.append(one)
        texts.append(transcript(one, attack))
        detail = {"answer": attack, "rule": attack, "span": [0, 5], "channel": "speech"}
        scores.append(score(one, detail=detail))
        orders = [{"order": attack, "value": 5.0, "reason": attack, "replies": [{"raw": attack}]}]
        scores.append(score(one, f"judge_score:{attack}", 5.0, detail={"orders": orders}))
    config = {
        "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
        "suite": [{"kind": "demo"}],
    }
    run = {"config": config, "machine": {attack: attack for attack in TEXTS}}
    return build(tmp_path, items, rows, scores, texts, run)


def many(tmp_path: Path, count: int) -> RunFolder:
    items = [item(f"q{n:04}") for n in range(count)]
    rows = [
        trial(f"q{n:04}", "timeout" if n % 10 == 9 else "ok")
        if n % 10 == 9
        else trial(f"q{n:04}", first_audible_ms=400.0 + n)
        for n in range(count)
    ]
    texts = [transcript(row, f"Reply number {n}.") for n, row in enumerate(rows)]
    return build(tmp_path, items, rows, [], texts)


def spoken(tmp_path: Path) -> tuple[RunFolder, Row]:
    """A run of one trial with its recording and its log: t0 at 1 s, audible 0.5 s later."""
    one = trial(
        "q0",
        first_packet_ms=400.0,
        first_audible_ms=500.0,
        first_text_ms=300.0,
        reply_end_ms=1500.0,
        t0_ns=11_000_000_000,
        stall_spans=[{"start_ms": 800.0, "ms": 50.0, "sample": 1}],
    )
    found = {"answer": "B", "rule": "cue", "span": [14, 15], "channel": "speech"}
    text = [transcript(one, "The answer is B, \U0001f600 or B.")]
    folder = build(tmp_path, [item("q0")], [one], [score(one, detail=found)], text)
    paths = folder.attempt_paths(one)
    paths.audio.parent.mkdir(parents=True)
    paths.events.parent.mkdir(parents=True)
    both = np.zeros((24_000 * 3, 2), np.float32)
    both[:24_000, 0] = 0.25
    both[36_000:60_000, 1] = 1.0
    write_flac(paths.audio, both, 24_000)
    write_flac(paths.reply, both[36_000:60_000, 1], 24_000)
    log = [
        '{"t_ns":10000000000,"dir":"out","kind":"start","bytes":0}',
        '{"t_ns":11300000000,"dir":"in","kind":"reply_text","bytes":1,"text":"The"}',
        '{"t_ns":11350000000,"dir":"in","kind":"reply_text","bytes":1,"text":" answer"}',
    ]
    paths.events.write_text("\n".join(log) + "\n")
    return folder, one


def test_hostile_replies_are_shown_as_text_and_nothing_of_them_runs(
    tmp_path: Path, tab: Tab
) -> None:
    with hostile(tmp_path) as folder:
        page = page_on(folder)
        keys = [row["key"] for row in folder.newest_trials()]
        for key, attack in zip(keys, TEXTS, strict=True):
            show(tab, page, f"#{key}")
            tab.until("document.getElementById('said')")
            shown = tab.value("document.getElementById('said').textContent")
            assert shown == attack
    assert tab.value("document.documentElement.dataset.ran") is None
    assert tab.value("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert tab.problems == []
    ours = {path.as_uri() for path in [page, *(page.parent / "report_data").iterdir()]}
    assert {asked.split("#")[0] for asked in tab.asked} <= {*ours, "about:blank"}


def test_a_script_that_got_into_the_page_all_the_same_would_not_run(
    tmp_path: Path, tab: Tab
) -> None:
    with sample(tmp_path) as folder:
        page = page_on(folder)
    attacked = page.read_text().replace("<main", f"<script>{MARK}</script><main")
    page.write_text(attacked)
    show(tab, page)
    assert tab.value("document.documentElement.dataset.ran") is None
    assert any("Content Security Policy" in one for one in tab.problems)


def test_details_of_many_trials_come_from_files_beside_the_page(tmp_path: Path, tab: Tab) -> None:
    with many(tmp_path, 230) as folder:
        page = page_on(folder)
        key = next(row["key"] for row in folder.newest_trials() if row["item"] == "q0205")
    beside = page.parent / "report_data"
    assert sorted(one.name for one in beside.iterdir()) == ["000.js", "001.js", "002.js"]
    assert "Reply number 205" in (beside / "002.js").read_text()
    show(tab, page, f"#{key}")
    tab.until("document.getElementById('said')")
    assert tab.value("document.getElementById('said').textContent") == "Reply number 205."
    assert tab.problems == []

    (beside / "000.js").write_text("voxmeterDetails('other',0,'[]')")
    show(tab, page, "#bot/demo/q0001/clean/1")
    tab.until("document.querySelector('#body .bad')")
    assert "another report" in tab.value("document.querySelector('#body').textContent")

    (beside / "001.js").unlink()
    show(tab, page, "#bot/demo/q0101/clean/1")
    tab.until("document.querySelector('#body .bad')")
    assert "001.js is missing" in tab.value("document.querySelector('#body').textContent")


def test_up_to_fifty_trials_are_one_file_and_older_side_files_go(tmp_path: Path) -> None:
    with many(tmp_path / "many", 101) as folder:
        page_on(folder, to=tmp_path / "page.html")
    beside = tmp_path / "page_data"
    assert len(list(beside.iterdir())) == 2
    (beside / "mine.js").write_text("kept")
    with many(tmp_path / "few", 50) as folder:
        page_on(folder, to=tmp_path / "page.html")
    assert [one.name for one in beside.iterdir()] == ["mine.js"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', _text(tmp_path / "page.html"))
    assert policy is not None
    assert "'self'" not in policy[1].split("media-src")[0]


def test_writing_a_long_page_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with many(tmp_path, 250) as folder:
        write_reports(
            folder, summarised(folder), lambda one: told.append((one.stage, one.done, one.total))
        )
    assert told == [("page", 100, 250), ("page", 200, 250), ("page", 250, 250)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_only_the_rows_in_sight_are_in_the_page(tmp_path: Path, tab: Tab) -> None:
    with many(tmp_path, 1000) as folder:
        show(tab, page_on(folder))
    assert 10 < tab.value("document.querySelectorAll('.rows .row').length") < 80
    tab.value("document.getElementById('list').scrollTop = 900 * 30; 0")
    tab.until("document.querySelector('.rows').textContent.includes('q0905')")
    assert tab.value("document.querySelectorAll('.rows .row').length") < 80


def first_items(tab: Tab, count: int) -> list[str]:
    found: Any = tab.value(
        "[...document.querySelectorAll('.rows .row')].map((row) => row.children[3].textContent)"
    )
    return list(found[:count])


def test_the_list_filters_and_sorts_by_any_column_and_the_address_keeps_it(
    tmp_path: Path, tab: Tab
) -> None:
    with many(tmp_path, 40) as folder:
        page = page_on(folder)
    show(tab, page, "#?status=timeout&sort=-item")
    assert tab.value("document.getElementById('count').textContent") == "4 of 40 trials"
    assert first_items(tab, 4) == ["q0039", "q0029", "q0019", "q0009"]

    show(tab, page, "#?first_audible_ms=410-412")
    assert first_items(tab, 9) == ["q0010", "q0011", "q0012"]
    show(tab, page, "#?first_audible_ms=none&reply=number+2")
    assert first_items(tab, 9) == ["q0029"]

    show(tab, page)
    tab.value("""document.querySelector("[data-sort='first_audible_ms']").click()""")
    tab.value("""document.querySelector("[data-sort='first_audible_ms']").click()""")
    assert first_items(tab, 2) == ["q0038", "q0037"]
    assert tab.value("location.hash") == "#?sort=-first_audible_ms"
    tab.value(
        """(() => { const one = document.querySelector("[data-filter='first_audible_ms']");
        one.value = "<405"; one.dispatchEvent(new Event("input", { bubbles: true })); })()"""
    )
    assert first_items(tab, 9) == ["q0004", "q0003", "q0002", "q0001", "q0000"]
    assert tab.problems == []


def test_keys_move_open_and_close_and_the_address_names_the_trial(tmp_path: Path, tab: Tab) -> None:
    with many(tmp_path, 30) as folder:
        show(tab, page_on(folder))
    for key in ("j", "j", "k", "Enter"):
        tab.page.keyboard.press(key)
    tab.until("document.getElementById('said')")
    assert tab.value("location.hash") == "#bot/demo/q0001/clean/1"
    tab.page.keyboard.press("j")
    tab.until("location.hash === '#bot/demo/q0002/clean/1'")
    assert tab.value("document.getElementById('said').textContent") == "Reply number 2."
    tab.page.keyboard.press("Escape")
    assert tab.value("document.getElementById('trial').hidden") is True
    assert tab.value("location.hash") == ""


def test_a_trial_is_heard_from_its_files_and_its_timeline_has_its_marks(
    tmp_path: Path, tab: Tab
) -> None:
    folder, one = spoken(tmp_path)
    with folder:
        page = page_on(folder)
    show(tab, page, f"#{one['key']}")
    tab.until("document.querySelector('.timeline')")
    shown = tab.value("document.querySelector('.timeline').textContent")
    for word in (
        "speech ends  t0",
        "first packet  +400",
        "first audible  +500",
        "first text  +300",
    ):
        assert word in shown
    assert "reply ends  +1\u2009500" in shown
    assert tab.value("document.querySelectorAll('.timeline .delta').length") == 2
    assert tab.value("document.querySelectorAll('.timeline .stall').length") == 1
    assert tab.value("document.querySelectorAll('.timeline path').length") == 2
    assert tab.value("document.querySelector('mark').textContent") == "B"
    whole = tab.value("document.querySelector('.wave-user').getAttribute('d').length")
    tab.value("document.getElementById('near').click()")
    closer = tab.value("document.querySelector('.wave-user').getAttribute('d').length")
    assert closer < whole * 0.9  # it begins 0.3 s before t0
    lengths = tab.value(
        """Promise.all([...document.querySelectorAll("audio")].map((one) => new Promise(
        (done, failed) => { one.onerror = () => failed(new Error(one.src));
        one.ontimeupdate = () => one.currentTime > 0 && done(one.duration); one.play(); })))"""
    )
    assert lengths == [3, 1]
    players = tab.value("document.querySelector('.players').textContent")
    assert "right: reply), 3.0 s" in players  # said before anything plays
    assert tab.problems == []


def test_several_runs_stand_side_by_side_as_columns(
    tmp_path: Path, tab: Tab, capsys: pytest.CaptureFixture[str]
) -> None:
    with sample(tmp_path / "a") as one, sample(tmp_path / "b") as other:
        paths = [str(one.path), str(other.path)]
    page = tmp_path / "both.html"
    assert run_command(*paths, "--format", "html", "-o", str(page)) == 0
    assert capsys.readouterr().out.strip() == str(page)
    show(tab, page)
    heads = tab.value(
        "[...document.querySelectorAll('#results tr:nth-child(2) th')].map((e) => e.textContent)"
    )
    assert heads == ["endpoint", "suite", "condition", *"ABABAB"]
    assert tab.value("document.getElementById('count').textContent") == "8 trials"
    moved = "[...document.querySelectorAll('#changes tbody tr')].map((e) => e.textContent)"
    assert tab.value(moved) == []  # both runs are the same
    show(tab, page, "#1:bot/demo/q1/clean/1")
    tab.until("document.getElementById('said')")
    assert tab.value("document.querySelector('#trial h2').textContent").startswith("q1 B · bot")
    assert tab.problems == []


def test_what_moved_between_two_runs_is_listed_with_a_link_to_hear_it(
    tmp_path: Path, tab: Tab
) -> None:
    def made(name: str, slower: float, right: float) -> RunFolder:
        rows = [trial(f"q{n}", first_audible_ms=400.0 + n * slower) for n in range(4)]
        kind = "commit" if slower else "live"  # never compared
        rows.append(trial("q9", latency_kind=kind, endpoint="other", first_audible_ms=slower))
        scores = [score(row, value=right if row["item"] == "q1" else 1.0) for row in rows]
        items = [item(row["item"]) for row in rows]
        return build(tmp_path / name, items, rows, scores)

    with made("was", 0.0, 1.0) as one, made("is", 50.0, 0.0) as other:
        show(tab, page_on(one, other, to=tmp_path / "page.html"))
    rows = tab.value(
        "[...document.querySelectorAll('#changes tbody tr')].map((row) => "
        "[...row.children].slice(3, 9).map((cell) => cell.textContent))"
    )
    assert rows == [
        ["q1", "right", "wrong", "400", "450", "+50"],  # an answer that changed comes first
        ["q3", "right", "right", "400", "550", "+150"],
        ["q2", "right", "right", "400", "500", "+100"],
    ]
    tab.value("document.querySelector('#changes tbody tr:nth-child(2) a:last-child').click()")
    tab.until("document.querySelector('#trial h2')")
    assert tab.value("document.querySelector('#trial h2').textContent").startswith("q3 B · bot")
    assert tab.problems == []


def test_on_paper_the_page_is_light_and_the_list_has_what_matters(tmp_path: Path, tab: Tab) -> None:
    with many(tmp_path, 60) as folder:
        page = page_on(folder)
    tab.page.emulate_media(color_scheme="dark")
    show(tab, page)
    tab.value("window.dispatchEvent(new Event('beforeprint')); 0")
    assert tab.value("document.documentElement.dataset.theme") == "light"
    assert tab.value("document.querySelectorAll('.rows .row').length") == 60
    tab.value("window.dispatchEvent(new Event('afterprint')); 0")
    assert tab.value("document.documentElement.dataset.theme") == "dark"
    assert tab.value("document.querySelectorAll('.rows .row').length") < 60
    assert tab.problems == []


def test_the_page_shows_each_part_in_both_themes_and_a_picture_is_kept(
    tmp_path: Path, tab: Tab
) -> None:
    kept = Path(os.environ.get("TEST_ARTIFACTS") or Path(__file__).parents[1] / ".artifacts")
    with sample(tmp_path / "runs") as folder:
        page = page_on(folder)
    grounds = set()
    for dark in (False, True):
        tab.page.emulate_media(color_scheme="dark" if dark else "light")
        show(tab, page)
        grounds.add(tab.value("getComputedStyle(document.body).backgroundColor"))
        picture = tab.picture(kept / f"report-{'dark' if dark else 'light'}.png")
        assert picture.stat().st_size > 20_000
    assert len(grounds) == 2
    shown = tab.value("[...document.querySelectorAll('main h2')].map((one) => one.textContent)")
    assert shown == [
        *("Results", "Gates", "Warnings", "Accuracy", "Latency", "Accuracy against latency"),
        *("Groups", "Failures", "Trials", "The instrument's own error"),
    ]
    heads = "[...document.querySelectorAll('#results th')].filter((one) => !one.title)"
    assert tab.value(f"{heads}.map((one) => one.textContent)") == ["endpoint", "suite", "condition"]
    rule = "document.querySelector('#list [data-sort=rule]').title"
    assert "stated = announced" in tab.value(rule)
    axis = "[...document.querySelectorAll('#latency svg text')].map((one) => one.textContent)"
    assert "first audible, ms" in tab.value(axis)
    for word in ("Send lateness", "Loop lag", "perf_counter", "not calibrated", "p95 needs 20"):
        assert word in tab.value("document.querySelector('main').textContent"), word
    assert tab.problems == []


def test_a_run_in_which_nothing_worked_has_a_page_too(tmp_path: Path, tab: Tab) -> None:
    rows = [trial(f"q{n}", "disconnected") for n in range(3)]
    items = [item(f"q{n}", kind="open") for n in range(3)]
    with build(tmp_path / "failed", items, rows) as folder:
        show(tab, page_on(folder))
    assert "disconnected" in tab.value("document.getElementById('failures').textContent")
    with build(tmp_path / "empty", [], []) as folder:
        show(tab, page_on(folder))
    assert tab.value("document.getElementById('count').textContent") == "0 trials"
    shown = tab.value("document.querySelector('main').textContent")
    assert not re.search(r"NaN|undefined|Infinity|\[object", shown)
    assert tab.problems == []


def test_the_page_names_no_address_of_a_network(tmp_path: Path) -> None:
    with sample(tmp_path) as folder:
        text = _text(page_on(folder))
    frame = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert set(re.findall(r"\w+://[^\"'\s]*", frame)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in frame
    assert "%DATA%" not in frame


def test_a_page_has_no_place_on_standard_output_nor_in_one_of_several_runs(tmp_path: Path) -> None:
    with sample(tmp_path / "a") as one, sample(tmp_path / "b") as other:
        paths = [str(one.path), str(other.path)]
    with pytest.raises(UserError, match="say where with -o"):
        run_command(*paths, "--format", "html")
    with pytest.raises(UserError, match="more than one file"):
        run_command(paths[0], "--format", "html", "-o", "-")
    assert run_command(paths[0], "--format", "html,md") == 0
    assert (Path(paths[0]) / "report.html").is_file()
    assert run_command(*paths, "--format", "html,csv", "-o", str(tmp_path / "all")) == 0
    assert {one.name for one in (tmp_path / "all").iterdir()} == {"report.html", "report.csv"}


def test_audio_too_large_for_the_page_is_linked_from_where_the_page_lies(
    tmp_path: Path, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_html, "SOUND_BYTES", 10)
    folder, one = spoken(tmp_path / "a run & more")
    with folder:
        page = page_on(folder, to=tmp_path / "else where" / "page.html")
    show(tab, page, f"#{one['key']}")
    tab.until("document.querySelector('audio')")
    link = tab.value("document.querySelector('audio').getAttribute('src')")
    assert link.startswith("../a%20run%20%26%20more/sample-")
    assert link.endswith("/audio/bot~demo~clean/q0~1~1.flac")
    tab.value("document.querySelector('audio').play().catch(() => 0)")
    assert tab.value("document.querySelectorAll('audio').length") == 2
    (tmp_path / "a run & more").rename(tmp_path / "moved")
    show(tab, page, f"#{one['key']}")
    tab.until("document.querySelector('audio')")
    tab.value("document.querySelector('audio').play().catch(() => 0)")
    tab.until("document.querySelectorAll('audio').length === 1")
    assert "is not there or cannot be played" in tab.value("document.body.textContent")


def test_a_small_page_mailed_alone_still_plays_and_a_click_on_the_timeline_plays_from_there(
    tmp_path: Path, tab: Tab
) -> None:
    folder, one = spoken(tmp_path / "runs")
    with folder:
        page = page_on(folder)
    alone = page.rename(tmp_path / "mailed.html")
    shutil.rmtree(folder.path)
    show(tab, alone, f"#{one['key']}")
    tab.until("document.querySelector('.timeline')")
    tab.value("document.querySelector('audio').addEventListener('seeked', () => window.sought = 1)")
    box = tab.page.locator(".timeline").bounding_box()
    assert box is not None
    tab.page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.5)
    tab.until("window.sought && !document.querySelector('audio').paused")
    assert 1.5 < tab.value("document.querySelector('audio').currentTime") <= 3
    assert tab.problems == []
    assert {asked.partition(":")[0] for asked in tab.asked} <= {"file", "about", "data"}


def test_peaks_are_the_largest_of_each_stretch(tmp_path: Path) -> None:
    samples = np.zeros((BINS * 10, 2), np.float32)
    samples[15, 0] = 1.0
    samples[BINS * 10 - 1, 1] = 0.25
    levels = largest(samples)
    assert levels.shape == (2, BINS)
    assert np.flatnonzero(levels[0]).tolist() == [1]
    assert levels[0, 1] == 255
    assert levels[1, BINS - 1] == 128  # the square root of a quarter
    assert largest(np.ones((3, 1), np.float32)).min() == 255  # fewer samples than stretches

    write_flac(tmp_path / "a.flac", samples, 24_000)
    found = peaks_of(tmp_path / "a.flac")
    assert found is not None
    assert found.ms == 250.0
    assert base64.b64decode(found.channels[0]) == levels[0].tobytes()
    (tmp_path / "broken.flac").write_bytes(b"fLaC and nothing")
    assert peaks_of(tmp_path / "broken.flac") is None
    assert peaks_of(tmp_path / "none.flac") is None


def test_the_answer_is_cut_out_of_the_text_by_its_letters() -> None:
    assert marked("\U0001f600 it is B.", (8, 9)) == ["\U0001f600 it is ", "B", "."]
    assert marked("short", (4, 9)) == ["short", "", ""]
    assert marked("none", None) == ["none", "", ""]


def test_an_open_trial_keeps_the_focus_and_gives_it_back(tmp_path: Path, tab: Tab) -> None:
    folder, _ = spoken(tmp_path)
    with folder:
        show(tab, page_on(folder))
    tab.value("document.querySelector('[data-sort=item]').focus()")
    tab.value("document.querySelector('.rows .row').click()")
    tab.until("document.querySelector('#said')")
    inside = "document.getElementById('trial').contains(document.activeElement)"
    assert tab.value(inside)
    reached = set()
    for _press in range(12):
        tab.page.keyboard.press("Tab")
        assert tab.value(f"{inside} || document.activeElement === document.body")
        reached.add(tab.value("document.activeElement.tagName"))
    assert {"BUTTON", "AUDIO"} <= reached
    tab.page.keyboard.press("Escape")
    assert tab.value("document.activeElement.dataset.sort") == "item"
    assert tab.value("document.getElementById('main').inert") is False
    assert tab.problems == []


def test_drift_cold_turns_and_outliers_stand_on_the_page_with_links_to_their_trials(
    tmp_path: Path, tab: Tab
) -> None:
    rows = [trial("q00", number=0, first_audible_ms=1500.0)]
    rows += [trial(f"q{n:02}", first_audible_ms=400.0 + 5 * n) for n in range(30)]
    rows.append(trial("q99", first_audible_ms=4000.0))
    with build(tmp_path, [], rows, []) as folder:
        show(tab, page_on(folder))
    shown = tab.value(
        "[...document.querySelectorAll('#course tbody td')].map((cell) => cell.textContent)"
    )
    assert shown[6:8] == ["1\u2009500 n 1", "475"]
    assert shown[8:] == ["1", "bot/demo/q99/clean/1 4\u2009000 ms"]
    tab.value("document.querySelector('#course a').click()")
    tab.until("document.querySelector('#trial h2')")
    assert tab.value("document.querySelector('#trial h2').textContent").startswith("q99")
    assert tab.problems == []


def test_published_figures_stand_on_the_page(tmp_path: Path, tab: Tab) -> None:
    folder, _ = spoken(tmp_path)
    table = {
        "title": "Table <1>",
        "judge": "",
        "unit": "percent",
        "columns": ["STEM"],
        "systems": [{"system": "Paper", "size": "7B", "figures": ["61.2"], "notes": {"STEM": "?"}}],
        "yours": [
            {
                "endpoint": "bot",
                "judge": "",
                "size": "",
                "figures": [{"value": 0.5, "low": 0.4, "high": 0.6, "items": 9, "text": "50.0"}],
            }
        ],
    }
    told: Row = {"about": "A & B", "source": "S", "warnings": ["w"], "caveats": [], "tables": []}
    told["tables"] = [table]
    with folder:
        summary = summarised(folder) | {"published": told}
        page = folder.path / "report.html"
        show(tab, report_html.write_page([folder], [summary], page))
    shown = tab.value(
        "[...document.querySelectorAll('#published td')].map((cell) => cell.textContent)"
    )
    assert shown == ["Paper", "7B", "61.2 *", "bot", "–", "50.0 [40 to 60] (n 9)"]  # noqa: RUF001
    assert tab.problems == []

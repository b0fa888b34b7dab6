"""The page of a run whose files others wrote or broke: it opens, and nothing of them runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Tab, chromium, opened
from playwright.sync_api import Browser
from sample_run import Row, build, item, score, trial
from test_report import transcript
from written_page import DRAWN, page_on

from voxmeter.client.audio import write_flac
from voxmeter.client.report_frame import script_json

MARK = "document.documentElement.dataset.ran = 1"
NAMES = [
    f"</script><script>{MARK}</script>",
    f"<!--<script>{MARK}</script>",
    f"<img src=x onerror='{MARK}'>",
    f"javascript:{MARK}",
    "\u202egnp.exe\u202c \u2066left\u2069",
    "\x1b]8;;http://example.org\x07link\x1b]8;;\x07\x1b[2J",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "__proto__",
    "constructor",
    "\u2028\u2029\ufeff",
    "%DATA%",
    "a" * 300,
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened(browser) as found:
        yield found
        assert found.problems == []
        assert found.value("document.documentElement.dataset.ran") is None
        allowed = {"about", "file", "data"}
        assert {address.partition(":")[0] for address in found.asked} <= allowed


def show(tab: Tab, page: Path, state: str = "") -> str:
    """Open a page or one of its trials; return what it shows."""
    tab.open(page.as_uri() + state, DRAWN)
    if state:
        tab.until("document.querySelector('#body dl, #body .bad')")
    shown = tab.value("document.getElementById('main').textContent")
    for word in ("NaN", "undefined", "[object", "Infinity"):
        assert word not in shown
    return str(shown)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_of_everything_is_shown_and_its_trial_opens(
    name: str, tmp_path: Path, tab: Tab
) -> None:
    rows = [
        trial(name, endpoint=name, suite=name, condition=condition, first_audible_ms=400.0 + more)
        for condition in ("clean", name)
        for more in range(3)
    ]
    for number, row in enumerate(rows):
        row["trial"] = number
        row["key"] = f"{row['key'].rpartition('/')[0]}/{number}"
    failed = trial(name, status="refused", endpoint=name, suite=name, number=9, fault=name)
    scores = [score(row, detail={"answer": name, "rule": name, "span": [0, 3]}) for row in rows]
    scores += [score(row, f"judge_score:{name}", 4.0) for row in rows]
    texts = [transcript(row, name) for row in rows]
    items = [item(name, suite=name, groups=[name, name], question=name)]
    run = {"machine": {name: name}, "voxmeter": name}
    with build(tmp_path, items, [*rows, failed], scores, texts, run) as folder:
        page = page_on(folder)
        key = next(folder.newest_trials())["key"]
    assert "refused" in show(tab, page)
    show(tab, page, f"#{key}")
    assert tab.value("document.getElementById('said').textContent") == name
    box = "document.querySelector('[data-filter=endpoint]')"
    tab.value(f"{box}.value = {json.dumps(name)}; {box}.dispatchEvent(new Event('change')); 0")
    assert tab.value("document.querySelectorAll('.rows .row').length") == 7


def test_a_megabyte_of_reply_is_cut_with_a_button_for_all_of_it(tmp_path: Path, tab: Tab) -> None:
    text = "<b>word & " * 100_000
    one = trial("q0", first_audible_ms=400.0, fault=text, reply_text=text)
    scores = [score(one, detail={"answer": text, "rule": "cue", "span": [999_990, 1_000_000]})]
    orders = [{"order": text, "value": 3.0, "reason": text, "replies": [{"raw": text}]}]
    scores.append(score(one, "judge_score:j", 3.0, detail={"orders": orders}))
    items = [item("q0", question=text, options=[text], groups=[text], reference=text)]
    with build(tmp_path, items, [one], scores, [transcript(one, text)]) as folder:
        page = page_on(folder)
    assert len(show(tab, page)) < 20_000
    show(tab, page, f"#{one['key']}")
    shown = "document.getElementById('said').textContent"
    assert tab.value("document.querySelector('mark').textContent") == text[-10:]
    assert tab.value(f"{shown}.length") < 10_000
    assert tab.value("document.getElementById('trial').textContent.length") < 100_000
    tab.value("document.querySelector('#said button').click()")
    assert tab.value(f"{shown}.length") == len(text)


ODD: list[object] = [
    1e308,
    -1,
    -1e308,
    0,
    None,
    2**70,
    10**400,
    [],
    {},
    True,
]


def odd(value: object) -> Row:
    """A trial in which every number is another."""
    one = trial("q0", first_audible_ms=400.0, first_packet_ms=350.0, reply_end_ms=900.0)
    one["latency"] = dict.fromkeys(one["latency"], value)
    one["audit"] = {
        "send_lateness_ms": {"p50": value, "p99": value, "max": value},
        "loop_lag_ms": {"p50": value, "p99": value, "max": value},
        "latency_valid": True,
        "host": value,
    }
    one |= {
        "t0_ns": value,
        "clip": {"ms": value, "speech_end_ms": value},
        "stall_spans": [{"start_ms": value, "ms": value}, value],
        "condition_params": {"gain_db": value},
        "segments": [{"role": "other", "start_ms": value, "end_ms": value}],
    }
    return one


@pytest.mark.parametrize("value", ODD, ids=lambda one: repr(one)[:12])
def test_absurd_numbers_leave_a_page_that_opens(value: object, tmp_path: Path, tab: Tab) -> None:
    rows = [odd(value), trial("q1", first_audible_ms=500.0), trial("q2", first_audible_ms=600.0)]
    log = [
        {"t_ns": value, "dir": "out", "kind": "start"},
        {"t_ns": value, "kind": "reply_text"},
    ]
    with build(tmp_path, [item(f"q{n}") for n in range(3)], rows, []) as folder:
        events = folder.attempt_paths(rows[0]).events
        events.parent.mkdir(parents=True)
        events.write_text("".join(json.dumps(row) + "\n" for row in log))
        page = page_on(folder)
    show(tab, page)
    show(tab, page, f"#{rows[0]['key']}")
    assert tab.value("document.querySelectorAll('#trial svg line').length") < 500


def test_damaged_and_missing_files_of_a_trial_are_told_and_harm_no_other(
    tmp_path: Path, tab: Tab
) -> None:
    rows = [trial(f"q{n}", first_audible_ms=400.0) for n in range(4)]
    with build(tmp_path, [], rows, []) as folder:
        for row, content in zip(rows, (b"", b"fLaC and nothing", b"<script>", None), strict=True):
            paths = folder.attempt_paths(row)
            for path in (paths.audio, paths.reply, paths.events):
                path.parent.mkdir(parents=True, exist_ok=True)
                if content is not None:
                    path.write_bytes(content)
        page = page_on(folder)
    for number, words in enumerate(("is damaged", "", "is damaged", "was kept")):
        show(tab, page, f"#{rows[number]['key']}")
        assert words in tab.value("document.getElementById('body').textContent")
    assert "<script>" not in page.read_text().partition('id="data"')[2].partition("</script>")[0]


def test_no_file_outside_the_run_folder_comes_into_the_page(tmp_path: Path, tab: Tab) -> None:
    secret = tmp_path / "secret.flac"
    write_flac(secret, np.ones((2400, 2), np.float32), 24_000)
    linked = trial("q1", first_audible_ms=400.0)
    with build(tmp_path / "runs", [], [linked], []) as folder:
        paths = folder.attempt_paths(linked)
        paths.audio.parent.mkdir(parents=True)
        paths.audio.symlink_to(secret)
        paths.reply.symlink_to(secret)
        page = page_on(folder)
    assert "base64" not in page.read_text().partition('id="data"')[2].partition("</script>")[0]
    show(tab, page, f"#{linked['key']}")
    assert tab.value("document.querySelectorAll('audio').length") == 0


def test_rows_of_another_shape_leave_a_page(tmp_path: Path, tab: Tab) -> None:
    one = trial("q0", first_audible_ms=400.0)
    for name in ("clip", "audit", "latency", "condition_params", "usage", "stall_spans"):
        one[name] = None
    scores = [
        score(one, detail={"span": "0-3", "answer": ["B"], "rule": {"a": 1}}),
        score(one, "judge_score:j", 3.0, detail={"orders": {"a": 1}}),
        score(one, "judge_score:k", 3.0, detail={"orders": [1, {"replies": "text"}]}),
    ]
    with build(tmp_path, [item("q0", options="ABCD", groups=[])], [one], scores) as folder:
        page = page_on(folder)
    show(tab, page)
    show(tab, page, f"#{one['key']}")


def test_what_json_has_no_word_for_becomes_null() -> None:
    held = script_json({"a": [float("nan"), 1.5, (float("inf"), "</script>")], "b": "\u2028"})
    assert held == '{"a":[null,1.5,[null,"\\u003c/script\\u003e"]],"b":"\\u2028"}'

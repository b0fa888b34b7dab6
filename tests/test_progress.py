"""How a run looks while it goes, also when an endpoint or an item's id is hostile."""

from __future__ import annotations

import re
from typing import Any

import pytest

from voxmeter.client import progress as module
from voxmeter.client.plan import Trial
from voxmeter.client.progress import Loud, Quiet
from voxmeter.client.score import Progress
from voxmeter.client.scoring_progress import ScoringProgress
from voxmeter.suites.suite import Item

OPTIONS = ("Venus", "Mars", "Jupiter", "Saturn")


def trial(name: str = "q0", number: int = 1, **fields: Any) -> Trial:
    known: dict[str, Any] = {
        "kind": "choice",
        "question": "Which planet?",
        "reference": ("B",),
        "options": OPTIONS,
    }
    item = Item("mine", name, recipe=(), **(known | fields))
    return Trial("m", "clean", item, number)


def row(text: str = "The answer is B.", status: str = "ok", **fields: Any) -> dict[str, Any]:
    return {
        "status": status,
        "fault": None,
        "reply_text": text,
        "latency": {"first_audible_ms": 412.4},
        "audit": {"latency_valid": True},
    } | fields


def shown(capsys: pytest.CaptureFixture[str], *turns: tuple[Trial, dict[str, Any]]) -> str:
    with Loud(len(turns)) as loud:
        loud.endpoint("m", len(turns))
        for one in turns:
            loud.trial(*one)
    return capsys.readouterr().out


def test_a_turn_shows_question_reply_answer_and_latency(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [line.strip() for line in shown(capsys, (trial(), row())).splitlines()]
    assert lines == [
        "",
        "m: 1 turn",
        "",
        "q0",
        "asked   Which planet?",
        "replied The answer is B.",
        "heard after 412 ms  right",
    ]


@pytest.mark.parametrize(
    ("text", "fields", "mark"),
    [
        ("The answer is C.", {}, "wrong, it is B"),
        ("No idea.", {}, "wrong, it is B"),
        ("Anything.", {"kind": "open", "options": (), "reference": ()}, None),
        ("The answer is B.", {"reference": ()}, None),
        ("", {}, None),
    ],
)
def test_right_and_wrong_are_told_only_where_they_can_be_known(
    text: str, fields: dict[str, Any], mark: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, (trial(**fields), row(text)))
    assert (mark or "heard after") in out
    assert ("right" in out or "wrong" in out) == (mark is not None)


def test_warm_up_turns_are_shown_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with Loud(2) as loud:
        loud.endpoint("m", 2)
        loud.trial(trial(number=0), row())
        assert loud._figures() == ""
        loud.trial(trial(), row())
        assert loud._figures() == "right so far 1/1, p50 412 ms"
    assert "q0 (warm-up, not counted)" in capsys.readouterr().out


def test_a_failure_is_one_line_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    failed = row("", "refused", fault="quota: spent", latency={})
    assert "refused  quota: spent" in shown(capsys, (trial(), failed))
    no_reason: dict[str, Any] = {"status": "bad_clip", "fault": None, "latency": {}}
    assert "    bad_clip\n" in shown(capsys, (trial(), no_reason))


HOSTILE = "\x1b[2J\x1b]0;title\x07\r\nfake line\u202e\u2028\x00\x9b31m"


def test_hostile_text_stays_text_on_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(
        capsys,
        (trial(HOSTILE, question=HOSTILE), row(HOSTILE)),
        (trial(HOSTILE * 50), row(HOSTILE * 1000, "refused", fault=HOSTILE * 50)),
        (trial(reference=(HOSTILE,), kind="name", options=()), row("something else")),
    )
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", out)
    assert "\nfake line" not in out
    assert max(map(len, out.splitlines())) < 900


def test_the_name_of_an_endpoint_may_be_hostile_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Loud(1) as loud:
        loud.endpoint(HOSTILE, 3)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.rstrip().endswith(": 3 turns")


def test_half_a_character_does_not_stop_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\\ud83d" in shown(capsys, (trial("\ud83d"), row("\ud83d")))


def test_our_own_lateness_is_said_and_its_latency_is_in_no_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    late = row(audit={"latency_valid": False})
    with Loud(1) as loud:
        loud.endpoint("m", 1)
        loud.trial(trial(), late)
        assert loud._figures() == "right so far 1/1"
    assert " ms (this machine was late: not counted)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("timeout", "timeout  no reply within first_reply_timeout_s"),
        ("no_reply", "no_reply  nothing audible came"),
        ("truncated", "truncated  no end of the reply within reply_limit_s"),
    ],
)
def test_a_status_without_a_fault_is_explained(
    capsys: pytest.CaptureFixture[str], status: str, told: str
) -> None:
    with Loud(1) as loud:
        loud.endpoint("m", 1)
        loud.trial(trial(), row("", status, latency={}))
    assert told in capsys.readouterr().out


def test_a_long_run_without_a_terminal_says_something_every_hundred_turns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Loud(1000) as loud:
        loud.endpoint("m", 1000)
        for _ in range(250):
            loud.trial(trial(), row())
        loud.trial(trial(), row("", "timeout", latency={}))
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines == [
        "m: 1000 turns",
        "  100 done, right so far 100/100, p50 412 ms",
        "  200 done, right so far 200/200, p50 412 ms",
    ]


def test_figures_begin_anew_with_every_endpoint_and_count_failures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Loud(1000) as loud:
        loud.endpoint("a", 2)
        loud.trial(trial(), row("", "timeout", latency={}))
        loud.trial(trial(), row("", "no_reply", latency={"first_audible_ms": None}))
        assert loud._figures() == "1 failed"
        loud.endpoint("b", 2)
        assert loud._figures() == ""


def test_running_figures_keep_little_memory() -> None:
    with Loud(2000) as loud:
        loud.endpoint("m", 2000)
        for _ in range(1500):
            loud.trial(trial(), row())
        assert len(loud._audible) <= module._KEPT + 1


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.endpoint("m", 3)
    quiet.trial(trial(), row())
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_goes_to_standard_error_and_only_on_a_terminal(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
    with Loud(1000) as loud:
        loud.endpoint("m", 1000)
        loud.trial(trial(), row())
        with ScoringProgress() as scoring:
            scoring(Progress("transcribe", 1, 4))
            scoring(Progress("score", 2, 4))
    captured = capsys.readouterr()
    assert captured.out == "\nm: 1000 turns\n"
    assert bool(captured.err) == terminal


def test_scoring_shows_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (True, False):
        with ScoringProgress(quiet=quiet) as scoring:
            scoring(Progress("transcribe", 1, 2))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""

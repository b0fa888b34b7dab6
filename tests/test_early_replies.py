"""What an endpoint says before the question is over: counted, told, and in no figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_run import build, item, score, trial

from voxmeter.client.summary import read_run, summary_of

END_MS = 1800
"""Where in the clips of `sample_run` the user's speech ends."""


def found(folder: Path, *segments: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a run of one trial with these replies, and a second with none."""
    trials = [trial("a", segments=list(segments)), trial("b")]
    scores = [score(one) for one in trials]
    with build(folder, [item("a"), item("b")], trials, scores) as made:
        return summary_of(read_run(made), made.run)


def reply(role: str, start_ms: float | None) -> dict[str, Any]:
    return {"role": role, "start_ms": start_ms, "end_ms": start_ms}


ANSWER = reply("answer", 400)


@pytest.mark.parametrize("role", ["early", "backchannel", "greeting"])
def test_what_is_said_while_the_clip_plays_is_counted(tmp_path: Path, role: str) -> None:
    summary = found(tmp_path, reply(role, -1700), reply(role, -10), ANSWER)
    (cell,) = summary["cells"]
    assert cell["early"] == {"replies": 2, "trials": 1, "talked_over": 0}
    assert cell["metrics"]["accuracy"]["value"] == 1.0
    (told,) = [one for one in summary["warnings"] if one["code"] == "early-replies"]
    assert "in 1 trial of 2 it spoke before the question was over (2 replies)" in told["text"]


@pytest.mark.parametrize(
    "other",
    [
        reply("greeting", -END_MS - 500),
        reply("early", None),
        reply("early", 100),
        reply("later", 900),
    ],
    ids=["a greeting", "nothing audible", "empty, after the question", "after the answer"],
)
def test_other_replies_are_not_early(tmp_path: Path, other: dict[str, Any]) -> None:
    summary = found(tmp_path, other, ANSWER)
    assert summary["cells"][0]["early"] == {"replies": 0, "trials": 0, "talked_over": 0}
    assert "early-replies" not in [one["code"] for one in summary["warnings"]]


def test_an_answer_that_begins_too_soon_is_counted_apart(tmp_path: Path) -> None:
    summary = found(tmp_path, reply("talk-over", -300))
    assert summary["cells"][0]["early"] == {"replies": 0, "trials": 0, "talked_over": 1}

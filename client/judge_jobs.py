"""Which trials of a run judges are asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxmeter.client.trial_scores import reply_of
from voxmeter.scoring.metrics import Question, no_reply, question
from voxmeter.scoring.types import Unscored

if TYPE_CHECKING:
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.transcripts import Heard

Row = Mapping[str, Any]
Items = Mapping[tuple[str, str], Row]
"""Rows of items.jsonl that have a rubric, by suite and item."""


@dataclass(frozen=True, slots=True)
class Job:
    """One trial whose item has a rubric.

    Attributes:
        key: The trial's.
        attempt: Its newest.
        item: Row of items.jsonl.
        asked: The same, for the rules.
        nothing: Why there is no reply to judge; None where there is one.
        response: The reply in words.
        channel: `speech` or `text`.
    """

    key: str
    attempt: int
    item: Row
    asked: Question
    nothing: Unscored | None
    response: str
    channel: str


def rated_items(folder: RunFolder, rubrics: Mapping[str, str]) -> Items:
    """Return the items with a rubric; open questions without one have their suite's.

    Args:
        folder: The run.
        rubrics: By suite.
    """
    items = {}
    for row in folder.items():
        open_one = row.get("kind") == "open"
        rubric = row.get("rubric") or (rubrics.get(row["suite"]) if open_one else None)
        if rubric:
            items[row["suite"], row["item"]] = {**row, "rubric": rubric}
    return items


def rated_trials(folder: RunFolder, items: Items) -> Iterator[tuple[Row, Row]]:
    """Yield the trials that are judged, each with its item."""
    for trial in folder.newest_trials() if items else ():
        item = items.get((trial["suite"], trial["item"]))
        if item is not None and not trial.get("warmup"):
            yield trial, item


def job_of(trial: Row, item: Row, heard: Heard | None) -> Job:
    """Return what a judge has to know of one trial."""
    reply = reply_of(trial, heard, {})
    words = (reply.transcript or "") if reply.spoken else reply.text
    nothing = no_reply(reply)
    if nothing is None and not words.strip():
        nothing = Unscored("nothing was said")
    channel = "speech" if reply.spoken else "text"
    return Job(trial["key"], trial["attempt"], item, question(item), nothing, words, channel)

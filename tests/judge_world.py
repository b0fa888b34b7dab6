"""Run folders with replies to be judged, and benches with judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chat_server import Chat
from sample_run import Row, build, item, trial

from voxmeter.client import config
from voxmeter.client.bench import Bench
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import score_run


def bench(*judges: Mapping[str, Any], gates: Sequence[Mapping[str, Any]] = ()) -> Bench:
    """Return a bench with these judges, whose suite is `demo`."""
    return config.parse(
        {
            "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
            "suite": [{"kind": "demo"}],
            "judge": [dict(one) for one in judges],
            "gate": [dict(one) for one in gates],
        },
        "test",
    )


def judge(service: Chat, name: str = "j", **more: Any) -> dict[str, Any]:
    """Return the table of a judge, patient without waiting."""
    return {"name": name, "model": "m", "base_url": service.url, "retries": 0} | more


def run(
    folder: Path,
    replies: Mapping[str, str],
    rubric: str = "adu",
    trials: Sequence[Row] = (),
    **fields: Any,
) -> RunFolder:
    """Return a run of a text endpoint with one open question for each reply."""
    base = {"kind": "open", "reference": "a red ball", "rubric": rubric, "options": []} | fields
    names = list(dict.fromkeys([*replies, *(str(row["item"]) for row in trials)]))
    rows = [written(name, reply) for name, reply in replies.items()]
    return build(folder, [item(name, **base) for name in names], [*rows, *trials])


def written(name: str, reply: str, **fields: Any) -> Row:
    """Return a trial whose reply came in writing."""
    return trial(name, **{"reply_channel": "text", "reply_text": reply} | fields)


def scored(folder: RunFolder, which: Bench, **more: Any) -> dict[str, Any]:
    """Score a run; return its summary."""
    return score_run(folder, which, **more)


def values(folder: RunFolder, metric: str) -> dict[str, float | str]:
    """Return each item's newest value of a metric, or why it has none."""
    rows = [row for row in folder.rows("scores") if row["metric"] == metric]
    return {
        row["key"].split("/")[2]: row["unscored"] if row["value"] is None else row["value"]
        for row in rows
    }


def details(folder: RunFolder, metric: str) -> dict[str, Row]:
    """Return each item's newest detail of a metric."""
    rows = [row for row in folder.rows("scores") if row["metric"] == metric]
    return {row["key"].split("/")[2]: row["detail"] for row in rows}

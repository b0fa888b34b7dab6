"""What a run's `scores.jsonl` holds of one judge, so that nothing is asked twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voxmeter.client.judge_cache import read_replies
from voxmeter.scoring.judging import JUDGE_VERSION, MOST_ASKS, SCORE, VERDICT, Reading, Verdict

Row = Mapping[str, Any]


@dataclass(slots=True)
class Past:
    """What `scores.jsonl` holds of one judge.

    Attributes:
        whole: By key, what was asked of trials about which nothing is left to ask.
        replies: By key and hash of what was asked, the replies of all other trials.
    """

    whole: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    replies: dict[str, dict[str, Verdict]] = field(default_factory=dict)

    @classmethod
    def read(cls, judge: str, rows: Iterator[Row]) -> Past:
        """Return what rows of `scores.jsonl` say of one judge, the newest of each trial."""
        past = cls()
        metrics = {f"{SCORE}:{judge}", f"{VERDICT}:{judge}"}
        for row in rows:
            orders = (row.get("detail") or {}).get("orders")
            if row["metric"] in metrics and isinstance(orders, list):
                past._take(row, [one for one in orders if isinstance(one, dict)])
        return past

    def _take(self, row: Row, orders: Sequence[Row]) -> None:
        key = row["key"]
        verdicts = {str(one.get("asked")): _known(one) for one in orders}
        self.whole.pop(key, None)
        self.replies.pop(key, None)
        done = all(_is_done(one) for one in verdicts.values())
        if done and row["version"] == JUDGE_VERSION:
            self.whole[key] = row["attempt"], tuple(verdicts)
        else:
            self.replies[key] = {asked: one for asked, one in verdicts.items() if one.replies}


def _known(row: Row) -> Verdict:
    reason = row.get("reason")
    reading = Reading(0.0) if reason is None else Reading(None, str(reason))
    replies = read_replies(row.get("replies"))
    return Verdict("one", reading, replies, cached=row.get("cached") is True)


def _is_done(verdict: Verdict) -> bool:
    readable = verdict.reading.reason is None and bool(verdict.replies)
    return readable or len(verdict.replies) >= MOST_ASKS

"""When a refused attempt is made again within a run, and when an endpoint is asked no more."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FIRST_S = 1.0
_LONGEST_S = 30.0
_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a refused attempt is made again, and how long is waited at most.

    Attributes:
        most: Further attempts of one trial within one run.
        wait_limit_s: An endpoint that asks for a longer wait is not asked again: `--resume` does.
        seed: Of the waits that nobody named.
        give_up_after: Trials in a row that an endpoint did not take, before it is asked no more
            (`client/breaker.py`); 0 never.
    """

    most: int = 2
    wait_limit_s: float = 60.0
    seed: int = 0
    give_up_after: int = 20

    def too_long(self, row: Mapping[str, Any]) -> bool:
        """Return whether the endpoint asks for a longer wait than a run waits."""
        named = row.get("retry_after_s")
        refused = row["status"] == "refused" and bool(row.get("retryable"))
        return refused and named is not None and named > self.wait_limit_s

    def wait_s(self, row: Mapping[str, Any], made: int) -> float | None:
        """Return how long to wait before the next attempt, s; None if there is to be none.

        A wait that the endpoint named is kept, and a little longer, so that sessions that were
        refused together do not come back together. Where it named none, waits double.

        Args:
            row: The refused attempt's line of `trials.jsonl`.
            made: Attempts of this trial in this run, 1 or more.
        """
        if row["status"] != "refused" or not row.get("retryable") or made > self.most:
            return None
        draw = random.Random(f"{self.seed} {row['key']} {row['attempt']}").random()  # noqa: S311 - no secret
        named = row.get("retry_after_s")
        if named is None:
            return min(_FIRST_S * 2.0 ** (made - 1), _LONGEST_S) * (0.5 + draw / 2)
        if named > self.wait_limit_s:
            return None
        return max(0.0, float(named)) * (1 + _SPREAD * draw)

"""Conversations as `voxmeter.converse` gives them, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import sample_run

from voxmeter.client.api import Conversation

# Loaded here, once for all: pytest's `pytester` forgets what was first loaded within a test, and
# numpy and scipy cannot be loaded twice.
from voxmeter.client import baseline, regression  # isort: skip  # noqa: F401
import scipy.special  # isort: skip  # noqa: F401

CLIP = "ab" * 32


def conversation(
    values: Sequence[float | None],
    *,
    late: int = 0,
    failed: int = 0,
    clip: str = CLIP,
    endpoint_kind: str = "openai-realtime",
    latency_kind: str = "server-vad",
    host: str = "here",
    metric: str = "first_audible_ms",
) -> Conversation:
    """A conversation with these latencies, then trials that were late, then some that failed."""
    about = {"latency_kind": latency_kind, "host": host}
    about |= {"clip": {"sha256": clip, "ms": 1000.0}}  # type: ignore[dict-item]
    rows = [
        sample_run.trial("clip", "ok", number, **about, **{metric: value})
        for number, value in enumerate(values, 1)
    ]
    rows += [
        sample_run.trial("clip", "ok", number, **about, **{metric: 9e3}, latency_valid=False)
        for number in range(1, late + 1)
    ]
    rows += [
        sample_run.trial("clip", "timeout", number, **about) for number in range(1, failed + 1)
    ]
    return Conversation(tuple(rows), ("",) * len(rows), {}, endpoint_kind)


def spread(centre: float, n: int = 20, step: float = 2.0) -> list[float]:
    """Values on both sides of their median."""
    return [centre + step * (index - (n - 1) / 2) for index in range(n)]

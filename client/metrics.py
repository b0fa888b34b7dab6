"""Names and units of the metrics that gates and tables may name: every name of the contract."""

from __future__ import annotations

from typing import Literal

Unit = Literal["ms", "fraction", "count", "ratio", "score", "words"]

LATENCY = (
    "first_packet_ms",
    "first_audible_ms",
    "leading_silence_ms",
    "first_text_ms",
    "stream_first_audible_ms",
    "endpointing_ms",
    "reply_ms",
    "reply_end_ms",
    "stall_ms",
    "stalls",
    "delivery_rate",
    "yield_ms",
    "overlap_ms",
)
"""Metrics of `latency` in trials.jsonl; each has a mean and percentiles."""

FRACTIONS = (
    "accuracy",
    "accuracy_parsed",
    "parse_rate",
    "accuracy_chance_imputed",
    "text_accuracy",
    "speech_text_disagreement",
)
"""Shares between 0 and 1; each has one value."""

JUDGED = ("judge_score", "position_gap")
"""Metrics that carry a judge's name: `judge_score:<judge>`."""

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
"""What a gate may take of a latency metric (`at`)."""

_OTHER_UNITS: dict[str, Unit] = {"stalls": "count", "delivery_rate": "ratio"}

_KNOWN_ELSEWHERE = {
    "ttfa": "first_audible_ms",
    "ttfb": "first_packet_ms",
    "ttft": "first_text_ms",
    "latency": "first_audible_ms",
    "audio_ttft": "first_audible_ms",
    "audio_ttfp": "first_packet_ms",
}
"""What other tools call them, for suggestions only."""


def unit(metric: str) -> Unit:
    """Return the unit of a metric of `LATENCY`, `FRACTIONS` or `JUDGED`."""
    if metric in LATENCY:
        return _OTHER_UNITS.get(metric, "ms")
    return "fraction" if metric in FRACTIONS else "score"


def suggestion(name: str) -> str | None:
    """Return the metric that an unknown name most likely means, None where nothing is near."""
    from voxmeter.client.nearest import nearest

    bare = name.removesuffix("_ms").removesuffix("_s")
    if bare in _KNOWN_ELSEWHERE:
        return _KNOWN_ELSEWHERE[bare]
    return nearest(name, (*LATENCY, *FRACTIONS, *JUDGED)) or nearest(f"{bare}_ms", LATENCY)

"""The part of `report.md` on judges: what they gave, how far they agree, what they took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voxmeter.client import figures
from voxmeter.client.escape import markdown

Json = Mapping[str, Any]
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def summary_of(metrics: Json) -> str:
    """Return a cell's judge figures in brief: `gpt 7.1 [6.8-7.4]`; empty without any."""
    found = []
    for name, entry in metrics.items():
        metric, _, judge = name.partition(":")
        if metric == "judge_score" or (
            metric == "judge_accuracy" and f"judge_score:{judge}" not in metrics
        ):
            found.append(f"{judge} {figures.any_figure(name, entry)}")
    return ", ".join(found)


def tables(block: Json) -> Iterator[str | Table]:
    """Yield paragraphs and tables, in order.

    Args:
        block: `judges` of summary.json.
    """
    yield (
        "Ratings are those of chat models. Where the prompt shows reference and response, each "
        "reply is rated in both orders of them, unless the bench names one: the rating is the "
        "mean, the difference the position gap. Not asked was what has no clip, no transcript "
        "or nothing to compare with. docs/judges.md says what is asked and how it is read."
    )
    heads = [
        "judge",
        "model",
        "prompts",
        "answered",
        "endpoint failed",
        "not asked",
        "judge failed",
    ]
    heads += ["asks", "second asks", "from cache", "tokens in", "tokens out", "cost"]
    yield heads, [_row(judge) for judge in block["judges"]]
    if block["agreement"]:
        yield (
            "Agreement of each two judges: rank correlations over replies, mean distance of the "
            "ratings where both have one scale, and the share of pairs of endpoints on one item "
            "of which both prefer the same reply or neither."
        )
        heads = ["judges", "suite", "metric", "n", "Spearman", "Kendall tau-b", "mean distance"]
        heads += ["same preference", "pairs", "Spearman of endpoints"]
        yield heads, [_pair(one) for one in block["agreement"]]


def _row(judge: Json) -> list[str]:
    served = [name for name in judge["served"] if name not in judge["models"]]
    models = ", ".join(judge["models"]) + (f" (served: {', '.join(served)})" if served else "")
    prompts = ", ".join(f"{name} {'/'.join(one)}" for name, one in judge["prompts"].items())
    cost = judge["cost"]
    return [
        markdown(judge["name"]),
        markdown(models),
        markdown(prompts),
        f"{judge['scored']} of {judge['trials']}",
        str(judge["endpoint_failed"]),
        str(judge["not_asked"]),
        str(judge["judge_failed"]),
        *(_known(judge[name]) for name in ("asks", "second_asks", "cached")),
        *(_known(judge[name]) for name in ("tokens_in", "tokens_out")),
        "unknown" if cost is None else markdown(f"{cost:.4g} {judge['currency'] or ''}".strip()),
    ]


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)


def _pair(entry: Json) -> list[str]:
    preferred = entry["preference"]
    return [
        markdown(" / ".join(entry["judges"])),
        markdown(entry["suite"]),
        entry["metric"],
        str(entry["n"]),
        *(_number(entry[name]) for name in ("spearman", "kendall_tau_b", "mean_abs_diff")),
        figures.rate(preferred) if preferred["n"] else "-",
        str(preferred["n"]),
        f"{_number(entry['endpoints']['spearman'])} (n {entry['endpoints']['n']})",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

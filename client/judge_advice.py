"""What a reader of judges' figures should be warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
Warning_ = tuple[str, str, str]
"""Code, text and cure."""

GAP_SHARE = 0.1
"""Of the scale: a mean distance between the two orders above it is worth a warning."""

UNREAD_SHARE = 0.1


def of_judges(summary: Json) -> Iterator[Warning_]:
    """Yield what is wrong with a run's judges, from its summary."""
    block = summary.get("judges")
    if not block:
        return
    for judge in block["judges"]:
        yield from _of_one(judge)
    for cell in summary["cells"]:
        for name, entry in cell["metrics"].items():
            yield from _of_figure(cell, name, entry)


def _of_one(judge: Json) -> Iterator[Warning_]:
    if judge["judge_failed"]:
        why = ", ".join(f"{count} {reason}" for reason, count in judge["reasons"].items())
        yield (
            "judge-unscored",
            f"judge {judge['name']} gave no verdict on {judge['judge_failed']} of "
            f"{judge['trials']} replies, which are in no figure of it ({why})",
            f"voxmeter score RUN --judge {judge['name']} asks again where it could not be asked; "
            "what it said twice in a way that cannot be read stays as it is: read its words in "
            "scores.jsonl, then take a larger model or a prompt of your own",
        )
    asks, again = judge["asks"], judge["second_asks"]
    if asks and again and again / asks > UNREAD_SHARE:
        yield (
            "judge-unread",
            f"judge {judge['name']} had to be asked a second time in {again} of {asks} asks",
            "read its words in scores.jsonl; a larger model keeps better to the form",
        )
    if len(judge["served"]) > 1:
        yield (
            "judge-changed",
            f"judge {judge['name']} was served by several models ({', '.join(judge['served'])})",
            "name a dated model, and compare only verdicts of one",
        )


def _of_figure(cell: Json, name: str, entry: Json) -> Iterator[Warning_]:
    metric, _, judge = name.partition(":")
    place = f"{cell['endpoint']} on {cell['suite']} ({cell['condition']})"
    if metric == "judge_score" and entry["n"] and entry["scale"] is None:
        yield (
            "mixed-scales",
            f"{place}: judge {judge} rated on several scales, which have no common mean",
            "look at the groups, or give the suite one rubric",
        )
    scale = (cell["metrics"].get(f"judge_score:{judge}") or {}).get("scale")
    if metric == "position_gap" and scale and entry["mean_abs"] is not None:
        share = entry["mean_abs"] / (scale[1] - scale[0])
        if share > GAP_SHARE:
            yield (
                "judge-position",
                f"{place}: the ratings of judge {judge} move by {entry['mean_abs']:.2g} on "
                "average when reference and response change places",
                "the mean of both orders evens it out; a larger model is moved less",
            )

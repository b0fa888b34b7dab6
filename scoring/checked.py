"""What a reply earns where rules check it: a refusal, or instructions kept strictly and loosely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from voxmeter.scoring.checks import REFUSAL, Check
from voxmeter.scoring.instructions import INSTRUCTIONS_VERSION, follows, follows_loosely
from voxmeter.scoring.language import LANGUAGE_VERSION
from voxmeter.scoring.refusals import REFUSALS_VERSION, refusal
from voxmeter.scoring.types import Outcome, Scored, Unscored

CHECKED_VERSION = f"{INSTRUCTIONS_VERSION}+{LANGUAGE_VERSION}+{REFUSALS_VERSION}"

ASKED, KEPT, KEPT_LOOSELY = "instructions", "instructions_kept", "instructions_kept_loosely"
LOOSE = "accuracy_loose"
METRICS = frozenset({ASKED, KEPT, KEPT_LOOSELY, LOOSE})
"""Metrics of instructions beside accuracy."""


def outcomes(checks: Sequence[Check], text: str, prefix: str = "") -> dict[str, Outcome]:
    """Return what a reply earns.

    Args:
        checks: What it is checked for; not empty.
        text: The reply in words.
        prefix: Stands before the names of metrics: `text_` for the model's own text.

    Returns:
        `accuracy`: whether all checks hold. For instructions also `accuracy_loose`, and how many
        were asked and kept, which figures over all instructions of a suite are drawn from.
    """
    if any(check.name == REFUSAL for check in checks):
        return {f"{prefix}accuracy": _declined(text)}
    try:
        strict = {number: follows(check, text) for number, check in enumerate(checks)}
        loose = {number: follows_loosely(check, text) for number, check in enumerate(checks)}
    except ValueError as error:  # the item's own data, so not the endpoint's fault
        unfit = Unscored(f"item cannot be scored: {error}", {"counted": False})
        return {f"{prefix}{name}": unfit for name in ("accuracy", *METRICS)}
    missed = [checks[number].name for number, kept in strict.items() if not kept]
    found: dict[str, Outcome] = {
        "accuracy": Scored(float(not missed), {**_rule("instructions"), "missed": missed}),
        LOOSE: Scored(float(all(loose.values()))),
        ASKED: Scored(float(len(checks))),
        KEPT: Scored(float(sum(strict.values()))),
        KEPT_LOOSELY: Scored(float(sum(loose.values()))),
    }
    return {f"{prefix}{name}": one for name, one in found.items()}


def _declined(text: str) -> Outcome:
    found = refusal(text)
    if found is None:
        return Scored(0.0, {**_rule(None), "span": None})
    return Scored(1.0, {**_rule(found.rule), "span": [found.start, found.end]})


def _rule(name: str | None) -> dict[str, object]:
    return {"rule": name, "rules": CHECKED_VERSION}


def without_reply(checks: Sequence[Check], nothing: Unscored) -> Mapping[str, Outcome]:
    """Return what a trial without a reply earns beside its accuracy.

    Of an endpoint that failed no instruction was kept; a trial that failed through no fault of
    the endpoint has no figure at all.
    """
    if not checks or checks[0].name == REFUSAL or nothing.detail.get("counted") is False:
        return {}
    none = Scored(0.0, {"failure": nothing.reason})
    asked = Scored(float(len(checks)), {"failure": nothing.reason})
    return {ASKED: asked, KEPT: none, KEPT_LOOSELY: none, LOOSE: none}

"""Publishes a live session: what its front ends are shown, as messages of its own.

Figures are provisional, as on the screen: they are read again from the log when it is saved. Levels
and words are not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxmeter.client.live.updates import Mark, Phase, PhaseChanged, Saved, Show, TurnOver, Update
from voxmeter.client.publish import Publication, Status

_STATUS: Mapping[Phase, Status] = {
    "connecting": "online",
    "disconnected": "waiting",
    "no-device": "waiting",
}
SUITE = "live"


def live_listener(publication: Publication, endpoint: str) -> Show:
    """Return what publishes the updates of a live session.

    Args:
        publication: Of `publication_of`; whoever made it ends it.
        endpoint: Name of the one that is talked to.
    """
    publication.endpoint(endpoint)

    def show(update: Update) -> None:
        match update:
            case PhaseChanged("ended"):
                pass  # the last status is said by `Publication.end`
            case PhaseChanged(phase):
                publication.status(_STATUS.get(phase, "running"))
            case Mark(turn, name, ms):
                told = {"endpoint": endpoint, "suite": SUITE, "item": _item(turn), "trial": 1}
                publication.event(_item(turn), {**told, "stage": name, "ms": ms})
            case TurnOver():
                publication.trial(_row(update, endpoint))
            case Saved(folder, turns, figures):
                publication.summary(_summary(endpoint, folder.name, turns, figures))
            case _:
                pass

    return show


def _item(turn: int) -> str:
    return f"turn-{turn}"


def _row(update: TurnOver, endpoint: str) -> dict[str, Any]:
    return {
        "endpoint": endpoint,
        "suite": SUITE,
        "item": _item(update.turn),
        "condition": update.condition,
        "trial": 1,
        "attempt": 1,
        "status": update.status,
        "latency": dict(update.latency),
        "latency_kind": "live",
        "audit": {"latency_valid": update.latency_valid},
    }


def _summary(
    endpoint: str, run: str, turns: int, figures: Mapping[str, tuple[int, float, float]]
) -> dict[str, Any]:
    """Return a session in the shape of a run's summary, as far as it has the same figures."""
    metrics = {
        name: {"n": n, "p50": {"value": p50}, "p90": {"value": p90}, "unit": "ms"}
        for name, (n, p50, p90) in figures.items()
    }
    cell = {
        "endpoint": endpoint,
        "suite": SUITE,
        "condition": "live",
        "latency_kind": "live",
        "planned": turns,
        "status": {},
        "metrics": metrics,
    }
    return {"schema": 1, "run": run, "cells": [cell], "audit": None, "warnings": [], "gates": []}

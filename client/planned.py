"""What a run set out to do, as `run.json` tells: trials per cell, and a control's true values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
Cell = tuple[str, str, str]


def planned_cells(run: Row, items_of_suite: Mapping[str, int]) -> dict[Cell, int]:
    """Return the number of planned trials by (endpoint, suite, condition), in the run's order.

    Args:
        run: Content of `run.json`: `planned`, a list of `{endpoint, suite, condition, planned}`,
            where it has one; else its `config` and the number of items tell.
        items_of_suite: Number of items of each suite in `items.jsonl`.
    """
    if isinstance(run.get("planned"), list):
        return {
            (str(row["endpoint"]), str(row["suite"]), str(row["condition"])): int(row["planned"])
            for row in run["planned"]
        }
    config = run.get("config") or {}
    trials = int((config.get("run") or {}).get("trials", 1))
    every = ["clean", *(str(one["name"]) for one in config.get("condition") or [])]
    planned: dict[Cell, int] = {}
    for endpoint in config.get("endpoint") or []:
        for suite in config.get("suite") or []:
            label = str(suite.get("name") or suite.get("kind"))
            for condition in suite.get("conditions") or every:
                count = items_of_suite.get(label, 0) * trials
                planned[str(endpoint["name"]), label, str(condition)] = count
    return planned


def endpoint_config(run: Row, name: str) -> Row:
    """Return the endpoint's table in the run's configuration, empty where there is none."""
    for endpoint in (run.get("config") or {}).get("endpoint") or []:
        if endpoint.get("name") == name:
            return dict(endpoint)
    return {}


def computes_here(run: Row, endpoint: str) -> bool:
    """Return whether an endpoint is the embedded assistant, whose models run on this machine."""
    name, _ = _builtin(endpoint_config(run, endpoint).get("builtin"))
    return name == "cascade"


def expected_latency(run: Row, endpoint: str) -> dict[str, float] | None:
    """Return the latencies that a built-in metronome was told to have; None for anything else."""
    builtin = endpoint_config(run, endpoint).get("builtin")
    name, query = _builtin(builtin)
    if name != "metronome":
        return None
    try:
        delay, lead = float(query.get("delay_ms", 0)), float(query.get("lead_ms", 0))
    except ValueError:
        return None
    if "delay_ms" not in query:
        return {}
    return {"first_packet_ms": delay, "first_audible_ms": delay + lead}


def _builtin(value: object) -> tuple[str, dict[str, str]]:
    from urllib.parse import parse_qsl

    if isinstance(value, Mapping):
        return str(value.get("name")), {str(key): str(one) for key, one in value.get("query", ())}
    name, _, query = str(value or "").partition("?")
    return name, dict(parse_qsl(query))

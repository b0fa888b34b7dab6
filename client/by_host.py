"""Latency by machine, where a run's trials were asked from several: a network is part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from voxmeter.client import figures
from voxmeter.client.columns import Columns
from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table
from voxmeter.scoring.stats import Indices

Json = dict[str, Any]
TIMES = ("first_packet_ms", "first_audible_ms", "first_text_ms")


def by_host(
    columns: Columns, latency: Callable[[Columns, Indices, str, int], Json], seed: int
) -> list[Json]:
    """Return one row for each cell and machine; none where all trials are of one machine.

    Args:
        columns: The run.
        latency: Draws the figure of a latency from some trials.
        seed: Of its intervals.
    """
    hosts = [host for host in columns.hosts.texts if host]
    if len(hosts) < 2:
        return []
    return [
        _row(columns, cell, host, latency, seed)
        for cell in range(len(columns.cells))
        for host in sorted(hosts)
        if _trials(columns, cell, host).any()
    ]


def _trials(columns: Columns, cell: int, host: str) -> Any:  # noqa: ANN401 - an array of flags
    here = columns.host == columns.hosts.codes[host]
    return (columns.cell == cell) & here & ~columns.warmup


def _row(
    columns: Columns,
    cell: int,
    host: str,
    latency: Callable[[Columns, Indices, str, int], Json],
    seed: int,
) -> Json:
    inside = np.flatnonzero(_trials(columns, cell, host))
    late = columns.audit["send_lateness_ms.p99"][inside]
    late = late[np.isfinite(late)]
    endpoint, suite, condition = columns.cells[cell]
    return {
        "host": host,
        "endpoint": endpoint,
        "suite": suite,
        "condition": condition,
        "trials": len(inside),
        "latency_invalid": int(np.count_nonzero(~columns.latency_valid[inside])),
        "send_lateness_p99_ms": round(float(np.quantile(late, 0.99)), 3) if len(late) else None,
        **{name: latency(columns, inside, name, seed) for name in TIMES},
    }


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section of `report.md`; nothing where all trials are of one machine."""
    rows = summary["audit"].get("by_host") or ()
    if not rows:
        return
    yield from ("", "## By machine", "")
    yield "Figures above mix these machines; latencies of one are not those of another."
    heads = ["machine", "endpoint", "suite", "condition", "trials", "first audible p50, ms", "p90"]
    heads += ["first packet p50", "invalid", "send lateness p99"]
    yield from table(heads, map(_cells, rows))


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        *(markdown(str(row[name])) for name in ("host", "endpoint", "suite", "condition")),
        str(row["trials"]),
        figures.time(row["first_audible_ms"], "p50"),
        figures.time(row["first_audible_ms"], "p90"),
        figures.time(row["first_packet_ms"], "p50"),
        str(row["latency_invalid"]),
        "-" if row["send_lateness_p99_ms"] is None else f"{row['send_lateness_p99_ms']:.1f}",
    ]

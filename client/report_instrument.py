"""The client's own error in `report.md`: how late it was, its clock, its last calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table

Row = Mapping[str, Any]

_WHAT = {
    "send_lateness_ms": ("send lateness, ms", "how late audio left this machine"),
    "loop_lag_ms": ("loop lag, ms", "how late this program noticed what came"),
}


def lines(summary: Row, run: Row) -> Iterator[str]:
    """Yield the section on the instrument's own error.

    Args:
        summary: Content of `summary.json`.
        run: Content of `run.json`.
    """
    audit = summary["audit"]
    yield from ("", "## The instrument's own error", "")
    yield "What this client itself added, over all counted trials."
    rows = [
        [name, *(_ms(audit[key][at]) for at in ("p50", "p99", "max")), meant]
        for key, (name, meant) in _WHAT.items()
    ]
    yield from table(["", "p50", "p99", "largest", "what it is"], rows)
    machine = run.get("machine")
    clock = machine.get("clock") if isinstance(machine, Mapping) else None
    yield ""
    yield (
        f"- **latencies left out** (`latency_valid` false): {audit['latency_invalid']}, as this "
        "machine was too late itself"
    )
    yield (
        "- **clock**: one monotonic clock (`perf_counter_ns`) for all that was sent and all that "
        f"came{f': {markdown(str(clock))}' if clock else ''}"
    )
    yield from _calibration(summary.get("calibration"))


def _calibration(found: Row | None) -> Iterator[str]:
    if not found:
        yield "- **calibration**: none of this machine; `voxmeter calibrate` measures its error"
        return
    good = "within its limits" if found.get("good") is True else "not within its limits"
    when = markdown(str(found.get("measured_at") or "at an unknown time"))
    yield f"- **calibration**: {when}, {good}"
    heads = ["sessions at once", "mark", "n", "error p50, ms", "p99, ms", "largest, ms"]
    rows = [
        [
            *(markdown(str(one.get(name))) for name in ("sessions", "mark", "n")),
            *(_ms(one.get(name)) for name in ("p50_ms", "p99_abs_ms", "max_abs_ms")),
        ]
        for one in found.get("errors") or []
        if isinstance(one, Mapping)
    ]
    yield from table(heads, rows) if rows else ()


def _ms(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else "-"

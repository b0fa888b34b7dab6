"""How a run was measured, for `report.md`: versions, clips, machine, configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from voxmeter.client.escape import markdown
from voxmeter.client.markdown_table import table
from voxmeter.client.trial_lines import TrialLine

Summary = Mapping[str, Any]


class Clips:
    """Hashes of the clips, when they were played and what read the replies, trial by trial."""

    def __init__(self) -> None:
        self.hashes: set[str] = set()
        self.first, self.last = "", ""
        self.recognisers: set[str] = set()

    def counted(self, lines: Iterable[TrialLine]) -> Iterator[TrialLine]:
        """Yield the trials as they came, and take note of each."""
        for line in lines:
            self.hashes.add(str((line.trial.get("clip") or {}).get("sha256") or ""))
            started = str(line.trial.get("started_at") or "")
            self.first = min(self.first or started, started)
            self.last = max(self.last, started)
            self.recognisers.add(line.recogniser)
            yield line

    def digest(self) -> str:
        """Return one hash for all clips."""
        return hashlib.sha256("\n".join(sorted(self.hashes - {""})).encode()).hexdigest()[:16]


def lines(summary: Summary, run: Mapping[str, Any], clips: Clips) -> Iterator[str]:
    """Yield the section on how a run was measured.

    Args:
        summary: Content of `summary.json`.
        run: Content of `run.json`.
        clips: Noted of its trials.
    """
    audit = summary["audit"]
    trials = sum(sum(cell["status"].values()) for cell in summary["cells"])
    facts = {
        "voxmeter": run.get("version") or run.get("voxmeter"),
        "trials": f"{trials}, from {clips.first} to {clips.last}",
        "clips": f"{len(clips.hashes - {''})}, hash of their hashes {clips.digest()}",
        "replies read by": ", ".join(sorted(clips.recognisers - {""})) or "no recogniser",
        "hosts": ", ".join(audit["hosts"]),
        "machine": run.get("machine"),
        **{name: run[name] for name in sorted(run) if name not in _TOLD},
    }
    yield ""
    yield "## How this was measured"
    yield from table(["what", "value"], ([name, _fact(value)] for name, value in facts.items()))
    yield ""
    yield "Configuration:"
    yield ""
    config = json.dumps(run.get("config") or {}, indent=1, ensure_ascii=True).replace("`", "'")
    yield "```json"
    yield from config.splitlines()
    yield "```"


_TOLD = frozenset(
    {"schema", "run", "version", "voxmeter", "config", "machine", "calibration", "items"}
    | {"planned", "planned_whole"}
)


def _fact(value: object) -> str:
    if isinstance(value, str):
        return markdown(value, 600)
    return markdown(json.dumps(value, ensure_ascii=True), 1500)

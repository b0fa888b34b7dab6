"""One side of a comparison: a run's columns, and what says whether its figures may be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from voxmeter.client.cell_metrics import answer_values
from voxmeter.client.columns import SCORED, Codes, Columns, Floats, Names, read_columns, read_items
from voxmeter.client.judge_summary import Json, Mean, judge_figure
from voxmeter.client.planned import planned_cells
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.transcripts import known_transcripts
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.definitions import LATENCY, SPEECH, is_judged
from voxmeter.scoring.stats import Indices

Row = Mapping[str, Any]
Cell = tuple[str, str, str]
Item = tuple[str, str]


class Asked(NamedTuple):
    """One turn of a cell: which item, trial and turn."""

    item: Item
    trial: int
    turn: int | None


@dataclass(slots=True)
class Side:
    """A run, read for a comparison.

    Attributes:
        place: Its folder, for messages.
        run: Content of `run.json`.
        columns: All its trials.
        items: Suite and name of each item, by its code in `columns.item`.
        contents: A hash of what each item asks and takes for right.
        sources: The cluster of each item.
        clips: SHA-256 of the clip of each turn, by cell.
        versions: Versions of the rules behind each metric's newest rows, by cell and metric.
        recognisers: Models with settings behind the transcripts, by cell.
    """

    place: str
    run: Row
    columns: Columns
    items: list[Item]
    contents: dict[Item, bytes]
    sources: dict[Item, str]
    clips: dict[Cell, dict[Asked, str]]
    versions: dict[tuple[Cell, str], set[str]]
    recognisers: dict[Cell, set[str]]
    _samples: dict[Cell, dict[str, tuple[Indices, Floats]]] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(((self.run.get("config") or {}).get("run") or {}).get("seed", 0))

    @property
    def pacing(self) -> str:
        """How questions were sent."""
        return str(((self.run.get("config") or {}).get("run") or {}).get("pacing", "real-time"))

    @property
    def host(self) -> str | None:
        """The machine that it ran on; None where the run does not say."""
        told = (self.run.get("machine") or {}).get("host")
        seen = {host for host in self.columns.hosts.texts if host}
        return ", ".join(sorted(seen)) or (str(told) if told else None)

    def kinds(self, cell: Cell) -> set[str]:
        """Return the latency kinds of a cell's trials."""
        inside = self.columns.cell == self.columns.cells.index(cell)
        names = self.columns.latency_kinds.texts
        return {names[code] for code in np.unique(self.columns.latency_kind[inside])} - {""}

    def rows(self, cell: Cell) -> Indices:
        """Return the positions of a cell's trials without warm-up turns."""
        inside = self.columns.cell == self.columns.cells.index(cell)
        return np.flatnonzero(inside & ~self.columns.warmup)

    def left_out(self, cell: Cell) -> dict[str, int]:
        """Count what is in no latency: warm-up turns, and trials that this machine spoilt."""
        inside = self.columns.cell == self.columns.cells.index(cell)
        spoilt = inside & ~self.columns.warmup & ~self.columns.latency_valid
        return {
            "warmup": int(np.count_nonzero(inside & self.columns.warmup)),
            "latency_invalid": int(np.count_nonzero(spoilt)),
        }

    def samples(self, cell: Cell) -> dict[str, tuple[Indices, Floats]]:
        """Return of each metric of a cell the trials that its figure stands on, with values."""
        if cell not in self._samples:
            while len(self._samples) > 1:  # two endpoints of one run are two cells at a time
                del self._samples[next(iter(self._samples))]
            self._samples[cell] = _samples(self.columns, self.rows(cell))
        return self._samples[cell]

    def has(self, cell: Cell, metric: str) -> bool:
        """Return whether any trial of a cell has a metric, one that this machine spoilt included.

        What was measured and thrown out was to be compared.
        """
        measured = self.columns.column(metric).state[self.rows(cell)] == SCORED
        return bool(np.any(measured)) or metric in self.samples(cell)

    def unfinished(self) -> tuple[int, int]:
        """Return how many of the planned trials have no row, and how many were planned."""
        planned = planned_cells(self.run, self.columns.suite_sizes)
        codes = {cell: code for code, cell in enumerate(self.columns.cells)}
        counted = self.columns.cell[~self.columns.warmup]
        missing = sum(
            max(0, count - int(np.count_nonzero(counted == codes.get(cell, -1))))
            for cell, count in planned.items()
        )
        return missing, sum(planned.values())

    def not_held(self) -> int:
        """Return how many trials have a row and are asked again when the run is resumed."""
        texts = self.columns.statuses.texts
        codes = [code for code, name in enumerate(texts) if name in {"disconnected", "refused"}]
        return int(np.count_nonzero(np.isin(self.columns.status, codes) & ~self.columns.warmup))


def read_side(folder: RunFolder) -> Side:
    """Read a run for a comparison.

    Raises:
        UserError: If a file of the folder is damaged, or it has no trials at all.
    """
    contents: dict[Item, bytes] = {}
    sources: dict[Item, str] = {}
    infos = read_items(_noting(folder.items(), contents, sources))
    notes = _Notes()
    columns = read_columns(
        infos, notes.trials(folder.newest_trials()), notes.scores(folder.rows("scores"))
    )
    if not notes.cells:
        raise UserError(
            str(folder.path),
            "has no trials yet",
            "finish it: voxmeter run --resume " + str(folder.path),
        )
    recognisers: dict[Cell, set[str]] = {}
    for key, heard in known_transcripts(folder).items():
        index = notes.index.get(key)
        if index is not None and notes.attempts[index] == heard.attempt:
            recognisers.setdefault(notes.cells[index], set()).add(heard.made_with)
    return Side(
        place=str(folder.path),
        run=folder.run,
        columns=columns,
        items=list(notes.items),
        contents=contents,
        sources=sources,
        clips=notes.clips,
        versions=notes.newest_versions(),
        recognisers=recognisers,
    )


def _noting(
    rows: Iterable[Row], contents: dict[Item, bytes], sources: dict[Item, str]
) -> Iterator[Row]:
    for row in rows:
        item = str(row["suite"]), str(row["item"])
        asked = {name: row.get(name) for name in _CONTENT}
        text = json.dumps(asked, sort_keys=True)
        contents[item] = hashlib.blake2b(text.encode(), digest_size=16).digest()
        sources[item] = str(row.get("cluster") or item[1])
        yield row


_CONTENT = ("kind", "question", "reference", "options", "language", "question_via", "shots")
"""What makes an item the same question with the same right answer."""


@dataclass(slots=True)
class _Notes:
    """What passes by while the columns are read, and is not in them."""

    items: dict[Item, int] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    clips: dict[Cell, dict[Asked, str]] = field(default_factory=dict)
    texts: Names = field(default_factory=Names)
    version: dict[str, Codes] = field(default_factory=dict)
    known: dict[Item, Item] = field(default_factory=dict)

    def trials(self, rows: Iterable[Row]) -> Iterator[Row]:
        places: dict[Cell, Cell] = {}
        for row in rows:
            cell = (str(row["endpoint"]), str(row["suite"]), str(row["condition"]))
            cell = places.setdefault(cell, cell)
            item = (cell[1], str(row["item"]))
            self.items.setdefault(item, len(self.items))
            item = self.known.setdefault(item, item)
            self.index[row["key"]] = len(self.cells)
            self.cells.append(cell)
            self.attempts.append(int(row["attempt"]))
            sha = (row.get("clip") or {}).get("sha256")
            if sha and not row.get("warmup"):
                asked = Asked(item, int(row["trial"]), row.get("turn"))
                text = self.texts.texts[self.texts.code(str(sha))]
                self.clips.setdefault(cell, {})[asked] = text
            yield row

    def scores(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            index = self.index.get(row["key"])
            if index is not None and self.attempts[index] == row.get("attempt"):
                if row["metric"] not in self.version:
                    self.version[row["metric"]] = np.full(len(self.cells), -1, np.int32)
                self.version[row["metric"]][index] = self.texts.code(str(row["version"]))
            yield row

    def newest_versions(self) -> dict[tuple[Cell, str], set[str]]:
        found: dict[tuple[Cell, str], set[str]] = {}
        for metric, codes in self.version.items():
            for cell, code in set(zip(self.cells, codes.tolist(), strict=True)):
                if code >= 0:
                    found.setdefault((cell, metric), set()).add(self.texts.texts[code])
        return found


def _keeping(found: dict[str, tuple[Indices, Floats]]) -> Mean:
    """Return a "mean" that keeps what a judge's figure is made of: its first call is the figure."""

    def keep(_columns: Columns, name: str, rows: Indices, values: Floats, _seed: int) -> Json:
        found.setdefault(name, (rows, values))
        return dict.fromkeys(("value", "low", "high", "n"))

    return keep


def _samples(columns: Columns, rows: Indices) -> dict[str, tuple[Indices, Floats]]:
    """Return what each figure of `summary.json` stands on, by the same choice of trials."""
    found = {
        name: (kept, values) for name, (kept, values, _) in answer_values(columns, rows).items()
    }
    for name in dict.fromkeys(["speech_text_disagreement", *SPEECH, *sorted(columns.scores)]):
        if name in LATENCY or name in found:
            continue
        if is_judged(name):
            judge_figure(columns, rows, name, _keeping(found), 0)
        else:
            kept = rows[columns.column(name).state[rows] == SCORED]
            found[name] = kept, columns.column(name).value[kept]
    for name in LATENCY:
        kept = rows[columns.latency_valid[rows] & columns.with_reply[rows]]
        kept = kept[columns.column(name).state[kept] == SCORED]
        found[name] = kept, columns.column(name).value[kept]
    return {name: one for name, one in found.items() if len(one[0])}

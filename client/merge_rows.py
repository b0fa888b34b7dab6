"""Rows and files of several run folders in one: every attempt once, the newest of a key last."""

from __future__ import annotations

import errno
import heapq
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxmeter.client.jsonlines import Row, disk, dump, read
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import FINISHED, AttemptPaths, RowFile, RunFolder
from voxmeter.endpoints.errors import UserError

_UNLINKED = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES, errno.ENOSYS}

_OF_ATTEMPTS: Sequence[RowFile] = ("trials", "transcripts", "scores")

Renumbered = Mapping[tuple[int, str, int], int | None]
"""By part, key and attempt of a trial that several parts have: its attempt in the whole, None for
what another part has as well."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes:
        rows: Attempts.
        counted: Trials that are no warm-up turns, each once.
        files: Logs and sounds.
        twice: Trials that several parts had; the newest finished attempt counts.
    """

    rows: int = 0
    counted: int = 0
    files: int = 0
    twice: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    part: int
    attempt: int
    started_at: str
    tag: str
    finished: bool


def copy_rows(parts: Sequence[RunFolder], work: Path) -> Copied:
    """Write the rows of all parts, and link or copy what their attempts left.

    Args:
        parts: Open for reading; not written to meanwhile.
        work: An empty folder.

    Raises:
        UserError: If a row of a part is damaged, or the disk is full.
    """
    several = _of_several(parts)
    renumbered = _renumbered(parts, several)
    whole = RunFolder(work, {}, None, Redactor())  # for its paths alone
    copied, counted = Copied(twice=len(several)), set[str]()

    def place(part: int, old: Row, new: Row) -> None:
        nonlocal copied
        files = _place(parts[part], parts[part].attempt_paths(old), whole.attempt_paths(new))
        copied = replace(copied, rows=copied.rows + 1, files=copied.files + files)
        if not new.get("warmup"):
            counted.add(new["key"])

    for name in _OF_ATTEMPTS:
        rows = _in_time(parts) if name == "trials" else _in_turn(parts, name)
        _write(work / f"{name}.jsonl", rows, renumbered, place if name == "trials" else None)
    _append_all(parts, work)
    return replace(copied, counted=len(counted))


def _of_several(parts: Sequence[RunFolder]) -> set[str]:
    """Return the keys that more than one part has."""
    first: dict[str, int] = {}
    several: set[str] = set()
    for number, part in enumerate(parts):
        for key in part.newest():
            if first.setdefault(key, number) != number:
                several.add(key)
    return several


def _renumbered(parts: Sequence[RunFolder], several: set[str]) -> Renumbered:
    """Return new attempts of the trials that several parts have.

    They count in the order in which they were made, but that the newest finished one comes last:
    an attempt that could not be held takes no result away.
    """
    entries: dict[str, list[_Entry]] = {}
    for number, part in enumerate(parts):
        for row in part.rows("trials") if several else ():
            if row["key"] in several:
                entries.setdefault(row["key"], []).append(_entry(number, row))
    found: dict[tuple[int, str, int], int | None] = {}
    for key, made in entries.items():
        ordered = sorted(made, key=lambda one: (one.started_at, one.attempt, one.part))
        found |= {(one.part, key, one.attempt): None for one in ordered}
        own = _without_copies(ordered)
        last = max((n for n, one in enumerate(own) if one.finished), default=len(own) - 1)
        counting = [*own[:last], *own[last + 1 :], own[last]]
        found |= {(one.part, key, one.attempt): n for n, one in enumerate(counting, start=1)}
    return found


def _without_copies(ordered: Sequence[_Entry]) -> list[_Entry]:
    """Return attempts without those that an earlier part has as well: a part may be a copy."""
    known: dict[tuple[int, str, str], int] = {}
    return [
        one
        for one in ordered
        if known.setdefault((one.attempt, one.started_at, one.tag), one.part) == one.part
    ]


def _entry(part: int, row: Row) -> _Entry:
    return _Entry(
        part,
        int(row["attempt"]),
        str(row.get("started_at") or ""),
        str(row.get("session_tag") or ""),
        row["status"] in FINISHED,
    )


def _in_time(parts: Sequence[RunFolder]) -> Iterator[tuple[int, Row]]:
    """Yield the attempts of all parts as they were made side by side; each part's own in order."""

    def numbered(number: int, rows: Iterable[Row]) -> Iterator[tuple[str, int, int, Row]]:
        for place, row in enumerate(rows):
            yield str(row.get("started_at") or ""), number, place, row

    streams = [numbered(number, part.placed()) for number, part in enumerate(parts)]
    for _, number, _, row in heapq.merge(*streams, key=lambda one: one[:3]):
        yield number, row


def _in_turn(parts: Sequence[RunFolder], name: RowFile) -> Iterator[tuple[int, Row]]:
    for number, part in enumerate(parts):
        for place, row in enumerate(part.rows(name), start=1):
            if not isinstance(row["key"], str) or not isinstance(row["attempt"], int):
                file = f"{part.path / name}.jsonl: row {place}"
                found = "its key or attempt is of another kind"
                raise UserError(file, found, "restore the row or delete it")
            yield number, row


def _write(
    path: Path,
    rows: Iterable[tuple[int, Row]],
    renumbered: Renumbered,
    place: Callable[[int, Row, Row], None] | None,
) -> None:
    """Write one file; rows of trials that several parts have stand at its end, newest last."""
    late: list[Row] = []
    with disk(path), path.open("wb") as stream:
        for part, row in rows:
            known = (part, row["key"], row["attempt"])
            attempt = renumbered.get(known, row["attempt"])
            if attempt is None:
                continue
            new = {**row, "attempt": attempt}
            if place is not None:
                place(part, row, new)
            if known in renumbered:
                late.append(new)
            else:
                stream.write(_line(new))
        for new in sorted(late, key=_attempt):
            stream.write(_line(new))


def _append_all(parts: Sequence[RunFolder], work: Path) -> None:
    """Write what is told of the workers of parts that a cluster went on with."""
    path = work / "workers.jsonl"
    had = [part for part in parts if (part.path / path.name).is_file()]
    if had:
        with disk(path), path.open("wb") as stream:
            stream.writelines(_line(row) for part in had for row in read(part.path / path.name))


def _attempt(row: Row) -> Any:  # noqa: ANN401 - outside data, of one kind
    return row["attempt"]


def _line(row: Row) -> bytes:
    return dump(row).encode("utf-8", "backslashreplace")


def _place(part: RunFolder, old: AttemptPaths, new: AttemptPaths) -> int:
    """Link or copy the files of one attempt; return how many it had."""
    pairs = [
        (old.events, new.events),
        (old.audio, new.audio),
        (old.reply, new.reply),
        (old.stream, new.stream),
    ]
    there = [(source, target) for source, target in pairs if source.is_file()]
    for source, target in there:
        if part.leads_out(source):
            found = "leads out of the run folder, through a link"
            raise UserError(str(source), found, "put there what it leads to, or delete it")
        with disk(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(source, target)
    return len(there)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the disk is another one; it never changes."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _UNLINKED:
            raise
        shutil.copyfile(source, target)

"""The run folder: the only truth about a run, readable by anyone, written by one process at a time.

Its files are those of the contract. A trial's log and audio are written first, its row last: a row
that is there can be relied on, and what a killed attempt left behind is overwritten or removed.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Self, get_args

from voxmeter.client import keys, row_shapes
from voxmeter.client.clock import utc_now
from voxmeter.client.folder_lock import locked
from voxmeter.client.jsonlines import Appender, Row, disk, dump, read
from voxmeter.client.redaction import Redactor
from voxmeter.endpoints.errors import UserError

SCHEMA = 1
FINISHED = frozenset({"ok", "no_reply", "timeout", "truncated", "protocol_error"})
"""Statuses that `--resume` leaves alone; transport failures and bad clips are tried again."""

RowFile = Literal["trials", "transcripts", "scores", "workers"]

_PARTIAL = ".partial"
_NEEDED: Mapping[RowFile, frozenset[str]] = {
    "trials": frozenset({"key", "attempt", "status"}),
    "transcripts": frozenset({"key", "attempt", "text", "model_hash", "settings"}),
    "scores": frozenset({"key", "attempt", "metric", "version", "value", "unscored", "detail"}),
    "workers": frozenset({"worker", "host", "what"}),
}
_PLACED = _NEEDED["trials"] | {"endpoint", "suite", "item", "condition", "trial"}
_ITEM = frozenset({"suite", "item"})


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest attempt at one key.

    Attributes:
        attempt: Its number, from 1.
        finished: Whether a resumed run leaves it as it is.
    """

    attempt: int
    finished: bool


@dataclass(frozen=True, slots=True)
class AttemptPaths:
    """Where one attempt's raw log, two-channel audio and ungapped reply lie, written or not."""

    events: Path
    audio: Path
    reply: Path

    @property
    def stream(self) -> Path:
        """All that the endpoint sent, without gaps; written where that is more than the reply."""
        return self.reply.with_name(self.reply.name.removesuffix(".reply.flac") + ".stream.flac")


def folder_name(run: str, now: datetime, suffix: str) -> str:
    """Return `<run name>-<UTC yyyymmdd-hhmmss>-<suffix>`, the run's name made safe for a disk."""
    return f"{keys.part(run)}-{now:%Y%m%d-%H%M%S}-{suffix}"


def check_place(parent: Path) -> None:
    """See to it that a run folder may be made under `parent`, before anybody waits or speaks.

    Raises:
        UserError: If it is no folder, or may not be written.
    """
    there = next(path for path in (parent, *parent.absolute().parents) if os.path.lexists(path))
    with disk(parent):
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))


class RunFolder:
    """One run folder, opened for reading, or for reading and writing (`writable`).

    Everything written passes through the redactor. Appending blocks for one write: call it off the
    event loop.
    """

    def __init__(self, path: Path, run: Row, lock: IO[str] | None, redactor: Redactor) -> None:
        self.path = path
        self.run = run
        self._lock = lock
        self._redactor = redactor
        self._appenders: dict[str, Appender] = {}

    @classmethod
    def create(
        cls, parent: Path, name: str, run: Mapping[str, Any], redactor: Redactor | None = None
    ) -> Self:
        """Make a new folder under `parent` with its `run.json`, and lock it.

        Args:
            parent: Made when missing.
            name: The run's name; the folder's begins with it.
            run: Content of `run.json`; `schema` and `run` (the folder's name) are added.
            redactor: Knows the secrets of this run.

        Raises:
            UserError: If the place may not be written, or the disk is full.
        """
        redactor = redactor or Redactor()
        with disk(parent):
            parent.mkdir(parents=True, exist_ok=True)
            path = _new_folder(parent, redactor.text(name))
        lock = locked(path)
        content = redactor.json({"schema": SCHEMA, "run": path.name, **run})
        assert isinstance(content, dict)  # noqa: S101 - an object stays an object
        folder = cls(path, content, lock, redactor)
        with folder._closed_on_error():
            folder.replace("run.json", json.dumps(content, ensure_ascii=False, indent=2) + "\n")
        return folder

    @classmethod
    def open(cls, path: Path, *, write: bool = False, redactor: Redactor | None = None) -> Self:
        """Open a folder that is there.

        Args:
            path: The run folder.
            write: Lock it, so that no other process writes to it, and mend what a killed writer
                left: torn last lines are cut with a warning, half-written files removed.
            redactor: Knows the secrets of this run.

        Raises:
            UserError: If it is no run folder, one of a newer voxmeter, or in use.
        """
        run = _read_run(path)
        lock = locked(path) if write else None
        folder = cls(path, run, lock, redactor or Redactor())
        if write:
            with folder._closed_on_error():
                folder._tidy()
        return folder

    @property
    def writable(self) -> bool:
        """Whether this process holds the folder's lock."""
        return self._lock is not None

    def close(self) -> None:
        """Close all files and let other processes write; closing twice is allowed."""
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()
        if self._lock is not None:
            with disk(self.path):
                shutil.rmtree(self.path / _PARTIAL, ignore_errors=True)
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Reading

    def rows(self, name: RowFile) -> Iterator[Row]:
        """Yield the rows of a file that is appended to (`trials.jsonl`, …), oldest first.

        Raises:
            UserError: For a line that is not a JSON object, or lacks a field that readers need,
                with file and line number.
        """
        needed, problem = _NEEDED[name], row_shapes.PROBLEMS[name]
        return read(self.path / f"{name}.jsonl", needed=needed, problem=problem)

    def items(self) -> Iterator[Row]:
        """Yield the rows of `items.jsonl`; none while the run has not written them.

        Raises:
            UserError: As `rows`.
        """
        return read(self.path / "items.jsonl", needed=_ITEM, problem=row_shapes.PROBLEMS["items"])

    def newest(self) -> dict[str, Newest]:
        """Return the newest attempt at each key that has one, in the order of first attempts.

        Raises:
            UserError: If a row of `trials.jsonl` lacks its key, attempt or status.
        """
        newest: dict[str, Newest] = {}
        for key, attempt, status in self._attempts():
            if key not in newest or attempt >= newest[key].attempt:
                newest[key] = Newest(attempt, status in FINISHED)
        return newest

    def newest_trials(self) -> Iterator[Row]:
        """Yield each key's newest row of `trials.jsonl`, in the order of the file.

        Reads the file twice, so that memory holds one row at a time.
        """
        last: dict[str, tuple[int, int]] = {}
        for number, (key, attempt, _) in enumerate(self._attempts()):
            if key not in last or attempt >= last[key][0]:
                last[key] = attempt, number
        for number, row in enumerate(self.placed()):
            found = last.get(row["key"])
            if found is not None and found[1] == number:
                yield row

    def _attempts(self) -> Iterator[tuple[str, int, str]]:
        for row in self.rows("trials"):
            yield row["key"], row["attempt"], row["status"]

    def placed(self) -> Iterator[Row]:
        """Yield the rows of `trials.jsonl`, each with all that its files are found by."""
        problem = row_shapes.PROBLEMS["trials"]
        return read(self.path / "trials.jsonl", needed=_PLACED, problem=problem)

    def attempt_paths(self, trial: Mapping[str, Any]) -> AttemptPaths:
        """Return where the files of one attempt lie.

        Args:
            trial: A row of `trials.jsonl`: `endpoint, suite, condition, item, trial, attempt` and,
                in an item of several turns, `turn`.
        """
        cell = keys.cell(trial["endpoint"], trial["suite"], trial["condition"])
        stem = keys.file(trial["item"], trial["trial"], trial["attempt"], trial.get("turn"))
        return AttemptPaths(
            events=self.path / "events" / cell / f"{stem}.jsonl",
            audio=self.path / "audio" / cell / f"{stem}.flac",
            reply=self.path / "audio" / cell / f"{stem}.reply.flac",
        )

    def leads_out(self, path: Path) -> bool:
        """Return whether a path of the folder is one of elsewhere, through a link or its name."""
        try:
            root = os.path.realpath(self.path)
            return os.path.commonpath([root, os.path.realpath(path)]) != root
        except (OSError, ValueError):  # a name too long, or with a zero byte
            return True

    # Writing

    def append(self, name: RowFile, row: Mapping[str, Any]) -> None:
        """Append one row: one whole line in one write, there even if the process dies next.

        Raises:
            UserError: If the disk is full; nothing of the row stays, and the run is resumable.
            ValueError: If a number is not finite.
        """
        self._must_be_writable()
        if name not in self._appenders:
            self._appenders[name] = Appender(self.path / f"{name}.jsonl")
        content = self._redactor.json(dict(row))
        assert isinstance(content, dict)  # noqa: S101 - an object stays an object
        self._appenders[name].append(content)

    def write_items(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Write `items.jsonl`, whole or not at all.

        Raises:
            UserError: If the disk is full, or if two items would share their files on this disk.
        """
        seen: dict[str, tuple[str, str]] = {}
        folds = self._ignores_case()
        with self.replacing(self.path / "items.jsonl") as partial, partial.open("wb") as stream:
            for item in items:
                if folds:
                    _refuse_twin(seen, item["suite"], item["item"])
                line = self._redactor.text(dump(item))
                stream.write(line.encode("utf-8", "backslashreplace"))

    def replace(self, name: str, text: str) -> None:
        """Write a whole file of the folder (`summary.json`, `report.md`): the old one or the new.

        Raises:
            UserError: If the disk is full; the old file stays.
        """
        self.write(self.path / name, text)

    def write(self, path: Path, text: str) -> None:
        """Write a text file inside the folder, whole or not at all; its folder is made.

        Raises:
            UserError: If the disk is full.
        """
        with self.replacing(path) as partial:
            partial.write_bytes(self._redactor.text(text).encode("utf-8", "backslashreplace"))

    @contextmanager
    def replacing(self, path: Path) -> Iterator[Path]:
        """Give a path to write to; it takes the name `path` when the block ends without an error.

        Raises:
            UserError: If the disk is full; a file that was there stays.
        """
        self._must_be_writable()
        partial = self.path / _PARTIAL / f"{secrets.token_hex(4)}-{path.name}"
        with disk(path):
            partial.parent.mkdir(exist_ok=True)
            try:
                yield partial
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    def remove_orphans(self) -> int:
        """Remove logs and audio of attempts that have no row: their process was killed.

        Returns:
            How many files were removed.
        """
        self._must_be_writable()
        known = {path for row in self.placed() for path in _names(self.attempt_paths(row))}
        removed = 0
        with disk(self.path):
            for kind in ("events", "audio"):
                for cell in _entries(self.path / kind):
                    for entry in _entries(cell):
                        if str(entry) not in known:
                            entry.unlink()
                            removed += 1
        return removed

    def _tidy(self) -> None:
        """Cut torn tails and clear half-written files, so that what is there is whole."""
        with disk(self.path):
            shutil.rmtree(self.path / _PARTIAL, ignore_errors=True)
        for name in get_args(RowFile):
            path = self.path / f"{name}.jsonl"
            if path.exists():
                self._appenders[name] = Appender(path)
                self._appenders[name].open()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Let go of the lock when the block fails: nobody else can."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _must_be_writable(self) -> None:
        if self._lock is None:
            raise RuntimeError(f"{self.path} was opened for reading")

    def _ignores_case(self) -> bool:
        return (self.path / "RUN.JSON").exists()


def _names(paths: AttemptPaths) -> tuple[str, ...]:
    return str(paths.events), str(paths.audio), str(paths.reply), str(paths.stream)


def _entries(folder: Path) -> list[Path]:
    """Return what lies in a folder; what a link leads to is not this run's to remove."""
    return list(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def _refuse_twin(seen: dict[str, tuple[str, str]], suite: str, item: str) -> None:
    folded = keys.key("", suite, item, "", 0).casefold()
    other = seen.setdefault(folded, (suite, item))
    if other != (suite, item):
        raise UserError(
            f"suite {suite}",
            f"items {other[1]!r} and {item!r} differ in upper and lower case alone",
            "rename one, or put the run on a disk that tells them apart (--out)",
        )


def _new_folder(parent: Path, name: str) -> Path:
    for _ in range(100):
        path = parent / folder_name(name, utc_now(), secrets.token_hex(2))
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(str(parent), "no free name for a run folder", "choose another --out")


def _read_run(path: Path) -> Row:
    place = str(path)
    if not path.exists():
        raise UserError(place, "no such folder", "give the path that `voxmeter run` printed")
    file = path / "run.json"
    if not file.is_file():
        raise UserError(place, "not a run folder: it has no run.json", "give a run's own folder")
    try:
        with disk(file):
            run = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        run = None
    if not isinstance(run, dict) or type(run.get("schema")) is not int:
        raise UserError(str(file), "is damaged: no JSON object with a schema", "restore the file")
    if run["schema"] > SCHEMA:
        raise UserError(
            str(file),
            f"schema {run['schema']} is newer than {SCHEMA}, the newest known here",
            "pip install --upgrade voxmeter",
        )
    found = row_shapes.run_problem(run)
    if found is not None:
        raise UserError(str(file), f"is damaged: {found}", "restore the file")
    return run

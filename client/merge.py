"""Joins the parts of a sharded run (`--shard I/N`) into one run folder, whole or not at all.

Parts must be of one run: the same configuration, version, suites, seeds and selection but for the
shard. Nothing of a part is changed but its `.lock`, which is held meanwhile; a part that is still
being written is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxmeter.client.folder_lock import kept_from_writers, locked
from voxmeter.client.jsonlines import Row, disk
from voxmeter.client.merge_rows import Copied, copy_rows
from voxmeter.client.runfolder import RunFolder
from voxmeter.endpoints.errors import UserError

_SAME = (
    *("schema", "voxmeter", "config", "seeds", "suites", "aggregation", "prompts", "extractor"),
    *("instructions", "planned_whole"),
)
_OF_ONE_MACHINE = ("machine", "load_average", "packages", "calibration")
_CURE = "merge parts of one bench, started with the same options and the same voxmeter"
_MOST_TOLD = 4


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a merge.

    Attributes:
        path: The new run folder.
        of: Into how many parts the run was cut.
        missing: Numbers of the parts that were not given.
        planned: Counted trials of the whole run.
        had: How many of them have a row.
        copied: What was copied, and what was there twice.
    """

    path: Path
    of: int
    missing: tuple[int, ...]
    planned: int
    had: int
    copied: Copied


@dataclass(frozen=True, slots=True)
class _Part:
    folder: RunFolder
    numbers: tuple[int, ...]
    of: int


def merge(paths: Sequence[Path], out: Path) -> Merged:
    """Join parts; `out` is there when this returns, and not before.

    Args:
        paths: Run folders of parts, or of earlier merges of some.
        out: The new run folder; must not exist.

    Raises:
        UserError: If the parts do not belong together, one of them is damaged or still written
            to, `out` exists, or the disk is full.
    """
    if out.exists() or out.is_symlink():
        raise UserError(str(out), "is there already", "give -o the name of a new folder")
    _refuse_twice(paths)
    with ExitStack() as stack:
        parts = [_opened(path, stack) for path in paths]
        _refuse_unlike(parts)
        with _whole_or_nothing(out) as work:
            copied = copy_rows([part.folder for part in parts], work)
            _copy_items(parts[0].folder.path, work)
            record = _record(parts, out.name)
            with disk(out):
                text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
                (work / "run.json").write_text(text, encoding="utf-8", errors="backslashreplace")
    numbers = {number for part in parts for number in part.numbers}
    of = parts[0].of
    missing = tuple(number for number in range(1, of + 1) if number not in numbers)
    planned = sum(int(cell["planned"]) for cell in record["planned"])
    return Merged(out, of, missing, planned, copied.counted, copied)


def _refuse_twice(paths: Sequence[Path]) -> None:
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise UserError(str(path), "is given twice", "name every part once")
        seen.add(path.resolve())


def _opened(path: Path, stack: ExitStack) -> _Part:
    folder = stack.enter_context(RunFolder.open(path))
    selection, parts = folder.run.get("selection") or {}, folder.run.get("parts")
    match selection, parts:
        case {"shard": [int(number), int(of)]}, _:
            numbers: tuple[int, ...] = (number,)
        case _, {"of": int(of), "had": list(had)}:
            numbers = tuple(int(one) for one in had)
        case _:
            raise UserError(
                str(path), "is no part of a run", "merge runs that were started with --shard I/N"
            )
    held = kept_from_writers(path)
    if held is not None:
        stack.callback(held.close)
    if not (path / "items.jsonl").is_file():
        cure = f"voxmeter run --resume {path}, or merge the others"
        raise UserError(str(path), "ended before it had its items", cure)
    return _Part(folder, numbers, of)


def _refuse_unlike(parts: Sequence[_Part]) -> None:
    first = parts[0]
    known, items = _comparable(first), _hash(first.folder.path / "items.jsonl")
    for part in parts[1:]:
        found = _comparable(part)
        unlike = [name for name in known | found if known.get(name) != found.get(name)]
        told = [f"{name} is {_said(found, name)}, not {_said(known, name)}" for name in unlike]
        if not told and _hash(part.folder.path / "items.jsonl") != items:
            told = ["items.jsonl has other items"]
        if told:
            more = f" and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
            differs = "; ".join(told[:_MOST_TOLD]) + more
            place = str(part.folder.path)
            raise UserError(place, f"is of another run than {first.folder.path}: {differs}", _CURE)


def _comparable(part: _Part) -> dict[str, str]:
    """Return what all parts must have alike, flat: name to value as JSON."""
    run = part.folder.run
    selection = run.get("selection") or {}
    config = dict(run.get("config") or {})
    config["run"] = {
        name: value
        for name, value in (config.get("run") or {}).items()
        if name not in {"out", "name"}
    }
    whole = {name: run.get(name) for name in _SAME} | {
        "config": config,
        "selection": {name: selection.get(name) for name in ("limit", "only")},
        "parts": part.of,
        "planned_whole": run.get("planned_whole") or "not told",
    }
    return dict(_flat("", whole))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every value below one; of a path on this machine only what it leads to."""
    match value:
        case Mapping() if value:
            for key, inner in value.items():
                yield from _flat(f"{name}.{key}" if name else str(key), inner)
        case list() if value:
            for number, inner in enumerate(value):
                yield from _flat(f"{name}[{number}]", inner)
        case str() if value.startswith("/"):
            yield name, json.dumps(Path(value).name)
        case _:
            yield name, json.dumps(value)


def _said(found: Mapping[str, str], name: str) -> str:
    text = found.get(name, "absent")
    return text if len(text) <= 60 else f"{text[:57]}..."


def _hash(path: Path) -> str:
    with disk(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy_items(source: Path, work: Path) -> None:
    with disk(work):
        shutil.copyfile(source / "items.jsonl", work / "items.jsonl")


def _record(parts: Sequence[_Part], name: str) -> Row:
    """Return the content of the new `run.json`."""
    first = parts[0].folder.run
    record: Row = {**first, "run": name, "planned": _planned(parts)}
    record["selection"] = {**(first.get("selection") or {}), "shard": None}
    record["parts"] = {
        "of": parts[0].of,
        "had": sorted({number for part in parts for number in part.numbers}),
        "runs": [one for part in parts for one in _runs(part)],
    }
    hosts = {str((one.get("machine") or {}).get("host")) for one in record["parts"]["runs"]}
    if len(hosts) > 1:  # no machine's own error is that of the others
        record["calibration"] = {}
    return record


def _planned(parts: Sequence[_Part]) -> list[dict[str, Any]]:
    whole = parts[0].folder.run.get("planned_whole")
    if isinstance(whole, list):
        return [dict(cell) for cell in whole]
    sums: dict[tuple[str, str, str], int] = {}
    for part in parts:
        for cell in part.folder.run.get("planned") or ():
            names = (cell["endpoint"], cell["suite"], cell["condition"])
            sums[names] = sums.get(names, 0) + int(cell["planned"])
    heads = ("endpoint", "suite", "condition")
    return [dict(zip(heads, names, strict=True)) | {"planned": n} for names, n in sums.items()]


def _runs(part: _Part) -> list[Row]:
    """Return what is known of the machines that asked."""
    run = part.folder.run
    if isinstance(run.get("parts"), Mapping):
        return [dict(one) for one in run["parts"].get("runs") or ()]
    known = {name: run.get(name) for name in _OF_ONE_MACHINE}
    return [{"run": run.get("run"), "shard": list(run["selection"]["shard"]), **known}]


@contextmanager
def _whole_or_nothing(out: Path) -> Iterator[Path]:
    """Give a folder to fill, which takes its name at the end; what a killed merge left is cleared.

    Raises:
        UserError: If another process is merging to the same name, or the disk is full.
    """
    work = out.with_name(f".{out.name}.merging")
    with disk(out):
        work.mkdir(parents=True, exist_ok=True)
    with locked(work):
        try:
            with disk(work):
                _clear(work)
                yield work
            _name(work, out)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise


def _name(work: Path, out: Path) -> None:
    try:
        work.rename(out)
    except OSError as error:
        raise UserError(str(out), error.strerror or "is in the way", "give -o another") from error


def _clear(work: Path) -> None:
    for entry in work.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != ".lock":
            entry.unlink()

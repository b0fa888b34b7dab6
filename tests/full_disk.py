"""A disk that is full at a random moment: one line, exit status 2, and the resumed run is whole.

A quarter of the runs have a small disk with a random number of bytes left, where one can be
mounted; everything they write meets that. In another quarter no file may grow beyond a random
size. In the rest, the run itself is told that there is no room: for one of its files in turn, or in
the middle of the n-th row of one, and for all that follow.

    python tests/full_disk.py --points 60 --seed 1
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kill_points import World, undisturbed, writes
from undisturbed import ITEMS, Run, load, only_folder, problems

if TYPE_CHECKING:
    from typing_extensions import Buffer

KINDS = ("disk", "limit", "file", "row")
ROWS = ("trials.jsonl", "transcripts.jsonl", "scores.jsonl")
FILES = ("run.json", "items.jsonl", *ROWS, "summary.json", "report.md", "report.html")
_DISK_MIB = 16
_PAGE = 4096


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a disk of a few MiB while the `with` block lasts; yields None where that may not be."""
    disk = folder / "disk"
    disk.mkdir()
    size = f"size={_DISK_MIB}m"
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], capture_output=True, check=False
    )
    if made.returncode:
        yield None
        return
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk: Path, left: int) -> Path:
    """Leave so many bytes free on a disk; return the file that is in the way."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    size = free.f_bavail * free.f_frsize - left
    ballast.write_bytes(bytes(max(0, size)))
    return ballast


def limited(size: int) -> Callable[[], None]:
    """Return what forbids a process, and all it starts, files of more than so many bytes."""

    def limit() -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    return limit


class Full:
    """Tells the process that it is in that there is no room, from one file or row on.

    Args:
        kind: `file` or `row`.
        name: Of the file in question.
        number: Which of its rows.
        part: Of that row: how much of it there is room for.
        folder: What is on that disk.
    """

    def __init__(self, kind: str, name: str, number: int, part: float, folder: Path) -> None:
        self.kind, self.name, self.left, self.part = kind, name, number, part
        self.folder = str(folder)
        self._write = os.write

    def __call__(self) -> None:
        if self.kind == "file":
            self.left = 1
            sys.addaudithook(self._audit)
        else:
            os.write = self._row

    def _audit(self, event: str, details: tuple[object, ...]) -> None:
        made = event == "os.mkdir" or (event == "open" and writes(event, details))
        if made and str(details[0]).startswith(self.folder):
            self.left -= self.name in str(details[0])
            if self.left <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(details[0]))

    def _row(self, file: int, data: Buffer, /) -> int:
        whole = bytes(data)
        place = str(Path(f"/proc/self/fd/{file}").readlink())
        if self.left > 0 and whole[:1] == b"{" and self.name in place:
            self.left -= 1
            if not self.left and int(self.part * len(whole)):
                return self._write(file, whole[: int(self.part * len(whole))])
        if self.left <= 0 and file > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(file, whole)


def used(folder: Path) -> tuple[int, list[int]]:
    """Return what a run takes of a disk, and the sizes of its files, bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(-(-size // _PAGE) * _PAGE for size in sizes), sorted(set(sizes))


def try_point(
    world: World, draw: random.Random, number: int, kind: str, disk: Path | None
) -> tuple[str, str]:
    """Let one run meet a full disk, then go on; return where it met it, and what is wrong."""
    folder = world.bench.parent
    whole, sizes = used(only_folder(folder / "second") or folder)
    out = (disk or folder) / f"{kind}{number}"
    words = ["run", str(world.bench), "--quiet", "--out", str(out)]
    if kind == "disk" and disk is not None:
        ballast = fill(disk, int(draw.random() * 1.1 * whole))
        ended = Run(words, folder).end()
        ballast.unlink()
    elif kind in world.sizes:
        names = FILES if kind == "file" else ROWS
        name = names[number % len(names)]
        full = Full(kind, name, draw.randint(1, 2 * ITEMS), draw.random(), out)
        ended = Run(words, folder, full).end()
    else:
        ended = Run(words, folder, limited(draw.choice(sizes) - 1)).end()
    begun = only_folder(out)
    place = _place(ended.error, out)
    wrong = "" if ended.status == 0 else _not_one_line(ended.status, ended.error)
    if begun is not None and not wrong:
        words = ["run", "--resume", str(begun), "--quiet"]
    again = Run(words, folder).end()
    begun = only_folder(out)
    if again.status or begun is None:
        wrong = wrong or f"resumed: {again.status}: {again.error}"
    else:
        wrong = wrong or "; ".join(problems(begun, world.expected))
    with suppress(OSError):
        subprocess.run(["rm", "-r", out], check=True)
    return place if ended.status else "no room was missing", wrong


def _not_one_line(status: int, error: str) -> str:
    lines = [line for line in error.splitlines() if not line.startswith("voxmeter: go on with: ")]
    if status == 2 and len(lines) == 1 and "no space left" in lines[0]:
        return ""
    return f"ended with {status}: {error[-1500:]}"


def _place(error: str, out: Path) -> str:
    """Return which kind of file it was that had no room."""
    last = error.splitlines()[-1] if error else ""
    name = last.removeprefix("voxmeter: ").partition(": ")[0]
    name = name.removeprefix(str(out)).lstrip("/").partition("/")[2]
    return name if name.endswith(("jsonl", "json", "md", "html")) and "/" not in name else (
        name.partition("/")[0] or "the folder"
    )  # fmt: skip


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Fill disks and resume; 1 if a run does not end as it should, or a resumed one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=60, metavar="N", help="runs without room")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="these alone")
    args = parser.parse_args(arguments)
    draw = random.Random(args.seed)  # noqa: S311 - no secret
    places: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, small_disk(Path(folder)) as disk:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        load()
        world = undisturbed(Path(folder))
        for number in range(args.points):
            kind = args.kinds[number % len(args.kinds)]
            place, problem = try_point(world, draw, number // len(args.kinds), kind, disk)
            places[place] += 1
            if problem:
                wrong.append(f"point {number} ({place}): {problem}")
    how = "with a full disk" if disk else "with limited files, as no disk can be mounted here"
    say(f"{args.points} runs {how}; where there was no room: {dict(sorted(places.items()))}")
    for line in wrong:
        say(f"WRONG {line}")
    say(f"{len(wrong)} runs that did not end in one line, or differed after resuming")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

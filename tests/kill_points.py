"""`kill -9` at many random points of a run; each time the resumed run equals an undisturbed one.

A third of the points are moments, a third are files about to be made, renamed or removed, and
a third are rows of which a random part is written. Some runs are killed again while they resume.

    python tests/kill_points.py --points 200 --seed 1
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from undisturbed import Ended, Outcome, Run, load, only_folder, outcome, problems, write_world

if TYPE_CHECKING:
    from typing_extensions import Buffer

FILE_EVENTS = frozenset({"os.rename", "os.mkdir", "os.remove", "os.truncate"})
KINDS = ("moment", "file", "row")
_AGAIN = 0.25
_MOST_DEATHS = 3


def writes(event: str, details: tuple[object, ...]) -> bool:
    """Return whether an audit event is about to change a file."""
    if event != "open":
        return event in FILE_EVENTS
    flags = details[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


class Doom:
    """Ends the process that it is in at its n-th file operation, or amid its n-th row.

    Args:
        kind: `file` or `row`.
        number: Which one.
        part: Of the row: how much of it is still written.
    """

    def __init__(self, kind: str, number: int, part: float) -> None:
        self.kind, self.left, self.part = kind, number, part
        self._write = os.write

    def __call__(self) -> None:
        if self.kind == "file":
            sys.addaudithook(self._audit)
        else:
            os.write = self._torn

    def _audit(self, event: str, details: tuple[object, ...]) -> None:
        if writes(event, details):
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)

    def _torn(self, file: int, data: Buffer, /) -> int:
        if bytes(data)[:1] == b"{":
            self.left -= 1
            if not self.left:
                self._write(file, bytes(data)[: int(self.part * len(bytes(data)))])
                os.kill(os.getpid(), signal.SIGKILL)
        return self._write(file, data)


@dataclass
class Tally:
    """What was killed, and what came of it."""

    killed: Counter[str] = field(default_factory=Counter)
    too_late: int = 0
    not_begun: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class World:
    """One bench, and what an undisturbed run of it leaves.

    Attributes:
        bench: Its bench.toml.
        expected: What is left.
        seconds: How long the run took.
        sizes: How many file operations and rows it has.
    """

    bench: Path
    expected: Outcome
    seconds: float
    sizes: dict[str, int]


def undisturbed(folder: Path) -> World:
    """Run a new world twice: to fill its cache, then to look at it and count what it does."""
    bench, counted = write_world(folder), folder / "counted"
    for name, first in (("first", lambda: None), ("second", partial(_count, counted))):
        ended = Run(["run", str(bench), "--quiet", "--out", name], folder, first).end()
        if ended.status:
            raise SystemExit(f"an undisturbed run ended with {ended.status}: {ended.error}")
    made = only_folder(folder / "second")
    if made is None:
        raise SystemExit("an undisturbed run left nothing")
    changed, appended = counted.read_text().split()
    sizes = {"file": int(changed), "row": int(appended)}
    return World(bench, outcome(made), ended.seconds, sizes)


def _count(counted: Path) -> None:
    """Write down, from now on, how many files and rows this process writes."""
    found = {"file": 0, "row": 0}
    write = os.write
    notes = os.open(counted, os.O_WRONLY | os.O_CREAT)

    def note() -> None:
        os.pwrite(notes, f"{found['file']:9} {found['row']:9}".encode(), 0)

    def counting(file: int, data: Buffer, /) -> int:
        found["row"] += bytes(data)[:1] == b"{"
        note()
        return write(file, data)

    def audit(event: str, details: tuple[object, ...]) -> None:
        if writes(event, details):
            found["file"] += 1
            note()

    os.write = counting
    sys.addaudithook(audit)


def kill_once(world: World, draw: random.Random, words: list[str], kind: str) -> Ended:
    """Run a command and kill it at a random point; it may have ended before."""
    folder = world.bench.parent
    if kind == "moment":
        run = Run(words, folder)
        time.sleep(draw.random() * world.seconds)
        run.signal(signal.SIGKILL)
        return run.end()
    doom = Doom(kind, draw.randint(1, world.sizes[kind]), draw.random())
    return Run(words, folder, doom).end()


def try_point(world: World, draw: random.Random, number: int, tally: Tally) -> None:
    """Kill one run at one point, perhaps again while it resumes, then let it finish."""
    folder, kind = world.bench.parent, KINDS[number % len(KINDS)]
    out = folder / f"point{number}"
    words = ["run", str(world.bench), "--quiet", "--out", str(out)]
    for _ in range(_MOST_DEATHS):
        ended = kill_once(world, draw, words, kind)
        if ended.status == -signal.SIGKILL:
            tally.killed[kind] += 1
        elif ended.status:
            tally.wrong.append(f"point {number} ({kind}): {ended.status}: {ended.error}")
            return
        else:
            tally.too_late += 1
        begun = only_folder(out)
        tally.not_begun += begun is None
        if begun is not None:
            words = ["run", "--resume", str(begun), "--quiet"]
        if draw.random() >= _AGAIN:
            break
    ended = Run(words, folder).end()
    begun = only_folder(out)
    if ended.status or begun is None:
        tally.wrong.append(f"point {number} ({kind}): resumed: {ended.status}: {ended.error}")
        return
    tally.wrong += [f"point {number} ({kind}): {one}" for one in problems(begun, world.expected)]


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Kill and resume; 1 if a resumed run differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=200, metavar="N", help="runs to kill")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    args = parser.parse_args(arguments)
    draw, tally = random.Random(args.seed), Tally()  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        load()
        world = undisturbed(Path(folder))
        say(f"undisturbed: {world.seconds:.1f} s, {world.sizes['file']} file operations, "
            f"{world.sizes['row']} rows")  # fmt: skip
        for number in range(args.points):
            try_point(world, draw, number, tally)
            if number % 20 == 19:
                say(f"{number + 1} points, {len(tally.wrong)} differences so far")
    killed = ", ".join(f"{tally.killed[kind]} at a {kind}" for kind in KINDS)
    say(f"{args.points} runs killed {tally.killed.total()} times ({killed}), "
        f"{tally.not_begun} before there was a run, {tally.too_late} after its end")  # fmt: skip
    for line in tally.wrong:
        say(f"WRONG {line}")
    say(f"{len(tally.wrong)} differences to an undisturbed run after resuming")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())

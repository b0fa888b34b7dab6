"""Ctrl-C while replies are read ahead of scoring; the resumed run equals an undisturbed one.

The first run is interrupted as the reading process is started, the second one once a reply has
been read while others were asked. Neither may leave a process behind.

    python tests/ahead_interrupted.py
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from undisturbed import Outcome, Run, load, only_folder, outcome, problems, write_world

from voxmeter.client import read_ahead
from voxmeter.client.audio import write_flac
from voxmeter.client.speakers import speaker

POINTS = {"as the reading begins": False, "after a reply was read": True}
_TRANSCRIBE = '[transcribe]\nmodel = "tiny.en"\nbeam_size = 1\noverlap = true\n'
_INTERRUPTED = 130


def spoken_world(folder: Path) -> Path:
    """Write a world whose spoken answers can be understood; return its bench's path."""
    bench = write_world(folder)
    bench.write_text(bench.read_text() + _TRANSCRIBE)
    voice = speaker("hibari")
    for number, letter in enumerate("ABCABC"):
        said = np.concatenate([*voice.speak(f"The answer is {letter}.")])
        write_flac(folder / f"q{number}.flac", said, voice.rate)
    return bench


def ahead(cache: Path) -> None:
    """Read ahead on any machine, with nothing in the cache to begin with."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    read_ahead.cores = lambda: 2  # type: ignore[attr-defined]


def interrupt(cache: Path, note: Path, *, read: bool) -> None:
    """Have this process interrupted once its replies are read ahead.

    Args:
        cache: Of this run.
        note: Where to write whether the reading process was seen.
        read: Whether to wait until a reply has been read.
    """
    ahead(cache)
    wake = read_ahead.Reader.wake

    def waking(reader: read_ahead.Reader) -> None:
        wake(reader)
        child = reader._child
        if child is None or note.exists():
            return
        if read and child.replies.read(1) != b".":
            raise RuntimeError("the reading process ended")
        seen = not read or child._process.pid in started_with(cache)  # it may just be starting
        note.write_text("seen" if seen else "missed")
        os.kill(os.getpid(), signal.SIGINT)

    read_ahead.Reader.wake = waking  # type: ignore[assignment, method-assign]


def started_with(cache: Path) -> list[int]:
    """Return the processes that were started by runs with this cache and are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            if f"XDG_CACHE_HOME={cache}\0".encode() in entry.read_bytes() + b"\0":
                found.append(int(entry.parent.name))
    return found


def disturbed(bench: Path, name: str, *, read: bool) -> tuple[Path | None, list[str]]:
    """Interrupt one run and resume it; return its folder, and what went wrong on the way."""
    folder = bench.parent
    cache, note, out = (folder / f"{kind}-{read}" for kind in ("cache", "note", "out"))
    words = ["run", str(bench), "--quiet", "--out", str(out)]
    wrong = []
    for stage in ("interrupted", "resumed"):
        first: Callable[[], None] = partial(ahead, cache)
        if stage == "interrupted":
            first = partial(interrupt, cache, note, read=read)
        ended = Run(words, folder, first).end()
        expected = _INTERRUPTED if stage == "interrupted" else 0
        if ended.status != expected:
            wrong.append(f"{name}: {stage}: {ended.status}: {ended.error}")
        wrong += [f"{name}: {stage}: process {pid} is left" for pid in started_with(cache)]
        begun = only_folder(out)
        words = ["run", "--resume", str(begun), "--quiet"]
    if not note.exists() or note.read_text() != "seen":
        wrong.append(f"{name}: nothing was read ahead")
    return begun, wrong


def differences(bench: Path, expected: Outcome, name: str, *, read: bool) -> Iterator[str]:
    """Yield what is wrong with a run that was interrupted and resumed."""
    made, wrong = disturbed(bench, name, read=read)
    yield from wrong
    if made is None:
        yield f"{name}: there is no run"
    else:
        yield from (f"{name}: {one}" for one in problems(made, expected))


def main() -> int:
    """Interrupt and resume; 1 if a resumed run differs or leaves a process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = spoken_world(folder)
        load()
        words = ["run", str(bench), "--quiet", "--out", str(folder / "whole")]
        ended = Run(words, folder, partial(ahead, folder / "cache-whole")).end()
        made = only_folder(folder / "whole")
        if ended.status or made is None:
            raise SystemExit(f"an undisturbed run ended with {ended.status}: {ended.error}")
        expected = outcome(made)
        wrong = [
            line
            for point, read in POINTS.items()
            for line in differences(bench, expected, point, read=read)
        ]
    heard = len(expected["transcripts"])
    print(f"{len(POINTS)} runs interrupted while their {heard} replies were read ahead")
    for line in wrong:
        print(f"WRONG {line}")
    print(f"{len(wrong)} differences to an undisturbed run after resuming")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

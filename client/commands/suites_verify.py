"""`voxmeter suites verify`: says what is wrong with a download, a line each, before it is used."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from voxmeter.client.suite_check import Recordings
    from voxmeter.endpoints.errors import UserError
    from voxmeter.suites.suite import Suite

_MORE = re.compile(r"(?:\.\.\.|…) and (\d+) more like it")
"""The line that stands for the faults of a sort that are not named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `PATH --kind --decode`."""
    parser.add_argument("path", type=Path, metavar="PATH", help="folder of a download, or a .jsonl")
    parser.add_argument(
        "--kind", metavar="NAME", help="what it is (default: found out by its files)"
    )
    parser.add_argument(
        "--decode",
        action="store_true",
        help="decode every recording whole (default: all headers, and 200 whole)",
    )


def run(args: argparse.Namespace) -> int:
    """Verify one download.

    Returns:
        0 where nothing is wrong; oddities are told and do no harm.

    Raises:
        UserError: If something is.
    """
    from voxmeter.client import suite_check
    from voxmeter.client.cli import DONE
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError
    from voxmeter.suites import catalog

    kind, path = suite_check.opened(args.path, args.kind)
    report = Report(path if path.is_dir() else path.parent)
    verify = catalog.check(kind)
    for line in verify(path) if verify else ():
        report.line(line)
    try:
        suite = suite_check.load(kind, path)
    except UserError as error:
        report.load(error)
        raise report.verdict(str(args.path)) from None
    print(f"{printable(str(args.path))}: {kind}, {counted(suite)}")
    if verify is None:
        for line in suite.warnings:
            report.note(line)
    for line in suite_check.some(suite_check.repeated(suite.items)):
        report.note(line)
    asked = len(suite.items) * (1 + len(suite.conditions))
    found = suite_check.recordings(
        suite_check.files_of(suite, path if kind != "jsonl" else None),
        asked,
        decode=args.decode,
        lacking=kind == "jsonl",
        on_file=_progress(asked),
    )
    _tell(found, report)
    report.end(str(args.path))
    return DONE


class Report:
    """Prints faults and notes as they are found, and counts faults.

    Args:
        folder: Where the download lies.
    """

    def __init__(self, folder: Path) -> None:
        self.faults = 0
        self._folders = [f"{one}{os.sep}" for one in (folder.resolve(), folder) if one.name]

    def line(self, line: str) -> None:
        """Print what a kind's own check found."""
        from voxmeter.suites.catalog import NOTE

        if line.startswith(NOTE):
            self.note(line.removeprefix(NOTE))
        else:
            self.fault(line)

    def fault(self, line: str) -> None:
        """Print what has to be mended."""
        more = _MORE.fullmatch(line)
        self.faults += int(more[1]) if more else 1
        print(f"FAIL {self.shown(line)}", flush=True)

    def note(self, line: str) -> None:
        """Print what is odd, and can be used."""
        print(f"note {self.shown(line)}", flush=True)

    def load(self, error: Exception) -> None:
        """Print why nothing can be asked, unless that was told as a fault of the layout."""
        if not self.faults:
            self.fault(str(error))

    def end(self, place: str) -> None:
        """Say whether it is sound.

        Raises:
            UserError: If it is not.
        """
        if self.faults:
            raise self.verdict(place)
        print("sound: nothing is wrong with it")

    def verdict(self, place: str) -> UserError:
        """Return what the faults come to."""
        from voxmeter.endpoints.errors import UserError

        cure = "download again or mend what the lines above name"
        return UserError(place, plural(self.faults, "fault", "faults"), cure)

    def shown(self, text: str) -> str:
        """Return a text as it may be printed; files in the download are named from there."""
        from voxmeter.client.terminal import printable

        for folder in self._folders:
            text = text.replace(folder, "")
        return printable(text)


def _tell(found: Recordings, report: Report) -> None:
    from voxmeter.client.suite_check import some
    from voxmeter.client.terminal import human_seconds

    for line in some(found.faults):
        report.fault(line)
    for line in some(found.notes):
        report.note(line)
    same = (f"{second} has the very bytes of {first}" for first, second in found.twins)
    for line in some(same):
        report.note(line)
    if len(found.rates) > 1:
        each = ", ".join(f"{count} of {rate} Hz" for rate, count in found.rates.most_common())
        report.note(f"rates differ: {each}; each clip is brought to what the endpoint takes")
    if found.channels:
        clips = plural(found.channels, "recording has", "recordings have")
        report.note(f"{clips} several channels: they are mixed to one")
    if not found.count:
        spoken = "no recordings: every item is a text to be spoken"
        print("no recording can be used" if found.faults else spoken)
        return
    rate = f", {next(iter(found.rates))} Hz" if len(found.rates) == 1 else ""
    length = human_seconds(found.ms / 1000)
    decoded = "all" if found.decoded == found.count else str(found.decoded)
    print(
        f"{plural(found.count, 'recording', 'recordings')}, {length}{rate}; {decoded} decoded, "
        "with sound in them"
    )


def counted(suite: Suite) -> str:
    """Return how much there is to ask."""
    kinds = Counter(item.kind for item in suite.items)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    clusters = len({item.cluster or item.item for item in suite.items})
    text = (
        f"{plural(len(suite.items), 'item', 'items')} in {plural(clusters, 'cluster', 'clusters')}"
    )
    further = plural(len(suite.conditions), "further setting", "further settings")
    conditions = f", {further}" if suite.conditions else ""
    return f"{text} ({listed}){conditions}"


def plural(count: int, one: str, many: str) -> str:
    """Return a number with what is counted."""
    return f"{count} {one if count == 1 else many}"


def _progress(total: int) -> Callable[[int], None]:
    """Return what shows how far it is, on a terminal alone."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(count: int) -> None:
        if count % 100 == 0:
            print(f"\r{count} of about {total}\r", end="", file=sys.stderr, flush=True)

    return show

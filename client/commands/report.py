"""`voxmeter report`: write a run's report, from its files alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from voxmeter.client.runfolder import RunFolder

_IN_FOLDER = frozenset({"md", "html"})
"""Formats that lie in the run folder when no other place is given."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which runs, which formats, and where to."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument(
        "--format",
        default="md",
        metavar="html,md,json,csv",
        help="html and md go into the run folder, json and csv to standard output (default: md, "
        "and the table on the terminal); html makes one page of several runs, with -o",
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="PATH",
        help="a file, or for several formats a folder; - is standard output",
    )
    parser.add_argument(
        "--published",
        metavar="NAME",
        help="set the published figures of a benchmark beside these, in html, md and json "
        "(adu-bench, air-bench, voxeval, ...)",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="in a page of several runs, pair endpoint OLD of the first with endpoint NEW of the "
        "others; may be given again",
    )


def run(args: argparse.Namespace) -> int:
    """Write every format that was asked for.

    Returns:
        0; what the figures are is no fault of the report.

    Raises:
        UserError: If a run cannot be read, or the place cannot be written.
    """
    from contextlib import ExitStack

    from voxmeter.client.endpoint_map import read_map
    from voxmeter.client.report import formats, text_of
    from voxmeter.client.runfolder import RunFolder

    wanted = formats(args.format)
    mapped = read_map(args.map)
    if "html" in wanted:
        _page_has_a_place(args)
    if args.published is not None:
        from voxmeter.suites.published_tables import published

        published(args.published)  # a wrong name is told before anything is written
    into_folder = args.output is None and not _IN_FOLDER.isdisjoint(wanted)
    with ExitStack() as stack:
        runs = {path.resolve(): path for path in args.runs}  # one that is named twice is one
        folders = [
            stack.enter_context(RunFolder.open(path, write=into_folder)) for path in runs.values()
        ]
        for kind in wanted:
            if kind == "html":
                _page(folders, args, mapped, several=len(wanted) > 1)
            elif args.output is None and kind in _IN_FOLDER:
                _into_folders(folders, args.published)
            else:
                pieces = text_of(kind, folders, args.published)
                _elsewhere(kind, pieces, args.output, several=len(wanted) > 1)
    return 0


def _both_there(mapped: Mapping[str, str], summaries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to pair an endpoint that is not there."""
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError

    first, *others = ({str(cell["endpoint"]) for cell in one["cells"]} for one in summaries)
    for names, there, where in (
        (mapped.keys(), first, "the first run has no"),
        (mapped.values(), set().union(*others), "no later run has an"),
    ):
        for name in names:
            if name not in there:
                shown = ", ".join(printable(one, 40) for one in sorted(there)) or "none"
                found = f"{where} endpoint {printable(name, 40)!r}"
                raise UserError("--map", found, f"name one that is there: {shown}")


def _page_has_a_place(args: argparse.Namespace) -> None:
    from voxmeter.endpoints.errors import UserError

    if args.output == "-":
        found, cure = "a page is more than one file", "name a file with -o, as report.html"
        raise UserError("-o -", found, cure)
    if args.output is None and len({path.resolve() for path in args.runs}) > 1:
        found, cure = "several runs make one page", "say where with -o, as -o report.html"
        raise UserError("--format html", found, cure)


def _page(
    folders: Sequence[RunFolder],
    args: argparse.Namespace,
    mapped: Mapping[str, str],
    *,
    several: bool,
) -> None:
    from voxmeter.client.report import summarised, write_page
    from voxmeter.client.report_html import Pairing
    from voxmeter.client.scoring_progress import ScoringProgress

    path = folders[0].path / "report.html"
    if args.output is not None:
        path = _file("html", args.output, several=several)
    with ScoringProgress() as tell:
        summaries = [summarised(folder, args.published) for folder in folders]
        _both_there(mapped, summaries)
        page = write_page(folders, summaries, path, Pairing(mapped), tell)
    print(page)


def _into_folders(folders: Sequence[RunFolder], published: str | None) -> None:
    from voxmeter.client.report import print_report, summarised, write_report

    for folder in folders:
        summary = summarised(folder, published)
        write_report(folder, summary)
        print_report(folder, summary)


def _elsewhere(kind: str, pieces: Iterator[str], output: str | None, *, several: bool) -> None:
    import sys

    from voxmeter.client.report import write_file

    if output in (None, "-"):
        sys.stdout.writelines(pieces)
        return
    path = _file(kind, output or "", several=several)
    write_file(path, pieces)
    print(path)


def _file(kind: str, output: str, *, several: bool) -> Path:
    path = Path(output)
    return path / f"report.{kind}" if several or path.is_dir() else path

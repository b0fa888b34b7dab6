"""`voxmeter compare`: say whether a new run is worse than a base run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the runs, the pairing, the gates, and where the result goes."""
    parser.add_argument("base", type=Path, metavar="BASE", help="run folder to compare with")
    parser.add_argument("new", type=Path, metavar="NEW", help="run folder that is judged")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="pair endpoint OLD of BASE with endpoint NEW of NEW; may be given again",
    )
    parser.add_argument(
        "--gate",
        type=Path,
        metavar="BENCH",
        help="judge the regression gates of this bench.toml (default: those of NEW)",
    )
    for name, text in (
        ("json", "everything that was found"),
        ("junit", "the gates as test cases, for a CI service"),
        ("markdown", "a comment for a pull request"),
    ):
        parser.add_argument(f"--{name}", metavar="FILE", help=f"write {text}; - is standard output")
    parser.add_argument(
        "--html", metavar="FILE", help="write a page of both runs: what moved, each trial to hear"
    )
    parser.add_argument(
        "--force", action="store_true", help="compare what is otherwise refused, with a warning"
    )


def run(args: argparse.Namespace) -> int:
    """Compare, print, and write what was asked for.

    Returns:
        0 without a regression, 1 with one, 2 where what a gate is about cannot be compared.

    Raises:
        UserError: If the runs cannot be compared at all, or a place cannot be written.
    """
    from voxmeter.client import compare_output
    from voxmeter.client.compare import compare_runs
    from voxmeter.client.endpoint_map import read_map
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError

    places = [args.json, args.junit, args.markdown, args.html]
    given = [place for place in places if place is not None]
    twice = next((place for place in given if given.count(place) > 1), None)
    if twice is not None:
        told = f"{printable(twice, 60)!r} is given for two forms"
        raise UserError("compare", told, "write each form to a place of its own")
    if args.html == "-":
        cure = "name a file, as --html compare.html"
        raise UserError("--html -", "a page is more than one file", cure)
    mapped = read_map(args.map)
    found = compare_runs(args.base, args.new, mapped=mapped, bench=args.gate, force=args.force)
    forms = {
        "json": compare_output.json_text,
        "junit": compare_output.junit_text,
        "markdown": compare_output.markdown_text,
    }
    wanted = {name: getattr(args, name) for name in forms if getattr(args, name) is not None}
    if "-" not in wanted.values():
        compare_output.show(found.document)
    for name, place in wanted.items():
        _write(place, forms[name](found.document))
    if args.html is not None:
        page = _page(args, mapped, found.document)
        if "-" not in wanted.values():
            print(f"page: {page}")
    if found.status == 2:
        _complain(found.document)
    return found.status


def _write(place: str, text: str) -> None:
    import sys

    from voxmeter.client.report import write_file

    if place == "-":
        sys.stdout.write(text)
    else:
        write_file(Path(place), iter([text]))


def _page(args: argparse.Namespace, mapped: Mapping[str, str], document: Mapping[str, Any]) -> Path:
    from contextlib import ExitStack

    from voxmeter.client.report import summarised, write_page
    from voxmeter.client.report_html import Pairing
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.scoring_progress import ScoringProgress

    runs = {path.resolve(): path for path in (args.base, args.new)}  # one run, or two
    pairing = Pairing(mapped, document)
    with ExitStack() as stack:
        folders = [stack.enter_context(RunFolder.open(path)) for path in runs.values()]
        tell = stack.enter_context(ScoringProgress())
        summaries = [summarised(folder) for folder in folders]
        return write_page(folders, summaries, Path(args.html), pairing, tell)


def _complain(document: Mapping[str, Any]) -> None:
    """Say in one line what kept a gate from being judged."""
    import sys

    from voxmeter.client.terminal import printable

    reasons = [
        f"{gate['cell']}: {gate['reason']}"
        for gate in document["gates"]
        if gate["reason"] and gate["p_holm"] is None
    ]
    found = reasons[0] if reasons else "no gate could be judged"
    cure = "docs/comparing.md says what a gate needs and what is refused"
    print(
        f"voxmeter: compare: {printable(found)}; {cure}",
        file=sys.stderr,
        flush=True,
    )

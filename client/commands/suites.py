"""`voxmeter suites`: the kinds there are, whether a download is sound, and suites of one's own."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from voxmeter.suites.suite import Item, Suite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `list`, `verify PATH` and `build ...`."""
    from voxmeter.client.commands import suites_build

    actions = parser.add_subparsers(
        dest="action",
        required=True,
        metavar="list|verify|build",
        parser_class=suites_build.ActionParser,
    )
    actions.add_parser("list", help="list the suite kinds")
    build = actions.add_parser("build", help="make a suite from what you have")
    suites_build.add_arguments(build)
    verify = actions.add_parser("verify", help="check a file of items and every clip it names")
    verify.add_argument("path", type=Path, help="the .jsonl file")


def run(args: argparse.Namespace) -> int:
    """List the kinds, verify one path, or build a suite."""
    from voxmeter.client.commands import suites_build

    match args.action:
        case "build":
            return suites_build.run(args)
        case "verify":
            return _verify(args.path)
        case _:
            return _list()


def _list() -> int:
    from voxmeter.client import kinds

    built = kinds.suite_kinds()
    for name in sorted(built):
        print(f"{name:<18} {_summary(built[name])}")
    for name in kinds.PLANNED_SUITES:
        if name not in built:
            print(f"{name:<18} (not in this version)")
    return 0


def _summary(factory: str) -> str:
    """Return the first line of the docstring of the module that loads a kind."""
    import ast
    import importlib.util

    found = importlib.util.find_spec(factory.partition(":")[0])
    if found is None or found.origin is None:
        return "(its module is missing)"
    text = ast.get_docstring(ast.parse(Path(found.origin).read_bytes())) or ""
    return text.partition("\n")[0]


def _verify(path: Path) -> int:
    from voxmeter.client.clip_check import check_clips
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError
    from voxmeter.suites import catalog

    if path.is_dir():
        raise UserError(str(path), "is a folder", "give the .jsonl file")
    suite = catalog.load("jsonl", path.stem, {"path": str(path.resolve())}, Path())
    print(f"{printable(str(path))}: {_counted(suite)}")
    for warning in suite.warnings:
        print(f"warning: {printable(warning)}")
    found = check_clips(suite.items)
    for problem in found.problems:
        print(f"FAIL {printable(problem)}")
    if found.problems:
        raise UserError(
            str(path),
            f"{len(found.problems)} of {found.checked} clips cannot be used",
            "replace the files listed above",
        )
    if found.checked:
        print(f"{found.checked} clips are readable and have sound in them")
    else:
        print("no clips to read: every item is a text to be spoken")
    return 0


def _counted(suite: Suite) -> str:
    kinds = Counter(item.kind for item in suite.items)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{len(suite.items)} items in {len(_clusters(suite.items))} clusters ({listed})"


def _clusters(items: Iterable[Item]) -> set[str]:
    return {item.cluster or item.item for item in items}

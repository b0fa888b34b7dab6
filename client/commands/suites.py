"""`voxmeter suites`: the kinds there are, whether a download is sound, and suites of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `list`, `verify PATH` and `build ...`."""
    from voxmeter.client.commands import suites_build, suites_verify

    actions = parser.add_subparsers(
        dest="action",
        required=True,
        metavar="list|verify|build",
        parser_class=suites_build.ActionParser,
    )
    actions.add_parser("list", help="list the suite kinds")
    build = actions.add_parser("build", help="make a suite from what you have")
    suites_build.add_arguments(build)
    verify = actions.add_parser("verify", help="say what is wrong with a download or a .jsonl")
    suites_verify.add_arguments(verify)


def run(args: argparse.Namespace) -> int:
    """List the kinds, verify one path, or build a suite."""
    from voxmeter.client.commands import suites_build, suites_verify

    match args.action:
        case "build":
            return suites_build.run(args)
        case "verify":
            return suites_verify.run(args)
        case _:
            return _list()


def _list() -> int:
    from voxmeter.client import kinds

    built = kinds.suite_kinds()
    for name in sorted(built):
        print(f"{name:<18} {_summary(built[name])}")
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

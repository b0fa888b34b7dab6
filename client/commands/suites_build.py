"""`voxmeter suites build`: makes a suite from what a user has; a module for each sort of suite."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, cast

from voxmeter.client.cli import Parser

if TYPE_CHECKING:
    from voxmeter.client.cli import Command

USUAL = "speech"
"""What is built when the first word names none."""

BUILDERS: Mapping[str, str] = {
    "mix": "put two clips in one, with a known loudness and offset, and label which is which",
    "voicebench": "unpack VoiceBench's Parquet files, once",
    "speech": "speak a file of questions (MMLU's CSV, or JSON lines); need not be named",
    "references": "have a chat model answer questions that have no reference",
}
"""What can be built, with its line of help; `voxmeter.client.commands.build_<name>` does the work.

Such a module is a command like any other (`cli.Command`), so importing it must be cheap.
"""


class ActionParser(Parser):
    """A parser of one action, which refuses what is left over by its own options.

    Attributes:
        words: What may come first; the first of them is meant when something else does.
    """

    words: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does, and leave nothing over."""
        given = list(args or ())
        if self.words and given and given[0] not in (*self.words, "-h", "--help"):
            given.insert(0, self.words[0])
        found, rest = super().parse_known_args(given, namespace)
        if rest:
            self._refuse(rest[0])
        return found, []

    def _refuse(self, word: str) -> NoReturn:
        from voxmeter.client import nearest
        from voxmeter.client.terminal import printable

        near = nearest.nearest(word.partition("=")[0], self.options())
        cure = f"; did you mean {near}?" if near else ""
        self.error(f"unknown argument {printable(word, 60)}{cure}")


def add_arguments(parser: ActionParser) -> None:
    """Declare the builders and their arguments."""
    parser.words = (USUAL, *(name for name in BUILDERS if name != USUAL))
    builders = parser.add_subparsers(dest="builder", required=True, metavar="WHAT")
    for name, text in BUILDERS.items():
        under = builders.add_parser(name, help=text, description=text, allow_abbrev=False)
        _module(name).add_arguments(under)


def run(args: argparse.Namespace) -> int:
    """Build what was named."""
    return _module(args.builder).run(args)


def _module(name: str) -> Command:
    return cast("Command", import_module(f"voxmeter.client.commands.build_{name}"))

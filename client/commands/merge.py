"""`voxmeter merge`: join the parts of a sharded run into one run folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxmeter.client.merge import Merged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the parts and the whole."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="run folders of `voxmeter run --shard`"
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="DIR", required=True, help="the new run folder"
    )
    parser.add_argument("--quiet", action="store_true", help="print the run folder alone")


def run(args: argparse.Namespace) -> int:
    """Merge, and say what is there and what is missing.

    Raises:
        UserError: If the parts do not belong together, or the new folder cannot be made.
    """
    from voxmeter.client.merge import merge
    from voxmeter.client.terminal import warn

    found = merge(args.runs, args.out)
    for warning in _warnings(found):
        warn(warning)
    if not args.quiet:
        copied = found.copied
        print(
            f"{found.had} of {found.planned} planned trials, "
            f"{copied.rows} attempts with {copied.files} files"
        )
        print(f"score and report the whole with: voxmeter score {found.path}")
    print(found.path)
    return 0


def _warnings(found: Merged) -> list[str]:
    told = []
    left = max(0, found.planned - found.had)
    asked = f"merge {'it' if len(found.missing) == 1 else 'them'} as well, or ask what is left: "
    cure = f"voxmeter run --resume {found.path}"
    if found.missing and left:
        parts = ", ".join(f"{number}/{found.of}" for number in found.missing[:20])
        more = f" and {len(found.missing) - 20} more" if len(found.missing) > 20 else ""
        missing = f"missing: {parts}{more}"
        told.append(f"{missing}; {left} of {found.planned} trials are not here; {asked}{cure}")
    elif left:
        told.append(f"{left} of {found.planned} trials were not made; {cure} asks them")
    if found.copied.twice:
        told.append(
            f"{found.copied.twice} trials are in several parts; of each the newest finished "
            "attempt counts, and the others are kept as earlier ones"
        )
    return told

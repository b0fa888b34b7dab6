"""`voxmeter suites build mix`: two clips in one, with labels of loudness and order."""

from __future__ import annotations

import argparse
from pathlib import Path

from voxmeter.client.arguments import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is mixed, how, and what is asked."""
    parser.add_argument(
        "first", type=Path, metavar="FIRST", help="a .jsonl suite of recordings, or a folder"
    )
    parser.add_argument(
        "second", type=Path, metavar="SECOND", help="a sound file, or a folder to draw from"
    )
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        dest="output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where the suite goes",
    )
    parser.add_argument(
        "--names",
        type=_two_names,
        default=("speech", "sound"),
        metavar="FIRST,SECOND",
        help="what the two are called in labels (default: speech,sound)",
    )
    parser.add_argument(
        "--level-db",
        type=_numbers,
        default=(-6.0, 0.0, 6.0),
        metavar="N[,N]",
        help="loudness of the first less that of the second, drawn from these (=-6,0,6)",
    )
    parser.add_argument(
        "--offset-ms",
        type=_numbers,
        default=(),
        metavar="N[,N]",
        help="how much later the second begins, drawn from these (default: any with an overlap)",
    )
    parser.add_argument(
        "--ask",
        choices=("own", "louder", "ahead"),
        default="own",
        help="the suite's own question, or which of the two is louder or begins first",
    )
    parser.add_argument("--question", default="", metavar="TEXT", help="instead of the suite's own")
    parser.add_argument(
        "--each", type=positive, default=1, metavar="N", help="mixes of each first clip"
    )
    parser.add_argument("--seed", type=int, default=0, help="of whatever is drawn (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Build the suite.

    Raises:
        UserError: If there is nothing to mix or a clip cannot be read.
    """
    from voxmeter.client.cli import DONE
    from voxmeter.client.mix_build import SUITE, Wanted, build
    from voxmeter.client.terminal import printable

    count = build(
        Wanted(
            args.first,
            args.second,
            args.output,
            names=args.names,
            levels_db=args.level_db,
            offsets_ms=args.offset_ms,
            ask=args.ask,
            question=args.question,
            each=args.each,
            seed=args.seed,
        )
    )
    made = "1 item" if count == 1 else f"{count} items"
    print(f"{printable(str(args.output / SUITE))}: {made}; question_via says how they are asked")
    return DONE


def _two_names(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not two names: write speech,music")
    return names[0], names[1]


def _numbers(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from None
    if not all(abs(one) <= 600_000 for one in found):
        raise argparse.ArgumentTypeError(f"{text!r} is out of reach")
    return found

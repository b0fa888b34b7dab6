"""`voxmeter suites build voicebench`: unpacks VoiceBench's Parquet files."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the download and where it is unpacked."""
    parser.add_argument("source", type=Path, metavar="PATH", help="the folder of the download")
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        dest="output",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where lists and sound go",
    )


def run(args: argparse.Namespace) -> int:
    """Unpack it.

    Raises:
        UserError: If it is no download, pyarrow is not installed, or the disk is full.
    """
    from voxmeter.client.cli import DONE
    from voxmeter.client.terminal import printable
    from voxmeter.client.voicebench_unpack import unpack

    for split, count in unpack(args.source, args.output).items():
        print(f"{printable(split)}: {count} questions")
    print(f'{printable(str(args.output))}: give it as path of a [[suite]] with kind = "voicebench"')
    return DONE

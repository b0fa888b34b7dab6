"""`voxmeter score`: transcribe and score a run again, from its files alone."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, and what is to be done otherwise than in the run itself."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument(
        "--transcribe", metavar="MODEL", help="read the replies with another Whisper model"
    )
    parser.add_argument("--judge", metavar="NAME", help="ask a judge about open answers")
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def run(args: argparse.Namespace) -> int:
    """Score, write `summary.json` and `report.md`, print the table.

    Returns:
        The contract's exit status: 0, 1 when a gate failed, 3 when no trial of some endpoint
        succeeded.

    Raises:
        UserError: If the run or the model is missing or damaged.
    """
    from voxmeter.client import config
    from voxmeter.client.access import redactor
    from voxmeter.client.report import print_report, write_report
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.score import score_run
    from voxmeter.client.scoring_progress import ScoringProgress
    from voxmeter.client.summary import exit_status
    from voxmeter.endpoints.errors import UserError

    if args.judge is not None:
        cure = "leave it out: open answers have length and word error rate"
        raise UserError("--judge", "judges are not part of this version", cure)
    with RunFolder.open(args.run) as found:
        bench = config.reread(found.run.get("config") or {}, f"{args.run}/run.json")
    if args.transcribe is not None:
        wanted = bench.transcribe.model_copy(update={"model": args.transcribe})
        bench = bench.model_copy(update={"transcribe": wanted})
    with RunFolder.open(args.run, write=True, redactor=redactor(bench)) as folder:
        with ScoringProgress(quiet=args.quiet) as progress:
            summary = score_run(folder, bench, progress=progress)
        write_report(folder, summary)
        if not args.quiet:
            print_report(folder, summary)
    return exit_status(summary)

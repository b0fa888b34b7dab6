"""`voxmeter score`: transcribe and score a run again, from its files alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from voxmeter.client.terminal import printable

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, and what is to be done otherwise than in the run itself."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument(
        "--transcribe", metavar="MODEL", help="read the replies with another Whisper model"
    )
    parser.add_argument("--judge", metavar="NAME", help="ask this judge alone")
    parser.add_argument(
        "--bench",
        type=Path,
        metavar="FILE",
        help="take judges and their prompts from this bench.toml, not from the run",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing")


def run(args: argparse.Namespace) -> int:
    """Score, write `summary.json` and the reports, print the table.

    Returns:
        The contract's exit status: 0, 1 when a gate failed, 3 when no trial of some endpoint
        succeeded.

    Raises:
        UserError: If the run or the model is missing or damaged, or there is no such judge.
    """
    from voxmeter.client import config
    from voxmeter.client.access import redactor
    from voxmeter.client.report import print_report, write_reports
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.score import score_run
    from voxmeter.client.scoring_progress import ScoringProgress
    from voxmeter.client.summary import exit_status

    with RunFolder.open(args.run) as found:
        bench = config.reread(found.run.get("config") or {}, f"{args.run}/run.json")
    bench = _judged(bench, args.judge, args.bench)
    if args.transcribe is not None:
        wanted = bench.transcribe.model_copy(update={"model": args.transcribe})
        bench = bench.model_copy(update={"transcribe": wanted})
    with RunFolder.open(args.run, write=True, redactor=redactor(bench)) as folder:
        with ScoringProgress(quiet=args.quiet) as progress:
            summary = score_run(
                folder,
                bench,
                judges=None if args.judge is None else [args.judge],
                prompts_anew=args.bench is not None,
                progress=progress,
            )
            write_reports(folder, summary, progress)
        if not args.quiet:
            print_report(folder, summary)
    return exit_status(summary)


def _judged(bench: Bench, name: str | None, file: Path | None) -> Bench:
    """Return the run's bench with the judges that are to be asked.

    A run made before there was a judge can be judged afterwards: by those of `--bench`, which also
    says which rubric the open questions of a suite have, or of the bench.toml in the working
    folder if that is where the name is.

    Raises:
        UserError: If no judge has the name.
    """
    from voxmeter.client import config, nearest
    from voxmeter.endpoints.errors import UserError

    if file is not None:
        other = config.load(file)
        rubrics = {suite.label: suite.rubric for suite in other.suites if suite.rubric}
        suites = tuple(
            suite.model_copy(update={"rubric": rubrics.get(suite.label, suite.rubric)})
            for suite in bench.suites
        )
        bench = bench.model_copy(update={"judges": other.judges, "suites": suites})
    known = [judge.name for judge in bench.judges]
    if name is None or name in known:
        return bench
    here = Path(config.DEFAULT_NAME)
    if file is None and here.is_file():
        others = config.load(here).judges
        if name in [judge.name for judge in others]:
            return bench.model_copy(update={"judges": (*bench.judges, *others)})
        known += [judge.name for judge in others]
    found = f'no judge "{printable(name)}" in the run{"" if file is None else f" or {file}"}'
    cure = nearest.cure(name, known) if known else "add a [[judge]] table and give --bench FILE"
    raise UserError("--judge", found, cure)

"""The summary and the reports of a talk, so that it can be looked at when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.runfolder import RunFolder


def report(folder: RunFolder, bench: Bench) -> None:
    """Read every latency again from the log, and write summary and reports.

    The replies are not transcribed: `voxmeter score` does that.

    Args:
        folder: Open for writing.
        bench: Its configuration; its judges are not asked.

    Raises:
        UserError: If the disk is full.
    """
    from voxmeter.client.report import write_reports
    from voxmeter.client.score import score_run

    quiet = bench.model_copy(update={"judges": (), "gates": ()})
    summary = score_run(folder, quiet, transcribe=False)
    write_reports(folder, summary)

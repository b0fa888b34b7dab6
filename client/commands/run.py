"""`voxmeter run`: ask every question, record, transcribe, score and report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client.arguments import positive

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.judge_estimate import JudgeEstimate
    from voxmeter.client.publish import Publishing
    from voxmeter.client.ray_transcribe import ClusterTranscriber
    from voxmeter.client.run import Prepared
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.client.streaming import Show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is run, where it is kept, and what is shown."""
    parser.add_argument("bench", nargs="?", type=Path, help="a bench.toml (default: ./bench.toml)")
    parser.add_argument("-o", "--out", metavar="DIR", help="folder for run folders (default: runs)")
    parser.add_argument("--name", help="the run folder's name begins with it")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with a run folder")
    parser.add_argument("--limit", type=positive, metavar="N", help="items of each suite")
    parser.add_argument("--only", metavar="FILTER", help="endpoint=...,suite=...,condition=...")
    parser.add_argument("--trials", type=positive, metavar="N", help="times each item is asked")
    parser.add_argument(
        "--concurrency", type=positive, metavar="N", help="sessions with one endpoint at a time"
    )
    parser.add_argument("--shard", metavar="I/N", help="ask only part I of N, and do not score")
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="stream and transcribe on a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say time, disk and cost, ask nothing"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the summary, or what --dry-run finds, as one line of JSON",
    )
    parser.add_argument("--quiet", action="store_true", help="print the run folder alone")


def run(args: argparse.Namespace) -> int:
    """Run all stages.

    Returns:
        The contract's exit status: 0, 1 when a gate failed, 3 when no trial of some endpoint
        succeeded.

    Raises:
        UserError: If the bench cannot be run here.
    """
    from voxmeter.client import run as stages
    from voxmeter.client.publish import publishing

    with ExitStack() as stack:
        if args.resume is not None:
            _refuse_with_resume(args)
            prepared, folder = stages.reopen(args.resume)
            _say_what_it_starts(prepared)
            stack.enter_context(folder)
            stack.enter_context(_cluster(args))
        else:
            bench, selection = _chosen(args)
            prepared = stages.prepare(bench, **selection, asking=not args.dry_run)
            if args.dry_run:
                return _dry_run(prepared, as_json=args.json)
            stack.enter_context(_cluster(args))
            folder = stack.enter_context(stages.create(prepared, selection))
        try:
            with publishing(prepared, folder) as published:
                return _stages(args, prepared, folder, published)
        except (KeyboardInterrupt, Exception):
            print(f"voxmeter: go on with: voxmeter run --resume {folder.path}", file=sys.stderr)
            raise


def _cluster(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Return what keeps the cluster of `--ray` at hand; nothing where this process streams."""
    if args.ray is None:
        return nullcontext()
    from voxmeter.client.ray_cluster import connected

    return connected(args.ray)


def _stages(
    args: argparse.Namespace, prepared: Prepared, folder: RunFolder, published: Publishing
) -> int:
    from voxmeter.client import run as stages
    from voxmeter.client.progress import Loud, Quiet

    stream = stages.stream if args.ray is None else _stream_of_ray()
    silent = args.quiet or args.json
    if not silent:
        _say(prepared, folder)
    if silent:
        stream(prepared, folder, published.show(Quiet()))
    else:
        with Loud(len(prepared.plan)) as show:
            stream(prepared, folder, published.show(show))
    shard = (folder.run.get("selection") or {}).get("shard")
    if shard:
        if not silent:
            print("\nThis part is streamed; join all parts with: voxmeter merge RUN... -o DIR")
        print(folder.path)
        return _streamed(prepared, folder)
    published.scoring()
    return _finish(args, prepared, folder, published)


def _say_what_it_starts(prepared: Prepared) -> None:
    """Name the code that a run folder asks for: it may have come from somebody else."""
    from voxmeter.client.terminal import warn

    for endpoint in prepared.bench.endpoints:
        if endpoint.name not in prepared.plan.endpoints:
            continue
        code = list(endpoint.command or ())
        code += [str(endpoint.options.get("callable"))] if endpoint.kind == "python" else []
        if code:
            where = f" in {endpoint.folder}" if endpoint.folder else ""
            warn(f'the run folder\'s endpoint "{endpoint.name}" runs {" ".join(code)}{where}')


def _streamed(prepared: Prepared, folder: RunFolder) -> int:
    """Return the exit status of a part, which has no summary yet."""
    from voxmeter.client.cli import DONE, ENDPOINT_FAILED

    asked = {cell.endpoint for cell in prepared.plan.cells() if cell.planned}
    for row in folder.newest_trials():
        if row["status"] == "ok" and not row.get("warmup"):
            asked.discard(row["endpoint"])
    return ENDPOINT_FAILED if asked else DONE


def _finish(
    args: argparse.Namespace, prepared: Prepared, folder: RunFolder, published: Publishing
) -> int:
    """Score, report, and turn what was found into an exit status."""
    import json

    from voxmeter.client.report import print_report, write_reports
    from voxmeter.client.score import score_run
    from voxmeter.client.scoring_progress import ScoringProgress
    from voxmeter.client.summary import exit_status

    with ExitStack() as stack:
        reader = None if args.ray is None else stack.enter_context(_readers(prepared))
        progress = stack.enter_context(ScoringProgress(quiet=args.quiet or args.json))
        summary = score_run(folder, prepared.bench, transcriber=reader, progress=progress)
        published.scored(summary)
        write_reports(folder, summary, progress)
        if published.done(summary):  # something was not delivered: the reports say so too
            write_reports(folder, summary, progress)
    if args.json:
        print(json.dumps(summary))
    elif not args.quiet:
        print_report(folder, summary)
        _say_what_it_is(prepared)
    print(folder.path)
    return exit_status(summary)


def _stream_of_ray() -> Callable[[Prepared, RunFolder, Show], None]:
    from voxmeter.client import ray_stream

    return ray_stream.stream


def _readers(prepared: Prepared) -> ClusterTranscriber:
    from voxmeter.client.ray_transcribe import ClusterTranscriber

    return ClusterTranscriber(prepared.bench)


def _chosen(args: argparse.Namespace) -> tuple[Bench, dict[str, Any]]:
    from voxmeter.client import config, plan
    from voxmeter.endpoints.errors import UserError

    if args.ray is not None and args.shard is not None:
        raise UserError("--ray", "comes with --shard", "leave one out: a cluster shares out itself")
    bench = config.overridden(
        config.load(args.bench),
        name=args.name,
        out=args.out,
        trials=args.trials,
        concurrency=args.concurrency,
    )
    selection = {
        "limit": args.limit,
        "only": None if args.only is None else plan.parse_only(args.only),
        "shard": None if args.shard is None else plan.parse_shard(args.shard),
    }
    return bench, selection


def _refuse_with_resume(args: argparse.Namespace) -> None:
    from voxmeter.endpoints.errors import UserError

    if args.dry_run:
        cure = "leave one out: --resume asks what is left, --dry-run is about a new run"
        raise UserError("--resume", "comes with --dry-run", cure)
    options = ("bench", "out", "name", "limit", "only", "trials", "concurrency", "shard")
    for option in options:
        if getattr(args, option) is not None:
            name = option if option == "bench" else f"--{option.replace('_', '-')}"
            raise UserError(
                "--resume", f"comes with {name}", "leave it out: a run goes on as it began"
            )


def _dry_run(prepared: Prepared, *, as_json: bool) -> int:
    import json
    from dataclasses import asdict

    from voxmeter.client.clips import missing
    from voxmeter.client.estimate import ClipLengths, estimate
    from voxmeter.client.judge_estimate import judge_estimates
    from voxmeter.client.terminal import human_bytes, human_seconds, printable

    lengths = ClipLengths()
    found = estimate(prepared.plan, prepared.bench, lengths)
    cells = list(prepared.plan.cells())
    absent = sum(bool(missing(item)) for item in prepared.plan.items())
    judges = judge_estimates(prepared.bench, prepared.prompts, prepared.plan)
    if as_json:
        told = {
            "cells": [
                {
                    "endpoint": cell.endpoint,
                    "suite": cell.suite,
                    "condition": cell.condition,
                    "planned": cell.planned,
                }
                for cell in cells
            ],
            "turns": found.trials,
            "streaming_s": round(found.seconds, 1),
            "disk_bytes": round(found.disk_bytes),
            "missing_clips": absent,
            "clips_opened": lengths.opened,
            "clips_by_size": lengths.by_size,
            "judges": [asdict(judge) for judge in judges],
            "packaged": prepared.bench.packaged,
            "notes": list(prepared.notes),
        }
        print(json.dumps(told))
        return 0
    if prepared.bench.packaged:
        print("No bench.toml here: this is about the one that comes with voxmeter.")
    _say_notes(prepared)
    for cell in cells:
        name = printable(f"{cell.endpoint}  {cell.suite}  {cell.condition}")
        print(f"{name}: {cell.planned} trials")
    print(f"{found.trials} turns with warm-up, about {human_seconds(found.seconds)} of streaming,")
    called = sum(judge.asks for judge in judges)
    calls = f"{called or 'no'} judge calls"
    print(f"{human_bytes(found.disk_bytes)} of disk, {calls}, {absent} clips missing")
    if lengths.by_size:
        rest = f"the other {lengths.by_size} are taken to be as long as their size says"
        print(f"lengths: {lengths.opened} clips were opened, {rest}")
    for judge in judges:
        print(_said_of(judge))
    return 0


def _said_of(judge: JudgeEstimate) -> str:
    from voxmeter.client.terminal import printable

    cost = "cost unknown: no price_in and price_out"
    if judge.cost is not None:
        two_digits = float(f"{judge.cost:.2g}")
        cost = f"about {two_digits:,.12g} {judge.currency}"
    return printable(
        f"judge {judge.name}: at most {judge.asks} calls, an estimated {judge.tokens_in} tokens in "
        f"and {judge.tokens_out} out, {cost}; second asks and reasoning come on top"
    )


def _say(prepared: Prepared, folder: RunFolder) -> None:
    if prepared.bench.packaged:
        print("No bench.toml here: running the one that comes with voxmeter.")
    _say_notes(prepared)
    print(f"Run folder: {folder.path}")


def _say_notes(prepared: Prepared) -> None:
    from voxmeter.client.terminal import printable

    for suite in prepared.suites:
        for warning in suite.warnings:
            print(printable(f"{suite.name}: {warning}"))
    for note in prepared.notes:
        print(printable(note))


def _say_what_it_is(prepared: Prepared) -> None:
    if any(suite.kind == "demo" for suite in prepared.suites):
        print("\nA demo, not a ranking: a few easy questions, a very small model, one machine.")

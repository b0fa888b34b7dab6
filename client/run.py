"""A whole run: prepare, stream, score, summarise; every stage reads and writes the run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxmeter.client import clips, conditions, config, judge_prompts, plan, speakers
from voxmeter.client.access import access, redactor
from voxmeter.client.bench_rules import refuse_lost_text, refuse_unbuilt
from voxmeter.client.bench_suites import load_suites
from voxmeter.client.calibration import last
from voxmeter.client.clip_source import ClipSource
from voxmeter.client.conditioner import Conditioner
from voxmeter.client.finish import Lateness
from voxmeter.client.judge_prompts import NO_PROMPTS, Prompts
from voxmeter.client.machine import made_with
from voxmeter.client.models import hears, locate
from voxmeter.client.publish_settings import mqtt_settings
from voxmeter.client.read_ahead import reading_ahead
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.shots import refuse_lost_examples
from voxmeter.client.streaming import Show, Streaming
from voxmeter.client.target import Target
from voxmeter.client.targets import instructions_hash, target
from voxmeter.client.voices import Voices
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.answers import EXTRACTOR_VERSION

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.plan import Plan, Trial
    from voxmeter.client.redaction import Redactor
    from voxmeter.suites.suite import Item, Suite


@dataclass(frozen=True, slots=True)
class Prepared:
    """A bench that has been found fit to run.

    Attributes:
        bench: The resolved configuration.
        suites: In the bench's order, cut to their limits.
        plan: Every trial.
        redactor: Knows every secret of the bench.
        notes: What a user should know before it starts, one sentence each.
        prompts: What its judges are asked.
        whole: The plan of the whole run, where this is a part of it.
    """

    bench: Bench
    suites: Sequence[Suite]
    plan: Plan
    redactor: Redactor
    notes: tuple[str, ...] = ()
    prompts: Prompts = NO_PROMPTS
    whole: Plan | None = None

    def items(self) -> Iterator[Item]:
        """Yield every item of the whole run: all parts have the same `items.jsonl`."""
        return (self.whole or self.plan).items()


def prepare(
    bench: Bench,
    *,
    limit: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    shard: tuple[int, int] | None = None,
    prompts_had: Mapping[str, Any] | None = None,
    asking: bool = True,
) -> Prepared:
    """Find out whether a bench can be run here, before anything is written or asked.

    Args:
        bench: With the command line's overrides in it.
        limit: `--limit`.
        only: `--only`.
        shard: `--shard`.
        prompts_had: Judges' prompts of a run that goes on; it keeps them.
        asking: Whether anybody will be asked; if not, a missing key is a note.

    Raises:
        UserError: If a suite, a voice, a model or a key is missing, or the bench asks for
            something that this version cannot do.
    """
    refuse_unbuilt(bench)
    if bench.publish.mqtt is not None:
        mqtt_settings(bench)
    suites = load_suites(bench, limit)
    made = plan.build(bench, suites, only=only, shard=shard)
    whole = plan.build(bench, suites, only=only) if shard else None
    refuse_lost_text(bench, made.endpoints, made.items())
    notes = refuse_lost_examples(bench, made.endpoints, made.items())
    conditions.check_here(bench, {cell.condition for cell in made.cells()})
    missing = _keys_missing(bench, made.endpoints)
    if missing and asking:
        raise missing[0]
    for name in clips.speakers_of(made.asked()):
        speakers.check(name)
    locate(bench.transcribe.model, "whisper", allow_downloads=bench.transcribe.allow_downloads)
    check_languages(bench, (item.language for item in made.items()))
    rows = (item.row() for item in made.items())
    prompts, judge_notes = judge_prompts.check(bench, rows, prompts_had)
    told = (*notes, *map(str, missing), *judge_notes)
    return Prepared(bench, suites, made, redactor(bench), told, prompts, whole)


def _keys_missing(bench: Bench, asked: Sequence[str]) -> list[UserError]:
    """Return what endpoints lack in the environment: the first problem of each."""
    found: list[UserError] = []
    for endpoint in bench.endpoints:
        if endpoint.name in asked:
            try:
                access(endpoint, bench.source)
            except UserError as error:
                found.append(error)
    return found


def check_languages(bench: Bench, spoken: Iterable[str]) -> None:
    """Refuse a transcriber that does not know a language: it would fail after days of asking.

    Args:
        bench: The resolved configuration; a language that it fixes is the only one that counts.
        spoken: Languages of the items.

    Raises:
        UserError: If the bench's transcriber does not know one of them.
    """
    fixed = bench.transcribe.language
    for language in sorted({fixed} if fixed else set(spoken)):
        if language != "auto" and not hears(bench.transcribe.model, language):
            raise UserError(
                f"{bench.source}: [transcribe] model",
                f'"{bench.transcribe.model}" does not know the language "{language}"',
                'use a multilingual one, such as "base"',
            )


def create(prepared: Prepared, selection: Mapping[str, Any]) -> RunFolder:
    """Make the run folder with `run.json` and `items.jsonl`.

    Args:
        prepared: What is to be run.
        selection: The command line's `limit`, `only` and `shard`, for a resume.

    Raises:
        UserError: If the folder cannot be made.
    """
    bench = prepared.bench
    with ExitStack() as closed_on_error:
        folder = closed_on_error.enter_context(
            RunFolder.create(
                Path(bench.run.out), bench.run.name, _record(prepared, selection), prepared.redactor
            )
        )
        folder.write_items(item.row() for item in prepared.items())
        closed_on_error.pop_all()
    return folder


def reopen(path: Path) -> tuple[Prepared, RunFolder]:
    """Open a run folder to go on with it, with the configuration it began with.

    Raises:
        UserError: If it is no run folder, is in use, or what it needs is no longer there.
    """
    with ExitStack() as stack:
        run = stack.enter_context(RunFolder.open(path)).run
        bench, selection = _recorded(run, path)
        prepared = prepare(bench, **selection, prompts_had=run.get("prompts"))
    with ExitStack() as closed_on_error:
        folder = closed_on_error.enter_context(
            RunFolder.open(path, write=True, redactor=prepared.redactor)
        )
        folder.remove_orphans()
        if not any(folder.items()):
            folder.write_items(item.row() for item in prepared.items())
        closed_on_error.pop_all()
    return prepared, folder


def _recorded(found: Mapping[str, Any], path: Path) -> tuple[Bench, dict[str, Any]]:
    """Return the configuration that a run began with, and what was selected of it."""
    place = f"{path}/run.json"
    selection = found.get("selection") or {}
    nothing: dict[str, Any] = dict.fromkeys(("limit", "only", "shard"))
    match found.get("config"), nothing | selection if isinstance(selection, dict) else selection:
        case dict() as tables, {
            "limit": int() | None as limit,
            "only": dict() | None as only,
            "shard": list() | None as shard,
        }:
            part = None if shard is None else plan.parse_shard("/".join(map(str, shard)))
            return config.reread(tables, place), {"limit": limit, "only": only, "shard": part}
        case _:
            raise UserError(place, "is damaged: no config or selection", "restore the file")


def stream(
    prepared: Prepared,
    folder: RunFolder,
    show: Show,
    begun: Callable[[Trial], None] = lambda _: None,
) -> None:
    """Ask all that is still to be asked; `begun` is as `Streaming` takes it.

    Raises:
        UserError: If a server of ours does not start, or the disk is full.
    """
    bench = prepared.bench
    tables = {endpoint.name: endpoint for endpoint in bench.endpoints}

    with (
        Voices() as voices,
        Conditioner() as conditioner,
        reading_ahead(bench, folder, show, prepared.plan) as told,
    ):

        def start(name: str, stack: ExitStack) -> tuple[Target, int]:
            stack.callback(voices.stop)  # an interrupt does not wait for the end of a text
            table = tables[name]
            return target(bench, table, stack), table.concurrency or bench.run.concurrency

        source = ClipSource(voices, conditioner.alterations(bench), bench.run.seed)
        lateness = Lateness(bench.run.send_lateness_limit_ms, bench.run.loop_lag_limit_ms)
        retries = Retries(
            bench.run.retries,
            bench.run.retry_wait_limit_s,
            bench.run.seed,
            bench.run.give_up_after,
        )
        Streaming(
            prepared.plan,
            folder,
            source,
            start,
            told,
            prepared.redactor,
            lateness,
            retries,
            begun=begun,
        ).run()


def _record(prepared: Prepared, selection: Mapping[str, Any]) -> dict[str, Any]:
    bench = prepared.bench
    return {
        **made_with(),
        "config": config.resolved(bench),
        "selection": dict(selection),
        "planned": [cell._asdict() for cell in prepared.plan.cells()],
        **_whole(prepared),
        "seeds": {"run": bench.run.seed},
        "suites": {suite.name: suite.sha256() for suite in prepared.suites},
        "aggregation": {
            suite.name: suite.scheme().row() for suite in prepared.suites if suite.aggregation
        },
        "prompts": prepared.prompts.record(),
        "extractor": EXTRACTOR_VERSION,
        "instructions": {one.name: instructions_hash(one) for one in bench.endpoints},
        "calibration": _calibration(),
    }


def _whole(prepared: Prepared) -> dict[str, Any]:
    """Return what a part says of the whole that it belongs to."""
    if prepared.whole is None:
        return {}
    return {"planned_whole": [cell._asdict() for cell in prepared.whole.cells()]}


def _calibration() -> dict[str, Any] | None:
    found = last()
    if found is None:
        return None
    return {name: found.get(name) for name in ("measured_at", "good", "errors", "load_average")}

"""What a script or a test may call: a whole run, a finished run, one clip asked many times."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from voxmeter.client import config, run
from voxmeter.client.progress import Quiet
from voxmeter.client.publish import publishing
from voxmeter.client.report import write_reports
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.score import score_run
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.stats import Interval, percentile

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency of a conversation.

    Attributes:
        samples: One value a trial, ms, without those that did not happen or that this machine
            spoilt by being late.
        missing: Trials that have no value.
        p50: The median with its order-statistic interval; None without samples.
        invalid: How many of the missing had a value that this machine spoilt.
    """

    samples: tuple[float, ...]
    missing: int
    p50: Interval | None
    invalid: int = 0

    @property
    def interval(self) -> tuple[float | None, float | None] | None:
        """Lower and upper limit of the median, ms; a limit is None where the samples give none."""
        return None if self.p50 is None else (self.p50.low, self.p50.high)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What came of asking one clip many times.

    Attributes:
        trials: Rows as in `trials.jsonl`, without warm-up turns.
        transcripts: What was heard in each reply; "" where nothing was.
        summary: As in `summary.json`.
        endpoint_kind: The protocol that was spoken, as in bench.toml.
        pacing: How the clip was sent.
    """

    trials: tuple[Row, ...]
    transcripts: tuple[str, ...]
    summary: Row = field(repr=False)
    endpoint_kind: str = ""
    pacing: str = "real-time"

    def latency(self, metric: str) -> Latency:
        """Return one latency over all trials.

        Args:
            metric: A name of the contract: `first_audible_ms`, `first_packet_ms`, …

        Raises:
            KeyError: If there is no such latency.
        """
        had = [
            (float(trial["latency"][metric]), in_time(trial))
            for trial in self.trials
            if trial["latency"] and trial["latency"][metric] is not None
        ]
        samples = tuple(value for value, valid in had if valid)
        import numpy as np

        p50 = percentile(np.array(samples), 0.5) if samples else None
        return Latency(samples, len(self.trials) - len(samples), p50, len(had) - len(samples))


def in_time(trial: Row) -> bool:
    """Return whether this machine was never so late in a trial that its latency is spoilt."""
    return bool((trial.get("audit") or {}).get("latency_valid", True))


@dataclass(frozen=True, slots=True)
class Run:
    """A finished or unfinished run, read from its folder.

    Attributes:
        path: The run folder.
        summary: Content of `summary.json`; computed when the run has not written one.
    """

    path: Path
    summary: Row = field(repr=False)

    def trials(self) -> Iterator[Row]:
        """Yield the newest row of every trial, as in `trials.jsonl`."""
        with RunFolder.open(self.path) as folder:
            yield from folder.newest_trials()

    def scores(self) -> Iterator[Row]:
        """Yield the rows of `scores.jsonl`, oldest first; the newest of a metric counts."""
        with RunFolder.open(self.path) as folder:
            yield from folder.rows("scores")


def run_bench(
    bench: str | Path | Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    resume: str | Path | None = None,
) -> Run:
    """Do what `voxmeter run` does, quietly; blocks until the run is scored.

    Args:
        bench: A bench.toml, or its content as tables; None takes `./bench.toml`, else the
            packaged one.
        limit: At most so many items of each suite.
        resume: A run folder to go on with; `bench` and `limit` are then not given.

    Raises:
        UserError: If it cannot be run here. An endpoint's faults are in the trials instead.
    """
    if resume is not None:
        if bench is not None or limit is not None:
            raise UserError("run_bench", "resume comes with bench or limit", "leave them out")
        prepared, folder = run.reopen(Path(resume))
    else:
        prepared = run.prepare(_bench(bench), limit=limit)
        folder = run.create(prepared, {"limit": limit})
    with folder, publishing(prepared, folder) as published:
        run.stream(prepared, folder, published.show(Quiet()))
        published.scoring()
        summary = score_run(folder, prepared.bench)
        published.scored(summary)
        write_reports(folder, summary)
        if published.done(summary):
            write_reports(folder, summary)
        return Run(folder.path, summary)


def open_run(path: str | Path) -> Run:
    """Return a run from its folder.

    Raises:
        UserError: If it is no run folder, or a file in it is damaged.
    """
    from voxmeter.client.report import summarised

    with RunFolder.open(Path(path)) as folder:
        return Run(folder.path, summarised(folder))


def converse(
    endpoint: str | Mapping[str, Any],
    clip: str | Path,
    trials: int = 20,
    *,
    transcribe: str | None = "tiny.en",
    language: str = "en",
) -> Conversation:
    """Ask one clip many times, each in a session of its own, after one warm-up turn.

    Args:
        endpoint: A URL (`ws://…`, `wss://…`), one of our own servers (`metronome?delay_ms=300`,
            `cascade`), or an `[[endpoint]]` table as in bench.toml.
        clip: An audio file.
        trials: How many times.
        transcribe: The model that reads the replies; None: nothing is read, every transcript is
            "", and no model is needed.
        language: Language of the replies.

    Raises:
        UserError: If the endpoint or the clip cannot be used as they are given. An endpoint's
            faults are in the trials instead.
    """
    source = Path(clip)
    if not source.is_file():
        raise UserError(str(source), "there is no such clip", "give the path of an audio file")
    with TemporaryDirectory(prefix="voxmeter-") as temporary, ExitStack() as stack:
        place = Path(temporary)
        shutil.copyfile(source, place / f"clip{source.suffix}")
        item = {
            "id": "clip",
            "audio": f"clip{source.suffix}",
            "kind": "open",
            "question": "",
            "language": language,
        }
        (place / "clip.jsonl").write_text(json.dumps(item) + "\n", encoding="utf-8")
        tables: dict[str, Any] = {
            "run": {"name": "converse", "out": str(place / "runs"), "trials": trials, "warmup": 1},
            "endpoint": [_table(endpoint)],
            "suite": [{"kind": "jsonl", "name": "clip", "path": "clip.jsonl"}],
        }
        if transcribe is not None:
            tables["transcribe"] = {"model": transcribe}
        else:
            tables["transcribe"] = {"overlap": False}
        prepared = run.prepare(config.parse(tables, "converse", place))
        folder = stack.enter_context(run.create(prepared, {}))
        run.stream(prepared, folder, Quiet())
        summary = score_run(folder, prepared.bench, transcribe=transcribe is not None)
        return _conversation(folder, summary, prepared.bench)


def _conversation(folder: RunFolder, summary: Row, bench: Bench) -> Conversation:
    texts = {(row["key"], row["attempt"]): row["text"] for row in folder.rows("transcripts")}
    rows = [row for row in folder.newest_trials() if not row["warmup"]]
    heard = [texts.get((row["key"], row["attempt"])) or "" for row in rows]
    kind, pacing = bench.endpoints[0].kind, bench.run.pacing
    return Conversation(tuple(rows), tuple(heard), summary, kind, pacing)


def _table(endpoint: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(endpoint, str):
        here = {} if {"url", "builtin"} & set(endpoint) else {"folder": str(Path.cwd())}
        return {"name": "endpoint", **here, **endpoint}
    where = "url" if "://" in endpoint else "builtin"
    return {"name": "endpoint", "kind": "openai-realtime", where: endpoint}


def _bench(bench: str | Path | Mapping[str, Any] | None) -> Bench:
    if isinstance(bench, Mapping):
        return config.parse(bench, "bench", Path.cwd())
    return config.load(None if bench is None else Path(bench))


__all__: Sequence[str] = ("Conversation", "Latency", "Run", "converse", "open_run", "run_bench")

"""`voxmeter check`: whether a bench.toml will work here, before hours are spent on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from voxmeter.client.bench import Bench, Endpoint
    from voxmeter.client.clips import Clip
    from voxmeter.client.redaction import Redactor
    from voxmeter.client.shots import Examples
    from voxmeter.client.target import Target
    from voxmeter.suites.suite import Item, Suite

_TRIED = 20  # items, of which one should be fit to be spoken

MOST_READ = 300
"""Items whose clips are read; a whole benchmark would take an hour."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `[BENCH] --offline --no-question`."""
    parser.add_argument("bench", nargs="?", type=Path, help="a bench.toml (default: ./bench.toml)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--offline", action="store_true", help="do not speak to anybody: no endpoint, no judge"
    )
    how.add_argument(
        "--no-question", action="store_true", help="open a session with each, ask nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Check everything, one line each, and go on after a failure.

    Every endpoint is asked one question, the first of the bench that can be spoken; every judge is
    asked about one reply.

    Returns:
        0 when all is well, 3 when an endpoint or a judge gave no reply, or the broker did not take
        us, and all else is well.

    Raises:
        UserError: The first thing that the user must mend.
    """
    from voxmeter.client import config
    from voxmeter.client.access import redactor
    from voxmeter.client.bench_rules import refuse_lost_text, refuse_unbuilt
    from voxmeter.client.cli import DONE, ENDPOINT_FAILED
    from voxmeter.client.shots import refuse_lost_examples

    bench = config.load(args.bench)
    findings = Findings(redactor(bench))
    findings.good("config", f"{bench.source}: {_counted(bench)}")
    with findings.may_fail("features"):
        refuse_unbuilt(bench)
    suites = _check_suites(bench, findings)
    _check_conditions(bench, findings)
    items = [item for suite in suites for item in suite.items]
    with findings.may_fail("features"):
        names = [one.name for one in bench.endpoints]
        refuse_lost_text(bench, names, items)
        for note in refuse_lost_examples(bench, names, items):
            findings.note("features", note)
    with findings.may_fail("transcribe"):
        _check_model(bench, {item.language for item in items}, findings)
    _check_judges(bench, items, findings, ask=not (args.offline or args.no_question))
    question = None if args.offline or args.no_question else _question(items, findings)
    for endpoint in bench.endpoints:
        with findings.may_fail(f"endpoint {endpoint.name}"):
            _check_endpoint(bench, endpoint, findings, question, offline=args.offline)
    with findings.may_fail("mqtt"):
        _check_broker(bench, findings, offline=args.offline)
    if findings.first is not None:
        raise findings.first
    return ENDPOINT_FAILED if findings.refused else DONE


class Findings:
    """Prints what is found, line by line, and remembers what went wrong.

    Attributes:
        first: The first of the user's mistakes; None without one.
        refused: Whether an endpoint gave no session or no reply.
    """

    def __init__(self, redactor: Redactor) -> None:
        from voxmeter.endpoints.errors import UserError

        self._redactor = redactor
        self.first: UserError | None = None
        self.refused = False

    def good(self, what: str, text: str) -> None:
        """Print that something is well."""
        self._print("ok", what, text)

    def note(self, what: str, text: str) -> None:
        """Print something that is odd and no reason to stop."""
        self._print("note", what, text)

    def may_fail(self, what: str) -> Failing:
        """Return a block whose failure is printed, remembered and survived."""
        return Failing(self, what)

    def failed(self, what: str, text: str) -> None:
        """Print that something is not well."""
        self._print("FAIL", what, text)

    def _print(self, verdict: str, what: str, text: str) -> None:
        from voxmeter.client.terminal import printable

        line = f"{verdict:<5}{printable(what)}: {printable(self._redactor.text(text))}"
        print(line, flush=True)


class Failing:
    """A block in which the user's mistakes and an endpoint's faults are findings."""

    def __init__(self, findings: Findings, what: str) -> None:
        self._findings, self._what = findings, what

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        from voxmeter.endpoints.errors import EndpointError, UserError

        match error:
            case UserError():
                self._findings.first = self._findings.first or error
            case EndpointError():
                self._findings.refused = True
            case _:
                return False
        self._findings.failed(self._what, str(error))
        return True


class Question(NamedTuple):
    """What every endpoint is asked."""

    item: Item
    clip: Clip
    earlier: Examples


def _question(items: Sequence[Item], findings: Findings) -> Question | None:
    """Return the first question that can be spoken, None if there is none among the first items."""
    from voxmeter.client.clips import render
    from voxmeter.client.shots import NO_EXAMPLES, examples
    from voxmeter.client.speakers import speaker
    from voxmeter.endpoints.errors import ClipError, UserError

    for item in items[:_TRIED]:
        try:
            clip, earlier = render(item, speaker), NO_EXAMPLES
            if item.shots_via == "history":
                earlier = examples(item, "clean", lambda one, _: render(one, speaker))
        except (ClipError, UserError):
            continue  # told of above
        return Question(item, clip, earlier)
    findings.note("question", "no item can be spoken, so the endpoints are asked nothing")
    return None


def _counted(bench: Bench) -> str:
    counts = {"endpoint": len(bench.endpoints), "suite": len(bench.suites)}
    return ", ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items())


def _check_suites(bench: Bench, findings: Findings) -> list[Suite]:
    """Check every suite; return those that could be loaded."""
    from voxmeter.client.bench_suites import load_suites

    suites: list[Suite] = []
    for table in bench.suites:
        with findings.may_fail(f"suite {table.label}"):
            (suite,) = load_suites(bench.model_copy(update={"suites": (table,)}))
            findings.good(f"suite {suite.name}", f"{len(suite.items)} items")
            suites.append(suite)
            for warning in suite.warnings:
                findings.note(f"suite {suite.name}", warning)
            _check_clips(suite, findings)
            _check_voices(suite, bench.suite_conditions(table), findings)
    return suites


def _check_conditions(bench: Bench, findings: Findings) -> None:
    from voxmeter.client.conditions import check_condition

    used = {name for suite in bench.suites for name in bench.suite_conditions(suite)}
    for condition in bench.conditions:
        if condition.name in used:
            what = f"condition {condition.name}"
            with findings.may_fail(what):
                check_condition(bench, condition)
                steps = (" or ".join(_effects(step)) for step in condition.chain)
                findings.good(what, ", then ".join(steps) or "does nothing")


def _effects(step: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of what one step of a chain may do."""
    from voxmeter.client.effects.steps import effects

    return list(dict.fromkeys(name for name, _ in effects([step])))


def _check_clips(suite: Suite, findings: Findings) -> None:
    from voxmeter.client.clip_check import check_clips
    from voxmeter.endpoints.errors import UserError

    items = suite.items
    if len(items) > MOST_READ:
        items = suite.subset(MOST_READ, seed=0).items
        told = f"{MOST_READ} of {len(suite.items)} items are checked"
        findings.note(f"suite {suite.name}", f"{told}; voxmeter suites verify PATH checks them all")
    found = check_clips(items, _counter("clips"))
    for warning in found.warnings:
        findings.note(f"suite {suite.name}", warning)
    for problem in found.problems:
        findings.failed(f"suite {suite.name}", problem)
    if found.problems:
        raise UserError(
            f"suite {suite.name}",
            f"{len(found.problems)} of {found.checked} clips cannot be used",
            f"replace them; the first is {found.problems[0]}",
        )
    if found.checked:
        seconds = found.ms / 1000
        findings.good(f"suite {suite.name}", f"{found.checked} clips, {seconds:.0f} s of audio")


def _counter(what: str) -> Callable[[int], None]:
    """Return a counter on the terminal; silent where standard error is none."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(count: int) -> None:
        if count % 50 == 0:
            print(f"\r{count} {what}\r", end="", file=sys.stderr, flush=True)

    return show


def _check_voices(suite: Suite, conditions: Sequence[str], findings: Findings) -> None:
    from voxmeter.client.clips import speakers_of
    from voxmeter.client.speakers import check

    asked = (suite.asked(item, condition) for condition in conditions for item in suite.items)
    for name in speakers_of(asked):
        with findings.may_fail(f"voice {name}"):
            check(name)
            findings.good(f"voice {name}", "is installed")


def _check_model(bench: Bench, languages: set[str], findings: Findings) -> None:
    from voxmeter.client.models import locate
    from voxmeter.client.run import check_languages

    table = bench.transcribe
    found = locate(table.model, "whisper", allow_downloads=table.allow_downloads)
    check_languages(bench, languages)
    findings.good("transcribe", f"{table.model}, sha256 {found.sha256[:12]}")


def _check_judges(bench: Bench, items: Sequence[Item], findings: Findings, *, ask: bool) -> None:
    from voxmeter.client import judge_prompts
    from voxmeter.client.access import redactor
    from voxmeter.client.judge_check import try_judge

    with findings.may_fail("judges"):
        _, notes = judge_prompts.check(bench, (item.row() for item in items))
        for note in notes:
            findings.note("judges", note)
    for judge in bench.judges:
        what = f"judge {judge.name}"
        with findings.may_fail(what):
            if ask:
                findings.good(what, try_judge(judge, bench.source, redactor(bench)))
            else:
                findings.good(what, f"{judge.model}, not asked")


def _check_broker(bench: Bench, findings: Findings, *, offline: bool) -> None:
    """Knock at the broker of a bench that has one.

    Raises:
        ConnectError: If it does not take us; a run would go on without.
    """
    if bench.publish.mqtt is None:
        return
    from voxmeter.client.publish_settings import mqtt_settings, try_broker

    settings = mqtt_settings(bench)
    if offline:
        findings.good("mqtt", f"{settings.url}, not asked (--offline)")
    else:
        findings.good("mqtt", try_broker(settings))


def _check_endpoint(
    bench: Bench,
    endpoint: Endpoint,
    findings: Findings,
    question: Question | None,
    *,
    offline: bool,
) -> None:
    from contextlib import ExitStack

    from voxmeter.client import targets
    from voxmeter.client.access import access, variables

    what = f"endpoint {endpoint.name}"
    access(endpoint, bench.source)
    for name in variables(endpoint):
        findings.good(what, f"{name} is set")
    if offline:
        findings.good(what, "not asked (--offline)")
        return
    with ExitStack() as stack:
        target = targets.target(bench, endpoint, stack)
        if question is None:
            findings.good(what, _greeting(target))
        else:
            _ask(target, question, findings)


def _ask(target: Target, question: Question, findings: Findings) -> None:
    """Ask one question and tell how far it came.

    Raises:
        EndpointError: If no reply came that a run could score.
    """
    from voxmeter.client.progress import MEANT
    from voxmeter.client.rehearsal import rehearse
    from voxmeter.endpoints import catalog
    from voxmeter.endpoints.errors import EndpointError

    what = f"endpoint {target.name}"
    found = rehearse(target, question.item, question.clip, question.earlier)
    row = found.row
    asked = f'asked "{question.item.item}"'
    if row["connect_ms"] is not None:
        findings.good(what, _session(row["connect_ms"], row["rtt_ms"], found.note))
    timed = catalog.find(target.kind).timed
    if found.sent and timed:
        findings.good(what, f"takes {found.sent}; its latencies are called {row['latency_kind']}")
    if row["status"] != "ok":
        raise EndpointError(f"{asked}: {row['status']}: {row['fault'] or MEANT[row['status']]}")
    findings.good(what, f"{asked}: {_reply(row['latency'], found.heard)}")


def _reply(latency: Mapping[str, float | None], heard: str) -> str:
    began, long_ms = latency["first_audible_ms" if heard else "first_text_ms"], latency["reply_ms"]
    after = "" if began is None else f" after {began:.0f} ms"  # no clock ran where pacing is fast
    if not heard:
        return f"replied in writing{after}"
    length = "" if long_ms is None else f"{long_ms / 1000:.1f} s of "
    return f"heard{after}, {length}speech as {heard}"


def _greeting(target: Target) -> str:
    """Knock at an endpoint and return what it said."""
    import asyncio

    from voxmeter.client.probe import knock

    codec = target.codec()
    address = target.address(codec, "check")
    limit_s = target.patience.connect_timeout_s
    found = asyncio.run(knock(codec, target.transport(), address, limit_s))
    return _session(found.connect_ms, found.rtt_ms, found.note)


def _session(connect_ms: float, rtt_ms: float | None, note: str) -> str:
    rtt = "" if rtt_ms is None else f", round trip {rtt_ms:.1f} ms"
    told = f" ({note})" if note else ""
    return f"session after {connect_ms:.0f} ms{rtt}{told}"

"""The pytest plugin: the fixture `voxmeter` and the option `--voxmeter-update`.

pytest loads this file at every start, in every project of an environment that has voxmeter:
whatever is heavy is imported by the fixture's methods.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from voxmeter.client.api import Conversation
    from voxmeter.client.regression import Limits

_PROPERTY = "voxmeter"
_WRITTEN = pytest.StashKey[dict[Path, "Conversation"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--voxmeter-update`."""
    parser.getgroup("voxmeter").addoption(
        "--voxmeter-update",
        action="store_true",
        help="write the latency baselines of the chosen tests anew instead of comparing with them",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was compared in tests that passed; those that failed say it themselves."""
    lines = [
        f"{report.nodeid}: {line}"
        for report in terminalreporter.getreports("passed")
        for name, line in report.user_properties
        if name == _PROPERTY
    ]
    if lines:
        terminalreporter.section("voxmeter")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def voxmeter(request: pytest.FixtureRequest) -> Voxmeter:
    """Ask an endpoint one clip many times, and compare its latency with a baseline."""
    return Voxmeter(request)


class Voxmeter:
    """What the fixture `voxmeter` gives a test. Relative paths start at the test file's folder."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._folder = request.path.parent
        self._config = request.config
        self._node = request.node

    def converse(
        self,
        endpoint: str | Mapping[str, Any],
        clip: str | os.PathLike[str],
        trials: int = 20,
        *,
        transcribe: str | None = "tiny.en",
        language: str = "en",
    ) -> Conversation:
        """Ask one clip many times, each in a session of its own: `voxmeter.converse`.

        Args:
            endpoint: A URL, one of our own servers, or an `[[endpoint]]` table.
            clip: An audio file.
            trials: How many times.
            transcribe: The model that reads the replies; None: nothing is read.
            language: Language of the replies.

        Raises:
            UserError: If the endpoint or the clip cannot be used as they are given, or a baseline
                that the test names is not there: minutes of asking would come to nothing.
        """
        __tracebackhide__ = True
        from voxmeter.client import api
        from voxmeter.endpoints.errors import UserError

        try:
            self._need_baselines()
            return api.converse(
                endpoint, self._folder / clip, trials, transcribe=transcribe, language=language
            )
        except UserError as error:
            raise error.with_traceback(None) from None

    def assert_no_regression(
        self,
        result: Conversation,
        baseline: str | os.PathLike[str],
        metric: str = "first_audible_ms",
        relative: float = 0.1,
        absolute_ms: float = 30.0,
        *,
        at: Literal["p50", "mean"] = "p50",
    ) -> None:
        """Fail where a latency is worse than its baseline; with `--voxmeter-update`, write that.

        It is worse when the 95 % interval of the change (unpaired bootstrap) lies above zero and
        the change is beyond both floors.

        Args:
            result: Of `converse`.
            baseline: The file; a relative path starts at the test file's folder.
            metric: A time of the run folder's `latency` of which less is better.
            relative: Floor of the change, as a share of the baseline's figure.
            absolute_ms: Floor of the change, ms.
            at: The figure that is compared.

        Raises:
            AssertionError: If it is worse, or the result has too few samples to tell.
            UserError: If there is no such baseline, it is damaged, or it was made of another
                clip, endpoint kind, latency kind, pacing or schema: then nothing is compared.
        """
        __tracebackhide__ = True
        from voxmeter.client.regression import Limits
        from voxmeter.endpoints.errors import UserError

        check = self._write if self._config.getoption("voxmeter_update") else self._compare
        try:
            limits = Limits(metric, at, relative, absolute_ms)
            problem = check(result, self._folder / baseline, limits)
        except UserError as error:
            raise error.with_traceback(None) from None
        if problem:
            raise AssertionError(problem)

    def _need_baselines(self) -> None:
        from voxmeter.client.baseline import missing
        from voxmeter.client.pytest_baselines import named_baselines

        function = getattr(self._request, "function", None)
        if function is None or self._config.getoption("voxmeter_update"):
            return
        for name in named_baselines(function):
            path = self._folder / name
            if not path.exists():
                raise missing(self._shown(path), self._update_command())

    def _compare(self, result: Conversation, path: Path, limits: Limits) -> str | None:
        from voxmeter.client.baseline import baseline_of, differences, read_baseline
        from voxmeter.client.regression import explanation, judge, short_of, unfit
        from voxmeter.endpoints.errors import UserError

        place, metric, again = self._shown(path), limits.metric, self._update_command()
        base, new = read_baseline(path, place, again), baseline_of(result, place)
        problem = unfit(new.samples[metric], metric)
        if problem:
            return problem
        cure = f"compare like with like, or write it anew with: {again}"
        found = differences(base, new)
        if found:
            raise UserError(place, f"was made from {' and '.join(found)}", cure)
        short = short_of(base, metric)
        if short:
            raise UserError(place, short, f"write it anew with: {again}")
        verdict = judge(base.samples[metric], new.samples[metric], limits)
        self._say(f"{metric} {verdict.figures}: {verdict.reason}")
        return explanation(verdict, place, base, new, again) if verdict.regressed else None

    def _write(self, result: Conversation, path: Path, limits: Limits) -> str | None:
        from voxmeter.client.baseline import baseline_of, write_baseline
        from voxmeter.client.regression import left_out, unfit
        from voxmeter.endpoints.errors import UserError

        place, metric = self._shown(path), limits.metric
        if not self._may_write(path.resolve(), result):
            found = "was written from another conversation by this very command"
            raise UserError(place, found, "give each conversation a baseline of its own")
        new = baseline_of(result, place)
        problem = unfit(new.samples[metric], metric)
        if problem:
            return f"{place} is not written: {problem}"
        write_baseline(path, new)
        samples = new.samples[metric]
        told = left_out(samples)
        of = f" of {samples.asked}" if told else ""
        self._say(f"wrote {place}: {metric} of {len(samples.values)}{of} trials{told}")
        return None

    def _may_write(self, path: Path, result: Conversation) -> bool:
        """Claim a baseline for a conversation, once in a command, whichever worker asks."""
        written = self._config.stash.setdefault(_WRITTEN, {})
        if path not in written and not self._claimed(path):
            return False
        return written.setdefault(path, result) is result

    def _claimed(self, path: Path) -> bool:
        """Return whether no other worker of pytest-xdist has this file."""
        worker = getattr(self._config, "workerinput", None)  # what xdist gives its workers
        if worker is None:
            return True
        command = worker["testrunuid"]
        # The folders of all workers of one command lie in one.
        shared = self._request.getfixturevalue("tmp_path_factory").getbasetemp().parent
        name = hashlib.sha256(f"{command}\n{path}".encode("utf-8", "replace")).hexdigest()[:16]
        try:
            (shared / f"voxmeter-{name}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _say(self, line: str) -> None:
        self._node.user_properties.append((_PROPERTY, line))

    def _shown(self, path: Path) -> str:
        try:
            return str(path.resolve().relative_to(self._config.invocation_params.dir))
        except ValueError:
            return str(path)

    def _update_command(self) -> str:
        file = os.path.relpath(self._node.path, self._config.invocation_params.dir)
        name = self._node.nodeid.partition("::")[2]
        return f"pytest --voxmeter-update {shlex.quote(f'{file}::{name}')}"

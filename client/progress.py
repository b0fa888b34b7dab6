"""How a run looks while it goes: each turn of a short run, a bar with running figures for any."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client.terminal import printable
from voxmeter.scoring.metrics import Question, answer_outcome
from voxmeter.scoring.types import Scored

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from voxmeter.client.plan import Trial

_SHORT_RUN = 60
_WIDTH = 100
_KEPT = 1000  # a running median needs no more
MEANT = {
    "timeout": "no reply within first_reply_timeout_s",
    "no_reply": "nothing audible came",
    "truncated": "no end of the reply within reply_limit_s",
}
"""What a status without a fault means."""


class Quiet:
    """Says nothing."""

    def endpoint(self, name: str, trials: int) -> None:
        """Say nothing."""

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Say nothing."""

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        """Say nothing."""


class Loud:
    """Shows a run on the terminal: results on standard output, the bar on standard error.

    Running accuracy is provisional: it reads the model's own text, because speech is transcribed
    after streaming. It is shown only where an endpoint sends text.

    Args:
        trials: Counted trials of the whole run; short runs show every turn.
    """

    def __init__(self, trials: int) -> None:
        self._each = trials <= _SHORT_RUN
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._right: list[bool] = []
        self._audible: list[float] = []
        self._done = self._failed = 0

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.completed}/{task.total}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[figures]}"),
                console=console,
                transient=True,
                redirect_stdout=False,  # results go where the user sent them
            )
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def endpoint(self, name: str, trials: int) -> None:
        """Begin an endpoint's figures."""
        self._right, self._audible = [], []
        self._done = self._failed = 0
        shown = printable(name, 40)
        self._print(f"\n{shown}: {trials} {'turn' if trials == 1 else 'turns'}")
        if self._bar is not None:
            self._task = self._bar.add_task(shown, total=trials, figures="")

    def trial(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Show one trial, and move the bar."""
        right = _right(trial, row)
        audible = (row.get("latency") or {}).get("first_audible_ms")
        if not trial.warmup:
            self._count(row, audible, right=right)
        if self._each:
            self._turn(trial, row, right=right)
        elif self._bar is None and self._done % 100 == 0 and not trial.warmup:
            self._print(f"  {self._done} done, {self._figures()}")

    def again(self, trial: Trial, row: Mapping[str, Any], wait_s: float) -> None:
        """Say why nothing seems to go on."""
        fault = printable(str(row.get("fault") or "refused"), _WIDTH)
        self._print(f"\n  {printable(trial.item.item, 60)}\n    {row['status']}  {fault}")
        self._print(f"    asked again in {wait_s:.1f} s")

    def _count(self, row: Mapping[str, Any], audible: float | None, *, right: bool | None) -> None:
        self._done += 1
        self._failed += row["status"] not in {"ok", "no_reply"}
        if right is not None:
            self._right.append(right)
        if audible is not None and (row.get("audit") or {}).get("latency_valid"):
            self._audible = [*self._audible[-_KEPT:], float(audible)]
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, figures=self._figures())

    def _figures(self) -> str:
        parts = []
        if self._right:
            parts.append(f"right so far {sum(self._right)}/{len(self._right)}")
        if self._audible:
            parts.append(f"p50 {statistics.median(self._audible):.0f} ms")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)

    def _turn(self, trial: Trial, row: Mapping[str, Any], *, right: bool | None) -> None:
        item = trial.item
        name = f"{item.item} (warm-up, not counted)" if trial.warmup else item.item
        self._print(f"\n  {printable(name, 60)}")
        self._print(f"    asked   {printable(item.question or '(a recording)', _WIDTH)}")
        if row["status"] != "ok":
            fault = printable(str(row.get("fault") or MEANT.get(row["status"], "")), _WIDTH)
            self._print(f"    {row['status']}  {fault}".rstrip())
            return
        said = printable(str(row.get("reply_text") or "(speech only)"), _WIDTH)
        self._print(f"    replied {said}")
        mark = {True: "right", False: f"wrong, it is {_wanted(trial)}", None: ""}[right]
        self._print("    " + "  ".join(part for part in (_heard(row), mark) if part))

    def _print(self, line: str) -> None:
        if self._bar is not None and sys.stdout.isatty():
            self._bar.console.out(line, highlight=False)
        else:
            print(line, flush=True)


def _right(trial: Trial, row: Mapping[str, Any]) -> bool | None:
    """Return whether the model's own text answers the question; None where nobody can say."""
    item = trial.item
    text = str(row.get("reply_text") or "")
    if item.kind == "open" or not item.reference or not text or row["status"] != "ok":
        return None
    asked = Question(item.kind, item.reference, item.options, item.language)
    outcome = answer_outcome(asked, text, "text")
    return isinstance(outcome, Scored) and outcome.value == 1


def _wanted(trial: Trial) -> str:
    return printable(trial.item.reference[0] if trial.item.reference else "", 40)


def _heard(row: Mapping[str, Any]) -> str:
    latency = row.get("latency") or {}
    parts = [
        f"{words} after {latency[name]:.0f} ms"
        for name, words in (("first_audible_ms", "heard"), ("first_text_ms", "text"))
        if latency.get(name) is not None
    ]
    late = not (row.get("audit") or {}).get("latency_valid", True)
    return ", ".join(parts) + " (this machine was late: not counted)" * late

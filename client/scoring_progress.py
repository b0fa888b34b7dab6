"""How scoring looks while it goes: one bar on standard error, nothing where nobody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from voxmeter.client.score import Progress

_NAMES = {
    "transcribe": "reading the replies",
    "score": "scoring",
    "judge": "asking judges",
    "page": "writing the page",
}


class ScoringProgress:
    """A callback for `score_run` and for what writes reports.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Bar | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        if not self._quiet and console.is_terminal:
            self._bar = Progress(console=console, transient=True)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Move the bar of a stage."""
        if self._bar is None:
            return
        if progress.stage not in self._tasks:
            name = _NAMES.get(progress.stage, progress.stage)
            self._tasks[progress.stage] = self._bar.add_task(name, total=progress.total)
        self._bar.update(self._tasks[progress.stage], completed=progress.done)

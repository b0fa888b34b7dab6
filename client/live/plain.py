"""The plain front end: a line for everything that happens, keys as lines of standard input."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    PhaseChanged,
    Running,
    Saved,
    TurnOver,
    Update,
    Words,
)
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.live.talk import Begin, Talk

KEYS = "Keys, each with Enter: m mute, i interrupt, c next condition, s save, q quit."

_PHASES = {
    "connecting": "connecting",
    "listening": "listening: speak when you like",
    "lost": "connection lost",
    "ended": "ended",
}
_MARKS = {
    "speech_end": "you stopped speaking",
    "first_packet": "first packet",
    "first_audible": "first audible sound (mouth to ear)",
    "reply_end": "reply ended",
}
_NAMES = {
    "first_packet_ms": "first packet",
    "first_audible_ms": "first audible",
    "reply_end_ms": "reply end",
}


async def run(begin: Begin) -> None:
    """Show a talk line by line on standard output until it ends.

    Args:
        begin: Makes the talk.

    Raises:
        UserError: As the talk raises it.
    """
    lines = Lines(print_line)
    talk = begin(lines.show)
    for text in talk.advice:
        print_line(text)
    conditions = talk.conditions
    if len(conditions) > 1:
        print_line(f"Conditions: {', '.join(conditions)}.")
    keyed = sys.stdin is not None and sys.stdin.isatty()
    if keyed:
        print_line(KEYS)
    with _keys(talk, sys.stdin) if keyed else _no_keys():
        await talk.run()


class Lines:
    """Turns updates into lines.

    Args:
        say: Takes one line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._pieces: dict[int, list[str]] = {}

    def show(self, update: Update) -> None:
        """Say what there is to say of an update; levels are left to those who can draw."""
        match update:
            case Level():
                return
            case Words("reply", turn, text, False):
                self._pieces.setdefault(turn, []).append(text)
            case Words(side, turn, text):
                self._say(f"{turn} {'you' if side == 'user' else 'reply'}: {printable(text)}")
            case Mark(turn, name, ms):
                moment = "" if name == "speech_end" else f" after {ms:.0f} ms"
                self._say(f"{turn} {_MARKS[name]}{moment}")
            case TurnOver():
                self._over(update)
            case Running(figures):
                if figures:
                    self._say(f"so far: {figures_said(figures)}")
            case PhaseChanged(phase, detail):
                if phase in _PHASES:
                    more = f": {printable(detail)}" if detail else ""
                    self._say(f"- {_PHASES[phase]}{more}")
            case Notice(text, serious):
                self._say(f"{'! ' if serious else '- '}{printable(text)}")
            case Saved(folder, turns, _):
                self._say(f"saved {turns} {'turn' if turns == 1 else 'turns'} in {folder}")

    def _over(self, over: TurnOver) -> None:
        said = "".join(self._pieces.pop(over.turn, [])).strip()
        if said:
            self._say(f"{over.turn} reply: {printable(said)}")
        told = [
            f"{words} {over.latency[name]:.0f} ms"
            for name, words in _NAMES.items()
            if over.latency.get(name) is not None
        ]
        where = "" if over.condition == "clean" else f" ({printable(over.condition)})"
        figures = f": {', '.join(told)}, from the log" if told else ""
        self._say(f"{over.turn} {over.status}{where}{figures}")


def figures_said(figures: Mapping[str, tuple[int, float, float]]) -> str:
    """Return running figures as words."""
    return "; ".join(
        f"{_NAMES.get(name, name)} p50 {p50:.0f} ms, p90 {p90:.0f} ms (n = {n})"
        for name, (n, p50, p90) in figures.items()
    )


def print_line(text: str) -> None:
    """Print one line at once, also where nobody reads it any more."""
    print(text, flush=True)


@contextmanager
def _no_keys() -> Iterator[None]:
    yield


@contextmanager
def _keys(talk: Talk, stream: IO[str]) -> Iterator[None]:
    """Let lines of a stream control a talk; its reading ends with the process."""
    loop = asyncio.get_running_loop()
    pressed = Pressed(talk)

    def read() -> None:
        for line in stream:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(pressed.key, line.strip().lower())

    threading.Thread(target=read, name="keys", daemon=True).start()
    yield


class Pressed:
    """Does what a key stands for."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._muted = False
        self._saving: asyncio.Task[None] | None = None

    def key(self, key: str) -> None:
        """Take one key; others than those of `KEYS` are explained."""
        match key:
            case "m":
                self._muted = not self._muted
                self._talk.mute(muted=self._muted)
                print_line("- muted" if self._muted else "- not muted")
            case "i":
                self._talk.interrupt()
            case "c":
                print_line(f"- from the next turn on: {printable(self._talk.next_condition())}")
            case "s":
                self._saving = asyncio.ensure_future(self._save())
            case "q":
                self._talk.stop()
            case _:
                print_line(KEYS)

    async def _save(self) -> None:
        try:
            await self._talk.save()
        except UserError as error:
            print_line(f"! {printable(str(error))}")

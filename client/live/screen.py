"""The terminal screen of a live session: meters, words, marks, figures and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Protocol

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, Static

from voxmeter.client.live import screen_state
from voxmeter.client.live.screen_state import ScreenState
from voxmeter.client.live.sound import SoundFacts
from voxmeter.client.live.updates import Controls, Notice, Show, Side, Update
from voxmeter.endpoints.errors import UserError

_DRAWS_PER_S = 20
_NARROW = 70


class Talk(Controls, Protocol):
    """A live session as a screen sees it."""

    @property
    def endpoint(self) -> str:
        """Name of whom one talks to."""
        ...

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices."""
        ...

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of the conditions that one can speak in."""
        ...

    @property
    def advice(self) -> tuple[str, ...]:
        """What a user should know before the first word."""
        ...

    async def run(self) -> None:
        """Talk until the session is stopped; save."""
        ...


Begin = Callable[[Show], Talk]


class LiveScreen(App[None]):
    """Draws a session and hands keys to it.

    Attributes:
        state: What is shown.
        begun: Whether the session was started.
        over: Is set when it has ended.
        failure: What it raised.
    """

    CSS = """
    #head { height: auto; background: $primary-background; padding: 0 1; }
    #facts { height: auto; padding: 0 1; }
    #meters { height: 2; padding: 0 1; }
    #body { height: 1fr; }
    #words { width: 1fr; border: round $primary; }
    #side { width: 44; }
    #marks { height: auto; border: round $primary; }
    #figures { height: auto; border: round $primary; }
    #notices { height: auto; padding: 0 1; }
    .narrow #body { layout: vertical; }
    .narrow #words { width: 100%; height: 1fr; min-height: 4; }
    .narrow #marks, .narrow #figures { border: none; }
    .narrow #side { width: 100%; height: auto; max-height: 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "mute", "mute"),
        Binding("i", "interrupt", "cut"),
        Binding("c", "condition", "condition"),
        Binding("s", "save", "save"),
        Binding("q", "stop", "quit"),
        Binding("ctrl+c,ctrl+q", "stop", "quit", show=False, priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "voxmeter live"

    def __init__(self, begin: Begin) -> None:
        super().__init__()
        self.state = ScreenState()
        self._talk = begin(self.take)
        self._drawn: dict[str, str] = {}
        self._lines: dict[tuple[Side, int], Static] = {}
        self.begun = False
        self.over = asyncio.Event()
        self.failure: Exception | None = None

    def take(self, update: Update) -> None:
        """Take in what the session tells; it is drawn with the next picture."""
        self.state.take(update)

    def compose(self) -> ComposeResult:
        """Lay out the parts."""
        yield Static(id="head")
        yield Static(id="facts")
        with Vertical(id="meters"):
            yield Static(id="user")
            yield Static(id="reply")
        with Horizontal(id="body"):
            yield VerticalScroll(id="words")
            with VerticalScroll(id="side"):
                yield Static(id="marks")
                yield Static(id="figures")
        yield Static(id="notices")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begin to draw, and to talk."""
        for id_, title in (("words", "words"), ("marks", "this turn"), ("figures", "so far")):
            self.query_one(f"#{id_}").border_title = title
        for line in self._talk.advice:
            self.take(Notice(line))
        self.set_interval(1 / _DRAWS_PER_S, self.draw)
        self.begun = True
        self.run_worker(self._run_talk(), name="live session")

    def draw(self) -> None:
        """Draw what has changed since the last picture."""
        if not self.query("#notices"):
            return  # the screen is being taken down
        width = self.size.width
        self.screen.set_class(width < _NARROW, "narrow")
        inner = max(20, width - 4)
        side = inner if width < _NARROW else 40
        self._show("head", screen_state.head(self.state, self._talk.endpoint))
        self._show("facts", screen_state.facts_line(self._talk.facts))
        self._show("user", screen_state.meter(self.state, "user", inner))
        self._show("reply", screen_state.meter(self.state, "reply", inner))
        self._show("marks", screen_state.marks(self.state, side))
        self._show("figures", screen_state.figures(self.state, side))
        self._show("notices", screen_state.notices(self.state))
        self._show_words()

    def _show(self, name: str, text: Text) -> None:
        drawn = text.markup
        if self._drawn.get(name) != drawn:
            self._drawn[name] = drawn
            self.query_one(f"#{name}", Static).update(text)

    def _show_words(self) -> None:
        fresh, self.state.fresh = self.state.fresh, []
        words = self.query_one("#words", VerticalScroll)
        for spoken in fresh:
            key, text = (spoken.side, spoken.turn), screen_state.transcript(spoken)
            if key in self._lines:
                self._lines[key].update(text)
            else:
                self._lines[key] = Static(text)
                words.mount(self._lines[key])
        for key in list(self._lines)[: -screen_state.KEPT_LINES]:
            self._lines.pop(key).remove()
        if fresh:
            words.scroll_end(animate=False)

    def action_mute(self) -> None:
        """Send silence, or no longer."""
        self.state.muted = not self.state.muted
        self._talk.mute(muted=self.state.muted)

    def action_interrupt(self) -> None:
        """Cut the reply."""
        self._talk.interrupt()

    def action_condition(self) -> None:
        """Speak in the next condition."""
        if len(self._talk.conditions) < 2:
            self.take(Notice("the bench has no further condition: see [[condition]] in bench.toml"))
            return
        self.state.condition = self._talk.next_condition()

    def action_save(self) -> None:
        """Write what was said so far; the session tells where."""
        self.run_worker(self._save(), exclusive=True, group="save")

    async def _save(self) -> None:
        try:
            await self._talk.save()
        except (UserError, OSError) as error:
            self.take(Notice(f"not saved: {error}", serious=True))

    def action_stop(self) -> None:
        """End the session; the screen goes when it has been saved."""
        self.take(Notice("ending; what was said is being saved"))
        self._talk.stop()

    async def _run_talk(self) -> None:
        try:
            await self._talk.run()
        except Exception as error:  # noqa: BLE001 - `run` raises it once the terminal is free
            self.failure = error
        finally:
            self.over.set()
            self.exit()


async def run(begin: Begin) -> None:
    """Show a live session on this terminal until it is over and saved.

    Args:
        begin: Makes the session, given where to show what happens.

    Raises:
        Exception: What the session raised, once the terminal is as it was before.
    """
    app = LiveScreen(begin)
    await app.run_async()
    if app.begun:
        await app.over.wait()
    if app.failure is not None:
        raise app.failure

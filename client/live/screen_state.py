"""What the terminal screen shows at a moment, kept up by the updates of a session, as lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from voxmeter.client.live.sound import SoundFacts
from voxmeter.client.live.updates import (
    Level,
    Mark,
    Notice,
    Phase,
    PhaseChanged,
    Running,
    Saved,
    Side,
    TurnOver,
    Update,
    Words,
)
from voxmeter.client.terminal import printable

FLOOR_DB = -60.0
NAMES: Mapping[Side, str] = {"user": "you", "reply": "reply"}
_COLOURS: Mapping[Side, str] = {"user": "cyan", "reply": "green"}
_PHASES: Mapping[Phase, str] = {
    "connecting": "connecting",
    "listening": "listening: speak",
    "user": "you speak",
    "waiting": "waiting for the reply",
    "reply": "the reply plays",
    "disconnected": "no connection to the endpoint",
    "no-device": "no microphone or no speaker",
    "ended": "over",
}
_MARKS = {
    "speech_end": "your speech ended",
    "first_packet": "first packet",
    "first_audible": "first audible",
    "reply_end": "reply ended",
}
_KEPT_NOTICES = 3
KEPT_LINES = 60
_LONGEST_WORDS = 4_000


@dataclass(slots=True)
class Spoken:
    """The words of one side in one turn."""

    side: Side
    turn: int
    text: str = ""


@dataclass(slots=True)
class ScreenState:
    """Everything that is shown."""

    phase: PhaseChanged = field(default_factory=lambda: PhaseChanged("connecting"))
    levels: dict[Side, float] = field(default_factory=lambda: {"user": FLOOR_DB, "reply": FLOOR_DB})
    spoken: list[Spoken] = field(default_factory=list)
    fresh: list[Spoken] = field(default_factory=list)
    """What of it is new or has changed since it was drawn."""
    turn: int = 0
    marks: dict[str, float] = field(default_factory=dict)
    over: TurnOver | None = None
    running: Running = field(default_factory=Running)
    notices: list[Notice] = field(default_factory=list)
    muted: bool = False
    condition: str = "clean"

    def take(self, update: Update) -> None:
        """Take in what has happened."""
        match update:
            case Level(side, dbfs):
                self.levels[side] = dbfs
            case Words():
                self._say(update)
            case Mark(turn, name, ms):
                self._begin(turn)
                self.marks[name] = ms
            case TurnOver(turn):
                self._begin(turn)
                self.over = update
            case Running():
                self.running = update
            case PhaseChanged():
                self.phase = update
            case Notice():
                self._notice(update)
            case Saved(folder, turns, figures):
                self.running = Running(figures)
                what = "1 turn" if turns == 1 else f"{turns} turns"
                self._notice(Notice(f"saved {what}, read again from the log: {folder}"))

    def _begin(self, turn: int) -> None:
        if turn != self.turn:
            self.turn, self.marks, self.over = turn, {}, None

    def _notice(self, notice: Notice) -> None:
        self.notices = [*self.notices, notice][-_KEPT_NOTICES:]

    def _say(self, words: Words) -> None:
        found = [x for x in self.spoken[-8:] if (x.side, x.turn) == (words.side, words.turn)]
        if not found:
            found = [Spoken(words.side, words.turn)]
            self.spoken = [*self.spoken, *found][-KEPT_LINES:]
        text = words.text if words.whole else found[0].text + words.text
        found[0].text = text[:_LONGEST_WORDS]
        if found[0] not in self.fresh:
            self.fresh.append(found[0])


def head(state: ScreenState, endpoint: str) -> Text:
    """Return who is spoken to and what is going on."""
    phase = _PHASES[state.phase.phase]
    detail = f": {printable(state.phase.detail, 80)}" if state.phase.detail else ""
    parts: list[str | tuple[str, str]] = [
        (printable(endpoint, 40), "bold"),
        f"  {phase}{detail}",
        *([f"  [{printable(state.condition, 30)}]"] if state.condition != "clean" else []),
        *([("  MUTED", "bold red")] if state.muted else []),
    ]
    return Text.assemble(*parts)


def facts_line(facts: SoundFacts) -> Text:
    """Return what stands beside every latency that is measured through these devices."""
    names = dict.fromkeys((facts.microphone, facts.speaker))
    devices = " / ".join(printable(name, 40) for name in names)
    ms = (facts.input_latency_ms, facts.output_latency_ms)
    own = " + ".join("?" if one is None else f"{one:.0f}" for one in ms)
    kind = (
        "mouth to ear, by the converters' stamps"
        if facts.stamps == "device"
        else "as the page measures it"
    )
    notes = "".join(f"; {printable(note, 160)}" for note in facts.notes)
    system = printable(facts.host, 30)
    return Text(f"{devices} ({system}), device {own} ms; latency {kind}{notes}", style="dim")


def meter(state: ScreenState, side: Side, width: int) -> Text:
    """Return one side's level as a bar of a width."""
    db = max(FLOOR_DB, min(0.0, state.levels[side]))
    label = f"{NAMES[side]:<6}"
    number = f"{db:>4.0f} dB" if db > FLOOR_DB else " quiet "
    room = max(4, width - len(label) - len(number) - 1)
    full = round(room * (1 - db / FLOOR_DB))
    colour = "red" if db > -3 else _COLOURS[side]
    return Text.assemble(label, ("█" * full, colour), ("·" * (room - full), "dim"), " ", number)


def transcript(spoken: Spoken) -> Text:
    """Return what one side said in one turn, as data: no markup, no control characters."""
    text = printable(spoken.text.strip())
    return Text.assemble(
        (f"{spoken.turn} {NAMES[spoken.side]}: ", f"bold {_COLOURS[spoken.side]}"),
        text,
        overflow="fold",
    )


def marks(state: ScreenState, width: int) -> Text:
    """Return the marks of the current turn, in order, and a line of time with them on it."""
    if not state.turn:
        return Text("no turn yet", style="dim")
    ordered = sorted(state.marks.items(), key=lambda mark: mark[1])
    lines = [f"turn {state.turn}" + (f": {printable(state.over.status, 30)}" if state.over else "")]
    if len(ordered) > 1:
        lines.append(_timeline([ms for _, ms in ordered], width))
    lines += [f"{_MARKS.get(name, name):<18}{ms:>8.0f} ms" for name, ms in ordered]
    return Text("\n".join(lines))


def _timeline(moments: list[float], width: int) -> str:
    first, last = min(moments), max(moments)
    line = ["─"] * max(10, min(width, 80))
    for ms in moments:
        line[round((len(line) - 1) * (ms - first) / ((last - first) or 1))] = "●"
    return "".join(line)


def figures(state: ScreenState, width: int) -> Text:
    """Return the running percentiles, a line for each metric."""
    rows = [("ms", "n", "p50", "p90")]
    for name, (n, p50, p90) in state.running.figures.items():
        shown = printable(name.removesuffix("_ms").replace("_", " "), 30)
        rows.append((shown, str(n), f"{p50:.0f}", f"{p90:.0f}"))
    first = max(8, min(width - 22, max(cell_len(row[0]) for row in rows)))
    lines = [f"{row[0][:first]:<{first}}{row[1]:>5}{row[2]:>8}{row[3]:>8}" for row in rows]
    return Text("\n".join(lines))


def notices(state: ScreenState) -> Text:
    """Return the last things that a user should read."""
    lines = [
        Text(printable(notice.text, 300), style="bold red" if notice.serious else "yellow")
        for notice in state.notices
    ]
    return Text("\n").join(lines)

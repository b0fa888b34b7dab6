"""Everything of one connection that outlives a turn: its rows, what was sent, what came.

A turn is cut out of it when it is over, as the log and the audio of an attempt of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from voxmeter.client.capture import Recorder, size_of
from voxmeter.client.live.microphone import Frame, Taken
from voxmeter.client.live.playback import Put
from voxmeter.endpoints.codec import Message
from voxmeter.endpoints.events import Event

Row = dict[str, Any]
_MOST_ROWS = 2000  # of a time in which nobody speaks


@dataclass(frozen=True, slots=True)
class _Sent:
    frame: Frame
    row: Row


@dataclass(frozen=True, slots=True)
class _Sound:
    """Audio of a reply: its row, and where it lies in the reply stream."""

    row: Row
    start: int
    pcm: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.pcm) // 2


@dataclass(frozen=True, slots=True)
class Cut:
    """One turn's part of a tape.

    Attributes:
        rows: Its log without the header, in the order of time.
        sent: What was sent, 16-bit, from the first frame in `rows` on.
        heard: What the microphone heard meanwhile, at the device's rate and without a condition;
            all of one rate.
        start: Place of that frame's first sample in the outgoing stream.
        taken_ns: When that sample was at the converter.
        audio: Of each row of reply audio: its index in `rows`, and 16-bit samples.
        raw: Of each message that is kept whole: its index in `rows`, and the text.
    """

    rows: list[Row]
    sent: bytes
    heard: tuple[Taken, ...]
    start: int
    taken_ns: int
    audio: list[tuple[int, bytes]]
    raw: list[tuple[int, str]]


class Tape(Recorder):
    """Takes what a connection records, each row with the turn that it belongs to.

    Args:
        turn_of: Says which turn something that comes belongs to.
    """

    def __init__(self, turn_of: Callable[[Sequence[Event]], int]) -> None:
        super().__init__()
        self.rows = []
        self._turn_of = turn_of
        self._tags: dict[int, int] = {}  # id of a row -> its turn
        self._texts: dict[int, str] = {}
        self._sent: deque[_Sent] = deque()
        self._sounds: deque[_Sound] = deque()
        self._puts: deque[tuple[Put, int]] = deque()
        self._undecoded: deque[Row] = deque()
        self._blocks: deque[Taken] = deque()

    def heard(self, taken: Taken) -> None:
        """Keep a block of the microphone as it was taken."""
        self._blocks.append(taken)

    def sent(self, t_ns: int, kind: str, message: Message | None, **more: Any) -> None:  # noqa: ANN401 - fields of a JSON row
        """Note a message that we sent, but for audio."""
        before = len(self.rows)
        super().sent(t_ns, kind, message, **more)
        self._tag(before, ())

    def received(self, t_ns: int, message: Message, events: tuple[Event, ...]) -> None:
        """Note one message and what it meant."""
        before = len(self.rows)
        super().received(t_ns, message, events)
        self._tag(before, events)

    def took(self, frame: Frame, t_ns: int, messages: Sequence[Message]) -> None:
        """Note a frame of the microphone that was sent, or gathered to be sent later."""
        row: Row = {
            "t_ns": t_ns,
            "dir": "out",
            "due_ns": frame.came_ns,
            "kind": "audio",
            "bytes": sum(map(size_of, messages)),
            "samples": len(frame.pcm) // 2,
            "taken_ns": frame.taken_ns,
        }
        self._sent.append(_Sent(frame, row))

    def sounded(self, start: int, pcm: bytes) -> None:
        """Note the samples of the oldest reply audio whose samples are not noted yet."""
        self._sounds.append(_Sound(self._undecoded.popleft(), start, pcm))

    def played(self, put: Put, t_ns: int) -> None:
        """Note what a loudspeaker played of the reply stream."""
        self._puts.append((put, t_ns))

    def add(self, rows: Sequence[Row], raw: Sequence[tuple[int, str]], turn: int) -> None:
        """Take over the log of a session of one turn, without its header."""
        texts = dict(raw)
        for index, row in enumerate(rows):
            if row.get("kind") != "start":
                self.rows.append(row)
                self._tags[id(row)] = turn
                if row["kind"] == "reply_audio":
                    self._undecoded.append(row)
                if index in texts:
                    self._texts[id(row)] = texts[index]

    def cut(self, turn: int, first: int, end: int, rate: int, since_ns: int | None) -> Cut:
        """Return a turn's part.

        Args:
            turn: Its number.
            first: Its first sample in the outgoing stream.
            end: One past its last one.
            rate: Samples a second of the reply stream.
            since_ns: Where output flows all the time: rows from this moment on belong to it too.
        """
        frames = [one for one in self._sent if one.frame.end > first and one.frame.start < end]

        def mine(row: Row) -> bool:
            tag = self._tags.get(id(row), 0)
            return tag == turn or (since_ns is not None and tag < turn and row["t_ns"] >= since_ns)

        rows = [row for row in self.rows if mine(row)]
        sounds = [one for one in self._sounds if mine(one.row)]
        rows += [one.row for one in frames]
        rows += [row for put, t_ns in self._puts for row in _played_rows(put, t_ns, rate, sounds)]
        rows.sort(key=lambda row: row["t_ns"])
        place = {id(row): index for index, row in enumerate(rows, start=1)}
        return Cut(
            [dict(row) for row in rows],
            b"".join(one.frame.pcm for one in frames),
            self._heard_in(first, end, frames),
            frames[0].frame.start if frames else first,
            frames[0].frame.taken_ns if frames else 0,
            [(place[id(one.row)], one.pcm) for one in sounds],
            [(place[key], text) for key, text in self._texts.items() if key in place],
        )

    def _heard_in(self, first: int, end: int, frames: Sequence[_Sent]) -> tuple[Taken, ...]:
        """Return the blocks of a part of the stream; of two devices, those of the later one."""
        if not frames:
            return ()
        inside = [one for one in self._blocks if first <= one.place < end]
        rate = inside[-1].rate if inside else 0
        return tuple(one for one in inside if one.rate == rate)

    def forget(self, turn: int, first: int, before_ns: int) -> None:
        """Drop what no later turn needs.

        Args:
            turn: The last turn that has been cut.
            first: First sample of the outgoing stream that is still needed.
            before_ns: What was heard of replies before this moment goes too, when its turn has
                been cut.
        """
        while self._sent and self._sent[0].frame.end <= first:
            self._sent.popleft()
        while self._blocks and self._blocks[0].place < first:
            self._blocks.popleft()
        gone = {
            id(row)
            for row in self.rows
            if self._tags.get(id(row), 0) <= turn and row["t_ns"] < before_ns
        }
        # While nobody speaks the newest rows are enough, so that an hour of it takes no memory.
        gone |= {id(row) for row in self.rows[:-_MOST_ROWS]} if len(gone) < len(self.rows) else gone
        if not gone:
            return
        self.rows = [row for row in self.rows if id(row) not in gone]
        self._sounds = deque(one for one in self._sounds if id(one.row) not in gone)
        first_sound = self._sounds[0].start if self._sounds else None
        self._puts = deque(
            one
            for one in self._puts
            if first_sound is not None and one[0].sample + one[0].samples > first_sound
        )
        for key in gone:
            self._tags.pop(key, None)
            self._texts.pop(key, None)

    def _tag(self, before: int, events: Sequence[Event]) -> None:
        turn = self._turn_of(events)
        for row in self.rows[before:]:
            self._tags[id(row)] = turn
            if row["kind"] == "reply_audio":
                self._undecoded.append(row)
        for index, text in self.raw:
            if before <= index < len(self.rows):
                self._texts[id(self.rows[index])] = text
        self.raw.clear()
        self.audio.clear()  # decoded as it comes: `sounded`


def _played_rows(put: Put, t_ns: int, rate: int, sounds: Sequence[_Sound]) -> list[Row]:
    """Return the rows that say where in a turn's own stream lies what was played."""
    rows: list[Row] = []
    local = 0
    for one in sounds:
        start, end = max(put.sample, one.start), min(put.sample + put.samples, one.end)
        place = local + start - one.start
        local += one.end - one.start
        if start >= end:
            continue
        last = rows[-1] if rows else None
        if last is not None and last["sample"] + last["samples"] == place:
            last["samples"] += end - start
            continue
        rows.append(
            {
                "t_ns": t_ns,
                "dir": "out",
                "kind": "played",
                "bytes": 0,
                "sample": place,
                "samples": end - start,
                "heard_ns": put.heard_ns + round((start - put.sample) * 1e9 / rate),
            }
        )
    return rows

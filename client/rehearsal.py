"""Asks an endpoint one question of a bench as a run would, and keeps nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from voxmeter.client.finish import Attempt, finish
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import AttemptPaths
from voxmeter.client.shots import NO_EXAMPLES, Examples
from voxmeter.client.target import Target, attempt
from voxmeter.endpoints.codec import Asked

if TYPE_CHECKING:
    from voxmeter.client.clips import Clip
    from voxmeter.suites.suite import Item


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How one question went.

    Attributes:
        row: What its line of `trials.jsonl` would say.
        note: What the endpoint said of the session.
        sent: Encoding and rate of what we sent; empty where the question was never reached.
        heard: Encoding and rate of what came back; empty where no sound did.
    """

    row: Mapping[str, Any]
    note: str
    sent: str
    heard: str


def rehearse(target: Target, item: Item, clip: Clip, earlier: Examples = NO_EXAMPLES) -> Rehearsal:
    """Ask one question; blocks until the reply is over or a time-out of the endpoint ends it.

    Args:
        target: Whom to ask.
        item: The question.
        clip: Its sound.
        earlier: The worked examples that are sent as earlier turns.
    """
    asked = Asked(item.suite, item.item)
    capture = asyncio.run(
        attempt(target, clip.utterance, text=item.text, history=earlier.turns, asked=asked)
    )
    traits, rows = target.traits(), capture.rows
    ready: Mapping[str, Any] = next((row for row in rows if row["kind"] == "ready"), {})
    rate = rows[0].get("input_rate")
    pieces = [row for row in rows if row["kind"] == "reply_audio"]
    heard = f"{pieces[0]['encoding']} at {pieces[0]['rate']} Hz" if pieces else ""
    with TemporaryDirectory(prefix="voxmeter-") as temporary:
        place = Path(temporary)
        paths = AttemptPaths(place / "log", place / "all.flac", place / "a.reply.flac")
        row = finish(capture, Attempt({}, paths, Redactor()))
    encoding = ready.get("input_encoding") or traits.input_encoding
    sent = f"{encoding} at {rate} Hz" if rate else ""
    return Rehearsal(row, str(ready.get("note") or ""), sent, heard)

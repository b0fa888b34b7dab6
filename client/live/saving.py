"""A talk as a run folder: each turn is written down when it is over, as a trial of a run is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from voxmeter import __version__
from voxmeter.client import config, keys
from voxmeter.client.audio import Pcm, from_pcm16, sha256
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.child import ChildDiedError
from voxmeter.client.clock import utc_now
from voxmeter.client.finish import Attempt, finish
from voxmeter.client.machine import load_average, machine, packages
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.streaming import never_asked
from voxmeter.client.targets import instructions_hash
from voxmeter.client.worker import Worker
from voxmeter.scoring.answers import EXTRACTOR_VERSION

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.live.microphone import Taken
    from voxmeter.client.live.sound import SoundFacts
    from voxmeter.client.live.turn import Question
    from voxmeter.client.redaction import Redactor

Row = dict[str, Any]
FIGURES = ("first_packet_ms", "first_audible_ms", "reply_end_ms")
"""Latencies of which a running n, p50 and p90 are shown."""

_QUIET_AFTER_MS = 500  # that is looked at behind the end which the gate found


@dataclass(frozen=True, slots=True)
class Heard:
    """What a microphone heard in a turn, as its device took it.

    Resampling smears a hard edge over a few ms, so that the end of speech is found before it.

    Attributes:
        pcm: 16-bit samples.
        rate: Samples a second.
        place: Of the first one, from the first sample of the turn's outgoing stream on.
    """

    pcm: bytes
    rate: int
    place: float

    @classmethod
    def of(cls, blocks: Sequence[Taken], start: int) -> Self:
        """Join blocks; `start` is the place of the outgoing stream's first sample."""
        place = blocks[0].place - start if blocks else 0.0
        rate = blocks[0].rate if blocks else 1
        return cls(b"".join(one.pcm for one in blocks), rate, place)

    def sample(self, place: int, rate: int) -> int:
        """Return which of its samples is at a place of the outgoing stream."""
        return max(0, round((place - self.place) * self.rate / rate))

    def at(self, sample: int, rate: int) -> int:
        """Return at which place of the outgoing stream one of its samples is."""
        return max(0, round(self.place + sample * rate / self.rate))


@dataclass(frozen=True, slots=True)
class Finished:
    """A turn that is over, ready to be written down.

    Attributes:
        capture: Its log and audio; the utterance has the bounds that were found as it was spoken.
        fields: The fields of its line in `trials.jsonl` that are known.
        question: What it is kept as.
        heard: What the microphone heard; the end of the user's speech is found in that.
        audit: What the audit says besides, such as `hop_ms`.
        spoiled: Whether the device spoiled its latency.
    """

    capture: Capture
    fields: dict[str, Any]
    question: Question
    heard: Heard
    audit: Mapping[str, Any] = field(default_factory=dict)
    spoiled: bool = False


def finish_turn(made: Finished, attempt: Attempt) -> Row:
    """Write a turn's files and return its line, with bounds found in all that was recorded.

    Runs in a process of its own, like `finish`.
    """
    from voxmeter.scoring.speech import speech_bounds

    capture, spoken = made.capture, made.capture.utterance
    fields = dict(attempt.fields)
    if spoken is not None and spoken.samples:
        heard = made.heard
        near = spoken.end_sample + _QUIET_AFTER_MS * spoken.rate // 1000
        samples = from_pcm16(heard.pcm)[: heard.sample(near, spoken.rate)]
        bounds = speech_bounds(samples, heard.rate) if samples.size else None
        if bounds is not None:
            end = min(max(1, heard.at(bounds.end_sample, spoken.rate)), spoken.samples)
            onset = min(heard.at(bounds.onset_sample, spoken.rate), end - 1)
            spoken = replace(spoken, onset_sample=onset, end_sample=end, end_kind=bounds.kind)
            capture.utterance = spoken
        capture.rows[0] |= {
            "onset_sample": spoken.onset_sample,
            "speech_end_sample": spoken.end_sample,
            "end_kind": spoken.end_kind,
        }
        fields["clip"] = _clip(spoken)
    row = finish(capture, replace(attempt, fields=fields))
    row["audit"] |= made.audit
    row["audit"]["latency_valid"] = row["audit"]["latency_valid"] and not made.spoiled
    return row


def _ready() -> None:
    from voxmeter.scoring import speech

    assert speech is not None  # noqa: S101 - loaded, which is all


def _clip(spoken: Utterance) -> Row:
    samples = from_pcm16(spoken.pcm)
    return {
        "sha256": sha256(Pcm(samples, spoken.rate)),
        "ms": round(len(samples) * 1000 / spoken.rate, 3),
        "speech_end_ms": round(spoken.end_sample * 1000 / spoken.rate, 3),
        "end_kind": spoken.end_kind,
    }


class Keeping:
    """The run folder of a talk, made with its first turn.

    Args:
        bench: Where the endpoint stands.
        endpoint: Its name.
        parent: Where the folder is made.
        redactor: Knows every secret of the bench.
        facts: What is known of the devices.
    """

    def __init__(
        self, bench: Bench, endpoint: str, parent: Path, redactor: Redactor, facts: SoundFacts
    ) -> None:
        self._bench, self._endpoint, self._parent = bench, endpoint, parent
        self._redactor, self._facts = redactor, facts
        self._stack = ExitStack()
        self._worker = self._stack.enter_context(Worker("finisher"))
        self._items: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._latencies: list[Mapping[str, float | None]] = []
        self._writing = asyncio.Lock()
        self.folder: RunFolder | None = None
        self.turns = 0

    def warm(self) -> None:
        """Start the process that writes turns down, so that the first one does not wait for it."""
        self._worker.submit(_ready)

    def close(self) -> None:
        """Let go of the folder."""
        self._stack.close()

    async def keep(self, made: Finished) -> Row:
        """Write a turn down; return its line of `trials.jsonl`.

        Raises:
            UserError: If the disk is full.
            ChildDiedError: If the process that does it died twice.
        """
        async with self._writing:  # one after another, in the order of the turns
            folder = await asyncio.to_thread(self._folder)
            paths = folder.attempt_paths(made.fields)
            attempt = Attempt(made.fields, paths, self._redactor)
            row = await self._finished(made, attempt)
            await asyncio.to_thread(self._append, made.question, row)
            return row

    async def _finished(self, made: Finished, attempt: Attempt) -> Row:
        """Finish a turn in the other process, which is replaced once if it dies."""
        try:
            return await asyncio.wrap_future(self._worker.submit(finish_turn, made, attempt))
        except ChildDiedError:
            return await asyncio.wrap_future(self._worker.submit(finish_turn, made, attempt))

    async def never_heard(self, question: Question, condition: str, fault: str) -> None:
        """Write down that a question was asked aloud and the microphone did not hear it.

        Raises:
            UserError: If the disk is full.
        """
        fields = self.key(question, condition)
        fields |= {"started_at": utc_now().isoformat(timespec="milliseconds")}
        row = never_asked({**fields, "condition_params": {}}, fault)
        async with self._writing:
            await asyncio.to_thread(self._append, question, row)

    async def make(self) -> None:
        """Make the folder if it is not there yet.

        Raises:
            UserError: If it cannot be made.
        """
        async with self._writing:
            await asyncio.to_thread(self._folder)

    def figures(self) -> dict[str, tuple[int, float, float]]:
        """Return n, p50 and p90 of every latency that counts so far."""
        found: dict[str, tuple[int, float, float]] = {}
        for name in FIGURES:
            had = [one[name] for one in self._latencies]
            values = [value for value in had if value is not None]
            if values:
                p50, p90 = np.percentile(values, [50, 90])
                found[name] = len(values), float(p50), float(p90)
        return found

    def key(self, question: Question, condition: str) -> Row:
        """Return the fields that say which trial a turn is."""
        return {
            "key": keys.key(
                self._endpoint, question.suite, question.item, condition, question.trial
            ),
            "endpoint": self._endpoint,
            "suite": question.suite,
            "item": question.item,
            "condition": condition,
            "trial": question.trial,
            "turn": None,
            "attempt": 1,
            "warmup": False,
            "waited_s": 0.0,
        }

    def _append(self, question: Question, row: Row) -> None:
        folder = self._folder()
        name = (question.suite, question.item)
        if name not in self._items:
            self._items[name] = question.row
            folder.write_items(self._items.values())
        folder.append("trials", row)
        self.turns += 1
        if row["audit"] and row["audit"]["latency_valid"]:
            self._latencies.append(row["latency"])

    def _folder(self) -> RunFolder:
        if self.folder is None:
            made = RunFolder.create(self._parent, "live", self._record(), self._redactor)
            self.folder = self._stack.enter_context(made)
            self.folder.write_items(())
        return self.folder

    def _record(self) -> Row:
        bench, facts = self._bench, self._facts
        kept = [one for one in bench.endpoints if one.name == self._endpoint]
        shown = bench.model_copy(update={"endpoints": tuple(kept)})
        return {
            "voxmeter": __version__,
            "config": config.resolved(shown),
            "selection": {},
            "planned": [],  # nobody knows before how often people will speak
            "seeds": {"run": bench.run.seed},
            "machine": machine(),
            "load_average": load_average(),
            "packages": packages(),
            "suites": {},
            "extractor": EXTRACTOR_VERSION,
            "instructions": {one.name: instructions_hash(one) for one in kept},
            "live": {
                "endpoint": self._endpoint,
                "devices": {
                    "rate": facts.rate,
                    "microphone": facts.microphone,
                    "speaker": facts.speaker,
                    "host": facts.host,
                    "stamps": facts.stamps,
                    "input_latency_ms": facts.input_latency_ms,
                    "output_latency_ms": facts.output_latency_ms,
                    "notes": list(facts.notes),
                },
            },
        }

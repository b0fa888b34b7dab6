"""What a run is going to ask, in order: a lazy sequence of trials that stays small.

A plan of many thousand items holds the suites' items and one row of numbers; trials are made as
they are reached. Endpoints come one after another; each is asked suite by suite, condition by
condition, item by item, its warm-up turns first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from voxmeter.client import keys, nearest
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.runfolder import Newest
    from voxmeter.suites.suite import Item, Suite

ONLY = ("endpoint", "suite", "condition")
"""What `--only` can narrow."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One question to one endpoint, once.

    Attributes:
        endpoint: Its name.
        condition: Name of what happens to the clip; `clean` is nothing.
        item: The question; knows its suite's name.
        trial: 1 to n; 0 and below are warm-up turns, which never share a key with a counted one.
        attempt: 1, or one more than the newest attempt in the run folder.
    """

    endpoint: str
    condition: str
    item: Item
    trial: int
    attempt: int = 1

    @property
    def warmup(self) -> bool:
        """Whether the turn is recorded but not counted."""
        return self.trial < 1

    @property
    def key(self) -> str:
        """Its key in every file of the run folder."""
        item = self.item
        return keys.key(self.endpoint, item.suite, item.item, self.condition, self.trial)


class Cell(NamedTuple):
    """One endpoint, suite and condition, with how many trials are planned there."""

    endpoint: str
    suite: str
    condition: str
    planned: int


@dataclass(frozen=True, slots=True)
class _Block:
    """The items of one suite under one condition."""

    suite: Suite
    condition: str
    items: Sequence[Item]

    def trial(self, endpoint: str, item: Item, number: int) -> Trial:
        return Trial(endpoint, self.condition, self.suite.asked(item, self.condition), number)


class Plan:
    """Every trial of a run.

    Attributes:
        endpoints: Their names, in the order they are asked.
        trials: How often every item is asked.
        warmup: Turns of each endpoint that come first and are not counted.
    """

    def __init__(
        self, endpoints: Sequence[str], blocks: Sequence[_Block], trials: int, warmup: int
    ) -> None:
        self.endpoints = tuple(endpoints)
        self.trials = trials
        self.warmup = warmup
        self._blocks = tuple(blocks)

    def __len__(self) -> int:
        """Counted trials of all endpoints, without warm-up turns."""
        return len(self.endpoints) * self.per_endpoint

    def __iter__(self) -> Iterator[Trial]:
        """Every trial, each endpoint's warm-up turns first."""
        for endpoint in self.endpoints:
            yield from self.of(endpoint)

    @property
    def per_endpoint(self) -> int:
        """Counted trials of one endpoint."""
        return self.trials * sum(len(block.items) for block in self._blocks)

    def of(self, endpoint: str) -> Iterator[Trial]:
        """Yield one endpoint's trials: warm-up turns, then suite, condition, item, trial."""
        yield from self._warmups(endpoint)
        yield from self._counted(endpoint)

    def remaining(self, endpoint: str, newest: Mapping[str, Newest]) -> Iterator[Trial]:
        """Yield what is still to be asked of one endpoint.

        Finished trials are left out; others come again as the next attempt. Warm-up turns come
        again whenever a counted trial does, because the endpoint is cold again.

        Args:
            endpoint: Its name.
            newest: The newest attempt at each key, from the run folder.
        """
        counted = (
            again
            for trial in self._counted(endpoint)
            if (again := _again(trial, newest, repeat=False)) is not None
        )
        first = next(counted, None)
        if first is None:
            return
        for trial in self._warmups(endpoint):
            again = _again(trial, newest, repeat=True)
            if again is not None:
                yield again
        yield first
        yield from counted

    def count_remaining(self, endpoint: str, newest: Mapping[str, Newest]) -> int:
        """Return how many counted trials of one endpoint are still to be asked."""
        return sum(not trial.warmup for trial in self.remaining(endpoint, newest))

    def cells(self) -> list[Cell]:
        """Return every cell with its number of counted trials, in order."""
        return [
            Cell(endpoint, block.suite.name, block.condition, self.trials * len(block.items))
            for endpoint in self.endpoints
            for block in self._blocks
        ]

    def items(self) -> Iterator[Item]:
        """Yield every item that is asked, each once, for items.jsonl."""
        seen: set[str] = set()
        for block in self._blocks:
            if block.suite.name not in seen and block.items:
                seen.add(block.suite.name)
                yield from block.items

    def asked(self) -> Iterator[Item]:
        """Yield every item in every condition, each as it is asked there."""
        for block in self._blocks:
            for item in block.items:
                yield block.suite.asked(item, block.condition)

    def _counted(self, endpoint: str) -> Iterator[Trial]:
        for block in self._blocks:
            for item in block.items:
                for trial in range(1, self.trials + 1):
                    yield block.trial(endpoint, item, trial)

    def _warmups(self, endpoint: str) -> Iterator[Trial]:
        block = next((block for block in self._blocks if block.items), None)
        if block is None:
            return
        for number in range(self.warmup):
            turn, place = divmod(number, len(block.items))
            yield block.trial(endpoint, block.items[place], -turn)


def _again(trial: Trial, newest: Mapping[str, Newest], *, repeat: bool) -> Trial | None:
    before = newest.get(trial.key)
    if before is None:
        return trial
    if before.finished and not repeat:
        return None
    return Trial(
        trial.endpoint, trial.condition, trial.item, trial.trial, attempt=before.attempt + 1
    )


def build(
    bench: Bench,
    suites: Sequence[Suite],
    *,
    only: Mapping[str, Sequence[str]] | None = None,
    shard: tuple[int, int] | None = None,
) -> Plan:
    """Return the plan of a bench.

    Args:
        bench: With the command line's overrides already in it.
        suites: The loaded suites, in the bench's order, already cut to their limits.
        only: From `parse_only`: names to keep for `endpoint`, `suite`, `condition`.
        shard: From `parse_shard`: keep the items whose id falls into part `i` of `n`. Every item
            belongs to exactly one part, on every machine.

    Raises:
        UserError: If `only` names something the bench does not have.
    """
    only = only or {}
    endpoints = _kept("endpoint", [one.name for one in bench.endpoints], only)
    names = _kept("suite", [one.label for one in bench.suites], only)
    every = list(
        dict.fromkeys(one for table in bench.suites for one in bench.suite_conditions(table))
    )
    conditions = _kept("condition", every, only)
    blocks: list[_Block] = []
    for table, suite in zip(bench.suites, suites, strict=True):
        if table.label in names:
            items = [item for item in suite.items if shard is None or _in_shard(item, shard)]
            blocks.extend(
                _Block(suite, condition, items)
                for condition in bench.suite_conditions(table)
                if condition in conditions
            )
    return Plan(endpoints, blocks, bench.run.trials, bench.run.warmup)


def parse_only(text: str) -> dict[str, list[str]]:
    """Read `endpoint=a,suite=demo`; a name twice keeps both.

    Raises:
        UserError: If a part is not `endpoint=...`, `suite=...` or `condition=...`.
    """
    wanted: dict[str, list[str]] = {}
    for part in text.split(","):
        what, equals, name = (word.strip() for word in part.partition("="))
        if not equals or not name:
            raise UserError("--only", f"{part!r} is not a filter", "write endpoint=NAME,suite=NAME")
        if what not in ONLY:
            raise UserError("--only", f'cannot filter by "{what}"', nearest.cure(what, ONLY))
        wanted.setdefault(what, []).append(name)
    return wanted


def parse_shard(text: str) -> tuple[int, int]:
    """Read `I/N`, parts counted from 1.

    Raises:
        UserError: If it is something else.
    """
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError("--shard", f"{text!r} is not a part of a whole", "write 1/4 to 4/4")
    return int(found[1]), int(found[2])


def _kept(what: str, names: Sequence[str], only: Mapping[str, Iterable[str]]) -> list[str]:
    wanted = only.get(what)
    if wanted is None:
        return list(names)
    for name in wanted:
        if name not in names:
            raise UserError("--only", f'unknown {what} "{name}"', nearest.cure(name, names))
    return [name for name in names if name in set(wanted)]


def _in_shard(item: Item, shard: tuple[int, int]) -> bool:
    digest = hashlib.sha256(item.item.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % shard[1] == shard[0] - 1

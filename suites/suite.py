"""What a benchmark is: items with a clip recipe, a reference, a cluster and groups.

An item says what is to be spoken as a recipe of parts; the client renders it. Nothing here
decodes audio or loads a model, so a plan of many thousand items stays small.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.aggregate import Level, Rounding, Scheme
from voxmeter.scoring.checks import Check

Kind = Literal["choice", "number", "yes-no", "true-false", "name", "open"]
KINDS: tuple[Kind, ...] = ("choice", "number", "yes-no", "true-false", "name", "open")

QuestionVia = Literal["text", "speech-after", "speech-before"]
QUESTION_VIA: tuple[QuestionVia, ...] = ("text", "speech-after", "speech-before")

ShotsVia = Literal["clip", "history"]
SHOTS_VIA: tuple[ShotsVia, ...] = ("clip", "history")

TABLE_KEYS = ("kind", "name", "limit", "subset", "conditions", "few_shot", "interrupt")
"""Keys of a `[[suite]]` table that every kind has and that the client sees to."""

Origin = Literal["", "real", "synthetic"]


@dataclass(frozen=True, slots=True)
class Recording:
    """Audio from a file."""

    path: Path


@dataclass(frozen=True, slots=True)
class Gap:
    """Digital silence of `ms` milliseconds."""

    ms: float


@dataclass(frozen=True, slots=True)
class Spoken:
    """Text that a speech synthesiser speaks.

    Attributes:
        text: What to say.
        speaker: Name of the voice (`hibari`, `piper`, `espeak-ng`, `espeak-ng:de`).
    """

    text: str
    speaker: str


Part = Recording | Gap | Spoken


@dataclass(frozen=True, slots=True)
class Shot:
    """One worked example that goes before a question.

    Attributes:
        question: How its question is spoken.
        answer: How its answer is spoken.
        question_text: The question's words, where they are known.
        answer_text: The answer's words, likewise.
    """

    question: tuple[Part, ...]
    answer: tuple[Part, ...]
    question_text: str = ""
    answer_text: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a suite.

    Attributes:
        suite: Name of the suite.
        item: Id, unique within the suite.
        kind: How the reply is scored.
        recipe: What is to be spoken, in order.
        question: Its text; empty where nobody wrote it down.
        reference: The right answer; several where any of them is right; empty for an open
            question without one. A label (`"B"`) for choices.
        options: Texts of the options, labelled A, B, … in this order; empty but for choices.
        language: Language code of question and answer (`en`).
        cluster: What the item moves together with (one question in several voices): the unit of
            resampling.
        groups: Where it is reported, outermost first (`("STEM", "college_physics")`).
        question_via: None when the clip is the question itself; else how the question about the
            clip is put.
        shots: Worked examples that come before the question, first to last.
        shots_via: Whether they are spoken in front of the question, in one clip with it, or are
            sent as earlier turns of the conversation.
        shot_gap_ms: Silence between them in one clip, and before the question.
        keep_last_ms: How much of the end of examples and question together is sent as one clip;
            None for all.
        written: What is written to the endpoint where the question is put in writing and is more
            than `question`: options, how to answer.
        rubric: Name of the prompt by which a judge rates the reply; empty where rules score it.
        told: What a judge is told of the clip in words, where hearing it would be needed.
        checks: What rules check an open question's reply for; empty where its kind says enough.
        origin: Whether a person speaks in the recording or a synthesiser; empty where that is not
            known.
        first: Whether a limit takes it before other items of its kind.
    """

    suite: str
    item: str
    kind: Kind
    recipe: tuple[Part, ...]
    question: str = ""
    reference: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    language: str = "en"
    cluster: str = ""
    groups: tuple[str, ...] = ()
    question_via: QuestionVia | None = None
    shots: tuple[Shot, ...] = ()
    shots_via: ShotsVia = "clip"
    shot_gap_ms: float = 1000.0
    keep_last_ms: float | None = None
    written: str = ""
    rubric: str = ""
    told: str = ""
    checks: tuple[Check, ...] = ()
    origin: Origin = ""
    first: bool = False

    def row(self) -> dict[str, object]:
        """Return the item's line of `items.jsonl` in the run folder."""
        answers = list(self.reference)
        return {
            "suite": self.suite,
            "item": self.item,
            "cluster": self.cluster or self.item,
            "groups": list(self.groups),
            "kind": self.kind,
            "question": self.question,
            "reference": answers[0] if len(answers) == 1 else answers or None,
            "options": list(self.options),
            "language": self.language,
            "question_via": self.question_via,
            "shots": len(self.shots),
            "shots_via": self.shots_via if self.shots else None,
            "written": self.written,
            "rubric": self.rubric,
            "told": self.told,
            "checks": [check.row() for check in self.checks],
            "origin": self.origin,
        }

    @property
    def text(self) -> str:
        """What is written to the endpoint beside the clip; empty where nothing is."""
        return (self.written or self.question) if self.question_via == "text" else ""

    def parts(self) -> Iterator[Part]:
        """Yield everything that is spoken or played, the examples first."""
        for shot in self.shots:
            yield from shot.question
            yield from shot.answer
        yield from self.recipe

    def files(self) -> tuple[Path, ...]:
        """Return the audio files that its parts name, in order."""
        return tuple(part.path for part in self.parts() if isinstance(part, Recording))


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark, ready to be run.

    Attributes:
        name: The user's name for it.
        kind: Its kind in the catalog (`demo`, `jsonl`).
        items: In the suite's own order; ids are unique.
        scorer: `extract` for answers found by rule (open items get reference-free measures),
            `judge` where a judge model is needed.
        aggregation: How each level of groups is drawn from the level below it, outermost first:
            the whole suite from its groups, each of them from the groups inside it;
            `micro` (every item counts alike) for levels not named.
        rounding: How the benchmark's tables are printed.
        warnings: What a user should know about the data, one sentence each.
        conditions: Names of the conditions for which the benchmark brings recordings of its own.
        variant: Returns an item as it is asked in one of them.
    """

    name: str
    kind: str
    items: tuple[Item, ...]
    scorer: Literal["extract", "judge"] = "extract"
    aggregation: tuple[Level, ...] = ()
    rounding: Rounding = field(default_factory=Rounding)
    warnings: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    variant: Callable[[Item, str], Item] | None = None

    def asked(self, item: Item, condition: str) -> Item:
        """Return an item as it is asked in a condition; the same one where that only alters it."""
        if self.variant is None or condition not in self.conditions:
            return item
        return self.variant(item, condition)

    def scheme(self) -> Scheme:
        """Return how figures of its groups are drawn together."""
        return Scheme(self.aggregation, self.rounding)

    def limit(self, count: int, seed: int) -> Suite:
        """Return the suite with the first `count` items of the seeded order by kind.

        Args:
            count: Items wanted; all of them when there are fewer.
            seed: The run's seed; the same seed gives the same items, and a larger count only adds.
        """
        return replace(self, items=tuple(stratified(self.items, seed, _by_kind)[:count]))

    def subset(self, size: float, seed: int) -> Suite:
        """Return a seeded sample, stratified by kind and groups, in the suite's own order.

        Args:
            size: A share when below 1, else a number of items; at least one item is kept.
            seed: The run's seed.
        """
        count = round(size * len(self.items)) if size < 1 else int(size)
        kept = {item.item for item in stratified(self.items, seed, _by_group)[: max(1, count)]}
        return replace(self, items=tuple(item for item in self.items if item.item in kept))

    def sha256(self) -> str:
        """Return the hash of all texts and references, and of each audio file's name and size.

        Order and the suite's name do not count. Files are not read, as benchmarks have tens of
        thousands: each trial's line has the hash of the very clip that was sent.
        """
        whole = hashlib.sha256()
        for line in sorted(_identity(item) for item in self.items):
            whole.update(line.encode() + b"\n")
        return whole.hexdigest()


class Factory(Protocol):
    """How a suite kind is loaded; what the catalog and the entry points name."""

    def __call__(self, name: str, config: Mapping[str, object], base: Path, /) -> Suite:
        """Return the suite.

        Args:
            name: The user's name for it.
            config: Its table of bench.toml with the suite's own options beside the common keys;
                a factory refuses what is neither in `TABLE_KEYS` nor its own.
            base: Folder that relative paths start from: where bench.toml lies.

        Raises:
            UserError: If a path, a key or a line of the data is wrong.
        """
        ...


def stratified(
    items: Sequence[Item], seed: int, stratum: Callable[[Item], object] | None = None
) -> list[Item]:
    """Return the items in a seeded order in which every beginning holds each stratum in its share.

    Items of a stratum are shuffled by a hash of seed and id, so that adding items to a suite
    moves no other; those marked `first` come before the rest. Then strata are dealt out evenly.

    Args:
        items: Items with unique ids.
        seed: Any integer.
        stratum: What an item belongs to; its kind by default.
    """
    of = stratum or _by_kind
    sizes = Counter(of(item) for item in items)
    dealt: Counter[object] = Counter()
    places: list[tuple[float, str, Item]] = []
    for item in sorted(items, key=lambda item: (not item.first, _draw(seed, item.item))):
        group = of(item)
        places.append(((dealt[group] + 0.5) / sizes[group], _draw(seed, repr(group)), item))
        dealt[group] += 1
    return [item for _, _, item in sorted(places, key=lambda place: place[:2])]


def check_unique(items: Iterable[Item], place: str) -> None:
    """Raise when two items share an id.

    Raises:
        UserError: Naming the id.
    """
    counts = Counter(item.item for item in items)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UserError(place, f"item id {twice[0]!r} occurs twice", "give every item its own id")


def _by_kind(item: Item) -> object:
    return item.kind


def _by_group(item: Item) -> object:
    return (item.kind, *item.groups)


def _draw(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()


def _identity(item: Item) -> str:
    row = item.row()
    del row["suite"]
    row["parts"] = [_part_identity(part) for part in item.parts()]
    row["joined"] = [item.shot_gap_ms, item.keep_last_ms]
    return json.dumps(row, ensure_ascii=True, sort_keys=True)


def _part_identity(part: Part) -> list[object]:
    match part:
        case Recording(path):
            return ["file", path.name, _size(path)]
        case Gap(ms):
            return ["gap", ms]
        case Spoken(text, speaker):
            return ["text", text, speaker]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None

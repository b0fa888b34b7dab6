"""Worked examples before a question: as earlier turns, and where they cannot be put at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxmeter.client import audio
from voxmeter.client.bench_rules import traits
from voxmeter.client.terminal import printable
from voxmeter.endpoints.codec import Traits, Turn
from voxmeter.endpoints.errors import UserError
from voxmeter.suites.suite import Item, Part

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Endpoint
    from voxmeter.client.clips import Clip

ClipOf = Callable[[Item, str], "Clip"]
"""Renders the clip of an item in a condition; blocking; raises `ClipError`."""


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example, ready to be sent as two turns."""

    question: Clip
    answer: Clip
    answer_text: str


@dataclass(frozen=True, slots=True)
class Examples:
    """The worked examples of one question, first to last."""

    made: tuple[Example, ...] = ()

    def turns(self, rate: int) -> Sequence[Turn]:
        """Return them as earlier turns with audio at a rate, samples a second.

        A user's turn has no words beside its sound: an endpoint would be asked in writing too.
        """
        return [turn for example in self.made for turn in _turns(example, rate)]


NO_EXAMPLES = Examples()


def examples(item: Item, condition: str, clip_of: ClipOf) -> Examples:
    """Return the worked examples of an item, each rendered as a clip of its own.

    Args:
        item: As it is asked in the condition.
        condition: Its name; what alters the question alters the examples' questions too.
        clip_of: Renders them.

    Raises:
        ClipError: If one of them cannot be rendered: the trial is `bad_clip`.
    """

    def clip(parts: tuple[Part, ...]) -> Clip:
        name = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return clip_of(Item(item.suite, f"example {name}", "open", parts), condition)

    return Examples(
        tuple(
            Example(clip(shot.question), clip(shot.answer), shot.answer_text) for shot in item.shots
        )
    )


def _turns(example: Example, rate: int) -> Iterator[Turn]:
    yield Turn("user", "", audio.to_pcm16(example.question.at(rate).samples))
    yield Turn("assistant", example.answer_text, audio.to_pcm16(example.answer.at(rate).samples))


def refuse_lost_examples(
    bench: Bench, endpoints: Iterable[str], items: Iterable[Item]
) -> list[str]:
    """Refuse worked examples that an endpoint would take for questions, or would never get.

    Args:
        bench: Fit for `refuse_unbuilt`.
        endpoints: Names of those that are asked.
        items: What is asked of each of them.

    Returns:
        What a reader of the figures should know, one sentence an endpoint and suite.

    Raises:
        UserError: Naming the first such endpoint and suite.
    """
    suites = _with_examples(items)
    if not suites:
        return []
    asked = set(endpoints)
    return [
        note
        for endpoint in bench.endpoints
        if endpoint.name in asked
        for item in suites
        for note in _check(bench, endpoint, item)
    ]


def _check(bench: Bench, endpoint: Endpoint, item: Item) -> Iterator[str]:
    """Check one endpoint and the examples of one suite; yield what is to be known."""
    found, suite = traits(bench, endpoint), f'suite "{printable(item.suite)}"'
    place = f'{bench.source}: [[endpoint]] "{printable(endpoint.name)}"'
    if item.shots_via == "history":
        clip = _clip_cure(bench, endpoint, found)
        _check_history(place, endpoint.kind, found, item, suite, clip)
    elif found.full_duplex:
        yield (
            f"{endpoint.name} hears and speaks at once, and may answer the worked examples of "
            f"{suite}: what it says before the end of the question is counted, and not scored"
        )
    elif found.turn_end == "silence":
        cures = ['write turn_end = "commit" for the endpoint'] * _can_commit(bench, endpoint)
        cures += ['write options = {few_shot_via = "history"} for the suite'] * found.history
        raise UserError(
            place,
            f"kind {endpoint.kind}, as it is set up, takes silence for the end of a turn, and "
            f"would answer the first worked example of {suite}",
            ", or ".join(cures) or "write few_shot = 0, or run them apart (--only)",
        )


def _clip_cure(bench: Bench, endpoint: Endpoint, found: Traits) -> str:
    """Return how examples could be sent in one clip instead, or what else to do."""
    clip = 'write options = {few_shot_via = "clip"} for the suite'
    if found.full_duplex or found.turn_end != "silence":
        return clip
    if _can_commit(bench, endpoint):
        return f'{clip} and turn_end = "commit" for the endpoint'
    return "write few_shot = 0"


def _check_history(place: str, kind: str, found: Traits, item: Item, suite: str, clip: str) -> None:
    if not found.history:
        raise UserError(
            place,
            f"kind {kind} takes no earlier turns, and {suite} sends its worked examples as such",
            f"{clip}, or run them apart (--only)",
        )
    if not all(shot.answer_text for shot in item.shots):
        raise UserError(
            place,
            f"some worked examples of {suite} have answers in sound alone, and an earlier turn of "
            "an assistant is sent in words",
            f"{clip}, or put tables of the examples beside them (docs/suites.md)",
        )


def _can_commit(bench: Bench, endpoint: Endpoint) -> bool:
    changed = endpoint.model_copy(update={"turn_end": "commit"})
    try:
        return traits(bench, changed).turn_end == "commit"
    except UserError:
        return False


def _with_examples(items: Iterable[Item]) -> Sequence[Item]:
    """Return an item of each suite that has worked examples, one whose answers lack words first."""
    found: dict[str, Item] = {}
    seen: set[int] = set()
    for item in items:
        if not item.shots or id(item.shots) in seen:
            continue
        seen.add(id(item.shots))  # those of a subject are one tuple
        wordless = not all(shot.answer_text for shot in item.shots)
        if item.suite not in found or wordless:
            found[item.suite] = item
    return list(found.values())

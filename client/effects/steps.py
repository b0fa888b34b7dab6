"""Chains as they are written: checked, and completed with their defaults; no library is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from voxmeter.client import nearest
from voxmeter.client.effects.catalog import (
    EFFECTS,
    ONE_OF,
    READY,
    SPEAKER,
    Number,
    Range,
    Word,
)
from voxmeter.client.terminal import printable
from voxmeter.endpoints.codec import Json

Step = Mapping[str, Json]
"""One step of a chain as the file has it: `effect`, and values or ranges by parameter."""


def ready(name: str) -> tuple[Step, ...]:
    """Return the chain of a name.

    Raises:
        ValueError: With `(found, cure)` as its arguments.
    """
    if name not in READY:
        raise ValueError(
            f'no ready chain is called "{printable(name, 60)}"', nearest.cure(name, READY)
        )
    names = READY[name]
    if len(names) == 1:
        return ({"effect": names[0]},)
    return ({"effect": ONE_OF, "effects": [{"effect": one} for one in names]},)


def checked(chain: Sequence[Step]) -> tuple[Step, ...]:
    """Return a chain with every default written out.

    Raises:
        ValueError: With `(found, cure)` as its arguments, at the first thing that is wrong.
    """
    whole = []
    for number, step in enumerate(chain, start=1):
        made = _checked(step, f"step {number}")
        if made["effect"] == SPEAKER and number > 1:
            found = f"step {number}: {SPEAKER} comes after another effect"
            raise ValueError(found, "write it first: it says who speaks, the rest is done to that")
        whole.append(made)
    return tuple(whole)


def effects(chain: Sequence[Step]) -> Iterator[tuple[str, Step]]:
    """Yield the name and step of every effect that a checked chain may use."""
    for step in chain:
        within = step.get("effects")
        if step["effect"] == ONE_OF and isinstance(within, list):
            yield from effects([one for one in within if isinstance(one, dict)])
        else:
            yield str(step["effect"]), step


def located(chain: Sequence[Step], whole: Callable[[str], str]) -> tuple[dict[str, Json], ...]:
    """Return a checked chain with every `path` made whole."""
    made = []
    for step in chain:
        here = dict(step)
        if "path" in here:
            here["path"] = whole(str(here["path"]))
        if isinstance(within := here.get("effects"), list):
            inner = located([one for one in within if isinstance(one, dict)], whole)
            here["effects"] = list(inner)
        made.append(here)
    return tuple(made)


def ends(value: Json) -> Range:
    """Return the lower and the higher end of a checked number or range."""
    both = [one for one in (value if isinstance(value, list) else [value]) if _is_number(one)]
    return float(both[0]), float(both[-1])


def _checked(step: Step, place: str) -> Step:
    name = step.get("effect")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{place} has no effect", 'write {effect = "..."} for each')
    if name not in EFFECTS:
        found = f'{place}: unknown effect "{printable(name, 60)}"'
        raise ValueError(found, nearest.cure(name, EFFECTS))
    place = f"{place} ({name})"
    if name == SPEAKER:
        return _speaker(step, place)
    if name == ONE_OF:
        return _one_of(step, place)
    effect = EFFECTS[name]
    known = [one.name for one in effect.parameters] + (["path"] if effect.file else [])
    _refuse_unknown(step, known, place)
    made: dict[str, Json] = {"effect": name}
    for one in effect.parameters:
        value = step.get(one.name)
        where = f"{place} {one.name}"
        made[one.name] = (
            _word(one, value, where) if isinstance(one, Word) else _number(one, value, where)
        )
    if "path" in step:
        made["path"] = _path(step["path"], f"{place} path")
    return made


def _refuse_unknown(step: Step, known: Sequence[str], place: str) -> None:
    for key in step:
        if key != "effect" and key not in known:
            found = f'{place}: unknown parameter "{printable(key, 60)}"'
            raise ValueError(found, nearest.cure(key, known))


def _speaker(step: Step, place: str) -> Step:
    _refuse_unknown(step, ["voice"], place)
    voices = step.get("voice")
    voices = [voices] if isinstance(voices, str) else voices
    if not isinstance(voices, list) or not voices or not all(_is_text(one) for one in voices):
        found = f"{place}: voice is {'missing' if voices is None else 'no name'}"
        raise ValueError(found, 'write voice = "piper", or a list of which one is drawn')
    return {"effect": SPEAKER, "voice": voices}


def _one_of(step: Step, place: str) -> Step:
    _refuse_unknown(step, ["effects"], place)
    within = step.get("effects")
    if not isinstance(within, list) or not within:
        found = f"{place}: effects is {'missing' if within is None else 'no list of steps'}"
        raise ValueError(found, 'write effects = ["gain", {effect = "pitch"}]')
    made: list[Json] = []
    for number, one in enumerate(within, start=1):
        inner = {"effect": one} if isinstance(one, str) else one
        where = f"{place} effects {number}"
        if not isinstance(inner, dict):
            raise ValueError(f"{where} is no step", 'write {effect = "..."}')  # noqa: TRY004
        if inner.get("effect") in (SPEAKER, ONE_OF):
            found = f"{where}: {inner['effect']} cannot be one of several"
            raise ValueError(found, "write it as a step of its own")
        made.append(dict(_checked(inner, where)))
    return {"effect": ONE_OF, "effects": made}


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _path(value: Json, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(
            f"{place} is no text", "write the path of a sound file or of a folder of them"
        )
    return value


def _word(parameter: Word, value: Json, place: str) -> str:
    if value is None:
        return parameter.words[0]
    if value not in parameter.words:
        known = " or ".join(f'"{one}"' for one in parameter.words)
        raise ValueError(f"{place} is {_shown(value)}", f"write {known}")
    return str(value)


def _number(parameter: Number, value: Json, place: str) -> Json:
    if value is None:
        default = parameter.default
        return list(default) if isinstance(default, tuple) else default
    given, wanted = (value, 2) if isinstance(value, list) else ([value], 1)
    numbers = [float(one) for one in given if _is_number(one)]
    if not len(numbers) == len(given) == wanted:
        raise ValueError(f"{place} is {_shown(value)}", "write a number, or a range [low, high]")
    for one in numbers:
        if not parameter.lowest <= one <= parameter.highest:
            cure = f"write {parameter.lowest:g} to {parameter.highest:g}"
            raise ValueError(f"{place} is {one:g}", cure)
        if parameter.step and (one - parameter.lowest) % parameter.step:
            kind = "whole number" if parameter.step == 1 else f"multiple of {parameter.step:g}"
            raise ValueError(f"{place} is {one:g}", f"write a {kind}")
    if numbers[0] > numbers[-1]:
        raise ValueError(f"{place} is {_shown(value)}", "write the lower end first")
    return value


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _shown(value: Json) -> str:
    return printable(str(value) if not isinstance(value, str) else f'the text "{value}"', 60)

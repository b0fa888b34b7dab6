"""Chains as they are for one item: which effect of several, and which number of a range.

A draw depends on the seed, the place of the step and the parameter's name alone, so that neither
the order of items nor another parameter moves it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voxmeter.client.effects.catalog import EFFECTS, ONE_OF, SPEAKER, Number, Word
from voxmeter.client.effects.steps import Step, ends
from voxmeter.endpoints.codec import Json


@dataclass(frozen=True, slots=True)
class Drawn:
    """One step for one item.

    Attributes:
        effect: Its name; never `one-of`.
        values: A number, several, or a word for each parameter.
    """

    effect: str
    values: Mapping[str, Json]

    def row(self) -> dict[str, Json]:
        """Return what is logged."""
        return {"effect": self.effect, **self.values}


def drawn(chain: Sequence[Step], seed: str) -> tuple[Drawn, ...]:
    """Return what a checked chain is for one item.

    Args:
        chain: As `checked` returned it.
        seed: A text of its own for every item and condition.
    """
    return tuple(_drawn(step, f"{seed}/{place}") for place, step in enumerate(chain))


def uniform(*words: object) -> float:
    """Return a number in [0, 1) that depends on these words alone."""
    text = "\n".join(map(str, words)).encode("utf-8", "surrogatepass")
    return (int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11) / 2**53


def _drawn(step: Step, seed: str) -> Drawn:
    name = str(step["effect"])
    if name == ONE_OF:
        within = step["effects"]
        choices = (
            [one for one in within if isinstance(one, dict)] if isinstance(within, list) else []
        )
        return _drawn(choices[_index(len(choices), seed, name)], seed)
    if name == SPEAKER:
        voices = step["voice"]
        names = voices if isinstance(voices, list) else [voices]
        return Drawn(name, {"voice": names[_index(len(names), seed, name)]})
    effect = EFFECTS[name]
    values: dict[str, Json] = {}
    for one in effect.parameters:
        value = step[one.name]
        values[one.name] = (
            value if isinstance(one, Word) else _value(one, value, f"{seed}/{name}/{one.name}")
        )
    if "path" in step:
        values["path"] = step["path"]
    return Drawn(name, values)


def _index(count: int, *words: object) -> int:
    return min(int(uniform(*words) * count), count - 1)


def _value(parameter: Number, value: Json, seed: str) -> Json:
    if parameter.count > 1:
        return [_one(parameter, value, f"{seed}/{number}") for number in range(parameter.count)]
    return _one(parameter, value, seed)


def _one(parameter: Number, value: Json, seed: str) -> float:
    """Return a number of a range, rounded before it is used: the log holds what was used."""
    low, high = ends(value)
    share = uniform(seed)
    if parameter.step:
        count = int((high - low) // parameter.step) + 1
        return int(low + parameter.step * min(int(share * count), count - 1))
    if low == high:
        return low
    if parameter.scale == "mel":
        mel = _mel(low) + share * (_mel(high) - _mel(low))
        return min(max(round(700 * (10 ** (mel / 2595) - 1), 2), low), high)
    return min(max(round(low + share * (high - low), 4), low), high)


def _mel(hz: float) -> float:
    return 2595 * math.log10(1 + hz / 700)

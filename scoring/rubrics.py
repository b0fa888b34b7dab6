"""Prompts by which judges rate replies: files that say what is asked and how the verdict is read.

A file is a TOML head between two lines `+++`, then a part `# System` and a part `# User`. Places
such as `{{question}}` are found once, when the file is read; what is put there is never looked at
again, so that no text of an endpoint can open a place of its own.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Literal, TypeGuard, cast

Protocol = Literal["single", "pair", "binary", "json", "label"]
PROTOCOLS: tuple[Protocol, ...] = ("single", "pair", "binary", "json", "label")

TEXTS = ("question", "told", "options", "reference", "response")
"""Places that hold what others wrote; each is fenced."""

NUMBERS = ("low", "high")
CANDIDATES = "candidates"
"""The place of reference and response together, in the order that is asked for."""

_HEAD = ("protocol", "scale", "whole", "values", "labels", "numbered")
_PLACE = re.compile(r"\{\{([^{}\n]*)\}\}")
_PARTS = re.compile(
    r"\s*\+\+\+\n(?P<head>.*?)\n\+\+\+\s*\n# System\n(?P<system>.*?)\n# User\n(?P<user>.*)",
    re.DOTALL,
)


class PromptError(ValueError):
    """A prompt file cannot be used; the text says why and what to do, divided by `; `."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is filled in."""

    name: str


Part = str | Place


@dataclass(frozen=True, slots=True)
class Rubric:
    """One prompt.

    Attributes:
        name: What items call it.
        protocol: How a verdict is written: `single` number, `pair` of numbers, `binary` yes or
            no, `json` with the key `score`, `label` of one of the item's options.
        low: Least score; 0 where verdicts are no scores.
        high: Greatest score; 1 where verdicts are no scores.
        whole: Whether only whole scores count.
        values: The only scores there are; empty for all on the scale.
        labels: What reference and response are called.
        numbered: Whether they are called by their place ("Assistant 1") instead.
        system: The system message.
        user: The user's message.
        text: The whole file.
    """

    name: str
    protocol: Protocol
    low: float
    high: float
    whole: bool
    values: tuple[float, ...]
    labels: tuple[str, str]
    numbered: bool
    system: tuple[Part, ...]
    user: tuple[Part, ...]
    text: str

    @property
    def worst_and_best(self) -> tuple[float, float]:
        """The lowest and the highest score there is."""
        return (min(self.values), max(self.values)) if self.values else (self.low, self.high)

    @property
    def swaps(self) -> bool:
        """Whether reference and response can change places."""
        return Place(CANDIDATES) in self.user

    @property
    def rates(self) -> bool:
        """Whether verdicts are scores on a scale."""
        return self.protocol in {"single", "pair", "json"}

    @property
    def decides(self) -> bool:
        """Whether a verdict says right or wrong."""
        return not self.rates or len(self.values) == 2

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the texts without which it cannot be asked."""
        named = {part.name for part in self.user if isinstance(part, Place)}
        if CANDIDATES in named:
            named |= {"reference", "response"}
        return tuple(name for name in TEXTS if name in named)

    @property
    def sha256(self) -> str:
        """Hash of the prompt and of the scale on which it is asked."""
        whole = [self.text, self.low, self.high, list(self.values)]
        return hashlib.sha256(json.dumps(whole).encode()).hexdigest()

    def on_scale(self, low: float, high: float) -> Rubric:
        """Return the same prompt on another scale; one whose verdicts are no scores as it is."""
        if not self.rates:
            return self
        values = (low, high) if len(self.values) == 2 else ()
        return replace(self, low=low, high=high, values=values)

    def record(self) -> dict[str, object]:
        """Return what a run's record holds of it."""
        return {
            "sha256": self.sha256,
            "rubric": self.name,
            "protocol": self.protocol,
            "scale": [self.low, self.high] if self.rates else None,
            "text": self.text,
        }


def shipped() -> tuple[str, ...]:
    """Return the names of the prompts that come with the program."""
    folder = resources.files("voxmeter.scoring").joinpath("prompts")
    names = [entry.name for entry in folder.iterdir()]
    return tuple(sorted(name.removesuffix(".md") for name in names if name.endswith(".md")))


@lru_cache(maxsize=64)
def rubric(name: str) -> Rubric:
    """Return a prompt that comes with the program.

    Raises:
        KeyError: If there is none of that name.
    """
    if name not in shipped():
        raise KeyError(name)
    path = resources.files("voxmeter.scoring").joinpath("prompts", f"{name}.md")
    return parse(name, path.read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Rubric:
    """Return the prompt in a file's text.

    Raises:
        PromptError: If it is none.
    """
    text = text.replace("\r\n", "\n")
    found = _PARTS.fullmatch(text)
    if found is None:
        raise PromptError(
            "is not a prompt: a head between two lines +++, then # System and # User; "
            "docs/judges.md shows one"
        )
    try:
        head = tomllib.loads(found["head"])
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"its head is not TOML ({error}); mend it") from None
    for key in head:
        if key not in _HEAD:
            raise PromptError(f"its head has an unknown key {key!r}; known: {', '.join(_HEAD)}")
    protocol = head.get("protocol")
    if protocol not in PROTOCOLS:
        raise PromptError(f"has no protocol; write one of {', '.join(PROTOCOLS)}")
    low, high = _scale(head, cast("Protocol", protocol))
    made = Rubric(
        name=name,
        protocol=cast("Protocol", protocol),
        low=low,
        high=high,
        whole=_flag(head, "whole"),
        values=_values(head, low, high),
        labels=_labels(head),
        numbered=_flag(head, "numbered"),
        system=_parts(found["system"].strip()),
        user=_parts(found["user"].strip()),
        text=text,
    )
    _check(made)
    return made


def _scale(head: Mapping[str, object], protocol: Protocol) -> tuple[float, float]:
    if protocol in {"binary", "label"}:
        if "scale" in head:
            raise PromptError(f"has a scale, and a {protocol} verdict is no score; remove it")
        return 0.0, 1.0
    match head.get("scale"):
        case [low, high] if _is_finite(low) and _is_finite(high) and low < high:
            return float(low), float(high)
        case _:
            raise PromptError("has no scale; write scale = [0, 10]")


def _values(head: Mapping[str, object], low: float, high: float) -> tuple[float, ...]:
    found = head.get("values", [])
    if not isinstance(found, list) or not all(_is_number(one, low, high) for one in found):
        raise PromptError("its values are not a list of scores; write values = [0, 10]")
    if found and min(found) == max(found):
        raise PromptError("its values are all the same; write values = [0, 10]")
    return tuple(float(one) for one in found)


def _is_number(value: object, low: float, high: float) -> bool:
    return _is_finite(value) and low <= value <= high


def _is_finite(value: object) -> TypeGuard[int | float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # isfinite fails on a huge whole number


def _labels(head: Mapping[str, object]) -> tuple[str, str]:
    match head.get("labels", ["Reference", "Response"]):
        case [str(reference), str(response)]:
            return reference, response
        case _:
            raise PromptError('its labels are no two texts; write ["Reference", "Response"]')


def _flag(head: Mapping[str, object], name: str) -> bool:
    found = head.get(name, False)
    if not isinstance(found, bool):
        raise PromptError(f"{name} is {found!r}; write true or false")
    return found


def _parts(text: str) -> tuple[Part, ...]:
    pieces = _PLACE.split(text)
    made: list[Part] = []
    for number, piece in enumerate(pieces):
        if number % 2:
            made.append(Place(piece.strip()))
        elif piece:
            made.append(piece)
    return tuple(made)


def _check(made: Rubric) -> None:
    known = {*TEXTS, *NUMBERS, CANDIDATES}
    for part in (*made.system, *made.user):
        if isinstance(part, Place) and part.name not in known:
            raise PromptError(f"has an unknown place {{{{{part.name}}}}}; known: {_shown(known)}")
    if any(isinstance(part, Place) and part.name not in NUMBERS for part in made.system):
        raise PromptError("has a text of others in # System; move it to # User")
    places = [part.name for part in made.user if isinstance(part, Place)]
    texts = [name for name in places if name not in NUMBERS]
    if len(set(texts)) != len(texts):
        raise PromptError("has one place twice; keep one of them")
    both = {"reference", "response"} & set(texts)
    if CANDIDATES in texts and both:
        raise PromptError("has {{candidates}} beside one of the two; keep one way")
    if CANDIDATES not in texts and "response" not in texts:
        raise PromptError("never shows the reply; add {{response}} or {{candidates}}")
    if made.protocol == "pair" and CANDIDATES not in texts:
        raise PromptError("asks for a pair and has no {{candidates}}; add it")
    if made.protocol == "label" and "options" not in texts:
        raise PromptError("asks for a label and shows no {{options}}; add them")


def _shown(names: Sequence[str] | set[str]) -> str:
    return ", ".join(f"{{{{{name}}}}}" for name in sorted(names))

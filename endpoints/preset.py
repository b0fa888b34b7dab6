"""Presets: ready settings for a known service or model, one TOML file each in `presets/`.

A bench.toml names one (`preset = "azure-openai"`), and its settings are laid under the user's own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).with_name("presets")
_EXAMPLES = {
    "url": "wss://HOST/PATH",
    "model": "MODEL",
    "voice": "VOICE",
    "command": "PROGRAM ARGUMENTS",
    "api_key_env": "NAME_OF_A_VARIABLE",
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Ready settings of one endpoint.

    Attributes:
        name: The `preset` of bench.toml.
        about: What it is for, on one line.
        known_by: How it is known that the settings are right.
        needs: What the user must add: keys (`url`, `options.agent`), each with an example of its
            value in which capital words are to be replaced.
        endpoint: Keys of an `[[endpoint]]` table.
        text: Those keys as the file has them, comments and all.
    """

    name: str
    about: str
    known_by: str
    needs: Mapping[str, str]
    endpoint: Mapping[str, Any]
    text: str

    @property
    def kind(self) -> str:
        """Its protocol."""
        return str(self.endpoint["kind"])

    def block(self) -> str:
        """Return the fewest lines of a bench.toml that make an endpoint of it."""
        lines = ["[[endpoint]]", f'name = "{self.name}"', f'preset = "{self.name}"']
        lines += [f'{key} = "{example}"' for key, example in self.needs.items()]
        return "\n".join(lines)


def names() -> Sequence[str]:
    """Return the names of all presets, sorted."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


def read(name: str) -> Preset:
    """Return a preset; `name` is one of `names()`."""
    text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    needs = found.get("needs", [])
    if not isinstance(needs, dict):
        needs = {key: _EXAMPLES.get(key, "...") for key in needs}
    settings = text[text.index("[endpoint]") :].replace("[endpoint", "[[endpoint", 1)
    settings = settings.replace("]", "]]", 1)
    return Preset(
        name, found["about"], found["known_by"], needs, found["endpoint"], settings.strip()
    )

"""Lays the settings of presets under those of a bench.toml, where the user's own keys win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voxmeter.client import nearest
from voxmeter.client.config_errors import described, place_of
from voxmeter.client.terminal import printable
from voxmeter.endpoints import preset
from voxmeter.endpoints.errors import UserError

_PLACES = ("url", "command", "builtin")


def laid_under(data: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return the tables of a bench.toml with each endpoint's preset laid under its own keys.

    Tables (`options`, `headers`) are joined key by key; of `url`, `command` and `builtin` the
    user's own one replaces the preset's.

    Args:
        data: Tables and keys, of the right shape; what is wrong in them otherwise stays.
        source: The file's name for errors.

    Raises:
        UserError: If there is no such preset, it is for another kind, or it needs a key that the
            user did not add.
    """
    made = dict(data)
    endpoints = data.get("endpoint")
    if isinstance(endpoints, list):
        made["endpoint"] = [
            _laid_under(table, source, place_of(("endpoint", number), data))
            for number, table in enumerate(endpoints)
        ]
    return made


def _laid_under(table: Mapping[str, Any], source: str, place: str) -> Mapping[str, Any]:
    name = table.get("preset")
    if not isinstance(name, str) or not name.strip():
        return table
    place = f"{source}: {place}"
    known = preset.names()
    if name not in known:
        found = f'there is no preset "{printable(name, 60)}"'
        raise UserError(f"{place} preset", found, nearest.cure(name, known))
    chosen = preset.read(name)
    if table.get("kind", chosen.kind) != chosen.kind:
        found = f"is {described(table['kind'])}, but preset {name} is of kind {chosen.kind}"
        raise UserError(f"{place} kind", found, "remove kind, or remove preset")
    if any(key in table for key in _PLACES):
        ready = {key: value for key, value in chosen.endpoint.items() if key not in _PLACES}
    else:
        ready = dict(chosen.endpoint)
    made = _joined(ready, table)
    elsewhere = "url" not in made and any(key in made for key in _PLACES)
    for key, example in chosen.needs.items():
        if not _has(made, key) and not (key == "url" and elsewhere):
            found = f"is missing, and preset {name} does not have it"
            raise UserError(f"{place} {key}", found, f'write {key} = "{example}"')
    return made


def _joined(ready: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    made = {**ready, **own}
    for key, table in ready.items():
        mine = own.get(key)
        if isinstance(table, Mapping) and isinstance(mine, Mapping):
            # Names of headers are the same in upper and lower case: two of one would both be sent.
            folded = {one.casefold() for one in mine} if key == "headers" else set(mine)
            fold = str.casefold if key == "headers" else str
            made[key] = {one: value for one, value in table.items() if fold(one) not in folded}
            made[key] |= mine
    return made


def _has(table: Mapping[str, Any], key: str) -> bool:
    value: Any = table
    for part in key.split("."):
        if not isinstance(value, Mapping):
            return True  # something else is wrong with it, and is told of later
        if part not in value:
            return False
        value = value[part]
    return True

"""Whether the conditions of a bench fit its suites and this machine, and who speaks in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from voxmeter.client import nearest
from voxmeter.client.effects import draws, steps
from voxmeter.client.effects.catalog import EFFECTS, SPEAKER
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import MissingExtraError, UserError
from voxmeter.suites.suite import Item, Part, Spoken, Suite

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Condition
    from voxmeter.client.bench import Suite as Table

CLEAN = "clean"
"""Name of the condition that leaves clips as they are."""


def seed_of(seed: int, condition: str, item: Item) -> str:
    """Return what every draw for an item in a condition depends on."""
    return f"{seed}/{condition}/{item.suite}/{item.item}"


def cast(bench: Bench, table: Table, suite: Suite) -> Suite:
    """Return a suite whose items are spoken by whom its conditions say.

    Args:
        bench: As loaded.
        table: The suite's table.
        suite: As it was loaded from it.

    Raises:
        UserError: If a condition that it is run in is neither in the bench nor the suite's own,
            or is both, or has another voice speak what is a recording.
    """
    place = f'{bench.source}: [[suite]] "{printable(suite.name)}" conditions'
    tables = {one.name: one for one in bench.conditions}
    voiced: dict[str, Condition] = {}
    for name in bench.suite_conditions(table):
        known = {CLEAN, *tables, *suite.conditions}
        if name not in known:
            found = f'unknown condition "{printable(name)}"'
            raise UserError(place, found, nearest.cure(name, known))
        if name in tables and name in suite.conditions:
            found = f'the suite has recordings of its own for "{printable(name)}"'
            raise UserError(place, found, "give the [[condition]] of that name another one")
        if name in tables and any(step["effect"] == SPEAKER for step in tables[name].chain):
            voiced[name] = tables[name]
            _check_spoken(place, name, suite)
    if not voiced:
        return suite
    seed = bench.run.seed

    def variant(item: Item, condition: str) -> Item:
        if condition not in voiced:
            return suite.asked(item, condition)
        drawn = draws.drawn(voiced[condition].chain, seed_of(seed, condition, item))
        return _spoken_by(item, str(drawn[0].values["voice"]))

    return replace(suite, conditions=(*suite.conditions, *voiced), variant=variant)


def check_here(bench: Bench, used: Collection[str]) -> None:
    """Check that this machine has what conditions need.

    Args:
        bench: As loaded.
        used: Names of the conditions that are run; others may need what is not there.

    Raises:
        MissingExtraError: If an effect needs audiomentations and it is not installed.
        UserError: If a `path` holds no sound files.
    """
    for condition in bench.conditions:
        if condition.name in used:
            check_condition(bench, condition)


def check_condition(bench: Bench, condition: Condition) -> None:
    """Check one condition, as `check_here`."""
    place = f'{bench.source}: [[condition]] "{printable(condition.name)}"'
    for name, step in steps.effects(condition.chain):
        if EFFECTS[name].library and find_spec("audiomentations") is None:
            missing = "the package audiomentations"
            raise MissingExtraError(f"{place} effect {name}", missing, "conditions")
        if "path" in step:
            _check_path(f"{place} effect {name} path", str(step["path"]))


def _check_path(place: str, path: str) -> None:
    from pathlib import Path

    from voxmeter.client.effects.own import ENDINGS, files

    if not files(Path(path)):
        found = f"{printable(path)} holds no sound files" if Path(path).is_dir() else "no such file"
        raise UserError(place, found, f"name a sound file, or a folder of them ({ENDINGS[0]}, ...)")


def _check_spoken(place: str, condition: str, suite: Suite) -> None:
    for item in suite.items:
        if not any(isinstance(part, Spoken) for part in item.parts()):
            raise UserError(
                place,
                f'"{printable(condition)}" has another voice speak, and item '
                f'"{printable(item.item, 60)}" is a recording',
                "list the suite's conditions without it",
            )


def _spoken_by(item: Item, voice: str) -> Item:
    def parts(recipe: tuple[Part, ...]) -> Iterator[Part]:
        for part in recipe:
            yield replace(part, speaker=voice) if isinstance(part, Spoken) else part

    shots = tuple(
        replace(one, question=tuple(parts(one.question)), answer=tuple(parts(one.answer)))
        for one in item.shots
    )
    return replace(item, recipe=tuple(parts(item.recipe)), shots=shots)

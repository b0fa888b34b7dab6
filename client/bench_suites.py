"""Loads the suites that a bench names, cut down to what the user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.bench import Suite as Table
    from voxmeter.suites.suite import Suite


def load_suites(bench: Bench, limit: int | None = None) -> tuple[Suite, ...]:
    """Return the bench's suites, in its order.

    Args:
        bench: As loaded.
        limit: `--limit`: at most so many items of each suite, the first of a seeded order
            stratified by kind; a suite's own smaller `limit` stays.

    Raises:
        UserError: If a suite cannot be loaded, or its conditions do not fit it.
    """
    return tuple(_load(bench, table, limit) for table in bench.suites)


def _load(bench: Bench, table: Table, limit: int | None) -> Suite:
    from voxmeter.client import conditions
    from voxmeter.suites import catalog

    config = table.model_dump(exclude_none=True, exclude={"options"}) | table.options
    suite = catalog.load(table.kind, table.label, config, bench.folder)
    if table.few_shot and not any(item.shots for item in suite.items):
        raise UserError(
            f'{bench.source}: [[suite]] "{printable(table.label)}" few_shot',
            f"is {table.few_shot}, and a {table.kind} suite has no worked examples",
            "remove it",
        )
    if table.subset is not None:
        suite = suite.subset(table.subset, bench.run.seed)
    limits = [one for one in (table.limit, limit) if one is not None]
    suite = suite.limit(min(limits), bench.run.seed) if limits else suite
    return conditions.cast(bench, table, suite)

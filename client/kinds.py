"""Which suite kinds there are, and what other packages add."""

from __future__ import annotations


def suite_kinds() -> dict[str, str]:
    """Return the names of all suite kinds that can be run, with their factories."""
    from voxmeter.suites import catalog

    return dict(catalog.kinds())


def added(group: str) -> dict[str, str]:
    """Return the names that installed packages add to an entry-point group, with their factories.

    Nothing is imported.
    """
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=group)}

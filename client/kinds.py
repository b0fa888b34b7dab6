"""Which endpoint and suite kinds there are: ours, and those that other packages add."""

from __future__ import annotations

PLANNED_SUITES = ("voxeval", "adu-bench", "air-bench", "voicebench", "big-bench-audio")
"""Suite kinds of the contract that this version may not be able to run yet."""


def added(group: str) -> dict[str, str]:
    """Return the names that installed packages add to an entry-point group, with their factories.

    Nothing is imported.
    """
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=group)}


_WITHOUT_URL = frozenset({"exec", "python", "pipeline", "live"})


def endpoint_kinds() -> dict[str, str]:
    """Return the names of all endpoint kinds with their factories, `module:factory`."""
    return {**_own_endpoints(), **added("voxmeter.endpoints")}


def needs_url(kind: str) -> bool:
    """Return whether an endpoint of this kind cannot do without a URL."""
    return kind not in _WITHOUT_URL and kind not in added("voxmeter.endpoints")


def _own_endpoints() -> dict[str, str]:
    from voxmeter.endpoints import catalog

    return dict(catalog.KINDS)


def suite_kinds() -> dict[str, str]:
    """Return the names of all suite kinds that can be run, with their factories."""
    from voxmeter.suites import catalog

    return dict(catalog.kinds())

"""Names of suite kinds and where each is loaded from; nothing is imported until it is named."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.folders import link_out
from voxmeter.suites.suite import Factory, Suite, check_unique

if TYPE_CHECKING:
    from voxmeter.suites.analysis import Analysis

Check = Callable[[Path], Iterator[str]]
"""Yields one line for each fault of a download; one that begins with `NOTE` is no fault, as what is
asked is there all the same. Raises `UserError` where it is no download at all."""

NOTE = "note: "

GROUP = "voxmeter.suites"
"""Entry-point group of other packages' suites: kind -> factory."""

BUILT_IN: Mapping[str, str] = {
    "adu-bench": "voxmeter.suites.adu_bench:load",
    "air-bench": "voxmeter.suites.air_bench:load",
    "big-bench-audio": "voxmeter.suites.big_bench_audio:load",
    "demo": "voxmeter.suites.demo:load",
    "jsonl": "voxmeter.suites.jsonl:load",
    "voicebench": "voxmeter.suites.voicebench:load",
    "voxeval": "voxmeter.suites.voxeval:load",
}
"""Kinds that come with the program."""

CHECKS: Mapping[str, str] = {
    "adu-bench": "voxmeter.suites.adu_bench:verify",
    "air-bench": "voxmeter.suites.air_bench:verify",
    "big-bench-audio": "voxmeter.suites.big_bench_audio:verify",
    "jsonl": "voxmeter.suites.jsonl_check:verify",
    "voicebench": "voxmeter.suites.voicebench:verify",
    "voxeval": "voxmeter.suites.voxeval_check:verify",
}
"""What finds faults in a kind's download: called with its path, it yields one line for each."""

ANALYSES: Mapping[str, str] = {
    "air-bench": "voxmeter.suites.air_bench_tables:tables",
    "voicebench": "voxmeter.suites.voicebench_tables:tables",
    "voxeval": "voxmeter.suites.voxeval_tables:tables",
}
"""Kinds with tables of their own beside the figures that every suite has."""


def kinds() -> Mapping[str, str]:
    """Return every kind that is known here and its factory as `module:name`.

    Built-in kinds cannot be replaced by an installed package of the same name.
    """
    others = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**others, **BUILT_IN}


def load(kind: str, name: str, config: Mapping[str, object], base: Path) -> Suite:
    """Return the suite of a kind.

    Args:
        kind: A name of `kinds()`.
        name: The user's name for the suite.
        config: Its table of bench.toml.
        base: Folder that relative paths start from.

    Raises:
        UserError: If the kind is unknown or cannot be loaded, or its data are wrong.
    """
    suite = _factory(kind, name)(name, config, base)
    place = f"[[suite]] {name}"
    if not suite.items:
        raise UserError(place, "no items", "check the path, or drop the suite")
    check_unique(suite.items, place)
    _refuse_links_out(suite, config.get("path"), base, place)
    return suite


def _refuse_links_out(suite: Suite, path: object, base: Path, place: str) -> None:
    """Refuse a download whose recordings are links to files elsewhere on this machine."""
    if not isinstance(path, str):
        return
    root = base / os.path.expanduser(path.strip())  # noqa: PTH111 - never raises
    root = root if root.is_dir() else root.parent
    items = (
        suite.asked(item, condition)
        for condition in ("clean", *suite.conditions)
        for item in suite.items
    )
    found = link_out((file for item in items for file in item.files()), root)
    if found is not None:
        raise UserError(
            place,
            f"{found} is a link that leads out of {root}",
            "put a copy there, or give the folder that it leads to",
        )


def analysis(kind: str) -> Analysis | None:
    """Return what draws a kind's own tables, None where it has none."""
    module, _, attribute = ANALYSES.get(kind, "").partition(":")
    return cast("Analysis", getattr(import_module(module), attribute)) if module else None


def check(kind: str) -> Check | None:
    """Return what finds faults in a kind's download, None where it has nothing of its own."""
    module, _, attribute = CHECKS.get(kind, "").partition(":")
    return cast("Check", getattr(import_module(module), attribute)) if module else None


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return the cure for an unknown word: the nearest known one first, then all of them."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    listed = ", ".join(known)
    return f"did you mean {close[0]!r}? (known: {listed})" if close else f"use one of: {listed}"


def _factory(kind: str, name: str) -> Factory:
    place = f"[[suite]] {name}"
    known = BUILT_IN if kind in BUILT_IN else kinds()
    if kind not in known:
        raise UserError(place, f"unknown suite kind {kind!r}", nearest(kind, tuple(sorted(known))))
    module, _, attribute = known[kind].partition(":")
    try:
        return cast("Factory", getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise UserError(
            place, f"suite kind {kind!r} cannot be loaded ({error})", "reinstall its package"
        ) from error

"""`voxmeter endpoints`: the endpoint kinds there are, and what is known of one."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `[KIND]`."""
    parser.add_argument("kind", nargs="?", help="show this one in full")


def run(args: argparse.Namespace) -> int:
    """List the kinds, or show one."""
    return _list() if args.kind is None else _show(args.kind)


def _list() -> int:
    from voxmeter.endpoints import catalog

    for name in catalog.names():
        print(f"{name:<18} {catalog.find(name).about}")
    return 0


def _show(name: str) -> int:
    from voxmeter.endpoints import catalog
    from voxmeter.endpoints.kind import load

    kind = catalog.find(name, "voxmeter endpoints")
    print(f"{kind.name}: {kind.about}")
    print(f"how it is known: {kind.known_by}")
    if kind.docs:
        print(f"documentation: {kind.docs}")
    print("options ([endpoint.options]):" if kind.options else "options: none")
    for option, text in kind.options.items():
        print(f"  {option:<24} {text}")
    usage = None if kind.usage_at is None else load(kind.usage_at)
    if callable(usage):
        print(f"\n{usage()}")
    return 0

"""`voxmeter endpoints`: the endpoint kinds and presets there are, and what is known of one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxmeter.endpoints.kind import Kind
    from voxmeter.endpoints.preset import Preset

_WIDTH = 26
_SERVED = "served"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `[KIND]`."""
    parser.add_argument("kind", nargs="?", help="show this kind, or this preset, in full")


def run(args: argparse.Namespace) -> int:
    """List the kinds and presets, or show one."""
    return _list() if args.kind is None else _show(args.kind)


def _list() -> int:
    from voxmeter.endpoints import catalog, preset

    print('kinds (kind = "..." in [[endpoint]]):')
    for name in catalog.names():
        kind = catalog.find(name)
        served = _SERVED if kind.server is not None else ""
        print(f"  {name:<{_WIDTH - len(_SERVED) - 1}} {served:<{len(_SERVED)}} {kind.about}")
    print(f"  ({_SERVED}: by `voxmeter serve metronome|echo|cascade --protocol KIND` too)")
    print('\npresets (preset = "..." in [[endpoint]]; your own keys win):')
    for name in preset.names():
        print(f"  {name:<{_WIDTH}} {preset.read(name).about}")
    return 0


def _show(name: str) -> int:
    from voxmeter.client import nearest
    from voxmeter.endpoints import catalog, preset
    from voxmeter.endpoints.errors import UserError

    kinds, presets = catalog.names(), preset.names()
    known = list(dict.fromkeys([*kinds, *presets]))
    if name not in known:
        found = f'there is no endpoint kind or preset "{name}"'
        raise UserError("voxmeter endpoints", found, nearest.cure(name, known))
    if name in kinds:
        _show_kind(catalog.find(name, "voxmeter endpoints"))
    if name in presets:
        _show_preset(preset.read(name))
    return 0


def _show_kind(kind: Kind) -> None:
    from voxmeter.endpoints import preset
    from voxmeter.endpoints.kind import load

    print(f"{kind.name}: {kind.about}")
    print(f"how it is known: {kind.known_by}")
    print(f"server side: {_server_side(kind)}")
    if kind.docs:
        print(f"documentation: {kind.docs}")
    ready = [name for name in preset.names() if preset.read(name).kind == kind.name]
    if ready:
        print(f"presets: {', '.join(ready)}")
    print("options ([endpoint.options]):" if kind.options else "options: none")
    for option, text in kind.options.items():
        print(f"  {option:<24} {text}")
    usage = None if kind.usage_at is None else load(kind.usage_at)
    if callable(usage):
        print(f"\n{usage()}")


def _show_preset(preset: Preset) -> None:
    from voxmeter.endpoints import catalog

    print(f"{preset.name}: {preset.about}")
    print(f"how it is known: {preset.known_by}")
    docs = catalog.find(preset.kind).docs
    if docs:
        print(f"documentation: {docs}")
    if preset.needs:
        print(f"you must add: {', '.join(preset.needs)}")
    print(f"\nIn bench.toml:\n\n{preset.block()}")
    print(f"\nIt stands for this; your own keys win:\n\n{preset.text}")


def _server_side(kind: Kind) -> str:
    if kind.server is None:
        return "none"
    return f"voxmeter serve metronome|echo|cascade --protocol {kind.name}"

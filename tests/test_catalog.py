"""The catalog names things that exist, loads them only when asked, and takes in other packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from voxmeter.endpoints import catalog
from voxmeter.endpoints.catalog import GROUP, KINDS, find, names
from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.kind import WEBSOCKET, Kind, load
from voxmeter.endpoints.openai_options import OPTIONS

OWN_KIND = Kind(name="ignored", about="over smoke signals", codec="x:y", transport="smoke:Fire")


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    entries = {
        "whole": EntryPoint("whole", "test_catalog:OWN_KIND", GROUP),
        "plain": EntryPoint("plain", "voxmeter.endpoints.openai_realtime:client", GROUP),
        "broken": EntryPoint("broken", "no.such.module:client", GROUP),
    }
    monkeypatch.setattr(catalog, "_added", lambda: entries)
    return iter(())


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_ours_names_what_exists(name: str) -> None:
    kind = find(name)
    assert kind.name == name
    make = load(kind.codec)
    assert callable(make)
    assert make(Settings()).traits.input_rate > 0
    assert kind.server is None or callable(load(kind.server))
    assert callable(load(kind.transport))
    assert kind.about
    assert kind.known_by
    page = Path(__file__).parent.parent / kind.docs
    assert all(f"`{option}`" in page.read_text() for option in kind.options)


def test_the_options_of_a_kind_are_those_that_its_codec_takes() -> None:
    assert find("openai-realtime").options == OPTIONS


def test_an_unknown_kind_gets_the_nearest_name() -> None:
    with pytest.raises(UserError) as raised:
        find("openai_realtme", "bench.toml: endpoint.kind")
    assert str(raised.value) == (
        'bench.toml: endpoint.kind: there is no endpoint kind "openai_realtme"; '
        'did you mean "openai-realtime"?'
    )
    with pytest.raises(UserError, match="known: openai-realtime"):
        find("zzz")


def test_a_package_adds_a_codec_or_a_whole_kind(added: None) -> None:
    assert names() == [*KINDS, "whole", "plain", "broken"]
    whole = find("whole")
    assert (whole.name, whole.about, whole.transport) == ("whole", OWN_KIND.about, "smoke:Fire")
    plain = find("plain")
    assert plain.codec == "voxmeter.endpoints.openai_realtime:client"
    assert plain.transport == WEBSOCKET
    assert plain.options == {}


def test_a_package_that_cannot_be_imported_is_named(added: None) -> None:
    with pytest.raises(UserError, match="kind 'broken' of an installed package cannot be imported"):
        find("broken")

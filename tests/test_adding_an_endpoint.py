"""The page for strangers is true: one file, one catalog line and one recording are enough."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import ws_play
from websockets.asyncio.server import ServerConnection, serve

from voxmeter.client import config
from voxmeter.client.access import access
from voxmeter.client.capture import Utterance
from voxmeter.client.cli import main
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.targets import settings
from voxmeter.endpoints import catalog, preset
from voxmeter.endpoints.codec import Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Fault
from voxmeter.endpoints.kind import Kind

PAGE = (Path(__file__).parent.parent / "docs" / "adding-an-endpoint.md").read_text()
MODULE = "voxmeter.endpoints.acme"


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def catalog_line() -> dict[str, str]:
    """Return the line that the page adds to the catalog."""
    (line,) = [block for block in blocks("python") if block.lstrip().startswith('"acme"')]
    found = ast.literal_eval("{" + line + "}")
    assert isinstance(found, dict)
    return found


def loaded(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The page's one file, where it would lie, and its one line in the catalog."""
    file = tmp_path / "acme.py"
    file.write_text(blocks("python")[0])
    monkeypatch.setattr(catalog, "KINDS", {**catalog.KINDS, **catalog_line()})
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield loaded(MODULE, file)
    del sys.modules[MODULE]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The page's one recording."""
    file = tmp_path / "turn.jsonl"
    file.write_text(blocks("json")[0])
    return file


def test_the_recording_leads_to_what_is_written_beside_it(
    acme: ModuleType, recording: Path
) -> None:
    ws_play.play(recording, acme.client)
    codec = acme.client(Settings())
    assert codec.address("ws://h", "k").headers == {"X-Key": "k"}
    (fault,) = codec.receive(ws_play.told("busy", why="later", wait_s=7)).events
    assert fault == Fault("busy", retryable=True, message="later", retry_after_s=7.0)


def test_a_recording_that_is_wrong_is_found_out(acme: ModuleType, recording: Path) -> None:
    text = recording.read_text()
    for right, wrong in (("0001", "0002"), ("Be brief.", "Be long."), ("not JSON", "not HTML")):
        recording.write_text(wrong.join(text.rsplit(right, 1)))
        with pytest.raises(AssertionError):
            ws_play.play(recording, acme.client)


def test_the_test_that_the_page_shows_is_one_that_the_player_has() -> None:
    (test,) = [block for block in blocks("python") if "parametrize" in block]
    assert {"recordings", "play"} <= set(re.findall(r"\w+", test))
    assert callable(ws_play.recordings)


def test_the_line_in_the_catalog_makes_it_known(
    acme: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = catalog.find("acme")
    assert kind is acme.KIND
    assert (kind.name, list(kind.options)) == ("acme", ["accent"])
    assert main(["endpoints", "acme"]) == 0
    shown = capsys.readouterr().out
    assert kind.about in shown
    assert "accent" in shown
    tables = {"endpoint": [{"name": "a", "kind": "acme", "url": "ws://h", "options": {"acent": 1}}]}
    with pytest.raises(UserError, match="did you mean"):
        config.parse({**tables, "suite": [{"kind": "demo"}]}, "bench.toml")


def test_a_package_adds_it_with_the_entry_point_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = [block for block in blocks("toml") if "entry-points" in block]
    lines = entry.replace('."voxmeter.endpoints"]', "]").splitlines()
    assert lines[0] == "[project.entry-points]"
    info = tmp_path / "acme_voxmeter-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-voxmeter\nVersion: 1\n")
    name, _, target = lines[1].partition(" = ")
    bare = target.strip('"')
    (info / "entry_points.txt").write_text(f"[{catalog.GROUP}]\n{name} = {bare}\n")
    (tmp_path / "acme_voxmeter.py").write_text(blocks("python")[0].replace(MODULE, "acme_voxmeter"))
    monkeypatch.syspath_prepend(tmp_path)
    catalog._added.cache_clear()
    try:
        kind = catalog.find("acme")
        assert isinstance(kind, Kind)
        assert kind.codec == "acme_voxmeter:client"
        assert "acme" in catalog.names()
    finally:
        catalog._added.cache_clear()
        sys.modules.pop("acme_voxmeter", None)


def test_the_preset_of_the_page_makes_an_endpoint(
    acme: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = [block for block in blocks("toml") if block.startswith("about")]
    (tmp_path / "acme-cloud.toml").write_text(text)
    monkeypatch.setattr(preset, "_FOLDER", tmp_path)
    table = {"name": "a", "preset": "acme-cloud"}
    tables = {"endpoint": [table], "suite": [{"kind": "demo"}]}
    with pytest.raises(UserError, match="voice: is missing, and preset acme-cloud does not have"):
        config.parse(tables, "bench.toml")
    table["voice"] = "ann"
    (endpoint,) = config.parse(tables, "bench.toml").endpoints
    codec = acme.client(settings(endpoint))
    reach = access(endpoint, "bench.toml", {"ACME_API_KEY": "k"})
    address = codec.address(reach.url, reach.api_key)
    assert address.url == "wss://voice.acme.example/v2/acme-large"
    assert address.headers == {"X-Key": "k"}


async def test_a_session_with_a_server_that_speaks_it_brings_a_reply(acme: ModuleType) -> None:
    async def server(peer: ServerConnection) -> None:
        assert json.loads(await peer.recv())["type"] == "hello"
        await peer.send(json.dumps({"type": "welcome"}))
        while json.loads(await peer.recv())["type"] != "audio":
            pass
        for told in ({"type": "reply"}, {"type": "audio", "data": "AAE="}, {"type": "reply_end"}):
            await peer.send(json.dumps(told))
        async for _ in peer:
            pass

    async with serve(server, "127.0.0.1", 0) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        patience = Patience(first_reply_timeout_s=10, drain_ms=0)
        target = Target("a", "acme", f"ws://127.0.0.1:{port}", patience=patience)
        capture = await attempt(target, lambda rate: Utterance(bytes(rate // 25), rate, 0, 320))
    assert (capture.outcome, capture.fault) == ("ended", None)
    assert [data for _, data in capture.audio] == [b"\x00\x01"]


def test_every_field_that_the_page_names_is_there() -> None:
    traits = {"input_rate", "input_encoding", "turn_end", "full_duplex", "reply_end"}
    traits |= {"first_speaker", "lead_in_ms", "min_turn_ms", "history", "takes_text"}
    from voxmeter.endpoints.codec import Traits

    assert traits <= set(Traits.__dataclass_fields__)
    assert all(f"`{name}" in PAGE for name in traits)
    assert {"retryable", "retry_after_s"} <= set(Fault.__dataclass_fields__)
    assert {"transport", "pool", "place"} <= set(Kind.__dataclass_fields__)

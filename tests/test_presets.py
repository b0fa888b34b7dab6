"""Presets: each one makes an endpoint, and a bench.toml that names one is what its user meant."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from voxmeter.client import config
from voxmeter.client.access import access
from voxmeter.client.bench import Endpoint
from voxmeter.client.cli import main
from voxmeter.client.targets import settings
from voxmeter.endpoints import catalog, preset
from voxmeter.endpoints.codec import Codec
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.kind import load
from voxmeter.endpoints.preset import Preset

ROOT = Path(__file__).parent.parent
SUITE = '[[suite]]\nkind = "demo"\n'
AZURE = Preset(
    "azure",
    "A service with a place of its own for each customer",
    "documentation only",
    {"url": "wss://RESOURCE.example/{model}", "options.session": "SESSION"},
    {
        "kind": "openai-realtime",
        "url": "wss://nowhere.example/{model}",
        "model": "voice-1",
        "headers": {"X-Version": "1", "X-Model": "{model}"},
        "options": {"dialect": "legacy", "silence_duration_ms": 500, "session": {"a": {"b": 1}}},
    },
    "[[endpoint]]",
)


def parsed(text: str) -> Endpoint:
    return config.parse(tomllib.loads(f"{text}\n{SUITE}"), "bench.toml").endpoints[0]


def mistake(text: str) -> str:
    with pytest.raises(UserError) as raised:
        parsed(text)
    return str(raised.value)


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preset, "names", lambda: ["azure", "moshi-local"])
    monkeypatch.setattr(preset, "read", lambda name: {"azure": AZURE}[name])


def stand_alone(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    made = Preset(**{**{name: getattr(AZURE, name) for name in AZURE.__slots__}, **changed})
    monkeypatch.setattr(preset, "names", lambda: ["azure"])
    monkeypatch.setattr(preset, "read", lambda _: made)


# Every file


@pytest.mark.parametrize("name", preset.names())
def test_a_preset_makes_an_endpoint_with_no_more_than_its_block(name: str) -> None:
    ready = preset.read(name)
    assert ready.about
    assert "\n" not in ready.about
    assert ready.known_by
    assert not {"name", "preset", "folder"} & set(ready.endpoint)
    endpoint = parsed(ready.block())
    assert (endpoint.preset, endpoint.kind) == (name, ready.kind)
    kind = catalog.find(ready.kind)
    assert set(endpoint.options) <= set(kind.options) or kind.options_at is None
    make = load(kind.codec)
    assert callable(make)
    codec = cast("Codec", make(settings(endpoint)))
    codec.open()
    assert codec.traits.input_rate > 0
    if endpoint.url is not None:
        key = {endpoint.api_key_env or "": "key"}
        reach = access(endpoint, "bench.toml", key)
        assert "://" in codec.address(reach.url or "", reach.api_key).url


@pytest.mark.parametrize("name", preset.names())
def test_what_a_preset_is_shown_to_stand_for_is_what_it_stands_for(name: str) -> None:
    ready = preset.read(name)
    (table,) = tomllib.loads(ready.text)["endpoint"]
    assert table == ready.endpoint


@pytest.mark.parametrize("name", preset.names())
def test_a_preset_is_listed_and_shown_with_a_block_to_paste(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ready = preset.read(name)
    assert main(["endpoints"]) == 0
    assert f"  {name} " in capsys.readouterr().out
    assert main(["endpoints", name]) == 0
    shown = capsys.readouterr().out
    for words in (ready.about, ready.known_by, ready.block(), ready.text):
        assert words in shown


@pytest.mark.parametrize("name", preset.names())
def test_the_page_of_its_kind_names_a_preset(name: str) -> None:
    page = ROOT / catalog.find(preset.read(name).kind).docs
    assert f"`{name}`" in page.read_text() or f'"{name}"' in page.read_text()


def test_a_kind_names_its_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["endpoints", "mini-omni"]) == 0
    shown = capsys.readouterr().out
    assert "presets: mini-omni, mini-omni2" in shown
    assert 'preset = "mini-omni"' in shown  # the preset that has the kind's own name


# Merging


def test_the_users_own_keys_go_before_the_presets_key_by_key(azure: None) -> None:
    endpoint = parsed(
        '[[endpoint]]\nname = "a"\npreset = "azure"\nurl = "wss://mine.example/x"\n'
        'headers = {x-version = "2"}\n[endpoint.options]\nsilence_duration_ms = 200\n'
        "session = {c = 1}"
    )
    assert endpoint.url == "wss://mine.example/x"
    assert endpoint.model == "voice-1"
    assert endpoint.headers == {"x-version": "2", "X-Model": "{model}"}
    assert endpoint.options == {
        "dialect": "legacy",
        "silence_duration_ms": 200,
        "session": {"c": 1},
    }


def test_one_place_of_the_users_replaces_the_presets(azure: None) -> None:
    endpoint = parsed('[[endpoint]]\nname = "a"\npreset = "azure"\nbuiltin = "echo"\n')
    assert endpoint.url is None
    assert str(endpoint.builtin) == "echo"


def test_model_is_filled_into_url_and_headers(azure: None) -> None:
    endpoint = parsed('[[endpoint]]\nname = "a"\npreset = "azure"\nmodel = "org/voice 2"\n')
    reach = access(endpoint, "bench.toml", {})
    assert reach.url == "wss://nowhere.example/org%2Fvoice%202"
    assert reach.headers == {"X-Version": "1", "X-Model": "org/voice 2"}


def test_without_a_preset_model_is_filled_in_too() -> None:
    endpoint = parsed('[[endpoint]]\nname = "a"\nurl = "ws://h/{model}/x?m={model}"\nmodel = "m+"')
    assert access(endpoint, "bench.toml", {}).url == "ws://h/m%2B/x?m=m%2B"


def test_a_run_folder_keeps_what_the_preset_was(
    azure: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'[[endpoint]]\nname = "a"\npreset = "azure"\nvoice = "v"\n{SUITE}'
    bench = config.parse(tomllib.loads(text), "bench.toml")
    written = config.resolved(bench)
    assert written["endpoint"][0]["preset"] == "azure"
    changed = {**AZURE.endpoint, "model": "voice-2", "temperature": 0.5}
    stand_alone(monkeypatch, endpoint=changed, needs={"size": "8B"})
    again = config.reread(written, "run.json")
    assert again.endpoints == bench.endpoints
    monkeypatch.setattr(preset, "names", list)
    assert config.reread(written, "run.json").endpoints == bench.endpoints


# Mistakes


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            'preset = "azur"',
            '[[endpoint]] "a" preset: there is no preset "azur"; did you mean "azure"?',
        ),
        ("preset = 3", '[[endpoint]] "a" preset: is 3; write text in quotes: "..."'),
        ('preset = ""', '[[endpoint]] "a" preset: is empty; remove the key, or give it a value'),
        (
            'preset = "azure"\nkind = "moshi"',
            '[[endpoint]] "a" kind: is the text "moshi", but preset azure is of kind '
            "openai-realtime; remove kind, or remove preset",
        ),
        (
            'preset = "azure"\ntemprature = 1',
            '[[endpoint]] "a" temprature: unknown key; did you mean "temperature"?',
        ),
        (
            'preset = "azure"\noptions = 3',
            '[[endpoint]] "a" options: is 3; write a table: {...}',
        ),
        (
            'preset = "azure"\noptions = {dialekt = "ga"}',
            '[[endpoint]] "a" options.dialekt: kind openai-realtime has no such option; '
            'did you mean "dialect"?',
        ),
        (
            'preset = "azure"\nmodel = ""',
            '[[endpoint]] "a" model: is missing, and url has {model} in it; add model = "..."',
        ),
        (
            'preset = "azure"\nmodel = "a\\nb"',
            '[[endpoint]] "a" model: has characters that headers.X-Model cannot carry; '
            "remove what cannot be printed",
        ),
    ],
)
def test_a_mistake_is_told_where_the_user_made_it(azure: None, keys: str, line: str) -> None:
    assert mistake(f'[[endpoint]]\nname = "a"\n{keys}') == f"bench.toml: {line}"


def test_a_key_that_the_preset_cannot_know_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch, endpoint={"kind": "openai-realtime"})
    text = '[[endpoint]]\nname = "a"\npreset = "azure"\n'
    assert mistake(text) == (
        'bench.toml: [[endpoint]] "a" url: is missing, and preset azure does not have it; '
        'write url = "wss://RESOURCE.example/{model}"'
    )
    text += 'model = "m"\nbuiltin = "echo"\n'  # a place of its own, so that no url is needed
    assert "options.session: is missing, and preset azure" in mistake(text)
    assert parsed(f"{text}options = {{session = {{}}}}").preset == "azure"


def test_a_plain_list_of_needs_has_examples(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preset, "_FOLDER", tmp_path)
    (tmp_path / "x.toml").write_text(
        'about = "X"\nknown_by = "nobody"\nneeds = ["url", "size"]\n[endpoint]\nkind = "moshi"\n'
    )
    assert preset.names() == ["x"]
    assert preset.read("x").block().splitlines()[2:] == [
        'preset = "x"',
        'url = "wss://HOST/PATH"',
        'size = "..."',
    ]
    assert "url: is missing, and preset x" in mistake('[[endpoint]]\nname = "a"\npreset = "x"')


def test_an_unknown_name_gets_the_nearest_kind_or_preset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["endpoints", "mini-omni3"]) == 2
    assert "there is no endpoint kind or preset" in capsys.readouterr().err
    assert main(["endpoints", "moshi-locl"]) == 2
    assert 'did you mean "moshi-local"?' in capsys.readouterr().err

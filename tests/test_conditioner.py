"""Conditions in a process beside the run: the same samples, from any thread, after any death."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from needs import needs

from voxmeter.client import audio, clips, config
from voxmeter.client.bench import Bench
from voxmeter.client.cli import main
from voxmeter.client.clip_source import ClipSource
from voxmeter.client.clips import Clip
from voxmeter.client.conditioner import Conditioner
from voxmeter.client.effects.chain import conditioned
from voxmeter.client.speakers import Speaker, speaker
from voxmeter.endpoints.errors import ClipError
from voxmeter.suites.suite import Item, Recording, Spoken

ITEMS = Path(__file__).parent.parent / "suites" / "demo_items"
LIMIT_S = 30
FILES = ("hamlet", "library", "earth-round", "leap-year")


@pytest.fixture(scope="module")
def conditioner() -> Iterator[Conditioner]:
    with Conditioner() as one:
        yield one


@pytest.fixture(scope="module")
def bench() -> Bench:
    chain = [{"effect": "room-impulse-response"}, {"effect": "gaussian-noise", "snr_db": [0, 20]}]
    tables = {
        "endpoint": [{"name": "m", "builtin": "echo"}],
        "suite": [{"kind": "demo"}],
        "condition": [{"name": "hall", "chain": chain}, {"name": "nothing"}],
    }
    return config.parse(tables, "bench.toml")


@pytest.fixture(scope="module")
def clip() -> Clip:
    return clips.clip(audio.read(ITEMS / "hamlet.ogg"), "hamlet")


def item(name: str) -> Item:
    return Item("mine", name, "open", (Recording(ITEMS / f"{name}.ogg"),))


def nobody(name: str) -> Speaker:
    raise AssertionError(name)


def killed(conditioner: Conditioner) -> None:
    os.kill(conditioner._worker.submit(os.getpid).result(LIMIT_S), signal.SIGKILL)


def test_the_other_process_makes_what_this_one_would(
    conditioner: Conditioner, bench: Bench, clip: Clip
) -> None:
    alter = conditioner.alterations(bench)
    assert set(alter) == {"hall"}
    there, here = alter["hall"](clip, "s"), conditioned(clip, bench.conditions[0].chain, "s")
    assert there.sha256 == here.sha256
    assert there.bounds == here.bounds
    assert there.params == here.params


def test_neither_order_nor_threads_change_a_clip(conditioner: Conditioner, bench: Bench) -> None:
    alter = conditioner.alterations(bench)
    one = ClipSource(nobody, alter, 3)
    in_order = {name: one(item(name), "hall").sha256 for name in FILES}
    other = ClipSource(nobody, alter, 3)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda name: other(item(name), "hall").sha256, reversed(FILES))
    assert dict(zip(reversed(FILES), found, strict=True)) == in_order
    assert len(set(in_order.values())) == len(FILES)
    again = ClipSource(nobody, alter, 4)
    assert again(item("hamlet"), "hall").sha256 != in_order["hamlet"]


def test_a_process_that_was_killed_is_replaced(
    conditioner: Conditioner, bench: Bench, clip: Clip
) -> None:
    killed(conditioner)
    made = conditioner.alterations(bench)["hall"](clip, "s")
    assert made.sha256 == conditioned(clip, bench.conditions[0].chain, "s").sha256


class Deadly:
    """Ends whatever process reads it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return (os._exit, (3,))


def test_a_clip_that_kills_its_process_twice_is_a_bad_clip(
    conditioner: Conditioner, bench: Bench, clip: Clip
) -> None:
    deadly: Any = Deadly()
    with pytest.raises(ClipError, match="its process ended twice"):
        conditioner.alterations(bench)["hall"](deadly, "s")
    assert conditioner.alterations(bench)["hall"](clip, "s").params


def test_what_is_wrong_with_a_clip_comes_back_as_its_error(tmp_path: Path, clip: Clip) -> None:
    (tmp_path / "a.wav").write_bytes(b"no sound")
    chain = [{"effect": "babble", "path": str(tmp_path)}]
    tables = {
        "endpoint": [{"name": "m", "builtin": "echo"}],
        "suite": [{"kind": "demo"}],
        "condition": [{"name": "crowd", "chain": chain}],
    }
    with Conditioner() as conditioner, pytest.raises(ClipError, match=r"a\.wav"):
        conditioner.alterations(config.parse(tables, "bench.toml"))["crowd"](clip, "s")


def test_a_run_in_a_condition_logs_what_was_drawn_and_sends_the_same_clip_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "bench.toml"
    file.write_text(
        f'[run]\nout = "{tmp_path}/runs"\nwarmup = 0\npacing = "fast"\nconcurrency = 2\nseed = 5\n'
        '[[endpoint]]\nname = "m"\nbuiltin = "metronome?delay_ms=250&pacing=burst"\n'
        '[[suite]]\nkind = "demo"\nlimit = 1\n'
        '[[condition]]\nname = "crowd"\nchain = ['
        '{effect = "babble", snr_db = [5, 15]}, {effect = "telephone"}]\n'
    )
    runs = []
    for _ in range(2):
        assert main(["run", str(file), "--quiet", "--shard", "1/1"]) == 0
        folder = max((tmp_path / "runs").iterdir())
        rows = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
        runs.append({row["key"]: row for row in rows})
    first, second = runs
    assert {row["condition"] for row in first.values()} == {"clean", "crowd"}
    for key, row in first.items():
        assert row["status"] == "ok"
        assert row["clip"] == second[key]["clip"]
        assert row["condition_params"] == second[key]["condition_params"]
        if row["condition"] == "clean":
            assert row["condition_params"] == {}
            continue
        babble, telephone = row["condition_params"]["chain"]
        assert babble["effect"] == "babble"
        assert 5 <= babble["snr_db"] <= 15
        assert telephone["law"] == "mu"
        clean = first[key.replace("/crowd/", "/clean/")]["clip"]
        assert row["clip"]["speech_end_ms"] == clean["speech_end_ms"]
        assert row["clip"]["sha256"] != clean["sha256"]


def test_a_run_in_which_another_voice_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("espeak-ng")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "texts.jsonl").write_text('{"id": "t", "text": "Ten?", "kind": "open"}\n')
    file = tmp_path / "bench.toml"
    file.write_text(
        f'[run]\nout = "{tmp_path}/runs"\nwarmup = 0\n'
        '[[endpoint]]\nname = "m"\nbuiltin = "metronome?delay_ms=250&pacing=burst"\n'
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "texts.jsonl"\nvoice = "espeak-ng"\n'
        '[[condition]]\nname = "german"\nchain = [{effect = "speaker", voice = "espeak-ng:de"}, '
        '{effect = "gain", gain_db = -6}]\n'
    )
    assert main(["run", str(file), "--quiet", "--shard", "1/1"]) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    rows = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    clean, german = sorted(rows, key=lambda row: str(row["condition"]))
    assert [clean["status"], german["status"]] == ["ok", "ok"]
    assert german["condition_params"]["chain"] == [
        {"effect": "speaker", "voice": "espeak-ng:de"},
        {"effect": "gain", "gain_db": -6},
    ]
    spoken = clips.render(
        Item("mine", "t", "open", (Spoken("Ten?", "espeak-ng:de"),)), speaker, tmp_path / "speech"
    )
    assert german["clip"]["speech_end_ms"] == round(spoken.speech_end_ms, 3)
    assert german["clip"]["speech_end_ms"] != clean["clip"]["speech_end_ms"]

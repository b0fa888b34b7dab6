"""What scripts call: the public names, one clip asked many times, whole runs, finished runs."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sample_run
from conversations import conversation, spread

import voxmeter
from voxmeter.client.audio import write_flac
from voxmeter.client.servers.voice import babble
from voxmeter.endpoints.errors import UserError

METRONOME = "metronome?delay_ms=250&pacing=burst"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "question.flac"
    write_flac(path, babble(16_000, 0.3), 16_000)
    return path


@pytest.mark.parametrize("name", voxmeter.__all__)
def test_every_public_name_is_there_and_described(name: str) -> None:
    found = getattr(voxmeter, name)
    if name != "Event":  # a union of classes, each of which is described
        assert found.__doc__


def test_no_other_name_is_promised() -> None:
    assert set(voxmeter.__all__) <= set(dir(voxmeter))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = voxmeter.nonsense
    assert voxmeter.__version__.count(".") == 2


def test_a_clip_is_asked_many_times(clip: Path) -> None:
    found = voxmeter.converse(METRONOME, clip, trials=2)
    assert [trial["status"] for trial in found.trials] == ["ok"] * 2
    assert len(found.transcripts) == 2
    latency = found.latency("first_packet_ms")
    assert len(latency.samples) + latency.missing == 2
    if latency.p50 is not None:
        assert min(latency.samples) <= latency.p50.value <= max(latency.samples)
    assert found.summary["cells"][0]["status"] == {"ok": 2}
    with pytest.raises(KeyError):
        found.latency("no_such_metric")


def test_what_did_not_happen_is_missing_and_not_zero(clip: Path) -> None:
    endpoint = {"builtin": METRONOME + "&fault=never", "first_reply_timeout_s": 0.5}
    found = voxmeter.converse(endpoint, clip, trials=1)
    latency = found.latency("first_audible_ms")
    assert (latency.samples, latency.missing, latency.p50) == ((), 1, None)
    assert found.transcripts == ("",)


def test_a_latency_that_this_machine_spoilt_is_left_out_and_counted() -> None:
    latency = conversation(spread(300), late=3, failed=2).latency("first_audible_ms")
    assert latency.samples == tuple(spread(300))
    assert (latency.missing, latency.invalid) == (5, 3)
    assert latency.p50 is not None
    assert latency.interval == (latency.p50.low, latency.p50.high)
    assert conversation([]).latency("first_audible_ms").interval is None


def test_an_endpoints_fault_is_in_the_trials(clip: Path) -> None:
    found = voxmeter.converse("ws://127.0.0.1:1/v1", clip, trials=1)
    assert [trial["status"] for trial in found.trials] == ["disconnected"]
    assert found.latency("first_audible_ms").missing == 1


def test_a_bad_clip_is_in_the_trials_and_has_no_latency(tmp_path: Path) -> None:
    silent = tmp_path / "silent.flac"
    write_flac(silent, np.zeros(16_000, dtype=np.float32), 16_000)
    found = voxmeter.converse(METRONOME, silent, trials=1)
    assert [trial["status"] for trial in found.trials] == ["bad_clip"]
    assert found.latency("first_audible_ms").missing == 1


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("nonsense", "nonsense"),
        ("mqtt://127.0.0.1:1", "url"),
        ({"kind": "openai-realtim", "url": "ws://127.0.0.1:1"}, "openai-realtime"),
        ({}, "endpoint"),
    ],
)
def test_an_endpoint_that_cannot_be_is_the_users_mistake(
    endpoint: Any, told: str, clip: Path
) -> None:
    with pytest.raises(UserError, match=told):
        voxmeter.converse(endpoint, clip, trials=1)


@pytest.mark.parametrize("trials", [0, -1])
def test_too_few_trials_are_the_users_mistake(trials: int, clip: Path) -> None:
    with pytest.raises(UserError, match="trials"):
        voxmeter.converse(METRONOME, clip, trials=trials)


def test_a_clip_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such clip"):
        voxmeter.converse(METRONOME, tmp_path / "none.wav")


def test_a_bench_is_run_and_found_again(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(
        json.dumps({"id": "q", "audio": clip.name, "kind": "open"}) + "\n"
    )
    bench = tmp_path / "bench.toml"
    bench.write_text(
        f'[run]\nout = "{tmp_path}/runs"\nwarmup = 0\n'
        f'[[endpoint]]\nname = "m"\nbuiltin = "{METRONOME}"\n'
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "mine.jsonl"\n'
    )
    done = voxmeter.run_bench(bench)
    assert done.summary["cells"][0]["status"] == {"ok": 1}
    assert [trial["status"] for trial in done.trials()] == ["ok"]
    assert {score["metric"] for score in done.scores()} >= {"first_audible_ms"}
    assert voxmeter.open_run(str(done.path)).summary["cells"] == done.summary["cells"]
    again = voxmeter.run_bench(resume=done.path)
    assert again.path == done.path
    assert len(list(again.trials())) == 1
    with pytest.raises(UserError, match="resume comes with"):
        voxmeter.run_bench(bench, resume=done.path)


def test_a_run_without_a_summary_is_summarised(tmp_path: Path) -> None:
    trial = sample_run.trial("q", first_audible_ms=400.0)
    folder = sample_run.build(tmp_path, [sample_run.item("q")], [trial], [sample_run.score(trial)])
    folder.close()
    run = voxmeter.open_run(folder.path)
    assert run.summary["cells"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert len(list(run.scores())) == 1


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_what_is_no_run_is_the_users_mistake(place: str, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        voxmeter.open_run(tmp_path / place)


def test_a_script_without_a_main_guard_works_and_is_run_once(clip: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
            import voxmeter
            print("once")
            found = voxmeter.converse({METRONOME!r}, {str(clip)!r}, trials=1)
            print(found.trials[0]["status"])
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["once", "ok"]
    assert done.stderr == ""

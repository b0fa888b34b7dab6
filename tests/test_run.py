"""Whole runs against built-in servers: statuses, files, resume after any death, exit status."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client import clips
from voxmeter.client.audio import Pcm, write_flac
from voxmeter.client.cli import main
from voxmeter.client.speakers import speaker
from voxmeter.suites import catalog

METRONOME = 'builtin = "metronome?delay_ms=250&pacing=burst"'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A bench of four very short questions, and no endpoint yet."""
    demo = catalog.load("demo", "demo", {}, tmp_path).items
    lines = []
    for number, item in enumerate(demo[:4]):
        made = clips.render(item, speaker)
        end = made.bounds.end_sample
        piece = made.pcm.samples[end - made.pcm.rate * 3 // 10 : end]
        write_flac(tmp_path / f"{number}.flac", Pcm(piece, made.pcm.rate).samples, made.pcm.rate)
        lines.append({"id": f"q{number}", "audio": f"{number}.flac", "kind": "open"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "questions.jsonl").write_text(text)
    return write(tmp_path, f'[[endpoint]]\nname = "m"\n{METRONOME}\n')


def write(folder: Path, tables: str, run: str = "") -> Path:
    path = folder / "bench.toml"
    path.write_text(
        f'[run]\nout = "{folder}/runs"\nwarmup = 0\n{run}\n{tables}\n'
        '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "questions.jsonl"\n'
    )
    return path


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def only_run(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "runs").iterdir()
    return folder


def test_a_run_leaves_everything_that_the_contract_names(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bench)]) == 0
    printed = capsys.readouterr().out
    folder = only_run(bench.parent)
    assert printed.splitlines()[-1] == str(folder)
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names >= {
        *("run.json", "items.jsonl", "trials.jsonl", "transcripts.jsonl", "scores.jsonl"),
        *("summary.json", "report.md", "report.html", "events", "audio"),
    }
    trials = rows(folder, "trials")
    assert [trial["status"] for trial in trials] == ["ok"] * 4
    assert {trial["key"] for trial in trials} == {f"m/mine/q{n}/clean/1" for n in range(4)}
    for trial in trials:
        assert trial["latency_kind"] == "server-vad"
        assert trial["latency"]["first_packet_ms"] >= 240
        assert trial["clip"].keys() >= {"sha256", "ms", "speech_end_ms", "end_kind"}
    stems = [f"q{n}~1~1" for n in range(4)]
    audio = {path.name for path in (folder / "audio" / "m~mine~clean").iterdir()}
    assert audio == {f"{s}.flac" for s in stems} | {f"{s}.reply.flac" for s in stems}
    summary = json.loads((folder / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert (cell["planned"], cell["status"]) == (4, {"ok": 4})


def test_scoring_again_from_the_files_gives_the_same_latency(bench: Path) -> None:
    assert main(["run", str(bench), "--limit", "2", "--quiet"]) == 0
    folder = only_run(bench.parent)
    measured = {row["key"]: row["latency"] for row in rows(folder, "trials")}
    again = [
        row for row in rows(folder, "scores") if row["metric"] in ("first_audible_ms", "reply_ms")
    ]
    assert len(again) == 4
    for row in again:
        assert row["value"] == pytest.approx(measured[row["key"]][row["metric"]], abs=0.002)


def test_a_dead_endpoint_is_3_and_its_trials_are_disconnected(bench: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    write(
        bench.parent,
        f'[[endpoint]]\nname = "dead"\nurl = "ws://127.0.0.1:{port}"\n'
        f'[[endpoint]]\nname = "m"\n{METRONOME}\n',
    )
    assert main(["run", str(bench), "--quiet", "--limit", "2"]) == 3
    statuses = Counter(
        (row["endpoint"], row["status"]) for row in rows(only_run(bench.parent), "trials")
    )
    assert statuses == {("dead", "disconnected"): 2, ("m", "ok"): 2}
    assert main(["run", str(bench), "--quiet", "--limit", "2", "--shard", "1/1"]) == 3


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("drop", "disconnected"),
        ("silent", "no_reply"),
        ("garbage", "protocol_error"),
        ("never", "timeout"),
        ("refuse", "refused"),
    ],
)
def test_every_fault_of_a_server_has_its_status(bench: Path, fault: str, status: str) -> None:
    write(
        bench.parent,
        f'[[endpoint]]\nname = "m"\nfirst_reply_timeout_s = 1\nreply_limit_s = 5\n'
        f'builtin = "metronome?delay_ms=250&pacing=burst&fault={fault}"\n',
        "retries = 0",
    )
    assert main(["run", str(bench), "--quiet", "--limit", "1"]) == 3
    (trial,) = rows(only_run(bench.parent), "trials")
    assert trial["status"] == status
    assert trial["latency"]["first_audible_ms"] is None or status == "disconnected"
    summary = json.loads((only_run(bench.parent) / "summary.json").read_text())
    assert summary["cells"][0]["status"] == {status: 1}


@pytest.mark.parametrize(
    ("reply_limit_s", "status", "exit_status"), [(30, "ok", 0), (1, "truncated", 3)]
)
def test_a_slow_server_is_heard_out_within_its_limit(
    bench: Path, reply_limit_s: int, status: str, exit_status: int
) -> None:
    write(
        bench.parent,
        f'[[endpoint]]\nname = "m"\nreply_limit_s = {reply_limit_s}\n'
        'builtin = "metronome?delay_ms=250&fault=slow"\n',
    )
    assert main(["run", str(bench), "--quiet", "--limit", "1", "--shard", "1/1"]) == exit_status
    (trial,) = rows(only_run(bench.parent), "trials")
    assert trial["status"] == status
    assert trial["latency"]["delivery_rate"] < 0.75


def test_a_clip_that_cannot_be_spoken_is_ours_and_leaves_the_others_alone(bench: Path) -> None:
    (bench.parent / "1.flac").write_bytes(b"")
    (bench.parent / "2.flac").unlink()
    assert main(["run", str(bench), "--quiet"]) == 0
    statuses = Counter(row["status"] for row in rows(only_run(bench.parent), "trials"))
    assert statuses == {"ok": 2, "bad_clip": 2}


def test_a_gate_that_fails_is_1(bench: Path) -> None:
    gate = '[[gate]]\nmetric = "first_packet_ms"\nat = "p50"\nmax = 200\n'
    write(bench.parent, f'[[endpoint]]\nname = "m"\n{METRONOME}\n{gate}')
    assert main(["run", str(bench), "--quiet", "--limit", "1"]) == 1


def test_a_dry_run_writes_nothing(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(bench), "--dry-run"]) == 0
    assert "4 turns" in capsys.readouterr().out
    assert not (bench.parent / "runs").exists()


def test_a_dry_run_can_be_read_by_a_program(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bench), "--dry-run", "--json", "--limit", "2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [cell["planned"] for cell in told["cells"]] == [2]
    assert told["missing_clips"] == 0
    assert (told["clips_opened"], told["clips_by_size"]) == (2, 0)
    assert told["streaming_s"] > 0
    assert told["disk_bytes"] > 0
    assert not (bench.parent / "runs").exists()


def test_a_dry_run_needs_no_key_and_says_which_one_a_run_will_need(
    bench: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    table = '[[endpoint]]\nname = "m"\nurl = "wss://127.0.0.1:1"\napi_key_env = "NO_SUCH_KEY"\n'
    write(bench.parent, table)
    assert main(["run", str(bench), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "NO_SUCH_KEY" in told
    assert "4 turns" in told
    assert main(["run", str(bench), "--dry-run", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert "NO_SUCH_KEY" in note
    assert main(["run", str(bench)]) == 2
    assert "NO_SUCH_KEY" in capsys.readouterr().err


def test_a_dry_run_says_that_it_is_about_the_bench_that_comes_with_voxmeter(
    bench: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from voxmeter.client import config

    own = config.load(bench)
    assert main(["run", str(bench), "--dry-run"]) == 0
    assert "comes with voxmeter" not in capsys.readouterr().out
    monkeypatch.setattr(config, "load", lambda _: own.model_copy(update={"packaged": True}))
    assert main(["run", "--dry-run"]) == 0
    first = "No bench.toml here: this is about the one that comes with voxmeter."
    assert capsys.readouterr().out.splitlines()[0] == first
    assert main(["run", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packaged"] is True


def test_a_dry_run_does_not_resume(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--resume", str(bench.parent), "--dry-run"]) == 2
    told = capsys.readouterr().err
    assert "--resume: comes with --dry-run; leave one out: --resume asks what is left" in told


def test_json_is_one_line_before_the_folder(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(bench), "--json", "--limit", "1"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert json.loads(first)["cells"][0]["endpoint"] == "m"
    assert Path(last) == only_run(bench.parent)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--resume", "RUN", "--limit", "2"], "leave it out"),
        (["--resume", "nowhere"], "nowhere"),
        (["--only", "endpoint=z"], 'unknown endpoint "z"'),
    ],
)
def test_what_the_user_got_wrong_is_2_and_one_line(
    bench: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(bench)] if "--resume" not in words else []
    assert main(["run", *named, *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (bench.parent / "runs").exists()


def test_a_transcriber_that_does_not_know_a_language_is_refused_before_anything_is_asked(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    german = {"id": "q", "audio": "0.flac", "kind": "open", "language": "de"}
    (bench.parent / "questions.jsonl").write_text(json.dumps(german) + "\n")
    assert main(["run", str(bench)]) == 2
    assert '"tiny.en" does not know the language "de"; use a multi' in capsys.readouterr().err
    assert not (bench.parent / "runs").exists()


# A run that dies


@pytest.fixture
def running(bench: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, far from its end."""
    write(bench.parent, f'[[endpoint]]\nname = "m"\n{METRONOME}\n', "trials = 4\nconcurrency = 2")
    command = [sys.executable, "-m", "voxmeter", "run", str(bench), "--quiet"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def wait_for_trials(process: subprocess.Popen[str], parent: Path, count: int) -> Path:
    """Return the run folder once it has so many trials, watching the file grow."""
    while process.poll() is None:
        for trials in parent.glob("runs/*/trials.jsonl"):
            if trials.read_bytes().count(b"\n") >= count:
                return trials.parent
        os.sched_yield()
    raise AssertionError(process.communicate())


def all_finished_once(folder: Path) -> None:
    finished = Counter(row["key"] for row in rows(folder, "trials") if row["status"] == "ok")
    assert finished == {f"m/mine/q{item}/clean/{n}": 1 for item in range(4) for n in range(1, 5)}
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["cells"][0]["status"] == {"ok": 16}
    known = {row["key"] for row in rows(folder, "transcripts")}
    assert known == set(finished)
    recorded = list((folder / "events" / "m~mine~clean").iterdir())
    assert len(recorded) == len(rows(folder, "trials"))


def test_a_run_killed_at_any_moment_goes_on_with_nothing_lost_and_nothing_twice(
    running: subprocess.Popen[str], bench: Path
) -> None:
    folder = wait_for_trials(running, bench.parent, 3)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    before = (folder / "trials.jsonl").read_bytes()
    with (folder / "trials.jsonl").open("ab") as torn:
        torn.write(b'{"key": "m/mine/q0/clean/4", "stat')
    assert main(["run", "--resume", str(folder), "--quiet"]) == 0
    assert (folder / "trials.jsonl").read_bytes().startswith(before)
    all_finished_once(folder)


def test_an_interrupted_run_is_130_says_how_to_go_on_and_does(
    running: subprocess.Popen[str], bench: Path
) -> None:
    folder = wait_for_trials(running, bench.parent, 2)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate()
    assert running.returncode == 130
    assert error == f"voxmeter: go on with: voxmeter run --resume {folder}\n"
    assert main(["run", "--resume", str(folder), "--quiet"]) == 0
    all_finished_once(folder)


def test_a_run_in_use_is_not_resumed(running: subprocess.Popen[str], bench: Path) -> None:
    folder = wait_for_trials(running, bench.parent, 1)
    assert main(["run", "--resume", str(folder), "--quiet"]) == 2


def test_two_shards_ask_every_item_once(bench: Path) -> None:
    for part in ("1/2", "2/2"):
        assert main(["run", str(bench), "--quiet", "--shard", part, "--name", part[0]]) == 0
    asked = [
        row["item"]
        for folder in (bench.parent / "runs").iterdir()
        for row in (rows(folder, "trials") if (folder / "trials.jsonl").exists() else [])
    ]
    assert sorted(asked) == ["q0", "q1", "q2", "q3"]

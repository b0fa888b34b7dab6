"""A run over a Ray cluster is the run that it would be without one, whatever happens to workers."""

from __future__ import annotations

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
from merge_world import BENCH, files, made, rows, summary, write_bench
from needs import needs_extra

from voxmeter.client.cli import main

Json = dict[str, Any]
ROOT = Path(__file__).parent.parent
LIMIT_S = 240  # nothing here is timed, and the machine may be busy
PLANTED = "planted-key-5cWq81Zt"

CLEAN = ("--only", "condition=clean", "--limit", "6")
NODES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback alone
    "PYTHONPATH": str(ROOT / "src"),
    "MY_KEY": PLANTED,
}

# In one of the processes that call it, it dies with its worker, or waits for the end.
FUNCTION = """
import itertools, os, pathlib, signal, threading

HERE = pathlib.Path(__file__).parent
calls = itertools.count(1)


def once(name):
    try:
        (HERE / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def answer(question, rate):
    if next(calls) > 3:
        if HERE.joinpath("kill").exists() and once("killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if HERE.joinpath("block").exists() and once("blocked"):
            HERE.joinpath("block").open("w").close()  # somebody reads it once we are here
            threading.Event().wait()
    return "The answer is B."
"""
PYTHON = """
[[endpoint]]
name = "p"
kind = "python"
[endpoint.options]
callable = "function.py:answer"
output_modalities = "text"
waveform = "numpy"
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **NODES, **more}


def voxmeter(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voxmeter", *map(str, words)]
    return subprocess.run(
        command,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def ran(bench: Path, name: str, address: str, *options: str) -> Path:
    out = bench.parent / "runs" / name
    done = voxmeter("run", bench, "--quiet", "--out", out, "--ray", address, *options)
    assert done.returncode == 0, done.stderr
    (folder,) = out.iterdir()
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of two nodes with two processors each, and where Ray writes."""
    needs_extra("ray", "ray")
    short = Path(f"/tmp/vmt-{os.getpid()}")  # noqa: S108 - names of sockets have a limit
    short.mkdir(mode=0o700)
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ray_nodes.py"))],
        env=environment(RAY_TMPDIR=str(short)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("ready "), line
        yield line.split()[1], short
    finally:
        process.stdin.close()
        process.wait(LIMIT_S)
        process.stdout.close()
        subprocess.run(["rm", "-rf", str(short)], check=True)


def python_bench(folder: Path) -> Path:
    """A bench whose function may kill its worker, beside one that is read from a file."""
    bench = write_bench(folder)
    (folder / "function.py").write_text(FUNCTION)
    text = BENCH.replace('[[endpoint]]\nname = "b"', f'{PYTHON}[[endpoint]]\nname = "b"')
    bench.write_text(text)
    return bench


def answers(folder: Path) -> dict[str, tuple[str, str]]:
    """What was said in each trial, by key, of its newest attempt."""
    newest = {row["key"]: row for row in rows(folder, "trials")}
    return {key: (row["status"], row["reply_text"]) for key, row in newest.items()}


def accuracies(folder: Path) -> dict[tuple[str, str], Json]:
    return {
        (cell["endpoint"], cell["condition"]): cell["metrics"]["accuracy"]
        for cell in summary(folder)["cells"]
    }


# Without a cluster


def test_a_run_on_this_machine_alone_is_the_run_without_ray(tmp_path: Path) -> None:
    needs_extra("ray", "ray")
    bench = write_bench(tmp_path)
    whole = made(bench, "whole", *CLEAN)
    out = bench.parent / "runs" / "ray"
    done = voxmeter("run", bench, "--quiet", "--out", out, "--ray", "local", *CLEAN)
    assert (done.returncode, done.stderr) == (0, "")
    (folder,) = out.iterdir()
    assert done.stdout == f"{folder}\n"
    assert summary(folder) == summary(whole)
    assert files(folder) == files(whole)
    (worker,) = rows(folder, "workers")
    assert {row["worker"] for row in rows(folder, "trials")} == {worker["worker"]}
    for row in rows(folder, "trials"):
        assert row["audit"]["host"] == worker["host"]
        assert row["audit"]["load"] >= 0
    if len(os.sched_getaffinity(0)) > 1:
        assert worker["streaming_core"] is not None
        assert worker["streaming_core"] not in worker["other_cores"]


def test_a_run_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    needs_extra("ray", "ray")
    bench = python_bench(tmp_path)
    os.mkfifo(tmp_path / "block")
    out = tmp_path / "runs" / "cut"
    only = "endpoint=p,condition=clean"
    words = ["run", bench, "--quiet", "--only", only, "--out", out, "--ray", "local"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "voxmeter", *map(str, words)],
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    (tmp_path / "block").read_text()  # until a trial is under way
    assert list(temporary.glob("voxmeter-worker-*"))
    os.kill(process.pid, signal.SIGINT)
    told = process.communicate(timeout=LIMIT_S)
    (folder,) = out.iterdir()
    assert process.returncode == 130, told
    assert f"voxmeter run --resume {folder}" in told[1]
    assert "Traceback" not in told[1]
    left = list(temporary.glob("voxmeter-worker-*"))
    assert [path for path in left if path.is_dir() or path.stat().st_size] == []
    before = rows(folder, "trials")
    done = voxmeter("run", "--resume", folder, "--quiet", "--ray", "local")
    assert done.returncode == 0, done.stderr
    after = rows(folder, "trials")
    assert after[: len(before)] == before
    assert set(Counter(row["key"] for row in after).values()) == {1}
    assert len(after) == 28


# Two nodes


def test_the_trials_of_a_killed_worker_are_asked_again_and_counted(
    cluster: tuple[str, Path], tmp_path: Path
) -> None:
    bench = python_bench(tmp_path)
    only = ("--only", "endpoint=a,endpoint=p,condition=clean", "--limit", "6")
    whole = made(bench, "whole", *only)
    (tmp_path / "kill").touch()
    folder = ran(bench, "ray", cluster[0], *only)
    assert (tmp_path / "killed").exists()
    events = rows(folder, "workers")
    assert Counter(one["what"] for one in events) == {"started": 3, "lost": 1}
    (lost,) = (one for one in events if one["what"] == "lost")
    again = [row for row in rows(folder, "trials") if row.get("lost_attempts")]
    assert 1 <= len(again) == lost["trials_under_way"]
    for row in again:
        assert (row["attempt"], row["lost_attempts"], row["status"]) == (2, 1, "ok")
        assert row["worker"] != lost["worker"]
    assert len({one["worker"].split(":")[1] for one in events}) == 2  # both nodes
    asked = {row["worker"] for row in rows(folder, "trials")}
    assert len({worker.split(":")[1] for worker in asked}) == 2
    assert answers(folder) == answers(whole)
    assert set(Counter(row["key"] for row in rows(folder, "trials")).values()) == {1}
    assert accuracies(folder) == accuracies(whole)
    warnings = {one["code"]: one["text"] for one in summary(folder)["warnings"]}
    assert warnings["lost-workers"].startswith(f"{len(again)} trial")
    assert "was lost; what it had heard" in (folder / "report.md").read_text()


def test_replies_are_read_on_the_cluster_and_no_key_is_left_behind(
    cluster: tuple[str, Path], tmp_path: Path
) -> None:
    write_bench(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "voxmeter", "serve", "metronome", "--port", "0"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1]
        (tmp_path / "bench.toml").write_text(f"""
[run]
warmup = 1
concurrency = 2
send_lateness_limit_ms = 3600000
[transcribe]
model = "tiny.en"
[[endpoint]]
name = "clock"
kind = "openai-realtime"
url = "{url}?delay_ms=300"
api_key_env = "MY_KEY"
[[suite]]
kind = "jsonl"
name = "mine"
path = "items.jsonl"
limit = 4
""")
        try:
            out = tmp_path / "runs"
            done = voxmeter("run", tmp_path / "bench.toml", "--out", out, "--ray", cluster[0])
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    (folder,) = out.iterdir()
    trials = rows(folder, "trials")
    assert sum(not row["warmup"] for row in trials) == 4
    assert len({row["key"] for row in trials if row["warmup"]}) == 2  # each worker its own
    heard = rows(folder, "transcripts")
    assert {row["key"] for row in heard} == {row["key"] for row in trials if not row["warmup"]}
    assert PLANTED not in done.stdout + done.stderr
    for place in (folder, cluster[1]):
        seen = [path for path in place.rglob("*") if path.is_file()]
        assert seen
        assert [path for path in seen if PLANTED.encode() in path.read_bytes()] == []


def test_a_key_that_a_node_lacks_is_named(cluster: tuple[str, Path], tmp_path: Path) -> None:
    bench = write_bench(tmp_path)
    bench.write_text(
        '[[endpoint]]\nname = "far"\nkind = "openai-realtime"\nurl = "ws://127.0.0.1:9"\n'
        'api_key_env = "ONLY_HERE"\n[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n'
    )
    words = ("run", bench, "--quiet", "--out", tmp_path / "runs", "--ray", cluster[0])
    done = voxmeter(*words, ONLY_HERE=PLANTED)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"voxmeter: node {socket.gethostname()}: environment variable ONLY_HERE is not set; "
        "export it on this node before `ray start`"
    )


# What can be told at once


def test_an_address_where_nobody_answers_ends_with_one_line_and_no_run_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_extra("ray", "ray")
    bench = write_bench(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        words = ["run", str(bench), "--out", str(tmp_path / "runs"), "--ray"]
        assert main([*words, address]) == 2
        assert main([*words, f"ray://{address}"]) == 2
    assert main([*words, "over there"]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith(f"voxmeter: --ray {address}: nobody answers there: ")
    assert second.startswith(f"voxmeter: --ray ray://{address}: nobody answers there: ")
    assert "'over there' is no address" in third
    assert not (tmp_path / "runs").exists()


def test_without_ray_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    bench = write_bench(tmp_path)
    assert main(["run", str(bench), "--out", str(tmp_path / "runs"), "--ray", "local"]) == 2
    told = capsys.readouterr().err
    assert told == "voxmeter: --ray: needs ray; pip install 'voxmeter[ray]'\n"
    assert not (tmp_path / "runs").exists()


def test_a_part_of_a_run_is_not_shared_out_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = write_bench(tmp_path)
    assert main(["run", str(bench), "--shard", "1/2", "--ray", "local"]) == 2
    assert "--ray: comes with --shard" in capsys.readouterr().err

"""Keys never reach a file, a log, an error, a process list or a report: all that a run writes is
searched for keys that were planted, against servers that repeat them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from chat_server import Answer, Body, chat, refused
from leaky_world import KEYS, everything, leaks, leaky, spellings

import voxmeter
from voxmeter.client import clips
from voxmeter.client.audio import write_flac
from voxmeter.client.redaction import Redactor
from voxmeter.client.speakers import speaker
from voxmeter.suites import catalog

SOURCE = str(Path(voxmeter.__file__).parents[1])  # the working folder is another one
PROGRAM = """
import json, os, sys
key = os.environ["PLANTED_EXEC"]
print(json.dumps({"event": "ready"}), flush=True)
for line in sys.stdin:
    name = json.loads(line)["id"]
    print(f"Traceback: RuntimeError: key {key}", file=sys.stderr, flush=True)
    print(json.dumps({"id": name, "event": "text", "text": f"my key is {key}"}), flush=True)
    print(json.dumps({"id": name, "event": "error", "text": f"refused {key}"}), flush=True)
"""


@pytest.mark.parametrize("name", KEYS)
def test_every_spelling_of_a_key_is_taken_out(name: str) -> None:
    redactor = Redactor(KEYS.values())
    for way, spelled in spellings(KEYS[name]).items():
        assert leaks(spelled), way  # else this test could not fail
        assert not leaks(redactor.text(spelled)), way
        assert not leaks(redactor.text(json.dumps({"e": json.dumps([spelled])}))), way
        if not way.startswith("cut"):
            assert not leaks(redactor.text(f"a {spelled[:-3]}")), way
            assert not leaks(redactor.text(f"{spelled[3:]} b")), way


def bench(folder: Path, ports: str, judge_url: str) -> Path:
    """Write a bench whose endpoints are shown every planted key, in every way there is."""
    ws, http, broker = ports.split()
    demo = catalog.load("demo", "demo", {}, folder).items[0]
    made = clips.render(demo, speaker)
    end, rate = made.bounds.end_sample, made.pcm.rate
    write_flac(folder / "q.flac", made.pcm.samples[end - rate * 3 // 10 : end], rate)
    line = {"id": "q", "audio": "q.flac", "kind": "open", "question": "What is it?"}
    line |= {"rubric": "adu", "reference": "a ball"}
    (folder / "questions.jsonl").write_text(json.dumps(line) + "\n")
    (folder / "program.py").write_text(PROGRAM)
    shown = 'headers = { X-Key = "{env:PLANTED_HEADER}" }\napi_key_env = "PLANTED_KEY"\n'
    query = "key={env:PLANTED_QUERY}"
    python = json.dumps([sys.executable, "-I", "-S", "program.py"])
    path = folder / "bench.toml"
    path.write_text(f"""
[run]
out = "runs"
warmup = 0
retries = 0
[[endpoint]]
name = "refuses"
url = "ws://127.0.0.1:{ws}/refuse?{query}"
{shown}
[[endpoint]]
name = "repeats"
url = "ws://127.0.0.1:{ws}/session?{query}"
{shown}
[[endpoint]]
name = "nobody"
url = "ws://127.0.0.1:9/?{query}"
{shown}
[[endpoint]]
name = "page"
kind = "http"
url = "http://127.0.0.1:{http}/page?{query}"
{shown}
[[endpoint]]
name = "redirect"
kind = "http"
url = "http://127.0.0.1:{http}/redirect?{query}"
{shown}
[[endpoint]]
name = "written"
kind = "http"
url = "http://127.0.0.1:{http}/json?{query}"
{shown}
reply_channel = "text"
options = {{ reply = "json", reply_text = "text" }}
[[endpoint]]
name = "program"
kind = "exec"
command = {python}
headers = {{ X = "{{env:PLANTED_EXEC}}" }}
[[endpoint]]
name = "metronome"
builtin = "metronome?delay_ms=250&pacing=burst"
[[suite]]
kind = "jsonl"
name = "mine"
path = "questions.jsonl"
[[judge]]
name = "leaky"
model = "m"
base_url = "{judge_url}"
api_key_env = "PLANTED_JUDGE"
retries = 0
cache = false
[publish.mqtt]
host = "127.0.0.1"
port = {broker}
username_env = "PLANTED_BROKER"
password_env = "PLANTED_BROKER"
""")
    return path


def judged(body: Body) -> Answer:
    """Repeat the keys, one time in an error and one time in the judge's own words."""
    judged.times = getattr(judged, "times", 0) + 1  # type: ignore[attr-defined]
    if judged.times % 2:  # type: ignore[attr-defined]
        return Answer(f"7\n{everything()}")
    return refused(400, everything(), KEYS["PLANTED_JUDGE"])


class Watch:
    """Reads the arguments of every process below this one while a command runs."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes().decode("utf-8", "replace"))
                except OSError:
                    continue  # it has ended


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    more = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "300", "PYTHONPATH": SOURCE}
    return {**os.environ, **KEYS, **more}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "work"
    folder.mkdir()
    with leaky() as ports, chat(judged) as service:
        bench(folder, ports, service.url)
        yield folder


def command(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run the program; return its status and all that it printed."""
    words = [sys.executable, "-m", "voxmeter", *arguments]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_that_a_run_writes_prints_or_starts_shows_a_key(
    world: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    printed: dict[str, str] = {}
    with Watch() as watch:
        status, printed["run"] = command(world, environment, "run", "bench.toml")
        assert status == 3, printed["run"]
        (run,) = (world / "runs").iterdir()
        before = world / "before"
        shutil.copytree(run, before)
        (tmp_path / "out").mkdir()
        for words in (
            ("score", str(run)),
            ("report", str(run), "--format", "html,md,json,csv", "-o", str(tmp_path / "out")),
            ("compare", str(before), str(run)),
            ("check", "bench.toml"),
        ):
            _, printed[" ".join(words[:1])] = command(world, environment, *words)
        files = ("--json", "c.json", "--junit", "c.xml", "--markdown", "c.md")
        command(world, environment, "compare", str(before), str(run), *files)
    for name, text in printed.items():
        assert not leaks(text), (name, text)
    assert any("voxmeter.client" in words for words in watch.seen)  # it saw our own processes
    assert not [words for words in watch.seen if leaks(words)]
    written = {
        path: path.read_bytes().decode("utf-8", "replace")
        for folder in (run, tmp_path / "out", tmp_path / "cache")
        for path in folder.rglob("*")
        if path.is_file()
    }
    written |= {path: path.read_text() for path in world.glob("c.*")}
    names = {path.name for path in written}
    wanted = {"run.json", "trials.jsonl", "summary.json", "report.md", "report.html", "report.csv"}
    assert wanted | {"scores.jsonl", "publish.json", "c.xml", "c.json", "c.md"} <= names
    assert len(list((run / "events").rglob("*.jsonl*"))) == 8  # the log of every attempt
    assert not {path.name: leaks(text) for path, text in written.items() if leaks(text)}
    rows = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} >= {"ok", "refused", "disconnected"}
    repeated = [row for row in rows if "[redacted]" in json.dumps(row)]
    assert {row["endpoint"] for row in repeated} >= {"refuses", "repeats", "page", "written"}


def test_a_traceback_shows_no_key(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import voxmeter.client.report as report\n"
        "def fail(*words):\n"
        "    import os\n"
        "    raise ValueError('no such place: ' + os.environ['PLANTED_KEY'])\n"
        "report.write_reports = fail\n"
    )
    (tmp_path / "work").mkdir()
    with leaky() as ports, chat(judged) as service:
        bench(tmp_path / "work", ports, service.url)
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), SOURCE])
        only = ("run", "bench.toml", "--only", "endpoint=metronome")
        status, printed = command(tmp_path / "work", environment, *only)
    assert status == 70
    assert "ValueError: no such place: [redacted]" in printed
    assert not leaks(printed)

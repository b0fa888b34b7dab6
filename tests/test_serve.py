"""`voxmeter serve` as a user starts it: a process that says where it listens and ends when told."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from voxmeter.client.audio import to_pcm16
from voxmeter.client.cli import main
from voxmeter.client.servers.voice import babble

RATE = 24_000


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start `voxmeter serve`; yield the process and its URL."""
    started = subprocess.Popen(
        [sys.executable, "-m", "voxmeter", "serve", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with started:
        try:
            assert started.stdout is not None
            word, _, url = started.stdout.readline().strip().partition(" ")
            assert word == "ready"
            yield started, url
        finally:
            started.kill()


def ask(connection: ClientConnection) -> Sequence[str]:
    """Speak one question; return the names of what came back, up to the end of the reply."""
    quiet = np.zeros(RATE // 2, np.float32)
    pcm = to_pcm16(np.concatenate([quiet, babble(RATE, 0.5), quiet]))
    for start in range(0, len(pcm), 960):
        audio = base64.b64encode(pcm[start : start + 960]).decode()
        connection.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
    names: list[str] = []
    while not names or names[-1] not in {"response.done", "error"}:
        names.append(json.loads(connection.recv())["type"])
    return names


def test_a_served_metronome_speaks_openai_realtime_and_logs_the_truth(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    server = ("metronome?pacing=burst", "?delay_ms=250", "--truth", str(truth))
    with process(*server, "--until-stdin-closes") as (started, url):
        assert url.startswith("ws://127.0.0.1:")
        with connect(f"{url}?model=any&tag=t1", compression=None) as connection:
            names = ask(connection)
        assert started.stdin is not None
        started.stdin.close()
        assert started.wait() == 0
        assert started.stdout is not None
        assert started.stderr is not None
        assert (started.stdout.read(), started.stderr.read()) == ("", "")
    assert names[0] == "session.created"
    assert names.count("response.output_audio.delta") == 80
    (line,) = [json.loads(one) for one in truth.read_text().splitlines()]
    assert line["tag"] == "t1"
    assert line["first_packet_ns"] - line["user_end_ns"] >= 250_000_000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_while_a_session_is_open(number: signal.Signals) -> None:
    with process("echo") as (started, url), connect(url, compression=None) as connection:
        assert "response.done" in ask(connection)
        started.send_signal(number)
        assert started.wait() == 130
        assert started.stderr is not None
        assert started.stderr.read() == ""


def test_a_token_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    with process("echo", "--host", "0.0.0.0", "--token-env", "A_TOKEN") as (_, told):  # noqa: S104
        url = told.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        with pytest.raises(InvalidStatus):
            connect(url, compression=None)
        headers = {"Authorization": "Bearer secret"}
        with connect(url, compression=None, additional_headers=headers) as connection:
            assert "response.done" in ask(connection)


@pytest.mark.parametrize(
    "words",
    [
        ["metronome", "?delay=300"],
        ["metronome", "--port", "0", "?delay=300"],
        ["--port", "0", "?delay=300", "metronome"],
        ["--port", "0", "metronome", "--host", "127.0.0.1", "?delay=300"],
        ["metronome?seed=3", "--port", "0", "?delay=300"],
    ],
)
def test_a_query_may_stand_anywhere(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *words]) == 2  # it is read: a key that there is would be served
    assert "query key 'delay' is unknown; did you mean \"delay_ms\"?" in capsys.readouterr().err


MISTAKES: list[tuple[list[str], str]] = [
    (["metronom"], '"metronom" is not a built-in server; did you mean "metronome"?'),
    (["metronome", "?delay=1"], "query key 'delay' is unknown; did you mean \"delay_ms\"?"),
    (["metronome?delay_ms=1&delay_ms=2"], 'option "delay_ms" is given twice'),
    (["metronome", "--protocol", "openai-realtim"], 'did you mean "openai-realtime"?'),
    (["metronome", "--host", "0.0.0.0"], "there is no token; set --token-env"),  # noqa: S104
    (["metronome", "--token-env", "NO_SUCH_TOKEN"], "--token-env NO_SUCH_TOKEN: is not set"),
    (["metronome", "--port", "70000"], "--port 70000: is not a port"),
    (["metronome", "--port", "x"], "invalid int value: 'x'"),
    (["metronome", "--truth", "/no/such/folder/t.jsonl"], "check the path"),
    (["metronome", "--host", "192.0.2.7", "--token-env", "HOME"], "cannot be opened"),
    (["metronome", "--llm-model", "m"], "--llm-model: metronome takes no such option"),
    (["metronome?text=hi", "--voice", "nobody"], "voice 'nobody': no such voice"),
    (["echo", "--voice", "hibari"], "--voice: echo takes no such option"),
    (["metronome", "--port", "0", "delay_ms=300"], "unknown argument delay_ms=300; see"),
    (["metronome", "?delay_ms=300", "?seed=1"], "unknown argument ?seed=1; see"),
    (["metronome", "--port", "0", "?a=1", "?b=2"], "unknown argument ?a=1; see"),
]


@pytest.mark.parametrize(("arguments", "line"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err
    assert said.err.count("\n") == 1

"""A refusal that may pass is asked again after the wait that was named; every attempt is a line."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from fakes import FrozenClock, Play, ToyCodec, ToyTransport
from hypothesis import given
from hypothesis import strategies as st
from test_streaming import Show, clip_of, plan
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from voxmeter.client.audio import write_flac
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.cli import main
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.http_words import wait_s
from voxmeter.client.plan import Trial
from voxmeter.client.progress import Loud, Quiet
from voxmeter.client.redaction import Redactor
from voxmeter.client.retries import Retries
from voxmeter.client.runfolder import RunFolder
from voxmeter.client.session import converse
from voxmeter.client.speaking import Ask, Patience
from voxmeter.client.streaming import Streaming
from voxmeter.client.target import Target
from voxmeter.client.transport import TransportSettings
from voxmeter.client.websocket import WebSocketTransport
from voxmeter.endpoints.codec import Address, Codec, Ended, Message, Step, Text
from voxmeter.endpoints.errors import ConnectError
from voxmeter.endpoints.events import Fault, RateLimit
from voxmeter.endpoints.http_faults import refusal
from voxmeter.endpoints.openai_faults import close_fault
from voxmeter.endpoints.waits import named_wait_s
from voxmeter.endpoints.wav import wav_file

Row = dict[str, Any]
SOUND = "sound " + "004000c0" * 2400
"""0.6 s of noise."""
PATIENCE = Patience(first_reply_timeout_s=5, reply_limit_s=5, drain_ms=0)


# The wait that is named


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached on RPM: Limit 3. Please try again in 20s. Visit", 20),
        ("Please try again in 1.2s.", 1.2),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0s.", 360),
        ("try again in 1h12m30s", 4350),
        ("Please retry after 20 seconds.", 20),
        ("Please retry in 37.53s.", 37.53),
        ('"retryDelay": "37s"', 37),
        ("Try again after 5 minutes", 300),
        ("try again later", None),
        ("try again in 3 sheep", None),
        ("the reply took 20s; again", None),
        ("", None),
    ],
)
def test_a_wait_is_read_out_of_a_vendors_words(words: str, seconds: float | None) -> None:
    assert named_wait_s(words) == (None if seconds is None else pytest.approx(seconds))


@given(st.text())
def test_any_words_name_a_wait_or_none(words: str) -> None:
    for text in (words, f"again in {words}", f"retry after 5{words}"):
        found = named_wait_s(text)
        assert found is None or found >= 0


NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "20", "retry-after-ms": "1250"}, 1.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3),
        ({"retry-after": "Mon, 04 May 2026 12:00:37 GMT"}, 37),
        ({"retry-after": "Mon, 04 May 2026 11:00:00 GMT"}, 0),
        (  # an answer that is dated by its sender's clock, which is an hour behind ours
            {
                "retry-after": "Mon, 04 May 2026 11:00:37 GMT",
                "date": "Mon, 04 May 2026 11:00:00 GMT",
            },
            37,
        ),
        ({"retry-after": "Mon, 04 May 2026 12:00:37 GMT", "date": "today"}, 37),
        ({"retry-after": f"Mon, 04 May {'9' * 20} 12:00:37 GMT"}, None),
        ({"retry-after": f"Mon, 04 May 2026 12:00:37 +{'9' * 14}"}, None),
        ({"retry-after": "Mon, 04 May 2026 12:00:37 GMT", "date": f"Mon, {'9' * 20} May"}, 37),
        *(
            ({"retry-after": told, "retry-after-ms": told}, None)
            for told in ("-5", "NaN", "inf", "1e400", "0x10", "٣", "")
        ),
        ({"retry-after": "Mon, 04 May 2026 12:00:37 -0000"}, None),  # of no zone
        ({"retry-after": "in a while"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "1" * 400}, None),
        ({"retry-after": "99999999999"}, 999_999_999),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 999_999_999),
        ({"retry-after": "Mon, 99 May 2026 12:00:37 GMT"}, None),
    ],
)
def test_a_wait_is_read_out_of_an_answers_headers(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert wait_s(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "reason", "kind", "retryable", "seconds"),
    [
        (429, "rate_limit_exceeded: slow down; retry after 7", "busy", True, 7.0),
        (429, "rate_limit_exceeded: Please try again in 1.2s.", "busy", True, 1.2),
        (429, "insufficient_quota: check your billing", "quota", False, None),
        (503, "Full House; retry after 0.5", "busy", True, 0.5),
        (401, "invalid_api_key: no such key", "auth", False, None),
        (500, "", "server", True, None),
        (404, "model_not_found: no model x", "request", False, None),
    ],
)
def test_a_refused_request_says_whether_and_when_to_ask_again(
    status: int, reason: str, kind: str, retryable: bool, seconds: float | None
) -> None:
    fault = refusal(Ended(status, reason))
    assert (fault.kind, fault.retryable, fault.retry_after_s) == (kind, retryable, seconds)


def test_a_close_may_name_a_wait() -> None:
    fault = close_fault(Ended(1013, "Try again in 8s"))
    assert fault is not None
    assert (fault.retryable, fault.retry_after_s) == (True, 8.0)
    limit = close_fault(Ended(4003, "rate_limit_exceeded: Try again in 3s"))
    assert limit is not None
    assert (limit.retryable, limit.retry_after_s) == (True, 3.0)


# When an attempt is made again


def refused(attempt: int = 1, named: float | None = None, **fields: Any) -> Row:
    row = {"key": "m/s/q/clean/1", "attempt": attempt, "status": "refused", "retryable": True}
    return row | {"retry_after_s": named} | fields


def test_waits_that_nobody_named_double_up_to_a_limit() -> None:
    retries = Retries(most=20)
    waits = [retries.wait_s(refused(made), made) for made in range(1, 9)]
    for made, wait in enumerate(waits, start=1):
        assert wait is not None
        most = min(2.0 ** (made - 1), 30.0)
        assert most / 2 <= wait <= most


def test_waits_are_drawn_from_the_seed_and_differ_from_trial_to_trial() -> None:
    def drawn(seed: int, key: str) -> float | None:
        return Retries(seed=seed).wait_s(refused(key=key), 1)

    assert drawn(1, "a") == drawn(1, "a")
    assert len({drawn(1, "a"), drawn(2, "a"), drawn(1, "b")}) == 3


def test_a_named_wait_is_never_cut_short_and_one_that_is_too_long_is_left_to_resume() -> None:
    for named in (0.0, 0.02, 7.0, 60.0):
        wait = Retries().wait_s(refused(named=named), 1)
        assert wait is not None
        assert named <= wait <= named * 1.1
    assert Retries().wait_s(refused(named=60.1), 1) is None
    assert Retries(wait_limit_s=400).wait_s(refused(named=360), 1) is not None
    assert Retries().wait_s(refused(named=-5), 1) == 0


@pytest.mark.parametrize(
    ("row", "made"),
    [
        (refused(retryable=False), 1),
        (refused(status="disconnected"), 1),
        (refused(status="ok"), 1),
        (refused(), 3),
        ({"status": "bad_clip", "key": "k", "attempt": 1}, 1),
    ],
)
def test_what_is_not_asked_again(row: Row, made: int) -> None:
    assert Retries(most=2).wait_s(row, made) is None
    assert Retries(most=0).wait_s(refused(), 1) is None


# What a session finds out


async def asked(
    play: Play, refuse: ConnectError | None = None, codec: Codec | None = None
) -> Capture:
    transport = ToyTransport(play, refuse)
    ask = Ask(lambda rate: Utterance(bytes(640), rate, 0, 160), patience=PATIENCE)
    return await converse(codec or ToyCodec(), transport, Address("toy://peer"), ask)


async def nothing(peer: ToyTransport) -> None:
    return


async def test_a_refused_connection_carries_the_peers_wait() -> None:
    error = ConnectError("rejected", "HTTP 429", 429, retryable=True, retry_after_s=7)
    capture = await asked(nothing, error)
    assert (capture.outcome, capture.retryable, capture.retry_after_s) == ("refused", True, 7)
    capture = await asked(nothing, ConnectError("rejected", "HTTP 401", 401))
    assert (capture.outcome, capture.retryable) == ("refused", False)


@pytest.mark.parametrize(
    ("code", "reason", "retryable", "seconds"),
    [(1013, "", True, None), (1013, "try again in 4s", True, 4.0), (1008, "no", False, None)],
)
async def test_a_close_before_anything_was_heard_says_whether_to_ask_again(
    code: int, reason: str, retryable: bool, seconds: float | None
) -> None:
    async def play(peer: ToyTransport) -> None:
        peer.hang_up(code, reason)

    capture = await asked(play)
    assert capture.outcome == "refused"
    assert (capture.retryable, capture.retry_after_s) == (retryable, seconds)


@dataclass
class Limited(ToyCodec):
    """Says of its limits what the test wants, then refuses."""

    events: Sequence[RateLimit | Fault] = ()

    def receive(self, message: Message) -> Step:
        return Step(self.events) if message == Text("limits") else super().receive(message)


@pytest.mark.parametrize(
    ("limits", "fault", "seconds"),
    [
        (
            [RateLimit("requests", 0, 9), RateLimit("tokens", 0, 4), RateLimit("x", 5, 99)],
            Fault("busy", retryable=True, message="slow down"),
            9.0,
        ),
        (
            [RateLimit("requests", 0, 9)],
            Fault("busy", retryable=True, message="slow down", retry_after_s=2),
            2.0,
        ),
        (
            [RateLimit("requests", 0, None), RateLimit("tokens", None, 3)],
            Fault("busy", retryable=True, message="slow down"),
            None,
        ),
        ([RateLimit("requests", 0, 9)], Fault("server", retryable=True, message="oh"), None),
    ],
)
async def test_a_limit_that_is_used_up_names_the_wait_where_its_refusal_does_not(
    limits: list[RateLimit], fault: Fault, seconds: float | None
) -> None:
    async def play(peer: ToyTransport) -> None:
        peer.say("ready", "limits")

    capture = await asked(play, codec=Limited(events=[*limits, fault]))
    assert (capture.outcome, capture.retryable) == ("refused", True)
    assert capture.retry_after_s == seconds


@pytest.mark.parametrize(
    ("status", "headers", "body", "words", "retryable", "seconds"),
    [
        (
            429,
            {"Retry-After": "7"},
            "slow",
            "HTTP 429 on the upgrade: slow; retry after 7",
            True,
            7,
        ),
        (503, {"Retry-After": "soon"}, "full", "HTTP 503 on the upgrade: full", True, None),
        (
            429,
            {},
            json.dumps({"error": {"code": "insufficient_quota", "message": "Pay."}}),
            "HTTP 429 on the upgrade: insufficient_quota: Pay.",
            False,
            None,
        ),
        (401, {}, "", "HTTP 401 on the upgrade", False, None),
    ],
)
async def test_a_refused_upgrade_says_whether_and_when_to_ask_again(
    status: int,
    headers: dict[str, str],
    body: str,
    words: str,
    retryable: bool,
    seconds: float | None,
) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        made = Headers({"Connection": "close", "Content-Length": str(len(body)), **headers})
        return Response(status, HTTPStatus(status).phrase, made, body.encode())

    async def handler(peer: ServerConnection) -> None:
        raise AssertionError(peer)

    async with serve(handler, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        transport = WebSocketTransport(TransportSettings(use_proxy=False))
        with pytest.raises(ConnectError) as caught:
            await transport.connect(Address(f"ws://127.0.0.1:{port}"))
    assert str(caught.value) == words
    assert (caught.value.retryable, caught.value.retry_after_s) == (retryable, seconds)


# In a run


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, "test", {}) as folder:
        yield folder


class Waiting(FrozenClock):
    """Notes every wait; nobody waits."""

    def __init__(self, on_wait: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.waits_s: list[float] = []
        self._on_wait = on_wait

    async def sleep_until(self, t_ns: int) -> None:
        self.waits_s.append((t_ns - self.t_ns) / 1e9)
        self._on_wait()
        await super().sleep_until(t_ns)


class Busy(Target):
    """Its sessions are refused, each for the reason that is next; then they answer."""

    def codec(self, tag: str = "", asked: object = None, lane: int = 0) -> Codec:
        return ToyCodec()

    def transport(self) -> ToyTransport:
        async def play(peer: ToyTransport) -> None:
            peer.say("ready")
            await peer.until(1, "audio")
            peer.say("started r", SOUND, "text Yes.", "end")

        made = ToyTransport(play, REFUSALS.pop(0) if REFUSALS else None)
        made.now = SystemClock().now
        return made

    def address(self, codec: Codec, tag: str) -> Address:
        return Address(f"toy://peer?tag={tag}")


REFUSALS: list[ConnectError | None] = []


@dataclass
class Shown(Show):
    """Notes retries as well."""

    again_in: list[tuple[str, int, float]] = field(default_factory=list)

    def again(self, trial: Trial, row: Any, wait_s: float) -> None:
        self.again_in.append((trial.item.item, row["attempt"], wait_s))


def busy(named: float | None = None, words: str = "HTTP 429") -> ConnectError:
    return ConnectError("rejected", words, 429, retryable=True, retry_after_s=named)


def run(
    folder: RunFolder,
    refusals: Sequence[ConnectError | None],
    clock: Clock,
    *names: str,
    show: Show | None = None,
    **fields: Any,
) -> list[Row]:
    REFUSALS[:] = refusals

    def start(name: str, stack: ExitStack) -> tuple[Target, int]:
        return Busy(name, "openai-realtime", "toy://peer", patience=PATIENCE), 1

    known: dict[str, Any] = {"clip_of": clip_of, "start": start, "redactor": Redactor()}
    known |= {"show": show or Shown(), "clock": clock}
    Streaming(plan=plan(*(names or ("q0",))), folder=folder, **(known | fields)).run()
    return list(folder.rows("trials"))


def test_every_attempt_is_a_line_and_the_last_one_counts(folder: RunFolder) -> None:
    clock, show = Waiting(), Shown()
    rows = run(folder, [busy(7), busy()], clock, show=show)
    assert [(row["attempt"], row["status"]) for row in rows] == [
        (1, "refused"),
        (2, "refused"),
        (3, "ok"),
    ]
    assert [row["retry_after_s"] for row in rows] == [7.0, None, None]
    assert [row["retryable"] for row in rows] == [True, True, False]
    assert {row["key"] for row in rows} == {"m/mine/q0/clean/1"}
    assert rows[0]["fault"] == "HTTP 429"
    (newest,) = folder.newest_trials()
    assert (newest["attempt"], newest["status"]) == (3, "ok")
    assert all(folder.attempt_paths(row).events.is_file() for row in rows)
    first, second = clock.waits_s
    assert 7 <= first <= 7.7
    assert 1 <= second <= 2
    assert [row["waited_s"] for row in rows] == [0.0, round(first, 3), round(second, 3)]
    assert [(item, attempt) for item, attempt, _ in show.again_in] == [("q0", 1), ("q0", 2)]
    assert show.told == [("m", 1), ("m/mine/q0/clean/1", "ok")]


def test_no_wait_is_in_a_latency(folder: RunFolder) -> None:
    # The waits would be 50 s; the reply comes at once, and each attempt has a t0 of its own.
    rows = run(folder, [busy(50), busy(50)], Waiting())
    assert rows[0]["t0_ns"] is None
    assert set(rows[0]["latency"].values()) == {None}
    assert 0 <= rows[2]["latency"]["first_audible_ms"] < 5000
    assert rows[2]["connect_ms"] < 5000


def test_after_so_many_attempts_the_refusal_stands_and_the_next_trial_is_asked(
    folder: RunFolder,
) -> None:
    clock = Waiting()
    rows = run(folder, [busy(1)] * 3, clock, "q0", "q1")
    assert [(row["item"], row["attempt"], row["status"]) for row in rows] == [
        ("q0", 1, "refused"),
        ("q0", 2, "refused"),
        ("q0", 3, "refused"),
        ("q1", 1, "ok"),
    ]
    assert len(clock.waits_s) == 3  # the wait that the last refusal named is kept by the next trial
    assert rows[3]["waited_s"] == 1


@pytest.mark.parametrize(
    ("refusal", "retries"),
    [
        (ConnectError("rejected", "HTTP 401: no such key", 401), Retries()),
        (busy(61), Retries()),
        (busy(1), Retries(most=0)),
        (ConnectError("refused", "nobody listens"), Retries()),
    ],
)
def test_a_refusal_that_stays_is_one_line_and_no_wait(
    refusal: ConnectError, retries: Retries, folder: RunFolder
) -> None:
    clock = Waiting()
    (row,) = run(folder, [refusal], clock, retries=retries)
    assert row["status"] in {"refused", "disconnected"}
    assert clock.waits_s == []


def test_resume_goes_on_counting_attempts(folder: RunFolder) -> None:
    run(folder, [busy(1)] * 3, Waiting())
    rows = run(folder, [busy(1)], Waiting())
    assert [row["attempt"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["status"] for row in rows][3:] == ["refused", "ok"]
    assert run(folder, [], Waiting()) == rows


def test_an_interrupt_during_a_wait_ends_the_run_at_once(folder: RunFolder) -> None:
    clock = Waiting(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run(folder, [busy(50), busy(50)], clock, "q0", "q1")
    assert len(clock.waits_s) == 1
    (row,) = folder.rows("trials")
    assert (row["item"], row["attempt"], row["status"]) == ("q0", 1, "refused")


def test_a_vendors_words_are_kept_without_our_key(folder: RunFolder) -> None:
    words = "auth: invalid_api_key: no such key sk-very-secret-1"
    refusal = ConnectError("rejected", words, 401)
    (row,) = run(folder, [refusal], Waiting(), redactor=Redactor(["sk-very-secret-1"]))
    assert row["fault"] == "auth: invalid_api_key: no such key [redacted]"


def test_a_bad_clip_has_the_same_fields(folder: RunFolder) -> None:
    row, bad = run(folder, [], Waiting(), "q0", "bad1")
    assert row.keys() == bad.keys()


def test_who_watches_a_run_is_told_why_nothing_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    trial = next(iter(plan("q0")))
    row = {"status": "refused", "fault": "busy: slow\x1b[2J down"}
    Loud(1).again(trial, row, 6.94)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "  q0",
        r"    refused  busy: slow\x1b[2J down",
        "    asked again in 6.9 s",
    ]
    Quiet().again(trial, row, 1.0)
    assert capsys.readouterr().out == ""


# Through a whole run, with a server that is busy at first


class BusyServer(BaseHTTPRequestHandler):
    """Refuses its first request with a wait, and with the key that it was shown."""

    refusals: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if self.refusals:
            shown = self.headers["authorization"]
            told = {"error": {"code": "rate_limit_exceeded", "message": f"{shown} is too fast"}}
            self._say(self.refusals.pop(), "application/json", json.dumps(told).encode())
        else:
            self._say(200, "audio/wav", wav_file(b"\x00\x40\x00\xc0" * 4800, 24_000))

    def _say(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        if status == 429:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: object) -> None:
        """Say nothing."""


def test_a_run_asks_a_busy_server_again_and_shows_nobody_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("BUSY_KEY", "sk-very-secret-2")
    monkeypatch.chdir(tmp_path)
    tone = 0.3 * np.sin(2 * np.pi * 200 * np.arange(8_000) / 16_000)
    write_flac(tmp_path / "q.flac", tone.astype(np.float32), 16_000)
    (tmp_path / "items.jsonl").write_text('{"id": "q", "audio": "q.flac", "kind": "open"}')
    BusyServer.refusals[:] = [429]
    with ThreadingHTTPServer(("127.0.0.1", 0), BusyServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        (tmp_path / "bench.toml").write_text(
            f'[run]\nwarmup = 0\n[[endpoint]]\nname = "a"\nkind = "http"\nurl = "{url}"\n'
            'api_key_env = "BUSY_KEY"\n[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n'
        )
        assert main(["run"]) == 0
        server.shutdown()
    (made,) = (tmp_path / "runs").iterdir()
    rows = [json.loads(line) for line in (made / "trials.jsonl").read_text().splitlines()]
    assert [(row["attempt"], row["status"], row["retry_after_s"]) for row in rows] == [
        (1, "refused", 0.0),
        (2, "ok", None),
    ]
    assert rows[0]["fault"] == (
        "busy: HTTP 429: rate_limit_exceeded: Bearer [redacted] is too fast; retry after 0"
    )
    shown = capsys.readouterr()
    assert "asked again in 0.0 s" in shown.out
    files = [path for path in made.rglob("*") if path.is_file()]
    assert len(files) > 5
    for text in [shown.out, shown.err, *(path.read_text(errors="replace") for path in files)]:
        assert "very-secret-2" not in text

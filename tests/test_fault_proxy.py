"""What networks do to a connection, each with its status; nothing that came before is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import Fault, FaultProxy, proxying
from merge_world import rows
from test_misbehaving_servers import asked
from test_websocket import certificate

from voxmeter.client.audio import write_flac
from voxmeter.client.builtin import serving
from voxmeter.client.cli import main
from voxmeter.client.servers.voice import babble
from voxmeter.client.speaking import Patience

__all__ = ["certificate"]  # a fixture
Row = dict[str, Any]
PATIENT = Patience(first_reply_timeout_s=30, reply_limit_s=60, drain_ms=20)
BRIEF = Patience(first_reply_timeout_s=1.5, reply_limit_s=2.5, drain_ms=20)
QUICK = "delay_ms=60&endpoint_ms=50&pacing=burst&chunk_ms=100&tag="
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Metronome:
    port: int
    truth: Path

    def line(self, tag: str) -> Row:
        """Return what the server says of one session."""
        lines = [json.loads(line) for line in self.truth.read_text().splitlines()]
        (found,) = [line for line in lines if line["tag"] == tag]
        return dict(found)


@pytest.fixture(scope="module")
def metronome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metronome]:
    truth = tmp_path_factory.mktemp("truth") / "truth.jsonl"
    with serving("metronome", options=("--truth", str(truth))) as url:
        yield Metronome(int(url.rpartition(":")[2].partition("/")[0]), truth)


async def through(
    fault: Fault, metronome: Metronome, folder: Path, patience: Patience = PATIENT
) -> tuple[Row, Row | None]:
    """Ask one question through the proxy; return its line and the server's own, if it has one."""
    proxy = FaultProxy(metronome.port, lambda _: fault, seed=3)
    with proxying(proxy) as port:
        row = await asked(f"ws://127.0.0.1:{port}/v1/realtime?{QUICK}", folder, patience)
    (passed,) = proxy.passed
    assert fault == Fault() or passed.met, "the fault was never met"
    told = passed.tag and passed.tag in metronome.truth.read_text()
    return row, metronome.line(passed.tag) if told else None


def reply_ms(line: Row) -> float:
    return float(1000 * line["reply_samples"] / line["reply_rate"])


WHOLE = {
    "nothing": Fault(),
    "latency": Fault(latency_ms=120),
    "jitter": Fault(jitter_ms=120),
    "a narrow line": Fault(bytes_per_s=200_000),
    "another order": Fault(reorder=True),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_a_bad_line_delays_a_reply_and_loses_nothing_of_it(
    name: str, metronome: Metronome, tmp_path: Path
) -> None:
    row, line = await through(WHOLE[name], metronome, tmp_path)
    assert (row["status"], row["fault"]) == ("ok", None)
    assert line is not None
    assert row["latency"]["reply_ms"] == pytest.approx(reply_ms(line), abs=1)
    first_ns = row["t0_ns"] + row["latency"]["first_packet_ms"] * MS
    assert first_ns >= line["first_packet_ns"] + WHOLE[name].latency_ms * MS


CUT = {
    "reset before the session": (Fault(cut="reset", cut_in="session."), "disconnected"),
    "reset amid the reply": (Fault(cut="reset", cut_in="audio.delta", cut_at=4), "disconnected"),
    "an end amid a message": (Fault(cut="truncate", cut_in="audio.delta"), "disconnected"),
    "a closed connection": (Fault(cut="close", cut_in="audio.delta", cut_at=4), "disconnected"),
    "half-open before the reply": (Fault(cut="half-open", cut_in="response.created"), "timeout"),
    "half-open amid the reply": (
        Fault(cut="half-open", cut_in="audio.delta", cut_at=4),
        "truncated",
    ),
    "half-open before the session": (Fault(cut="half-open"), "disconnected"),
    "refused": (Fault(door="refuse"), "disconnected"),
    "no HTTP": (Fault(door="garbage"), "disconnected"),
    "taken and left waiting": (Fault(door="mute"), "disconnected"),
}


@pytest.mark.parametrize("name", CUT)
async def test_a_connection_that_ends_or_stands_still_has_its_status(
    name: str, metronome: Metronome, tmp_path: Path
) -> None:
    fault, status = CUT[name]
    brief = Patience(connect_timeout_s=1.5, first_reply_timeout_s=1.5, reply_limit_s=2.5)
    patience = brief if fault.cut == "half-open" or fault.door == "mute" else PATIENT
    row, line = await through(fault, metronome, tmp_path, patience)
    assert row["status"] == status, row["fault"]
    assert row["fault"] or status in {"timeout", "truncated"}
    whole = fault.cut_at - 1 if fault.cut_in == "audio.delta" else 0
    if line is not None and whole:  # what passed before it is kept: so many packets of 100 ms
        assert row["segments"][-1]["end_ms"] - row["segments"][-1]["start_ms"] >= 100 * whole - 1


# A server that starts anew


def restarting(number: int) -> Fault:
    """The fourth session is lost in the middle; nobody is there for the next three."""
    if number == 4:
        return Fault("restart", cut="reset", cut_in="audio.delta", cut_at=4)
    return Fault("down", door="refuse") if number in {5, 6, 7} else Fault()


def test_a_server_that_starts_anew_costs_a_few_trials_and_resume_asks_those_again(
    metronome: Metronome, tmp_path: Path
) -> None:
    write_flac(tmp_path / "q.flac", babble(16_000, 0.2), 16_000)
    items = [{"id": f"q{number}", "audio": "q.flac", "kind": "open"} for number in range(10)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    with proxying(FaultProxy(metronome.port, restarting)) as port:
        (tmp_path / "bench.toml").write_text(
            f'[run]\nout = "{tmp_path}/runs"\nwarmup = 0\n[[endpoint]]\nname = "m"\n'
            f'url = "ws://127.0.0.1:{port}/v1/realtime?{QUICK}"\n'
            '[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n'
        )
        streamed = ["run", str(tmp_path / "bench.toml"), "--quiet", "--shard", "1/1"]
        assert main(streamed) == 0
        (folder,) = (tmp_path / "runs").iterdir()
        first = rows(folder, "trials")
        assert [row["status"] for row in first] == [
            *(["ok"] * 3 + ["disconnected"] * 4 + ["ok"] * 3)
        ]
        assert main(["run", "--resume", str(folder), "--quiet"]) == 0
    again = rows(folder, "trials")
    assert again[:10] == first
    lost = {row["key"] for row in first if row["status"] == "disconnected"}
    assert {(row["key"], row["attempt"], row["status"]) for row in again[10:]} == {
        (key, 2, "ok") for key in lost
    }


# TLS


async def over_tls(fault: Fault, tls: tuple[Path, Path] | None, folder: Path) -> Row:
    with proxying(FaultProxy(1, lambda _: fault, tls=tls)) as port:
        return await asked(f"wss://127.0.0.1:{port}/v1/realtime", folder, PATIENT)


async def test_a_certificate_that_nobody_vouches_for_is_a_lost_connection(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    row = await over_tls(Fault(), (cert, key), tmp_path)
    assert row["status"] == "disconnected"
    assert "certificate" in row["fault"]


async def test_garbage_in_a_tls_handshake_is_a_lost_connection(tmp_path: Path) -> None:
    row = await over_tls(Fault(door="noise"), None, tmp_path)
    assert row["status"] == "disconnected"
    assert "TLS" in row["fault"] or "SSL" in row["fault"]

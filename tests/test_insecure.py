"""TLS is verified unless one endpoint's own table says otherwise, and then the report says so."""

from __future__ import annotations

import io
import ssl
from pathlib import Path

import pytest
from http_peer import Peer, serving
from mosquitto import certificates
from sample_run import build, item, trial

from voxmeter.client import config
from voxmeter.client.bench import Endpoint, Judge, Mqtt
from voxmeter.client.dialing import tls_context
from voxmeter.client.judge_call import JudgeError, Service
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.redaction import Redactor
from voxmeter.client.report import markdown_report, print_report, summarised, write_page
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.judge_messages import Message


def test_nothing_is_insecure_unless_it_is_told() -> None:
    assert not Endpoint.model_fields["insecure"].default
    assert not Mqtt.model_fields["insecure"].default
    assert not TransportSettings().insecure
    assert not MqttSettings("127.0.0.1", 1).insecure
    for scheme in ("wss", "https", "mqtts", "WSS"):
        context = tls_context(f"{scheme}://127.0.0.1", TransportSettings())
        assert context is not None
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname


@pytest.mark.parametrize("table", ["run", "judge", "suite", "transcribe"])
def test_no_other_table_can_be_insecure(table: str) -> None:
    bench: dict[str, object] = {
        "endpoint": [{"name": "bot", "url": "ws://127.0.0.1:1"}],
        "suite": [{"kind": "demo"}],
        "judge": [{"name": "j", "model": "m", "base_url": "http://127.0.0.1:1"}],
        "run": {},
        "transcribe": {},
    }
    found = bench[table]
    place = found[0] if isinstance(found, list) else found
    assert isinstance(place, dict)
    config.parse(bench, "bench.toml")
    place["insecure"] = True
    with pytest.raises(UserError, match="insecure"):
        config.parse(bench, "bench.toml")


async def test_a_judge_with_an_unknown_certificate_is_not_asked(tmp_path: Path) -> None:
    certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    asked: list[str] = []

    async def play(peer: Peer) -> None:
        asked.append((await peer.request()).target)

    async with serving(play, context) as url:
        judge = Judge(name="j", model="m", base_url=url, retries=0)
        async with Service(judge, "bench.toml", Redactor()) as service:
            with pytest.raises(JudgeError, match=r"(?i)certificate"):
                await service.ask([Message("user", "Rate it.")])
    assert asked == []


@pytest.mark.parametrize("packed", ["gzip", "deflate", "br", "zstd, gzip"])
async def test_a_judge_whose_answer_is_packed_is_not_unpacked(packed: str) -> None:
    async def play(peer: Peer) -> None:
        found = await peer.request()
        assert found.headers["accept-encoding"] == "identity"
        await peer.whole(b"\x1f\x8b" + bytes(100), more=f"Content-Encoding: {packed}\r\n")

    async with serving(play) as url:
        judge = Judge(name="j", model="m", base_url=url, retries=0)
        async with Service(judge, "bench.toml", Redactor()) as service:
            with pytest.raises(JudgeError, match=f"compressed as {packed}"):
                await service.ask([Message("user", "Rate it.")])


async def test_a_judge_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.client.bounded_http.LIMIT_MIB", 1)

    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            await peer.say(b" " * 65536)

    async with serving(play) as url:
        judge = Judge(name="j", model="m", base_url=url, retries=0)
        async with Service(judge, "bench.toml", Redactor()) as service:
            with pytest.raises(JudgeError, match="over 1 MiB"):
                await service.ask([Message("user", "Rate it.")])


def test_every_report_names_what_was_not_verified(tmp_path: Path) -> None:
    tables = {
        "endpoint": [
            {"name": "bot", "url": "wss://127.0.0.1:1", "insecure": True},
            {"name": "other", "url": "wss://127.0.0.1:1"},
        ],
        "suite": [{"kind": "demo"}],
        "publish": {"mqtt": {"host": "127.0.0.1", "tls": True, "insecure": True}},
    }
    rows = [trial("q0"), trial("q0", endpoint="other")]
    with build(tmp_path, [item("q0")], rows, run={"config": tables}) as folder:
        summary = summarised(folder)
        told = [one["text"] for one in summary["warnings"] if one["code"] == "insecure"]
        assert [text.partition(":")[0] for text in told] == ["bot", "[publish.mqtt]"]
        out = io.StringIO()
        print_report(folder, summary, out)
        page = write_page([folder], [summary], folder.path / "report.html").read_text()
        for text in ("".join(markdown_report(folder, summary)), out.getvalue(), page):
            assert "bot: TLS certificates were not verified" in text
            assert "other: TLS" not in text

"""MQTT as a transport, against a real mosquitto: sessions, refusals, a broker that dies."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from captures import attempt_in
from mosquitto import Broker, certificates, mosquitto
from needs import needs

from voxmeter.client.audio import to_pcm16, write_flac
from voxmeter.client.builtin import serving
from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.cli import main
from voxmeter.client.clock import SystemClock
from voxmeter.client.finish import finish
from voxmeter.client.mqtt import MqttTransport
from voxmeter.client.servers.voice import babble
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import TransportSettings
from voxmeter.endpoints.codec import Address, Ended, Json, Published, Settings, Text
from voxmeter.endpoints.errors import (
    ConnectError,
    ConnectionLostError,
    MissingExtraError,
    ProtocolError,
    UserError,
)
from voxmeter.endpoints.events import Event, SpeechStopped

BRIEF = Patience(connect_timeout_s=15, first_reply_timeout_s=10, reply_limit_s=20, quiet_ms=500)
LOGIN = {"user": "ann", "password": "right"}
pytestmark = pytest.mark.filterwarnings(  # of sockets whose TLS failed; paho leaves them so
    "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with mosquitto(tmp_path / "broker") as one:
        yield one


def question(rate: int) -> Utterance:
    """400 ms of sound behind 300 ms of silence."""
    sound = babble(rate, 0.4)
    start = 3 * rate // 10
    return Utterance(bytes(2 * start) + to_pcm16(sound), rate, start, start + len(sound))


def hermes(url: str, **options: Json) -> Target:
    return Target("ours", "hermes", url, Settings(options=options), patience=BRIEF)


async def connected(address: Address, **wire: Any) -> MqttTransport:
    transport = MqttTransport(TransportSettings(**wire))
    try:
        async with asyncio.timeout(20):
            await transport.connect(address)
    except BaseException:
        await transport.close()
        raise
    return transport


async def test_what_is_published_on_a_topic_arrives_stamped_and_in_order(broker: Broker) -> None:
    one = await connected(Address(broker.url, subscriptions=("a/#", "b/+/c")))
    other = await connected(Address(broker.url))
    assert (await other.rtt_ms()) is None
    rtt_ms = await one.rtt_ms()
    assert rtt_ms is not None
    assert rtt_ms > 0
    before_ns = SystemClock().now()
    sent = [
        Published("a/1", b"one", sure=True),
        Published("elsewhere", b"no", sure=True),
        Published("b/x/c", bytes(100_000)),
        Published("a", "\N{SNOWMAN}".encode(), sure=True),
    ]
    for message in sent:
        await other.send(message)
    arrivals = one.receive()
    found = [await anext(arrivals) for _ in range(3)]
    assert [arrival.message for arrival in found] == [
        replace(message, sure=False) for message in sent if message.topic != "elsewhere"
    ]
    stamps = [arrival.t_ns for arrival in found]
    assert [before_ns, *stamps] == sorted([before_ns, *stamps])
    await one.close()
    await one.close()
    await other.close()


async def test_a_cancellation_that_the_library_loses_is_heeded(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = asyncio.Event()

    async def publish(*_: object, **__: object) -> None:
        waiting.set()
        with suppress(asyncio.CancelledError):  # as `wait_for` does when the answer comes as well
            await asyncio.Event().wait()

    transport = await connected(Address(broker.url))
    monkeypatch.setattr("aiomqtt.Client.publish", publish)
    task = asyncio.create_task(transport.send(Published("a", b"", sure=True)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await transport.close()


async def test_only_messages_on_topics_are_carried(broker: Broker) -> None:
    transport = await connected(Address(broker.url))
    with pytest.raises(TypeError, match="Text"):
        await transport.send(Text("x"))
    with pytest.raises(ConnectionLostError):
        await transport.send(Published("a/#", b"no topic to publish on"))
    await transport.close()


async def test_before_it_is_connected_there_is_nothing() -> None:
    transport = MqttTransport(TransportSettings())
    with pytest.raises(ConnectionLostError):
        await transport.send(Published("a", b""))
    with pytest.raises(ConnectionLostError):
        await anext(transport.receive())
    assert await transport.rtt_ms() is None
    await transport.close()


async def test_a_broker_that_dies_ends_the_stream_and_the_next_connection_works(
    broker: Broker,
) -> None:
    transport = await connected(Address(broker.url, subscriptions=("a",)))
    await transport.send(Published("a", b"1", sure=True))
    broker.kill()
    arrivals = [arrival.message async for arrival in transport.receive()]
    assert arrivals[:-1] == [Published("a", b"1")]
    assert isinstance(arrivals[-1], Ended)
    assert f"the broker at {broker.url} is gone" in arrivals[-1].reason
    with pytest.raises(ConnectionLostError, match="is gone"):
        await transport.send(Published("a", b"2", sure=True))
    await transport.close()
    with pytest.raises(ConnectError, match="no broker at mqtt:") as raised:
        await connected(Address(broker.url))
    assert raised.value.failure == "refused"
    broker.start()
    again = await connected(Address(broker.url, subscriptions=("a",)))
    await again.send(Published("a", b"3", sure=True))
    assert (await anext(again.receive())).message == Published("a", b"3")
    await again.close()


async def test_a_message_that_is_too_large_is_an_error_of_the_peer(broker: Broker) -> None:
    transport = await connected(Address(broker.url, subscriptions=("a",)), max_message_mib=1)
    await transport.send(Published("a", bytes(2**20 + 1), sure=True))
    with pytest.raises(ProtocolError, match="larger than max_message_mib"):
        await anext(transport.receive())
    await transport.close()


async def test_a_flood_that_nobody_reads_is_an_error_of_the_peer(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxmeter.client.mqtt._MOST_QUEUED", 3)
    transport = await connected(Address(broker.url, subscriptions=("a", "end")))
    other = await connected(Address(broker.url))
    for number in range(6):
        await transport.send(Published("a", bytes([number]), sure=True))
    with pytest.raises(ProtocolError, match="more than 3 messages at once"):
        await anext(transport.receive())
    monkeypatch.setattr("voxmeter.client.mqtt._MOST_BYTES", 3)
    late = await connected(Address(broker.url, subscriptions=("a",)))
    await other.send(Published("a", b"1234", sure=True))
    with pytest.raises(ProtocolError, match="in one session"):
        await anext(late.receive())
    for one in (transport, other, late):
        await one.close()


async def test_tls_and_a_password_are_as_strict_as_the_broker(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificates(tmp_path / "other")
    with mosquitto(tmp_path / "broker", tls=True, **LOGIN) as broker:
        shown = {"username": "ann", "password": LOGIN["password"]}
        ours = await connected(Address(broker.url, shown), ca_file=broker.ca_file)
        await ours.close()
        insecure = await connected(Address(broker.url, shown), insecure=True)
        await insecure.close()
        wrong = {"username": "ann", "password": "wrong"}
        cases: list[tuple[str, dict[str, str], dict[str, str], str, str]] = [
            (broker.url, wrong, {"ca_file": broker.ca_file}, "rejected", "refuses user 'ann'"),
            (
                broker.url,
                {},
                {"ca_file": broker.ca_file},
                "rejected",
                "wants a name and a password",
            ),
            (broker.url, shown, {}, "tls", "the certificate is not trusted"),
            (
                broker.url,
                shown,
                {"ca_file": str(tmp_path / "other" / "ca.pem")},
                "tls",
                "the certificate is not trusted",
            ),
            (
                f"mqtt://127.0.0.1:{broker.port}",
                shown,
                {},
                "timeout",
                "does not answer as an MQTT broker; does it want mqtts://?",
            ),
        ]
        for url, headers, wire, failure, words in cases:
            with pytest.raises(ConnectError) as raised:
                await connected(Address(url, headers), **wire)
            assert (raised.value.failure, words in str(raised.value)) == (failure, True), raised
            assert "right" not in str(raised.value)
    with mosquitto(tmp_path / "plain") as plain, pytest.raises(ConnectError) as raised:
        await connected(Address(f"mqtts://127.0.0.1:{plain.port}"))
    assert raised.value.failure in {"refused", "tls"}


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Address("http://h"), "begins with mqtt://"),
        (Address("mqtt://"), "begins with mqtt://"),
        (Address("mqtt://h:x"), "not the URL of a broker"),
        (Address("mqtt://h", {"Cookie": "x"}), "header 'Cookie' cannot be sent"),
        (Address("mqtt://a..b"), "can be no host's name"),
    ],
)
async def test_an_address_that_cannot_be_is_told(address: Address, words: str) -> None:
    needs_aiomqtt()
    with pytest.raises(ConnectError, match=words):
        await connected(address)


def needs_aiomqtt() -> None:
    pytest.importorskip("aiomqtt")


async def test_without_the_library_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'voxmeter\[mqtt\]'"):
        await connected(Address("mqtt://127.0.0.1"))


async def test_a_ca_file_that_is_none_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(UserError, match="holds no certificates"):
        await connected(Address("mqtts://127.0.0.1"), ca_file=str(tmp_path / "ca.pem"))


def test_sessions_side_by_side_are_told_apart_on_one_broker(tmp_path: Path) -> None:
    needs("mosquitto")
    truth = tmp_path / "truth.jsonl"

    async def all_at_once(url: str) -> list[Capture]:
        targets = [hermes(url, sites=["desk", "hall", "attic"]) for _ in range(3)]
        lanes = enumerate(targets)
        asked = [attempt(one, question, tag=f"t{lane}", lane=lane) for lane, one in lanes]
        return await asyncio.gather(*asked)

    query = "?delay_ms=300&pacing=burst&tag="
    with serving("metronome", kind="hermes", options=("--truth", str(truth))) as url:
        captures = asyncio.run(all_at_once(url + query))
        again = asyncio.run(all_at_once(url + query))
    assert [capture.outcome for capture in captures + again] == ["ended"] * 6
    for capture in captures:
        (name,) = {
            row["reply"] for row in capture.rows if row["kind"] == "reply_audio" and row["reply"]
        }
        notes = [row["note"] for row in capture.rows if row["kind"] == "ready"]
        assert notes == [name]
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    assert sorted(line["tag"] for line in lines) == ["t0", "t0", "t1", "t1", "t2", "t2"]


async def test_a_broker_killed_in_a_trial_ends_it_disconnected_and_the_next_one_works(
    broker: Broker, tmp_path: Path
) -> None:
    def kill(event: Event) -> None:
        if isinstance(event, SpeechStopped):
            broker.kill()

    options = ("--broker", broker.url)
    with serving("echo", kind="hermes", options=options) as url:
        assert url == broker.url
        whole = finish(await attempt(hermes(url), question, tag="a"), attempt_in(tmp_path))
        assert (whole["status"], whole["fault"]) == ("ok", None)
        lost = await attempt(hermes(url), question, tag="b", listen=kill)
    assert lost.outcome == "disconnected"
    assert f"the broker at {broker.url} is gone" in str(lost.fault)
    assert [row["kind"] for row in lost.rows].count("speech_stopped") == 1
    broker.start()
    with serving("echo", kind="hermes", options=options) as url:
        again = await attempt(hermes(url), question, tag="c")
    assert (again.outcome, again.fault) == ("ended", None)


def test_a_bench_is_run_at_the_sites_it_names_and_its_password_stands_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MQTT_USER", LOGIN["user"])
    monkeypatch.setenv("MQTT_PASSWORD", "swordfish-17")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        write_flac(tmp_path / f"q{number}.flac", babble(16_000, 0.4), 16_000)
    items = [{"id": f"q{n}", "audio": f"q{n}.flac", "kind": "open"} for n in range(3)]
    Path("items.jsonl").write_text("\n".join(json.dumps(item) for item in items))
    login = {"user": LOGIN["user"], "password": "swordfish-17"}
    with mosquitto(tmp_path / "broker", tls=True, **login) as broker:
        shown = ("--broker-user", "ann", "--broker-password-env", "MQTT_PASSWORD")
        served = ("--broker", broker.url, "--broker-ca", broker.ca_file, *shown)
        Path("bench.toml").write_text(BENCH.format(url=broker.url, ca_file=broker.ca_file))
        with serving("echo", kind="hermes", options=served):
            assert main(["run", "--quiet"]) == 0
    (run,) = Path("runs").iterdir()
    rows = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["ok"] * 3
    events = "".join(path.read_text() for path in run.glob("events/*/*.jsonl"))
    sites = {site for site in ("desk", "hall", "voxmeter-") if f"audioServer/{site}" in events}
    assert sites == {"desk", "hall"}
    written = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert b"swordfish-17" not in written
    assert "swordfish-17" not in "".join(capsys.readouterr())


BENCH = """
[run]
warmup = 0
concurrency = 8

[[endpoint]]
name = "home"
kind = "hermes"
url = "{url}"
ca_file = "{ca_file}"
api_key_env = "MQTT_PASSWORD"
quiet_ms = 500
headers = {{ username = "{{env:MQTT_USER}}" }}
[endpoint.options]
sites = ["desk", "hall"]

[[suite]]
kind = "jsonl"
path = "items.jsonl"
"""


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ('kind = "hermes"\nurl = "ws://h"', "url: is not the URL of an MQTT broker; write it like"),
        ('kind = "hermes"\ncommand = "x"', "command: kind hermes talks to a URL"),
        ('kind = "http"\nurl = "mqtt://h"', "url: is an MQTT broker's, and kind http does not"),
        ('kind = "hermes"\nurl = "mqtt://ann:x@h"', "url: carries a user name or password"),
    ],
)
def test_an_address_that_does_not_fit_its_kind_is_one_line(
    endpoint: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench.toml"
    bench.write_text(f'[[endpoint]]\nname = "a"\n{endpoint}\n[[suite]]\nkind = "demo"\n')
    assert main(["run", str(bench), "--dry-run"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


async def test_an_assistant_that_never_answers_is_a_timeout_and_its_session_is_ended() -> None:
    needs("mosquitto")
    brief = replace(BRIEF, first_reply_timeout_s=1)
    with serving("metronome?fault=never", kind="hermes") as url:
        capture = await attempt(replace(hermes(url), patience=brief), question)
    assert (capture.outcome, capture.fault) == ("timeout", None)
    assert capture.rows[-1]["name"] == "hermes/dialogueManager/endSession"


def test_a_broker_of_our_own_ends_with_a_server_that_is_killed() -> None:
    needs("mosquitto")
    command = [sys.executable, "-m", "voxmeter", "serve", "echo", "--protocol", "hermes"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as held:
            server.kill()
            server.wait(20)
            held.settimeout(20)
            assert held.recv(1) == b""  # the broker has gone too
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_broker_that_cannot_start_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    needs("mosquitto")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "echo", "--protocol", "hermes", "--port", str(port)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("voxmeter: mosquitto: did not start: ")
    assert "in use" in told


async def test_a_site_where_nobody_answers_is_told_as_what_it_is(broker: Broker) -> None:
    brief = replace(BRIEF, connect_timeout_s=0.5)
    capture = await attempt(replace(hermes(broker.url), patience=brief), question)
    assert capture.outcome == "disconnected"
    assert "connected, but no session within 0.5 s" in str(capture.fault)


def test_serving_over_a_broker_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_aiomqtt()
    command = ["serve", "echo", "--protocol", "hermes"]
    assert main([*command, "--broker", "mqtt://127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("voxmeter: --broker: no broker at mqtt://127.0.0.1:1: ")
    assert len(told.splitlines()) == 1
    assert main(["serve", "echo", "--broker", "mqtt://127.0.0.1:1"]) == 2
    assert "openai-realtime is not spoken over MQTT" in capsys.readouterr().err
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert main(command) == 2
    assert "needs an MQTT broker, and found no mosquitto" in capsys.readouterr().err

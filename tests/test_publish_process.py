"""Publishing against real brokers, bad ones and none: what arrives, what is counted, what ends."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest
from mosquitto import Broker, mosquitto
from mqtt_reader import reading
from needs import needs_extra

from voxmeter.client import publish_child
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.publish_process import Delivery, Publisher, _why
from voxmeter.client.publish_topics import Post
from voxmeter.client.publish_wire import Report, Setup

needs_extra("aiomqtt", "mqtt")

STATUS = "v/run/status"
EVENT = "v/run/item/q/event"
PASSWORD = "correct horse"  # noqa: S105 - of a broker that lives for one test
CONNECTED = b"\x20\x02\x00\x00"
"""What a broker says to whom it lets in."""

END_S = 20.0
"""A limit for brokers that answer; it is never waited for."""


def settings(broker: Broker, password: str = PASSWORD) -> MqttSettings:
    return MqttSettings(
        "127.0.0.1", broker.port, tls=True, ca_file=broker.ca_file, username="u", password=password
    )


def publisher(found: MqttSettings, told: list[str] | None = None) -> Publisher:
    setup = Setup(found, Post(STATUS, "offline", retain=True), 5.0, 0.05, 0.2)
    heard: list[str] = [] if told is None else told
    return Publisher(setup, heard.append)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with mosquitto(tmp_path / "broker", tls=True, user="u", password=PASSWORD) as broker:
        yield broker


def test_over_tls_and_with_a_password_everything_arrives_in_order(broker: Broker) -> None:
    async def read() -> tuple[list[str], Delivery]:
        async with reading(settings(broker)) as reader:
            sender = publisher(settings(broker))
            for number in range(60):
                sender.offer(Post(EVENT, str(number)))
            sender.offer(Post(STATUS, "done", retain=True))
            delivery = await asyncio.to_thread(sender.end, END_S)
            await reader.status("done")
            return [one.payload for one in reader.seen if one.topic == EVENT], delivery

    seen, delivery = asyncio.run(read())
    assert seen == [str(number) for number in range(60)]
    assert delivery == Delivery(61, 0)


def test_whoever_comes_late_sees_the_status_and_no_event(broker: Broker) -> None:
    sender = publisher(settings(broker))
    sender.offer(Post(EVENT, "gone by then"))
    sender.offer(Post(STATUS, "running", retain=True))
    assert sender.end(END_S) == Delivery(2, 0)

    async def read() -> list[tuple[str, str, bool]]:
        async with reading(settings(broker)) as reader:
            await reader.status("running")
            return [(one.topic, one.payload, one.retained) for one in reader.seen]

    assert asyncio.run(read()) == [(STATUS, "running", True)]


def test_a_broker_that_is_killed_and_comes_back_hears_the_rest(broker: Broker) -> None:
    async def read() -> tuple[list[str], Delivery]:
        sender = publisher(settings(broker))
        sender.offer(Post(STATUS, "running", retain=True))
        async with reading(settings(broker)) as reader:
            await reader.status("running")
        broker.kill()
        sender.offer(Post(EVENT, "while it was away"))
        broker.start()
        async with reading(settings(broker)) as reader:
            await reader.status("running")  # it had forgotten, and was told again
            sender.offer(Post(EVENT, "later"))
            sender.offer(Post(STATUS, "done", retain=True))
            delivery = await asyncio.to_thread(sender.end, END_S)
            await reader.status("done")
            return [one.payload for one in reader.seen if one.topic == EVENT], delivery

    seen, delivery = asyncio.run(read())
    assert seen[-1] == "later"  # the other may have come before the reader did
    assert delivery == Delivery(4, 0)


SCRIPT = """
import sys
from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.publish_process import Publisher
from voxmeter.client.publish_topics import Post
from voxmeter.client.publish_wire import Setup
settings = MqttSettings("127.0.0.1", int(sys.argv[1]), tls=True, ca_file=sys.argv[2],
                        username="u", password=sys.argv[3])
sender = Publisher(Setup(settings, Post("v/run/status", "offline", True)), print)
sender.offer(Post("v/run/status", "running", True))
print(sender._child._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("victim", ["run", "publishing process"])
def test_the_last_will_says_offline_when_a_process_is_killed(broker: Broker, victim: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(broker.port), broker.ca_file, PASSWORD]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(  # our own script
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())

        async def read() -> None:
            async with reading(settings(broker)) as reader:
                await reader.status("running")
                os.kill(run.pid if victim == "run" else child, signal.SIGKILL)
                await reader.status("running", "offline")

        try:
            asyncio.run(read())
        finally:
            run.kill()


@contextmanager
def mute() -> Iterator[int]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closing() -> AbstractContextManager[int]:
    """A server that hangs up at once."""
    return saying(b"")


def babbling() -> AbstractContextManager[int]:
    """A server that says what no broker says."""
    return saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@contextmanager
def saying(words: bytes) -> Iterator[int]:
    """A server that says the same to everyone and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    if connection.recv(1) == b"!":
                        return
                    connection.sendall(words)

        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        with socket.create_connection(server.getsockname()) as last:
            last.sendall(b"!")
            thread.join()


@contextmanager
def answering(answer: bytes, *, endless: bool = False) -> Iterator[int]:
    """A server that takes the connection as a broker does, and then only ever says one thing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.sendall(CONNECTED + answer)
                while endless:
                    connection.sendall(bytes(1 << 16))
                while connection.recv(1 << 16):
                    pass

        def serve() -> None:
            talks = []
            while True:
                connection, _ = server.accept()
                if connection.recv(1) == b"!":
                    connection.close()
                    break
                talks.append(Thread(target=talk, args=(connection,)))
                talks[-1].start()
            for thread in talks:
                thread.join()

        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        with socket.create_connection(server.getsockname()) as last:
            last.sendall(b"!")
            thread.join()


def deaf() -> AbstractContextManager[int]:
    """A broker that lets us in and takes nothing."""
    return answering(b"")


def flooding() -> AbstractContextManager[int]:
    """A broker that lets us in and sends a message of 256 MB, and never ends."""
    return answering(b"\x30\xff\xff\xff\x7f", endless=True)


@contextmanager
def absent() -> Iterator[int]:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    yield port


@pytest.mark.parametrize("server", [mute, closing, babbling, absent])
@pytest.mark.parametrize("tls", [False, True])
def test_a_bad_broker_costs_the_messages_and_their_number_is_told(
    server: object, tls: bool
) -> None:
    assert callable(server)
    told: list[str] = []
    with server() as port:
        sender = publisher(MqttSettings("127.0.0.1", port, tls=tls), told)
        for number in range(5):
            sender.offer(Post(EVENT, str(number)))
        sender.offer(Post(STATUS, "running", retain=True))
        sender.offer(Post(STATUS, "done", retain=True))  # takes the place of the one before
        delivery = sender.end(0.3)
    assert (delivery.delivered, delivery.undelivered) == (0, 6)
    assert delivery.words().startswith("MQTT: 6 of 6 messages were not delivered: ")
    assert len(told) == 1
    assert delivery.problem


@pytest.mark.parametrize("server", [deaf, flooding])
def test_a_broker_that_lets_us_in_and_takes_nothing_is_left_at_the_end(
    server: Callable[[], AbstractContextManager[int]],
) -> None:
    with server() as port:
        sender = publisher(MqttSettings("127.0.0.1", port))
        for number in range(30):
            sender.offer(Post(EVENT, str(number)))
        delivery = sender.end(0.3)
    assert (delivery.delivered, delivery.undelivered) == (0, 30)
    assert delivery.problem


class ToldInOrder(io.BytesIO):
    """Where the process writes; keeps the last problem that it told."""

    def problem(self) -> str:
        return str(json.loads(self.getvalue().splitlines()[-1])["problem"])


@pytest.mark.parametrize(
    ("connected", "words"),
    [(True, "did not take them in time"), (False, "Connection refused")],
)
async def test_an_old_refusal_is_not_why_a_broker_that_is_back_is_slow(
    connected: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[int] = []
    monkeypatch.setattr("voxmeter.client.publish_child.os._exit", ends.append)
    told = ToldInOrder()
    setup = Setup(MqttSettings("h"), Post(STATUS, "offline", retain=True))
    process = publish_child._Publishing(setup, told)
    process._lost(ConnectionRefusedError(111, "Connection refused"))
    process._connected = connected
    process._leave()
    assert words in told.problem()
    assert ends == [0]


def test_a_process_that_cannot_say_its_last_word_is_not_known_by_an_old_problem() -> None:
    found = {
        (connected, over): _why(Report(connected=connected, problem="refused", over=over))
        for connected in (True, False)
        for over in (True, False)
    }
    slow = "the broker did not take them in time"
    others = dict.fromkeys([(True, True), (False, True), (False, False)], "refused")
    assert found == {(True, False): slow} | others


def test_a_refused_password_is_told_in_plain_words(broker: Broker) -> None:
    told: list[str] = []
    sender = publisher(settings(broker, "wrong"), told)
    sender.offer(Post(STATUS, "running", retain=True))
    delivery = sender.end(0.5)
    assert (delivery.undelivered, len(told)) == (1, 1)
    assert "refuses user" in delivery.problem
    assert "wrong" not in delivery.problem.replace("password is wrong", "")


def test_a_certificate_that_nobody_vouches_for_is_refused(broker: Broker) -> None:
    sender = publisher(MqttSettings("127.0.0.1", broker.port, tls=True))
    sender.offer(Post(STATUS, "running", retain=True))
    delivery = sender.end(0.5)
    assert delivery.undelivered == 1
    assert "certificate" in delivery.problem


def test_a_publishing_process_that_dies_is_counted_and_nothing_waits_for_it(
    broker: Broker,
) -> None:
    told: list[str] = []
    sender = publisher(settings(broker), told)
    sender.offer(Post(STATUS, "running", retain=True))

    async def kill() -> None:
        async with reading(settings(broker)) as reader:
            await reader.status("running")
            assert sender._child is not None
            sender._child.kill()
            await reader.status("running", "offline")

    asyncio.run(kill())
    for number in range(10_000):
        sender.offer(Post(EVENT, str(number)))
    delivery = sender.end(END_S)
    assert delivery.undelivered >= 10_000
    assert "the publishing process ended" in delivery.problem

"""What the run and its publishing process say to each other: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any

from voxmeter.client.mqtt_connection import MqttSettings
from voxmeter.client.publish_topics import Post


@dataclass(frozen=True, slots=True)
class Setup:
    """The first line that the process reads.

    Attributes:
        settings: How the broker is reached.
        will: What the broker says for us when we are gone without a word.
        patience_s: How long one answer of the broker is waited for.
        first_wait_s: How long it waits before it tries again, the first time.
        longest_wait_s: Likewise, at most.
    """

    settings: MqttSettings
    will: Post
    patience_s: float = 10.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Report:
    """What the process says of itself.

    Attributes:
        connected: Whether it is connected now.
        delivered: Messages that the broker has taken, each once.
        replaced: Retained ones that a newer one of their topic replaced before they were sent.
        problem: Why it is not, or was not, connected; "" for no reason.
        over: Whether it is the last word.
    """

    connected: bool = False
    delivered: int = 0
    replaced: int = 0
    problem: str = ""
    over: bool = False


def send(pipe: IO[bytes], line: Mapping[str, Any]) -> None:
    """Write one line at once.

    Raises:
        OSError: If nobody reads any more.
    """
    pipe.write(json.dumps(line).encode("ascii") + b"\n")
    pipe.flush()


def receive(pipe: IO[bytes]) -> dict[str, Any]:
    """Read one line.

    Raises:
        EOFError: If the other side has ended.
    """
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    found: dict[str, Any] = json.loads(line)
    return found


def setup_line(setup: Setup) -> dict[str, Any]:
    """Return a setup as a line."""
    return asdict(setup)


def setup_of(line: Mapping[str, Any]) -> Setup:
    """Return the setup that a line holds."""
    parts = {"settings": MqttSettings(**line["settings"]), "will": Post(**line["will"])}
    return Setup(**{**line, **parts})

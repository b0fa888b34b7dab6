"""Reads what a broker passes on, until a test has seen enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voxmeter.client.mqtt_connection import MqttSettings, mqtt_client

if TYPE_CHECKING:
    from aiomqtt import Client

LIMIT_S = 60


@dataclass(frozen=True)
class Seen:
    """One message as a reader got it; `retained` ones were there before the reader came."""

    topic: str
    payload: str
    retained: bool

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.payload)
        return found


@dataclass
class Reader:
    """A subscription, with all that it has brought so far."""

    client: Client
    seen: list[Seen] = field(default_factory=list)

    async def until(self, enough: Callable[[list[Seen]], bool]) -> list[Seen]:
        """Read on until what was seen is enough; return it."""
        async with asyncio.timeout(LIMIT_S):
            if enough(self.seen):
                return self.seen
            async for message in self.client.messages:
                payload = message.payload
                assert isinstance(payload, bytes)
                one = Seen(str(message.topic), payload.decode(), bool(message.retain))
                self.seen.append(one)
                if enough(self.seen):
                    return self.seen
        raise AssertionError(self.seen)

    async def status(self, *wanted: str) -> None:
        """Read on until these were the statuses last seen, in this order."""

        def came(seen: list[Seen]) -> bool:
            found = [one.payload for one in seen if one.topic.endswith("/status")]
            return found[-len(wanted) :] == list(wanted)

        await self.until(came)


@asynccontextmanager
async def reading(settings: MqttSettings, topic: str = "#") -> AsyncIterator[Reader]:
    """Subscribe, and give what reads."""
    async with mqtt_client(settings) as client:
        await client.subscribe(topic, qos=1)
        yield Reader(client)

"""Home Assistant finds the figures by itself: one retained message for each of its sensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from voxmeter import __version__
from voxmeter.client.publish_topics import Post, Topics, dumped, slug

EXPIRE_AFTER_S = 3600
"""A figure that has not changed for so long is shown as unavailable."""


class _Sensor(NamedTuple):
    metric: str
    name: str
    template: str
    more: dict[str, Any]


_MS = {"unit_of_measurement": "ms", "device_class": "duration", "state_class": "measurement"}
_PLAIN = {"state_class": "measurement"}
_SENSORS = (
    _Sensor("first_audible_p50", "First audible p50", "first_audible_ms.p50", _MS),
    _Sensor("first_audible_p90", "First audible p90", "first_audible_ms.p90", _MS),
    _Sensor("first_audible_p95", "First audible p95", "first_audible_ms.p95", _MS),
    _Sensor("first_audible_p99", "First audible p99", "first_audible_ms.p99", _MS),
    _Sensor("first_packet_p50", "First packet p50", "first_packet_ms.p50", _MS),
    _Sensor("n", "Trials", "n", _PLAIN),
    _Sensor("errors", "Errors", "errors", _PLAIN),
    _Sensor("accuracy", "Accuracy", "accuracy", _PLAIN),
)


def found(prefix: str, topics: Topics, endpoint: str) -> Iterator[Post]:
    """Yield what makes an endpoint a device with its sensors.

    The identity of a sensor is the endpoint's name, so that it goes on from run to run.

    Args:
        prefix: What Home Assistant listens to, `homeassistant` unless it was told otherwise.
        topics: Of the run.
        endpoint: Its name.
    """
    device = {
        "identifiers": [f"voxmeter_{slug(endpoint)}"],
        "name": f"voxmeter {endpoint}",
        "manufacturer": "voxmeter",
        "model": "speech-to-speech endpoint",
        "sw_version": __version__,
    }
    for sensor in _SENSORS:
        content = {
            "name": sensor.name,
            "unique_id": f"voxmeter_{slug(endpoint)}_{sensor.metric}",
            "state_topic": topics.stats(endpoint),
            "value_template": f"{{{{ value_json.{sensor.template} }}}}",
            "availability_topic": topics.status,
            "availability_template": "{{ 'offline' if value == 'offline' else 'online' }}",
            "payload_available": "online",
            "payload_not_available": "offline",
            "expire_after": EXPIRE_AFTER_S,
            "device": device,
            **sensor.more,
        }
        yield Post(_topic(prefix, endpoint, sensor), dumped(content), retain=True)


def removed(prefix: str, endpoint: str) -> Iterator[Post]:
    """Yield what takes the sensors of an endpoint away again."""
    for sensor in _SENSORS:
        yield Post(_topic(prefix, endpoint, sensor), "", retain=True)


def _topic(prefix: str, endpoint: str, sensor: _Sensor) -> str:
    return f"{prefix}/sensor/voxmeter_{slug(endpoint)}_{sensor.metric}/config"

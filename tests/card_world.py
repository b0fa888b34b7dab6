"""Devices and a clock for the sound card's parts, all moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from voxmeter.client.live import portaudio
from voxmeter.client.live.card_opening import Opening
from voxmeter.client.live.device_rate import BLOCK
from voxmeter.client.live.devices import Device

MS = 1_000_000
BLOCK_NS = 20 * MS


class Hands:
    """The session's clock, moved by hand, with a device's clock beside it."""

    def __init__(self, device_s: float = 1_800_000_000.0) -> None:
        self.now_ns = 5_000_000_000
        self.ahead_s = device_s - 5.0

    def now(self) -> int:
        return self.now_ns

    async def sleep_until(self, t_ns: int) -> None:
        raise NotImplementedError

    def device(self) -> float:
        return self.now_ns / 1e9 + self.ahead_s


class NoSuchFormError(Exception):
    """Stands for PortAudio's error: a text, a code, what the system below says."""


class Card:
    """A device that takes some rates and numbers of channels; its streams are moved by hand."""

    def __init__(self, rates: set[int], channels: set[int], hands: Hands) -> None:
        self.rates, self.channels, self.hands = rates, channels, hands
        self.latency_s = 0.04
        self.streams: list[Any] = []
        self.closed = 0
        self.both_closed = Event()

    def open(self, **settings: Any) -> Any:
        if settings["channels"] not in self.channels:
            raise NoSuchFormError("Error opening stream: Invalid number of channels", -9998)
        if settings["samplerate"] not in self.rates:
            raise NoSuchFormError("Error opening stream: Invalid sample rate", -9997)
        stream = SimpleNamespace(
            **settings, start=lambda: None, abort=lambda: None, close=self.close, time=0.0
        )
        stream.time, stream.latency = self.hands.device(), self.latency_s
        self.streams.append(stream)
        return stream

    def close(self) -> None:
        self.closed += 1
        if self.closed == 2:
            self.both_closed.set()


def fake_library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for sounddevice."""
    fake = ModuleType("sounddevice")
    vars(fake)["PortAudioError"] = NoSuchFormError
    monkeypatch.setattr(portaudio, "load", lambda: fake)
    return fake


def device(**changed: Any) -> Device:
    known: dict[str, Any] = {
        "number": 0,
        "name": "Headset",
        "host": "ALSA",
        "inputs": 2,
        "outputs": 2,
        "rate": 44_100,
        "input_ms": 10.0,
        "output_ms": 10.0,
    }
    return Device(**{**known, **changed})


def opening(library: Any, card: Card, woken: Callable[[], None] = lambda: None) -> Opening:
    vars(library).update(RawInputStream=card.open, RawOutputStream=card.open)
    return Opening(library, device(), device(), clock=card.hands, wake=woken)


def call_in(card: Card, hands: Hands, *, flagged: bool = False) -> None:
    """Have the microphone's callback run, as it does every 20 ms."""
    hands.now_ns += BLOCK_NS
    now_s = hands.device()
    times = SimpleNamespace(inputBufferAdcTime=now_s - 0.02, currentTime=now_s)
    flags = SimpleNamespace(input_overflow=flagged)
    card.streams[0].time = now_s
    card.streams[0].callback(memoryview(bytes(2 * BLOCK)), BLOCK, times, flags)


def call_out(card: Card, hands: Hands) -> bytes:
    now_s = hands.device()
    times = SimpleNamespace(outputBufferDacTime=now_s + 0.04, currentTime=now_s)
    flags = SimpleNamespace(output_underflow=False)
    data = bytearray(2 * BLOCK)
    card.streams[1].time = now_s
    card.streams[1].callback(memoryview(data), BLOCK, times, flags)
    return bytes(data)

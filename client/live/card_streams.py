"""One direction of a device, opened as it can be, and what its callbacks hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from voxmeter.client.clock import Clock
from voxmeter.client.live import portaudio
from voxmeter.client.live.device_rate import RATE
from voxmeter.client.live.devices import Device, Kind
from voxmeter.client.live.playout_buffer import Stretch

_RATES = (RATE, 44_100, 32_000, 16_000, 8_000)
_BLOCK_MS = 20
_LONGEST_S = 10.0


class RawStream(Protocol):
    """What we use of a stream of sounddevice, which ships no types."""

    time: float
    latency: float

    def start(self) -> None:
        """Let sound flow."""

    def abort(self) -> None:
        """Stop at once."""

    def close(self) -> None:
        """Give the device back."""


class Times(Protocol):
    """The stamps of a callback, in seconds of the device's clock; 0 where it has none."""

    inputBufferAdcTime: float  # noqa: N815 - PortAudio's own names
    outputBufferDacTime: float  # noqa: N815
    currentTime: float  # noqa: N815


class Flags(Protocol):
    """What a device says has gone wrong before a callback."""

    input_overflow: bool
    output_underflow: bool


@dataclass(frozen=True, slots=True)
class Captured:
    """What one callback of the microphone was given; times in seconds of the device's clock."""

    data: bytes
    frames: int
    adc_s: float
    current_s: float
    came_ns: int
    flagged: bool


@dataclass(frozen=True, slots=True)
class Emitted:
    """What one callback of the speaker was asked for; times in seconds of the device's clock."""

    stretches: list[Stretch]
    frames: int
    dac_s: float
    current_s: float
    came_ns: int
    flagged: bool


class Taker(Protocol):
    """Who takes what the callbacks bring; runs in PortAudio's own threads, so it must be quick."""

    def captured(self, block: Captured) -> None:
        """Take a block of the microphone."""
        ...

    def emit(self, buffer: memoryview) -> list[Stretch]:
        """Fill a buffer of the speaker; return what was written."""
        ...

    def emitted(self, block: Emitted) -> None:
        """Take the record of it."""
        ...

    def ended(self) -> None:
        """Learn that a stream has stopped by itself."""
        ...


@dataclass(frozen=True, slots=True)
class Stream:
    """One open direction.

    Attributes:
        device: The microphone or the speaker.
        rate: Frames a second.
        channels: Samples in a frame.
        latency_ms: What PortAudio says of it; 0 where that cannot be.
        raw: The stream of sounddevice.
    """

    device: Device
    rate: int
    channels: int
    latency_ms: float
    raw: RawStream

    def time(self) -> float:
        """Return the device's clock, in seconds."""
        return float(self.raw.time)


def _sensible_ms(latency_s: float) -> float:
    """Under JACK a buffer is taken off what may be nothing, and that is read without its sign."""
    return 1000 * latency_s if 0 <= latency_s < _LONGEST_S else 0.0


def opened(device: Device, kind: Kind, make: Callable[[int, int], RawStream]) -> Stream:
    """Open one direction at the first rate and number of channels that the device takes.

    Args:
        device: Where to.
        kind: Which direction.
        make: Opens a stream at a rate with so many channels.

    Raises:
        Exception: PortAudio's own, if it takes none or is not to be had at all.
    """
    last: Exception | None = None
    for rate, channels in _forms(device, kind):
        try:
            raw = make(rate, channels)
        except portaudio.load().PortAudioError as error:
            code, _ = portaudio.codes(error)
            if code not in {portaudio.BAD_RATE, portaudio.BAD_CHANNELS}:
                raise
            last = error
            continue
        return Stream(device, rate, channels, _sensible_ms(float(raw.latency)), raw)
    raise last or ValueError("a device without a rate")


def _forms(device: Device, kind: Kind) -> Iterator[tuple[int, int]]:
    most = device.channels(kind)
    rates = dict.fromkeys((RATE, device.rate, *_RATES))
    for rate in rates:
        for channels in dict.fromkeys((1, 2, most)):
            if channels <= most:
                yield rate, channels


def capture(library: ModuleType, device: Device, taker: Taker, clock: Clock) -> Stream:
    """Open a microphone; nothing flows before it is started."""

    def callback(data: memoryview, frames: int, time: Times, flags: Flags) -> None:
        came_ns = clock.now()
        moments = (time.inputBufferAdcTime, time.currentTime, came_ns)
        taker.captured(Captured(bytes(data), frames, *moments, bool(flags.input_overflow)))

    def make(rate: int, channels: int) -> RawStream:
        stream: RawStream = library.RawInputStream(
            **_settings(device, rate, channels), callback=callback, finished_callback=taker.ended
        )
        return stream

    return opened(device, "microphone", make)


def emit(library: ModuleType, device: Device, taker: Taker, clock: Clock) -> Stream:
    """Open a speaker; nothing flows before it is started."""

    def callback(data: memoryview, frames: int, time: Times, flags: Flags) -> None:
        came_ns = clock.now()
        stretches = taker.emit(memoryview(data).cast("B"))
        moments = (time.outputBufferDacTime, time.currentTime, came_ns)
        taker.emitted(Emitted(stretches, frames, *moments, bool(flags.output_underflow)))

    def make(rate: int, channels: int) -> RawStream:
        stream: RawStream = library.RawOutputStream(
            **_settings(device, rate, channels), callback=callback, finished_callback=taker.ended
        )
        return stream

    return opened(device, "speaker", make)


def _settings(device: Device, rate: int, channels: int) -> dict[str, Any]:
    return {
        "samplerate": rate,
        "blocksize": rate * _BLOCK_MS // 1000,
        "device": device.number,
        "channels": channels,
        "dtype": "int16",
        "latency": "low",
    }

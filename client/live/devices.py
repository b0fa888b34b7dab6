"""The sound devices of this machine: what `--list-devices` shows, and which one a user means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from voxmeter.client.live import portaudio
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError

Kind = Literal["microphone", "speaker"]


@dataclass(frozen=True, slots=True)
class Device:
    """One device as PortAudio lists it.

    Attributes:
        number: Its place in the list; another one after something was plugged in.
        name: What the system calls it.
        host: The system it is reached through, such as `ALSA`.
        inputs: Channels that can be recorded at once.
        outputs: Channels that can be played at once.
        rate: The rate that it prefers, samples a second.
        input_ms: The latency that it offers for recording.
        output_ms: Likewise for playing.
        default_for: What it is the default for.
    """

    number: int
    name: str
    host: str
    inputs: int
    outputs: int
    rate: int
    input_ms: float
    output_ms: float
    default_for: frozenset[Kind] = frozenset()

    def channels(self, kind: Kind) -> int:
        """Return how many channels it has for a purpose; 0: it has none."""
        return self.inputs if kind == "microphone" else self.outputs

    @property
    def words(self) -> str:
        """Its name and the system behind it, on one line."""
        return printable(f"{self.name}, {self.host}", 80)


def devices(library: ModuleType) -> list[Device]:
    """Return every device.

    Args:
        library: The module of `portaudio.load`.
    """
    hosts = [str(host["name"]) for host in library.query_hostapis()]
    chosen: tuple[tuple[Kind, str], ...] = (("microphone", "input"), ("speaker", "output"))
    defaults = {kind: _default(library, key) for kind, key in chosen}
    return [
        Device(
            number=number,
            name=str(row["name"]),
            host=hosts[row["hostapi"]],
            inputs=int(row["max_input_channels"]),
            outputs=int(row["max_output_channels"]),
            rate=round(row["default_samplerate"]),
            input_ms=1000 * float(row["default_low_input_latency"]),
            output_ms=1000 * float(row["default_low_output_latency"]),
            default_for=frozenset(kind for kind, index in defaults.items() if index == number),
        )
        for number, row in enumerate(library.query_devices())
    ]


def _default(library: ModuleType, key: str) -> int | None:
    try:
        return int(library.query_devices(kind=key)["index"])
    except (library.PortAudioError, ValueError):  # there is none
        return None


def list_devices() -> str:
    """Return the table that `voxmeter live --list-devices` prints.

    Raises:
        UserError: If PortAudio is missing or does not start, or there is no device.
    """
    library = portaudio.load()
    found = devices(library)
    if not found:
        raise _none()
    head = ("no.", "name", "system", "in", "out", "rate", "in ms", "out ms", "default")
    rows = [head, *(_row(device) for device in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [_line(row, widths) for row in rows]
    return "\n".join(
        [*lines, "", "Choose by number or by a part of the name: --microphone, --speaker."]
    )


def _row(device: Device) -> tuple[str, ...]:
    return (
        str(device.number),
        printable(device.name, 50),
        printable(device.host, 20),
        str(device.inputs),
        str(device.outputs),
        str(device.rate),
        f"{device.input_ms:.0f}" if device.inputs else "-",
        f"{device.output_ms:.0f}" if device.outputs else "-",
        " ".join(sorted(device.default_for)) or "-",
    )


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    left = {1, 2, 8}
    cells = [
        text.ljust(width) if column in left else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def choose(found: list[Device], wanted: str | None, kind: Kind) -> Device:
    """Return the device that a user means.

    Args:
        found: All devices.
        wanted: A number, or a part of name and system (`usb, ALSA`); None: the default.
        kind: What it is for.

    Raises:
        UserError: If there is none, if several fit, or if it is not for this.
    """
    if not found:
        raise _none()
    if wanted is None:
        return _default_of(found, kind)
    place = f"--{kind} {printable(wanted, 60)}"
    if wanted.strip().isdecimal():
        fitting = [device for device in found if device.number == int(wanted)]
    else:
        fitting = _named(found, wanted)
    usable = [device for device in fitting if device.channels(kind)]
    if len(usable) == 1:
        return usable[0]
    if len(usable) > 1:
        some = ", ".join(f"{device.number} ({device.words})" for device in usable[:6])
        raise UserError(
            place, f"{len(usable)} devices fit: {some}", "give a number, or more of the name"
        )
    if fitting:
        side = "input" if kind == "microphone" else "output"
        raise UserError(place, f"{fitting[0].words} has no {side}", _see(found, kind))
    raise UserError(place, "there is no such device", _see(found, kind))


def _named(found: list[Device], wanted: str) -> list[Device]:
    low = wanted.strip().casefold()
    exact = [device for device in found if low in {device.name.casefold(), device.words.casefold()}]
    return exact or [device for device in found if low and low in device.words.casefold()]


def _default_of(found: list[Device], kind: Kind) -> Device:
    for device in found:
        if kind in device.default_for:
            return device
    usable = [device for device in found if device.channels(kind)]
    if usable:
        return usable[0]
    cure = f"plug one in (a headset has both); {_see(found, kind)}"
    raise UserError(portaudio.PLACE, f"there is no {kind}", cure)


def _see(found: list[Device], kind: Kind) -> str:
    usable = [device for device in found if device.channels(kind)]
    some = ", ".join(f"{device.number} ({device.words})" for device in usable[:4])
    return f"there is {some}" if some else "see `voxmeter live --list-devices`"


def _none() -> UserError:
    folder = Path("/dev/snd")
    if folder.exists() and not _readable(folder):
        return UserError(
            portaudio.PLACE,
            "there is no sound device that you may use",
            "put yourself into the group `audio` (usermod -aG audio NAME) and log in again",
        )
    return UserError(
        portaudio.PLACE,
        "this machine has no sound device",
        "plug in a headset, start the sound server (PulseAudio, PipeWire), or use --web",
    )


def _readable(folder: Path) -> bool:
    import os

    return any(os.access(path, os.R_OK | os.W_OK) for path in folder.glob("pcm*"))

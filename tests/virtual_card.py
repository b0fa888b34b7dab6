"""A sound card for tests: PulseAudio with null sinks, for this test alone, ended by process id.

`speaker` is what a program plays into by default and `mic` what it records from. Both are channels
of one sink, `room`: a recording of the room has the user on the left and the reply on the right,
sample for sample on one timeline, which is the truth that a measured latency is held against.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import IO, Self

from needs import needs

RATE = 48_000
LIMIT_S = 20
_BEFORE_OTHERS = ("nice", "-n", "-15") if os.geteuid() == 0 else ()
FIRST = ("setpriv", "--pdeathsig", "KILL", *_BEFORE_OTHERS)
"""Before a command: it ends with the test, even one that is killed, and goes before other work
where that is allowed, as sound servers do."""

_SPEC = f"rate={RATE} format=s16le"
_CONFIG = f"""
load-module module-native-protocol-unix auth-anonymous=1 socket={{socket}}
load-module module-null-sink sink_name=room {_SPEC} channels=2 channel_map=front-left,front-right
load-module module-remap-sink sink_name=mic_feed master=room {_SPEC} channels=1 \
channel_map=mono master_channel_map=front-left remix=no
load-module module-remap-sink sink_name=speaker master=room {_SPEC} channels=1 \
channel_map=mono master_channel_map=front-right remix=no
load-module module-remap-source source_name=mic master=room.monitor {_SPEC} channels=1 \
channel_map=mono master_channel_map=front-left remix=no
set-default-sink speaker
set-default-source mic
"""


class Recording:
    """What is heard in the room from now on: 16-bit samples, channel after channel."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [*FIRST, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._pcm = bytearray()
        self._grown = Condition()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        self.until(1)

    def _read(self) -> None:
        assert self._process.stdout is not None
        while chunk := os.read(self._process.stdout.fileno(), 65_536):
            with self._grown:
                self._pcm += chunk
                self._grown.notify_all()
        with self._grown:
            self._grown.notify_all()

    @property
    def size(self) -> int:
        """How many bytes were heard so far."""
        return len(self._pcm)

    def until(self, size: int) -> bytes:
        """Return what was heard once that many bytes are there."""
        with self._grown:
            assert self._grown.wait_for(lambda: len(self._pcm) >= size, LIMIT_S), len(self._pcm)
            return bytes(self._pcm)

    def further(self, seconds: float, channels: int = 2) -> bytes:
        """Return all that was heard once so many seconds more are there."""
        return self.until(self.size + round(seconds * RATE) * 2 * channels)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass
class VirtualCard:
    """A running daemon.

    Attributes:
        folder: Its private folder.
        environment: What a program needs so that its default devices are `mic` and `speaker`.
    """

    folder: Path
    environment: dict[str, str]
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start the daemon and wait until sound flows through it steadily."""
        daemon = self.run(*self._command(), stderr=subprocess.PIPE)
        assert daemon.stderr is not None
        _wait_for_line(daemon.stderr, b"Daemon startup complete")
        Thread(target=_drain, args=(daemon.stderr,), daemon=True).start()
        # An idle null sink works in pieces of up to 2 s and loses the beginning of a clip.
        quiet = ("--latency-msec=20", "--raw", f"--rate={RATE}", "--channels=1", "/dev/zero")
        for sink in ("mic_feed", "speaker"):
            self.run("pacat", "-p", f"--device={sink}", *quiet)
        self._warm_up()

    def _command(self) -> tuple[str, ...]:
        return (
            *("pulseaudio", "-n", "-F", str(self.folder / "card.pa"), "--daemonize=no"),
            *("--use-pid-file=no", "--exit-idle-time=-1", "--disallow-exit", "--disable-shm=yes"),
            *("--log-target=stderr", "--log-level=info"),
        )

    def run(self, *command: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a program beside the card; it ends with it."""
        process = subprocess.Popen(
            [*FIRST, *command],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def _warm_up(self) -> None:
        with self.hear("mic", 1) as heard:
            for _ in range(20):
                before = time.perf_counter()
                heard.further(0.2, 1)
                if 0.1 < time.perf_counter() - before < 0.6:
                    return
        raise AssertionError("the virtual sound card gives no steady sound")

    def kill(self) -> None:
        """End the daemon at once, as a card is pulled out; `start` plugs it in again."""
        for process in reversed(self._processes):
            if process.poll() is None:  # else its number may be another's by now
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT_S)
        self._processes.clear()

    def signal(self, number: int) -> None:
        """Send the daemon a signal; SIGSTOP makes it hang."""
        os.kill(self._processes[0].pid, number)

    def say(self, path: Path) -> None:
        """Play a WAV file into the microphone; return when it has been taken."""
        command = ("paplay", "--device=mic_feed", "--latency-msec=60", str(path))
        subprocess.run([*FIRST, *command], env=self.environment, check=True, timeout=60)

    def saying(self, path: Path) -> subprocess.Popen[bytes]:
        """Begin to play a WAV file into the microphone."""
        return self.run("paplay", "--device=mic_feed", "--latency-msec=60", str(path))

    def hear(self, source: str = "room.monitor", channels: int = 2) -> Recording:
        """Record from now on: by default the room, the user on the left, the reply on the right."""
        form = ("--raw", "--format=s16le", f"--rate={RATE}", f"--channels={channels}")
        command = ("parec", f"--device={source}", "--latency-msec=20", *form)
        return Recording(command, self.environment)

    def pactl(self, *words: str) -> str:
        """Have the daemon do something; return what it says."""
        done = subprocess.run(
            ("pactl", *words),
            env=self.environment,
            check=True,
            timeout=LIMIT_S,
            capture_output=True,
            text=True,
        )
        return done.stdout


def _wait_for_line(stream: IO[bytes], wanted: bytes) -> None:
    seen = []
    for line in stream:
        seen.append(line)
        if wanted in line:
            return
    raise AssertionError(b"".join(seen[-20:]))


def _drain(stream: IO[bytes]) -> None:
    with stream:
        for _ in stream:
            pass


@contextmanager
def virtual_card(folder: Path) -> Iterator[VirtualCard]:
    """Start a sound card of its own in a private folder; end it with the block."""
    needs("pulseaudio")
    needs("pactl")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    socket = folder / "native"
    (folder / "card.pa").write_text(_CONFIG.format(socket=socket))
    environment = {
        **os.environ,
        "HOME": str(folder),  # no settings of the user's, whatever they are
        "XDG_RUNTIME_DIR": str(folder),
        "PULSE_RUNTIME_PATH": str(folder),
        "PULSE_STATE_PATH": str(folder),
        "PULSE_SERVER": f"unix:{socket}",
    }
    card = VirtualCard(folder, environment)
    try:
        card.start()
        yield card
    finally:
        card.kill()


@contextmanager
def jack_card(folder: Path, rate: int, *options: str) -> Iterator[VirtualCard]:
    """Start a card of one channel that runs at one rate only; its devices are called `system`."""
    needs("jackd")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = f"voxmeter-{os.getpid()}"
    environment = {
        **os.environ,
        "HOME": str(folder),
        "JACK_DEFAULT_SERVER": server,
        "JACK_NO_AUDIO_RESERVATION": "1",
        "PULSE_SERVER": f"unix:{folder}/none",
    }
    card = VirtualCard(folder, environment)
    form = ("-r", str(rate), "-p", str(rate // 100), "-C", "1", "-P", "1")
    jack = card.run("jackd", "--no-realtime", *options, "-n", server, "-d", "dummy", *form)
    try:
        wait = ("jack_wait", "-w", "-t", str(LIMIT_S), "-s", server)
        subprocess.run(wait, env=environment, check=True, timeout=60, capture_output=True)
        yield card
    finally:
        jack.terminate()  # one that is killed keeps its place among eight servers of this machine
        with suppress(subprocess.TimeoutExpired):
            jack.wait(LIMIT_S)
        card.kill()

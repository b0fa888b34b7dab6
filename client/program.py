"""One long-lived program: started, spoken to in lines, watched, ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import IO

from voxmeter.client.affinity import elsewhere
from voxmeter.client.clock import Clock
from voxmeter.client.guard import Guard
from voxmeter.client.mailbox import Mailbox
from voxmeter.client.terminal import printable
from voxmeter.client.transport import Arrival
from voxmeter.endpoints.codec import Binary, Ended, Message, Text
from voxmeter.endpoints.errors import ConnectionLostError, ProtocolError

NICENESS = 5
"""Priority of programs, behind that of this process; their children inherit it."""

_PIECE = 1 << 16
_DRAIN_S = 1.0
_TAIL_LINES = 20
_TAIL_BYTES = 4096
_SHOWN = 300


class Program:
    """One process in a group of its own, with its pipes read by threads.

    Standard output is lines for whoever takes from `box`, the last of them an `Ended`; of standard
    error the end is kept.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        limit: Longest line that is taken, bytes; four of them may lie unread.
        clock: Stamps the lines.
        guard: Ends it should this process die.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, limit: int, clock: Clock, guard: Guard
    ) -> None:
        self.box = Mailbox(4 * limit)
        self.greeting: Message | None = None
        self._limit, self._clock, self._guard = limit, clock, guard
        self._lock = Lock()
        self._ended = Event()
        self._reaped = False
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        with elsewhere():
            self._child = subprocess.Popen(  # noqa: S603 - what bench.toml names, and nothing else
                command,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        guard.watch(self._child.pid)
        with suppress(OSError):  # a model that computes hard gives way to the one who measures it
            niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
            os.setpriority(os.PRIO_PROCESS, self._child.pid, niceness)
        stdin, stdout, stderr = self._child.stdin, self._child.stdout, self._child.stderr
        if stdin is None or stdout is None or stderr is None:
            raise RuntimeError("a child without pipes")
        self._stdin = stdin
        os.set_blocking(stdin.fileno(), False)
        name = f"program {self._child.pid}"
        self._talk = Thread(target=self._listen, args=(stdout,), name=f"{name} out", daemon=True)
        self._complaints = Thread(
            target=self._keep, args=(stderr,), name=f"{name} err", daemon=True
        )
        self._watch = Thread(target=self._wait, name=name, daemon=True)
        for thread in (self._talk, self._complaints, self._watch):  # the last one joins the others
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether it has not been seen to end."""
        return self._watch.is_alive()

    def last_words(self) -> str:
        """Return its last line on standard error, harmless; "" without one."""
        lines = [line for line in self._tail if line.strip()]
        if not lines:
            return ""
        return printable(lines[-1].decode("utf-8", "replace").strip(), _SHOWN)

    async def write(self, data: bytes) -> None:
        """Hand a line over; return when all of it is in the pipe.

        Raises:
            ConnectionLostError: If the program has ended.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BlockingIOError:
                await _writable(self._stdin.fileno())
            except (OSError, ValueError):  # ValueError: closed
                raise ConnectionLostError(None, "the program has ended") from None

    def finish(self) -> None:
        """Tell it that nothing more will be asked: its standard input ends."""
        with suppress(OSError):
            self._stdin.close()

    def kill(self) -> None:
        """Kill it now, with everything it started that is still in its group."""
        with self._lock:
            if not self._reaped:  # until then nobody else can have its number
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)

    def gone(self, timeout_s: float) -> bool:
        """Wait for its end; free what it held and return True once it has ended."""
        self._watch.join(timeout_s)
        if self._watch.is_alive():
            return False
        self.finish()
        return True

    def _listen(self, stream: IO[bytes]) -> None:
        """Pass on what comes on standard output, line by line, each stamped when it was whole."""
        line = bytearray()
        with stream:
            while data := _read(stream):
                now = self._clock.now()
                line += data
                if b"\n" in data:
                    *whole, rest = bytes(line).split(b"\n")
                    line = bytearray(rest)
                    if not all(self._pass_on(now, one) for one in whole):
                        self._too_much("more than anybody could read, unasked", bytes(line[:64]))
                        return
                if len(line) > self._limit:
                    self._too_much("a line longer than max_message_mib allows", bytes(line[:64]))
                    return
        self._pass_on(self._clock.now(), bytes(line))
        if not self._ended.wait(_DRAIN_S):
            self.kill()  # it closed its standard output: it can answer nothing any more

    def _pass_on(self, now: int, line: bytes) -> bool:
        return not line.strip() or self.box.put(Arrival(now, _message(line)), len(line))

    def _too_much(self, problem: str, line: bytes) -> None:
        self.kill()
        self.box.put(ProtocolError("exec", problem, Binary(line)))

    def _keep(self, stream: IO[bytes]) -> None:
        line = b""
        with stream:
            while data := _read(stream):
                *whole, line = (line + data).split(b"\n")
                line = line[-_TAIL_BYTES:]
                self._tail.extend(one[-_TAIL_BYTES:] for one in whole if one.strip())
        self._tail.append(line)

    def _wait(self) -> None:
        """Wait for the end, then see to it that the whole group has ended."""
        os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()
        with self._lock:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            status = self._child.wait()
            self._reaped = True
        self._guard.forget(self._child.pid)
        self._talk.join(_DRAIN_S)  # somebody outside the group may still hold the pipe
        self._complaints.join(_DRAIN_S)
        words = f"{_how(status)}: {self.last_words() or 'it wrote nothing on standard error'}"
        self.box.put(Arrival(self._clock.now(), Ended(status, words)))


def _read(stream: IO[bytes]) -> bytes:
    return os.read(stream.fileno(), _PIECE)


def _message(line: bytes) -> Message:
    try:
        return Text(line.decode("utf-8").rstrip("\r"))
    except UnicodeDecodeError:
        return Binary(line)


def _how(status: int) -> str:
    if status >= 0:
        return f"the program ended with exit status {status}"
    try:
        return f"the program was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"the program was ended by signal {-status}"


async def _writable(file: int) -> None:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiting.done():
            waiting.set_result(None)

    loop.add_writer(file, wake)
    try:
        await waiting
    finally:
        loop.remove_writer(file)

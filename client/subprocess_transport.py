"""Programs as endpoints: started once, asked again and again, started anew when they have died."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import TracebackType
from typing import Any

from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.guard import Guard
from voxmeter.client.jsonlines import disk
from voxmeter.client.mailbox import size_of
from voxmeter.client.program import Program
from voxmeter.client.terminal import printable
from voxmeter.client.transport import Arrival, Launch, Transport
from voxmeter.endpoints.codec import Address, Binary, Ended, Message, Text
from voxmeter.endpoints.errors import (
    ClipError,
    ConnectError,
    ConnectionLostError,
    ProtocolError,
    UserError,
)
from voxmeter.endpoints.exec_lines import ends

SERVE_CALLABLE = "{serve_callable}"
"""Stands for the path of `serve_callable.py` in a command."""

_MOST_BYTES = 256 * 2**20  # of one reply: more than an hour of sound; a flood ends here
_FINISH_S = 2.0
_NEARLY = 0.95  # of the time that a session waits: this side then says why


class Programs:
    """The processes of one endpoint: as many as it has sessions at a time.

    Args:
        launch: What to start.
        clock: Stamps what they say.

    Raises:
        UserError: If there is no such program or folder.
    """

    def __init__(self, launch: Launch, clock: Clock | None = None) -> None:
        self._launch, self._clock = launch, clock or SystemClock()
        self._command = command(launch)
        self._once = _flag(launch, "once")
        self.limit = launch.wire.max_message_mib * 2**20
        self.folder = launch.folder
        self._guard = Guard()
        self._lock = Lock()
        self._over = False
        self._idle: list[Program] = []
        self._busy: list[Program] = []
        self._dying: list[Program] = []
        self._questions: TemporaryDirectory[str] | None = None
        self._count = 0

    def __enter__(self) -> Callable[[], Transport]:
        self._questions = TemporaryDirectory(prefix="voxmeter-", ignore_cleanup_errors=True)
        return partial(SubprocessTransport, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every program: those at rest may finish, the others are killed."""
        with self._lock:
            self._over = True
        for program in self._idle:
            program.finish()
        for program in self._busy:
            program.kill()
        deadline = self._clock.now() + int(_FINISH_S * 1e9)
        for program in [*self._busy, *self._dying, *self._idle]:
            _see_off(program, max(0.0, (deadline - self._clock.now()) / 1e9))
        self._guard.close()
        if self._questions is not None:
            self._questions.cleanup()

    def now(self) -> int:
        """Return the time by the clock that stamps what programs say, ns."""
        return self._clock.now()

    def question(self) -> Path:
        """Return a path for one question, that no other has."""
        if self._questions is None:
            raise RuntimeError("questions are asked inside the context")
        self._count += 1
        return Path(self._questions.name) / f"{self._count}.wav"

    async def take(self) -> Program:
        """Return a program that has said its first line; start one if none is at rest.

        Raises:
            ConnectError: If it ended before that, cannot be started, or takes too long.
        """
        while self._idle:
            program = self._idle.pop()
            (self._busy if program.alive else self._dying).append(program)
            if program.alive:
                return program
        program = await self._started()
        limit_s = self._launch.connect_timeout_s
        try:
            async with asyncio.timeout(limit_s * _NEARLY):
                program.greeting = await self._greeting(program)
        except TimeoutError:
            said = f"; it wrote: {program.last_words()}" if program.last_words() else ""
            words = f"the program was not ready within {limit_s:g} s (connect_timeout_s){said}"
            self.give_back(program, rested=False)
            raise ConnectError("timeout", words) from None
        except BaseException:
            self.give_back(program, rested=False)
            raise
        return program

    def give_back(self, program: Program, *, rested: bool) -> None:
        """Take a program back; one that is in the middle of something is killed."""
        self._busy.remove(program)
        if rested and program.alive and not self._once:
            self._idle.append(program)
            return
        if rested:
            program.finish()
        else:
            program.kill()
        self._dying.append(program)

    async def _started(self) -> Program:
        loop = asyncio.get_running_loop()
        dying, self._dying = self._dying, []
        starting = loop.run_in_executor(None, self._start, dying)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_unwanted)
            raise

    def _start(self, dying: Sequence[Program]) -> Program:
        for program in dying:  # it may still hold the memory that the next one needs
            _see_off(program, _FINISH_S)
        try:
            program = Program(self._command, self.folder, self.limit, self._clock, self._guard)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConnectError("refused", f"{self._command[0]} does not start: {reason}") from error
        with self._lock:
            if not self._over:
                self._busy.append(program)
                return program
        _see_off(program, 0)
        raise ConnectError("closed", "the endpoint has been left while it started")

    @staticmethod
    async def _greeting(program: Program) -> Message:
        try:
            message = (await program.box.take()).message
        except ProtocolError as error:
            raise ConnectError("closed", str(error)) from error
        if isinstance(message, Ended):
            raise ConnectError("closed", f"before it was ready, {message.reason}", message.code)
        return message


class SubprocessTransport:
    """One question to one program; see `Transport`."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._program: Program | None = None
        self._files: list[Path] = []
        self._named = 0
        self._request: str | None = None

    async def connect(self, address: Address) -> None:  # noqa: ARG002 - the program is known
        """Take a program that is ready, or start one."""
        self._program = await self._programs.take()

    async def send(self, message: Message) -> None:
        """Write a file, or a line in which the files' paths are filled in."""
        match message:
            case Binary(data):
                path = self._programs.question()
                with disk(path):
                    await asyncio.to_thread(path.write_bytes, data)
                self._files.append(path)
            case Text(text):
                request = json.loads(text)
                self._request = str(request["id"])
                line = json.dumps(self._filled(request)) + "\n"
                await self._open().write(line.encode("ascii"))
            case _:
                raise TypeError(f"a program cannot be sent {type(message).__name__}")

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield the line with which the program became ready, then all that it says."""
        program = self._open()
        greeting = program.greeting
        if greeting is not None:
            yield Arrival(self._programs.now(), greeting)
        received = 0
        while True:
            arrival = await program.box.take()
            message = arrival.message
            received += size_of(message)
            if self._request is not None and ends(message, self._request):
                self._request = None
            if isinstance(message, Text) and '"path"' in message.data:
                for one in await self._with_file(message):
                    received += size_of(one)
                    yield Arrival(arrival.t_ns, one)
            else:
                yield arrival
            if received > _MOST_BYTES:
                problem = f"more than {_MOST_BYTES // 2**20} MiB in one reply"
                raise ProtocolError("exec", problem, message)
            if isinstance(message, Ended):
                return

    async def rtt_ms(self) -> float | None:
        """Return None: a program that answers questions answers nothing else."""
        return None

    async def close(self) -> None:
        """Give the program back if it has finished its reply, else kill it."""
        if self._program is not None:
            program, self._program = self._program, None
            ready = isinstance(program.greeting, Text) and '"ready"' in program.greeting.data
            self._programs.give_back(program, rested=ready and self._request is None)
        for path in self._files:
            with suppress(OSError):
                path.unlink()

    def _open(self) -> Program:
        if self._program is None:
            raise ConnectionLostError(None, "not connected")
        return self._program

    def _filled(self, request: dict[str, Any]) -> dict[str, Any]:
        files, self._named = self._files[self._named :], len(self._files)
        for one in (request, *request["history"]):
            if one["audio"] is not None:
                one["audio"] = str(files[one["audio"]])
        return request

    async def _with_file(self, message: Text) -> list[Message]:
        """Return a line, and the samples of the file that it names, if it is one of audio."""
        from voxmeter.client.reply_files import reply

        try:
            told = json.loads(message.data)
            named = told["path"] if told["event"] == "audio" else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return [message]  # the codec says what is wrong with it
        if not isinstance(named, str) or told.get("pcm_b64") is not None:
            return [message]
        path = self._programs.folder / named
        try:
            pcm, rate = await asyncio.to_thread(reply, path, self._programs.limit)
        except ClipError as error:
            raise ProtocolError("exec", printable(str(error), 300), message) from None
        return [Text(json.dumps({**told, "sample_rate": rate})), Binary(pcm)]


def command(launch: Launch) -> list[str]:
    """Return the program and its arguments, found on this machine.

    Raises:
        UserError: If the folder or the program is not there.
    """
    if not launch.folder.is_dir():
        found = f"{printable(str(launch.folder))} is not a folder"
        raise UserError(f"{launch.place} folder", found, "give the folder where the program runs")
    ours = str(Path(__file__).with_name("serve_callable.py"))
    words = [word.replace(SERVE_CALLABLE, ours) for word in launch.command]
    name = str(Path(words[0]).expanduser()) if words[0].startswith("~") else words[0]
    path = launch.folder / name if os.sep in name else shutil.which(name)
    place = f"{launch.place} command"
    shown = printable(name, 200)
    if path is None:
        raise UserError(place, f"there is no program {shown}", "install it, or give its whole path")
    if not Path(path).is_file():
        raise UserError(place, f"there is no file {shown}", f"paths start from {launch.folder}")
    if not os.access(path, os.X_OK):
        cure = "put its interpreter before it, or make it executable (chmod +x)"
        raise UserError(place, f"{shown} is not executable", cure)
    return [str(path) if os.sep in name else name, *words[1:]]


def _flag(launch: Launch, name: str) -> bool:
    value = launch.options.get(name, False)
    if not isinstance(value, bool):
        raise UserError(
            f"{launch.place} options.{name}", f"is {value!r:.60}", "write true or false"
        )
    return value


def _see_off(program: Program, timeout_s: float) -> None:
    """Wait for a program's end; kill it if that takes too long."""
    if not program.gone(timeout_s):
        program.kill()
        program.gone(_FINISH_S)


def _unwanted(starting: asyncio.Future[Program]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()

"""Python functions as endpoints: called in threads of this process, beside the event loop."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from voxmeter.client import serve_callable
from voxmeter.client.affinity import leave
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.mailbox import Mailbox, size_of
from voxmeter.client.terminal import printable
from voxmeter.client.transport import Arrival, Launch, Transport
from voxmeter.endpoints.codec import Address, Binary, Message, Text
from voxmeter.endpoints.errors import ConnectError, ProtocolError, UserError
from voxmeter.endpoints.exec_lines import LINES_OPTIONS

OPTIONS = {
    "callable": "the function: 'file.py:function' or 'package.module:function'; needed",
    "waveform": "what it is given: 'torch', 'numpy', 'list' or 'auto' (default: the first of "
    "them that is installed)",
    **LINES_OPTIONS,
}
"""Every option of kind `python`, with what it does."""

_SHOWN = 400
_PATIENCE_S = 1.0
_MOST_BYTES = 256 * 2**20  # of one reply: more than an hour of sound; a flood ends here


class Functions:
    """One function, and the threads that call it: as many as there are sessions at a time.

    Args:
        launch: With the options `callable` and `waveform`.
        clock: Stamps what the function says.

    Raises:
        UserError: If there is no such file or module.
    """

    def __init__(self, launch: Launch, clock: Clock | None = None) -> None:
        self._launch = launch
        self._target = _target(launch)
        self._wanted = _waveform(launch)
        self._waveform = ""
        self._lock = Lock()
        self._function: Callable[..., Any] | None = None
        self._idle: list[Hand] = []
        self.limit = 4 * launch.wire.max_message_mib * 2**20
        self.clock = clock or SystemClock()

    def __enter__(self) -> Callable[[], Transport]:
        return partial(PythonTransport, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the threads go that are at rest; those amid a call end with the process."""
        for hand in self._idle:
            hand.rest()

    async def take(self) -> Hand:
        """Return a thread with nothing to do, once the function's module is there.

        Raises:
            ConnectError: If the module cannot be imported or has no such function.
        """
        hand = self._idle.pop() if self._idle else Hand(self._target)
        try:
            await asyncio.wrap_future(hand.call(self._load))
        except ConnectError:
            self._idle.append(hand)
            raise
        return hand

    def give_back(self, hand: Hand) -> None:
        """Take back a thread whose call has ended."""
        self._idle.append(hand)

    def answers(self, request: dict[str, Any], files: list[bytes]) -> Iterator[Message]:
        """Call the function; yield the lines of its reply, and its samples.

        Args:
            request: The question's line.
            files: The WAV files that numbers in it stand for.
        """
        name = request["id"]
        for turn in request["history"]:
            if turn["audio"] is not None:
                turn["audio"] = serve_callable.waveform(files[turn["audio"]], self._waveform)
        sound, rate = serve_callable.waveform(files[request["audio"]], self._waveform)
        for piece in serve_callable.replies(self._load(), sound, rate, request):
            match piece:
                case serve_callable.Words(text):
                    yield _line(name, "text", text=text)
                case serve_callable.Samples(pcm, own_rate):
                    yield from _samples(name, pcm, own_rate)
                case serve_callable.File(file):
                    yield from _samples(name, *self._decoded(file))
        yield _line(name, "done")

    def _decoded(self, file: str | bytes) -> tuple[bytes, int]:
        from voxmeter.client.reply_files import decoded, reply

        if isinstance(file, bytes):
            return decoded(file, "the bytes that it returned")
        return reply(self._launch.folder / file, self.limit)

    def _load(self) -> Callable[..., Any]:
        """Return the function; the first call imports it."""
        with self._lock:
            if self._function is None:
                folder = str(self._launch.folder.resolve())
                if folder not in sys.path:
                    sys.path.append(folder)  # behind everything else: nothing here is hidden by it
                try:
                    self._waveform = serve_callable.chosen(self._wanted)
                    self._function = serve_callable.load(self._target, self._launch.folder)
                except BaseException as error:  # noqa: BLE001 - foreign code, which may even exit
                    words = printable(serve_callable.explained(error), _SHOWN)
                    raise ConnectError("closed", words) from None
            return self._function


class Hand:
    """A thread that does one thing after another.

    Args:
        name: What it is for.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=f"python {name}", daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Return what a call returns or raises, once its turn has come."""
        future: Future[Any] = Future()

        def job() -> None:
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def rest(self) -> None:
        """End the thread when it has nothing left to do."""
        self._jobs.put(None)
        self._thread.join(_PATIENCE_S)

    def _work(self) -> None:
        leave()
        while (job := self._jobs.get()) is not None:
            job()


class PythonTransport:
    """One question to one function; see `Transport`."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._box = Mailbox(functions.limit)
        self._hand: Hand | None = None
        self._files: list[bytes] = []
        self._call: Future[Any] | None = None
        self._wanted = True

    async def connect(self, address: Address) -> None:  # noqa: ARG002 - the function is known
        """Take a thread; the first one imports the function."""
        self._hand = await self._functions.take()
        self._put(Text('{"event": "ready"}'))

    @property
    def idle(self) -> bool:
        """Whether no call is under way."""
        return self._call is None or self._call.done()

    async def send(self, message: Message) -> None:
        """Keep a file, or call the function with a request."""
        match message:
            case Binary(data):
                self._files.append(data)
            case Text(text) if self._hand is not None:
                request, files = json.loads(text), self._files
                self._files = []
                self._call = self._hand.call(partial(self._answer, request, files))
            case _:
                raise TypeError(f"a function cannot be sent {type(message).__name__}")

    async def receive(self) -> AsyncIterator[Arrival]:
        """Yield the lines of the reply, and its samples."""
        received = 0
        while True:
            arrival = await self._box.take()
            received += size_of(arrival.message)
            yield arrival
            if received > _MOST_BYTES:
                problem = f"more than {_MOST_BYTES // 2**20} MiB in one reply"
                raise ProtocolError("python", problem, arrival.message)

    async def rtt_ms(self) -> float | None:
        """Return None: there is no connection."""
        return None

    async def close(self) -> None:
        """Give the thread back; one that is still amid its call is left alone with it."""
        self._wanted = False
        if self._hand is not None and self.idle:
            self._functions.give_back(self._hand)
        self._hand = None

    def _answer(self, request: dict[str, Any], files: list[bytes]) -> None:
        """Call the function; its thread does this."""
        try:
            for message in self._functions.answers(request, files):
                if not self._wanted:
                    return
                if not self._put(message):
                    self._box.put(ProtocolError("python", "more than anybody could hear", message))
                    return
        except BaseException as error:  # noqa: BLE001 - foreign code, which may even exit
            words = printable(serve_callable.explained(error), _SHOWN)
            self._put(_line(request["id"], "error", text=words))

    def _put(self, message: Message) -> bool:
        return self._box.put(Arrival(self._functions.clock.now(), message), size_of(message))


def _target(launch: Launch) -> str:
    """Return what the option `callable` names, if it is there to be imported."""
    place = f"{launch.place} options.callable"
    target = launch.options.get("callable")
    if not isinstance(target, str) or not target.strip():
        cure = 'write callable = "my_model.py:answer" (voxmeter endpoints python shows how)'
        raise UserError(place, "is missing" if target is None else "is not text", cure)
    module, _ = serve_callable.split(target)
    if module.endswith(".py"):
        if not (launch.folder / module).is_file():
            found = f"there is no file {printable(module, 200)}"
            raise UserError(place, found, f"paths start from {launch.folder}")
        return target
    first = module.partition(".")[0]
    beside = any((launch.folder / name).exists() for name in (f"{first}.py", first))
    if not beside and (not first.isidentifier() or importlib.util.find_spec(first) is None):
        found = f"there is no module {printable(first, 200)}"
        raise UserError(place, found, "install it, or name a file: callable = 'file.py:function'")
    return target


def _waveform(launch: Launch) -> str:
    kind = launch.options.get("waveform", "auto")
    if kind not in serve_callable.WAVEFORMS:
        known = ", ".join(serve_callable.WAVEFORMS)
        raise UserError(f"{launch.place} options.waveform", f"is {kind!r:.60}", f"known: {known}")
    return str(kind)


def _samples(name: str, pcm: bytes, rate: int) -> Iterator[Message]:
    yield _line(name, "audio", path="-", sample_rate=rate)
    yield Binary(pcm)


def _line(name: str, event: str, **fields: Any) -> Text:  # noqa: ANN401 - fields of a JSON line
    return Text(json.dumps({"id": name, "event": event, **fields}))

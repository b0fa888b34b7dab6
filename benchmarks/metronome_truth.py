"""How true the metronome is, checked by a client that shares no code with the session driver.

Usage: python benchmarks/metronome_truth.py [--sessions 1,50] [--turns N] [--query "lead_ms=200"]
       [--protocol openai-realtime|http]

Starts `voxmeter serve metronome` as a process, speaks to it in real time over bare websockets, or
asks it by HTTP requests written out byte by byte, and prints for each number of sessions, in
milliseconds (p50, p99, largest):

    own error       the truth's first_packet_ns - user_end_ns - delay_ms: how late it is itself
    user end        truth user_end_ns - our send of the last voiced sample, or of the request
    first packet    our arrival of the first audio - truth first_packet_ns
    first audible   what our own player hears first - truth first_audible_ns
    latency         our first audible - our end of speech, less the truth's: our whole error
"""

from __future__ import annotations

import argparse
import array
import asyncio
import base64
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.client import ClientConnection, connect

RATE = 24_000
FRAME = RATE // 50
QUIET_FRAMES = 25
SPEECH_FRAMES = 30
SPARE = 120  # samples of quiet behind the last voiced one, in its own frame
LOUD = 328  # of 32768: -40 dBFS


@dataclass
class Turn:
    """What this client saw of one turn, ns."""

    tag: str
    end_ns: int = 0
    first_ns: int = 0
    audible_ns: int = 0

    def play(self, pcm: bytes, now_ns: int, free_ns: int) -> int:
        """Play samples at their arrival or behind those before; return when they are over, ns."""
        self.first_ns = self.first_ns or now_ns
        begin = max(now_ns, free_ns)
        samples = array.array("h", pcm)
        if not self.audible_ns:
            loud = next((k for k, one in enumerate(samples) if abs(one) >= LOUD), None)
            if loud is not None:
                self.audible_ns = begin + loud * 1_000_000_000 // RATE
        return begin + len(samples) * 1_000_000_000 // RATE


class Connection(ClientConnection):
    """Knows when the last data arrived."""

    arrived_ns = 0

    def data_received(self, data: bytes) -> None:
        """Stamp, then parse."""
        self.arrived_ns = time.perf_counter_ns()
        super().data_received(data)


def append(samples: array.array[int]) -> str:
    """Return the message that carries a frame."""
    audio = base64.b64encode(samples.tobytes()).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


def frames() -> list[str]:
    """Return quiet, a buzz whose last voiced sample is known, and quiet for ever (the last one)."""
    quiet = array.array("h", bytes(2 * FRAME))
    tones = [
        array.array("h", (12_000 if (n * FRAME + k) // 80 % 2 else -12_000 for k in range(FRAME)))
        for n in range(SPEECH_FRAMES)
    ]
    for k in range(FRAME - SPARE, FRAME):
        tones[-1][k] = 0
    return [*[append(quiet)] * QUIET_FRAMES, *map(append, tones), append(quiet)]


async def speak(
    connection: Connection, messages: list[str], turn: Turn, stop: asyncio.Event
) -> None:
    """Send the question in real time, then quiet until the reply is over."""
    start, number = time.perf_counter_ns(), 0
    while not stop.is_set():
        due = start + (number + 1) * FRAME * 1_000_000_000 // RATE
        await asyncio.sleep(max(0.0, (due - time.perf_counter_ns()) / 1e9))
        await connection.send(messages[min(number, len(messages) - 1)])
        if number == QUIET_FRAMES + SPEECH_FRAMES - 1:
            turn.end_ns = time.perf_counter_ns() - SPARE * 1_000_000_000 // RATE
        number += 1


async def listen(connection: Connection, turn: Turn, stop: asyncio.Event) -> None:
    """Play the reply as it comes."""
    free_ns = 0
    while True:
        message = json.loads(await connection.recv())
        if message["type"] == "response.output_audio.delta":
            pcm = base64.b64decode(message["delta"])
            free_ns = turn.play(pcm, connection.arrived_ns, free_ns)
        elif message["type"] == "response.done":
            stop.set()
            return
        elif message["type"] == "error":
            raise SystemExit(message["error"]["message"])


async def session(url: str, tag: str, turns: int, wait_s: float) -> list[Turn]:
    """Hold one session of several turns."""
    await asyncio.sleep(wait_s)
    done, messages = [], frames()
    async with connect(
        f"{url}?tag={tag}", compression=None, create_connection=Connection
    ) as connection:
        assert isinstance(connection, Connection)  # noqa: S101
        for _ in range(turns):
            turn, stop = Turn(tag), asyncio.Event()
            await asyncio.gather(
                speak(connection, messages, turn, stop), listen(connection, turn, stop)
            )
            done.append(turn)
    return done


class Poster(asyncio.Protocol):
    """Keeps what comes, with its moment."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        """Stamp."""
        self.came.put_nowait((time.perf_counter_ns(), data))


async def hear(poster: Poster, turn: Turn) -> None:
    """Play an answer in chunks as it comes."""
    data, free_ns = b"", 0
    while b"\r\n\r\n" not in data:
        now, more = await poster.came.get()
        data += more
    if b" 200 " not in data.partition(b"\r\n")[0]:
        raise SystemExit(data.decode(errors="replace"))
    data = data[data.index(b"\r\n\r\n") + 2 :]
    while True:
        while b"\r\n" in data[2:]:  # a chunk: a line end, its size, a line end, its bytes
            size, _, rest = data[2:].partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length or not length:
                break
            free_ns, data = turn.play(rest[:length], now, free_ns), rest[length:]
        if data == b"\r\n0\r\n\r\n":
            return
        now, more = await poster.came.get()
        data += more


async def requests(url: str, tag: str, turns: int, wait_s: float) -> list[Turn]:
    """Ask several times over one connection."""
    await asyncio.sleep(wait_s)
    sound = [base64.b64decode(json.loads(frame)["audio"]) for frame in frames()]
    body = b"".join(sound)
    place = urlsplit(url)
    head = (
        f"POST /?reply=pcm16&input_rate={RATE}&tag={tag} HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    loop, done = asyncio.get_running_loop(), []
    transport, poster = await loop.create_connection(Poster, place.hostname or "", place.port or 0)
    for _ in range(turns):
        turn = Turn(tag, time.perf_counter_ns())
        transport.write(head.encode() + body)
        await hear(poster, turn)
        done.append(turn)
    transport.close()
    return done


async def sessions(url: str, count: int, turns: int) -> list[Turn]:
    """Hold sessions side by side, out of step with each other."""
    hold = requests if url.startswith("http") else session
    held = [hold(url, f"s{n}", turns, n * 0.0173) for n in range(count)]
    return [turn for each in await asyncio.gather(*held) for turn in each]


def spread(values: list[float]) -> str:
    """Return p50, p99 and the largest, ms."""
    ordered = sorted(values)
    at = [ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)] for q in (0.5, 0.99)]
    return "".join(f"{value:9.3f}" for value in (*at, ordered[-1]))


def compare(seen: list[Turn], truth: list[dict[str, Any]], delay_ms: float, cpu: float) -> None:
    """Print how far the two accounts are apart."""
    by_turn: dict[str, list[dict[str, Any]]] = {}
    for row in truth:
        by_turn.setdefault(row["tag"], []).append(row)
    pairs = [(turn, by_turn[turn.tag].pop(0)) for turn in seen]

    def column(name: str, values: list[float]) -> None:
        print(f"  {name:<15}{spread([value / 1e6 for value in values])}")

    print(
        f"  {'ms':<15}{'p50':>9}{'p99':>9}{'max':>9}   n = {len(pairs)}, server CPU {cpu:.2f} cores"
    )
    column(
        "own error",
        [row["first_packet_ns"] - row["user_end_ns"] - delay_ms * 1e6 for _, row in pairs],
    )
    column("user end", [row["user_end_ns"] - turn.end_ns for turn, row in pairs])
    column("first packet", [turn.first_ns - row["first_packet_ns"] for turn, row in pairs])
    column("first audible", [turn.audible_ns - row["first_audible_ns"] for turn, row in pairs])
    column(
        "latency",
        [
            (turn.audible_ns - turn.end_ns) - (row["first_audible_ns"] - row["user_end_ns"])
            for turn, row in pairs
        ],
    )


def measure(protocol: str, query: str, count: int, turns: int) -> None:
    """Serve, hold the sessions, compare."""
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.jsonl"
        command = ["serve", "metronome", f"?{query}", "--protocol", protocol, "--truth", str(truth)]
        with subprocess.Popen(  # noqa: S603 - this project's own command
            [sys.executable, "-m", "voxmeter", *command, "--until-stdin-closes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None  # noqa: S101
            assert server.stdin is not None  # noqa: S101
            url = server.stdout.readline().split()[1]
            begun = time.perf_counter()
            seen = asyncio.run(sessions(url, count, turns))
            lasted = time.perf_counter() - begun
            server.stdin.close()
            server.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        rows = [json.loads(line) for line in truth.read_text().splitlines()]
    delay_ms = float(parse_qs(query).get("delay_ms", ["300"])[0])
    print(f"{count} session(s), {query}")
    compare(seen, rows, delay_ms, (used.ru_utime + used.ru_stime) / lasted)


def main() -> None:
    """Measure each number of sessions in turn; each in a process of its own, for its CPU time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", default="1,50")
    parser.add_argument("--turns", type=int, default=0, help="a session (default: enough for p99)")
    parser.add_argument("--query", default="delay_ms=300")
    parser.add_argument(
        "--protocol", default="openai-realtime", choices=("openai-realtime", "http")
    )
    args = parser.parse_args()
    for count in map(int, args.sessions.split(",")):
        child = os.fork()
        if child == 0:
            measure(args.protocol, args.query, count, args.turns or max(3, -(-100 // count)))
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()

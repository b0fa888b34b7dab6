"""Run by tests beside a virtual sound card: opens it as a live session does, tells what happens.

PortAudio reads its surroundings once in a process, so each test has a process of its own. It takes
words on standard input: `play FILE`, `clear`, `quit`; it prints one line of JSON for each thing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

from voxmeter.client import event_loop
from voxmeter.client.clock import SystemClock
from voxmeter.client.live.card import open_card
from voxmeter.client.live.sound import Block, Played, Sound, Trouble
from voxmeter.endpoints.errors import UserError


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


async def main(folder: Path, microphone: str | None, speaker: str | None, *, echo: bool) -> None:
    clock = SystemClock()
    try:
        async with open_card(microphone, speaker, clock=clock, echo=echo) as sound:
            say(event="open", **asdict(sound.facts))
            obeying = asyncio.create_task(obey(sound))
            await tell(sound, folder, clock)
            await obeying
    except UserError as error:
        say(event="refused", text=str(error))


async def obey(sound: Sound) -> None:
    """Do what standard input says."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while words := (await lines.readline()).decode().split():
        if words[0] == "play":
            sound.play(await asyncio.to_thread(Path(words[1]).read_bytes))
        elif words[0] == "clear":
            say(event="cleared", samples=sound.clear())
        else:
            break
    pipe.close()
    await sound.close()


async def tell(sound: Sound, folder: Path, clock: SystemClock) -> None:
    """Print everything; keep the microphone in `heard.raw`."""
    first = True
    with (folder / "heard.raw").open("wb") as heard:
        async for event in sound.events():
            if isinstance(event, Block):
                heard.write(event.pcm)
                hop = clock.now() - event.came_ns
                if first:
                    say(event="listening")
                first = False
                say(
                    event="block",
                    taken=event.taken_ns,
                    came=event.came_ns,
                    hop=hop,
                    n=len(event.pcm),
                )
            elif isinstance(event, Played):
                say(event="played", at=event.position, n=event.samples, heard=event.heard_ns)
            elif isinstance(event, Trouble):
                say(event="trouble", kind=event.problem, text=event.text, count=event.count)
    say(event="over", rate=sound.facts.rate)


if __name__ == "__main__":
    options = [word or None for word in sys.argv[2:4]] + [None, None]
    with event_loop.undisturbed(), asyncio.Runner(loop_factory=event_loop.new_loop) as runner:
        runner.run(main(Path(sys.argv[1]), options[0], options[1], echo="echo" in sys.argv[4:]))

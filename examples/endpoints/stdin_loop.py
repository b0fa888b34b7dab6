"""Makes an endpoint (kind "exec") of a program that asks for its input on a terminal.

Many research models come with such a program: it prints a question ("Your Wav Path:"), reads a
line, prints its answer, and begins again. This one starts it, answers what it asks, and passes on
what it says as the lines of JSON that voxmeter reads.

    python stdin_loop.py --ask REGEX ANSWER [--ask REGEX ANSWER ...] --text REGEX [--audio REGEX]
        -- PROGRAM ARGUMENT...

`--ask`: what the program prints before it reads a line, and the line it gets; in it `{audio}` is
the path of the question as a WAV file and `{text}` what is asked in writing, else the instructions.
The first `--ask` begins a turn, so that it also ends the one before. `--text` and `--audio` find
words and the path of a sound file in all that was printed in a turn; their first group counts.

Standard library only, Python 3.8 or newer. The program runs in its own environment:
`-- /opt/salmonn/bin/python cli_inference.py ...`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from typing import Any, TextIO

_LAST_WORDS = 300


class Loop:
    """The program, and what it has said since it was last answered."""

    def __init__(self, command: list[str]) -> None:
        # Without this, what it prints stays in its buffer until it asks the next question.
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._said = ""

    def until(self, question: str) -> str:
        """Return what it says before it asks this; raise EOFError if it ends instead."""
        assert self._program.stdout is not None
        pattern = re.compile(f"(?:{question})\\s*\\Z")
        while (found := pattern.search(self._said)) is None:
            data = os.read(self._program.stdout.fileno(), 65536)
            if not data:
                status = self._program.wait()
                raise EOFError(f"the program ended (status {status}): {last_line(self._said)}")
            self._said += data.decode("utf-8", "replace").replace("\r\n", "\n")
        before, self._said = self._said[: found.start()], ""
        return before

    def answer(self, line: str) -> None:
        """Give it one line."""
        assert self._program.stdin is not None
        self._program.stdin.write((" ".join(line.split()) + "\n").encode())
        self._program.stdin.flush()


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" =-\t")]
    return lines[-1][:_LAST_WORDS] if lines else "it said nothing"


def found(pattern: str | None, text: str) -> str:
    """Return the first group of a pattern in a text, "" where it does not match."""
    match = re.search(pattern, text, re.DOTALL) if pattern else None
    return match[1].strip() if match else ""


def turn(
    loop: Loop, asks: list[list[str]], values: dict[str, str], text: str | None, audio: str | None
) -> list[dict[str, Any]]:
    """Answer what the program asks; return the events that its answer stands for."""
    for number, (question, answer) in enumerate(asks):
        if number:
            loop.until(question)
        loop.answer(re.sub(r"\{(audio|text)\}", lambda name: values[name[1]], answer))
    said = loop.until(asks[0][0])
    words, sound = found(text, said), found(audio, said)
    if not words and not sound:
        return [{"event": "error", "kind": "server", "text": last_line(said)}]
    events = [{"event": "text", "text": words}] if words else []
    return [*events, *([{"event": "audio", "path": sound}] if sound else []), {"event": "done"}]


def main() -> int:
    """Answer questions until there are no more."""
    parser = argparse.ArgumentParser(description="Serve a program that asks on a terminal.")
    parser.add_argument("--ask", nargs=2, action="append", required=True)
    parser.add_argument("--text")
    parser.add_argument("--audio")
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    out: TextIO = sys.stdout
    loop = Loop(args.program)
    try:
        loop.until(args.ask[0][0])
        print(json.dumps({"event": "ready", "name": args.program[-1]}), file=out, flush=True)
        for line in sys.stdin:
            question = json.loads(line)
            words = question.get("text") or question.get("instructions") or ""
            values = {"audio": question["audio"], "text": words}
            for event in turn(loop, args.ask, values, args.text, args.audio):
                print(json.dumps({"id": question["id"], **event}), file=out, flush=True)
    except EOFError as error:
        print(error, file=sys.stderr)  # its last line becomes the fault of the trial
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

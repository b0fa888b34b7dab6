"""A program for the tests of kind `exec`: the question's instructions say how it behaves."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = """
import base64, json, os, subprocess, sys, time

def say(**line):
    print(json.dumps(line), flush=True)

def answer(name, question):
    words = question["instructions"].split()
    verb = words[0] if words else "hum"
    sound = base64.b64encode(b"\\0\\x40\\0\\xc0" * 4000).decode()
    if verb == "exit":
        print("ValueError: boom", file=sys.stderr, flush=True)
        sys.exit(3)
    elif verb == "abort":
        os.abort()
    elif verb == "signal":
        os.kill(os.getpid(), int(words[1]))
        time.sleep(600)
    elif verb == "odd":
        say(id=name, event="text", text='"path"', path="nowhere.wav")
    elif verb == "broken":
        print('{"path"')
    elif verb == "number":
        say(id=name, event="audio", path=3, sample_rate=16000)
    elif verb in ("hang", "babysit"):
        if verb == "babysit":
            sleep = "import time; time.sleep(600)"
            child = subprocess.Popen([sys.executable, "-I", "-S", "-c", sleep])
            open(words[1], "w").write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    elif verb == "print":
        print("Loading \\x1b[31mcheckpoint")
    elif verb == "echo":
        say(id=name, event="audio", path=question["audio"])
    elif verb == "path":
        say(id=name, event="audio", path=words[1])
    elif verb == "forever":
        while True:
            say(id=name, event="audio", pcm_b64=sound[:400], sample_rate=16000)
            time.sleep(0.01)
    elif verb == "long":
        sys.stdout.write("x" * int(words[1]))
        sys.stdout.flush()
        time.sleep(600)
    elif verb == "close":
        os.close(1)
        time.sleep(600)
    elif verb == "whisper":
        sys.stdout.buffer.write(b"\\xff\\xfe\\n")
    elif verb == "error":
        say(id=name, event="error", text="no memory")
        return
    elif verb == "environment":
        seen = [os.getcwd(), os.environ.get("VOXMETER_TEST"), question]
        say(id=name, event="text", text=json.dumps(seen))
    elif verb == "hum":
        say(id=name, event="text", text=f"{os.getpid()}")
        say(id=name, event="audio", pcm_b64=sound, sample_rate=16000)
    elif verb == "other":
        name = "another"
    say(id=name, event="done")
    if verb == "chat":
        print("a word too much", flush=True)
    if verb == "leave":
        sys.exit(0)

start = sys.argv[1] if sys.argv[1:] else ""
if start == "fail":
    print("no GPU", file=sys.stderr)
    sys.exit(7)
if start == "hang":
    print("loading", file=sys.stderr, flush=True)
    time.sleep(600)
if start == "banner":
    print("Welcome!")
if start == "long":
    sys.stdout.write("x" * (2 << 20))
    sys.stdout.flush()
    time.sleep(600)
print("\\nstarted", file=sys.stderr, flush=True)
say(event="ready", name="toy")
print(flush=True)  # blank lines are nobody's
for line in sys.stdin:
    question = json.loads(line)
    answer(question["id"], question)
"""


def toy(folder: Path, *arguments: str) -> tuple[str, ...]:
    """Write the program into a folder; return the command that starts it."""
    (folder / "toy.py").write_text(SOURCE)
    return (sys.executable, "-I", "-S", "toy.py", *arguments)

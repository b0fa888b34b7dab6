"""Small inputs that claim or unpack to far more than memory end with one line, in little memory.

Each is tried in a process of its own, whose memory is limited and measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import needs_extra

import voxmeter

LIMIT_MIB = 1000
"""Most that the process may hold; each bomb is worth many times as much."""

BEGIN = """
import resource, sys
from pathlib import Path
import numpy as np, soundfile, io, base64, gzip, struct
from voxmeter.client import audio, encodings, reply_files, finish, capture
from voxmeter.endpoints.errors import ClipError, UserError
resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
def caught(call, *errors):
    try:
        call()
    except errors as error:
        assert "\\n" not in str(error), error
        print("said", type(error).__name__, str(error)[:200])
def flac(seconds, rate=8000):
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", rate, 1, format="FLAC", subtype="PCM_16") as out:
        for _ in range(seconds // 60):
            out.write(np.zeros(60 * rate, np.int16))
    return file.getvalue()
"""
END = f"""
held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
assert held < {LIMIT_MIB}, f"{{held}} MiB were held"
"""

BOMBS = {
    "a FLAC file of days": """
caught(lambda: audio.decode(flac(4 * 3600), "x"), ClipError)""",
    "a FLAC header that claims days": """
data = bytearray(flac(60))
data[21] |= 0x0f; data[22:26] = bytes([255] * 4)
pcm = audio.decode(bytes(data), "x")
print("said", pcm.warnings)""",
    "a WAV header that claims 4 GiB": """
head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 2**32 - 1, b"WAVE", b"fmt ", 16, 1, 1, 16000,
    32000, 2, 16, b"data", 2**32 - 2)
print("said", audio.decode(head + bytes(3200), "x").warnings)""",
    "a WAV file of 65535 channels": """
head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 2**31, b"WAVE", b"fmt ", 16, 1, 65535, 16000,
    2**31, 65534, 16, b"data", 2**31)
caught(lambda: audio.decode(head + bytes(1 << 20), "x"), ClipError)""",
    "an MP3 file of hours": """
file = io.BytesIO()
with soundfile.SoundFile(file, "w", 8000, 1, format="MP3") as out:
    for _ in range(20):
        out.write(np.zeros(60 * 8000, np.int16))
caught(lambda: audio.decode(file.getvalue(), "x"), ClipError)""",
    "an Ogg file of hours": """
file = io.BytesIO()
with soundfile.SoundFile(file, "w", 48000, 1, format="OGG", subtype="OPUS") as out:
    for _ in range(16):
        out.write(np.zeros(60 * 48000, np.int16))
caught(lambda: audio.decode(file.getvalue(), "x"), ClipError)""",
    "a sparse file of a terabyte": """
path = Path(sys.argv[1]) / "x.wav"
with path.open("wb") as file:
    file.truncate(1 << 40)
caught(lambda: audio.read(path), ClipError)
caught(lambda: reply_files.reply(path, 64 << 20), ClipError)""",
    "a reply file over its limit": """
path = Path(sys.argv[1]) / "x.flac"
path.write_bytes(flac(3600))
caught(lambda: reply_files.reply(path, 64 << 20), ClipError)""",
    "a suite with a line without end": """
from voxmeter.suites import catalog
path = Path(sys.argv[1]) / "items.jsonl"
with path.open("wb") as file:
    file.write(b'{"id": "')
    file.truncate(1 << 40)
caught(lambda: catalog.load("jsonl", "s", {"path": str(path)}, Path()), UserError)""",
    "a bench without end": """
from voxmeter.client import config
path = Path(sys.argv[1]) / "bench.toml"
with path.open("wb") as file:
    file.write(b"[run]\\nname = ")
    file.truncate(1 << 40)
caught(lambda: config.load(path), UserError)""",
    "a line of a run folder without end": """
from voxmeter.client import jsonlines
path = Path(sys.argv[1]) / "trials.jsonl"
with path.open("wb") as file:
    file.truncate(1 << 40)
caught(lambda: list(jsonlines.read(path)), UserError)""",
}
OPUS = """
writer = encodings.OpusEncoder(24000)
data = b"".join(writer.encode(bytes(24000 * 2 * 10)) for _ in range(6))
encodings.LIMIT_S = 30
decoder = encodings.decoder("opus", 24000)
caught(lambda: decoder.decode(data), ValueError)
rows = [{"kind": "start"}, {"kind": "reply_audio", "reply": "r", "encoding": "opus", "rate": 24000}]
made = capture.Capture("ended", None, rows, [(1, data)], [], None)
print(finish.decode(made)[2])"""
REPLY = {
    "a reply of days in pieces": """
quiet = bytes(48000 * 2 * 60)
row = {"kind": "reply_audio", "reply": "r", "encoding": "pcm16", "rate": 48000}
rows = [{"kind": "start"}, *(dict(row) for _ in range(60))]
made = capture.Capture("ended", None, rows, [(n + 1, quiet) for n in range(60)], [], None)
rate, stream, notes = finish.decode(made)
print("said", notes, len(stream) // rate)
assert notes and len(stream) < 1900 * rate""",
}


def tried(script: str, folder: Path) -> str:
    """Run a script in a process of limited memory; return what it said."""
    words = [sys.executable, "-c", BEGIN + script + END, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(voxmeter.__file__).parents[1])}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", [*BOMBS, *REPLY])
def test_a_bomb_ends_with_one_line_and_in_bounded_memory(name: str, tmp_path: Path) -> None:
    said = tried({**BOMBS, **REPLY}[name], tmp_path)
    assert said.startswith("said"), name
    assert len(said.splitlines()) <= 2


def test_a_piece_of_opus_unpacks_to_no_more_than_its_limit(tmp_path: Path) -> None:
    needs_extra("sphn", "opus")
    said = tried(OPUS, tmp_path)
    assert "a piece of it unpacks to more than" in said
    assert "could not be decoded" in said

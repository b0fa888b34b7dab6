"""Speak the demo suite's questions anew: `python benchmarks/make_demo_items.py [ID ...]`.

Reads suites/demo_items/items.jsonl, speaks each question with its voice, and writes the audio
beside it (Ogg/Opus, 24 kHz, mono). `--check` writes nothing and reads every clip back with
Whisper `tiny.en` instead, printing what it heard and the word error rate. Needs the extra `local`
and espeak-ng. piper draws its own noise, so its clips come out a little different each time.

Pauses inside a clip are kept short of what a server takes for the end of a turn: one clip is one
turn even where 200 ms of quiet end it.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.audio import Pcm, from_pcm16, read, resample, to_pcm16, write_whole
from voxmeter.client.models import locate
from voxmeter.client.speakers import Speaker, speaker
from voxmeter.scoring.asr import Transcriber
from voxmeter.scoring.text import word_error_rate
from voxmeter.scoring.types import Scored

FOLDER = Path(__file__).resolve().parent.parent / "suites" / "demo_items"
RATE = 24_000
PAUSE_MS = 140
EDGE_MS = 30
FADE_MS = 10
SILENCE_MS = 120  # exact silence on both sides, so that the ends of speech are beyond doubt
LEVEL = 0.06  # root mean square of what is not a pause, about -24 dBFS
QUIET = 0.006  # of the same unit at that level: softer is a pause
FRAME = RATE // 200

Samples = NDArray[np.float32]


def main() -> None:
    """Make the clips that are named, all of them by default, or read them back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", nargs="*", help="items to make (default: all)")
    parser.add_argument("--check", action="store_true", help="read the clips back with Whisper")
    wanted = parser.parse_args()
    total = 0.0
    for line in (FOLDER / "items.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if wanted.id and row["id"] not in wanted.id:
            continue
        path = FOLDER / row["audio"]
        if not wanted.check:
            write(path, spoken(row["question"], voice(row["voice"])))
        clip = read(path)
        total += clip.ms
        told = heard(clip, row["question"]) if wanted.check else ""
        print(f"{row['id']:20} {row['voice']:10} {clip.ms / 1000:5.1f} s  {told}")
    print(f"{total / 1000:.1f} s, {sum(f.stat().st_size for f in FOLDER.glob('*.ogg'))} bytes")


@cache
def voice(name: str) -> Speaker:
    """Return a voice, loaded once; all but espeak-ng a little faster than their own pace."""
    return speaker(name, pace=1.0 if name.startswith("espeak-ng") else 1.1)


def spoken(text: str, by: Speaker) -> Samples:
    """Return the speech of a text at `RATE`, levelled, with short pauses and edges.

    Option letters are followed by a comma for the voice: a full stop would make each letter a
    sentence of its own.
    """
    text = re.sub(r"\b([A-D])\. (?=\w)", r"\1, ", text)
    raw = Pcm(np.concatenate(list(by.speak(text))), by.rate)
    samples = resample(raw, RATE).samples
    frames = _loudness(samples)
    loud = frames[frames > frames.max() / 10]
    samples = samples * np.float32(LEVEL / np.sqrt(np.mean(loud**2)))
    samples = np.clip(_without_long_pauses(samples), -1.0, 1.0)
    ramp = np.linspace(0.0, 1.0, FADE_MS * RATE // 1000, dtype=np.float32)
    samples[: len(ramp)] *= ramp
    samples[-len(ramp) :] *= ramp[::-1]
    return np.pad(samples, SILENCE_MS * RATE // 1000)


def _without_long_pauses(samples: Samples) -> Samples:
    """Cut the middle out of every pause longer than `PAUSE_MS`, and the edges to `EDGE_MS`."""
    quiet = _loudness(samples) < QUIET
    kept: list[Samples] = []
    start = 0
    for end in range(1, len(quiet) + 1):
        if end < len(quiet) and quiet[end] == quiet[start]:
            continue
        piece = samples[start * FRAME : end * FRAME]
        if quiet[start]:
            piece = _shortened(piece, first=start == 0, last=end == len(quiet))
        kept.append(piece)
        start = end
    return np.concatenate(kept)


def _shortened(piece: Samples, *, first: bool, last: bool) -> Samples:
    most = (EDGE_MS if first or last else PAUSE_MS) * RATE // 1000
    if len(piece) <= most:
        return piece
    if first:
        return piece[-most:]
    if last:
        return piece[:most]
    return np.concatenate([piece[: most // 2], piece[-(most - most // 2) :]])


def _loudness(samples: Samples) -> Samples:
    whole = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    return np.asarray(np.sqrt((whole**2).mean(axis=1)), dtype=np.float32)


def write(path: Path, samples: Samples) -> None:
    """Write Ogg/Opus, whole or not at all."""
    import soundfile

    buffer = io.BytesIO()
    exact = from_pcm16(to_pcm16(samples))
    soundfile.write(buffer, exact, RATE, format="OGG", subtype="OPUS")
    write_whole(path, buffer.getbuffer())


def heard(clip: Pcm, question: str) -> str:
    """Return what Whisper hears, after its word error rate against the question."""
    text = _whisper().transcribe(resample(clip, 16_000).samples).text
    rate = word_error_rate(question, text)
    return f"{rate.value if isinstance(rate, Scored) else 1:.2f} {text}"


@cache
def _whisper() -> Transcriber:
    return Transcriber(locate("tiny.en", "whisper").path)


if __name__ == "__main__":
    main()

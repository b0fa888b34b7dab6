"""Which Whisper reads short spoken answers best: `python benchmarks/asr_choice.py`.

Every sentence is spoken by every voice and read by both packaged models. Printed are the shares
whose extracted answer is the one that was spoken, with a 95 % interval that resamples sentences,
the word error rate, and processor time a reply as a ratio to the first row.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voxmeter.client.audio import Pcm, resample
from voxmeter.client.models import locate
from voxmeter.client.speakers import speaker
from voxmeter.scoring.answers import extract_answer
from voxmeter.scoring.asr import RATE, AsrSettings, Samples, Transcriber
from voxmeter.scoring.stats import bootstrap_mean
from voxmeter.scoring.text import word_error_rate
from voxmeter.scoring.types import Scored

OPTIONS = ("river", "mountain", "forest", "desert")
LETTERS = [
    (text, letter)
    for letter, option in zip("ABCD", OPTIONS, strict=True)
    for text in (
        f"The correct answer is {letter}.",
        f"I would choose {letter}.",
        f"The correct answer is {letter}, the {option}.",
    )
]
BARE = [(f"{letter}.", letter) for letter in "ABCD"]
NUMBERS = [
    ("The answer is eight.", "8"),
    ("Seven times six is forty two.", "42"),
    ("There are one hundred and twenty minutes.", "120"),
    ("A leap year has three hundred and sixty six days.", "366"),
    ("It is three point five.", "3.5"),
    ("The answer is minus four.", "-4"),
    ("There are twelve.", "12"),
    ("It was in nineteen eighty four.", "1984"),
    ("Fifteen.", "15"),
    ("About thirteen thousand.", "13000"),
]
NAMES = [
    (f"It is {name}.", name)
    for name in ("Tokyo", "William Shakespeare", "Mount Everest", "Jupiter", "Marie Curie", "Oslo")
]


@dataclass(frozen=True)
class Row:
    """One sentence, spoken by one voice, read by one model."""

    kind: str
    voice: str
    cluster: int
    right: bool
    error_rate: float
    cpu_s: float


def main() -> None:
    """Print one line for each model, beam and kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beams", type=int, nargs="*", default=[5])
    parser.add_argument("--show-errors", action="store_true")
    args = parser.parse_args()
    voices = ["hibari", "piper"] + (["espeak-ng"] if shutil.which("espeak-ng") else [])
    spoken = {voice: _speak_all(voice) for voice in voices}
    basis = 0.0
    for model in ("tiny.en", "base"):
        for beam in args.beams:
            rows = _read_all(model, beam, spoken, show=args.show_errors)
            cpu = float(np.mean([row.cpu_s for row in rows]))
            basis = basis or cpu
            print(f"{model} beam {beam}: {cpu / basis:.2f} x the processor time of the first row")
            for kind in dict.fromkeys(row.kind for row in rows):
                for voice in (*voices, "all"):
                    chosen = [row for row in rows if row.kind == kind]
                    _print(kind, voice, [row for row in chosen if voice in {row.voice, "all"}])


def _sentences() -> Sequence[tuple[str, str, str]]:
    kinds = {"letter": LETTERS, "bare letter": BARE, "number": NUMBERS, "name": NAMES}
    return [(kind, text, right) for kind, rows in kinds.items() for text, right in rows]


def _speak_all(voice: str) -> Sequence[Samples]:
    loaded = speaker(voice)
    return [
        resample(Pcm(np.concatenate([*loaded.speak(text)]), loaded.rate), RATE).samples
        for _, text, _ in _sentences()
    ]


def _read_all(
    model: str, beam: int, spoken: dict[str, Sequence[Samples]], *, show: bool
) -> Sequence[Row]:
    whisper = Transcriber(locate(model, "whisper").path, AsrSettings(beam_size=beam))
    rows = []
    for cluster, (kind, text, right) in enumerate(_sentences()):
        for voice, samples in spoken.items():
            start = time.process_time()
            heard = whisper.transcribe(samples[cluster]).text
            cpu_s = time.process_time() - start
            good = _right(kind, heard, right)
            if show and not good:
                print(f"  {model} beam {beam}, {voice}: {text!r} was read {heard!r}")
            error = word_error_rate(text, heard)
            rate = error.value if isinstance(error, Scored) else float("nan")
            rows.append(Row(kind, voice, cluster, good, rate, cpu_s))
    return rows


def _right(kind: str, heard: str, right: str) -> bool:
    if kind == "name":
        return right.casefold() in heard.casefold()
    if kind == "number":
        value = extract_answer(heard, "number").value
        return value is not None and float(str(value)) == float(right)
    return extract_answer(heard, "choice", options=OPTIONS).value == right


def _print(kind: str, voice: str, rows: Sequence[Row]) -> None:
    clusters = np.unique([row.cluster for row in rows], return_inverse=True)[1]
    share = bootstrap_mean(np.array([row.right for row in rows], float), clusters, seed=1)
    errors = float(np.mean([row.error_rate for row in rows]))
    interval = f"{share.low or 0:.2f} to {share.high or 0:.2f}"
    print(
        f"  {kind:12} {voice:10} right {share.value:.2f} ({interval}), n {len(rows)}, "
        f"word error rate {errors:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()

"""Time and cost of a large run on 1, 4 and 16 machines, worked out on paper from measured rates.

.venv/bin/python benchmarks/scale_plan.py
.venv/bin/python benchmarks/scale_plan.py --measure base
.venv/bin/python benchmarks/scale_plan.py --reply-s 12 --whisper-s 0.05 --cores 16 --price 1.2

Nothing is streamed: every rate is an option, with the value that `docs/benchmarks.md` or the
option's own help names. Put your own in their place; `--measure` finds how long Whisper takes here.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

_HOUR = 3600.0
_GB = 1e9


@dataclass(frozen=True, slots=True)
class Rates:
    """What is run, and how fast it goes.

    Attributes:
        items: Questions of the benchmark.
        conditions: Under how many conditions each is asked.
        endpoints: Of how many endpoints.
        clip_s: Mean length of a question, seconds.
        reply_s: Mean wait and reply, seconds.
        connect_s: Mean time to connect and close, seconds.
        sessions: At a time, of one machine.
        cores: Of one machine.
        whisper_s: Processor time for one reply, seconds of one core.
        readers: Models that read at a time on one machine; by default one to each core but one.
        bytes_per_trial: Log and rows.
        bytes_per_s: Sound, for each second of question and reply.
    """

    items: int
    conditions: int
    endpoints: int
    clip_s: float
    reply_s: float
    connect_s: float
    sessions: int
    cores: int
    whisper_s: float
    readers: int
    bytes_per_trial: float
    bytes_per_s: float

    @property
    def trials(self) -> int:
        """How many questions are put."""
        return self.items * self.conditions * self.endpoints

    @property
    def trial_s(self) -> float:
        """How long one session lasts: it goes in real time, whatever the machine."""
        return self.connect_s + self.clip_s + self.reply_s

    @property
    def bytes(self) -> float:
        """What one trial leaves in the run folder."""
        return self.bytes_per_trial + self.bytes_per_s * (self.clip_s + self.reply_s)


def hours(rates: Rates, machines: int) -> tuple[float, float]:
    """Return the hours of streaming and of transcribing, each machine doing its part."""
    streaming = rates.trials * rates.trial_s / (rates.sessions * machines)
    reading = rates.trials * rates.whisper_s / (rates.readers * machines)
    return streaming / _HOUR, reading / _HOUR


def table(rates: Rates, machines: list[int], price: float) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| machines | streaming | reading | together | machine-hours | cost | arriving |"]
    lines.append("|---|---|---|---|---|---|---|")
    for count in machines:
        streaming, reading = hours(rates, count)
        spent = count * (streaming + reading)
        cost = "-" if math.isnan(price) else f"{spent * price:,.0f}"
        mb_per_s = rates.trials * rates.bytes / (streaming * _HOUR) / 1e6
        lines.append(
            f"| {count} | {streaming:.1f} h | {reading:.1f} h | {streaming + reading:.1f} h "
            f"| {spent:.0f} | {cost} | {mb_per_s:.1f} MB/s |"
        )
    return lines


def measured(model: str, clips: int = 16) -> float:
    """Return the processor time that a model takes for one reply here, seconds of one core.

    The demo's clips stand for replies: Whisper reads 30 s whatever the length, so that a short
    reply costs nearly as much as a long one.
    """
    from voxmeter.client import audio
    from voxmeter.client.models import locate
    from voxmeter.scoring.asr import RATE, AsrSettings, Transcriber
    from voxmeter.suites.demo import load

    reader = Transcriber(locate(model, "whisper").path, AsrSettings(cpu_threads=1))
    files = [path for item in load("demo", {}, Path()).items for path in item.files()][: clips + 1]
    sounds = [audio.resample(audio.read(path), RATE).samples for path in files]
    reader.transcribe(sounds[0], "en")  # loads what is loaded once
    began = time.process_time()
    for sound in sounds[1:]:
        reader.transcribe(sound, "en")
    return (time.process_time() - began) / len(sounds[1:])


def main() -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=20_715, help="ADU-Bench has 20,715")
    parser.add_argument("--conditions", type=int, default=4)
    parser.add_argument("--endpoints", type=int, default=3)
    parser.add_argument("--clip-s", type=float, default=5.0, help="assumed; --dry-run knows yours")
    parser.add_argument("--reply-s", type=float, default=5.0, help="assumed, as --dry-run does")
    parser.add_argument("--connect-s", type=float, default=0.3, help="assumed, likewise")
    parser.add_argument("--sessions", type=int, default=50, help="50 take 0.26 of a core")
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--whisper-s", type=float, default=1.5, help="`base` on one core")
    parser.add_argument("--measure", metavar="MODEL", help="take --whisper-s from this machine")
    parser.add_argument("--readers", type=int, help="default: one to a core but one")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--price", type=float, default=math.nan, help="of a machine-hour")
    parser.add_argument("--bytes-per-trial", type=float, default=30_000.0)
    parser.add_argument("--bytes-per-s", type=float, default=60_000.0)
    options = vars(parser.parse_args())
    machines, price = options.pop("machines"), options.pop("price")
    model = options.pop("measure")
    if model:
        options["whisper_s"] = measured(model)
    options["readers"] = options["readers"] or max(1, options["cores"] - 1)
    rates = Rates(**options)
    print(
        f"{rates.trials:,} trials of {rates.trial_s:.1f} s, {rates.sessions} at a time a machine, "
        f"{rates.readers} models a machine at {rates.whisper_s:.2f} s a reply, "
        f"{rates.trials * rates.bytes / _GB:,.0f} GB\n"
    )
    print("\n".join(table(rates, machines, price)))


if __name__ == "__main__":
    main()

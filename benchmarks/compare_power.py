"""How large a shift a comparison finds: `python benchmarks/compare_power.py`.

Asks the metronome without jitter, so that the samples are what this machine and its clock add to a
delay that is known. Then makes pairs of runs from those samples: each latency is the delay, a draw
of the jitter, and one recorded sample; the new run has the planted shift besides. Each pair is
judged as `voxmeter compare` judges it when nobody wrote a gate. The table says how many of the
pairs were called a regression, a second one how many items find 50 ms in 95 of 100 pairs. Beside
the fixed jitters stands this machine's own, as `voxmeter calibrate` last found it. `--live N`
spot-checks N pairs with the shift and N without: three real runs of N times 40 items, cut into N.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxmeter import compare_runs
from voxmeter.client import config, run
from voxmeter.client.audio import write_flac
from voxmeter.client.calibration import last
from voxmeter.client.compare_gates import DEFAULTS
from voxmeter.client.progress import Quiet
from voxmeter.client.servers.voice import babble
from voxmeter.scoring.paired import Floors, Samples, holm, median_difference, outcome, paired

Floats = NDArray[np.float64]
Law = Callable[[np.random.Generator, float, int], Floats]

DELAY_MS = 300
ITEMS = 40
LADDER = (6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300)
LAWS: dict[str, Law] = {
    "even": lambda draw, size, n: draw.uniform(0, size, n),
    "normal": lambda draw, size, n: draw.normal(0, size, n),
}
"""How the jitter is drawn: evenly from 0 to its size as the metronome does, or with it as the
standard deviation, which is 3.5 times as wide."""


def main() -> None:
    """Record, simulate, print both tables; spot-check them where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200, help="simulated pairs a line")
    parser.add_argument("--jitter", type=float, nargs="*", default=[20, 60, 120])
    parser.add_argument("--shift", type=float, nargs="+", default=[0, 25, 50, 100])
    parser.add_argument("--items", type=int, nargs="+", default=[8, 20, 40, 100])
    parser.add_argument("--live", type=int, default=0, metavar="N", help="pairs of real runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        place = Path(parent)
        samples = _latencies(_run(place, 120, 0, 0)) - DELAY_MS
        low, middle, high = np.quantile(samples, [0.01, 0.5, 0.99])
        print(
            f"recorded {len(samples)} latencies without jitter: {middle:+.2f} ms at the median, "
            f"{low:+.2f} to {high:+.2f} ms between the 1st and the 99th percentile"
        )
        own = calibrated_jitter(last())
        laws = [(law, size) for law in LAWS for size in options.jitter]
        laws += [("normal", size) for size in own]
        for size, told in own.items():
            print(f"calibrate found {told}: as a normal jitter, {size:g} ms")
        _print_power(samples, laws, options)
        _print_least(samples, laws, options.pairs)
        if options.live:
            _print_live(place, options.live)


def calibrated_jitter(found: Mapping[str, Any] | None) -> dict[float, str]:
    """Return the jitter that a calibration found, one for each number of sessions.

    A normal distribution whose 99th percentile of the distance from 0 is that of the errors.

    Returns:
        How it was found, in words, by its standard deviation in ms; empty without a calibration.
    """
    return {
        round(error["p99_abs_ms"] / NormalDist().inv_cdf(0.995), 2): (
            f"{error['p99_abs_ms']:g} ms at the 99th percentile of {error['mark']} "
            f"with {error['sessions']} sessions"
        )
        for error in (found or {}).get("errors", ())
        if error["mark"] == "first_audible_ms"
    }


def _print_power(
    samples: Floats, laws: Sequence[tuple[str, float]], options: argparse.Namespace
) -> None:
    print("\n| jitter | items | " + " | ".join(f"{one:g} ms" for one in options.shift) + " |")
    print("|---|---|" + "---|" * len(options.shift))
    for law, jitter in laws:
        for items in options.items:
            found = [
                _share(samples, law, jitter, shift, items, options.pairs) for shift in options.shift
            ]
            cells = " | ".join(f"{one:.0%}" for one in found)
            print(f"| {law}, {jitter:g} ms | {items} | {cells} |", flush=True)


def _print_least(samples: Floats, laws: Sequence[tuple[str, float]], pairs: int) -> None:
    """Print from how many items on 50 ms are found in 95 of 100 pairs, among `LADDER`."""
    print("\n| jitter | items that find 50 ms in 95 % |\n|---|---|")
    for law, jitter in laws:
        least = next(
            (str(n) for n in LADDER if _share(samples, law, jitter, 50, n, pairs) >= 0.95),
            f"over {LADDER[-1]}",
        )
        print(f"| {law}, {jitter:g} ms | {least} |", flush=True)


def _share(samples: Floats, law: str, jitter: float, shift: float, items: int, n: int) -> float:
    draw = np.random.default_rng([int(jitter), int(shift), items, list(LAWS).index(law)])
    found = 0
    for _ in range(n):
        sides = [
            DELAY_MS + LAWS[law](draw, jitter, items) + draw.choice(samples, items)
            for _ in range(2)
        ]
        found += is_regression(sides[0], sides[1] + shift)
    return found / n


def is_regression(base: Floats, new: Floats) -> bool:
    """Judge two runs, one value an item, as the default gate on `first_audible_ms` does.

    The other two default gates see no difference; Holm's correction is for all three.
    """
    numbers = np.arange(len(base))
    pairs = paired(Samples(base, numbers, numbers), Samples(new, numbers, numbers))
    found = median_difference(pairs)
    if found is None or found.p is None:
        return False
    told = DEFAULTS[0]["regression"]
    floors = Floors(told["relative"], told["absolute_ms"])
    adjusted = holm([found.p, 1.0, 1.0])[0]
    return outcome(found, adjusted, float(np.median(base)), "lower", floors) == "regression"


def _print_live(place: Path, pairs: int) -> None:
    """Compare real runs of a metronome with a jitter of 60 ms, 40 items each."""
    base, same, slower = (
        _cut(_run(place, ITEMS * pairs, 60, shift, seed), pairs)
        for seed, shift in enumerate((0.0, 0.0, 50.0))
    )
    for shift, other in ((50, slower), (0, same)):
        ends = [_judged(one, two) for one, two in zip(base, other, strict=True)]
        print(
            f"live, jitter 60 ms, {ITEMS} items, shift {shift} ms: {ends.count(1)} of {pairs} "
            f"regressions, {ends.count(0)} without, {ends.count(2)} not comparable",
            flush=True,
        )


def _judged(base: Path, new: Path) -> int:
    found = compare_runs(base, new)
    gate = next(one for one in found.document["gates"] if one["metric"] == "first_audible_ms")
    print(f"  {found.verdict}: {gate['n']} items, {gate['difference']}", flush=True)
    return found.status


def _cut(path: Path, parts: int) -> list[Path]:
    """Return a run cut into runs of 40 items, each with its share of the rows as they stand."""
    made = []
    for part in range(parts):
        mine = {f"q{number}" for number in range(part * ITEMS, (part + 1) * ITEMS)}
        folder = path / f"part-{part}"
        folder.mkdir()
        told = json.loads((path / "run.json").read_text(encoding="utf-8"))
        planned = [one | {"planned": ITEMS} for one in told.get("planned") or []]
        (folder / "run.json").write_text(json.dumps(told | {"planned": planned}))
        for name in ("items.jsonl", "trials.jsonl"):
            lines = (path / name).read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if json.loads(line)["item"] in mine]
            (folder / name).write_text("".join(kept), encoding="utf-8")
        made.append(folder)
    return made


def _run(place: Path, items: int, jitter: float, shift: float, seed: int = 0) -> Path:
    """Ask the metronome `items` short questions; return the run folder."""
    write_flac(place / "question.flac", babble(8_000, 0.3), 16_000)
    row = {"audio": "question.flac", "kind": "open", "question": ""}
    lines = [json.dumps({"id": f"q{number}", **row}) for number in range(items)]
    (place / f"items-{items}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    query = f"delay_ms={DELAY_MS + shift:g}&jitter_ms={jitter:g}&seed={seed}"
    bench = {
        "run": {
            "name": "power",
            "out": str(place / "runs"),
            "concurrency": 8 if items < 200 else 16,
        },
        "endpoint": [{"name": "m", "kind": "openai-realtime", "builtin": f"metronome?{query}"}],
        "suite": [{"kind": "jsonl", "path": f"items-{items}.jsonl"}],
    }
    prepared = run.prepare(config.parse(bench, "power", place))
    with run.create(prepared, {}) as folder:
        run.stream(prepared, folder, Quiet())
        return folder.path


def _latencies(path: Path) -> Floats:
    return np.array(list(_values(path)))


def _values(path: Path) -> Iterator[float]:
    for line in (path / "trials.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["status"] == "ok" and row["audit"]["latency_valid"] and not row["warmup"]:
            yield float(row["latency"]["first_audible_ms"])


if __name__ == "__main__":
    main()

"""`voxmeter calibrate`: how exact this client is on this machine, measured against known delays."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from voxmeter.client.arguments import positive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from voxmeter.client.calibrate import Budget, Calibration
    from voxmeter.client.capture import Utterance

_PROTOCOL = "openai-realtime"
_TRIALS = 5
_TRIALS_WITHIN_A_TIME = 10_000
_QUESTION_S = 0.8
_WHOLE_S = 4.0
_HUSH_S = 0.3
_START_S, _LAST_ALONE_S, _LAST_OF_MANY_S = 6, 5, 12
"""What starting and the last trials take beyond the time in which trials begin (measured)."""
_ALONE_SHARE = 0.75
"""Of the time: alone, a trial takes some two seconds; fifty are made at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how much is measured and what becomes of it."""
    parser.add_argument(
        "--protocol", default=_PROTOCOL, metavar="NAME", help="wire (default %(default)s)"
    )
    parser.add_argument(
        "--turn-end",
        choices=("silence", "commit", "request"),
        help="how turns are closed (default: as the protocol usually does)",
    )
    parser.add_argument(
        "--sessions", default="1,50", metavar="N[,N...]", help="at a time (default %(default)s)"
    )
    parser.add_argument(
        "--trials",
        type=positive,
        metavar="N",
        help=f"of each case (default {_TRIALS}; with --seconds: as many as there is time for)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="stop after about S seconds, or when the trials of --trials are made, if that is "
        "given too (default: when all trials are made, some minutes)",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="DIR",
        help="keep a run folder in DIR: for `voxmeter compare` and `report`",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Calibrate, print, and keep the result for reports.

    Returns:
        0, or 3 when no trial could be compared.

    Raises:
        UserError: For options that cannot be, or if the metronome does not start.
    """
    import tempfile
    from pathlib import Path

    from voxmeter.client import calibration_run
    from voxmeter.client.calibrate import calibrate, folder_for
    from voxmeter.client.calibration import few_for_compare, keep
    from voxmeter.client.terminal import warn
    from voxmeter.endpoints.errors import UserError

    sessions = _sessions(args.sessions)
    if args.seconds is not None and not args.seconds >= 1:  # a number that is none is not either
        raise UserError(f"--seconds {args.seconds:g}", "is too small", "use 1 or more")
    budget = budget_of(args.trials, args.seconds, sessions)
    if not args.json:
        print(_intention(args.protocol, sessions, budget), flush=True)
    with tempfile.TemporaryDirectory(prefix="voxmeter-") as temporary:
        parent = Path(args.out or temporary)
        with folder_for(parent, sessions, budget, args.protocol, args.turn_end) as folder:
            result = calibrate(
                _questions(_QUESTION_S),
                folder,
                whole=_questions(_WHOLE_S),
                sessions=sessions,
                budget=budget,
                protocol=args.protocol,
                turn_end=args.turn_end,
            )
            # What reports show is this machine's plain error.
            usual = (args.protocol, result.latency_kind) == (_PROTOCOL, "server-vad")
            found = keep(result, folder.path if args.out else None, for_reports=usual)
            if args.out:
                calibration_run.summarise(folder)
                found["folder"] = str(folder.path)
    _print(result, found, as_json=args.json)
    if args.out and not args.json:
        for line in few_for_compare(result):
            warn(line)
    return 0 if result.errors else 3  # the metronome answered nothing that could be compared


def _print(result: Calibration, found: dict[str, object], *, as_json: bool) -> None:
    import json

    from voxmeter.client.calibration import lines

    if as_json:
        print(json.dumps(found))
        return
    for line in lines(result):
        print(line)
    if "folder" in found:
        print(found["folder"])


def budget_of(trials: int | None, seconds: float | None, sessions: Sequence[int]) -> Budget:
    """Return how much is measured: one session at a time gets most of the time.

    What starting and warming up take is no part of it, and neither is the end of the last trials.

    Args:
        trials: Of `--trials`, None where it was not given.
        seconds: Of `--seconds`, likewise. Where both were given, whichever is over first ends it.
        sessions: The numbers of sessions at a time.
    """
    from voxmeter.client.calibrate import Budget

    if seconds is None:
        return Budget() if trials is None else Budget(trials)
    most = _TRIALS_WITHIN_A_TIME if trials is None else trials
    several = len({number for number in sessions if number > 1})
    if 1 not in sessions or not several:
        return Budget(most, max(1.0, seconds / max(1, len(set(sessions)))))
    alone_s = max(1.0, seconds * _ALONE_SHARE)
    return Budget(most, max(1.0, (seconds - alone_s) / several), alone_s)


def _intention(protocol: str, sessions: Sequence[int], budget: Budget) -> str:
    numbers = " and ".join(str(number) for number in sessions)
    how = f"with {numbers} sessions at a time over {protocol}"
    windows = [budget.window_s(number) or 0.0 for number in dict.fromkeys(sessions)]
    if budget.seconds is None:
        return f"Measuring this machine's own timing error {how}."
    last = sum(_LAST_ALONE_S if number == 1 else _LAST_OF_MANY_S for number in set(sessions))
    whole = _START_S + sum(windows) + last
    return (
        f"Measuring this machine's own timing error {how}: trials begin for {sum(windows):.0f} s, "
        f"and with start and end it takes about {whole:.0f} s, more on a busy machine."
    )


def _questions(longest_s: float) -> list[Utterance]:
    """Return the last seconds of every recorded demo question, with its natural end.

    Digital silence stands before each, so that both sides hear the same background.
    """
    import numpy as np

    from voxmeter.client.audio import Pcm
    from voxmeter.client.clips import clip, render
    from voxmeter.client.speakers import speaker
    from voxmeter.suites import catalog

    questions = []
    for item in catalog.load("demo", "demo", {}, _here()).items:
        made = render(item, speaker)
        end = made.bounds.end_sample
        start = max(made.bounds.onset_sample, end - int(longest_s * made.pcm.rate))
        hush = np.zeros(int(_HUSH_S * made.pcm.rate), dtype=np.float32)
        words = np.concatenate([hush, made.pcm.samples[start:end]])
        cut = clip(Pcm(words, made.pcm.rate), item.item)
        questions.append(cut.utterance(24_000))
    return questions


def _here() -> Path:
    from pathlib import Path

    return Path()


def _sessions(text: str) -> list[int]:
    from voxmeter.endpoints.errors import UserError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(1 <= number <= 500 for number in numbers):
        raise UserError(
            f"--sessions {text}", "is not a list of numbers", "write 1,50 (at most 500)"
        )
    return numbers

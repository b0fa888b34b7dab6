"""Logs of attempts drawn at random, for `test_second_opinion.py`: the same for the same seed."""

from __future__ import annotations

import numpy as np
from second_opinion_logs import Samples, Script, silence, sound


def drawn(seed: int) -> Script:
    """Return an attempt that nobody would think of, the same for the same seed."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["server-vad", "server-vad", "commit", "request", "duplex", "text"]))
    onset = float(rng.uniform(0, 900))
    end = onset + float(rng.uniform(150, 1500))
    wait = int(rng.choice([0, 0, 70, 300]))
    lates = rng.exponential(0.8, 64)
    script = Script(
        kind, onset, end, end + float(rng.uniform(0, 500)), lambda k: lates[k % 64], wait
    )
    if kind == "request":
        script.say(float(rng.uniform(0, 30)), "request", dir="out")
    if kind == "duplex":
        return _drawn_stream(script, rng)
    for believed in np.sort(rng.uniform(onset, end + 600, int(rng.integers(0, 5)))):
        script.say(float(believed), str(rng.choice(["speech_started", "speech_stopped"])))
    at = float(rng.uniform(onset, end + 800))
    style = str(rng.choice(["named", "named", "unnamed", "untold"]))
    for number in range(int(rng.integers(0, 4))):
        at = _drawn_reply(script, rng, at, style, number)
    script.rows.sort(key=lambda row: int(row["t_ns"]))
    return script


def _drawn_reply(
    script: Script, rng: np.random.Generator, at: float, style: str, number: int
) -> float:
    """Write one reply; return when the next one may begin."""
    name = f"r{number}" if style == "named" else ""
    if style != "untold":
        script.say(at, "reply_started", reply=name)
    for said in np.sort(at + rng.exponential(200, int(rng.integers(0, 4)))):
        script.say(float(said), "reply_text", text=str(rng.choice(["", " ", "yes"])), reply=name)
    audio = _drawn_audio(rng, int(rng.integers(0, 7)))
    chunk, pace = float(rng.choice([10, 20, 100, 400])), float(rng.choice([0, 0.2, 1, 1, 1.3]))
    jitter = rng.exponential(float(rng.choice([0, 2, 30])), 8)
    begin = end = at + float(rng.exponential(80))
    if script.kind != "text" and len(audio):
        script.flow(begin, audio, chunk, pace, name, lambda k: float(jitter[k % 8]) * (k > 0))
        end = script.last_ms()
    if style == "untold":
        return end + float(rng.choice([100, 900, 4000, 8000]))
    return _drawn_end(script, rng, (at, end), name)


def _drawn_end(
    script: Script, rng: np.random.Generator, spans: tuple[float, float], name: str
) -> float:
    begin, end = spans
    how = str(rng.choice(["completed", "completed", "cancelled", "interrupted", "never"]))
    over = end + float(rng.exponential(100))
    if how in {"cancelled", "interrupted"}:
        over = float(rng.uniform(begin, end + 300))
    if how == "interrupted":
        script.say(over, "interrupted")
    elif how != "never":
        script.say(over, "reply_ended", reason=how, reply=name, detail="")
    return max(over, end) + float(rng.exponential(150))


def _drawn_audio(rng: np.random.Generator, parts: int) -> Samples:
    """Return sounds and silences, all of them whole 5 ms frames.

    So that no length depends on where a frame begins, at the lengths that a rule turns on.
    """
    made = [silence(0)]
    for number in range(parts):
        made.append(silence(float(rng.choice([0, 10, 60, 130, 180, 420]))))
        made.append(sound(float(rng.choice([5, 30, 85, 115, 350])), seed=number))
    return np.concatenate([*made, silence(float(rng.choice([0, 300])))])


def _drawn_stream(script: Script, rng: np.random.Generator) -> Script:
    """Write a stream that flows all the time, with a hiccup or two."""
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        parts += [silence(float(rng.choice([300, 1300, 1700]))), _drawn_audio(rng, 3)]
    hiccups = {int(rng.integers(5, 60)): float(rng.uniform(30, 400)) for _ in range(2)}

    def late(number: int) -> float:
        behind = [ms - 80 * (number - k) for k, ms in hiccups.items() if number >= k]
        return max([0.0, *behind])

    for said in rng.uniform(0, 5000, int(rng.integers(0, 4))):
        script.say(float(said), "reply_text", text="word", reply="")
    audio = np.concatenate([*parts, silence(900)])
    script.flow(float(rng.uniform(0, 80)), audio, 80.0, 1.0, "", late)
    script.rows.sort(key=lambda row: int(row["t_ns"]))
    return script

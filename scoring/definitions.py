"""What each figure of a report means: its unit, which way is better, and one sentence.

`docs/metrics.md` says more about each; these are the words that stand beside the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric.

    Attributes:
        unit: `fraction`, `ms`, `words`, … as it stands in `summary.json`.
        better: Which way is better; None where neither is.
        text: What it measures, in one sentence.
        kind: `rate` for a share of 1, `mean` for a mean over items, `latency` for figures that
            also have percentiles.
    """

    unit: str
    better: Better | None
    text: str
    kind: Literal["rate", "mean", "latency"]


def _rate(better: Better | None, text: str) -> Definition:
    return Definition("fraction", better, text, "rate")


def _ms(better: Better | None, text: str) -> Definition:
    return Definition("ms", better, text, "latency")


ANSWERS: Mapping[str, Definition] = {
    "accuracy": _rate(
        "higher",
        "Share of closed questions answered right, by the answer in the transcript of what was "
        "spoken (for text-only replies: in the text); failures of the endpoint and replies "
        "without a clear answer count as wrong.",
    ),
    "accuracy_parsed": _rate("higher", "Share right among the replies that gave a clear answer."),
    "parse_rate": _rate("higher", "Share of all counted trials whose reply gave a clear answer."),
    "accuracy_chance_imputed": _rate(
        "higher",
        "Accuracy when each trial without a clear answer counts as much as guessing would earn "
        "on average: 1/k of k options, 1/2 for yes-no and true-false, else 0. Nothing is drawn.",
    ),
    "accuracy_strict": _rate(
        "higher", "Share of trials whose whole transcript is the reference answer, nothing else."
    ),
    "text_accuracy": _rate(
        "higher", "Accuracy of the model's own text channel, among trials that sent text."
    ),
    "speech_text_disagreement": _rate(
        "lower",
        "Share of trials whose spoken answer differs from the answer in the model's own text: "
        "lost in speech, or in recognition.",
    ),
    "reply_rate": _rate("higher", "Share of counted trials with a reply (status ok or truncated)."),
}
"""Figures on answers; the ones that a trial can have lie in `scores.jsonl` under these names."""

SPEECH: Mapping[str, Definition] = {
    "speech_text_wer": Definition(
        "fraction",
        "lower",
        "Word errors of the transcript against the model's own text, per word of that text.",
        "mean",
    ),
    "reply_words": Definition("words", None, "Words in the reply.", "mean"),
    "reply_characters": Definition("characters", None, "Letters and digits in the reply.", "mean"),
    "words_per_second": Definition(
        "words/s", None, "Words of the transcript per second of audible reply.", "mean"
    ),
    "repetition": _rate("lower", "Share of replies that say one phrase again and again."),
}
"""Figures on the reply itself, without any reference answer."""

LATENCY: Mapping[str, Definition] = {
    "first_packet_ms": _ms(
        "lower", "From the user's end of speech (t0) to the arrival of the first reply audio."
    ),
    "first_audible_ms": _ms(
        "lower",
        "From t0 to the first audible sample that a listener hears; negative when the reply "
        "began before the user had ended.",
    ),
    "leading_silence_ms": _ms("lower", "Silence at the start of the reply, before it is audible."),
    "first_text_ms": _ms("lower", "From t0 to the first text of the reply."),
    "stream_first_audible_ms": _ms(
        "lower", "First audible sample of the answer in stream time (full duplex)."
    ),
    "endpointing_ms": _ms("lower", "From t0 until the server said that the user had stopped."),
    "reply_ms": _ms(None, "Audible length of the reply."),
    "reply_end_ms": _ms("lower", "From t0 to the end of the reply as a listener hears it."),
    "stall_ms": _ms("lower", "Time that a listener waited inside the reply for late audio."),
    "stalls": Definition("count", "lower", "Number of such waits inside one reply.", "latency"),
    "delivery_rate": Definition(
        "ratio", "higher", "Seconds of reply audio delivered per second of wall time.", "latency"
    ),
    "yield_ms": _ms("lower", "From the interruption to the end of the interrupted reply."),
    "overlap_ms": _ms("lower", "Time for which both sides were audible."),
}
"""Figures on time; each goes with percentiles, n and the number of trials that have none."""

JUDGES: Mapping[str, Definition] = {
    "judge_score": Definition(
        "score",
        "higher",
        "Mean rating of the judge over both orders of reference and response (over one where the "
        "bench names one), in the unit of the "
        "prompt's scale; replies that were not rated are counted beside it.",
        "mean",
    ),
    "position_gap": Definition(
        "score",
        None,
        "Rating with the response before the reference, less the rating with it behind; 0 for a "
        "judge that order does not move.",
        "mean",
    ),
    "judge_accuracy": _rate(
        "higher",
        "Share of replies that the judge calls right; failures of the endpoint count as wrong.",
    ),
}
"""Figures that judges give; each stands with the judge's name behind it: `judge_score:<judge>`."""

_LOOSE = "its first line, its last line and asterisks"
CHECKED: Mapping[str, Definition] = {
    "accuracy_loose": _rate(
        "higher", f"Share of replies that keep all their instructions with or without {_LOOSE}."
    ),
    "instructions": Definition(
        "instructions",
        None,
        "Instructions that a question gives, each of which a rule checks.",
        "mean",
    ),
    "instructions_kept": Definition(
        "instructions",
        "higher",
        "Those that the reply keeps; none of them where the endpoint failed.",
        "mean",
    ),
    "instructions_kept_loosely": Definition(
        "instructions", "higher", f"Likewise with or without {_LOOSE}.", "mean"
    ),
}
"""Figures on instructions that rules check; `text_` before a name: in the model's own text."""

ERRORS: Mapping[str, Definition] = {
    "packet_error_ms": Definition(
        "ms",
        "lower",
        "In a calibration: distance of `first_packet_ms` from the metronome's truth, early or "
        "late.",
        "mean",
    ),
    "audible_error_ms": Definition(
        "ms", "lower", "In a calibration: likewise of `first_audible_ms`.", "mean"
    ),
}
"""The client's own errors, known where the endpoint's true latencies are."""

ALL: Mapping[str, Definition] = {
    **ANSWERS,
    **SPEECH,
    **CHECKED,
    **{f"text_{name}": meant for name, meant in CHECKED.items()},
    **LATENCY,
    **ERRORS,
}


def is_judged(metric: str) -> bool:
    """Return whether a metric is a judge's: `judge_score:<judge>`."""
    name, colon, judge = metric.partition(":")
    return bool(colon and judge) and name in JUDGES


def definition(metric: str) -> Definition | None:
    """Return what `metric` means, also for `judge_score:<judge>` and its kin; None if unknown."""
    name, colon, judge = metric.partition(":")
    return JUDGES.get(name) if colon and judge else ALL.get(metric)

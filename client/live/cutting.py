"""A turn cut out of a talk: a log, audio and a line of its own, as an attempt of a run has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.live.saving import Finished, Spoken
from voxmeter.endpoints.codec import Traits

if TYPE_CHECKING:
    from voxmeter.client.connection import Connection
    from voxmeter.client.live.sound import SoundFacts
    from voxmeter.client.live.tape import Cut, Tape
    from voxmeter.client.live.turn import Turn

SPOILING = frozenset(
    {
        "input-overflow",
        "output-underflow",
        "time-step",
        "late-callback",
        "dropped",
        "clock-step",
        "lost",
        "back",
    }
)
"""Troubles between a second before t0 and the first audible sample after which a latency does not
count. `starved` is not one: there the endpoint was late, which is measured."""

WATCHED_NS = 1_000_000_000
"""How long before t0 a trouble still spoils a latency."""
_MS = 1e6


@dataclass(frozen=True, slots=True)
class Part:
    """What every turn of a connection has in common.

    Attributes:
        traits: The protocol's.
        rate: Samples a second of what is sent.
        reply_rate: Likewise, of the reply stream; 0 before anything came.
        quiet_ms: Quiet that ends a turn here.
        usage: What the endpoint counted since the turn before.
    """

    traits: Traits
    rate: int
    reply_rate: int
    quiet_ms: int
    usage: dict[str, float] = field(default_factory=dict)


def cut_out(
    turn: Turn,
    tape: Tape,
    part: Part,
    last: int,
    line: Connection | None,
    tag: str,
    facts: SoundFacts,
) -> Finished:
    """Return a turn that is over.

    Args:
        turn: It.
        tape: Of its connection.
        part: What its connection's turns have in common.
        last: One past the last sample of the outgoing stream so far.
        line: Its connection, where there is one that outlives it.
        tag: Name of the session.
        facts: What is known of the devices.
    """
    traits = part.traits
    since_ns = turn.since_ns if traits.full_duplex else None
    cut = tape.cut(turn.number, turn.first, turn.last or last, part.reply_rate or 1, since_ns)
    sent = _sent(turn, cut, part)
    outcome, fault = turn.outcome or ("ended", None)
    capture = Capture(
        outcome=outcome,
        fault=fault or turn.note,
        rows=[_header(turn, cut, part, sent), *cut.rows],
        audio=cut.audio,
        raw=cut.raw,
        utterance=sent,
        connect_ms=None if line is None else line.connect_ms,
        rtt_ms=None if line is None else line.rtt_ms,
        reply_text=turn.ear.text(),
        usage=part.usage,
        decoded_rate=part.reply_rate or None,
    )
    fields = {
        "started_at": turn.started_at,
        "session_tag": tag,
        "clip": None,
        "condition_params": turn.params,
        "reply_channel": traits.reply_channel,
    }
    return Finished(
        capture,
        fields,
        turn.question,
        Spoken.of(cut.spoken, cut.start),
        _audit(turn, part, facts),
        _spoiled(turn),
    )


def _header(turn: Turn, cut: Cut, part: Part, sent: Utterance) -> dict[str, Any]:
    traits = part.traits
    return {
        "t_ns": cut.taken_ns or turn.since_ns,
        "dir": "out",
        "kind": "start",
        "bytes": 0,
        "input_rate": part.rate,
        "frame_ms": traits.frame_ms,
        "lead_in_samples": 0,
        "clip_samples": sent.samples,
        "onset_sample": sent.onset_sample,
        "speech_end_sample": sent.end_sample,
        "end_kind": sent.end_kind,
        "latency_kind": "text" if traits.reply_channel == "text" else "live",
        "commit_after_ms": 0,
        "pacing": "real-time",
        "live": True,
        "full_duplex": traits.full_duplex,
    }


def _sent(turn: Turn, cut: Cut, part: Part) -> Utterance:
    samples = len(cut.sent) // 2
    end = min(max((turn.end or turn.onset + 1) - cut.start, 1), max(samples, 1))
    onset = min(max(turn.onset - cut.start, 0), end - 1)
    return Utterance(cut.sent, part.rate, onset, end)


def _audit(turn: Turn, part: Part, facts: SoundFacts) -> dict[str, Any]:
    hops = None
    if turn.hops_ms:
        p50, p99 = np.percentile(turn.hops_ms, [50, 99])
        hops = {
            "p50": round(float(p50), 3),
            "p99": round(float(p99), 3),
            "max": round(max(turn.hops_ms), 3),
        }
    t0_ns = turn.t0_ns or turn.since_ns
    return {
        "hop_ms": hops,
        "stamps": facts.stamps,
        "input_latency_ms": facts.input_latency_ms,
        "output_latency_ms": facts.output_latency_ms,
        "turn_quiet_ms": part.quiet_ms if part.traits.turn_end != "silence" else None,
        "jitter_buffer_ms": turn.buffer_ms,
        "interrupted": turn.interrupted or turn.cut,
        "troubles": [
            {
                "problem": one.problem,
                "text": one.text,
                "t_ms": round((one.t_ns - t0_ns) / _MS, 3),
                "count": one.count,
            }
            for one in turn.troubles
            if one.last_ns >= min(turn.since_ns, t0_ns - WATCHED_NS)
        ],
    }


def _spoiled(turn: Turn) -> bool:
    if turn.t0_ns is None:
        return False
    begin = turn.t0_ns - WATCHED_NS
    end = turn.first_audible_ns
    return any(
        one.problem in SPOILING and begin <= one.last_ns and (end is None or one.t_ns <= end)
        for one in turn.troubles
    )

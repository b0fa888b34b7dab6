"""From a finished session to its lines and files: decoding, marks, status, audio.

Runs in a process of its own at low priority, so that none of it can delay a frame.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from voxmeter.client.audio import Samples, from_pcm16, write_flac, write_whole
from voxmeter.client.capture import Capture
from voxmeter.client.encodings import Decoder, decoder
from voxmeter.client.jsonlines import disk
from voxmeter.client.machine import load_average
from voxmeter.client.redaction import Redactor
from voxmeter.client.runfolder import AttemptPaths
from voxmeter.scoring import log, marks, playout

_PAYLOAD = re.compile(r'"([A-Za-z0-9+/=_-]{256,})"')
_KEPT_TEXT = 8192
_UNDECODABLE = "could not be decoded"
_LONGEST_S = 1800
_TOO_LONG = f"the reply is longer than {_LONGEST_S} s; the rest was left out"


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late this client may be before it spoils a trial's latency, ms.

    Attributes:
        send_ms: Of a frame or the commit, from 1 s before t0 on.
        loop_ms: Of the event loop, between t0 and the first audible sample.
    """

    send_ms: float = marks.LATE_MS
    loop_ms: float = marks.LATE_MS


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt a capture belongs to, and where its files go.

    Attributes:
        fields: The fields of its line in `trials.jsonl` that were known before it ran.
        paths: Where its log and audio go.
        redactor: Takes secrets out of the log.
        lateness: What spoils its latency.
    """

    fields: Mapping[str, Any]
    paths: AttemptPaths
    redactor: Redactor
    lateness: Lateness = field(default_factory=Lateness)


def finish(capture: Capture, attempt: Attempt) -> dict[str, Any]:
    """Write an attempt's audio and log; return its line for `trials.jsonl`."""
    rate, stream, notes = decode(capture)
    rows = capture.rows
    rows[0]["output_rate"] = rate
    _attach_raw(capture)
    found = marks.latency(rows, stream, late_ms=attempt.lateness.send_ms)
    _write_audio(capture, attempt, rate, stream, found)
    _write_log(attempt, rows)
    return trial_row(capture, attempt, found, notes)


def decode(capture: Capture) -> tuple[int, Samples, list[str]]:
    """Decode all reply audio to one stream.

    Sets `samples` of every `reply_audio` row. The stream has the rate of its first piece; a piece
    of another rate is resampled to it.

    Returns:
        Rate in samples a second (24,000 when nothing came), samples of shape (n,), and what was
        odd about the audio, in words.
    """
    if capture.decoded_rate is not None:
        return _decoded(capture, capture.decoded_rate)
    rate = count = 0
    pieces: list[Samples] = []
    notes: list[str] = []
    broken: dict[str, list[str]] = {}
    decoders: dict[tuple[str, str, int], Decoder] = {}
    for index, data in capture.audio:
        row = capture.rows[index]
        row["samples"] = 0
        rate = rate or row["rate"]
        if count > _LONGEST_S * rate:
            continue
        key = (row["reply"], row["encoding"], row["rate"])
        if key not in decoders:
            decoders[key] = decoder(row["encoding"], row["rate"])
        try:
            samples = from_pcm16(decoders[key].decode(data).tobytes())
        except (ValueError, RuntimeError) as error:
            broken.setdefault(row["encoding"], []).append(str(error))
            continue
        if row["rate"] != rate:
            samples = soxr.resample(samples, row["rate"], rate)
        row["samples"] = len(samples)
        pieces.append(samples)
        count += len(samples)
    for encoding, problems in broken.items():
        number = "a piece" if len(problems) == 1 else f"{len(problems)} pieces"
        notes.append(f"{number} of {encoding} audio {_UNDECODABLE}: {problems[0]}")
    if count > _LONGEST_S * rate:
        notes.append(_TOO_LONG)
    elif any(d.left_over for d in decoders.values()):
        notes.append("the reply ended in the middle of a sample")
    stream = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
    return rate or 24_000, stream, notes


def _decoded(capture: Capture, rate: int) -> tuple[int, Samples, list[str]]:
    """Return as one stream what was decoded as it came."""
    for index, data in capture.audio:
        capture.rows[index]["samples"] = len(data) // 2
    return rate, from_pcm16(b"".join(data for _, data in capture.audio)), []


def trial_row(
    capture: Capture, attempt: Attempt, found: marks.Marks, notes: list[str]
) -> dict[str, Any]:
    """Return the line of `trials.jsonl` that says how an attempt went."""
    header = capture.rows[0]
    status, fault = _status(capture, found, str(header.get("latency_kind", "")), notes)
    return {
        **attempt.fields,
        "status": status,
        "fault": fault,
        "retryable": capture.retryable,
        "retry_after_s": _rounded(capture.retry_after_s),
        "t0_ns": found.t0_ns,
        "connect_ms": _rounded(capture.connect_ms),
        "rtt_ms": _rounded(capture.rtt_ms),
        "latency_kind": header.get("latency_kind"),
        "latency": {name: _rounded(value) for name, value in found.latency.items()},
        "segments": found.segments,
        "stall_spans": found.stall_spans,
        "audit": _audit(capture, found, attempt.lateness.loop_ms),
        "usage": capture.usage,
        "reply_text": capture.reply_text,
    }


def _status(
    capture: Capture, found: marks.Marks, latency_kind: str, notes: list[str]
) -> tuple[str, str | None]:
    faults = [capture.fault] if capture.fault else []
    if capture.outcome in {"ended", "truncated"} and _nothing_decoded(capture, notes):
        return "protocol_error", "; ".join([*faults, *notes])
    if capture.outcome == "ended" and _TOO_LONG in notes:
        return "truncated", "; ".join([*faults, *notes])
    if capture.outcome != "ended":
        return capture.outcome, "; ".join([*faults, *notes]) or None
    if latency_kind == "text":
        status = "ok" if capture.reply_text.strip() else "no_reply"
    else:
        status = "ok" if found.answer else "no_reply"
    if status == "no_reply" and not capture.audio:
        faults.append("the reply ended without any audio")
    if status == "no_reply" and any(map(_goes_on, found.segments)):
        faults.append("what it said had begun before the question, and went on behind it")
    return status, "; ".join([*faults, *notes]) or None


def _nothing_decoded(capture: Capture, notes: list[str]) -> bool:
    """Return whether audio came, and all of it was broken."""
    heard = any(capture.rows[index]["samples"] for index, _ in capture.audio)
    return not heard and any(_UNDECODABLE in note for note in notes)


def _goes_on(segment: Mapping[str, Any]) -> bool:
    """Return whether something that began before the question was heard beyond its end."""
    return segment.get("role") == "greeting" and (segment.get("end_ms") or 0.0) > 0


def _audit(capture: Capture, found: marks.Marks, limit_ms: float) -> dict[str, Any]:
    """Return how exact this client itself was, and whether the latency may be used."""
    audible_ns = None
    first_audible = found.latency.get("first_audible_ms")
    if found.t0_ns is not None and first_audible is not None:
        audible_ns = found.t0_ns + int(first_audible * 1e6)
    lag = [ms for _, ms in capture.lags]
    late = [
        ms
        for due, ms in capture.lags
        if found.t0_ns is not None
        and found.t0_ns <= due
        and (audible_ns is None or due <= audible_ns)
    ]
    punctual = max(late, default=0.0) <= limit_ms
    return {
        "send_lateness_ms": found.audit.get("send_lateness_ms"),
        "late_frames": found.audit.get("late_frames", 0),
        "loop_lag_ms": _percentiles(lag),
        "latency_valid": bool(found.audit.get("latency_valid", True)) and punctual,
        "warnings": found.audit.get("warnings", []),
        "host": socket.gethostname(),
        "load": _rounded(load_average()),
    }


def _percentiles(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3), "max": round(max(values), 3)}


def _write_audio(
    capture: Capture, attempt: Attempt, rate: int, stream: Samples, found: marks.Marks
) -> None:
    if capture.utterance is None or "clip_samples" not in capture.rows[0]:
        return  # the question was never reached: there is nothing to hear
    _make(attempt.paths.audio.parent)
    heard = playout.heard(capture.rows, stream)
    left = _sent(capture, rate)
    length = max(len(left), len(heard))
    both = np.zeros((length, 2), dtype=np.float32)
    both[: len(left), 0] = left
    both[: len(heard), 1] = heard
    write_flac(attempt.paths.audio, both, rate)
    answer = [stream[start:end] for start, end in found.answer]
    reply = np.concatenate(answer) if answer else stream[:0]
    if len(reply):  # FLAC has no file without samples
        write_flac(attempt.paths.reply, reply, rate)
    if len(reply) != len(stream):
        write_flac(attempt.paths.stream, stream, rate)


def _sent(capture: Capture, rate: int) -> Samples:
    """Return what we sent, from the start of the stream, at the reply's rate."""
    utterance, header = capture.utterance, capture.rows[0]
    if utterance is None:
        return np.zeros(0, dtype=np.float32)
    clip = from_pcm16(utterance.pcm)[: header["clip_samples"]]
    if header.get("live"):
        clip = playout.spoken(capture.rows, clip)
    sent = np.concatenate([np.zeros(header["lead_in_samples"], dtype=np.float32), clip])
    if utterance.rate != rate:
        sent = np.asarray(soxr.resample(sent, utterance.rate, rate), dtype=np.float32)
    return sent


def _attach_raw(capture: Capture) -> None:
    """Put the texts of messages into their rows, audio payloads replaced by their sizes."""
    for index, text in capture.raw:
        if index < len(capture.rows):
            short = _PAYLOAD.sub(lambda found: f'"<{len(found[1])} characters>"', text)
            capture.rows[index]["data"] = short[:_KEPT_TEXT]


def _write_log(attempt: Attempt, rows: list[dict[str, Any]]) -> None:
    text = attempt.redactor.text(log.dump(rows))
    _make(attempt.paths.events.parent)
    write_whole(attempt.paths.events, text.encode("utf-8", "backslashreplace"))


def _make(folder: Path) -> None:
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)

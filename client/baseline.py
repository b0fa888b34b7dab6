"""Baselines: what one clip's latency was, as a small file to keep beside the tests.

A baseline holds the samples themselves, so that a later conversation can be compared with all of
them, and what they were taken of, so that it is compared with nothing else.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from voxmeter import __version__
from voxmeter.client.api import in_time
from voxmeter.client.terminal import printable
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.definitions import LATENCY

if TYPE_CHECKING:
    from voxmeter.client.api import Conversation

SCHEMA = 1

TIMES = tuple(
    name for name, meant in LATENCY.items() if meant.unit == "ms" and meant.better == "lower"
)
"""The latencies that a baseline holds: times, of which less is better."""

LATE = "late on this machine"
"""Why a trial was left out that the endpoint answered in good order."""

_MOST_BYTES = 4_000_000
_DIGITS = 3  # of a ms: the clock's own error is larger


@dataclass(frozen=True, slots=True)
class Subject:
    """What samples were taken of: two sets are comparable where all of it is the same.

    Attributes:
        endpoint_kind: The protocol, as in bench.toml.
        clip_sha256: Of the decoded audio.
        latency_kind: How the end of the turn was told, as in `trials.jsonl`.
        pacing: How the clip was sent.
    """

    endpoint_kind: str
    clip_sha256: str
    latency_kind: str
    pacing: str


@dataclass(frozen=True, slots=True)
class Samples:
    """One latency of a conversation.

    Attributes:
        values: One a trial, ms.
        left_out: How many trials have none, by reason.
    """

    values: tuple[float, ...]
    left_out: Mapping[str, int]

    @property
    def asked(self) -> int:
        """All trials."""
        return len(self.values) + sum(self.left_out.values())


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is kept of a conversation.

    Attributes:
        subject: What was asked how.
        samples: By the name of the latency.
        host: The machine that asked.
    """

    subject: Subject
    samples: Mapping[str, Samples]
    host: str


def samples_of(conversation: Conversation, metric: str) -> Samples:
    """Return one latency of a conversation, with the reason of every trial that has none."""
    left_out: Counter[str] = Counter()
    for trial in conversation.trials:
        had = (trial["latency"] or {}).get(metric) is not None
        if had and not in_time(trial):
            left_out[LATE] += 1
        elif not had:
            left_out["it did not happen" if trial["status"] == "ok" else trial["status"]] += 1
    values = conversation.latency(metric).samples
    return Samples(tuple(round(value, _DIGITS) for value in values), dict(left_out))


def baseline_of(conversation: Conversation, place: str) -> Baseline:
    """Return what a baseline says of a conversation.

    Args:
        conversation: Of one clip with one endpoint.
        place: Where the baseline lies, for errors.

    Raises:
        UserError: If its trials are not alike.
    """
    rows = conversation.trials
    clips = {row["clip"]["sha256"] for row in rows if row.get("clip")}
    kinds = {row["latency_kind"] for row in rows if row.get("latency_kind")}
    for name, found in (("clip", clips), ("latency_kind", kinds)):
        if len(found) > 1:
            told = f"the conversation has more than one {name}"
            raise UserError(place, told, "compare one clip with one endpoint")
    subject = Subject(
        conversation.endpoint_kind,
        next(iter(clips), ""),
        next(iter(kinds), ""),
        conversation.pacing,
    )
    host = next((str(row["audit"]["host"]) for row in rows if row.get("audit")), "")
    return Baseline(subject, {name: samples_of(conversation, name) for name in TIMES}, host)


def differences(base: Baseline, new: Baseline) -> list[str]:
    """Return in what two baselines are not of the same thing, in words; nothing when they are."""
    found = []
    for field in fields(Subject):
        was, now = getattr(base.subject, field.name), getattr(new.subject, field.name)
        if was != now:
            cut = 12 if field.name == "clip_sha256" else 60
            had, has = (printable(text[:cut]) or "none" for text in (was, now))
            found.append(f"another {field.name} ({had}, now {has})")
    return found


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline, whole or not at all; latencies without any sample are left out.

    Raises:
        UserError: If it cannot be written.
    """
    from voxmeter.client.jsonlines import disk
    from voxmeter.client.model_files import write_atomically

    metrics = {
        name: {
            "p50": round(median(samples.values), _DIGITS),
            "left_out": samples.left_out,
            "samples": samples.values,
        }
        for name, samples in baseline.samples.items()
        if samples.values
    }
    rows: dict[str, Any] = {
        "schema": SCHEMA,
        **asdict(baseline.subject),
        "host": baseline.host,
        "versions": {"voxmeter": __version__, "python": platform.python_version()},
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items()]
    inner = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in metrics.items()]
    lines.append('"metrics": {\n' + ",\n".join(inner) + "\n }")
    text = "{\n " + ",\n ".join(lines) + "\n}\n"
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())


_Ms = Annotated[float, Field(ge=-1e8, le=1e8, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Text = Annotated[str, Field(max_length=300)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, hide_input_in_errors=True)


class _Head(_Table):
    number: int = Field(alias="schema")


class _Metric(_Table):
    p50: _Ms
    left_out: Annotated[dict[_Text, _Count], Field(max_length=50)]
    samples: Annotated[list[_Ms], Field(min_length=1, max_length=10_000)]


class _File(_Table):
    endpoint_kind: _Text
    clip_sha256: _Text
    latency_kind: _Text
    pacing: _Text
    host: _Text
    metrics: dict[_Text, _Metric]


def read_baseline(path: Path, place: str, again: str) -> Baseline:
    """Read a baseline; what a later version may add to it is passed over.

    Args:
        path: Where it lies.
        place: The same for people.
        again: The command that writes it.

    Raises:
        UserError: If it is not there, cannot be read, is of another schema, or is damaged.
    """
    cure = f"write it anew with: {again}"
    data = _content(path, place, again)
    try:
        number = _Head.model_validate_json(data).number
        if number != SCHEMA:
            found = f"is of schema {number}, and this version of voxmeter reads {SCHEMA}"
            raise UserError(place, printable(found, 120), cure)
        file = _File.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        told = f"{where}: {first['msg']}" if where else first["msg"]
        raise UserError(place, f"is no baseline ({printable(told, 160)})", cure) from None
    for name, metric in file.metrics.items():
        p50 = median(metric.samples)
        if abs(p50 - metric.p50) > 2 * 10**-_DIGITS:
            told = f"p50 of {printable(name, 60)} is {metric.p50:g}, that of its samples {p50:g}"
            raise UserError(place, f"was changed by hand: {told}", f"restore it, or {cure}")
    return Baseline(
        Subject(file.endpoint_kind, file.clip_sha256, file.latency_kind, file.pacing),
        {name: Samples(tuple(one.samples), one.left_out) for name, one in file.metrics.items()},
        file.host,
    )


def missing(place: str, again: str) -> UserError:
    """Return what is said of a baseline that is not there.

    Args:
        place: Its path, for the message.
        again: The command that writes it.
    """
    return UserError(place, "there is no such baseline", f"write it with: {again}")


def _content(path: Path, place: str, again: str) -> bytes:
    if not path.exists():
        raise missing(place, again)
    if not path.is_file():
        raise UserError(place, "is not a file", "give the path of a baseline")
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(place, f"cannot be read: {error.strerror}", "check its rights") from None
    if len(data) > _MOST_BYTES:
        found = f"is no baseline: larger than {_MOST_BYTES // 1_000_000} MB"
        raise UserError(place, found, f"write it anew with: {again}")
    return data

"""What a bench.toml may say, as frozen models: every table and key of the contract.

Times end in `_ms` or `_s`. Every model refuses keys it does not know. The names of the tables are
those of the file (`[[endpoint]]`), the attributes are plural (`bench.endpoints`).
`docs/configuration.md` says what each key means; a test keeps the two together.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from voxmeter.client import gate_rules
from voxmeter.client.builtin_name import Builtin, parse_builtin
from voxmeter.client.effects import steps
from voxmeter.client.publish_topics import host_problem, prefix_problem


class _Table(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )


def problem(text: str, cure: str) -> PydanticCustomError:
    """Return an error of our own: what was found, and what to do."""
    found = text.encode("utf-8", "backslashreplace").decode()  # JSON can hold halves of letters
    return PydanticCustomError("voxmeter", "{found}", {"found": found, "cure": cure})


def _raise(found: tuple[str, str] | None) -> None:
    if found is not None:
        raise problem(*found)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _words(value: object) -> object:
    if not isinstance(value, str):
        return _tuple(value)
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise problem(f"cannot be split into words ({error})", "give a list of words") from None


def _chain(value: object) -> object:
    if not isinstance(value, str):
        return _tuple(value)
    try:
        return tuple(dict(step) for step in steps.ready(value))
    except ValueError as error:
        raise problem(*map(str, error.args)) from None


def _name(value: str) -> str:
    if not value.strip():
        raise problem("is empty", "give it a name")
    if value != value.strip() or not value.isprintable():
        raise problem(f"{value!r} has spaces at its ends or invisible characters", "remove them")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise problem("is empty", "remove the key, or give it a value")
    return value


Name = Annotated[str, AfterValidator(_name)]
Filled = Annotated[str, AfterValidator(_not_blank)]
Strings = Annotated[tuple[Filled, ...], BeforeValidator(_tuple)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[int, Field(ge=4000, le=192_000)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]
Share = Annotated[float, Field(ge=0)]
Scale = Annotated[tuple[int, int], BeforeValidator(_tuple)]


class Run(_Table):
    """`[run]`: the run as a whole."""

    name: Name = "bench"
    out: Filled = "runs"
    seed: Count = 0
    trials: Positive = 1
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 1
    warmup: Count = 1
    pacing: Literal["real-time", "fast"] = "real-time"
    retries: Annotated[int, Field(ge=0, le=20)] = 2
    retry_wait_limit_s: Seconds = 60.0
    give_up_after: Count = 20
    send_lateness_limit_ms: Milliseconds = 20
    loop_lag_limit_ms: Milliseconds = 20


class Endpoint(_Table):
    """`[[endpoint]]`: one system under test; exactly one of `url`, `command`, `builtin` at most."""

    name: Name
    preset: Filled | None = None
    kind: Filled = "openai-realtime"
    url: Filled | None = None
    command: Annotated[Strings | None, BeforeValidator(_words)] = None
    folder: Filled | None = None
    builtin: Builtin | None = None
    model: str = ""
    instructions: str = ""
    voice: str = ""
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)
    input_rate: Rate | None = None
    output_rate: Rate | None = None
    api_key_env: Filled | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    connect_timeout_s: Seconds = 10.0
    first_reply_timeout_s: Seconds = 30.0
    reply_limit_s: Seconds = 120.0
    commit_after_ms: Milliseconds = 0
    turn_end: Literal["silence", "commit", "request"] | None = None
    drain_ms: Milliseconds = 300
    quiet_ms: Milliseconds = 1500
    greeting_timeout_s: Seconds = 10.0
    insecure: bool = False
    ca_file: Filled | None = None
    max_message_mib: Annotated[int, Field(ge=1, le=2048)] = 64
    use_proxy: bool = True
    reply_channel: Literal["speech", "text"] | None = None
    size: str = ""
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None

    @field_validator("builtin", mode="before")
    @classmethod
    def _parse_builtin(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return parse_builtin(value)
        except ValueError as error:
            raise problem(*map(str, error.args)) from None

    @field_serializer("builtin")
    def _write_builtin(self, value: Builtin | None) -> str | None:
        return None if value is None else str(value)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        given = [name for name in ("url", "command", "builtin") if getattr(self, name) is not None]
        if len(given) > 1:
            raise problem(f"has {' and '.join(given)}", "keep one of them")
        return self


class Suite(_Table):
    """`[[suite]]`: one benchmark, or a user's own items."""

    kind: Filled
    name: Name | None = None
    path: Filled | None = None
    limit: Positive | None = None
    subset: Annotated[float, Field(gt=0)] | None = None
    conditions: Annotated[tuple[Name, ...], BeforeValidator(_tuple)] | None = None
    question_via: Literal["text", "speech-after", "speech-before"] | None = None
    rubric: Filled | None = None
    few_shot: Count = 0
    voice: Filled | None = None
    gap_ms: Annotated[float, Field(ge=0, le=60_000)] | None = None
    interrupt: bool | dict[str, JsonValue] | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def label(self) -> str:
        """The suite's name in rows and tables: its own, else its kind."""
        return self.name or self.kind


class Condition(_Table):
    """`[[condition]]`: what happens to the clips on their way."""

    name: Name
    chain: Annotated[tuple[dict[str, JsonValue], ...], BeforeValidator(_chain)] = ()

    @field_validator("chain")
    @classmethod
    def _effects(cls, chain: tuple[dict[str, JsonValue], ...]) -> tuple[dict[str, JsonValue], ...]:
        try:
            return tuple(dict(step) for step in steps.checked(chain))
        except ValueError as error:
            raise problem(*map(str, error.args)) from None


class Transcribe(_Table):
    """`[transcribe]`: the recogniser that reads the spoken replies."""

    model: Filled = "tiny.en"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compute_type: Filled = "auto"
    language: Filled | None = None
    beam_size: Annotated[int, Field(ge=1, le=100)] = 5
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    overlap: bool | None = None
    allow_downloads: bool = False


class Judge(_Table):
    """`[[judge]]`: a chat model that scores open answers."""

    name: Name
    model: Filled
    base_url: Filled | None = None
    api_key_env: Filled | None = None
    scale: Scale | dict[str, Scale] | None = None
    orders: Literal["both", "reference-first", "response-first"] = "both"
    suites: Annotated[tuple[Name, ...] | None, BeforeValidator(_tuple)] = None
    prompts: dict[str, Filled] = Field(default_factory=dict)
    temperature: Annotated[float, Field(ge=0, le=10)] | Literal["default"] = 0.0
    seed: Count | Literal["default"] = 0
    max_tokens: Positive | Literal["default"] = 1000
    body: dict[str, JsonValue] = Field(default_factory=dict)
    concurrency: Annotated[int, Field(ge=1, le=1000)] = 4
    timeout_s: Seconds = 120.0
    retries: Annotated[int, Field(ge=0, le=20)] = 4
    retry_wait_limit_s: Seconds = 60.0
    price_in: Share | None = None
    price_out: Share | None = None
    currency: Filled = "USD"
    cache: bool = True

    @field_validator("scale")
    @classmethod
    def _rising(
        cls, value: tuple[int, int] | dict[str, tuple[int, int]] | None
    ) -> tuple[int, int] | dict[str, tuple[int, int]] | None:
        given = [value] if isinstance(value, tuple) else list((value or {}).values())
        for low, high in given:
            if low >= high:
                raise problem(f"{low} to {high} is not a scale", "write the lower end first")
        return value


class Regression(_Table):
    """`regression = {...}` of a gate: how much worse than the base run is still allowed."""

    relative: Share | None = None
    absolute_ms: Share | None = None
    absolute: Share | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.relative is self.absolute_ms is self.absolute is None:
            raise problem("allows nothing", "write relative = 0.1, absolute_ms = 30, or both")
        return self


class Gate(_Table):
    """`[[gate]]`: a limit that a metric must keep; in every cell, or where it says."""

    metric: Filled
    at: Literal["mean", "p50", "p90", "p95", "p99"] | None = None
    max: float | None = None
    min: float | None = None
    regression: Regression | None = None
    endpoint: Name | None = None
    suite: Name | None = None
    condition: Name | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, name: str) -> str:
        _raise(gate_rules.metric_problem(name))
        return name

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        given = [one for one in ("max", "min", "regression") if getattr(self, one) is not None]
        if not given or ("regression" in given and len(given) > 1):
            found = f"has {' and '.join(given) or 'no limit'}"
            raise problem(found, "give max, min or regression")
        if self.at is not None and not gate_rules.has_percentiles(self.metric):
            raise problem(f'at = "{self.at}": {self.metric} has one value', "remove at")
        for limit in (self.max, self.min):
            if limit is not None:
                _raise(gate_rules.limit_problem(self.metric, limit))
        if self.regression is not None:
            _raise(gate_rules.regression_problem(self.metric, self.regression))
        return self


class Mqtt(_Table):
    """`[publish.mqtt]`: where figures are published while a run goes on."""

    host: Filled
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    topic: Filled = "voxmeter"
    tls: bool = False
    ca_file: Filled | None = None
    insecure: bool = False
    username_env: Filled | None = None
    password_env: Filled | None = None
    discovery: bool = False
    discovery_topic: Filled = "homeassistant"
    discovery_remove: bool = False

    @field_validator("host")
    @classmethod
    def _bare(cls, value: str) -> str:
        _raise(host_problem(value))
        return value

    @field_validator("topic", "discovery_topic")
    @classmethod
    def _fit(cls, value: str) -> str:
        _raise(prefix_problem(value))
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.password_env is not None and self.username_env is None:
            raise problem("has password_env and no username_env", "give both")
        if self.ca_file is not None and not self.tls:
            raise problem("has ca_file and no tls = true", "write tls = true")
        return self


class Publish(_Table):
    """`[publish]`: who is told of figures besides the run folder."""

    mqtt: Mqtt | None = None


class Bench(_Table):
    """A whole bench.toml.

    Attributes:
        source: The file's name as errors show it.
        folder: What relative paths in the file are relative to; `run.out` is relative to the
            working folder instead, like `--out`.
        packaged: Whether this is the copy that comes with voxmeter.
    """

    run: Run = Field(default_factory=Run)
    endpoints: tuple[Endpoint, ...] = Field(alias="endpoint", min_length=1)
    suites: tuple[Suite, ...] = Field(alias="suite", min_length=1)
    conditions: tuple[Condition, ...] = Field(default=(), alias="condition")
    transcribe: Transcribe = Field(default_factory=Transcribe)
    judges: tuple[Judge, ...] = Field(default=(), alias="judge")
    gates: tuple[Gate, ...] = Field(default=(), alias="gate")
    publish: Publish = Field(default_factory=Publish)
    source: str = Field(default="bench.toml", exclude=True)
    folder: Path = Field(default=Path(), exclude=True)
    packaged: bool = Field(default=False, exclude=True)

    @field_validator("endpoints", "suites", "conditions", "judges", "gates", mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return _tuple(value)

    def suite_conditions(self, suite: Suite) -> tuple[str, ...]:
        """Return the conditions a suite is run in: those it lists, else clean and every one."""
        if suite.conditions is not None:
            return suite.conditions
        return ("clean", *(one.name for one in self.conditions))

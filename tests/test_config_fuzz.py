"""Whatever a bench.toml says, the answer is a bench or one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from voxmeter.client import bench, config
from voxmeter.client.bench_rules import refuse_unbuilt
from voxmeter.endpoints.errors import UserError

MODELS = (
    bench.Run,
    bench.Endpoint,
    bench.Suite,
    bench.Condition,
    bench.Transcribe,
    bench.Judge,
    bench.Regression,
    bench.Gate,
    bench.Mqtt,
)
TABLES = ("run", "endpoint", "suite", "condition", "transcribe", "judge", "gate", "publish", "mqtt")
KEYS = sorted(
    {name for model in MODELS for name in model.model_fields} | {*TABLES, "x", "", "\x1b"}
)
WORDS = (
    *("", "a", "demo", "jsonl", "clean", "openai-realtime", "echo", "metronome?delay_ms=1"),
    *("ws://h", "ws://[", "{env:X}", "accuracy", "first_audible_ms", "judge_score:", "p50", "\n"),
    *("judge_score:a", "real-time", "text", "both", "ws://h:x", "ws://h/?key=1", "sk-\x00", "é"),
)

keys = st.sampled_from(KEYS)
leaves = (
    st.sampled_from(WORDS)
    | st.booleans()
    | st.integers(-2, 10**6)
    | st.floats()
    | st.dates()
    | st.text(max_size=5)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


def _table(model: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    own = st.sampled_from(sorted(model.model_fields))
    return st.dictionaries(own, values, max_size=3)


good_endpoint = st.just({"name": "a", "builtin": "echo"})
endpoints = st.builds(lambda one, more: {**one, **more}, good_endpoint, _table(bench.Endpoint))
suites = st.builds(lambda more: {"kind": "demo", **more}, _table(bench.Suite))
files = st.fixed_dictionaries(
    {"endpoint": st.lists(endpoints, max_size=2), "suite": st.lists(suites, max_size=2)},
    optional={
        "run": _table(bench.Run),
        "condition": st.lists(_table(bench.Condition), max_size=2),
        "judge": st.lists(_table(bench.Judge), max_size=2),
        "gate": st.lists(_table(bench.Gate), max_size=2),
        "transcribe": _table(bench.Transcribe),
        "publish": st.fixed_dictionaries({"mqtt": _table(bench.Mqtt)}),
    },
)


def _mistake(act: Callable[[], object]) -> str:
    """Return the line of a user's mistake, "" when there is none; anything else is a failure."""
    try:
        act()
    except UserError as error:
        return str(error)
    return ""


def _one_line_or_a_bench(data: dict[str, Any]) -> None:
    line = _mistake(lambda: refuse_unbuilt(config.parse(data, "bench.toml")))
    assert not line or re.match(r"bench\.toml.*; \S", line, re.DOTALL)


@given(st.dictionaries(keys, values, max_size=5))
@settings(deadline=None, max_examples=50)
def test_any_tables_give_a_bench_or_one_line(data: dict[str, Any]) -> None:
    _one_line_or_a_bench(data)


@given(files)
@settings(deadline=None)
def test_tables_with_odd_values_give_a_bench_or_one_line(data: dict[str, Any]) -> None:
    _one_line_or_a_bench(data)


@given(files)
@settings(deadline=None, max_examples=50)
def test_a_bench_that_is_accepted_reads_back_from_its_record(data: dict[str, Any]) -> None:
    try:
        found = config.parse(data, "bench.toml")
    except UserError:
        return
    assert config.parse(config.resolved(found), "bench.toml") == found


@given(st.text())
@settings(deadline=None)
def test_any_text_is_toml_or_one_line(text: str) -> None:
    line = _mistake(lambda: config.tables(text, "bench.toml"))
    assert not line or line.startswith("bench.toml:")

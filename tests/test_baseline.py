"""Baseline files: what is written is read again, and what is no baseline is one readable line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conversations import CLIP, conversation, spread
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.api import Conversation
from voxmeter.client.baseline import (
    LATE,
    Baseline,
    Subject,
    baseline_of,
    differences,
    read_baseline,
    write_baseline,
)
from voxmeter.endpoints.errors import UserError

AGAIN = "pytest --voxmeter-update test_it.py"


def written(path: Path, of: Conversation | None = None) -> Baseline:
    baseline = baseline_of(of or conversation(spread(300)), "here")
    write_baseline(path, baseline)
    return baseline


def read(path: Path) -> Baseline:
    return read_baseline(path, path.name, AGAIN)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    talk = conversation(spread(300), late=2, failed=1, host="bench-1")
    baseline = written(tmp_path / "deep" / "hello.json", talk)
    found = read(tmp_path / "deep" / "hello.json")
    assert found.subject == Subject("openai-realtime", CLIP, "server-vad", "real-time")
    assert found.host == "bench-1"
    samples = found.samples["first_audible_ms"]
    assert samples == baseline.samples["first_audible_ms"]
    assert samples.values == tuple(spread(300))
    assert samples.left_out == {LATE: 2, "timeout": 1}
    assert samples.asked == 23
    assert set(found.samples) == {"first_audible_ms"}  # a latency without samples is not written


def test_the_file_is_small_and_a_change_of_it_is_read_at_a_glance(tmp_path: Path) -> None:
    written(tmp_path / "hello.json")
    text = (tmp_path / "hello.json").read_text()
    rows = json.loads(text)
    assert rows["schema"] == 1
    assert set(rows["versions"]) == {"voxmeter", "python"}
    assert rows["metrics"]["first_audible_ms"]["p50"] == 300
    assert len(text) < 1000
    assert len([line for line in text.splitlines() if "first_audible_ms" in line]) == 1


def test_what_a_later_version_adds_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "hello.json"
    baseline = written(path)
    rows = json.loads(path.read_text())
    rows["mood"] = "good"
    rows["metrics"]["first_audible_ms"]["p42"] = 1
    path.write_text(json.dumps(rows))
    assert read(path).samples["first_audible_ms"] == baseline.samples["first_audible_ms"]


def test_a_trial_without_the_latency_says_why() -> None:
    found = baseline_of(conversation([300.0, None, 310.0], failed=2), "here")
    assert found.samples["first_audible_ms"].left_out == {"it did not happen": 1, "timeout": 2}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"clip": "cd" * 32}, "another clip_sha256 (abababababab, now cdcdcdcdcdcd)"),
        ({"endpoint_kind": "moshi"}, "another endpoint_kind (openai-realtime, now moshi)"),
        ({"latency_kind": "commit"}, "another latency_kind (server-vad, now commit)"),
        ({"host": "elsewhere"}, None),
    ],
)
def test_only_samples_of_the_same_thing_are_alike(other: dict[str, str], told: str | None) -> None:
    base = baseline_of(conversation(spread(300)), "here")
    new = baseline_of(conversation(spread(300), **other), "here")  # type: ignore[arg-type]
    assert differences(base, new) == ([told] if told else [])


@pytest.mark.parametrize("name", ["clip", "latency_kind"])
def test_a_conversation_of_two_things_has_no_baseline(name: str) -> None:
    one = conversation(spread(300))
    two = conversation(spread(300), **{name: "other"})  # type: ignore[arg-type]
    mixed = Conversation(one.trials + two.trials, (), {}, "moshi")
    with pytest.raises(UserError, match=f"more than one {name}"):
        baseline_of(mixed, "here")


def changed(*keys: str, to: Any) -> Callable[[Any], Any]:
    def change(rows: Any) -> Any:
        place = rows
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to
        return rows

    return change


FIRST = ("metrics", "first_audible_ms")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed("schema", to=2), "is of schema 2, and this version of voxmeter reads 1"),
        (changed("schema", to="1"), "schema: Input should be a valid integer"),
        (changed("schema", to=10**400), "schema"),
        (changed("host", to=None), "host: "),
        (changed("clip_sha256", to=["ab"]), "clip_sha256: "),
        (changed("metrics", to=[]), "metrics: "),
        (changed("metrics", to={"first_audible_ms": 300}), "first_audible_ms: "),
        (changed(*FIRST, "samples", to=[]), "samples"),
        (changed(*FIRST, "samples", to=[300, "300"]), "samples.1"),
        (changed(*FIRST, "samples", to=[300, True]), "samples.1"),
        (changed(*FIRST, "samples", to=[300, None]), "samples.1"),
        (changed(*FIRST, "samples", to=[300, float("nan")]), "samples.1"),
        (changed(*FIRST, "samples", to=[300, float("inf")]), "samples.1"),
        (changed(*FIRST, "samples", to=[300, 1e300]), "samples.1"),
        (changed(*FIRST, "samples", to=[300.0] * 10_001), "samples"),
        (changed(*FIRST, "left_out", to={"timeout": -1}), "left_out.timeout"),
        (changed(*FIRST, "samples", to=[900.0] * 20), "was changed by hand: p50 of first_audible"),
        (changed(*FIRST, "p50", to=900.0), "is 900, that of its samples 300"),
        (lambda _: [], "is no baseline"),
        (lambda _: {}, "schema: Field required"),
        (lambda _: {"schema": 1}, "endpoint_kind: Field required"),
        (lambda _: "\x1b[2J", "is no baseline"),
    ],
)
def test_what_was_damaged_or_changed_is_told_in_one_line(
    change: Callable[[Any], Any], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "hello.json"
    written(path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(UserError) as caught:
        read(path)
    assert told in str(caught.value)
    assert AGAIN in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_names_from_a_hostile_file_cannot_move_the_cursor(tmp_path: Path) -> None:
    path = tmp_path / "hello.json"
    written(path)
    rows = json.loads(path.read_text())
    rows["metrics"]["\x1b[31m\n" + "x" * 200] = {"p50": 1, "left_out": {}, "samples": [2]}
    path.write_text(json.dumps(rows))
    with pytest.raises(UserError, match="changed by hand") as caught:
        read(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 100_000, b"{" * 9, b" " * 4_000_001])
def test_what_is_no_json_or_too_large_is_no_baseline(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "hello.json").write_bytes(data)
    with pytest.raises(UserError, match="is no baseline"):
        read(tmp_path / "hello.json")


def test_a_missing_baseline_comes_with_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "hello.json")
    assert str(caught.value) == f"hello.json: there is no such baseline; write it with: {AGAIN}"


def test_a_folder_is_no_baseline_and_cannot_become_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a file"):
        read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        written(tmp_path / "file" / "hello.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder"):
        written(tmp_path / "folder")


_KEYS = st.sampled_from(
    ["schema", "endpoint_kind", "clip_sha256", "latency_kind", "pacing", "host", "metrics"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@given(
    st.binary(max_size=200) | st.dictionaries(_KEYS, _VALUES).map(lambda r: json.dumps(r).encode())
)
def test_any_content_is_a_baseline_or_one_line(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "hello.json"
        path.write_bytes(data)
        try:
            assert read(path).samples
        except UserError as error:
            assert str(error).isprintable()  # noqa: PT017 - a baseline is an answer too

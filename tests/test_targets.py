"""From a table of bench.toml to a target, with keys and a server of our own."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import Any
from urllib.request import urlopen

import pytest

from voxmeter.client import config
from voxmeter.client.bench import Bench, Endpoint
from voxmeter.client.target import Target
from voxmeter.client.targets import instructions_hash, settings, target
from voxmeter.endpoints.errors import UserError


def bench(run: dict[str, Any] | None = None, **fields: Any) -> tuple[Bench, Endpoint]:
    known: dict[str, Any] = {"name": "m", "kind": "openai-realtime"}
    if "builtin" not in fields:
        known["url"] = "ws://127.0.0.1:1/v1"
    tables = {
        "run": run or {},
        "endpoint": [known | fields],
        "suite": [{"kind": "demo"}],
    }
    made = config.parse(tables, "bench.toml")
    return made, made.endpoints[0]


def made(run: dict[str, Any] | None = None, **fields: Any) -> Target:
    with ExitStack() as stack:
        return target(*bench(run, **fields), stack)


def test_time_outs_and_limits_are_those_of_the_table() -> None:
    found = made(
        connect_timeout_s=1,
        first_reply_timeout_s=2,
        reply_limit_s=3,
        greeting_timeout_s=4,
        drain_ms=5,
        quiet_ms=6,
        max_message_mib=7,
        insecure=True,
        ca_file="/ca.pem",
        use_proxy=False,
        commit_after_ms=8,
        turn_end="commit",
    )
    patience, wire = found.patience, found.wire
    assert (patience.connect_timeout_s, patience.first_reply_timeout_s) == (1, 2)
    assert (patience.reply_limit_s, patience.greeting_timeout_s) == (3, 4)
    assert (patience.drain_ms, patience.quiet_ms) == (5, 6)
    assert (wire.max_message_mib, wire.insecure, wire.use_proxy) == (7, True, False)
    assert wire.ca_file == "/ca.pem"
    assert (found.commit_after_ms, found.settings.turn_end) == (8, "commit")


def test_defaults_are_those_of_the_contract() -> None:
    found = made()
    patience = found.patience
    assert (patience.connect_timeout_s, patience.first_reply_timeout_s) == (10, 30)
    assert patience.reply_limit_s == 120
    assert found.pacing == "real-time"
    assert not found.wire.insecure


def test_a_session_is_to_be_what_the_table_says() -> None:
    _, endpoint = bench(
        model="gpt", instructions="Be brief.", voice="alloy", temperature=0.5, input_rate=24_000
    )
    found = settings(endpoint)
    assert (found.model, found.instructions, found.voice) == ("gpt", "Be brief.", "alloy")
    assert (found.temperature, found.input_rate, found.output_rate) == (0.5, 24_000, None)


def test_keys_and_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-123")
    monkeypatch.setenv("MY_TOKEN", "tok")
    found = made(api_key_env="MY_KEY", headers={"X-Token": "t {env:MY_TOKEN}"})
    assert found.api_key == "sk-123"
    assert found.headers == {"X-Token": "t tok"}


def test_a_missing_key_is_the_users_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(UserError, match="MY_KEY is not set"):
        made(api_key_env="MY_KEY")


def test_pacing_is_the_runs() -> None:
    assert made({"pacing": "fast"}).pacing == "fast"


def test_a_metronome_is_started_asked_for_its_query_and_ended() -> None:
    with ExitStack() as stack:
        found = target(*bench(builtin="metronome?delay_ms=300&jitter_ms=20"), stack)
        assert found.url.startswith("ws://127.0.0.1:")
        assert found.url.endswith("?delay_ms=300&jitter_ms=20&tag=")
        there = found.url.replace("ws:", "http:").partition("?")[0]
        with pytest.raises(OSError, match="HTTP Error"):  # it listens, and wants a websocket
            urlopen(there, timeout=5)  # noqa: S310 - a server of ours
    with pytest.raises(OSError, match="refused"):
        urlopen(there, timeout=5)  # noqa: S310


def test_a_server_of_ours_that_cannot_start_is_one_line() -> None:
    with ExitStack() as stack, pytest.raises(UserError, match="did not start"):
        target(*bench(builtin="metronome?delay_ms=never"), stack)


def test_instructions_are_told_apart_by_their_hash() -> None:
    _, one = bench(instructions="Be brief.")
    _, other = bench(instructions="Be brief!")
    assert instructions_hash(one) == hashlib.sha256(b"Be brief.").hexdigest()
    assert instructions_hash(one) != instructions_hash(other)

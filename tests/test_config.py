"""What a bench.toml may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxmeter.client import config
from voxmeter.client.access import access, redactor
from voxmeter.client.bench import Bench
from voxmeter.client.bench_rules import refuse_unbuilt
from voxmeter.client.builtin_name import Builtin
from voxmeter.endpoints.errors import UserError

E = '[[endpoint]]\nname = "a"\nbuiltin = "echo"\n'
S = '[[suite]]\nkind = "demo"\n'
NAMED = '[[endpoint]]\nname = "a"\n'
J = '[[judge]]\nname = "j"\nmodel = "m"\n'
CONDITION = '[[condition]]\nname = "noisy"\n'


def _load(folder: Path, text: str | bytes) -> Bench:
    file = folder / "bench.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return config.load(file)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert _load(tmp_path, b"\xef\xbb\xbf" + (E + S).encode()).endpoints[0].name == "a"


def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    bench = _load(tmp_path, E + S)
    endpoint = bench.endpoints[0]
    assert endpoint.builtin == Builtin("echo")
    assert endpoint.kind == "openai-realtime"
    assert (
        endpoint.connect_timeout_s,
        endpoint.first_reply_timeout_s,
        endpoint.reply_limit_s,
        endpoint.commit_after_ms,
    ) == (10, 30, 120, 0)
    assert (bench.run.out, bench.run.seed, bench.run.trials) == ("runs", 0, 1)
    assert bench.run.pacing == "real-time"


def test_a_run_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text(E + S)
    assert config.load(file).run.name == "night"


def test_with_no_bench_the_packaged_copy_is_used_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = config.load(None)
    assert bench.packaged
    assert bench.source == "bench.toml (packaged)"
    assert [one.name for one in bench.endpoints] == ["cascade", "metronome"]
    assert bench.endpoints[1].builtin == Builtin("metronome", (("delay_ms", "300"),))
    Path("bench.toml").write_text(E + S)
    assert not config.load(None).packaged


def test_the_packaged_copy_is_the_example_at_the_top() -> None:
    root = Path(__file__).parent.parent
    assert (root / "client" / "bench.toml").read_text() == (root / "bench.toml").read_text()


def test_every_table_of_the_contract_is_read(tmp_path: Path) -> None:
    bench = _load(
        tmp_path,
        """
        [run]
        name = "n"
        out = "o"
        seed = 7
        trials = 2
        concurrency = 4
        warmup = 3
        pacing = "fast"
        [[endpoint]]
        name = "a"
        kind = "openai-realtime"
        url = "wss://host/v1?model=x&key={env:K}"
        model = "m"
        instructions = "i"
        voice = "v"
        temperature = 1
        options = {speed = 1.5}
        input_rate = 24000
        output_rate = 24000
        api_key_env = "K"
        headers = {X-Team = "{env:T}"}
        connect_timeout_s = 1
        first_reply_timeout_s = 2.5
        reply_limit_s = 3
        commit_after_ms = 100
        turn_end = "commit"
        size = "8B"
        concurrency = 1
        reply_channel = "text"
        drain_ms = 10
        [[suite]]
        kind = "jsonl"
        name = "s"
        path = "items.jsonl"
        limit = 5
        subset = 0.5
        conditions = ["clean", "noisy"]
        question_via = "speech-after"
        few_shot = 2
        [[condition]]
        name = "noisy"
        chain = [{effect = "gaussian-noise", snr_db = 10}]
        [transcribe]
        model = "base"
        device = "cpu"
        compute_type = "int8"
        language = "de"
        beam_size = 1
        workers = 2
        allow_downloads = true
        [[judge]]
        name = "j"
        model = "m"
        base_url = "http://h/v1"
        api_key_env = "J"
        scale = [1, 10]
        orders = "both"
        suites = ["s"]
        prompts = {adu = "own.md", "s/adu" = "/p/mine.md"}
        temperature = "default"
        seed = 3
        max_tokens = 500
        body = {reasoning_effort = "low"}
        concurrency = 2
        timeout_s = 30
        retries = 1
        retry_wait_limit_s = 10
        price_in = 2.5
        price_out = 10.0
        currency = "EUR"
        cache = false
        [[gate]]
        metric = "first_audible_ms"
        at = "p50"
        max = 800
        [[gate]]
        metric = "judge_score:j"
        min = 5
        [[gate]]
        metric = "first_audible_ms"
        regression = {relative = 0.1, absolute_ms = 30}
        [publish.mqtt]
        host = "h"
        port = 8883
        topic = "t"
        tls = true
        ca_file = "ca.pem"
        username_env = "U"
        password_env = "P"
        discovery = true
        """,
    )
    assert bench.suites[0].path == str(tmp_path / "items.jsonl")
    assert bench.gates[2].regression is not None
    assert bench.judges[0].prompts == {"adu": str(tmp_path / "own.md"), "s/adu": "/p/mine.md"}
    assert bench.publish.mqtt is not None
    assert bench.publish.mqtt.ca_file == str(tmp_path / "ca.pem")
    again = config.parse(config.resolved(bench), bench.source, bench.folder)
    assert again == bench


def test_the_resolved_configuration_is_plain_json_and_reads_back(tmp_path: Path) -> None:
    bench = _load(tmp_path, E.replace("echo", "metronome?delay_ms=300") + S)
    resolved = config.resolved(bench)
    assert resolved["endpoint"][0]["builtin"] == "metronome?delay_ms=300"
    assert resolved["run"]["trials"] == 1
    assert "source" not in resolved
    assert config.parse(resolved, bench.source, bench.folder) == bench


def test_relative_paths_start_from_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "whisper").mkdir()
    text = E + "ca_file = 'ca.pem'\n" + "[[suite]]\nkind = 'jsonl'\npath = 'a/b.jsonl'\n"
    bench = _load(tmp_path, text + "[transcribe]\nmodel = 'whisper'")
    assert bench.suites[0].path == str(tmp_path / "a" / "b.jsonl")
    assert bench.endpoints[0].ca_file == str(tmp_path / "ca.pem")
    assert bench.transcribe.model == str(tmp_path / "whisper")
    assert _load(tmp_path, text).transcribe.model == "tiny.en"


def test_conditions_of_a_suite_are_clean_and_all_unless_it_lists_them(tmp_path: Path) -> None:
    bench = _load(
        tmp_path, E + S + "[[suite]]\nkind='demo'\nname='b'\nconditions=['noisy']\n" + CONDITION
    )
    assert [bench.suite_conditions(suite) for suite in bench.suites] == [
        ("clean", "noisy"),
        ("noisy",),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[[suite]]\nkind = 'demo'\nname = 'b'\ninterrupt = true",
            '[[suite]] "b" interrupt: this version has no interruptions yet',
        ),
    ],
)
def test_what_is_not_built_yet_is_refused_by_a_run_and_not_ignored(
    tmp_path: Path, text: str, line: str
) -> None:
    bench = _load(tmp_path, E + S + text)
    with pytest.raises(UserError) as caught:
        refuse_unbuilt(bench)
    assert str(caught.value) == f"{bench.source}: {line}; remove it for this run"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "reply_channel = 'text'",
            "reply_channel: is text, but as it is set up it replies in speech; "
            "ask for text replies in [endpoint.options], or remove the key",
        ),
        ("options = {speed = 'fast'}", "options.speed: 'fast'; use "),
        ("ca_file = '/nowhere/ca.pem'", "ca_file /nowhere/ca.pem: holds no certificates (No such"),
    ],
)
def test_what_a_protocol_cannot_carry_is_refused_before_a_run(
    tmp_path: Path, text: str, line: str
) -> None:
    bench = _load(tmp_path, E + text + "\n" + S)
    with pytest.raises(UserError) as caught:
        refuse_unbuilt(bench)
    assert str(caught.value).startswith(f'{bench.source}: [[endpoint]] "a" {line}')


def test_replies_in_text_are_asked_for_among_the_options(tmp_path: Path) -> None:
    text = "reply_channel = 'text'\noptions = {output_modalities = 'text'}\n"
    refuse_unbuilt(_load(tmp_path, E + text + S))


def test_a_condition_may_do_something_or_nothing(tmp_path: Path) -> None:
    refuse_unbuilt(_load(tmp_path, E + S + CONDITION))
    chain = "chain = [{effect = 'gaussian-noise'}]"
    refuse_unbuilt(_load(tmp_path, E + S + CONDITION + chain))


def test_what_the_command_line_says_goes_before_the_file(tmp_path: Path) -> None:
    bench = _load(tmp_path, E + "concurrency = 3\n" + S)
    changed = config.overridden(bench, name="n", trials=5, concurrency=2)
    assert (changed.run.name, changed.run.trials, changed.run.out) == ("n", 5, "runs")
    assert changed.run.concurrency == 2
    assert changed.endpoints[0].concurrency is None
    assert config.overridden(bench) == bench
    with pytest.raises(UserError) as caught:
        config.overridden(bench, name=" ")
    assert str(caught.value) == "command line: [run] name: is empty; give it a name"


def test_an_endpoint_is_reached_with_what_the_environment_says(tmp_path: Path) -> None:
    bench = _load(
        tmp_path,
        NAMED
        + "url = 'wss://h/{env:PATH_PART}'\napi_key_env = 'K'\n"
        + "headers = {Authorization = 'Key {env:K2}'}\n"
        + S,
    )
    environment = {"K": "key-number-1", "K2": "key-number-2", "PATH_PART": "secret-path"}
    found = access(bench.endpoints[0], "bench.toml", environment)
    assert found.url == "wss://h/secret-path"
    assert found.headers == {"Authorization": "Key key-number-2"}
    assert found.api_key == "key-number-1"
    assert not [value for value in environment.values() if value in repr(found)]
    text = "key-number-1 key-number-2 secret-path"
    assert redactor(bench, environment).text(text) == "[redacted] [redacted] [redacted]"
    assert redactor(bench, {"K2": "key-number-2"}).text(text).count("[redacted]") == 1
    with pytest.raises(UserError) as caught:
        access(bench.endpoints[0], "bench.toml", {})
    assert str(caught.value) == (
        'bench.toml: [[endpoint]] "a" url: environment variable PATH_PART is not set; '
        "export PATH_PART=..."
    )

"""What a bench.toml may say, and the one line for everything it may not."""

from __future__ import annotations

import re
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
H = 'base_url = "http://h/v1"\n'
CONDITION = '[[condition]]\nname = "noisy"\n'

# Every line begins with "bench.toml: ".
BAD = {
    # Case CF-01: keys and tables that nobody reads
    E
    + S
    + "[transcribe]\nmodle = 'tiny'": '[transcribe] modle: unknown key; did you mean "model"?',
    "[endpoint.foo]\nurl = 'ws://h'\n" + S: (
        "[endpoint.foo]: one table where a list of tables is expected; "
        'write [[endpoint]] with name = "foo"'
    ),
    E + S + "[endpoint.foo]\nx = 1": (
        '[[endpoint]] "a" foo: unknown key; write [[endpoint]] with name = "foo" for another one'
    ),
    "ttl = 'banana'\n" + E + S: (
        "ttl: unknown key; known: condition, endpoint, gate, judge, publish, run, suite, transcribe"
    ),
    "[endpoint]\nname = 'x'\n" + S: (
        "[endpoint]: one table where a list of tables is expected; write [[endpoint]]"
    ),
    "[[endpoints]]\nname = 'x'\n" + E + S: 'endpoints: unknown table; did you mean "endpoint"?',
    "[[run]]\n" + E + S: "run: is a list of 1; write one table [run]",
    "run = 3\n" + E + S: "run: is 3; write one table [run]",
    "endpoint = 3\n" + S: "endpoint: is 3; write [[endpoint]] tables",
    S: "has no [[endpoint]]; add one; see docs/configuration.md",
    "endpoint = []\n" + S: "has no [[endpoint]]; add one; see docs/configuration.md",
    E: "has no [[suite]]; add one; see docs/configuration.md",
    "": "has no [[endpoint]]; add one; see docs/configuration.md",
    E + S + "[run]\nwarm_up = 1": '[run] warm_up: unknown key; did you mean "warmup"?',
    # Wrong types and ranges
    E + S + "[run]\nseed = '1'": '[run] seed: is the text "1"; write a whole number',
    E + S + "[run]\ntrials = 0": "[run] trials: is 0; write 1 or more",
    E + S + "[run]\ntrials = 1.5": "[run] trials: is 1.5; write a whole number",
    E + S + "[run]\ntrials = true": "[run] trials: is true; write a whole number",
    E + S + "[run]\nconcurrency = 5000": "[run] concurrency: is 5000; write 1000 or less",
    E + S + "[run]\npacing = 'realtime'": (
        '[run] pacing: is the text "realtime"; write "real-time" or "fast"'
    ),
    E + S + "[run]\nname = ''": "[run] name: is empty; give it a name",
    E + S + "[run]\nname = 2026-01-01": '[run] name: is a date; write text in quotes: "..."',
    E + S + '[run]\nname = "a\\u001b"': (
        r"[run] name: 'a\x1b' has spaces at its ends or invisible characters; remove them"
    ),
    E + "temperature = 'hot'\n" + S: (
        '[[endpoint]] "a" temperature: is the text "hot"; write a number'
    ),
    E + "input_rate = 16\n" + S: '[[endpoint]] "a" input_rate: is 16; write 4000 or more',
    E + "turn_end = 'comit'\n" + S: (
        '[[endpoint]] "a" turn_end: is the text "comit"; write "silence", "commit" or "request"'
    ),
    E + "connect_timeout_s = 0\n" + S: (
        '[[endpoint]] "a" connect_timeout_s: is 0; write more than 0'
    ),
    E + "connect_timeout_s = nan\n" + S: (
        '[[endpoint]] "a" connect_timeout_s: is nan; write a number that is finite'
    ),
    E + "connect_timeout = 10\n" + S: (
        '[[endpoint]] "a" connect_timeout: unknown key; did you mean "connect_timeout_s"?'
    ),
    E + "options = {speed = 1979-05-27}\n" + S: (
        '[[endpoint]] "a" options.speed: is a date; '
        "write text, a number, true, false, a list or a table"
    ),
    # Where an endpoint is
    "[[endpoint]]\nbuiltin = 'echo'\n" + S: "[[endpoint]] 1 name: is missing; add this key",
    NAMED + S: '[[endpoint]] "a" url: is missing; add url = "..." or builtin = "cascade"',
    E + "url = 'ws://h'\n" + S: '[[endpoint]] "a": has url and builtin; keep one of them',
    NAMED + "url = ''\n" + S: (
        '[[endpoint]] "a" url: is empty; remove the key, or give it a value'
    ),
    NAMED + "url = 'ftp://h'\n" + S: (
        '[[endpoint]] "a" url: "ftp://h" does not begin with a known scheme; '
        "known: ws://, wss://, http://, https://, mqtt://, mqtts://"
    ),
    NAMED + "url = 'wss://'\n" + S: (
        '[[endpoint]] "a" url: "wss://" names no host; write it like "wss://host/path"'
    ),
    NAMED + "url = 'ws://h:99999'\n" + S: (
        '[[endpoint]] "a" url: is not a URL (Port out of range 0-65535); '
        'write it like "wss://host/path"'
    ),
    NAMED + "url = 'ws://a b'\n" + S: (
        '[[endpoint]] "a" url: "ws://a b" has a space in it; remove it, or write %20'
    ),
    NAMED + "builtin = 'cascde'\n" + S: (
        '[[endpoint]] "a" builtin: "cascde" is not a built-in server; did you mean "cascade"?'
    ),
    NAMED + "builtin = 'metronome?delay_ms'\n" + S: (
        '[[endpoint]] "a" builtin: "delay_ms" is not a list of options; write a=1&b=2'
    ),
    NAMED + "builtin = 'metronome?x=1&x=2'\n" + S: (
        '[[endpoint]] "a" builtin: option "x" is given twice; keep one of them'
    ),
    NAMED + "kind = 'http'\ncommand = ['x']\n" + S: (
        '[[endpoint]] "a" command: kind http talks to a URL, not to a program; give its url'
    ),
    NAMED + "kind = 'deepgram'\nbuiltin = 'echo'\n" + S: (
        '[[endpoint]] "a" builtin: none of our own servers speaks deepgram; '
        "give the url of one that does"
    ),
    NAMED + "kind = 'http'\nurl = 'wss://h/x'\n" + S: (
        '[[endpoint]] "a" url: is a websocket\'s, but kind http speaks HTTP; '
        'write it like "http://host/path"'
    ),
    NAMED + "command = ['x']\n" + S: (
        '[[endpoint]] "a" command: kind openai-realtime talks to a URL, not to a program; '
        "give its url"
    ),
    E + "kind = 'openai-realtme'\n" + S: (
        '[[endpoint]] "a" kind: there is no endpoint kind "openai-realtme"; '
        'did you mean "openai-realtime"?'
    ),
    E + "silence_duration_ms = 200\n" + S: (
        '[[endpoint]] "a" silence_duration_ms: unknown key; it is an option of this kind: '
        "write silence_duration_ms under [endpoint.options]"
    ),
    E + "options = {silence_ms = 200}\n" + S: (
        '[[endpoint]] "a" options.silence_ms: kind openai-realtime has no such option; '
        'did you mean "silence_duration_ms"?'
    ),
    # Secrets are never taken from the file, and never repeated
    NAMED + "url = 'wss://me:sk-1@h'\n" + S: (
        '[[endpoint]] "a" url: carries a user name or password; put secrets into environment '
        "variables: api_key_env, or {env:NAME} in the URL or in headers"
    ),
    NAMED + "url = 'wss://h/?api_key=sk-1'\n" + S: (
        '[[endpoint]] "a" url api_key=: a secret is written into the file; '
        'put it into an environment variable and write "{env:NAME}"'
    ),
    E + "headers = {Authorization = 'Bearer sk-1'}\n" + S: (
        '[[endpoint]] "a" headers.Authorization: a secret is written into the file; '
        'put it into an environment variable and write "{env:NAME}"'
    ),
    E + "headers = {X = 1}\n" + S: (
        '[[endpoint]] "a" headers.X: has the wrong type; write text in quotes: "..."'
    ),
    E + "headers = {'X Y' = '1'}\n" + S: (
        '[[endpoint]] "a" headers.X Y: is not a header name; use letters, digits and hyphens'
    ),
    E + "api_key = 'sk-1'\n" + S: (
        '[[endpoint]] "a" api_key: unknown key; did you mean "api_key_env"?'
    ),
    E + "api_key_env = 5\n" + S: (
        '[[endpoint]] "a" api_key_env: has the wrong type; write text in quotes: "..."'
    ),
    # Names
    E + E + S: ('[[endpoint]] "a": tables 1 and 2 have the same name; give each a name of its own'),
    E + E.replace('"a"', '"A"') + S: (
        '[[endpoint]] "A": tables 1 and 2 have names that differ in case alone; '
        "give each a name of its own"
    ),
    E + S + S: '[[suite]] "demo": tables 1 and 2 have the same name; give each a name of its own',
    E + S + CONDITION + CONDITION: (
        '[[condition]] "noisy": tables 1 and 2 have the same name; give each a name of its own'
    ),
    E + S + "[[condition]]\nname = 'clean'": (
        '[[condition]] "clean": clean is the name of the untouched clips; '
        "give this condition another name"
    ),
    # Suites and conditions
    E + "[[suite]]\nkind = 'dmeo'": (
        '[[suite]] "dmeo" kind: unknown kind "dmeo"; did you mean "demo"?'
    ),
    E + "[[suite]]\n": "[[suite]] 1 kind: is missing; add this key",
    E + "[[suite]]\nkind = 'jsonl'": (
        '[[suite]] "jsonl" path: is missing; add the path of the file of items'
    ),
    E + S + "limit = 0": '[[suite]] "demo" limit: is 0; write 1 or more',
    E + S + "options = {a = 1}": (
        '[[suite]] "demo" options: a demo suite has none; remove the table'
    ),
    E + S + "conditions = ['nosy']\n" + CONDITION: (
        '[[suite]] "demo" conditions: unknown condition "nosy"; did you mean "noisy"?'
    ),
    E + S + "conditions = []": (
        '[[suite]] "demo" conditions: is empty; write ["clean"], or remove the key'
    ),
    E + S + "conditions = 'clean'": (
        '[[suite]] "demo" conditions: is the text "clean"; write a list: [...]'
    ),
    E + S + CONDITION + "chain = [{snr_db = 1}]": (
        '[[condition]] "noisy" chain: step 1 has no effect; write {effect = "..."} for each'
    ),
    E + S + "[transcribe]\ndevice = 'gpu'": (
        '[transcribe] device: is the text "gpu"; write "auto", "cpu" or "cuda"'
    ),
    E + S + "[[judge]]\nname = 'j'": '[[judge]] "j" model: is missing; add this key',
    E + S + J: (
        '[[judge]] "j" api_key_env: is missing, and so is base_url: that is OpenAI\'s own '
        'service; write api_key_env = "OPENAI_API_KEY"'
    ),
    E + S + J + "base_url = 'ws://h/v1'": (
        '[[judge]] "j" base_url: is not an HTTP URL; write it like "https://host/v1"'
    ),
    E + S + J + "base_url = 'https://u:p@h/v1'": (
        '[[judge]] "j" base_url: carries a user name or password; put secrets into environment '
        "variables: api_key_env, or {env:NAME} in the URL or in headers"
    ),
    E + S + J + "base_url = 'https://{env:H}/v1'": (
        '[[judge]] "j" base_url: has {env:...} in it; put the key into api_key_env'
    ),
    E + S + J + H + "scale = [10, 1]": (
        '[[judge]] "j" scale: 10 to 1 is not a scale; write the lower end first'
    ),
    E + S + J + H + "scale = {dem = [0, 10]}": (
        '[[judge]] "j" scale: unknown suite "dem"; did you mean "demo"?'
    ),
    E + S + J + H + "suites = ['dem']": (
        '[[judge]] "j" suites: unknown suite "dem"; did you mean "demo"?'
    ),
    E + S + J + H + "prompts = {'dem/adu' = 'p.md'}": (
        '[[judge]] "j" prompts: unknown suite "dem"; did you mean "demo"?'
    ),
    E + S + J + H + "body = {api_key = 'sk-1'}": (
        '[[judge]] "j" body.api_key: a secret is written into the file; '
        "put the key into api_key_env"
    ),
    E + S + J + H + "body = {stream = true}": (
        '[[judge]] "j" body.stream: would replace stream, which is ours to set; remove it'
    ),
    E + S + "[publish.mqtt]\nhst = 'x'": '[publish.mqtt] hst: unknown key; did you mean "host"?',
    E + S + "[publish.mqtt]\nhost = 'x'\nport = 0": "[publish.mqtt] port: is 0; write 1 or more",
    # Case LM-11: thresholds without a metric, or in another unit
    E + S + "[[gate]]\nttfa_s = 800": (
        '[[gate]] 1 ttfa_s: unknown key; write metric = "first_audible_ms" '
        "and max or min in its unit"
    ),
    E + S + "[[gate]]\nmetric = 'audio_ttft'\nmax = 800": (
        '[[gate]] 1 metric: unknown metric "audio_ttft"; did you mean "first_audible_ms"?'
    ),
    E + S + "[[gate]]\nmetric = 'first_audible_s'\nmax = 1": (
        '[[gate]] 1 metric: unknown metric "first_audible_s"; did you mean "first_audible_ms"?'
    ),
    E + S + "[[gate]]\nmetric = 'first_audible_ms'\nmax = 0.8": (
        "[[gate]] 1: 0.8 ms is too short for first_audible_ms; it looks like seconds; "
        "write 800 for 0.8 s"
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'\nmin = 80": (
        "[[gate]] 1: 80 is not a fraction, as accuracy is; write 0.8 for 80 %"
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'\nat = 'p50'\nmin = 0.8": (
        '[[gate]] 1: at = "p50": accuracy has one value; remove at'
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'": (
        "[[gate]] 1: has no limit; give max, min or regression"
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'\nregression = {absolute_ms = 30}": (
        "[[gate]] 1: absolute_ms: accuracy is not a time; write absolute"
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'\nregression = {relativ = 0.1}": (
        '[[gate]] 1 regression.relativ: unknown key; did you mean "relative"?'
    ),
    E + S + "[[gate]]\nmetric = 'judge_score'\nmin = 3": (
        '[[gate]] 1 metric: "judge_score" names no judge; write "judge_score:<name of the judge>"'
    ),
    E + S + "[[gate]]\nmetric = 'judge_score:j'\nmin = 3": (
        '[[gate]] 1 metric: unknown judge "j"; there are none'
    ),
    E + S + "[[gate]]\nmetric = 'accuracy'\nendpoint = 'b'\nmin = 0.3": (
        '[[gate]] 1 endpoint: unknown endpoint "b"; known: a'
    ),
}


def _load(folder: Path, text: str | bytes) -> Bench:
    file = folder / "bench.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return config.load(file)


@pytest.mark.parametrize("text", BAD, ids=lambda text: BAD[text][:60])
def test_what_a_bench_may_not_say_is_one_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bench.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        config.load(Path("bench.toml"))
    line = str(caught.value)
    assert line == f"bench.toml: {BAD[text]}"
    assert "sk-1" not in line


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (E + "[run", "4"),
        (E + "x = '''", "4"),
        (E + "x = \n", "4:5"),
        ("[run]\nseed = 1\nseed = 2", "3"),
        ("x = " + "[" * 5000, "1"),
    ],
)
def test_what_is_not_toml_is_one_line_with_its_number(
    tmp_path: Path, text: str, place: str
) -> None:
    with pytest.raises(UserError) as caught:
        _load(tmp_path, text)
    file = re.escape(str(tmp_path / "bench.toml"))
    line = rf"{file}:{place}: not TOML: .*; correct this line"
    found = rf"{line}|{file}: is nested too deeply; correct it"
    assert re.fullmatch(found, str(caught.value))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "{}: no such file; give the path of a bench.toml"),
        (b"\xff\xfe[\x00", "{}: is not UTF-8 text; save it as UTF-8"),
        (b"[run]\nname = '\xe9'\n", "{}:2: is not UTF-8 text; save it as UTF-8"),
    ],
)
def test_what_is_no_text_file_is_one_line(tmp_path: Path, content: bytes | None, line: str) -> None:
    file = tmp_path / "bench.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        config.load(file)
    assert str(caught.value) == line.format(file)


def test_a_folder_is_one_line_that_points_at_the_file_in_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder; give the path of a file"):
        config.load(tmp_path)
    (tmp_path / "bench.toml").write_text(E + S)
    with pytest.raises(UserError, match=r"is a folder; give .*bench\.toml"):
        config.load(tmp_path)


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

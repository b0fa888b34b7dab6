"""The one line for everything that a bench.toml may not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from voxmeter.client import config
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


@pytest.mark.parametrize(
    "text", [f'[run]\nout = "a\\u0000"\n{E}{S}', f'{E}url = "ws://a\\u0000/"\n{S}']
)
def test_a_zero_byte_in_a_text_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(text)
    with pytest.raises(UserError, match="holds a zero byte; remove it"):
        config.load(tmp_path / "bench.toml")


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
    (tmp_path / "bench.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        config.load(tmp_path / "bench.toml")
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

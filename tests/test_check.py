"""`voxmeter check`, `endpoints` and `suites`: what works, what does not, and whose fault it is."""

from __future__ import annotations

import json
import re
import socket
import sys
import wave
from pathlib import Path

import pytest

from voxmeter.client.cli import main
from voxmeter.client.commands import check

SESSION = r"ok   endpoint a: session after \d+ ms(, round trip [\d.]+ ms)?( \(.*\))?"
HEARD = (
    r'ok   endpoint a: asked "q1": heard after -?\d+ ms, [\d.]+ s of speech as pcm16 at {rate} Hz'
)
SUITE = '[[suite]]\nkind = "jsonl"\npath = "items.jsonl"\n'


def _bench(folder: Path, endpoint: str, suite: str = SUITE) -> str:
    file = folder / "bench.toml"
    file.write_text(f'[[endpoint]]\nname = "a"\n{endpoint}\n{suite}')
    return str(file)


def _wav(path: Path, loud: bool = True) -> None:  # noqa: FBT002 - reads well in a test
    with wave.open(str(path), "wb") as writer:
        writer.setparams((1, 2, 8000, 0, "NONE", ""))
        samples = [12_000 * (number // 8 % 2) - 6000 if loud else 0 for number in range(8000)]
        writer.writeframes(b"".join(one.to_bytes(2, "little", signed=True) for one in samples))


def _items(folder: Path, *names: str) -> Path:
    file = folder / "items.jsonl"
    rows = [{"id": name, "audio": f"{name}.wav", "kind": "open", "question": "?"} for name in names]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_bench_that_works_is_0_with_a_line_for_each_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _items(tmp_path, "q1", "q2")
    _wav(tmp_path / "q1.wav")
    _wav(tmp_path / "q2.wav")
    bench = _bench(tmp_path, 'builtin = "echo"')
    assert main(["check", bench]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "ok   config",
        "ok   suite jsonl",
        "ok   suite jsonl",
        "ok   transcribe",
        "ok   endpoint a",
        "ok   endpoint a",
        "ok   endpoint a",
    ]
    assert lines[2] == "ok   suite jsonl: 2 clips, 2 s of audio"
    assert re.fullmatch(SESSION, lines[4])
    taken = "takes pcm16 at 24000 Hz; its latencies are called server-vad"
    assert lines[5] == f"ok   endpoint a: {taken}"
    assert re.fullmatch(HEARD.format(rate=24000), lines[6])


def test_no_question_is_asked_where_none_is_wanted_or_none_can_be_spoken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    bench = _bench(tmp_path, 'builtin = "echo"')
    assert main(["check", bench, "--no-question"]) == 0
    assert re.fullmatch(SESSION, capsys.readouterr().out.splitlines()[-1])
    (tmp_path / "q1.wav").unlink()
    assert main(["check", bench]) == 2
    note, last = capsys.readouterr().out.splitlines()[-2:]
    assert note == "note question: no item can be spoken, so the endpoints are asked nothing"
    assert re.fullmatch(SESSION, last)
    assert main(["check", bench, "--no-question", "--offline"]) == 2


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (
            'builtin = "metronome?fault=never"\nfirst_reply_timeout_s = 0.3',
            'asked "q1": timeout: no reply within first_reply_timeout_s',
        ),
        (
            'builtin = "metronome?fault=silent"',
            'asked "q1": no_reply: nothing audible came',
        ),
        (
            'builtin = "metronome?fault=refuse"',
            'asked "q1": refused: HTTP 503 on the upgrade',
        ),
    ],
)
def test_an_endpoint_that_gives_no_reply_is_3_with_how_far_it_came(
    endpoint: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    assert main(["check", _bench(tmp_path, endpoint)]) == 3
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"FAIL endpoint a: {words}")


def test_variables_with_secrets_are_named_and_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-1")
    monkeypatch.setenv("MY_TEAM", "team-very-secret-2")
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    keys = 'api_key_env = "MY_KEY"\nheaders = {X-Team = "{env:MY_TEAM}", X-Two = "{env:MY_KEY}"}'
    assert main(["check", _bench(tmp_path, f'builtin = "echo"\n{keys}'), "--offline"]) == 0
    found = capsys.readouterr()
    assert found.out.splitlines()[-3:] == [
        "ok   endpoint a: MY_KEY is set",
        "ok   endpoint a: MY_TEAM is set",
        "ok   endpoint a: not asked (--offline)",
    ]
    assert "very-secret" not in found.out + found.err


def test_every_place_of_an_endpoint_is_asked_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    (tmp_path / "answers").mkdir()
    _wav(tmp_path / "answers" / "q1.wav")
    (tmp_path / "hum.py").write_text("def e2e_evaluation(sound, rate):\n    return 'a.wav'\n")
    (tmp_path / "say.py").write_text("def e2e_evaluation(sound, rate):\n    return 'Yes.'\n")
    _wav(tmp_path / "a.wav")
    command = f"{sys.executable} {{serve_callable}} hum.py"
    suite = f"""
        options = {{callable = "say.py", output_modalities = "text"}}
        [[endpoint]]
        name = "b"
        kind = "exec"
        command = "{command}"
        [[endpoint]]
        name = "c"
        kind = "import"
        options = {{path = "answers"}}
        {SUITE}"""
    assert main(["check", _bench(tmp_path, 'kind = "python"', suite)]) == 0
    lines = capsys.readouterr().out.splitlines()[-8:]
    assert re.fullmatch(SESSION.replace(" a:", " c:"), lines[6])
    for name, place in (("a", 0), ("b", 3)):
        assert re.fullmatch(SESSION.replace(" a:", f" {name}:"), lines[place])
        assert "takes pcm16 at 16000 Hz; its latencies are called " in lines[place + 1]
    assert re.fullmatch(r'ok   endpoint a: asked "q1": replied in writing after \d+ ms', lines[2])
    assert re.fullmatch(HEARD.format(rate=8000).replace(" a:", " b:"), lines[5])
    assert lines[7] == 'ok   endpoint c: asked "q1": heard, speech as pcm16 at 8000 Hz'


def test_an_endpoint_that_does_not_answer_is_3_and_never_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], closed_port: int
) -> None:
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    bench = _bench(tmp_path, f'url = "ws://127.0.0.1:{closed_port}/"')
    assert main(["check", bench]) == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith("FAIL endpoint a: ")
    assert main(["check", bench, "--offline"]) == 0


def test_every_mistake_is_shown_and_the_first_one_is_the_line_of_exit_status_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    closed_port: int,
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    _items(tmp_path, "gone", "silent", "q1")
    _wav(tmp_path / "silent.wav", loud=False)
    _wav(tmp_path / "q1.wav")
    endpoint = f'url = "ws://127.0.0.1:{closed_port}/"\napi_key_env = "NO_SUCH_KEY"'
    bench = _bench(tmp_path, endpoint, SUITE + '[transcribe]\nmodel = "tiny.eng"\n')
    assert main(["check", bench]) == 2
    found = capsys.readouterr()
    failed = [line for line in found.out.splitlines() if line.startswith("FAIL")]
    assert ["gone.wav" in failed[0], "silent.wav" in failed[1]] == [True, True]
    assert failed[2].startswith("FAIL suite jsonl: suite jsonl: 2 of 3 clips cannot be used")
    assert failed[3].startswith("FAIL transcribe: model 'tiny.eng'")
    assert failed[4] == (
        f'FAIL endpoint a: {bench}: [[endpoint]] "a" api_key_env: environment variable '
        "NO_SUCH_KEY is not set; export NO_SUCH_KEY=..."
    )
    assert len(failed) == 5
    assert found.err.startswith("voxmeter: suite jsonl: 2 of 3 clips cannot be used; replace them")
    assert found.err.count("\n") == 1


def test_a_secret_in_an_endpoints_answer_is_not_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_KEY", "no-such-host-98765")
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    bench = _bench(tmp_path, 'url = "ws://{env:HOST_KEY}.invalid/"\nconnect_timeout_s = 5')
    assert main(["check", bench]) == 3
    found = capsys.readouterr()
    assert "98765" not in found.out + found.err


def test_what_is_not_built_yet_is_told_by_check_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _items(tmp_path, "q1")
    _wav(tmp_path / "q1.wav")
    later = SUITE + "interrupt = true\n"
    assert main(["check", _bench(tmp_path, 'builtin = "echo"', later), "--offline"]) == 2
    assert "this version has no interruptions yet" in capsys.readouterr().err


def test_of_a_large_suite_some_clips_are_listened_to_and_the_check_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MOST_READ", 1)
    _items(tmp_path, "q1", "q2")
    _wav(tmp_path / "q1.wav")
    _wav(tmp_path / "q2.wav")
    assert main(["check", _bench(tmp_path, 'builtin = "echo"'), "--offline"]) == 0
    out = capsys.readouterr().out
    assert "1 of 2 items are checked; voxmeter suites verify PATH checks them all" in out
    assert ": 1 clips, " in out


def test_a_bench_that_is_not_there_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: no such file; give the path of a bench.toml" in capsys.readouterr().err


def test_suites_are_listed_with_those_to_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suites", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"demo", "jsonl", "voxeval"} <= set(names)
    assert all(line.partition(" ")[2].strip() for line in lines)


def test_a_transcriber_that_does_not_know_a_language_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "q", "audio": "q.wav", "kind": "open", "language": "de"}
    (tmp_path / "items.jsonl").write_text(json.dumps(row))
    _wav(tmp_path / "q.wav")
    bench = _bench(tmp_path, 'builtin = "echo"')
    assert main(["check", bench, "--offline"]) == 2
    found = capsys.readouterr()
    assert "FAIL transcribe: " in found.out
    assert '"tiny.en" does not know the language "de"; use a multilingual one' in found.err


def test_endpoint_kinds_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["endpoints"]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    served = {line[0]: line[1] == "served" for line in words if len(line) > 2}
    assert (served["openai-realtime"], served["http"], served["mini-omni"]) == (True, True, False)
    assert main(["endpoints", "mini-omni"]) == 0
    assert "server side: none" in capsys.readouterr().out
    assert main(["endpoints", "openai-realtime"]) == 0
    shown = capsys.readouterr().out
    assert "how it is known: " in shown
    assert "voxmeter serve metronome|echo|cascade --protocol openai-realtime" in shown
    assert "silence_duration_ms" in shown
    assert main(["endpoints", "openai_realtme"]) == 2
    assert 'did you mean "openai-realtime"?' in capsys.readouterr().err

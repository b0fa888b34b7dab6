"""Whole runs with programs, functions and imported answers, and the pages that show them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import toy

from voxmeter import converse
from voxmeter.client import config
from voxmeter.client.audio import write_flac
from voxmeter.client.cli import main
from voxmeter.endpoints.errors import UserError

DOCS = Path(__file__).parent.parent / "docs" / "endpoints"
TONE = (0.3 * np.sin(2 * np.pi * 200 * np.arange(4_800) / 16_000)).astype(np.float32)
SUITE = '[[suite]]\nkind = "jsonl"\nname = "mine"\npath = "questions.jsonl"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two questions that take a third of a second each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_flac(tmp_path / "tone.flac", TONE, 16_000)
    items = [
        {"id": name, "audio": "tone.flac", "kind": "yes-no", "reference": "yes"}
        for name in ("q1", "q2")
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items))
    return tmp_path


def bench(folder: Path, *tables: str) -> Path:
    path = folder / "bench.toml"
    head = f'[run]\nout = "{folder}/runs"\nwarmup = 0\n'
    path.write_text("\n".join([head, *tables, SUITE]))
    return path


def exec_table(name: str, how: str, *start: str, **more: object) -> str:
    keys = {"name": name, "kind": "exec", "instructions": how, **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    command = [sys.executable, "-I", "-S", "toy.py", *start]
    return "\n".join(["[[endpoint]]", *lines, f"command = {json.dumps(command)}", ""])


def only_run(folder: Path) -> Path:
    (found,) = (folder / "runs").iterdir()
    return found


def trials(folder: Path) -> list[dict[str, Any]]:
    text = (only_run(folder) / "trials.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def statuses(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in trials(folder):
        found.setdefault(row["endpoint"], []).append(row["status"])
    return found


def test_what_programs_do_has_its_status_and_the_rest_goes_on(folder: Path) -> None:
    toy(folder)
    brief = {"first_reply_timeout_s": 0.5, "reply_limit_s": 1.0, "connect_timeout_s": 20}
    path = bench(
        folder,
        exec_table("crash", "exit", **brief),
        exec_table("hang", "hang", **brief),
        exec_table("garbage", "print", **brief),
        exec_table("no-start", "hum", "fail", **brief),
        exec_table("silent", "silent", **brief),
        exec_table("error", "error", **brief),
    )
    assert main(["run", str(path), "--quiet", "--limit", "1"]) == 3
    assert statuses(folder) == {
        "crash": ["disconnected"],
        "hang": ["timeout"],
        "garbage": ["protocol_error"],
        "no-start": ["disconnected"],
        "silent": ["no_reply"],
        "error": ["refused"],
    }
    rows = {row["endpoint"]: row for row in trials(folder)}
    assert "exit status 3: ValueError: boom" in rows["crash"]["fault"]
    assert "exit status 7: no GPU" in rows["no-start"]["fault"]
    assert "Loading" in rows["garbage"]["fault"]
    (log,) = (only_run(folder) / "events" / "silent~mine~clean").iterdir()
    assert '"sample_rate": 16000' in log.read_text().replace('\\"', '"')


def test_imported_answers_are_scored_have_no_latency_and_are_made_up_later(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = folder / "answers.jsonl"
    answers.write_text('{"id": "q1", "text": "Yes, it is."}\n')
    options = '[endpoint.options]\npath = "answers.jsonl"\noutput_modalities = "text"\n'
    path = bench(folder, f'[[endpoint]]\nname = "i"\nkind = "import"\n{options}')
    assert main(["run", str(path), "--quiet"]) == 0
    assert statuses(folder) == {"i": ["ok", "refused"]}
    answers.write_text('{"id": "q1", "text": "Yes."}\n{"id": "q2", "text": "No."}\n')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))  # it finds its files all the same
    assert main(["run", "--resume", str(only_run(folder)), "--quiet"]) == 0
    assert statuses(folder) == {"i": ["ok", "refused", "ok"]}
    for row in trials(folder):
        assert row["latency_kind"] in {"text", None}
        assert set(row["latency"].values()) <= {None}
        assert row["reply_channel"] == "text"
    summary = json.loads((only_run(folder) / "summary.json").read_text())
    (cell,) = summary["cells"]
    accuracy = cell["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (0.5, 2)
    assert cell["metrics"]["first_text_ms"]["n"] == 0


def test_a_script_asks_a_program_of_the_folder_it_runs_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    table = {"kind": "exec", "command": list(toy(folder)), "instructions": "silent"}
    found = converse(table, "tone.flac", trials=1)
    assert [trial["status"] for trial in found.trials] == ["no_reply"]
    assert found.latency("first_audible_ms").missing == 1


# The pages


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_examples_of_the_pages_run_as_they_stand(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, program = blocks("exec.md", "toml")
    (function,) = blocks("python.md", "toml")
    (answers,) = blocks("import.md", "toml")
    (folder / "always_yes.py").write_text(blocks("exec.md", "python")[0])
    (folder / "hum.py").write_text(blocks("python.md", "python")[0])
    (folder / "eval_glm.py").write_text("def e2e_evaluation(sound, rate):\n    return sound[0]\n")
    write_flac(folder / "yes.wav", TONE, 16_000)
    (folder / "answers").mkdir()
    for name in ("q1", "q2"):
        write_flac(folder / "answers" / f"{name}.wav", TONE, 16_000)
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    served = served.replace("/opt/glm/bin/python", sys.executable)
    path = bench(folder, served, program, function, answers)
    assert main(["check", str(path)]) == 0
    assert "always yes" in capsys.readouterr().out
    assert main(["run", str(path), "--quiet", "--limit", "1"]) == 0
    assert statuses(folder) == {
        "glm-4-voice": ["ok"],
        "always-yes": ["ok"],
        "hum": ["ok"],
        "macaw": ["ok"],
    }
    rows = {row["endpoint"]: row for row in trials(folder)}
    spoken = rows["always-yes"]
    assert (spoken["reply_text"], spoken["latency_kind"]) == ("Yes.", "request")
    assert 0 < spoken["latency"]["first_packet_ms"] <= spoken["latency"]["first_audible_ms"]
    assert rows["hum"]["reply_text"] == "Hum."
    assert rows["macaw"]["latency_kind"] == "request"
    assert set(rows["macaw"]["latency"].values()) == {None}
    assert rows["macaw"]["clip"]["ms"] == pytest.approx(300, abs=1)


def test_the_page_lists_what_a_question_and_a_reply_have() -> None:
    from voxmeter.endpoints.codec import Settings, Text
    from voxmeter.endpoints.exec_lines import client

    settings = Settings(model="m", voice="v", temperature=1.0, output_rate=8_000)
    codec = client(settings)
    line = codec.end_turn().messages[-1]
    assert isinstance(line, Text)
    page = (DOCS / "exec.md").read_text()
    assert all(f"`{field}`" in page for field in json.loads(line.data))
    (example,) = (block for block in blocks("exec.md", "json") if '"id"' in block)
    assert set(json.loads(example)) <= set(json.loads(line.data))
    for event in ("ready", "text", "audio", "done", "error"):
        assert f"| `{event}` |" in page


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exec", "e2e_evaluation((waveform, rate), rate)"),
        ("python", 'callable = "my_model.py:answer"'),
        ("import", 'path = "answers.jsonl"'),
    ],
)
def test_voxmeter_endpoints_shows_how_a_kind_is_used(
    kind: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["endpoints", kind]) == 0
    printed = capsys.readouterr().out
    assert words in printed
    assert f'kind = "{kind}"' in printed
    if kind == "exec":
        path = Path(printed.split("stands for ")[1].strip())
        assert path.name == "serve_callable.py"
        assert path.is_file()


# What a bench.toml may say of them


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "exec"', "command: is missing; add the program to start; voxmeter endpoints exec"),
        ('kind = "exec"\nurl = "ws://h"', "url: kind exec has no url; remove it; voxmeter endpoi"),
        ('kind = "exec"\nbuiltin = "echo"', "builtin: kind exec has no builtin; remove it"),
        ('kind = "exec"\ncommand = ""', "command: is empty; write the program and its arguments"),
        ('kind = "exec"\ncommand = "a \'"', "command: cannot be split into words"),
        ('kind = "exec"\ncommand = "a"\noptions = {twice = 1}', "options.twice: kind exec has no"),
        ('kind = "python"\ncommand = "x.py:f"', "command: kind python has no command; remove it"),
        ('kind = "import"\nurl = "http://h"', "url: kind import has no url"),
    ],
)
def test_what_no_such_endpoint_can_have_is_the_users_one_line(
    folder: Path, keys: str, words: str
) -> None:
    path = bench(folder, f'[[endpoint]]\nname = "e"\n{keys}\n')
    with pytest.raises(UserError) as caught:
        config.load(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "exec"\ncommand = "no-such-program-here"', "there is no program no-such-program"),
        ('kind = "exec"\ncommand = "ls"\nfolder = "nowhere"', "nowhere is not a folder"),
        ('kind = "exec"\ncommand = "ls"\nturn_end = "commit"', "turn_end: is commit, but"),
        ('kind = "python"', "options.callable: is missing"),
        ('kind = "python"\noptions = {callable = "x.py:f"}', "there is no file x.py"),
        ('kind = "import"', "options.path: is missing"),
        ('kind = "import"\noptions = {path = "nowhere"}', "there is no "),
    ],
)
def test_what_is_not_there_is_found_before_anything_is_asked(
    folder: Path, keys: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bench(folder, f'[[endpoint]]\nname = "e"\n{keys}\n')
    assert main(["run", str(path)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert '[[endpoint]] "e"' in error
    assert error.count("\n") == 1
    assert not (folder / "runs").exists()


def test_a_run_remembers_the_folder_of_its_programs(folder: Path) -> None:
    path = bench(folder, exec_table("e", "hum"), '[[endpoint]]\nname = "w"\nurl = "ws://h"\n')
    found = config.load(path)
    program, server = found.endpoints
    assert (program.folder, server.folder) == (str(folder / "."), None)
    assert shlex.join(program.command or ()).endswith("toy.py")
    again = config.parse(config.resolved(found), "run.json", Path("/elsewhere"))
    assert again.endpoints == found.endpoints

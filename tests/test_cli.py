"""The command line: exit statuses, one line for mistakes, and nothing imported before its time."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from voxmeter import __version__
from voxmeter.client import cli
from voxmeter.endpoints.errors import ConnectError, UserError

HEAVY = (
    "aiohttp",
    "asyncio",
    "ctranslate2",
    "faster_whisper",
    "httpx2",
    "importlib.metadata",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic",
    "rich",
    "scipy",
    "soundfile",
    "soxr",
    "websockets",
)


def _command(monkeypatch: pytest.MonkeyPatch, run: Callable[[argparse.Namespace], int]) -> None:
    """Put a command of our own in the place of `run`."""
    module = types.ModuleType("voxmeter.client.commands.run")

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("bench", nargs="?")
        parser.add_argument("--limit", type=int)

    vars(module).update(add_arguments=add_arguments, run=run)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def _raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize("status", [0, 1, 3])
def test_what_a_command_returns_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    _command(monkeypatch, lambda _: status)
    assert cli.main(["run"]) == status


def test_a_users_mistake_is_2_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _command(monkeypatch, _raising(UserError("bench.toml: [run]", "is \x1b[31mred", "paint\nit")))
    assert cli.main(["run"]) == 2
    assert capsys.readouterr() == ("", "voxmeter: bench.toml: [run]: is \\x1b[31mred; paint\\nit\n")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_2_and_one_line(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _command(monkeypatch, _raising(OSError(number, "No space left", "/runs/x")))
    assert cli.main(["run"]) == 2
    line = "voxmeter: /runs/x: no space left; free some, then resume the run\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("words", [["report"], ["run", "--resume"], ["merge", "-o", "all"]])
def test_a_name_too_long_or_that_leads_to_itself_is_2_and_one_line(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    for name in ("x" * 300, "loop"):
        assert cli.main([*words, name]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("option", ["--shard", "--only"])
def test_an_option_that_is_empty_is_not_as_if_it_were_not_there(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--dry-run", option, ""]) == 2
    assert capsys.readouterr().err.startswith(f"voxmeter: {option}: ''")


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("ours"), OSError("ours"), ConnectError("dns", "ours")]
)
def test_a_fault_of_the_program_is_70_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    _command(monkeypatch, _raising(error))
    assert cli.main(["run"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    _command(monkeypatch, _raising(KeyboardInterrupt()))
    assert cli.main(["run"]) == 130


def test_sigterm_is_an_interrupt_and_leaves_the_handler_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(_: argparse.Namespace) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    _command(monkeypatch, run)
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["run"]) == 130
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_in_the_background_of_a_script_can_be_stopped_too(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def run(_: argparse.Namespace) -> int:
        os.kill(os.getpid(), number)
        return 0

    _command(monkeypatch, run)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert cli.main(["run"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["rnu"], "no command 'rnu'; did you mean \"run\"?"),
        (["run", "--limt", "3"], "run: unknown option --limt; did you mean --limit?"),
        (
            ["run", "--limit", "x"],
            "run: argument --limit: invalid int value: 'x'; see voxmeter run --help",
        ),
        (["run", "--lim", "3"], "run: unknown option --lim; did you mean --limit?"),
        (["run", "a", "b"], "run: unknown argument b; see voxmeter run --help"),
        (["run", "--x=\x1b"], "run: unknown option --x; see voxmeter run --help"),
        (["--frobnicate"], "unknown option --frobnicate; see voxmeter --help"),
    ],
)
def test_a_wrong_command_line_is_2_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    line: str,
) -> None:
    _command(monkeypatch, lambda _: 0)
    assert cli.main(words) == 2
    assert capsys.readouterr() == ("", f"voxmeter: {line}\n")


def test_no_command_shows_the_help_and_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: voxmeter" in capsys.readouterr().out


def test_help_and_version_are_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"voxmeter {__version__}\n"
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in cli.COMMANDS)


def test_a_reader_that_went_away_gives_no_traceback() -> None:
    command = [sys.executable, "-m", "voxmeter", "endpoints", "openai-realtime"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (130, b"")


def test_a_closed_standard_output_is_no_fault() -> None:
    command = [sys.executable, "-m", "voxmeter", "endpoints"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_letters_that_the_terminal_lacks_are_spelled_out() -> None:
    command = [sys.executable, "-m", "voxmeter", "suites", "verify", "nowhere-ü"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"nowhere-\\xfc" in done.stderr
    assert done.stderr.count(b"\n") == 1


_LIGHT = """
import contextlib, io, sys
from voxmeter.client.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main({words!r})
print(status, *sorted(set({heavy!r}) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], *([name, "--help"] for name in cli.COMMANDS)],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = _LIGHT.format(words=words, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0"], done.stderr


def parsers_in(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers_in(one)


@pytest.mark.parametrize("name", [name for name in cli.COMMANDS if name != "live"])
def test_the_place_to_write_to_has_the_same_two_names_in_every_command(name: str) -> None:
    _, own, _ = cli._parser(name)  # but in `live`, whose --output is a loudspeaker
    assert own is not None
    for parser in parsers_in(own):
        for action in parser._actions:
            words = set(action.option_strings)
            if words & {"-o", "--out", "--output"}:
                assert words >= {"-o", "--out"}, parser.prog

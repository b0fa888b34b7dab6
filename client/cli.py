"""The command line: finds the command, imports it alone, turns what happens into an exit status."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import NoReturn, Protocol, cast

from voxmeter.endpoints.errors import UserError

COMMANDS = {
    "run": "ask every question, record, transcribe, score and report",
    "merge": "join the parts of a sharded run into one run folder",
    "score": "score a run again from its files",
    "judge": "hold judges against people, by a listening study of a run",
    "report": "write a run's report",
    "compare": "say whether a new run is worse than a base run",
    "live": "talk to an endpoint by microphone, in the terminal or the browser",
    "serve": "start one of the built-in endpoints",
    "calibrate": "measure this machine's own timing error",
    "check": "say whether a bench.toml will work here",
    "endpoints": "list the endpoint kinds, or show one",
    "suites": "list the suite kinds, verify a download, or build a suite",
}
"""Every command, with its line of help; `voxmeter.client.commands.<name>` does the work."""

DONE, GATE_FAILED, USER_ERROR, ENDPOINT_FAILED, OUR_FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130


class Command(Protocol):
    """What a module of `client.commands` offers; importing it must be cheap."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do the work; return the exit status."""
        ...


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and an exit status of 2, like any mistake of a user's."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise UserError(self.prog.removeprefix("voxmeter "), message, f"see {self.prog} --help")

    def options(self) -> list[str]:
        """Return the long options it knows."""
        return [name for name in self._option_string_actions if name.startswith("--")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; the process's own by default.

    Returns:
        The exit status: 130 interrupted, 2 the user's or the machine's mistake, 70 a fault of this
        program, 3 no trial of some endpoint succeeded, 1 a gate failed, 0 done.
    """
    from voxmeter.client.redacted_output import redacted_output

    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    with redacted_output():
        return _main(words)


def _main(words: Sequence[str]) -> int:
    try:
        with _terminable():
            return _dispatch(list(words))
    except UserError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `voxmeter ... | head`: whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    except MemoryError:
        return _complain("not enough memory; a file may be far larger than it looks")
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            place = str(error.filename or "disk")
            return _complain(f"{place}: no space left; free some, then resume the run")
        if error.errno in {errno.ENAMETOOLONG, errno.ELOOP}:
            return _complain(f"{error.filename}: {error.strerror}; check the path")
        return _report_fault()
    except RuntimeError as error:
        if str(error).startswith("Symlink loop"):  # of Path.resolve, before Python 3.13
            return _complain(f"{error}; check the path")
        return _report_fault()
    except Exception:  # noqa: BLE001 - the border of the program: exit status 70
        return _report_fault()


def _open_streams() -> None:
    """See to it that printing fails neither for want of a stream nor of a letter in its code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # started with `>&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - stays
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _dispatch(words: list[str]) -> int:
    name = words[0] if words and words[0] in COMMANDS else None
    parser, chosen, command = _parser(name)
    if not words:
        parser.print_help()
        return USER_ERROR
    _refuse_unknown(words[0])
    try:
        args, rest = parser.parse_known_args(words)
    except SystemExit as end:  # --help and --version have printed
        return int(end.code or 0)
    rest = _without_query(args, rest)
    if rest:
        _refuse_rest(chosen or parser, rest[0])
    if command is None:
        raise UserError("voxmeter", "no command", "see voxmeter --help")
    status = command.run(args)
    sys.stdout.flush()
    return status


def _parser(chosen: str | None) -> tuple[Parser, Parser | None, Command | None]:
    """Return the parser, and the chosen command's own and its module; no other is imported."""
    from voxmeter import __version__

    parser = Parser(
        prog="voxmeter",
        allow_abbrev=False,
        description="Spoken questions in, spoken replies out: accuracy and latency on one clock.",
        epilog="`voxmeter COMMAND --help` lists a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"voxmeter {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    command = own = None
    for name, text in COMMANDS.items():
        under = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == chosen:
            own = under
            command = cast("Command", import_module(f"voxmeter.client.commands.{name}"))
            command.add_arguments(under)
    return parser, own, command


def _without_query(args: argparse.Namespace, rest: list[str]) -> list[str]:
    """Give a query behind options to its argument, which argparse had left empty before them."""
    queries = [word for word in rest if word.startswith("?")]
    if len(queries) != 1 or getattr(args, "query", None) != "":
        return rest
    args.query = queries[0]
    return [word for word in rest if word is not queries[0]]


def _refuse_rest(parser: Parser, word: str) -> NoReturn:
    from voxmeter.client import nearest
    from voxmeter.client.terminal import printable

    cure = f"see {parser.prog} --help"
    if not word.startswith("-"):
        found = f"unknown argument {printable(word, 200)}"
        raise UserError(parser.prog.removeprefix("voxmeter "), found, cure)
    option = word.partition("=")[0]
    near = nearest.nearest(option, parser.options())
    cure = f"did you mean {near}?" if near else cure
    found = f"unknown option {printable(option, 60)}"
    raise UserError(parser.prog.removeprefix("voxmeter "), found, cure)


def _refuse_unknown(word: str) -> None:
    if not word.startswith("-") and word not in COMMANDS:
        from voxmeter.client import nearest
        from voxmeter.client.terminal import printable

        found = f"no command {printable(word, 60)!r}"
        raise UserError("voxmeter", found, nearest.cure(word, COMMANDS))


def _complain(text: str) -> int:
    from voxmeter.client.terminal import printable

    told = text.removeprefix("voxmeter: ").removeprefix("voxmeter ")  # said once is enough
    print(f"voxmeter: {printable(told)}", file=sys.stderr, flush=True)
    return USER_ERROR


def _report_fault() -> int:
    import traceback

    traceback.print_exc()
    return OUR_FAULT


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, so that a stopped run cleans up and says 130.

    A shell starts background jobs of a script with SIGINT ignored; both signals stop those too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    terminate = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGINT, interrupt)

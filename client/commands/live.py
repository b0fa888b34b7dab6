"""`voxmeter live`: talk to an endpoint by microphone, and see what a run would record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, ExitStack

    from voxmeter.client.bench import Bench, Endpoint
    from voxmeter.client.live.aloud import Asked
    from voxmeter.client.live.microphone import Samples
    from voxmeter.client.live.publishing import Publishing
    from voxmeter.client.live.sound import Sound
    from voxmeter.client.live.talk import Setup, Talk
    from voxmeter.client.live.updates import Begin, Show
    from voxmeter.client.publish import Status
    from voxmeter.suites.suite import Item

_HERE = "voxmeter.client.live"
_CARD, _DEVICES = f"{_HERE}.card:open_card", f"{_HERE}.devices:list_devices"
_CHECK, _SOUND_CHECK = f"{_HERE}.card:check_card", f"{_HERE}.sound_check:check_devices"
_PORT = f"{_HERE}.web:check_port"
_SCREEN, _PAGE = f"{_HERE}.screen:run", f"{_HERE}.web:run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare whom to talk to, through which devices, and where it is kept."""
    parser.add_argument("bench", nargs="?", type=Path, help="a bench.toml (default: ./bench.toml)")
    parser.add_argument("--endpoint", metavar="NAME", help="whom to talk to (default: the first)")
    parser.add_argument("--web", action="store_true", help="talk on a page in the browser")
    parser.add_argument(
        "--auto", action="store_true", help="ask the suite's questions aloud, by the loudspeaker"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="with --auto: so many items")
    parser.add_argument("--list-devices", action="store_true", help="list microphones and speakers")
    parser.add_argument(
        "--check-sound", action="store_true", help="play chirps, and say what the stamps leave out"
    )
    parser.add_argument(
        "--microphone", metavar="DEVICE", help="by number or part of a name (default: the system's)"
    )
    parser.add_argument("--speaker", metavar="DEVICE", help="likewise")
    parser.add_argument(
        "--cancel-echo", action="store_true", help="take the reply out of the microphone"
    )
    parser.add_argument(
        "--jitter-buffer",
        type=_buffer,
        metavar="MS",
        help="what a reply waits before it is played (default: 20)",
    )
    parser.add_argument("--plain", action="store_true", help="lines in place of a screen")
    parser.add_argument("--port", type=_port, metavar="N", help="of the page of --web")
    parser.add_argument("--no-open", action="store_true", help="with --web: open no browser")
    parser.add_argument(
        "-o", "--save", metavar="DIR", help="folder for the run folder (default: runs)"
    )


def run(args: argparse.Namespace) -> int:
    """Talk until the user has enough.

    Returns:
        The contract's exit status: 0, 3 when the endpoint never answered and had to be given up.

    Raises:
        UserError: If there is no such endpoint or device, or the disk is full.
    """
    from contextlib import ExitStack

    from voxmeter.endpoints.kind import load

    _refuse_together(args)
    if args.list_devices:
        print(cast("Callable[[], str]", load(_DEVICES))())
        return 0
    if args.check_sound:
        check = cast("Callable[[str | None, str | None], str]", load(_SOUND_CHECK))
        print(check(args.microphone, args.speaker))
        return 0
    with ExitStack() as stack:
        setup, publishing = _setup(args, stack)
        talks = _held(args, setup, publishing)
    return _told(talks)


def _refuse_together(args: argparse.Namespace) -> None:
    """Refuse options that say two things, or nothing.

    Raises:
        UserError: With the option that has to go.
    """
    from voxmeter.endpoints.errors import UserError

    card = {"--microphone": args.microphone, "--speaker": args.speaker}
    on_a_page = {**card, "--cancel-echo": args.cancel_echo, "--plain": args.plain}
    for name, value in on_a_page.items():
        if args.web and value:
            raise UserError(name, "--web has a page", "choose there, or leave --web out")
    for name, value in {"--port": args.port is not None, "--no-open": args.no_open}.items():
        if value and not args.web:
            raise UserError(name, "is of the page", "add --web")
    if args.limit and not args.auto:
        raise UserError("--limit", "is of the questions asked aloud", "add --auto")
    if args.auto and args.cancel_echo:
        found = "an echo canceller has no place in a measurement, and --auto is one"
        raise UserError("--cancel-echo", found, "leave it out: nothing talks over a reply there")


def _held(args: argparse.Namespace, setup: Setup, publishing: Publishing) -> list[Talk]:
    """Hold the talk, or on a page one after another; the folders are told whatever happens."""
    import asyncio

    from voxmeter.client.clock import SystemClock
    from voxmeter.client.event_loop import new_loop, undisturbed
    from voxmeter.client.live.talk import Talk
    from voxmeter.endpoints.kind import load

    clock = SystemClock()
    talks: list[Talk] = []
    status: Status = "failed"

    def begin(sound: Sound, show: Show) -> Talk:
        shown = publishing.show(setup.target.name, show)
        talks.append(Talk(setup, sound, shown, clock=clock))
        return talks[-1]

    async def hold() -> None:
        if args.web:
            on_page = cast("Callable[..., Awaitable[None]]", load(_PAGE))
            shown = {"port": args.port or 0, "open_page": not args.no_open}
            await on_page(begin, clock=clock, announce=_announce, **shown)
            return
        open_card = cast("Callable[..., AbstractAsyncContextManager[Sound]]", load(_CARD))
        card = open_card(args.microphone, args.speaker, clock=clock, echo=args.cancel_echo)
        show_on = _front_end(plain=args.plain)
        async with card as sound:
            await show_on(lambda show: begin(sound, show))

    try:
        with undisturbed(), asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(hold())
        status = "done"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        for talk in talks:
            if talk.folder is not None:
                print(talk.folder, flush=True)
        publishing.end(status)
    return talks


def _told(talks: list[Talk]) -> int:
    from voxmeter.client.cli import DONE, ENDPOINT_FAILED

    faults = [talk.fault for talk in talks if talk.fault]
    for fault in faults:
        _say(fault)
    return ENDPOINT_FAILED if faults and not any(talk.answered for talk in talks) else DONE


def _front_end(*, plain: bool) -> Callable[[Begin], Awaitable[None]]:
    """Return what shows a talk: a screen, or lines where there is none."""
    from voxmeter.client.live import plain as lines
    from voxmeter.endpoints.kind import load

    if plain or not (sys.stdout.isatty() and sys.stdin.isatty()):
        return lines.run
    try:
        return cast("Callable[[Begin], Awaitable[None]]", load(_SCREEN))
    except ImportError as error:
        _say(f"lines in place of a screen, for want of {error.name}: pip install 'voxmeter[live]'")
        return lines.run


def _setup(args: argparse.Namespace, stack: ExitStack) -> tuple[Setup, Publishing]:
    """Return what a talk needs; what takes long, our own server, comes last."""
    from voxmeter.client import config
    from voxmeter.client.access import redactor
    from voxmeter.client.live.playback import JITTER_BUFFER_MS
    from voxmeter.client.live.publishing import Publishing
    from voxmeter.client.live.talk import Setup
    from voxmeter.client.runfolder import check_place
    from voxmeter.client.targets import target

    bench = config.overridden(config.load(args.bench), out=args.save)
    endpoint = _chosen(bench, args.endpoint)
    secrets = redactor(bench)
    publishing = Publishing(bench, secrets)
    check_place(Path(bench.run.out))
    _check_here(args)
    questions = _questions(bench, args.limit, stack) if args.auto else []
    if bench.packaged:
        _say("no bench.toml here: talking to the one that comes with voxmeter")
    if args.endpoint is None and len(bench.endpoints) > 1:
        _say(f"talking to {endpoint.name}, the first of {bench.source}; --endpoint names another")
    setup = Setup(
        bench,
        target(bench, endpoint, stack),
        Path(bench.run.out),
        secrets,
        questions,
        JITTER_BUFFER_MS if args.jitter_buffer is None else args.jitter_buffer,
    )
    return setup, publishing


def _check_here(args: argparse.Namespace) -> None:
    """See to it that there are devices, or a port, before anybody waits for a model to load.

    Raises:
        UserError: If there is none.
    """
    from voxmeter.endpoints.kind import load

    if args.web:
        cast("Callable[[int], None]", load(_PORT))(args.port or 0)
        return
    check = cast("Callable[..., None]", load(_CHECK))
    check(args.microphone, args.speaker, echo=args.cancel_echo)


def _chosen(bench: Bench, name: str | None) -> Endpoint:
    from voxmeter.client import nearest
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints import catalog
    from voxmeter.endpoints.errors import UserError

    if not bench.endpoints:
        raise UserError(bench.source, "has no [[endpoint]]", "add one: whom to talk to")
    names = [one.name for one in bench.endpoints]
    if name is not None and name not in names:
        raise UserError("--endpoint", f'no endpoint "{printable(name)}"', nearest.cure(name, names))
    chosen = bench.endpoints[0 if name is None else names.index(name)]
    if not catalog.find(chosen.kind).timed:
        place = f'{bench.source}: [[endpoint]] "{printable(chosen.name)}"'
        found = f'nobody answers while you speak to kind = "{chosen.kind}"'
        raise UserError(place, found, "talk to another: --endpoint NAME")
    return chosen


def _questions(bench: Bench, limit: int | None, stack: ExitStack) -> list[Asked]:
    from voxmeter.client.bench_suites import load_suites
    from voxmeter.client.clip_source import ClipSource
    from voxmeter.client.live.aloud import Asked
    from voxmeter.client.live.turn import Question
    from voxmeter.client.voices import Voices

    source = ClipSource(stack.enter_context(Voices()))
    asked: list[Asked] = []
    for suite in load_suites(bench, limit):
        for item in suite.items:
            question = Question(suite.name, item.item, 1, item.row())

            def clip(item: Item = item) -> tuple[Samples, int]:
                made = source(item)
                return made.pcm.samples, made.pcm.rate

            asked.append(Asked(question, clip))
    return asked


def _announce(url: str) -> None:
    print(f"Open {url}", flush=True)


def _say(text: str) -> None:
    from voxmeter.client.terminal import printable

    print(f"voxmeter: {printable(text)}", file=sys.stderr, flush=True)


def _buffer(text: str) -> int:
    return _within(text, 0, 1000, "ms")


def _port(text: str) -> int:
    return _within(text, 0, 65_535, "the number of a port")


def _within(text: str, least: int, most: int, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise argparse.ArgumentTypeError(f"give {what}, {least} to {most}")
    return int(text)


def _positive(text: str) -> int:
    from voxmeter.client.arguments import positive

    return positive(text)

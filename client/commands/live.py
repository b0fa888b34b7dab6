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
    from voxmeter.client.live.sound import Sound
    from voxmeter.client.live.talk import Begin, Setup, Talk
    from voxmeter.client.live.updates import Show
    from voxmeter.suites.suite import Item

_HERE = "voxmeter.client.live"
_CARD, _DEVICES = f"{_HERE}.card:open_card", f"{_HERE}.devices:list_devices"
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
    parser.add_argument("--input", metavar="DEVICE", help="microphone, by number or part of a name")
    parser.add_argument("--output", metavar="DEVICE", help="loudspeaker, likewise")
    parser.add_argument(
        "--cancel-echo", action="store_true", help="take the reply out of the microphone"
    )
    parser.add_argument("--plain", action="store_true", help="lines in place of a screen")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page of --web")
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

    if args.list_devices:
        from voxmeter.endpoints.kind import load

        print(cast("Callable[[], str]", load(_DEVICES))())
        return 0
    with ExitStack() as stack:
        setup = _setup(args, stack)
        talks = _held(args, setup)
    return _told(talks)


def _held(args: argparse.Namespace, setup: Setup) -> list[Talk]:
    """Hold the talk, or on a page one after another; the folders are told whatever happens."""
    import asyncio

    from voxmeter.client.clock import SystemClock
    from voxmeter.client.event_loop import loop_factory, undisturbed
    from voxmeter.client.live.talk import Talk
    from voxmeter.endpoints.kind import load

    clock = SystemClock()
    talks: list[Talk] = []

    def begin(sound: Sound, show: Show) -> Talk:
        talks.append(Talk(setup, sound, show, clock=clock))
        return talks[-1]

    async def hold() -> None:
        if args.web:
            on_page = cast("Callable[..., Awaitable[None]]", load(_PAGE))
            await on_page(begin, clock=clock, announce=_announce, port=args.port)
            return
        open_card = cast("Callable[..., AbstractAsyncContextManager[Sound]]", load(_CARD))
        card = open_card(args.input, args.output, clock=clock, echo=args.cancel_echo)
        show_on = _front_end(plain=args.plain)
        async with card as sound:
            await show_on(lambda show: begin(sound, show))

    try:
        with undisturbed(), asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(hold())
    finally:
        for talk in talks:
            if talk.folder is not None:
                print(talk.folder, flush=True)
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


def _setup(args: argparse.Namespace, stack: ExitStack) -> Setup:
    from voxmeter.client import config
    from voxmeter.client.access import redactor
    from voxmeter.client.live.talk import Setup
    from voxmeter.client.targets import target

    bench = config.overridden(config.load(args.bench), out=args.save)
    endpoint = _chosen(bench, args.endpoint)
    questions = _questions(bench, args.limit, stack) if args.auto else []
    if bench.packaged:
        _say("no bench.toml here: talking to the one that comes with voxmeter")
    return Setup(
        bench,
        target(bench, endpoint, stack),
        Path(bench.run.out),
        redactor(bench),
        questions,
    )


def _chosen(bench: Bench, name: str | None) -> Endpoint:
    from voxmeter.client import nearest
    from voxmeter.client.terminal import printable
    from voxmeter.endpoints.errors import UserError

    if not bench.endpoints:
        raise UserError(bench.source, "has no [[endpoint]]", "add one: whom to talk to")
    if name is None:
        return bench.endpoints[0]
    names = [one.name for one in bench.endpoints]
    if name not in names:
        raise UserError("--endpoint", f'no endpoint "{printable(name)}"', nearest.cure(name, names))
    return bench.endpoints[names.index(name)]


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


def _positive(text: str) -> int:
    from voxmeter.client.commands.run import _positive as positive

    return positive(text)

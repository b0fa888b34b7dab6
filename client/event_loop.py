"""What sessions run on: the event loop whose timers are finer, and a collector that keeps off."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SWITCH_S = 0.0005
_COLLECT_AFTER = (2_000, 5, 200)
"""Containers made, and rounds, before the collector looks at young, older and all objects: a look
at all that 400 sessions hold takes 50 ms, and by Python's own figures comes every few seconds."""


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop: uvloop's where it is installed, or the standard one."""
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:

        class Loop(uvloop.Loop):
            def _do_shutdown(self, done: asyncio.Future[None]) -> None:
                """Wait for the executor, in a thread; the loop may be closed by a second Ctrl-C."""
                try:
                    super()._do_shutdown(done)  # type: ignore[misc]  # not in its stubs
                except RuntimeError:
                    if not self.is_closed():
                        raise

        loop = Loop()
    loop.set_exception_handler(_tell)
    return loop


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong inside the loop. A second Ctrl-C, raised wherever it is, did not."""
    if not isinstance(context.get("exception"), KeyboardInterrupt):
        loop.default_exception_handler(context)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep what can delay a frame away from the event loop that runs inside.

    The collector leaves alone what is there by now, since one look at all of it is a late frame,
    and seldom at all that came since; and a thread that computes gives way after half a millisecond
    instead of five.
    """
    ours = gc.get_freeze_count() == 0
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
        if ours:
            gc.unfreeze()

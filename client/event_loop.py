"""What sessions run on: the event loop whose timers are finer, and a collector that keeps off."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SWITCH_S = 0.0005
_COLLECT_AFTER = (2_000, 5, 200)
"""Containers made, and rounds, before the collector looks at young, older and all objects: a look
at all that 400 sessions hold takes 50 ms, and by Python's own figures comes every few seconds."""


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed. None: the standard one."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


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

"""What sessions run on."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from contextlib import closing

import pytest

from voxmeter.client.event_loop import new_loop, undisturbed


def test_the_collector_looks_at_all_objects_far_less_often_and_then_as_before() -> None:
    before = gc.get_threshold(), sys.getswitchinterval()

    def run() -> None:
        with undisturbed():
            young, older, everything = gc.get_threshold()
            assert young * older * everything >= 25 * 700 * 10 * 10
            assert young <= 5_000  # a look at the young ones takes under a millisecond
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert (gc.get_threshold(), sys.getswitchinterval()) == before


@pytest.mark.parametrize(
    ("error", "told"), [(OSError("the line broke"), "the line broke"), (KeyboardInterrupt(), "")]
)
def test_a_fault_inside_the_loop_is_told_and_a_second_interrupt_is_not(
    error: BaseException, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(new_loop()) as loop:
        loop.call_exception_handler({"message": "Fatal error on transport", "exception": error})
    assert len(caplog.records) == bool(told)
    assert told in caplog.text


def test_a_loop_that_is_closed_while_its_threads_end_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    before = set(threading.enumerate())
    release = threading.Event()
    loop = new_loop()
    loop.run_in_executor(None, release.wait)
    ending = loop.create_task(loop.shutdown_default_executor())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()  # as after a second Ctrl-C
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert told == []
    assert not ending.done()

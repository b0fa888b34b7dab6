"""What sessions run on."""

from __future__ import annotations

import gc
import sys

import pytest

from voxmeter.client.event_loop import undisturbed


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

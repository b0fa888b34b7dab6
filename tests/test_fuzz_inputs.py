"""The seeds of the fuzzer and what little changes make of them: every reader stands them."""

from __future__ import annotations

import random

import pytest
from fuzz_inputs import TARGETS, seeds

COUNTS = {"audio": 12, "stream": 40, "config": 6, "lines": 40, "run_folder": 8, "judgement": 60}


@pytest.mark.parametrize("target", TARGETS)
def test_a_reader_gives_what_it_read_or_one_of_its_own_errors(target: str) -> None:
    draw = random.Random(target)  # noqa: S311 - any draw will do
    count = 0
    for data in seeds(target):
        TARGETS[target](data)
        for _ in range(COUNTS[target]):
            mangled = bytearray(data[: draw.randint(1, len(data))])
            for _ in range(draw.randint(1, 6)):
                mangled[draw.randrange(len(mangled))] = draw.randrange(256)
            TARGETS[target](bytes(mangled))
            count += 1
    assert count >= 30

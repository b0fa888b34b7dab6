"""Every recording, whole, cut and mangled, goes through every codec: where the fuzzer begins."""

from __future__ import annotations

import random

import pytest
from fuzz_codecs import RECORDINGS, Side, records, run, seeds, sides

from voxmeter.endpoints.errors import ProtocolError

EVERY = sides()
SEEDS = dict(seeds(EVERY))


def test_there_are_seeds_for_every_kind_that_has_recordings() -> None:
    kinds = {side.name.replace("-", "_") for side in EVERY}
    recorded = {path.name.replace("-", "_") for path in RECORDINGS.iterdir() if path.is_dir()}
    assert {
        EVERY[script[0]].name.replace("-", "_") for script in SEEDS.values()
    } == kinds & recorded
    assert len(kinds & recorded) >= 5
    assert sum(1 for script in SEEDS.values() for _ in records(script[2:])) > 10 * len(kinds)


@pytest.mark.parametrize("name", SEEDS)
def test_a_recording_cut_anywhere_and_mangled_gives_events_or_a_protocol_error(name: str) -> None:
    script, draw = SEEDS[name], random.Random(name)  # noqa: S311 - any draw will do
    run(script, EVERY)
    for _ in range(60):
        mangled = bytearray(script[: draw.randint(2, len(script))])
        for _ in range(draw.randint(1, 8)):
            mangled[draw.randrange(2, len(mangled)) if len(mangled) > 2 else 1] = draw.randrange(
                256
            )
        run(bytes(mangled), EVERY)


def test_every_codec_stands_the_messages_of_all_others() -> None:
    for number in range(len(EVERY)):
        for script in SEEDS.values():
            run(bytes([number]) + script[1:], EVERY)


def test_a_codec_that_fails_in_another_way_is_found() -> None:
    class Broken:
        def open(self) -> None:
            raise KeyError("type")

    with pytest.raises(KeyError):
        run(b"\x00\x00", [Side("broken", server=Broken)])  # type: ignore[arg-type]
    assert not issubclass(KeyError, ProtocolError)

"""The truth log: when a listener hears the first audible sample, and whole lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voxmeter.client.servers.truth import Delivery, Packet, TruthLine, TruthLog
from voxmeter.endpoints.errors import UserError

RATE = 1_000  # one sample a millisecond
MS = 1_000_000

HEARD = [
    ("in the first packet", [(0, 20)], 0, 0),
    ("inside the first packet", [(0, 20)], 7, 7),
    ("a burst queues", [(0, 20), (1, 20), (2, 20)], 45, 45),
    ("real time", [(0, 20), (20, 20), (40, 20)], 45, 45),
    ("a late packet leaves a gap", [(0, 20), (35, 20)], 25, 40),
    ("an early packet waits", [(0, 20), (5, 20)], 20, 20),
    ("a gap is never made good", [(0, 20), (30, 20), (31, 20)], 40, 50),
    ("at the first sample of a packet", [(3, 20), (30, 20)], 20, 30),
    ("not sent", [(0, 20)], 20, None),
    ("nothing sent", [], 0, None),
    ("nothing audible", [(0, 20)], None, None),
    ("an empty packet", [(0, 0), (9, 20)], 0, 9),
]


@pytest.mark.parametrize(("packets", "onset", "heard"), [case[1:] for case in HEARD])
def test_the_first_audible_sample_is_heard_when_a_player_reaches_it(
    packets: list[tuple[int, int]], onset: int | None, heard: int | None
) -> None:
    delivery = Delivery(RATE, [Packet(sent * MS, count) for sent, count in packets], onset)
    assert delivery.first_audible_ns() == (None if heard is None else heard * MS)


def line(turn: int) -> TruthLine:
    return TruthLine("tag \n", 1, turn, 10, 20, 30, 40, 500, 24_000, "completed")


def test_each_turn_is_one_whole_line_behind_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    for turn in (1, 2):
        log = TruthLog(path)
        log.write(line(turn))
        assert len(path.read_text().splitlines()) == turn
        log.close()
    first = json.loads(path.read_text().splitlines()[0])
    assert first == {
        "tag": "tag \n",
        "session": 1,
        "turn": 1,
        "user_end_ns": 10,
        "first_packet_ns": 20,
        "first_audible_ns": 30,
        "last_packet_ns": 40,
        "reply_samples": 500,
        "reply_rate": 24_000,
        "outcome": "completed",
    }


def test_a_file_that_cannot_be_written_is_told_before_anything_is_served(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="check the path"):
        TruthLog(tmp_path / "missing" / "truth.jsonl")

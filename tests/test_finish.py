"""From what a session left behind to its row, log and audio."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from attempt_logs import RATE, silence, voice
from captures import CLIP_SAMPLES, REPLY, SENT, attempt_in, capture_of, piece, told
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.capture import Capture, Outcome
from voxmeter.client.encodings import encoder
from voxmeter.client.finish import Lateness, decode, finish
from voxmeter.endpoints.events import Encoding
from voxmeter.scoring import log

ENDED = told(310, "reply_ended", reply="r1")


def finished(capture: Capture, folder: Path, *secrets: str) -> dict[str, Any]:
    return finish(capture, attempt_in(folder, secrets, key="k"))


def audio(folder: Path, name: str) -> tuple[NDArray[np.float32], int]:
    samples, rate = soundfile.read(folder / "audio" / name, dtype="float32")
    return samples, rate


def logged(folder: Path) -> list[Any]:
    return list(log.load((folder / "events" / "one.jsonl").read_text(encoding="utf-8")))


# Decoding


@pytest.mark.parametrize("sizes", [(1025, 1023, 1, 2047), (1, 1, 1, 1), (0, 3, 0, 5)])
def test_odd_chunks_lose_and_shift_no_sample(sizes: tuple[int, ...]) -> None:  # PR-18
    whole = to_pcm16(voice(100))[: sum(sizes)]
    cuts = np.cumsum([0, *sizes])
    capture = capture_of(
        *(piece(whole[a:b], n) for n, (a, b) in enumerate(itertools.pairwise(cuts)))
    )
    rate, stream, notes = decode(capture)
    assert (rate, notes) == (RATE, [])
    assert np.array_equal(stream, from_pcm16(whole))
    assert sum(row.get("samples", 0) for row in capture.rows if row["dir"] == "in") == len(stream)


def test_half_a_sample_at_the_end_is_left_out_and_said() -> None:  # PR-18
    _, stream, notes = decode(capture_of(piece(REPLY[:1001])))
    assert len(stream) == 500
    assert notes == ["the reply ended in the middle of a sample"]


@given(st.lists(st.integers(0, 700), max_size=12))
def test_any_cuts_give_the_same_stream(cuts: list[int]) -> None:
    places = sorted({0, *cuts, 700})
    data = REPLY[:700]
    pieces = [piece(data[a:b], n) for n, (a, b) in enumerate(itertools.pairwise(places))]
    assert np.array_equal(decode(capture_of(*pieces))[1], from_pcm16(data))


def test_spare_bytes_of_one_reply_do_not_get_into_the_next() -> None:
    first, second = piece(REPLY[:101], 0), piece(REPLY[:100], 1, reply="r2")
    _, stream, notes = decode(capture_of(first, second))
    assert np.array_equal(stream[50:], from_pcm16(REPLY[:100]))
    assert len(notes) == 1


def test_a_rate_that_changes_in_mid_reply_keeps_the_duration() -> None:
    tone = voice(500)
    low = to_pcm16(tone[::3])
    capture = capture_of(piece(to_pcm16(tone), 0), piece(low, 10, rate=RATE // 3))
    rate, stream, _ = decode(capture)
    assert rate == RATE
    assert len(stream) == pytest.approx(2 * len(tone), abs=4)
    rows = [row for row in capture.rows if row["kind"] == "reply_audio"]
    assert [row["samples"] for row in rows] == [len(tone), len(stream) - len(tone)]


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_the_rate_is_that_of_the_stream(rate: int, tmp_path: Path) -> None:  # PR-15
    count = rate // 2
    tone = 0.2 * np.cos(2 * np.pi * 250 * np.arange(count) / rate)
    row = finished(capture_of(piece(to_pcm16(tone), rate=rate), rows=[ENDED]), tmp_path)
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=6)
    samples, found = audio(tmp_path, "one.reply.flac")
    assert (len(samples), found) == (count, rate)


@pytest.mark.parametrize("encoding", ["pcmu", "pcma"])
def test_g711_is_decoded_at_its_own_rate(encoding: Encoding, tmp_path: Path) -> None:
    tone = 0.2 * np.cos(2 * np.pi * 250 * np.arange(4000) / 8000)
    data = encoder(encoding, 8000).encode(to_pcm16(tone))
    capture = capture_of(piece(data, encoding=encoding, rate=8000), rows=[ENDED])
    row = finished(capture, tmp_path)
    assert row["status"] == "ok"
    assert row["latency"]["reply_ms"] == pytest.approx(500, abs=6)


def test_opus_is_decoded_however_its_pages_are_cut(tmp_path: Path) -> None:
    pytest.importorskip("sphn")
    data = encoder("opus", 24_000).encode(to_pcm16(voice(2000)))
    cuts = [0, 3, 40, len(data) // 2, len(data)]
    pieces = [piece(data[a:b], n, "opus") for n, (a, b) in enumerate(itertools.pairwise(cuts))]
    row = finished(capture_of(*pieces, rows=[ENDED]), tmp_path)
    assert row["status"] == "ok"
    assert row["latency"]["reply_ms"] == pytest.approx(2000, abs=80)


def test_what_cannot_be_decoded_is_said_once_and_the_rest_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("sphn")
    bad = [piece(b"not Opus at all" * 9, n, "opus", reply="r0") for n in range(3)]
    row = finished(capture_of(*bad, piece(REPLY), rows=[ENDED]), tmp_path)
    assert row["status"] == "ok"
    assert row["fault"].startswith("3 pieces of opus audio could not be decoded: ")
    assert len(audio(tmp_path, "one.reply.flac")[0]) == len(REPLY) // 2


@pytest.mark.parametrize("outcome", ["ended", "truncated"])
def test_a_reply_of_which_nothing_can_be_decoded_breaks_the_protocol(
    outcome: Outcome, tmp_path: Path
) -> None:
    pytest.importorskip("sphn")
    bad = [piece(b"not Opus at all" * 9, n, "opus") for n in range(3)]
    row = finished(capture_of(*bad, rows=[ENDED], outcome=outcome), tmp_path)
    assert row["status"] == "protocol_error"
    assert "3 pieces of opus audio could not be decoded: " in row["fault"]


def test_nothing_at_all_is_an_empty_stream() -> None:
    rate, stream, notes = decode(capture_of(rows=[ENDED]))
    assert (rate, len(stream), notes) == (24_000, 0, [])


# Status


QUIET = piece(to_pcm16(silence(400)))


@pytest.mark.parametrize(
    ("capture", "status", "fault"),
    [
        (capture_of(), "ok", None),
        (capture_of(QUIET, rows=[ENDED]), "no_reply", None),
        (capture_of(rows=[ENDED]), "no_reply", "the reply ended without any audio"),
        (capture_of(outcome="truncated"), "truncated", None),
        (capture_of(rows=[ENDED], outcome="timeout", fault="server: busy"), "timeout", "server"),
        (capture_of(outcome="refused", fault="quota: spent"), "refused", "quota: spent"),
        (capture_of(outcome="disconnected", fault="1006"), "disconnected", "1006"),
        (capture_of(outcome="protocol_error", fault="no"), "protocol_error", "no"),
        (capture_of(fault="request: a complaint"), "ok", "request: a complaint"),
        (capture_of(piece(REPLY[:-1])), "ok", "in the middle of a sample"),
        (capture_of(piece(REPLY[:-1]), outcome="truncated"), "truncated", "middle of a sample"),
    ],
)
def test_how_it_went_is_told_by_one_word_and_a_reason(
    capture: Capture, status: str, fault: str | None, tmp_path: Path
) -> None:
    row = finished(capture, tmp_path)
    assert row["status"] == status
    assert (fault is None) == (row["fault"] is None)
    assert (fault or "") in (row["fault"] or "")
    json.dumps(row, allow_nan=False)


@pytest.mark.parametrize("capture", [capture_of(QUIET, rows=[ENDED]), capture_of(rows=[ENDED])])
def test_every_file_of_a_trial_without_a_reply_can_be_played(
    capture: Capture, tmp_path: Path
) -> None:
    finished(capture, tmp_path)
    written = list((tmp_path / "audio").iterdir())
    assert tmp_path / "audio" / "one.flac" in written
    for path in written:
        assert len(soundfile.read(path)[0]) > 0, path.name


@pytest.mark.parametrize(("text", "status"), [("Paris.", "ok"), ("  \n", "no_reply")])
def test_a_text_only_reply_is_ok_when_it_has_words(text: str, status: str, tmp_path: Path) -> None:
    rows = [told(200, "reply_text", text=text, reply="r1"), ENDED]
    capture = capture_of(rows=rows, reply_text=text, changes={"latency_kind": "text"})
    row = finished(capture, tmp_path)
    assert row["status"] == status
    assert row["latency"]["first_audible_ms"] is None
    assert (row["latency"]["first_text_ms"] == 200) == (status == "ok")
    assert row["fault"] is None or status == "no_reply"


def test_a_question_that_was_never_reached_has_a_log_and_no_audio(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}]
    row = finished(Capture("disconnected", "refused", rows, [], [], None), tmp_path)
    assert row["status"] == "disconnected"
    assert set(row["latency"].values()) == {None}
    assert row["t0_ns"] is None
    assert not (tmp_path / "audio").exists()
    assert len(logged(tmp_path)) == 1


# Audio


def test_both_sides_are_on_one_timeline(tmp_path: Path) -> None:
    finished(capture_of(piece(REPLY, 300), rows=[ENDED]), tmp_path)
    both, rate = audio(tmp_path, "one.flac")
    left, right = both[:, 0], both[:, 1]
    assert rate == RATE
    lead = 1600 * RATE // 16_000
    end = lead + CLIP_SAMPLES * RATE // 16_000
    assert np.abs(left[: lead - 100]).max() < 0.01
    assert left[lead + 100 : end - 100] == pytest.approx(SENT, abs=0.01)
    assert np.all(right[: 2300 * RATE // 1000] == 0)  # t0 is at 2 s of the stream
    first = int(np.flatnonzero(right)[0])
    assert first == pytest.approx(2300 * RATE // 1000, abs=RATE // 1000)


def test_a_reply_that_is_all_there_is_is_kept_once(tmp_path: Path) -> None:
    finished(capture_of(), tmp_path)
    assert sorted(path.name for path in (tmp_path / "audio").iterdir()) == [
        "one.flac",
        "one.reply.flac",
    ]
    assert len(audio(tmp_path, "one.reply.flac")[0]) == len(REPLY) // 2


def test_the_whole_stream_is_kept_where_it_is_more_than_the_reply(tmp_path: Path) -> None:
    greeting = [
        piece(REPLY, -1950, reply="r0"),
        piece(REPLY, 300),
    ]
    rows = [told(-1900, "reply_ended", reply="r0"), ENDED]
    finished(capture_of(*greeting, rows=rows), tmp_path)
    assert len(audio(tmp_path, "one.stream.flac")[0]) == len(REPLY)
    assert len(audio(tmp_path, "one.reply.flac")[0]) == len(REPLY) // 2


def test_the_same_attempt_finished_again_gives_the_same_files(tmp_path: Path) -> None:
    rows = [finished(capture_of(), tmp_path / name) for name in "ab"]
    assert rows[0] == rows[1]
    for name in ("events/one.jsonl", "audio/one.flac", "audio/one.reply.flac"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


# The log


def test_secrets_are_taken_out_of_the_log(tmp_path: Path) -> None:
    capture = capture_of(
        rows=[told(200, "fault", message="bad key sk-very-secret"), ENDED],
        raw=[(111, '{"key":"sk-very-secret"}')],
    )
    finished(capture, tmp_path, "sk-very-secret")
    text = (tmp_path / "events" / "one.jsonl").read_text()
    assert "sk-very-secret" not in text
    assert text.count("[redacted]") == 2


def test_payloads_in_raw_messages_are_replaced_by_their_sizes(tmp_path: Path) -> None:
    raw = json.dumps({"type": "x", "audio": "A" * 1000, "word": "short", "url": "B" * 300})
    finished(capture_of(rows=[told(200, "message"), ENDED], raw=[(111, raw)]), tmp_path)
    (row,) = [row for row in logged(tmp_path) if "data" in row]
    found = json.loads(row["data"])
    assert found["word"] == "short"
    assert found["audio"] == "<1000 characters>"
    assert "BBB" not in row["data"]


def test_a_very_long_raw_message_is_cut(tmp_path: Path) -> None:
    raw = "so much text " * 10_000
    finished(capture_of(rows=[told(200, "message"), ENDED], raw=[(111, raw)]), tmp_path)
    (row,) = [row for row in logged(tmp_path) if "data" in row]
    assert len(row["data"]) == 8192


def test_text_that_is_no_unicode_is_written_and_read_back(tmp_path: Path) -> None:
    rows = [told(200, "reply_text", text="half a pair \ud83d", reply="r1"), ENDED]
    row = finished(capture_of(rows=rows, reply_text="half a pair \ud83d"), tmp_path)
    assert row["reply_text"].startswith("half")
    assert "half a pair" in json.dumps(logged(tmp_path))


# The audit


def test_the_loops_own_lag_before_the_answer_spoils_its_latency(tmp_path: Path) -> None:  # PR-03
    t0 = capture_of().rows[0]["t_ns"] + 2_000_000_000
    for lag_at, valid in ((t0 - 10**9, True), (t0 + 10**8, False), (t0 + 10**9, True)):
        row = finished(capture_of(lags=[(t0 - 2 * 10**9, 0.1), (lag_at, 45.0)]), tmp_path)
        assert row["audit"]["latency_valid"] is valid
        assert row["audit"]["loop_lag_ms"]["max"] == 45.0


@pytest.mark.parametrize(
    ("limits", "valid"),
    [
        (Lateness(), False),
        (Lateness(send_ms=40), False),
        (Lateness(loop_ms=50), False),
        (Lateness(send_ms=40, loop_ms=50), True),
    ],
)
def test_how_late_is_too_late_is_the_users_to_say(
    limits: Lateness, valid: bool, tmp_path: Path
) -> None:
    t0 = capture_of().rows[0]["t_ns"] + 2_000_000_000
    capture = capture_of(late_ms=30, late=[99], lags=[(t0 + 10**8, 45.0)])
    row = finish(capture, replace(attempt_in(tmp_path), lateness=limits))
    assert row["audit"]["latency_valid"] is valid


@pytest.mark.parametrize(("number", "valid"), [(10, True), (80, False), (99, False)])
def test_a_frame_that_left_late_near_the_end_spoils_the_latency(
    number: int, valid: bool, tmp_path: Path
) -> None:
    row = finished(capture_of(late_ms=30, late=[number]), tmp_path)
    assert row["audit"]["latency_valid"] is valid
    assert row["audit"]["late_frames"] == (0 if valid else 1)
    assert row["audit"]["send_lateness_ms"]["max"] == pytest.approx(30)
    assert row["status"] == "ok"


def test_what_was_odd_about_the_log_is_in_the_audit(tmp_path: Path) -> None:
    fine = finished(capture_of(), tmp_path)
    assert fine["audit"]["warnings"] == []
    rows: list[dict[str, Any]] = [{"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}]
    odd = finished(Capture("timeout", None, rows, [], [], None), tmp_path)
    assert odd["audit"]["warnings"] == ["the log has no usable header"]


def test_the_fields_known_before_are_in_the_row(tmp_path: Path) -> None:
    capture = capture_of(connect_ms=12.34567, rtt_ms=None, usage={"tokens": 3})
    row = finished(capture, tmp_path)
    assert row["key"] == "k"
    assert (row["connect_ms"], row["rtt_ms"], row["usage"]) == (12.346, None, {"tokens": 3})
    assert row["latency_kind"] == "server-vad"


OUTCOMES: list[Outcome] = ["timeout", "truncated", "refused", "disconnected", "protocol_error"]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_attempt_that_went_wrong_keeps_what_came(outcome: Outcome, tmp_path: Path) -> None:
    row = finished(capture_of(outcome=outcome), tmp_path)
    assert row["status"] == outcome
    assert len(audio(tmp_path, "one.reply.flac")[0]) == len(REPLY) // 2

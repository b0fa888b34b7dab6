"""The latency of attempts whose log was written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attempt_logs as logs
import numpy as np
import pytest
from attempt_logs import (
    MS,
    RATE,
    START_NS,
    T0_NS,
    Samples,
    audio,
    came,
    frames,
    joined,
    log,
    silence,
    told_reply,
    voice,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from voxmeter.scoring.log import Row
from voxmeter.scoring.marks import NAMES, Marks, latency

NONE = dict.fromkeys(NAMES)
STREAM = voice(1000)


def marks(*parts: Sequence[Row], stream: Samples = STREAM, kind: str = "server-vad") -> Marks:
    return latency(log(frames(300), *parts, kind=kind), stream)


def check(found: Marks, **expected: float | None) -> None:
    for name, value in expected.items():
        assert found.latency[name] == (None if value is None else pytest.approx(value, abs=0.1))


# --- the user's end of speech ---


def test_t0_is_the_moment_the_last_voiced_sample_left() -> None:
    assert marks().t0_ns == T0_NS
    late = log(frames(300, late_ms=3, late=[99]))
    assert latency(late, STREAM).t0_ns == T0_NS + 3 * MS


def test_t0_leaves_out_the_audio_behind_it_in_its_frame() -> None:
    rows = log(frames(300), speech_end_sample=32_000 - 100)
    assert latency(rows, STREAM).t0_ns == T0_NS - 6.25 * MS
    rows = log(frames(300), speech_end_sample=31_681)  # the first sample of the same frame
    assert latency(rows, STREAM).t0_ns == pytest.approx(T0_NS - 319 / 16 * MS, abs=1)


def test_t0_of_a_committed_turn_is_the_send_of_its_short_last_frame() -> None:
    sent = [*frames(99), {**frames(100)[99], "samples": 120, "t_ns": T0_NS - 12 * MS}]
    committed = {"t_ns": T0_NS, "due_ns": T0_NS, "dir": "out", "kind": "commit"}
    rows = log(
        sent,
        [committed],
        told_reply(288, RATE),
        kind="commit",
        speech_end_sample=99 * 320 + 120,
        commit_after_ms=12,
    )
    found = latency(rows, STREAM)
    assert found.t0_ns == T0_NS - 12 * MS
    check(found, first_packet_ms=300, first_audible_ms=300, leading_silence_ms=0)


def test_t0_of_a_request_is_its_start_less_the_wait_before_it() -> None:
    asked = {"t_ns": T0_NS + 500 * MS, "dir": "out", "kind": "request"}
    found = latency(
        log([asked], told_reply(800, RATE), kind="request", commit_after_ms=500), STREAM
    )
    assert found.t0_ns == T0_NS
    check(found, first_packet_ms=800, first_audible_ms=800)


def test_a_clip_whose_end_was_never_sent_has_no_latency() -> None:
    found = latency(log(frames(60), told_reply(300, RATE)), STREAM)
    assert (found.t0_ns, found.latency, found.answer) == (None, NONE, [])
    assert found.audit["latency_valid"]


# --- the reply ---


def test_first_packet_and_first_audible_differ_by_the_silence_in_front() -> None:
    found = marks(told_reply(250, 2 * RATE), stream=joined(silence(600), voice(1400)))
    check(found, first_packet_ms=250, first_audible_ms=850, leading_silence_ms=600)
    check(found, reply_ms=1400, reply_end_ms=2250, stalls=0, stall_ms=0, delivery_rate=1)
    assert found.status == "ok"
    assert found.answer == [(0, 2 * RATE)]


def test_a_burst_is_heard_in_real_time() -> None:
    found = marks(told_reply(250, 2 * RATE, pace=0.1), stream=joined(silence(200), voice(1800)))
    check(found, first_packet_ms=250, first_audible_ms=450, reply_end_ms=2250, stalls=0)
    check(found, delivery_rate=10)


def test_one_message_has_no_delivery_rate() -> None:
    check(marks([audio(250, RATE)]), delivery_rate=None, first_packet_ms=250, reply_ms=1000)


def test_late_audio_stalls_the_reply_and_delays_its_end() -> None:
    rows = [audio(200, RATE // 2), audio(740, RATE // 2)]
    found = marks(rows)
    check(found, stalls=1, stall_ms=40, reply_ms=1000, reply_end_ms=1240, first_audible_ms=200)
    assert found.stall_spans == [{"start_ms": 700, "ms": 40, "sample": RATE // 2}]


def test_late_audio_in_the_silence_in_front_is_latency_not_a_stall() -> None:
    rows = [audio(200, 2400), audio(400, 24_000)]
    found = marks(rows, stream=joined(silence(200), voice(900)))
    check(found, stalls=0, stall_ms=0, first_audible_ms=500, leading_silence_ms=300)


def test_talk_over_is_a_negative_latency() -> None:
    found = marks(told_reply(-400, RATE))
    check(found, first_packet_ms=-400, first_audible_ms=-400, reply_end_ms=600)
    assert [segment["role"] for segment in found.segments] == ["talk-over"]


def test_an_early_reply_is_not_the_answer() -> None:
    rows = [*told_reply(-900, RATE // 10, reply="e"), *told_reply(350, RATE, reply="a")]
    found = marks(rows, stream=joined(voice(100), silence(500), voice(500)))
    check(found, first_packet_ms=350, first_audible_ms=850, reply_ms=500)
    assert [(s["role"], s["reply"]) for s in found.segments] == [("early", "e"), ("answer", "a")]
    assert found.segments[0]["start_ms"] == pytest.approx(-900)
    assert found.answer == [(RATE // 10, RATE + RATE // 10)]


def test_a_cancelled_answer_ends_with_its_last_sound_that_was_heard() -> None:
    cut = came(900, "reply_ended", reason="cancelled", reply="r1")
    stream = joined(voice(300), silence(500), voice(400))
    found = marks([audio(200, stream.size), cut], stream=stream)
    check(found, first_audible_ms=200, reply_ms=300, reply_end_ms=500, stalls=0)
    assert found.segments[0]["end_sample"] == stream.size  # what its audio holds


def test_an_answer_cancelled_before_its_sound_was_heard_has_no_audible_marks() -> None:
    cut = came(400, "reply_ended", reason="cancelled", reply="r1")
    found = marks([audio(200, 2 * RATE), cut], stream=joined(silence(600), voice(1400)))
    check(found, first_packet_ms=200, first_audible_ms=None, leading_silence_ms=None)
    check(found, reply_ms=None, reply_end_ms=None, stall_ms=None, stalls=None)


def test_an_answer_is_first_heard_where_what_was_left_of_it_is_heard() -> None:
    stream = joined(silence(600), voice(400), silence(500), voice(500))
    rest = audio(900, RATE)
    cut = came(400, "reply_ended", reason="cancelled", reply="r1")
    found = marks([audio(200, RATE), cut, rest], stream=stream)
    check(found, first_packet_ms=200, first_audible_ms=1400, reply_ms=500, reply_end_ms=1900)


def test_a_cancelled_reply_takes_nothing_from_the_reply_before_it() -> None:
    other = came(400, "reply_started", reply="r2")
    cut = came(500, "reply_ended", reason="cancelled", reply="r2")
    found = marks([*told_reply(200, RATE, pace=0), other, cut])
    check(found, first_audible_ms=200, reply_ms=1000, reply_end_ms=1200)


@pytest.mark.parametrize(
    "end", [came(500, "interrupted"), came(500, "reply_ended", reason="cancelled", reply="")]
)
def test_an_end_that_names_no_reply_empties_the_whole_queue(end: Row) -> None:
    check(marks([audio(200, RATE), end]), first_audible_ms=200, reply_ms=300, reply_end_ms=500)


def test_words_after_a_long_quiet_are_those_of_the_next_reply_where_nothing_is_told() -> None:
    rows = [
        came(-3000, "reply_text", text="Hello", reply=""),
        audio(-2900, RATE // 2, ""),
        came(150, "reply_text", text="Yes", reply=""),
        audio(250, RATE // 2, ""),
    ]
    check(marks(rows), first_text_ms=150, first_packet_ms=250)


def test_the_first_words_of_the_answer_are_timed() -> None:
    rows = [
        came(-800, "reply_text", text="Hm?", reply="e"),
        came(-700, "reply_ended", reason="cancelled", reply="e"),
        came(150, "reply_text", text=" ", reply="r1"),
        came(180, "reply_text", text="Paris", reply="r1"),
        *told_reply(250, RATE),
    ]
    check(marks(rows), first_text_ms=180, first_packet_ms=250)


def test_a_text_only_reply_has_no_audio_marks() -> None:
    rows = [came(180, "reply_text", text="Paris"), came(300, "reply_ended", reason="completed")]
    found = marks(rows, stream=silence(0), kind="text")
    assert found.latency == NONE | {"first_text_ms": 180}
    assert found.status == "ok"


# --- what did not happen ---


@pytest.mark.parametrize(
    ("rows", "stream", "status"),
    [
        ([], silence(0), "timeout"),
        ([came(20, "speech_stopped"), came(50, "usage")], silence(0), "timeout"),
        ([came(200, "reply_ended", reason="completed")], silence(0), "no_reply"),
        (told_reply(200, RATE), silence(1000), "no_reply"),
        ([came(200, "reply_text", text="Paris")], silence(0), "no_reply"),
    ],
)
def test_what_did_not_happen_is_null_and_never_the_length_of_a_time_out(
    rows: list[dict[str, Any]], stream: Samples, status: str
) -> None:
    found = marks(rows, stream=stream)
    for name in ("first_audible_ms", "reply_ms", "reply_end_ms", "stalls", "stall_ms"):
        assert found.latency[name] is None
    assert found.status == status
    assert found.answer == []


def test_a_silent_reply_still_has_a_first_packet() -> None:
    found = marks(told_reply(200, RATE), stream=silence(1000))
    check(found, first_packet_ms=200, leading_silence_ms=None, first_audible_ms=None)


def test_pacing_that_is_not_real_time_has_no_latency_at_all() -> None:
    rows = log(frames(300), told_reply(250, RATE), pacing="fast")
    found = latency(rows, STREAM)
    assert found.latency == NONE
    assert found.answer == [(0, RATE)]
    assert found.segments[0]["start_ms"] is None
    assert found.stall_spans == []


def test_interruptions_are_not_measured_where_there_was_none() -> None:
    check(marks(told_reply(250, RATE)), yield_ms=None, overlap_ms=None)


# --- endpointing ---


@pytest.mark.parametrize(
    ("rows", "endpointing_ms"),
    [
        ([], None),
        ([("speech_started", -1800), ("speech_stopped", 520)], 520),
        ([("speech_stopped", -900), ("speech_started", -700), ("speech_stopped", 500)], 500),
        ([("speech_stopped", -900), ("speech_stopped", 500)], 500),
        ([("speech_stopped", -200)], -200),  # cut off
        ([("speech_stopped", -900), ("speech_started", -700)], None),
        ([("speech_stopped", 500), ("speech_started", 900), ("speech_stopped", 1500)], 500),
    ],
)
def test_endpointing_is_the_servers_delay_after_our_own_end_of_speech(
    rows: list[tuple[str, float]], endpointing_ms: float | None
) -> None:
    events = [came(ms, kind) for kind, ms in rows]
    check(marks(events, told_reply(700, RATE)), endpointing_ms=endpointing_ms)


def test_three_turns_on_one_socket_are_timed_each_by_its_own_end_of_speech() -> None:
    for number, delay in enumerate((200, 400, 800)):
        shift = number * 60_000 * MS
        rows = [
            {key: value + shift if key.endswith("_ns") else value for key, value in row.items()}
            for row in log(frames(300), told_reply(delay, RATE))
        ]
        check(latency(rows, STREAM), first_packet_ms=delay, first_audible_ms=delay)


# --- full duplex ---


def duplex(stream: Samples, *, hiccup: range = range(0), ms: float = 0) -> list[Row]:
    """A stream of 80 ms frames in real time, from the first moment of ours, each 60 ms late."""
    rows: list[Row] = []
    for number in range(stream.size // 1920):
        at = (number + 1) * 80 + 60 + (ms if number in hiccup else 0) - logs.CLIP_MS
        rows.append(came(at, "reply_audio", samples=1920, reply=""))
    return rows


def duplex_stream(*parts: tuple[float, Samples], length_ms: float = 8000) -> Samples:
    stream = np.random.default_rng(1).standard_normal(round(length_ms * 24)) * 10 ** (-65 / 20)
    for at_ms, part in parts:
        start = round(at_ms * 24)
        stream[start : start + part.size] += part
    return np.asarray(stream, dtype=np.float32)


def test_the_answer_is_found_in_a_stream_that_never_stops() -> None:
    stream = duplex_stream((40, voice(40)), (600, voice(300)), (2720, voice(1000)))
    found = marks(duplex(stream), stream=stream, kind="duplex")
    # The stream is heard 140 ms late; its 2.72 s are 720 ms after t0.
    check(found, first_packet_ms=None, leading_silence_ms=None, first_audible_ms=860)
    check(found, stream_first_audible_ms=720, reply_ms=1000, reply_end_ms=1860, stalls=0)
    assert [segment["role"] for segment in found.segments] == ["backchannel", "answer"]
    assert np.abs(np.array(found.answer) - [[2720 * 24, 3720 * 24]]).max() <= 12


def test_a_hiccup_before_the_answer_does_not_move_it() -> None:
    stream = duplex_stream((2720, voice(1000)))
    rows = duplex(stream, hiccup=range(10, 15), ms=400)
    check(marks(rows, stream=stream, kind="duplex"), first_audible_ms=860, stalls=0)


def test_a_hiccup_inside_the_answer_is_a_stall() -> None:
    stream = duplex_stream((2720, voice(1000)))
    rows = duplex(stream, hiccup=range(40, 42), ms=100)
    check(marks(rows, stream=stream, kind="duplex"), first_audible_ms=860, stalls=1, stall_ms=100)


def test_duplex_talk_over_is_negative_and_counted() -> None:
    stream = duplex_stream((1600, voice(1500)))
    found = marks(duplex(stream), stream=stream, kind="duplex")
    check(found, first_audible_ms=-260, stream_first_audible_ms=-400)
    assert [segment["role"] for segment in found.segments] == ["talk-over"]


def test_words_of_a_backchannel_are_not_those_of_the_answer() -> None:
    stream = duplex_stream((600, voice(300)), (2720, voice(1000)))
    words = [came(ms, "reply_text", text=text) for ms, text in ((-1300, "uh"), (650, "Paris"))]
    check(marks(duplex(stream), words, stream=stream, kind="duplex"), first_text_ms=650)


def test_a_duplex_stream_of_noise_holds_no_answer() -> None:
    stream = duplex_stream()
    found = marks(duplex(stream), stream=stream, kind="duplex")
    assert (found.status, found.segments, found.answer) == ("no_reply", [], [])
    assert found.latency == NONE


# --- odd logs ---


def test_an_epoch_time_leads_to_no_number() -> None:
    epoch = {**audio(0, RATE), "t_ns": 1_700_000_000 * 10**9 * 10}
    found = marks([epoch])
    assert found.latency == NONE
    assert found.audit["warnings"]


@pytest.mark.parametrize("t_ns", [None, "soon", float("nan"), float("inf"), True, -1])
def test_a_time_that_is_none_leads_to_no_number(t_ns: object) -> None:
    rows = [*log(frames(300)), {**audio(0, RATE), "t_ns": t_ns}]
    found = latency(rows, STREAM)
    assert found.latency == NONE
    assert "1 rows without a possible time" in found.audit["warnings"]


def test_an_answer_before_the_question_leads_to_no_number() -> None:
    found = marks([audio(-5000, RATE)], stream=STREAM)
    assert found.latency["first_packet_ms"] is None
    assert found.latency["first_audible_ms"] is None
    assert found.latency["leading_silence_ms"] is None
    assert found.latency["reply_end_ms"] is None
    assert any("before the question" in text for text in found.audit["warnings"])


def test_a_reply_before_its_request_leads_to_no_number() -> None:
    asked = {"t_ns": T0_NS, "dir": "out", "kind": "request"}
    found = latency(log([asked], [audio(-30, RATE)], kind="request"), STREAM)
    check(found, first_packet_ms=None, first_audible_ms=None)
    rows = log([asked], [audio(-30, RATE)], kind="request", commit_after_ms=100)
    found = latency(rows, STREAM)
    check(found, first_packet_ms=None, first_audible_ms=None)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}],
        [{"kind": "start"}],
        [{"kind": "start", "t_ns": START_NS, "input_rate": 0, "output_rate": RATE}],
        [{**logs.header(), "speech_end_sample": "32000"}],
        [{"t_ns": 0, "dir": "out", "kind": "start", "bytes": 0}, audio(200, RATE)],
    ],
)
def test_a_log_without_a_usable_header_has_no_latency(rows: list[Row]) -> None:
    found = latency(rows, STREAM)
    assert (found.t0_ns, found.latency, found.segments) == (None, NONE, [])
    assert found.audit["warnings"] == ["the log has no usable header"]


def test_rows_that_claim_more_or_less_than_the_stream_are_said() -> None:
    for samples in (RATE // 2, 2 * RATE):
        found = marks([audio(250, samples)])
        check(found, first_packet_ms=250, first_audible_ms=250)
        assert found.audit["warnings"] == [f"rows tell of {samples} samples, the stream has 24000"]


kinds = st.sampled_from(
    [
        *("reply_started", "reply_audio", "reply_text", "reply_ended", "interrupted"),
        *("speech_started", "speech_stopped", "closed", "fault", "message", "start"),
    ]
)
any_row = st.fixed_dictionaries(
    {
        "t_ns": st.one_of(
            st.none(), st.integers(START_NS - 10**10, START_NS + 10**10), st.integers()
        ),
        "dir": st.sampled_from(["in", "out", None]),
        "kind": kinds,
    },
    optional={
        "samples": st.one_of(st.none(), st.integers(-10, 5000)),
        "reply": st.sampled_from(["", "a", "b", None]),
        "reason": st.sampled_from(["completed", "cancelled", None]),
        "text": st.sampled_from(["", " ", "word", None]),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(any_row, max_size=12), st.sampled_from(["server-vad", "duplex", "request"]))
def test_events_in_any_order_never_crash_and_never_give_nonsense(
    rows: list[dict[str, Any]], kind: str
) -> None:
    found = latency([logs.header(kind), *frames(110), *rows], voice(300))
    for value in found.latency.values():
        assert value is None or (np.isfinite(value) and abs(value) < 3_600_000)
    for name in ("reply_ms", "stall_ms", "stalls", "leading_silence_ms", "delivery_rate"):
        assert (found.latency[name] or 0) >= 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=30), st.integers(0, 900))
def test_how_a_burst_is_cut_into_messages_does_not_change_its_marks(
    sizes: list[int], lead_ms: int
) -> None:
    stream = joined(silence(lead_ms), voice(500))
    rows, left = [], stream.size
    for size in [*sizes, stream.size]:
        rows.append(audio(250, min(size, left)))
        left -= min(size, left)
    found = marks([row for row in rows if row["samples"]], stream=stream)
    check(found, first_packet_ms=250, first_audible_ms=250 + lead_ms, reply_ms=500, stalls=0)


# --- the client's own audit ---


@pytest.mark.parametrize(
    ("late", "late_ms", "valid"),
    [
        ([], 0, True),
        ([60], 21, False),  # in the second before t0
        ([60], 20, True),
        ([99], 21, False),
        ([150], 500, False),  # behind t0: silence that the server waits for
        ([10], 500, True),  # long before
    ],
)
def test_a_late_frame_near_the_end_of_speech_spoils_the_latency(
    late: list[int],
    late_ms: float,
    valid: bool,
) -> None:
    found = latency(log(frames(300, late_ms=late_ms, late=late), told_reply(900, RATE)), STREAM)
    assert found.audit["latency_valid"] is valid
    assert found.audit["send_lateness_ms"]["max"] == late_ms
    assert found.audit["send_lateness_ms"]["p50"] == 0


def test_without_paced_frames_there_is_no_lateness() -> None:
    asked = {"t_ns": T0_NS, "dir": "out", "kind": "request"}
    found = latency(log([asked], told_reply(250, RATE), kind="request"), STREAM)
    assert found.audit["send_lateness_ms"] is None
    assert found.audit["latency_valid"]

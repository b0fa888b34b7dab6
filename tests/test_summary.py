"""Figures of run folders that were built by hand, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sample_run import build, item, score, trial

from voxmeter.client.summary import exit_status, summarise

Json = dict[str, Any]


def only_cell(summary: Json) -> Json:
    assert len(summary["cells"]) == 1
    cell: Json = summary["cells"][0]
    return cell


def codes(summary: Json) -> list[str]:
    return [warning["code"] for warning in summary["warnings"]]


def answers(tmp_path: Path, *, repeats: int = 1) -> Json:
    """Eight items: two right, four wrong, two that timed out."""
    names = [f"q{number}" for number in range(8)]
    trials, scores = [], []
    for number, name in enumerate(names):
        for repeat in range(1, repeats + 1):
            row = trial(name, "ok" if number < 6 else "timeout", repeat)
            trials.append(row)
            if number < 6:
                scores.append(score(row, value=float(number < 2)))
            else:
                scores.append(score(row, value=None, unscored="timeout"))
    with build(tmp_path, map(item, names), trials, scores) as folder:
        return summarise(folder)


@pytest.mark.parametrize("repeats", [1, 3])
def test_errors_stay_in_the_denominator_and_both_figures_are_shown(
    tmp_path: Path, repeats: int
) -> None:
    metrics = only_cell(answers(tmp_path, repeats=repeats))["metrics"]
    assert metrics["accuracy"]["value"] == 2 / 8
    assert metrics["accuracy"]["n"] == 8 * repeats
    assert metrics["accuracy"]["items"] == 8
    assert metrics["accuracy"]["unscored"] == 2 * repeats
    assert metrics["accuracy_parsed"]["value"] == pytest.approx(2 / 6, abs=1e-6)
    assert metrics["accuracy_parsed"]["n"] == 6 * repeats
    assert metrics["parse_rate"]["value"] == 6 / 8
    assert metrics["reply_rate"]["value"] == 6 / 8
    assert metrics["accuracy_chance_imputed"]["value"] == (2 + 2 * 0.25) / 8


def test_repeats_narrow_nothing_that_they_do_not_add(tmp_path: Path) -> None:
    once = only_cell(answers(tmp_path / "a"))["metrics"]["accuracy"]
    thrice = only_cell(answers(tmp_path / "b", repeats=3))["metrics"]["accuracy"]
    assert (once["low"], once["high"]) == (thrice["low"], thrice["high"])


def test_a_bad_clip_leaves_n_and_is_counted(tmp_path: Path) -> None:
    good, bad = trial("q0"), trial("q1", "bad_clip")
    scores = [score(good), score(bad, value=None, unscored="bad_clip", detail={"counted": False})]
    with build(tmp_path, [item("q0"), item("q1")], [good, bad], scores) as folder:
        summary = summarise(folder)
    cell = only_cell(summary)
    assert cell["status"] == {"ok": 1, "bad_clip": 1}
    assert cell["metrics"]["accuracy"]["n"] == 1
    assert cell["metrics"]["accuracy"]["left_out"] == 1
    assert cell["metrics"]["first_audible_ms"]["missing"] == 1
    assert "bad-clip" in codes(summary)


def test_a_reply_that_could_not_be_transcribed_leaves_n_and_is_counted(tmp_path: Path) -> None:
    rows = [trial(f"q{number}") for number in range(3)]
    reason = "not transcribed: the reply's audio is missing"
    scores = [
        score(rows[0]),
        score(rows[1], value=0.0),
        score(rows[2], value=None, unscored=reason, detail={"counted": False}),
    ]
    with build(tmp_path, [item(f"q{number}") for number in range(3)], rows, scores) as folder:
        accuracy = only_cell(summarise(folder))["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["left_out"]) == (0.5, 2, 1)


def test_failures_count_as_wrong_even_before_anything_was_scored(tmp_path: Path) -> None:
    rows = [trial("q0", "timeout"), trial("q1", "disconnected"), trial("q2")]
    with build(tmp_path, [item(f"q{n}") for n in range(3)], rows) as folder:
        summary = summarise(folder)
    accuracy = only_cell(summary)["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["left_out"]) == (0.0, 2, 1)
    assert "not-transcribed" in codes(summary)
    assert "incomplete" in codes(summary)


def test_warm_up_turns_are_in_no_figure_but_cold(tmp_path: Path) -> None:
    cold = [trial("q0", number=-n, first_audible_ms=9000.0) for n in range(3)]
    warm = [trial("q0", number=n, first_audible_ms=900.0) for n in range(1, 21)]
    scores = [score(row, value=0.0) for row in cold] + [score(row) for row in warm]
    with build(tmp_path, [item("q0")], [*cold, *warm], scores) as folder:
        cell = only_cell(summarise(folder))
    audible = cell["metrics"]["first_audible_ms"]
    assert audible["n"] == 20
    assert audible["p95"]["value"] == 900.0
    assert audible["mean"]["value"] == 900.0
    assert cell["metrics"]["accuracy"]["value"] == 1.0
    assert cell["cold"] == {
        "n": 3,
        "first_packet_ms": [],
        "first_audible_ms": [9000.0] * 3,
        "first_text_ms": [],
    }


@pytest.mark.parametrize(("count", "shown"), [(5, ""), (20, "p95"), (99, "p95"), (100, "p99")])
def test_high_percentiles_wait_for_their_samples(tmp_path: Path, count: int, shown: str) -> None:
    rows = [trial(f"q{n}", first_audible_ms=500.0 + n) for n in range(count)]
    with build(tmp_path, [item(f"q{n}") for n in range(count)], rows) as folder:
        audible = only_cell(summarise(folder))["metrics"]["first_audible_ms"]
    assert audible["n"] == count
    assert (audible["p95"] is not None) == (shown != "")
    assert (audible["p99"] is not None) == (shown == "p99")
    assert audible["p50"]["value"] == 500.0 + (count - 1) / 2


def test_missing_replies_are_missing_and_not_zero(tmp_path: Path) -> None:
    rows = [trial(f"q{n}", first_audible_ms=600.0) for n in range(8)]
    rows += [trial("q8", "no_reply", first_packet_ms=10.0), trial("q9", "timeout")]
    with build(tmp_path, [item(f"q{n}") for n in range(10)], rows) as folder:
        summary = summarise(folder)
    metrics = only_cell(summary)["metrics"]
    audible = metrics["first_audible_ms"]
    assert (audible["n"], audible["missing"], audible["mean"]["value"]) == (8, 2, 600.0)
    assert metrics["first_packet_ms"]["n"] == 0
    assert metrics["reply_rate"]["value"] == 0.8
    assert "silent-replies" in codes(summary)


def test_latency_that_our_own_lateness_spoiled_is_left_out_and_its_answer_is_not(
    tmp_path: Path,
) -> None:
    rows = [trial("q0", first_audible_ms=500.0)]
    rows += [trial("q1", first_audible_ms=900.0, latency_valid=False)]
    scores = [score(row) for row in rows]
    with build(tmp_path, [item("q0"), item("q1")], rows, scores) as folder:
        summary = summarise(folder)
    metrics = only_cell(summary)["metrics"]
    audible = metrics["first_audible_ms"]
    assert (audible["n"], audible["missing"], audible["invalid"]) == (1, 0, 1)
    assert audible["mean"]["value"] == 500.0
    assert metrics["accuracy"]["n"] == 2
    assert summary["audit"]["latency_invalid"] == 1
    assert "late-frames" in codes(summary)


@pytest.mark.parametrize(("kind", "cure"), [("commit", "lower concurrency"), ("live", "troubles")])
def test_the_cure_of_lateness_is_one_that_there_is(tmp_path: Path, kind: str, cure: str) -> None:
    rows = [trial("q0", first_audible_ms=900.0, latency_valid=False, latency_kind=kind)]
    with build(tmp_path, [item("q0")], rows) as folder:
        summary = summarise(folder)
    (found,) = [one for one in summary["warnings"] if one["code"] == "late-frames"]
    assert cure in found["cure"]


def test_the_last_attempt_counts_and_gives_no_second_chance(tmp_path: Path) -> None:
    rows = [
        trial("q0", "disconnected", attempt=1),
        trial("q0", "disconnected", attempt=2),
        trial("q0", attempt=3),
    ]
    scores = [score(row, value=None, unscored="disconnected") for row in rows[:2]]
    scores += [score(rows[2], value=0.0), score(rows[0], value=1.0)]
    with build(tmp_path, [item("q0")], rows, scores) as folder:
        cell = only_cell(summarise(folder))
    assert cell["status"] == {"ok": 1}
    assert cell["metrics"]["accuracy"]["value"] == 0.0
    assert cell["metrics"]["accuracy"]["n"] == 1


def test_the_newest_score_row_wins_over_older_ones_and_over_the_trial(tmp_path: Path) -> None:
    row = trial("q0", first_audible_ms=700.0)
    scores = [
        score(row, value=1.0),
        score(row, value=0.0),
        score(row, "first_audible_ms", 650.0),
    ]
    with build(tmp_path, [item("q0")], [row], scores) as folder:
        metrics = only_cell(summarise(folder))["metrics"]
    assert metrics["accuracy"]["value"] == 0.0
    assert metrics["first_audible_ms"]["mean"]["value"] == 650.0


def test_nothing_scored_is_null_and_never_nan(tmp_path: Path) -> None:
    rows = [trial(f"q{n}", "refused") for n in range(4)]
    with build(tmp_path, [item(f"q{n}", kind="open") for n in range(4)], rows) as folder:
        summary = summarise(folder)
    text = json.dumps(summary, allow_nan=False)
    assert "NaN" not in text
    accuracy = only_cell(summary)["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["low"], accuracy["n"]) == (None, None, 0)
    assert "no-success" in codes(summary)


def test_open_questions_leave_accuracy_and_are_said_to_wait(tmp_path: Path) -> None:
    closed, free = trial("q0"), trial("q1")
    scores = [
        score(closed),
        score(free, value=None, unscored="open: no judge yet", detail={"counted": False}),
        score(free, "reply_words", 12.0),
    ]
    items = [item("q0"), item("q1", kind="open")]
    with build(tmp_path, items, [closed, free], scores) as folder:
        summary = summarise(folder)
    metrics = only_cell(summary)["metrics"]
    assert metrics["accuracy"]["n"] == 1
    assert metrics["reply_words"]["value"] == 12.0
    assert "open-unscored" in codes(summary)


def test_few_replies_of_unlike_length_claim_no_words_below_none(tmp_path: Path) -> None:
    trials = [trial("q0"), trial("q1")]
    words = [score(trials[0], "reply_words", 1.0), score(trials[1], "reply_words", 30.0)]
    with build(tmp_path, [item("q0"), item("q1")], trials, words) as folder:
        found = only_cell(summarise(folder))["metrics"]["reply_words"]
    assert (found["value"], found["low"]) == (15.5, 0.0)


def test_groups_are_reported_by_path_outer_ones_first(tmp_path: Path) -> None:
    groups = [["STEM", "physics"], ["STEM", "maths"], ["STEM", "physics"], ["arts"]]
    items = [item(f"q{n}", groups=path) for n, path in enumerate(groups)]
    rows = [trial(f"q{n}") for n in range(4)]
    scores = [
        score(row, value=value) for row, value in zip(rows, [1.0, 0.0, 1.0, 0.0], strict=True)
    ]
    with build(tmp_path, items, rows, scores) as folder:
        found = only_cell(summarise(folder))["groups"]
    figures = {tuple(one["path"]): one["metrics"]["accuracy"]["value"] for one in found}
    assert list(figures) == [("STEM",), ("STEM", "maths"), ("STEM", "physics"), ("arts",)]
    assert figures["STEM", "physics"] == 1.0
    assert figures["STEM",] == pytest.approx(2 / 3, abs=1e-6)
    assert figures["arts",] == 0.0


def test_a_command_ends_by_success_first_and_gates_second() -> None:
    def summary(*statuses: dict[str, int], verdict: str = "passed") -> Json:
        cells = [
            {"endpoint": f"bot{number}", "planned": 3, "status": status}
            for number, status in enumerate(statuses)
        ]
        return {"cells": cells, "gates": [{"verdict": verdict}]}

    assert exit_status(summary({"ok": 1}, {"ok": 2, "timeout": 1})) == 0
    assert exit_status(summary({"ok": 1}, verdict="not applicable")) == 0
    assert exit_status(summary({"ok": 1}, verdict="failed")) == 1
    assert exit_status(summary({"ok": 1}, {"timeout": 3}, verdict="failed")) == 3
    assert exit_status(summary({"ok": 1}, {})) == 3
    assert exit_status({"cells": []}) == 3


def test_cells_without_a_single_trial_are_shown_as_planned(tmp_path: Path) -> None:
    planned = [
        {"endpoint": "bot", "suite": "demo", "condition": "clean", "planned": 2},
        {"endpoint": "bot", "suite": "demo", "condition": "noisy", "planned": 2},
    ]
    rows = [trial("q0"), trial("q1")]
    run = {"planned": planned}
    with build(tmp_path, [item("q0"), item("q1")], rows, run=run) as folder:
        summary = summarise(folder)
    assert [(cell["condition"], cell["planned"]) for cell in summary["cells"]] == [
        ("clean", 2),
        ("noisy", 2),
    ]
    assert summary["cells"][1]["status"] == {}
    assert "incomplete" in codes(summary)


def test_what_was_planned_follows_from_the_configuration(tmp_path: Path) -> None:
    config = {
        "run": {"trials": 3, "seed": 5},
        "endpoint": [{"name": "bot", "builtin": "metronome?delay_ms=300&lead_ms=50"}],
        "suite": [{"kind": "demo"}],
        "condition": [{"name": "noisy", "chain": []}],
    }
    rows = [trial("q0", number=n, first_packet_ms=300.5) for n in (1, 2, 3)]
    with build(tmp_path, [item("q0")], rows, run={"config": config}) as folder:
        summary = summarise(folder)
    assert [(cell["condition"], cell["planned"]) for cell in summary["cells"]] == [
        ("clean", 3),
        ("noisy", 3),
    ]
    expected = summary["cells"][0]["control"]["expected"]
    assert expected == {"first_packet_ms": 300.0, "first_audible_ms": 350.0}


@pytest.mark.parametrize("ratio", [1.5, 1 / 1.5])
def test_audio_at_a_steadily_wrong_speed_is_suspected(tmp_path: Path, ratio: float) -> None:
    # 24 kHz samples labelled 16 kHz, delivered in real time: 1.5 seconds of "audio" a second.
    rows = [trial(f"q{n}", delivery_rate=ratio * (1 + n / 1000)) for n in range(5)]
    with build(tmp_path, [item(f"q{n}") for n in range(5)], rows) as folder:
        assert "rate-mismatch" in codes(summarise(folder))


def test_speech_of_the_usual_speed_clears_a_steady_delivery(tmp_path: Path) -> None:
    rows = [trial(f"q{n}", delivery_rate=2.0) for n in range(5)]
    scores = [score(row, "words_per_second", 2.7) for row in rows]
    with build(tmp_path, [item(f"q{n}") for n in range(5)], rows, scores) as folder:
        assert "rate-mismatch" not in codes(summarise(folder))


@pytest.mark.parametrize("rates", [[1.0] * 5, [8.0, 12.0, 30.0, 9.0, 14.0]])
def test_ordinary_delivery_is_not_suspected(tmp_path: Path, rates: list[float]) -> None:
    rows = [trial(f"q{n}", delivery_rate=rate) for n, rate in enumerate(rates)]
    scores = [score(row, "words_per_second", 2.7) for row in rows]
    with build(tmp_path, [item(f"q{n}") for n in range(5)], rows, scores) as folder:
        assert "rate-mismatch" not in codes(summarise(folder))


def test_speech_at_an_impossible_speed_is_suspected(tmp_path: Path) -> None:
    rows = [trial(f"q{n}") for n in range(5)]
    scores = [score(row, "words_per_second", 0.9) for row in rows]
    with build(tmp_path, [item(f"q{n}") for n in range(5)], rows, scores) as folder:
        assert "rate-mismatch" in codes(summarise(folder))


def test_trials_that_were_asked_again_are_told_of(tmp_path: Path) -> None:
    rows = [
        trial("q0", "refused"),
        trial("q0", attempt=2, waited_s=1.5),
        trial("q1", waited_s=0.0),
        trial("q1", number=0, attempt=2, waited_s=3.0),
    ]
    with build(tmp_path, [item("q0"), item("q1")], rows) as folder:
        told = [one for one in summarise(folder)["warnings"] if one["code"] == "asked-again"]
    assert [one["text"].split(": ", 1)[1] for one in told] == [
        "1 trial of 2 refused at first, and asked again after a wait that is in no figure"
    ]


def test_other_warnings_name_what_was_seen(tmp_path: Path) -> None:
    rows = [trial(f"q{n}", host=f"host{n % 2}", first_audible_ms=5.0) for n in range(8)]
    scores = [score(row, value=None if n < 4 else 1.0) for n, row in enumerate(rows)]
    scores += [score(row, "speech_text_disagreement", float(n < 4)) for n, row in enumerate(rows)]
    scores += [score(row, "repetition", float(n < 1)) for n, row in enumerate(rows)]
    with build(tmp_path, [item(f"q{n}", cluster="one") for n in range(8)], rows, scores) as folder:
        found = codes(summarise(folder))
    for code in (
        "mixed-hosts",
        "many-unparsed",
        "text-speech-disagreement",
        "few-samples",
        "one-cluster",
        "repetition",
        "not-calibrated",
    ):
        assert code in found


def test_an_assistant_that_computes_on_this_machine_is_told_once(tmp_path: Path) -> None:
    for builtin, told in (("cascade", 1), ("cascade?a=1", 1), ("metronome", 0), ("echo", 0)):
        config = {"endpoint": [{"name": "bot", "builtin": builtin}], "suite": [{"kind": "demo"}]}
        rows = [
            trial("q1", condition=condition, first_audible_ms=900.0)
            for condition in ("clean", "noisy")
        ]
        with build(tmp_path / builtin, [item("q1")], rows, run={"config": config}) as folder:
            assert codes(summarise(folder)).count("same-machine") == told


def test_trials_of_unlike_latency_are_not_called_one_kind(tmp_path: Path) -> None:
    rows = [trial("q0"), trial("q1", latency_kind="commit")]
    with build(tmp_path, [item("q0"), item("q1")], rows) as folder:
        summary = summarise(folder)
    assert only_cell(summary)["latency_kind"] == "mixed"
    assert "mixed-latency-kinds" in codes(summary)


def test_a_trial_that_never_came_to_its_question_is_of_no_other_kind(tmp_path: Path) -> None:
    lost = trial("q1", "disconnected", latency_kind=None)
    bad = trial("q2", "bad_clip", latency={})
    del bad["latency_kind"]
    names = [item("q0"), item("q1"), item("q2")]
    with build(tmp_path, names, [trial("q0"), lost, bad]) as folder:
        summary = summarise(folder)
    assert only_cell(summary)["latency_kind"] == "server-vad"
    assert "mixed-latency-kinds" not in codes(summary)


def test_every_latency_metric_of_the_contract_is_there(tmp_path: Path) -> None:
    with build(tmp_path, [item("q0")], [trial("q0", stalls=0, first_audible_ms=-80.0)]) as folder:
        metrics = only_cell(summarise(folder))["metrics"]
    assert metrics["first_audible_ms"]["mean"]["value"] == -80.0
    assert metrics["stalls"]["mean"] == {"value": 0.0, "low": None, "high": None}
    for name in ("first_packet_ms", "endpointing_ms", "yield_ms", "delivery_rate", "reply_end_ms"):
        assert metrics[name]["n"] == 0
        assert metrics[name]["mean"]["value"] is None
        assert metrics[name]["p50"] is None

"""What users of other programs reported: every case has a test here, or a reason why not yet."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IDS = [
    json.loads(line)["id"]
    for line in (HERE / "cases" / "reports.jsonl").read_text().split("\n")
    if line
]

COVERED: dict[str, tuple[str, ...]] = {
    "AX-01": (
        "test_answers::test_a_reply_that_fits_no_template_gets_the_same_outcome_every_time",
        "test_metrics::test_the_same_vague_reply_always_has_the_same_outcome",
    ),
    "AX-02": ("test_metrics::test_an_answer_row_names_the_rule_the_span_and_the_extractor",),
    "AX-04": (
        "test_answers::test_a_reported_fault_stays_mended",
        "test_answers::test_the_pronoun_i_is_a_label_only_where_it_is_announced",
    ),
    "AX-05": ("test_answers::test_a_reported_fault_stays_mended",),
    "AX-06": ("test_answers::test_a_reported_fault_stays_mended",),
    "AX-07": ("test_answers::test_a_reported_fault_stays_mended",),
    "AX-08": ("test_answers::test_a_reported_fault_stays_mended",),
    "AX-10": (
        "test_answers::test_a_reported_fault_stays_mended",
        "test_answers::test_any_options_give_one_of_their_labels_or_none",
    ),
    "AX-12": ("test_answers::test_a_reported_fault_stays_mended",),
    "AX-13": (
        "test_answers::test_a_reported_fault_stays_mended",
        "test_metrics::test_right_answers_in_sentences_are_lenient_and_not_strict",
    ),
    "AX-14": (
        "test_answers::test_a_reported_fault_stays_mended",
        "test_metrics::test_every_metric_is_defined_and_carries_a_version",
    ),
    "AX-17": ("test_answers::test_a_reported_fault_stays_mended",),
    "AS-01": ("test_asr::test_silence_is_gated_before_whisper_can_invent_words",),
    "AS-04": (
        "test_asr::test_as_04_a_looping_transcript_is_flagged_and_its_text_kept",
        "test_text::test_a_loop_of_twenty_kilobytes_is_flagged_and_does_not_crash",
    ),
    "AS-11": ("test_asr::test_as_11_the_language_is_the_one_asked_for_even_for_one_word",),
    "AS-16": ("test_transcribe::test_as_16_concurrent_replies_come_back_each_with_its_own_text",),
    "AS-17": ("test_asr::test_as_17_auto_detects_on_the_voiced_part_not_on_leading_silence",),
    "PR-01": (
        "test_websocket::test_a_message_of_two_mebibytes_is_no_trouble",
        "test_websocket::test_a_message_beyond_the_limit_names_the_setting",
        "test_misbehaving_servers::two_mebibytes",
        "test_misbehaving_servers::over_the_limit",
    ),
    "PR-02": (
        "test_websocket::test_the_close_code_and_reason_are_kept",
        "test_misbehaving_servers::closed_in_the_middle",
        "test_misbehaving_servers::dropped_in_the_middle",
    ),
    "PR-03": (
        "test_lag::test_a_loop_that_our_own_work_blocks_is_seen",
        "test_misbehaving_servers::test_a_loop_that_is_blocked_is_told_as_our_own_fault",
        "test_misbehaving_servers::"
        "test_a_server_that_answers_no_pings_has_no_round_trip_and_is_not_cut_off",
    ),
    "PR-04": ("test_websocket::test_a_proxy_in_the_environment_is_not_used_for_loopback",),
    "PR-06": (
        "test_misbehaving_servers::older_names",
        "test_misbehaving_servers::nothing_in_it",
        "test_misbehaving_servers::old_header",
        "test_openai_realtime::test_a_recorded_session_leads_to_what_is_written_beside_it",
    ),
    "PR-07": (
        "test_openai_realtime::test_a_failed_reply_is_a_fault_and_never_an_empty_reply",
        "test_misbehaving_servers::failed",
        "test_summary::test_failures_count_as_wrong_even_before_anything_was_scored",
    ),
    "PR-10": (
        "test_session::test_a_clip_too_short_to_commit_gets_silence_in_front",
        "test_speaking::test_a_server_that_closes_turns_itself_is_sent_no_commit",
    ),
    "PR-14": ("test_misbehaving_servers::bytes_instead_of_text",),
    "PR-15": (
        "test_finish::test_the_rate_is_that_of_the_stream",
        "test_finish::test_a_rate_that_changes_in_mid_reply_keeps_the_duration",
        "test_misbehaving_servers::wrong_rate",
    ),
    "PR-16": (
        "test_summary::test_audio_at_a_steadily_wrong_speed_is_suspected",
        "test_summary::test_speech_at_an_impossible_speed_is_suspected",
    ),
    "PR-17": (
        "test_openai_realtime::test_a_data_url_and_bare_base64_hold_the_same_audio",
        "test_misbehaving_servers::a_data_url",
        "test_misbehaving_servers::bad_padding",
    ),
    "PR-18": (
        "test_encodings::test_odd_chunks_carry_their_spare_byte_over",
        "test_finish::test_odd_chunks_lose_and_shift_no_sample",
        "test_finish::test_half_a_sample_at_the_end_is_left_out_and_said",
        "test_misbehaving_servers::odd_chunks",
    ),
    "PR-21": (
        "test_session::test_silence_follows_the_question_until_the_reply_has_ended",
        "test_misbehaving_servers::"
        "test_silence_goes_on_until_a_server_that_waits_for_it_has_closed_the_turn",
    ),
    "PR-23": (
        "test_ear::test_audio_behind_the_end_of_its_reply_moves_the_end",
        "test_misbehaving_servers::"
        "test_a_reply_keeps_its_tail_when_it_came_in_one_burst_before_the_close",
    ),
    "PR-24": (
        "test_websocket::test_a_refused_upgrade_shows_status_and_body",
        "test_misbehaving_servers::test_a_refused_upgrade_is_refused_with_its_status_and_body",
        "test_check::test_an_endpoint_that_does_not_answer_is_3_and_never_2",
    ),
    "PR-25": (
        "test_quiet::test_the_last_audible_sample_is_known_to_the_frame",
        "test_marks::test_the_answer_is_found_in_a_stream_that_never_stops",
        "test_duplex::test_an_answer_is_over_after_a_second_and_a_half_of_quiet_behind_it",
    ),
    "PR-27": ("test_audio::test_a_gap_in_mid_word_loses_no_sample",),
    "PR-28": ("test_audio::_each_piece_of_a_stream_may_be_a_whole_file",),
    "PC-02": (
        "test_speaking::test_a_loop_that_always_wakes_late_never_falls_behind",
        "test_speaking::test_how_late_frames_left_is_in_the_row",
        "test_pacing::test_deadlines_never_drift_from_the_sample_clock",
    ),
    "PC-03": (
        "test_speaking::test_after_a_stall_what_is_overdue_leaves_at_once_and_no_more",
        "test_speaking::test_a_stall_near_the_end_of_speech_spoils_the_latency_and_not_the_answer",
    ),
    "PC-04": ("test_speaking::test_lateness_is_measured_when_a_frame_leaves_also_without_a_wait",),
    "LM-01": (
        "test_marks::test_first_packet_and_first_audible_differ_by_the_silence_in_front",
        "test_metronome::test_a_silent_lead_delays_the_first_audible_sample_by_exactly_its_length",
    ),
    "LM-04": (
        "test_marks::test_three_turns_on_one_socket_are_timed_each_by_its_own_end_of_speech",
    ),
    "LM-05": (
        "test_marks::test_what_did_not_happen_is_null_and_never_the_length_of_a_time_out",
        "test_misbehaving_servers::never_a_reply",
    ),
    "LM-07": (
        "test_marks::test_an_epoch_time_leads_to_no_number",
        "test_marks::test_events_in_any_order_never_crash_and_never_give_nonsense",
    ),
    "LM-09": (
        "test_marks::test_endpointing_is_the_servers_delay_after_our_own_end_of_speech",
        "test_marks::test_t0_is_the_moment_the_last_voiced_sample_left",
    ),
    "LM-11": ("test_config_refused::test_what_a_bench_may_not_say_is_one_line",),
    "LM-13": (
        "test_summary::test_warm_up_turns_are_in_no_figure_but_cold",
        "test_streaming::test_warm_up_turns_come_first_and_alone",
    ),
    "LM-14": (
        "test_stats::test_a_high_percentile_is_withheld_until_there_are_enough_samples",
        "test_summary::test_high_percentiles_wait_for_their_samples",
    ),
    "LM-15": ("test_session::test_every_frame_is_due_at_the_end_of_its_last_sample",),
    "LM-16": ("test_summary::test_missing_replies_are_missing_and_not_zero",),
    "LM-17": (
        "test_report::test_the_report_prints_definitions_manifest_and_intervals_beside_the_numbers",
    ),
    "VD-03": ("test_speech::test_no_value_of_a_minute_of_sound_is_above_a_minute",),
    "VD-04": ("test_speech::test_hiss_is_not_speech_however_it_is_cut_into_chunks",),
    "VD-05": (
        "test_speech::test_bounds_are_those_of_the_rule",
        "test_gate::test_a_click_is_not_speech",
    ),
    **{
        f"AF-{number}": ("test_audio::test_reported_faults_of_other_programs_are_not_ours",)
        for number in ("01", "03", "05", "06", "08", "09", "11")
    },
    **{
        f"JD-{number}": ("test_judgement::test_a_reported_fault_stays_mended",)
        for number in ("02", "04", "05", "06", "08", "09", "10", "15")
    },
    "ST-01": ("test_summary::test_errors_stay_in_the_denominator_and_both_figures_are_shown",),
    "ST-02": (
        "test_summary::test_repeats_narrow_nothing_that_they_do_not_add",
        "test_stats::test_trials_are_averaged_within_their_item_first",
    ),
    "ST-05": (
        "test_runfolder::test_the_newest_attempt_counts_and_only_transport_failures_come_again",
        "test_summary::test_the_last_attempt_counts_and_gives_no_second_chance",
        "test_streaming::test_what_is_finished_is_not_asked_again_and_the_rest_is_the_next_attempt",
    ),
    "ST-07": (
        "test_jsonlines::test_a_row_torn_in_mid_key_is_cut_and_the_next_row_has_its_own_line",
        "test_run::test_a_run_killed_at_any_moment_goes_on_with_nothing_lost_and_nothing_twice",
    ),
    "ST-08": (
        "test_jsonlines::test_a_damaged_line_in_the_middle_names_file_and_line",
        "test_runfolder::test_a_file_is_replaced_whole_or_not_at_all",
    ),
    "ST-10": (
        "test_streaming::test_every_item_has_a_session_and_a_tag_of_its_own",
        "test_target::test_every_session_has_a_codec_and_a_transport_of_its_own",
        "test_cascade::test_the_answer_does_not_depend_on_what_was_asked_before",
    ),
    "ST-14": (
        "test_summary::test_nothing_scored_is_null_and_never_nan",
        "test_report::test_with_nothing_scored_the_reports_say_so_and_never_nan",
        "test_run::test_a_dead_endpoint_is_3_and_its_trials_are_disconnected",
    ),
    "JD-11": (
        "test_judging::test_a_judge_that_always_prefers_the_first_comes_out_even",
        "test_judge_stage::test_every_reply_is_rated_in_both_orders_and_both_replies_are_kept",
    ),
    "JD-12": (
        "test_judge_stage::test_what_a_content_filter_blocks_is_listed_and_the_rest_is_judged",
    ),
    "JD-13": (
        "test_judge_call::test_everything_that_decides_a_reply_is_in_its_hash",
        "test_judge_stage::test_another_model_setting_or_reply_is_asked_anew",
        "test_judge_stage::test_judges_that_say_the_same_agree_and_the_pairs_are_counted",
    ),
    "JD-14": (
        "test_judge_stage::test_one_judge_of_three_that_is_down_is_told_and_the_others_stand",
    ),
    "SE-02": (
        "test_judge_messages::test_no_reply_changes_the_structure_of_a_prompt",
        "test_judge_stage::test_a_planted_score_fence_or_order_earns_nothing",
    ),
    "CF-01": ("test_config_refused::test_what_a_bench_may_not_say_is_one_line",),
}
"""Report -> what covers it: `module::function`."""

LIVE = "live mode with sound devices is not there yet"
LATER: dict[str, str] = {
    "PR-22": LIVE,
    **dict.fromkeys(("DV-01", "DV-03", "DV-05"), LIVE),
    **dict.fromkeys(("MQ-04", "MQ-05"), "publishing by MQTT is not there yet"),
    "ST-09": "runs are not compared with each other yet",
}
"""Report -> why nothing here can have it yet."""


def test_every_report_is_covered_or_waits_for_its_part_with_a_reason() -> None:
    assert len(set(IDS)) == len(IDS) == len(COVERED) + len(LATER)
    assert set(IDS) == COVERED.keys() | LATER.keys()


@pytest.mark.parametrize("report", COVERED)
def test_what_covers_a_report_is_there(report: str) -> None:
    for name in COVERED[report]:
        module, _, function = name.partition("::")
        text = (HERE / f"{module}.py").read_text(encoding="utf-8")
        assert re.search(rf"^(?:async )?def {function}\b", text, re.MULTILINE), name


@pytest.mark.parametrize(
    "report", [report for report in COVERED if "reported" in str(COVERED[report])]
)
def test_a_report_of_a_table_stands_in_that_table(report: str) -> None:
    tables = [name.partition("::")[0] for name in COVERED[report] if "_reported_" in name]
    for module in tables:
        assert f'"{report}"' in (HERE / f"{module}.py").read_text(encoding="utf-8")

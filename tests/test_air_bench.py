"""AIR-Bench as a download has it: choices and open questions, their order, and what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from air_world import (
    GROUNDING,
    MIXED_CHAT,
    Download,
    chat,
    foundation,
    gender,
)
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client import clips
from voxmeter.client.speakers import Speaker
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.scoring.aggregate import tree
from voxmeter.scoring.metrics import Reply, chance, question, reply_metrics
from voxmeter.scoring.types import Scored, Unscored
from voxmeter.suites import air_bench, catalog
from voxmeter.suites.air_bench_layout import read_list, right
from voxmeter.suites.air_bench_tasks import CHAT, FOUNDATION, FOUNDATION_GROUPS
from voxmeter.suites.suite import Gap, Recording, Spoken, Suite


def load(root: Path, **config: Any) -> Suite:
    return catalog.load(
        "air-bench", "air", {"kind": "air-bench", "path": str(root)} | config, Path()
    )


def refused(root: Path, **config: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(root, **config)
    return str(caught.value)


def no_voice(name: str) -> Speaker:
    pytest.fail(f"nothing is spoken here, not even by {name}")


def told(suite: Suite, words: str) -> str:
    (found,) = [one for one in suite.warnings if words in one]
    return found


def test_an_entry_of_the_foundation_list_is_a_choice_about_its_recording(tmp_path: Path) -> None:
    root = Download(tmp_path, [foundation(7)]).write()
    (item,) = load(root, shuffle=False).items
    assert (item.item, item.kind) == ("Music_Midi_Pitch_Analysis_nsynth-7", "choice")
    assert item.recipe == (
        Recording(root / "Foundation/Music_Midi_Pitch_Analysis_nsynth/00007.wav"),
    )
    assert (item.options, item.reference) == (("low", "middle", "high", "very high"), ("C",))
    assert item.groups == ("foundation", "music", "Music note analysis-pitch")
    assert (item.question_via, item.rubric) == ("text", "air-align")
    assert item.question == "What is the pitch of note 7?"
    assert item.text.splitlines()[1:] == [
        "What is the pitch of note 7?",
        "A. low",
        "B. middle",
        "C. high",
        "D. very high",
    ]


def test_a_question_of_two_options_shows_two_and_guessing_earns_half(tmp_path: Path) -> None:
    shown = {"choice_c": "None", "choice_d": "None"}  # as the published script shows it
    absent = {"choice_c": None, "choice_d": ""}
    entries = [gender(1), gender(2, **shown), gender(3, **absent)]
    suite = load(Download(tmp_path, entries).write())
    for item in suite.items:
        assert sorted(item.options) == ["female", "male"]
        assert item.options["AB".index(item.reference[0])] == "female"
        assert "C." not in item.text
        assert "A or B" in item.text
        assert chance(question(item.row())) == 0.5


def test_the_order_of_options_is_drawn_by_the_seed_and_stands_in_the_items(tmp_path: Path) -> None:
    root = Download(tmp_path, [foundation(number) for number in range(60)]).write()

    def orders(**config: Any) -> list[tuple[str, ...]]:
        suite = load(root, **config)
        for item in suite.items:
            assert item.options["ABCD".index(item.reference[0])] == "high"
        return [item.options for item in suite.items]

    assert orders() == orders(seed=0)
    assert orders() != orders(seed=1)
    assert len(set(orders(shuffle=False))) == 1
    places = Counter(options.index("high") for options in orders())
    assert len(places) == 4, "the right answer stands in every place"
    row = load(root).items[0].row()
    assert row["options"] == list(orders()[0]), "the order asked is on record"


def test_an_open_question_is_judged_by_what_its_recording_is_said_to_hold(tmp_path: Path) -> None:
    suite = load(Download(tmp_path, chat=[chat(1), chat(2, MIXED_CHAT)]).write())
    speech, mixed = suite.items
    assert (speech.kind, speech.rubric, suite.scorer) == ("open", "air-chat", "judge")
    assert speech.told == "Two people talk about a restaurant. The second sounds pleased."
    assert speech.reference == ("They book a table for two.",)
    assert speech.text == speech.question == "What do they plan in dialogue 1?"
    assert speech.groups == ("chat", "speech")
    assert mixed.groups == ("chat", "mixed", "speech and music")


@pytest.mark.parametrize("via", ["speech-after", "speech-before"])
def test_a_question_may_be_spoken_before_or_after_the_recording(tmp_path: Path, via: str) -> None:
    root = Download(tmp_path, [foundation(1)], [chat(1)]).write()
    suite = load(root, question_via=via, voice="piper", gap_ms=300, shuffle=False)
    choice, asked = suite.items
    spoken = Spoken(
        "What is the pitch of note 1? Choose A, B, C or D. "
        "A. low. B. middle. C. high. D. very high.",
        "piper",
    )
    parts = [Recording(choice.files()[0]), Gap(300), spoken]
    assert list(choice.recipe) == (parts if via == "speech-after" else parts[::-1])
    assert Spoken(asked.question, "piper") in asked.recipe
    assert choice.text == "", "nothing is written as well"


def test_flac_files_are_found_under_the_lists_wav_names(tmp_path: Path) -> None:
    entry = foundation(1, GROUNDING, "Yb0RFKhbpFJA_30000_40000.wav", answer_gt="low")
    root = Download(tmp_path, [entry]).write()
    suite = load(root)
    (item,) = suite.items
    assert item.files()[0].name == "Yb0RFKhbpFJA_30000_40000.flac"
    assert clips.render(item, no_voice).ms == pytest.approx(160)
    assert not any("missing" in one for one in suite.warnings)


def test_recordings_that_cannot_be_played_are_told_of_and_end_as_bad_clips(tmp_path: Path) -> None:
    folder = "Music_Midi_Pitch_Analysis_nsynth"
    download = Download(
        tmp_path,
        [foundation(number) for number in range(4)],
        absent=[f"{folder}/00001.wav"],
        empty=[f"{folder}/00002.wav"],
    )
    suite = load(download.write())
    assert len(suite.items) == 4
    assert told(suite, "missing or empty") == (
        f"2 recordings are missing or empty, such as {folder}/00001.wav (missing); "
        "those questions end as bad_clip"
    )
    for item in suite.items[1:3]:
        with pytest.raises(ClipError):
            clips.render(item, no_voice)
    lines = list(air_bench.verify(tmp_path))
    assert lines[-2:] == [f"{folder}/00001.wav is missing", f"{folder}/00002.wav is empty"]


def test_a_source_that_was_not_downloaded_is_left_out_as_a_whole(tmp_path: Path) -> None:
    absent = ["Speaker_Gender_Recognition_meld/00002.wav"]
    root = Download(tmp_path, [foundation(1), gender(2)], absent=absent).write()
    suite = load(root)
    assert [item.groups[1] for item in suite.items] == ["music"]
    assert "a question is left out" in told(suite, "there is no folder")


def test_tasks_that_are_none_and_entries_that_cannot_be_asked_are_left_out(tmp_path: Path) -> None:
    entries = [
        foundation(0),
        foundation(1, ("Music_Genre_Recogntion", "fma")),
        foundation(2, answer_gt="a trumpet"),
        foundation(3, question=""),
        foundation(4, path="../../etc/passwd"),
        foundation(5, choice_b=None, choice_c=None, choice_d=None, answer_gt="low"),
        ["no", "object"],
        foundation(7, answer_gt=None),
    ]
    suite = load(Download(tmp_path, entries).write())
    assert [item.item for item in suite.items] == ["Music_Midi_Pitch_Analysis_nsynth-0"]
    assert told(suite, "no task") == (
        "Music_Genre_Recogntion is no task of the foundation part "
        "(did you mean 'Music_Genre_Recognition'?): a question is left out"
    )
    assert told(suite, "cannot be asked").startswith(
        "6 questions are left out that cannot be asked: "
        "Foundation_meta.json entry 2: answer 'a trumpet' is none of its options"
    )
    problems = [line for line in air_bench.verify(tmp_path) if " entry " in line]
    assert [line.split(": ")[1] for line in problems] == [
        "answer 'a trumpet' is none of its options",
        "no question",
        "path '../../etc/passwd' leaves the folder of its task",
        "1 options",
        "no JSON object",
        "no answer_gt",
    ]


def test_counts_below_the_papers_are_told_of(tmp_path: Path) -> None:
    entries = [foundation(number) for number in range(900)]
    path = tmp_path / "Foundation" / "Foundation_meta.json"
    path.parent.mkdir()
    path.write_text(json.dumps(entries))
    (path.parent / "Music_Midi_Pitch_Analysis_nsynth").mkdir()
    few = told(load(tmp_path), "fewer questions than the paper reports")
    assert few.endswith("Speaker gender recognition 0 of 1000, and 15 more")
    lines = [line for line in air_bench.verify(tmp_path) if "fewer questions" in line]
    assert len(lines) == 18, "rounded counts are not held against a list"
    assert lines[-1].endswith("than the paper reports: Music emotion detection 0 of 1000")


def test_two_entries_of_one_number_and_texts_that_are_the_same_stay_apart(tmp_path: Path) -> None:
    entries = [
        foundation(1),
        foundation(1, path="00002.wav"),
        foundation(3, choice_a="High", choice_b="High", answer_gt="High", choice_c="high"),
        foundation(4, answer_gt="HIGH"),
    ]
    suite = load(Download(tmp_path, entries).write(), shuffle=False)
    assert [item.item.rpartition("-")[2] for item in suite.items] == ["1", "1#2", "3", "4"]
    assert suite.items[2].reference == ("A", "B"), "either of two that are the same"
    assert suite.items[3].reference == ("C",)
    assert "suffix" in told(suite, "of a number that another one has")


def test_fifty_phrasings_of_one_question_are_one_task(tmp_path: Path) -> None:
    entries = [
        foundation(number, question=f"Phrasing {number}: what pitch?") for number in range(50)
    ]
    suite = load(Download(tmp_path, entries).write())
    assert len({item.question for item in suite.items}) == 50
    assert len({item.groups for item in suite.items}) == 1


def test_questions_about_one_recording_move_together(tmp_path: Path) -> None:
    entries = [foundation(1, path="same.wav"), foundation(2, path="same.wav"), foundation(3)]
    one, two, other = load(Download(tmp_path, entries).write()).items
    assert one.cluster == two.cluster != other.cluster


def test_parts_and_groups_can_be_asked_alone(tmp_path: Path) -> None:
    root = Download(tmp_path, [foundation(1), gender(2)], [chat(3)]).write()
    assert len(load(root).items) == 3
    assert [item.groups[0] for item in load(root, part="chat").items] == ["chat"]
    assert [item.groups[1] for item in load(root, groups=["music"]).items] == ["music"]
    assert len(load(root / "Chat").items) == 1, "the folder of one part is a download too"
    assert 'part = "foundation" is not in' in refused(root / "Chat", part="foundation")
    assert "did you mean 'music'?" in refused(root, groups=["musik"])
    assert "no items" in refused(root, groups=["mixed"])
    assert "neither Foundation/Foundation_meta.json" in refused(tmp_path / "Foundation" / "x")
    assert "unknown key 'speaker'" in refused(root, speaker="piper")


@pytest.mark.parametrize("text", ["{}", "[", "[" * 100_000, "\xff"])
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Foundation" / "Foundation_meta.json"
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))
    assert "download it again" in refused(tmp_path)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(sorted(foundation(1))),
            st.none() | st.integers() | st.text(max_size=8) | st.lists(st.integers(), max_size=2),
        )
        | st.integers()
        | st.text(max_size=3),
        max_size=4,
    )
)
def test_any_entries_are_rows_or_problems(entries: list[Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.json"
        path.write_text(json.dumps(entries))
        for part in ("foundation", "chat"):
            listing = read_list(path, part)
            assert len(listing.rows) + len(listing.problems) == len(entries)


def test_an_answer_in_other_capitals_is_the_option_all_the_same() -> None:
    assert right(("Happy", "sad"), "happy") == (0,)
    assert right(("Happy", "happy"), "happy") == (1,), "the very same letters come first"


def test_letters_are_read_by_rules_and_a_reply_that_names_none_is_not_guessed(
    tmp_path: Path,
) -> None:
    (item,) = load(Download(tmp_path, [foundation(1)]).write(), shuffle=False).items
    asked = question(item.row())

    def outcome(text: str) -> Scored | Unscored:
        return reply_metrics(asked, Reply("ok", transcript=text))["accuracy"]

    assert outcome("The answer is C.") == Scored(1.0, outcome("The answer is C.").detail)
    assert isinstance(outcome("It sounds very high."), Scored)
    assert outcome("A wonderful tune, I like it."), "no letter A, as the published rule would read"
    for words in ("A wonderful tune, I like it.", "Because of the flute, who can say."):
        unread = outcome(words)
        assert isinstance(unread, Unscored)
        assert unread.detail.get("counted") is not False, "counts as wrong, not as left out"


def test_every_task_stands_in_its_group_and_groups_are_averaged_alike() -> None:
    groups = Counter(task.group for task in FOUNDATION.values())
    assert [groups[group] for group in FOUNDATION_GROUPS] == [9, 4, 6]
    paths = [task.groups for task in (*FOUNDATION.values(), *CHAT.values())]
    root = tree(paths, ("macro", "macro", "macro"))
    rules = {node.path: node.rule for node in root.nodes()}
    assert rules["foundation",] == rules["foundation", "speech"] == "macro"
    assert rules["chat",] == rules["chat", "mixed"] == "macro"
    assert rules["chat", "speech"] == "micro", "a leaf is the mean of its items"

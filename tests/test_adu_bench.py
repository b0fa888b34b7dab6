"""ADU-Bench's own layout: what is asked, how it is grouped and rated, and what is odd about it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import adu_world
import pytest
from adu_world import FILES, line
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client import audio
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.rubrics import rubric
from voxmeter.suites import adu_bench, catalog
from voxmeter.suites.adu_domains import COUNTS, DATASETS, domain_of
from voxmeter.suites.suite import Item, Recording, Suite


def loaded(root: Path, **options: object) -> Suite:
    return catalog.load("adu-bench", "adu", {"path": str(root), **options}, Path())


def by_id(suite: Suite) -> dict[str, Item]:
    return {item.item: item for item in suite.items}


def told(suite: Suite, *words: str) -> list[str]:
    return [text for text in suite.warnings if all(word in text for word in words)]


def test_ids_are_made_of_file_and_line(tmp_path: Path) -> None:
    names = [item.item for item in loaded(adu_world.write(tmp_path)).items]
    assert names[:2] == ["ADU-General/daily_question:1", "ADU-General/daily_statement:1"]
    assert "ADU-Skill/physics:3" in names
    assert len(names) == sum(map(len, FILES.values()))


def test_a_blank_line_or_a_line_taken_out_moves_no_other_id(tmp_path: Path) -> None:
    lines = list(FILES["ADU-Skill/physics"])
    root = adu_world.write(tmp_path, {"ADU-Skill/physics": [lines[0], "", lines[2]]})
    assert [item.item for item in loaded(root).items] == [
        "ADU-Skill/physics:1",
        "ADU-Skill/physics:3",
    ]


def test_groups_are_the_dataset_and_the_papers_name_of_the_domain(tmp_path: Path) -> None:
    items = by_id(loaded(adu_world.write(tmp_path)))
    assert items["ADU-Ambiguity/homophones:1"].groups == ("ADU-Ambiguity", "homophone")
    assert items["ADU-Skill/code:1"].groups == ("ADU-Skill", "code")


@pytest.mark.parametrize(
    ("dataset", "name", "domain"),
    [
        ("ADU-Skill", "Common Sense", "common_sense"),
        ("ADU-Skill", "math", "mathematics"),
        ("ADU-Ambiguity", "Pause-based", "pause"),
        ("ADU-Ambiguity", "homophones", "homophone"),
        ("ADU-General", "daily questions", "daily_question"),
        ("ADU-General", "daily_question_statement", None),
        ("ADU-Multilingual", "physics", None),
    ],
)
def test_domains_are_known_by_several_names(dataset: str, name: str, domain: str | None) -> None:
    assert domain_of(dataset, name) == domain


def test_there_are_28_domains_in_four_datasets() -> None:
    assert len(COUNTS) == 28
    sizes = Counter(dataset for dataset, _ in COUNTS)
    assert [sizes[dataset] for dataset in DATASETS] == [3, 12, 9, 4]
    assert all(domain_of(dataset, name) == name for dataset, name in COUNTS)


def test_a_file_of_two_domains_is_parted_by_its_categories(tmp_path: Path) -> None:
    lines = [
        line("1.wav", "How are you?", category="Daily Question"),
        line("2.wav", "It rains.", category="daily statement"),
        line("3.wav", "Well.", category="smalltalk"),
    ]
    suite = loaded(adu_world.write(tmp_path, {"ADU-General/daily_question_statement": lines}))
    assert [item.groups[1] for item in suite.items] == [
        "daily_question",
        "daily_statement",
        "daily_question_statement",
    ]
    assert told(suite, "daily_question_statement", "none of the paper's 28 domains")


def test_languages_are_set_so_that_replies_are_heard_in_them(tmp_path: Path) -> None:
    items = by_id(loaded(adu_world.write(tmp_path)))
    assert items["ADU-Multilingual/japanese:1"].language == "ja"
    assert items["ADU-Multilingual/chinese:1"].language == "zh"
    assert items["ADU-Skill/physics:1"].language == "en"


def test_all_are_open_and_only_pause_and_intonation_are_rated_all_or_nothing(
    tmp_path: Path,
) -> None:
    files = dict(FILES) | {"ADU-Ambiguity/intonation": [line("1.wav", "Really?!")]}
    suite = loaded(adu_world.write(tmp_path, files))
    assert {item.kind for item in suite.items} == {"open"}
    binary = {item.item for item in suite.items if item.rubric == "adu-binary"}
    assert binary == {"ADU-Ambiguity/pause:1", "ADU-Ambiguity/intonation:1"}
    assert {item.rubric for item in suite.items} == {"adu", "adu-binary"}
    assert suite.scorer == "judge"


def test_the_prompts_of_both_rubrics_are_there_and_on_the_same_scale() -> None:
    for name in ("adu", "adu-binary"):
        assert (rubric(name).low, rubric(name).high) == (0, 10)
    assert rubric("adu-binary").values == (0, 10)


def test_skill_counts_items_and_the_others_count_domains(tmp_path: Path) -> None:
    whole, datasets = loaded(adu_world.write(tmp_path)).aggregation
    assert whole == "macro"
    assert isinstance(datasets, dict)
    assert {name for name, rule in datasets.items() if rule == "micro"} == {"ADU-Skill"}


def test_one_text_is_one_cluster_in_all_its_voices(tmp_path: Path) -> None:
    items = by_id(loaded(adu_world.write(tmp_path)))
    one, other = (items[f"ADU-General/helpful_question:{number}"] for number in (1, 2))
    assert one.cluster == other.cluster
    assert len({item.cluster for item in items.values()}) == len(items) - 1


def test_who_speaks_is_told_by_the_names_of_files_and_by_sources(tmp_path: Path) -> None:
    lines = [
        line("common_voice_en_7.mp3", "a"),
        line("0038_en_BrianMultilingualNeural_pitch_-10.wav", "b"),
        line("1.wav", "c", source="SLUE"),
        line("2.wav", "d", source="Azure TTS"),
        line("3.wav", "e", source="studio B"),
        line("4.wav", "f", source="robot"),
    ]
    root = adu_world.write(tmp_path, {"ADU-Skill/physics": lines})
    origins = [item.origin for item in loaded(root).items]
    assert origins == ["real", "synthetic", "real", "synthetic", "", ""]
    assert told(loaded(root), "who speaks is not known of 2")
    named = loaded(root, real_sources=["Studio B"], synthetic_sources=["robot"])
    assert [item.origin for item in named.items][4:] == ["real", "synthetic"]
    assert not told(named, "who speaks")


def test_recordings_are_found_from_any_folder_that_a_line_may_mean(tmp_path: Path) -> None:
    lines = [
        line("input/ADU-Skill/physics/1.wav", "a"),
        line("ADU-Skill/physics/2.wav", "b"),
        line("/data/someone/ADU-Skill/physics/3.wav", "c"),
        line("physics/4.wav", "d"),
        line("5.wav", "e"),
        line("ADU-Skill\\physics\\6.wav", "f"),
    ]
    root = adu_world.write(tmp_path, {"ADU-Skill/physics": lines}, audio=False)
    folder = root / "input" / "ADU-Skill" / "physics"
    folder.mkdir()
    for number in range(1, 7):
        (folder / f"{number}.wav").write_bytes(adu_world.sound("WAV"))
    found = [item.files()[0] for item in loaded(root).items]
    assert found == [folder / f"{number}.wav" for number in range(1, 7)]
    assert not told(loaded(root), "missing")


def test_recordings_may_lie_beside_input_as_in_the_published_tree(tmp_path: Path) -> None:
    root = adu_world.write(tmp_path / "ADU-Bench")
    for dataset in sorted((root / "input").iterdir()):
        (root / dataset.name).mkdir()
        for folder in [one for one in dataset.iterdir() if one.is_dir()]:
            folder.rename(root / dataset.name / folder.name)
    suite = loaded(root)
    assert suite.items
    assert all(path.is_file() for item in suite.items for path in item.files())


@pytest.mark.parametrize("inside", [True, False])
def test_the_folder_of_the_download_or_its_input_may_be_given(tmp_path: Path, inside: bool) -> None:
    root = adu_world.write(tmp_path)
    items = loaded(root / "input" if inside else root).items
    assert items[0].files()[0].is_file()


def test_forms_are_told_by_the_bytes_and_not_by_the_ending(tmp_path: Path) -> None:
    files = [item.files()[0] for item in loaded(adu_world.write(tmp_path)).items]
    heads = {path.read_bytes()[:4] == b"RIFF" for path in files if path.suffix == ".wav"}
    assert heads == {True, False}  # both a WAV and an MP3 file carry the ending of a WAV file
    for path in files:
        assert audio.read(path).rate == adu_world.RATE


def test_nothing_is_opened_but_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = adu_world.write(tmp_path)
    opened = []
    genuine = Path.open

    def spy(self: Path, *args: object, **more: object) -> object:
        opened.append(self.suffix)
        return genuine(self, *args, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", spy)
    loaded(root)
    assert set(opened) == {".jsonl"}


def test_missing_and_empty_recordings_stay_and_are_told(tmp_path: Path) -> None:
    root = adu_world.write(tmp_path)
    folder = root / "input" / "ADU-Skill" / "physics"
    (folder / "1.wav").unlink()
    (folder / "2.wav").write_bytes(b"")
    suite = loaded(root)
    assert "ADU-Skill/physics:1" in by_id(suite)
    assert told(suite, "1 recordings are missing", str(folder / "1.wav"), "bad_clip")
    assert told(suite, "1 recordings are empty", str(folder / "2.wav"))


def test_questions_without_an_answer_stay_and_are_told(tmp_path: Path) -> None:
    lines = [line("1.wav", "a", None), line("2.wav", "b", ""), line("3.wav", "c", 7)]
    suite = loaded(adu_world.write(tmp_path, {"ADU-Skill/law": lines}))
    assert [item.reference for item in suite.items] == [(), (), ("7",)]
    assert told(suite, "2 questions have no answer", "ADU-Skill/law:1", "leave n")


def test_lines_that_are_there_twice_are_both_asked_and_move_together(tmp_path: Path) -> None:
    same = line("1.wav", "Why?")
    suite = loaded(adu_world.write(tmp_path, {"ADU-Skill/law": [same, same]}))
    assert len({item.cluster for item in suite.items}) == 1
    assert len(suite.items) == 2
    assert told(suite, "a line repeats", "ADU-Skill/law:2 is ADU-Skill/law:1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ('{"question": "a"}', "no audio"),
        ('{"question": "a", "audio": ""}', "no audio"),
        ('{"question": "a", "audio": null}', "no audio"),
        ('{"question": "a", "audio": "../../etc/passwd"}', "leads out of the download"),
        ('{"question": "a", "audio": "a\\u0000b"}', "audio is no path"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_line_that_cannot_be_asked_is_left_out_and_told(
    tmp_path: Path, text: str, problem: str
) -> None:
    root = adu_world.write(tmp_path, {"ADU-Skill/law": [line("1.wav", "a"), text]})
    suite = loaded(root)
    assert [item.item for item in suite.items] == ["ADU-Skill/law:1"]
    assert told(suite, "a line cannot be asked", "ADU-Skill/law.jsonl:2", problem)


@given(st.binary(max_size=200))
def test_any_bytes_give_entries_or_problems(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    root = tmp_path_factory.mktemp("any")
    path = root / "input" / "ADU-Skill" / "law.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(raw + b'\n{"question": "a", "audio": "1.wav"}\n')
    lines = sum(1 for one in (raw + b"\n").split(b"\n") if one.strip())
    suite = loaded(root)
    assert len(suite.items) >= 1
    left_out = [*adu_bench.verify(root)]
    assert sum("jsonl:" in text for text in left_out) + len(suite.items) == lines + 1


def test_counts_are_held_against_the_papers_table(tmp_path: Path) -> None:
    suite = loaded(adu_world.write(tmp_path))
    (line,) = told(suite, "the paper counts others")
    assert "ADU-Skill/physics 3 (210), ADU-Skill/chemistry 0 (180)" in line
    assert line.count("(") == 28 + 1


def test_a_whole_download_has_nothing_to_warn_of(tmp_path: Path) -> None:
    files: dict[str, list[adu_world.Line]] = {}
    for (dataset, domain), count in COUNTS.items():
        files[f"{dataset}/{domain}"] = [
            line(f"{domain}/common_voice_{number}.wav", f"{domain} {number}?")
            for number in range(count)
        ]
    root = adu_world.write(tmp_path, files, audio=False)
    for dataset, domain in COUNTS:
        folder = root / "input" / dataset / domain
        folder.mkdir(parents=True)
        for number in range(COUNTS[dataset, domain]):
            (folder / f"common_voice_{number}.wav").touch()
    warnings = loaded(root).warnings
    assert [text for text in warnings if "empty" not in text] == []
    assert len(warnings) == 1
    assert loaded(root).subset(1000, 0).items[0].rubric == "adu"
    shares = Counter(item.groups[0] for item in loaded(root).subset(1000, 0).items)
    for dataset, share in zip(DATASETS, (579.3, 179.8, 173.8, 67.1), strict=True):
        assert abs(shares[dataset] - share) < 3


def test_datasets_can_be_chosen(tmp_path: Path) -> None:
    root = adu_world.write(tmp_path)
    suite = loaded(root, datasets=["ADU-Skill", "ADU-Ambiguity"])
    assert {item.groups[0] for item in suite.items} == {"ADU-Skill", "ADU-Ambiguity"}
    assert told(suite, "ADU-General, ADU-Multilingual", "2 of 4")
    with pytest.raises(UserError, match="datasets: unknown 'Skill'; use ADU-General"):
        loaded(root, datasets=["Skill"])


def test_what_is_no_download_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give the folder of the download"):
        loaded(tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        loaded(tmp_path / "absent")
    with pytest.raises(UserError, match="unknown key 'dataset'"):
        loaded(adu_world.write(tmp_path), dataset="ADU-Skill")


def test_written_references_replace_those_of_the_download(tmp_path: Path) -> None:
    root = adu_world.write(tmp_path)
    own = tmp_path / "references.jsonl"
    rows = [
        {"item": "ADU-Skill/code:1", "reference": "first"},
        {"item": "ADU-Skill/code:1", "reference": "A loop repeats.", "model": "m"},
        {"item": "ADU-Skill/gone:1", "reference": "x"},
    ]
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite = loaded(root, references=str(own))
    assert by_id(suite)["ADU-Skill/code:1"].reference == ("A loop repeats.",)
    assert by_id(suite)["ADU-Skill/physics:1"].reference == ("It scatters blue light.",)
    assert told(suite, "1 references are of no question here", "ADU-Skill/gone:1")


def test_verify_names_domains_that_the_paper_does_not_have(tmp_path: Path) -> None:
    root = adu_world.write(tmp_path, {"ADU-Skill/wizardry": [line("1.wav", "a")]})
    found = list(adu_bench.verify(root))
    assert found[-1] == "ADU-Skill/wizardry (1 entries) is none of the paper's 28 domains"


def test_verify_names_every_single_problem(tmp_path: Path) -> None:
    lines = [
        line("1.wav", "a"),
        line("2.wav", "", None),
        line("1.wav", "a"),
        "{",
        line("3.wav", "c"),
    ]
    root = adu_world.write(tmp_path, {"ADU-Skill/law": lines})
    folder = root / "input" / "ADU-Skill"
    (folder / "2.wav").unlink()
    (folder / "3.wav").write_bytes(b"")
    found = list(adu_bench.verify(root))
    assert found[:5] == [
        "ADU-Skill/law.jsonl:4: no JSON",
        f"ADU-Skill/law:2: {root / 'input' / '2.wav'} is missing",
        "ADU-Skill/law:2: no answer",
        "ADU-Skill/law:2: no question",
        f"ADU-Skill/law:5: {folder / '3.wav'} is empty",
    ]
    assert found[5:] == [
        *(
            f"{dataset}/{domain} has {4 if domain == 'law' else 0} entries, and the paper counts "
            f"{count}"
            for (dataset, domain), count in COUNTS.items()
            if dataset == "ADU-Skill"
        ),
    ]


def test_the_recipe_is_the_recording_alone(tmp_path: Path) -> None:
    for item in loaded(adu_world.write(tmp_path)).items:
        assert [type(part) for part in item.recipe] == [Recording]
        assert item.question_via is None

"""Two clips in one: how loud each is and when it begins, measured in the mix, are as labelled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from voxmeter.client.audio import Pcm, read
from voxmeter.client.cli import main
from voxmeter.client.mix_build import Wanted, build
from voxmeter.client.mixing import longest_offset_ms, loudness_db, mixed
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites import jsonl

RATE = 16_000
LOW, HIGH = 600, 3000
"""Frequencies that a first and a second clip hold, so that each is found in the mix."""

Floats = NDArray[np.float64]


def tone(frequency: int, ms: int, level: float = 0.1, rate: int = RATE) -> Pcm:
    """A tone whose level swells and sinks as speech does, at a whole number of cycles a frame."""
    time = np.arange(rate * ms // 1000) / rate
    swell = 0.75 + 0.25 * np.sin(2 * np.pi * 4 * time)
    return Pcm((level * swell * np.sin(2 * np.pi * frequency * time)).astype(np.float32), rate)


def strength(samples: NDArray[np.float32], frequency: int, rate: int) -> Floats:
    """How strong a frequency is in each 5 ms of a clip."""
    frame = rate // 200
    frames = samples[: len(samples) // frame * frame].reshape(-1, frame).astype(np.float64)
    wave = np.exp(-2j * np.pi * frequency * np.arange(frame) / rate)
    found: Floats = np.abs(frames @ wave) ** 2
    return found


def measured(pcm: Pcm, first_ms: int, second_ms: int) -> tuple[float, float]:
    """The difference in loudness, and the offset, as they are in a mix of two tones."""
    low, high = (strength(pcm.samples, one, pcm.rate) for one in (LOW, HIGH))
    starts = [int(np.argmax(one > 0.05 * one.max())) * 5 for one in (low, high)]
    energy = [one.sum() / ms for one, ms in ((low, first_ms), (high, second_ms))]
    return float(10 * np.log10(energy[0] / energy[1])), float(starts[1] - starts[0])


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([-12.0, -6.0, 0.0, 3.5, 6.0]),
    st.integers(-150, 150),
    st.floats(0.001, 0.9),
    st.floats(0.001, 0.9),
)
def test_level_and_offset_measured_in_the_mix_are_those_of_the_labels(
    level_db: float, steps: int, one: float, two: float
) -> None:
    first, second = tone(LOW, 1000, one), tone(HIGH, 1500, two)
    made = mixed(first, second, level_db, steps * 5)
    found_db, found_ms = measured(made.pcm, 1000, 1500)
    assert found_db == pytest.approx(level_db, abs=0.1)
    assert found_ms == pytest.approx(made.offset_ms, abs=5)
    assert made.offset_ms == steps * 5
    assert made.louder == ("neither" if not level_db else "first" if level_db > 0 else "second")
    assert made.ahead == ("neither" if not steps else "first" if steps > 0 else "second")
    assert np.abs(made.pcm.samples).max() <= 1.0


def test_clips_of_different_rates_meet_at_the_higher_one() -> None:
    made = mixed(tone(LOW, 1000, rate=8000), tone(HIGH, 1000), 6.0, 250)
    assert made.pcm.rate == RATE
    assert measured(made.pcm, 1000, 1000) == pytest.approx((6.0, 250), abs=0.2)
    assert made.pcm.ms == pytest.approx(1250)


def test_pauses_do_not_make_a_clip_quieter() -> None:
    spoken = tone(LOW, 500)
    paused = Pcm(np.concatenate([spoken.samples, np.zeros(RATE * 3, np.float32)]), RATE)
    difference = loudness_db(paused.samples, RATE) - loudness_db(spoken.samples, RATE)
    assert difference == pytest.approx(0, abs=0.05)


def test_a_mix_too_loud_for_full_scale_is_made_quieter_as_a_whole() -> None:
    made = mixed(tone(LOW, 1000, 0.9), tone(HIGH, 1000, 0.9), 0.0, 0)
    assert made.gain_db < 0
    assert np.abs(made.pcm.samples).max() <= 0.9
    assert measured(made.pcm, 1000, 1000)[0] == pytest.approx(0.0, abs=0.1)
    assert mixed(tone(LOW, 100), tone(HIGH, 100), 0.0, 0).gain_db == 0.0


def test_silence_has_no_loudness() -> None:
    with pytest.raises(ClipError, match="silent"):
        mixed(Pcm(np.zeros(1000, np.float32), RATE), tone(HIGH, 100), 0.0, 0)


def test_any_drawn_offset_lets_both_be_heard_together() -> None:
    first, second = tone(LOW, 300), tone(HIGH, 1000)
    assert longest_offset_ms(first, second) == 300


def written(folder: Path, **clips: Pcm) -> Path:
    folder.mkdir()
    for name, pcm in clips.items():
        soundfile.write(folder / f"{name}.wav", pcm.samples, pcm.rate)
    return folder


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """A suite of two recordings."""
    folder = written(tmp_path / "speech", a=tone(LOW, 800), b=tone(LOW, 900))
    rows: Sequence[dict[str, Any]] = [
        {
            "id": name,
            "audio": f"{name}.wav",
            "kind": "open",
            "question": "What is said?",
            "reference": "Hello.",
            "told": "A man greets.",
            "rubric": "air-chat",
            "groups": ["mixed"],
        }
        for name in ("a", "b")
    ]
    path = folder / "suite.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def music(tmp_path: Path) -> Path:
    return written(tmp_path / "music", x=tone(HIGH, 700), y=tone(HIGH, 1000, 0.3))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "suite.jsonl").read_text().splitlines()]


LENGTHS = {"a.wav": 800, "b.wav": 900, "x.wav": 700, "y.wav": 1000}


def test_the_built_suite_is_labelled_as_its_clips_measure(
    tmp_path: Path, speech: Path, music: Path
) -> None:
    out = tmp_path / "out"
    assert build(Wanted(speech, music, out, ("speech", "music"), each=6)) == 12
    items = jsonl.read_items(out / "suite.jsonl", "mixed")
    labels = set()
    for row, item in zip(rows_of(out), items, strict=True):
        made = row["made"]
        (path,) = item.files()
        ms = (LENGTHS[made["first"]], LENGTHS[made["second"]])
        level_db, offset_ms = measured(read(path), *ms)
        assert level_db == pytest.approx(made["level_db"], abs=0.3)
        assert offset_ms == pytest.approx(made["offset_ms"], abs=10)
        assert abs(made["offset_ms"]) < min(ms)
        louder = "speech" if level_db > 1 else "music" if level_db < -1 else "neither"
        assert made["louder"] == louder
        assert made["ahead"] == ("speech" if made["offset_ms"] > 0 else "music")
        assert item.told == f"A man greets. Louder: {louder}. Ahead: {made['ahead']}."
        assert (item.rubric, item.reference, item.groups) == ("air-chat", ("Hello.",), ("mixed",))
        assert item.cluster == item.item[0], "mixes of one recording move together"
        labels.add((made["louder"], made["ahead"]))
    assert len(labels) > 3, "levels and offsets are drawn for each mix"


def test_the_same_seed_builds_the_same_suite(tmp_path: Path, speech: Path, music: Path) -> None:
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        build(Wanted(speech, music, tmp_path / name, seed=seed, each=3))
    one, two, three = (rows_of(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert one != three
    audio = "audio/a-1.flac"
    assert (tmp_path / "one" / audio).read_bytes() == (tmp_path / "two" / audio).read_bytes()


def test_labels_can_be_asked_as_choices(tmp_path: Path, music: Path) -> None:
    folder = written(tmp_path / "sounds", s=tone(LOW, 500))
    out = tmp_path / "out"
    argv = ["suites", "build", "mix", str(folder), str(music), "-o", str(out)]
    assert main([*argv, "--ask", "ahead", "--offset-ms=-200", "--level-db=3"]) == 0
    (item,) = jsonl.read_items(out / "suite.jsonl", "mixed")
    assert item.kind == "choice"
    assert item.options == ("the speech", "the sound", "neither of them")
    assert item.reference == ("B",)
    assert main([*argv, "--ask", "louder", "--offset-ms=0", "--level-db=0"]) == 0
    (item,) = jsonl.read_items(out / "suite.jsonl", "mixed")
    assert item.reference == ("C",)


def test_what_cannot_be_mixed_is_told_of_in_one_line(
    tmp_path: Path, speech: Path, music: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def refused(first: Path, second: Path, *more: str) -> str:
        argv = ["suites", "build", "mix", str(first), str(second), "-o", str(out), *more]
        assert main(argv) == 2
        return capsys.readouterr().err

    assert "nothing is known that could be asked" in refused(music, music)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no sound files" in refused(speech, empty)
    assert "holds no sound files" in refused(empty, music, "--question", "What?")
    (music / "x.wav").write_bytes(b"no sound")
    (music / "y.wav").write_bytes(b"no sound")
    assert "replace one of them" in refused(speech, music)
    for wrong in (["--names", "one"], ["--level-db", "loud"], ["--each", "0"], ["--offset-ms=1e9"]):
        assert refused(speech, music, *wrong)


def test_a_text_that_was_never_spoken_cannot_be_mixed(tmp_path: Path, music: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(
        json.dumps({"id": "t", "text": "Two plus two?", "kind": "number", "reference": "4"})
    )
    with pytest.raises(UserError, match="not a recording"):
        build(Wanted(path, music, tmp_path / "out"))


@pytest.mark.parametrize("name", ["../../escaped", "/escaped", "a/b", ".."])
def test_an_id_names_no_place_outside_the_output(tmp_path: Path, music: Path, name: str) -> None:
    folder = written(tmp_path / "speech", a=tone(LOW, 300))
    row = {"id": name, "audio": "a.wav", "kind": "open", "question": "What?", "rubric": "air-chat"}
    (folder / "suite.jsonl").write_text(json.dumps(row))
    before = set(tmp_path.rglob("*"))
    out = tmp_path / "out" / "deep"
    assert build(Wanted(folder / "suite.jsonl", music, out)) == 1
    (item,) = jsonl.read_items(out / "suite.jsonl", "mixed")
    assert item.item == name
    (path,) = item.files()
    made = set(tmp_path.rglob("*")) - before
    assert made == {out.parent, out, out / "audio", out / "suite.jsonl", path}
    assert path.resolve().parent == (out / "audio").resolve()


def test_clips_of_one_name_in_two_folders_are_two_items(tmp_path: Path, music: Path) -> None:
    for name, ms in (("1", 300), ("2", 500)):
        (tmp_path / "sounds").mkdir(exist_ok=True)
        written(tmp_path / "sounds" / name, same=tone(LOW, ms))
    out = tmp_path / "out"
    wanted = Wanted(tmp_path / "sounds", music, out, question="What?", offsets_ms=(0,), each=2)
    assert build(wanted) == 4
    items = jsonl.read_items(out / "suite.jsonl", "mixed")
    assert [item.item for item in items] == ["1/same-1", "1/same-2", "2/same-1", "2/same-2"]
    assert [item.cluster for item in items] == ["1/same", "1/same", "2/same", "2/same"]
    assert len({path for item in items for path in item.files()}) == 4


def test_clips_that_differ_by_their_ending_alone_are_refused_in_one_line(
    tmp_path: Path, music: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "sounds", s=tone(LOW, 300))
    soundfile.write(folder / "s.flac", tone(LOW, 300).samples, RATE)
    out = tmp_path / "out"
    argv = ["suites", "build", "mix", str(folder), str(music), "-o", str(out), "--question", "Q?"]
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "s.wav: has the name of s.flac; rename one of them" in line
    assert not out.exists()

"""Answers made elsewhere as an endpoint: found by their question, scored, never timed."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client.capture import Capture, Utterance
from voxmeter.client.import_answers import Answer, Answers
from voxmeter.client.import_transport import Imported
from voxmeter.client.probe import knock
from voxmeter.client.speaking import Patience
from voxmeter.client.target import Target, attempt
from voxmeter.client.transport import Launch, TransportSettings
from voxmeter.endpoints.codec import Address, Asked, Binary, Json, Settings
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import marks

SOUND = b"\0\x40\0\xc0" * 4_000


def wav(path: Path, pcm: bytes = SOUND, rate: int = 22_050) -> Path:
    whole = io.BytesIO()
    with wave.open(whole, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(pcm)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole.getvalue())
    return path


def lines(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# Where an answer is found


def test_a_folder_is_read_by_item_suite_and_condition(tmp_path: Path) -> None:
    plain = wav(tmp_path / "q1.wav")
    of_suite = wav(tmp_path / "mine" / "q1.flac")
    noisy = wav(tmp_path / "mine" / "noise" / "q1.WAV")
    (tmp_path / "q1.txt").write_text("\ufeffYes.\n")
    (tmp_path / "q2.txt").write_text("No.")
    (tmp_path / ".hidden.wav").write_text("")
    (tmp_path / "notes.md").write_text("")
    wav(tmp_path / "a" / "b" / "c" / "q1.wav")
    found = Answers(tmp_path, "place")
    assert found.find(Asked("other", "q1")) == Answer("Yes.", plain)
    assert found.find(Asked("mine", "q1")) == Answer(None, of_suite)
    assert found.find(Asked("mine", "q1", "noise")) == Answer(None, noisy)
    assert found.find(Asked("mine", "q2")) == Answer("No.")
    assert found.find(Asked("mine", "notes")) is None
    assert (found.spoken, found.written) == (True, True)


def test_what_was_said_to_a_clean_clip_answers_no_noisy_one(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav")
    found = Answers(tmp_path, "place")
    assert found.find(Asked("mine", "q1", "noise")) is None


def test_ids_that_no_file_can_have_are_encoded(tmp_path: Path) -> None:
    path = wav(tmp_path / "my%20suite" / "a%2Fb.wav")
    assert Answers(tmp_path, "place").find(Asked("my suite", "a/b")) == Answer(None, path)


def test_a_file_of_lines_says_what_each_answers(tmp_path: Path) -> None:
    one, other = wav(tmp_path / "1.wav"), wav(tmp_path / "sub" / "2.wav")
    path = lines(
        tmp_path,
        {"id": "q1", "audio": "1.wav", "text": " Yes. "},
        {"id": "q1", "audio": "sub/2.wav", "trial": 2},
        {"id": "q1", "text": "", "suite": "mine"},
        {"id": "q1", "audio": str(one), "suite": "mine", "condition": "noise", "trial": "1"},
    )
    found = Answers(path, "place")
    assert found.find(Asked("other", "q1")) == Answer("Yes.", one)
    assert found.find(Asked("other", "q1", trial=2)) == Answer(None, other)
    assert found.find(Asked("mine", "q1", trial=3)) == Answer("", None)
    assert found.find(Asked("mine", "q1", "noise", 1)) == Answer(None, one)
    assert found.find(Asked("mine", "q1", "noise", -2)) == Answer(None, one)  # warm-up
    assert found.find(Asked("mine", "q1", "noise", 2)) is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "q", "text": "a"}] * 2, r"jsonl:2: answers what line 1 answers; keep one"),
        ([{"id": "q", "audio": "no.wav"}], r"jsonl:1: there is no file no\.wav; correct the path"),
        ([{"id": "q"}], "jsonl:1: no answer; give text, audio or both"),
        ([{"text": "a"}], "jsonl:1: no id; give id as text"),
        ([{"id": "q", "txt": "a"}], "jsonl:1: unknown key 'txt'"),
        ([{"id": "q", "text": "a", "trial": "x"}], "jsonl:1: trial is 'x'; give a number"),
        ([{"id": "q", "text": "a", "trial": 0}], "jsonl:1: trial is '0'; give a number"),
        ([], "answers.jsonl has no answers; name the files ITEM.wav"),
    ],
)
def test_a_file_that_cannot_be_used_is_the_users_one_line(
    tmp_path: Path, rows: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        Answers(lines(tmp_path, *rows), "place")


def test_a_folder_that_cannot_be_used_is_the_users_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no answers"):
        Answers(tmp_path, "place")
    with pytest.raises(UserError, match=r"^place: there is no .*nowhere; give a folder"):
        Answers(tmp_path / "nowhere", "place")
    wav(tmp_path / "q.wav")
    wav(tmp_path / "q.flac")
    with pytest.raises(UserError, match=r"q\.wav: answers what q\.flac answers; keep one"):
        Answers(tmp_path, "place")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"options\.path: is missing; write path = "),
        ({"path": 3}, r"options\.path: is not a path"),
        ({"path": "texts"}, r"no answer there has audio; write output_modalities = \"text\""),
        ({"path": "sounds", "output_modalities": "text"}, "no answer there has text; remove"),
    ],
)
def test_options_that_fit_no_answer_are_the_users_one_line(
    tmp_path: Path, options: dict[str, Json], words: str
) -> None:
    wav(tmp_path / "sounds" / "q.wav")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "q.txt").write_text("Yes.")
    with pytest.raises(UserError, match=words):
        Imported(Launch("bench.toml", tmp_path, options=options))


# As an endpoint


def question(rate: int) -> Utterance:
    return Utterance(b"\1\2" * rate, rate, 10, rate - 10)


async def ask(folder: Path, item: str, *, trial: int = 1, **options: Json) -> Capture:
    options.setdefault("path", ".")
    wire = TransportSettings(max_message_mib=1)
    with Imported(Launch("bench.toml", folder, options=options, wire=wire)) as carrier:
        target = Target(
            "i",
            "import",
            "",
            settings=Settings(options=options),
            patience=Patience(connect_timeout_s=20, first_reply_timeout_s=20),
            pacing="fast",
            carrier=carrier,
        )
        asked = Asked("mine", item, trial=trial) if item else None
        return await attempt(target, question, asked=asked)


async def test_an_answer_comes_as_it_is_and_has_no_latency(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav")
    (tmp_path / "q1.txt").write_text("Yes.")
    capture = await ask(tmp_path, "q1")
    assert (capture.outcome, capture.fault, capture.reply_text) == ("ended", None, "Yes.")
    ((index, data),) = capture.audio
    assert (capture.rows[index]["rate"], data) == (22_050, SOUND)
    assert capture.rows[0]["latency_kind"] == "request"
    import numpy as np

    rows = [{**row} for row in capture.rows]
    rows[0]["output_rate"], rows[index]["samples"] = 22_050, len(SOUND) // 2
    samples = np.frombuffer(SOUND, "<i2").astype(np.float32) / np.float32(32_768)
    found = marks.latency(rows, samples)
    assert found.status == "ok"
    assert set(found.latency.values()) == {None}


async def test_texts_are_scored_without_their_sound(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav")
    (tmp_path / "q1.txt").write_text("Yes.")
    capture = await ask(tmp_path, "q1", output_modalities="text")
    assert (capture.outcome, capture.reply_text, capture.audio) == ("ended", "Yes.", [])
    assert capture.rows[0]["latency_kind"] == "text"


async def test_a_question_without_an_answer_is_refused_by_name(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav")
    capture = await ask(tmp_path, "q2")
    assert capture.outcome == "refused"
    assert 'request: no answer to "q2" of mine (clean) in' in (capture.fault or "")
    assert (await ask(tmp_path, "")).outcome == "refused"


async def test_a_silent_file_is_an_empty_reply(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav", b"")
    capture = await ask(tmp_path, "q1")
    assert capture.outcome == "ended"
    assert [data for _, data in capture.audio] == [b""]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"not audio at all", "q1.wav: "), (bytes(2 << 20), "over 1 MiB (max_message_mib)")],
)
async def test_a_file_that_cannot_be_read_is_a_protocol_error(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "q1.wav").write_bytes(content)
    capture = await ask(tmp_path, "q1")
    assert capture.outcome == "protocol_error"
    assert words in (capture.fault or "")


async def test_a_knock_asks_nothing(tmp_path: Path) -> None:
    wav(tmp_path / "q1.wav")
    with Imported(Launch("bench.toml", tmp_path, options={"path": "."})) as carrier:
        target = Target("i", "import", "", carrier=carrier)
        assert (await knock(target.codec(), target.transport(), Address(""), 20)).rtt_ms is None
        with pytest.raises(TypeError, match="Binary"):
            await target.transport().send(Binary(b""))

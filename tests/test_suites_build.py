"""`voxmeter suites build`: questions in writing become a suite that can be run, whoever speaks."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from attempt_logs import joined, silence, voice
from chat_server import Answer, Body, chat, refused
from needs import needs
from numpy.typing import NDArray

from voxmeter.client import audio, speech_voices
from voxmeter.client.cli import main
from voxmeter.client.rewording import lost
from voxmeter.client.speech_source import Written, rows
from voxmeter.endpoints.errors import UserError
from voxmeter.suites import catalog
from voxmeter.suites.jsonl import KEYS
from voxmeter.suites.spoken.wordings import WORDINGS
from voxmeter.suites.suite import Suite

ESPEAK = "espeak-ng:en-us"
ROWS = 'What is 12 + 7?,19,5,"1,000",84,A\nWhich planet is not "red"?,Venus,Mars,Jupiter,Saturn,b\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    needs("espeak-ng")
    path = tmp_path / "astronomy_test.csv"
    path.write_text(ROWS)
    return path


def _build(source: Path, *options: str) -> int:
    return main(["suites", "build", str(source), "-o", str(source.parent / "made"), *options])


def _lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "suite.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _loaded(folder: Path) -> Suite:
    table = {"path": str(folder / "suite.jsonl")}
    return catalog.load("jsonl", "made", table, Path())


def _clips(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "audio").iterdir())}


def test_a_table_becomes_a_suite_that_is_sound(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--speaker", ESPEAK, "--origin", "MMLU", "--licence", "MIT")
    assert _build(table, *options) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("2 items: 2 spoken (")
    assert out[-1] == str(table.parent / "made" / "suite.jsonl")
    first, second = _lines(table.parent / "made")
    assert first["id"] == "astronomy-0000"
    assert first["made"] == {
        "said": "What is twelve plus seven? Choose the right answer from A, B, C and D. "
        "A. Nineteen. B. Five. C. One thousand. D. Eighty-four.",
        "voice": ESPEAK,
        "longest_pause_ms": 300.0,
    }
    assert (first["question"], first["options"][2]) == ("What is 12 + 7?", "1,000")
    assert (second["reference"], second["groups"]) == ("B", ["astronomy"])
    assert (second["source"], second["licence"]) == ("MMLU", "MIT")
    items = _loaded(table.parent / "made").items
    assert [item.cluster for item in items] == ["astronomy-0000", "astronomy-0001"]
    assert main(["suites", "verify", str(table.parent / "made")]) == 0
    assert "2 recordings, " in capsys.readouterr().out


def test_hibari_speaks_what_whisper_hears(tmp_path: Path) -> None:
    from voxmeter.client.models import locate
    from voxmeter.scoring.asr import Transcriber
    from voxmeter.scoring.text import word_error_rate
    from voxmeter.scoring.types import Scored

    source = tmp_path / "q.csv"
    source.write_text("In 1969 the first person walked on the moon. Who?,Armstrong,Gagarin,A\n")
    assert _build(source) == 0
    (line,) = _lines(tmp_path / "made")
    assert line["made"]["voice"] == "hibari"
    clip = audio.read(tmp_path / "made" / line["audio"])
    heard = Transcriber(locate("tiny.en", "whisper").path).transcribe(
        audio.resample(clip, 16_000).samples
    )
    wanted = "In 1969 the first person walked on the moon. Who?"
    rate = word_error_rate(wanted, heard.text.lower().partition("choose")[0])
    assert isinstance(rate, Scored)
    assert rate.value <= 0.2, heard.text


def test_what_is_there_is_not_spoken_again(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table.parent / "made"
    assert _build(table, "--speaker", ESPEAK) == 0
    before, suite = _clips(made), (made / "suite.jsonl").read_bytes()
    gone = sorted((made / "audio").iterdir())[0]
    gone.unlink()
    (made / "suite.jsonl").unlink()
    capsys.readouterr()
    assert _build(table, "--speaker", ESPEAK) == 0
    assert capsys.readouterr().out.startswith("2 items: 1 spoken")
    assert (_clips(made), (made / "suite.jsonl").read_bytes()) == (before, suite)
    with monkeypatch.context() as patched:
        patched.setattr(speech_voices, "speak", _never)
        assert _build(table, "--speaker", ESPEAK) == 0
    assert "0 spoken" in capsys.readouterr().out


def _never(*_: object) -> None:
    raise AssertionError("spoken again")


def test_an_interrupted_build_keeps_its_clips_and_goes_on(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = speech_voices.speak
    spoken: list[object] = []

    def interrupted(*args: Any) -> audio.Pcm:
        if spoken:
            raise KeyboardInterrupt
        spoken.append(args)
        return genuine(*args)

    with monkeypatch.context() as patched:
        patched.setattr(speech_voices, "speak", interrupted)
        assert _build(table, "--speaker", ESPEAK) == 130
    made = table.parent / "made"
    assert len(_clips(made)) == 1
    assert not (made / "suite.jsonl").exists()
    capsys.readouterr()
    assert _build(table, "--speaker", ESPEAK) == 0
    assert capsys.readouterr().out.startswith("2 items: 1 spoken")
    assert len(_lines(made)) == 2


def test_clipping_is_told(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _build(table, "--speaker", ESPEAK, "--volume", "100") == 0
    assert "2 clips were cut off at full scale" in capsys.readouterr().out


def test_lists_multiply_into_items_of_one_cluster(table: Path) -> None:
    options = ("--speaker", f"{ESPEAK},espeak-ng:en+f3", "--rate=-10,10", "--limit", "1")
    assert _build(table, *options) == 0
    items = _loaded(table.parent / "made").items
    assert len({item.item for item in items}) == 4
    assert {item.cluster for item in items} == {"astronomy-0000"}
    assert {item.groups for item in items} == {
        (f"{name}_rate{rate}", "astronomy")
        for name in (ESPEAK, "espeak-ng:en+f3")
        for rate in ("-10", "+10")
    }


def test_a_draw_asks_each_question_in_one_way_by_seed(table: Path) -> None:
    table.write_text("".join(f"What is {n} and {n}?,a,b,A\n" for n in range(12)))
    options = ("--speaker", f"{ESPEAK},espeak-ng:en+f3", "--draw", "--format", "ogg")
    assert _build(table, *options) == 0
    made = table.parent / "made"
    first = [(line["id"], line["made"]["voice"]) for line in _lines(made)]
    assert len(first) == 12
    assert len({voice_ for _, voice_ in first}) == 2
    assert _build(table, *options) == 0
    assert [(line["id"], line["made"]["voice"]) for line in _lines(made)] == first
    assert _build(table, *options, "--seed", "1") == 0
    assert [(line["id"], line["made"]["voice"]) for line in _lines(made)] != first
    assert {path.suffix for path in (made / "audio").iterdir()} == {".ogg"}
    assert soundfile.info(next((made / "audio").iterdir())).subtype == "OPUS"


def test_wordings_touch_the_question_and_never_the_options(table: Path) -> None:
    options = ("--speaker", ESPEAK, "--variation", "all", "--show")
    assert _build(table, *options) == 0
    assert _build(table, "--speaker", ESPEAK, "--variation", ",".join(WORDINGS)) == 0
    for line in _lines(table.parent / "made"):
        said = line["made"]["said"]
        assert "Choose the right answer from A, B, C and D. A. " in said
        assert line["made"]["worded_by"] == "rules"
        if "planet" in line["question"]:
            assert said.endswith("A. Venus. B. Mars. C. Jupiter. D. Saturn.")
            assert " not " in said
    assert {line["made"]["wording"] for line in _lines(table.parent / "made")} == set(WORDINGS)


def test_a_wording_that_cannot_be_made_is_a_bad_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "q.jsonl"
    source.write_text(
        '{"id": "de", "question": "Was ist das?", "language": "de"}\n'
        '{"id": "w", "text": "A or B?", "options": ["a", "b"], "reference": "A"}\n'
    )
    options = ("--speaker", "espeak-ng:{language}", "--variation", "fillers", "--show")
    assert _build(source, *options) == 2
    bad = capsys.readouterr().err.splitlines()
    assert bad[0].endswith("fillers by rule is English, and the question is de: add --llm")
    assert bad[1].endswith("text has the options in it, and only a question is reworded")


def test_many_bad_rows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "q.csv"
    source.write_text("What?,a,b\n" * 25)
    assert _build(source) == 2
    error = capsys.readouterr().err
    assert error.count("bad row: ") == 20
    assert "... and 5 more" in error
    assert _build(source, "--skip-bad") == 2
    assert "no question in it" in capsys.readouterr().err
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    assert _build(tmp_path / "binary.csv") == 2
    assert "binary.csv: cannot be read (" in capsys.readouterr().err


def test_a_voice_that_fails_at_a_text_makes_a_bad_row(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        name, rate = ESPEAK, 22_050

        def speak(self, text: str) -> Iterator[NDArray[np.float32]]:
            if "planet" in text:
                raise IndexError("no such phoneme")
            yield np.full(9000, 0.1, np.float32)

    monkeypatch.setattr(speech_voices, "_espeak", lambda *_: Broken())
    assert _build(table, "--speaker", ESPEAK, "--skip-bad") == 0
    assert "(IndexError: no such phoneme)" in capsys.readouterr().err
    assert [line["id"] for line in _lines(table.parent / "made")] == ["astronomy-0000"]


def test_show_speaks_nothing(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _build(table, "--show") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("astronomy-0000: What is twelve plus seven? Choose")
    assert not (table.parent / "made").exists()
    assert _build(table, "--show", "--as-written", "--ask", "Pick one of {labels}:") == 0
    assert "What is 12 + 7? Pick one of A, B, C and D: A. 19." in capsys.readouterr().out


def test_bad_rows_are_told_with_their_lines_and_nothing_is_spoken(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(
        'question,A,B,C,D,answer\nWhat?,a,b,c,d,A\n"A long,\nquestion?",a,,c,d,A\n'
        "What?,a,b\nSame?,x,X,B\n,a,b,A\n"
    )
    assert _build(table, "--speaker", ESPEAK) == 2
    found = capsys.readouterr()
    bad = [line for line in found.err.splitlines() if line.startswith("bad row: ")]
    assert [line.split(": ")[1].rpartition(":")[2] for line in bad] == ["1", "4", "5", "6", "7"]
    assert "a table has no header" in bad[0]
    assert "option B is empty" in bad[1]
    assert found.err.splitlines()[-1] == (
        f"voxmeter: {table}: 5 rows cannot be asked; mend, or add --skip-bad"
    )
    assert not (table.parent / "made").exists()
    assert _build(table, "--speaker", ESPEAK, "--skip-bad") == 0
    assert [line["id"] for line in _lines(table.parent / "made")] == ["astronomy-0001"]
    assert capsys.readouterr().err.count("bad row: ") == 5


def test_json_lines_of_every_kind_and_language_are_spoken(tmp_path: Path) -> None:
    needs("espeak-ng")
    source = tmp_path / "mine.jsonl"
    given: Sequence[Mapping[str, object]] = [
        {"id": "sum", "question": "What is 2 + 2?", "kind": "number", "reference": 4},
        {"id": "de", "question": "Was sind 21 Tage?", "kind": "open", "language": "de"},
        {"question": "Is it?", "kind": "yes-no", "reference": "yes", "groups": ["g"],
         "source": "S"},
        {"id": "pick", "question": "Which?", "options": ["a", "b"], "reference": "b"},
        {"id": "whole", "text": "Which? A or B?", "options": ["a", "b"], "reference": "a",
         "kind": "choice", "voice": "espeak-ng:en+m3"},
    ]  # fmt: skip
    source.write_text("".join(f"{json.dumps(row)}\n" for row in given))
    assert _build(source, "--speaker", "espeak-ng:{language}") == 0
    lines = {line["id"]: line for line in _lines(tmp_path / "made")}
    assert lines["de"]["made"] == {
        "said": "Was sind einundzwanzig Tage?",
        "voice": "espeak-ng:de",
        "longest_pause_ms": 300.0,
    }
    assert lines["sum"]["reference"] == "4"
    assert lines["mine-0003"]["source"] == "S"
    assert lines["pick"]["kind"] == "choice"
    assert lines["whole"]["made"]["said"] == "Which? A or B?"
    assert lines["whole"]["made"]["voice"] == "espeak-ng:en+m3"
    items = {item.item: item for item in _loaded(tmp_path / "made").items}
    assert items["mine-0003"].groups == ("g",)
    assert all(set(line) <= set(KEYS) for line in lines.values())


def test_lines_that_cannot_be_spoken_are_problems_and_not_crashes(tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_text(
        '{"id": "a", "audio": "x.wav", "kind": "open"}\n{"kind": "open"}\n{torn\n[]\n'
        '{"question": "x", "kind": "number", "reference": "many"}\n{"question": []}\n'
        '{"id": "b", "question": "x"}\n{"id": "b", "question": "y"}\n'
    )
    found = list(rows(source))
    assert [isinstance(row, Written) for row in found] == [False] * 6 + [True, False]
    places = [str(row).removeprefix(f"{source}:")[0] for row in found if isinstance(row, UserError)]
    assert places == ["1", "2", "3", "4", "5", "6", "8"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speaker", "alloy"], "voice 'alloy': no such voice"),
        (["--speaker", ESPEAK, "--emotion", "sad"], "has no moods, and --emotion sad was asked"),
        (["--speaker", ESPEAK, "--pitch", "60"], "cannot speak +60 % higher; use a pitch from"),
        (["--speaker", ESPEAK, "--variation", "filler"], "--variation: unknown 'filler'; did you"),
        (["--speaker", "espeak-ng:en-gb+f3"], "speaks en-gb and leaves the variant f3 out; see"),
        (["--speaker", "espeak-ng:en-us+f33"], "leaves the variant f33 out"),
        (["--rate", "fast"], "'fast' is not a list of percents"),
        (["--rate=-80"], "use -50 to 100"),
        (["--limit", "0"], "0 is too small"),
        (["--language", "de", "--speaker", "hibari"], "speaks English, and the text is de"),
        (["--speaker", "openai:alloy"], "--tts-key-env: is missing; write --tts-key-env OPENAI"),
        (["--speaker", "openai:alloy", "--tts-url", "ftp://x"], "--tts-url: ftp://x is no address"),
        (["--tts-url", "http://127.0.0.1:1/v1"], "is given, and nothing uses it"),
        (["--llm", "m", "--llm-url", "http://127.0.0.1:1/v1", "--show"], "asks no chat model"),
        (["--speker", "x"], "unknown argument --speker; did you mean --speaker?"),
        (["--speaker", "a,,b"], "has an empty name in it"),
        (
            ["--speaker", "openai:a", "--tts-url", "http://127.0.0.1:1/v1", "--rate", "10"],
            "gpt-4o-mini-tts has no setting of the speed",
        ),
        (
            ["--speaker", "openai:a", "--tts-url", "http://127.0.0.1:1/v1", "--tts-model", "tts-1",
             "--emotion", "sad"],
            "tts-1 has no moods",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_one_line(
    table: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _build(table, *options) == 2
    found = capsys.readouterr()
    assert said in found.err
    assert found.err.count("\n") == 1
    assert not list(table.parent.glob("made/audio/*"))


Speech = Callable[[Body], tuple[int, bytes]]


@contextmanager
def _service(say: Speech) -> Iterator[tuple[str, list[Body]]]:
    """A speech service on a loopback port: OpenAI's `audio/speech`."""
    asked: list[Body] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body | {"path": self.path, "key": self.headers["authorization"]})
            status, data = say(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _wav(body: Body) -> tuple[int, bytes]:
    file = io.BytesIO()
    sound = np.asarray(joined(silence(40), voice(300), silence(40)), np.float32)
    soundfile.write(file, sound, 24_000, format="WAV")
    return 200, file.getvalue()


def test_a_service_speaks_with_its_key_its_mood_and_its_speed(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-of-mine")
    with _service(_wav) as (url, asked):
        service = ("--tts-url", url, "--tts-key-env", "MY_KEY")
        options = ("--speaker", "openai:alloy", *service, "--limit", "1")
        assert _build(table, *options, "--emotion", "cheerful") == 0
        assert _build(table, *options, "--tts-model", "tts-1", "--rate", "10") == 0
        (line,) = _lines(table.parent / "made")
    first, second = asked
    assert first["path"] == "/v1/audio/speech"
    assert first["key"] == "Bearer sk-secret-of-mine"
    assert (first["voice"], first["response_format"]) == ("alloy", "wav")
    assert first["input"].startswith("What is twelve plus seven? Choose")
    assert "A. Nineteen. B. Five." in first["input"]
    assert "cheerful" in first["instructions"]
    assert "speed" not in first
    assert (second["speed"], second["model"]) == (1.1, "tts-1")
    assert line["made"]["tts_model"] == "tts-1"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, b'{"error": {"message": "bad key sk-secret-of-mine"}}'), "401 bad key [redacted]"),
        ((400, b'{"error": {"message": "no such voice"}}'), "400 no such voice"),
    ],
)
def test_a_service_that_refuses_is_one_line_without_its_key(
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: tuple[int, bytes],
    said: str,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-of-mine")
    with _service(lambda _: answer) as (url, _):
        options = ("--tts-url", url, "--tts-key-env", "MY_KEY")
        assert _build(table, "--speaker", "openai:alloy", *options) == 2
    found = capsys.readouterr()
    assert f"voxmeter: --tts-url {url}: {said}; run the same command again" in found.err
    assert "sk-secret" not in found.err
    assert not (table.parent / "made" / "suite.jsonl").exists()


def test_what_a_service_sends_that_is_no_audio_is_a_bad_row(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _service(lambda _: (200, b"<html>")) as (url, _):
        assert _build(table, "--speaker", "openai:alloy", "--tts-url", url) == 2
    assert capsys.readouterr().err.count("sent no WAV") == 2


def test_a_chat_model_rewords_once_and_its_words_are_kept(table: Path) -> None:
    with chat(lambda body: Answer(_fillers(body))) as model:
        options = ("--speaker", ESPEAK, "--variation", "fillers", "--llm", "m", "--llm-url")
        assert _build(table, *options, model.url) == 0
        assert _build(table, *options, model.url) == 0
        assert len(model.bodies) == 2
        assert "fillers" in model.bodies[0]["messages"][0]["content"]
        assert "Venus" not in str(model.bodies)
    first, second = _lines(table.parent / "made")
    assert first["made"]["said"].startswith("Um, what is, you know, twelve plus seven? Choose")
    assert second["made"]["worded_by"] == "m"


def _fillers(body: Body) -> str:
    planet = "planet" in body["messages"][-1]["content"]
    other = 'Uh, which planet is not "red"?'
    return other if planet else "Um, what is, you know, 12 + 7?"


def test_a_chat_model_that_changes_the_meaning_makes_a_bad_row(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat(lambda _: Answer("Um, what is 12 + 8?")) as model:
        options = ("--speaker", ESPEAK, "--variation", "fillers", "--llm", "m", "--llm-url")
        assert _build(table, *options, model.url, "--limit", "1") == 2
        assert len(model.bodies) == 3
    assert "has lost '7'" in capsys.readouterr().err
    with chat(lambda _: refused(401, "no such key")) as model:
        assert _build(table, *options, model.url) == 2
    assert "401 no such key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("um, why isn't 5 even?", ""),
        ("um, why is 5 even?", "has lost 'not'"),
        ("um, why isn't it even?", "has lost '5'"),
        ("", "is empty"),
        ("why isn't 5 even without proof?", "has a 'without' too many"),
        ("why isn't 5 even? " * 40, "is far too long"),
    ],
)
def test_a_rewording_keeps_numbers_and_negations(said: str, problem: str) -> None:
    assert lost("Why is 5 not even?", said) == problem

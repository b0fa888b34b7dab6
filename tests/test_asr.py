"""Whisper with its real tiny and base models, on speech of the embedded voices.

Numbers such as AS-01 name reports of users of other tools, of which each test keeps one from
coming true here: AS-01 words out of silence, AS-04 recognition loops, AS-11 one word heard as
another language, AS-17 language detected on leading silence. AS-16, two replies at a time, is in
`test_transcribe.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voxmeter.client.audio import Pcm, resample
from voxmeter.client.models import locate
from voxmeter.client.speakers import Speaker, speaker
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring import asr
from voxmeter.scoring.asr import RATE, AsrSettings, Samples, Transcriber

Say = Callable[[str], Samples]
FAST = AsrSettings(beam_size=1, cpu_threads=2)


@pytest.fixture(scope="module")
def tiny() -> Transcriber:
    return Transcriber(locate("tiny.en", "whisper").path, FAST)


@pytest.fixture(scope="module")
def base() -> Transcriber:
    return Transcriber(locate("base", "whisper").path, FAST)


@pytest.fixture(scope="module")
def say() -> Say:
    voice: Speaker = speaker("hibari")

    def spoken(text: str) -> Samples:
        return resample(Pcm(np.concatenate([*voice.speak(text)]), voice.rate), RATE).samples

    return spoken


class Deaf:
    """Stands where the model is, and fails the test when it is asked."""

    def transcribe(self, audio: Samples, **settings: object) -> tuple[Iterable[Any], Any]:
        raise AssertionError(f"Whisper was asked about {len(audio)} samples")

    def detect_language(self, audio: Samples) -> tuple[str, float, Any]:
        raise AssertionError(f"Whisper was asked for the language of {len(audio)} samples")


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_a_spoken_answer_is_read_back(model: str, say: Say, request: pytest.FixtureRequest) -> None:
    heard = request.getfixturevalue(model).transcribe(say("The correct answer is B."))
    assert heard.text == "The correct answer is B."
    assert (heard.language, heard.gated) == ("en", False)
    assert json.loads(json.dumps(heard.detail)) == heard.detail


def _noise(seconds: float, dbfs: float) -> Samples:
    samples = np.random.default_rng(7).normal(0, 10 ** (dbfs / 20), round(seconds * RATE))
    return samples.astype(np.float32)


QUIET = {
    "AS-01: 2 s of zeros": np.zeros(2 * RATE, np.float32),
    "AS-01: 30 s of zeros": np.zeros(30 * RATE, np.float32),
    "AS-01: noise at -60 dBFS": _noise(2, -60),
    "zeros, then noise at -60 dBFS": np.concatenate([np.zeros(RATE, np.float32), _noise(2, -60)]),
    "nothing at all": np.zeros(0, np.float32),
    "one sample": np.ones(1, np.float32),
    "a click of 1 ms": np.concatenate([np.zeros(RATE), np.ones(16), np.zeros(RATE)]),
    "an offset of 0.001": np.full(2 * RATE, 0.001, np.float32),
    "not a number": np.full(RATE, np.nan, np.float32),
}


@pytest.mark.parametrize("name", QUIET)
def test_silence_is_gated_before_whisper_can_invent_words(
    name: str, tiny: Transcriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiny, "_model", Deaf())
    heard = tiny.transcribe(QUIET[name])
    assert (heard.text, heard.gated) == ("", True)


def test_quiet_speech_is_not_gated(tiny: Transcriber, say: Say) -> None:
    assert (
        tiny.transcribe(say("The correct answer is B.") * 0.02).text == "The correct answer is B."
    )


def test_samples_that_are_no_numbers_are_counted_and_the_rest_is_read(
    tiny: Transcriber, say: Say
) -> None:
    samples = say("The capital of France is Paris.").copy()
    samples[:3] = [np.nan, np.inf, -np.inf]
    heard = tiny.transcribe(samples)
    assert heard.detail["not_finite"] == 3
    assert "Paris" in heard.text


def test_as_11_the_language_is_the_one_asked_for_even_for_one_word(
    base: Transcriber, say: Say
) -> None:
    heard = base.transcribe(say("Continue."), "en")
    assert (heard.text.rstrip("."), heard.language) == ("Continue", "en")


def test_as_17_auto_detects_on_the_voiced_part_not_on_leading_silence(
    base: Transcriber, say: Say
) -> None:
    late = np.concatenate([np.zeros(40 * RATE, np.float32), say("The capital of France is Paris.")])
    heard = base.transcribe(late, "auto")
    assert heard.language == "en"
    assert "Paris" in heard.text
    assert float(str(heard.detail["language_probability"])) > 0.5


def test_a_model_that_hears_english_only_refuses_other_languages(tiny: Transcriber) -> None:
    with pytest.raises(UserError, match="hears English only; use the model base"):
        tiny.transcribe(np.zeros(RATE), "de")
    with pytest.raises(UserError, match="Whisper does not know it"):
        tiny.transcribe(np.zeros(RATE), "klingon")


def test_as_04_a_looping_transcript_is_flagged_and_its_text_kept(
    tiny: Transcriber, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "The answer is B. " * 300

    class Looping(Deaf):
        def transcribe(self, audio: Samples, **settings: object) -> tuple[Iterable[Any], Any]:
            part = type("Segment", (), {"text": text, "no_speech_prob": 0.1, "avg_logprob": -0.1})
            return iter([part()]), None

    monkeypatch.setattr(tiny, "_model", Looping())
    heard = tiny.transcribe(say("B."))
    assert heard.text == text.strip()
    repeats = heard.detail["repetition"]
    assert isinstance(repeats, dict)
    assert (repeats["looped"], repeats["times"]) == (True, 300)


def test_a_long_reply_is_read_beyond_the_first_window(tiny: Transcriber, say: Say) -> None:
    pause = np.zeros(RATE, np.float32)
    line = "This is a sentence about the weather in the north of the country."
    parts = [part for _ in range(9) for part in (say(line), pause)]
    heard = tiny.transcribe(np.concatenate([*parts, say("The correct answer is B.")]))
    assert heard.text.endswith("The correct answer is B.")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (AsrSettings(compute_type="int3"), "compute_type: 'int3', which this .* cannot do"),
        (AsrSettings(language="xx"), "language 'xx': Whisper does not know it"),
    ],
)
def test_settings_that_cannot_be_are_one_line(settings: AsrSettings, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        Transcriber(locate("tiny.en", "whisper").path, settings)


def test_a_missing_gpu_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 0)
    with pytest.raises(UserError, match="cuda, but no GPU is to be seen"):
        asr.placement(AsrSettings(device="cuda"))
    assert asr.placement(AsrSettings()) == ("cpu", "int8")


def test_a_gpu_is_taken_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    assert asr.placement(AsrSettings()) == ("cuda", "float16")


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give a folder with a CTranslate2 Whisper model"):
        Transcriber(tmp_path)

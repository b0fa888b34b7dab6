"""A download of ADU-Bench in small: the real folders and names, lines, WAV and MP3 of ours."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
from attempt_logs import joined, silence, voice

RATE = 24_000
Line = Mapping[str, object] | str


@cache
def sound(form: str, ms: int = 300) -> bytes:
    """Sound of ours between short silences, as a file of the given form."""
    file = io.BytesIO()
    samples = np.asarray(joined(silence(40), voice(ms), silence(40)), np.float32)
    soundfile.write(file, samples, RATE, format=form)
    return file.getvalue()


def line(audio: str, question: str, answer: object = "An answer.", **more: object) -> Line:
    """One line as the benchmark has it."""
    row = {"question": question, "answer": answer, "source": "", "category": "", "audio": audio}
    return row | more


FILES: Mapping[str, Sequence[Line]] = {
    "ADU-General/helpful_question": [
        line("ADU-General/helpful_question/common_voice_en_1.mp3", "How do I boil an egg?"),
        line("ADU-General/helpful_question/0001_en_JennyNeural.wav", "How do I boil an egg?"),
    ],
    "ADU-General/daily_question": [
        line("ADU-General/daily_question_statement/slue_1.wav", "What is for dinner?"),
    ],
    "ADU-General/daily_statement": [
        line("ADU-General/daily_question_statement/slue_2.wav", "I am tired."),
    ],
    "ADU-Skill/physics": [
        line("input/ADU-Skill/physics/1.wav", "Why is the sky blue?", "It scatters blue light."),
        line("input/ADU-Skill/physics/2.wav", "What is a joule?", "A unit of energy."),
        line("input/ADU-Skill/physics/3.wav", "What is a watt?", "A joule a second."),
    ],
    "ADU-Skill/code": [line("input/ADU-Skill/code/1.wav", "What is a loop?", "A repetition.")],
    "ADU-Multilingual/japanese": [
        line("ADU-Multilingual/japanese/1.mp3", "今日は何曜日ですか。", "月曜日です。")
    ],
    "ADU-Multilingual/chinese": [line("ADU-Multilingual/chinese/1.mp3", "今天星期几?", "星期一。")],
    "ADU-Ambiguity/pause": [
        line(
            "ADU-Ambiguity/pause/0038_en_BrianMultilingualNeural_pitch_-10.wav",
            "Let's eat, Grandma.",
            "Grandma is called to dinner.",
        )
    ],
    "ADU-Ambiguity/homophones": [
        line("ADU-Ambiguity/homophones/1.wav", "Is it flour or flower?", "It blooms.")
    ],
}


def write(root: Path, files: Mapping[str, Sequence[Line]] = FILES, *, audio: bool = True) -> Path:
    """Write a download; texts are written as they are. Every second recording is an MP3 file.

    Endings of names say nothing of the form, as in the genuine download.
    """
    count = 0
    for stem, lines in files.items():
        path = root / "input" / f"{stem}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
                 for one in lines]  # fmt: skip
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        for one in lines:
            if isinstance(one, str) or not audio:
                continue
            named = str(one["audio"]).removeprefix("input/")
            dataset = "" if named.startswith("ADU-") else stem.partition("/")[0]
            file = root / "input" / dataset / named
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(sound(("WAV", "MP3")[count % 2]))
            count += 1
    return root

"""A download of AIR-Bench in small: the real folders, names and lists, and sound of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from attempt_logs import RATE, joined, silence, voice

PITCH = ("Music_Midi_Pitch_Analysis", "nsynth")
GENDER = ("Speaker_Gender_Recognition", "meld")
GROUNDING = ("Audio_Grounding", "AudioGrounding")
SPEECH_CHAT = ("speech_dialogue_QA", "spokenwoz")
MIXED_CHAT = ("speech_and_music_QA", "common_voice_13_musiccaps")


def foundation(
    number: int, source: tuple[str, str] = PITCH, path: str = "", **changes: Any
) -> dict[str, Any]:
    """An entry of the list of choices."""
    return {
        "path": path or f"{number:05d}.wav",
        "question": f"What is the pitch of note {number}?",
        "choice_a": "low",
        "choice_b": "middle",
        "choice_c": "high",
        "choice_d": "very high",
        "answer_gt": "high",
        "task_name": source[0],
        "dataset_name": source[1],
        "uniq_id": number,
    } | changes


def gender(number: int, **changes: Any) -> dict[str, Any]:
    """An entry with two options; the others are not there."""
    entry = foundation(number, GENDER, question="Who speaks, a man or a woman?")
    entry |= {"choice_a": "male", "choice_b": "female", "answer_gt": "female"}
    del entry["choice_c"], entry["choice_d"]
    return entry | changes


def chat(number: int, source: tuple[str, str] = SPEECH_CHAT, **changes: Any) -> dict[str, Any]:
    """An entry of the list of open questions."""
    return {
        "path": f"{number:05d}.wav",
        "question": f"What do they plan in dialogue {number}?",
        "answer_gt": "They book a table for two.",
        "meta_info": "Two people talk about a restaurant. The second sounds pleased.",
        "task_name": source[0],
        "dataset_name": source[1],
        "uniq_id": number,
    } | changes


@dataclass
class Download:
    """What is written where.

    Attributes:
        root: The folder of the download.
        foundation: Entries of the list of choices; no list where there are none.
        chat: Likewise of open questions.
        absent: Recordings that are not written, as `folder/name`.
        empty: Recordings without a byte, likewise.
    """

    root: Path
    foundation: Sequence[Any] = ()
    chat: Sequence[Any] = ()
    absent: Sequence[str] = ()
    empty: Sequence[str] = ()
    made: list[Path] = field(default_factory=list)

    def write(self) -> Path:
        """Write lists and recordings; return the folder of the download."""
        for name, entries in (("Foundation", self.foundation), ("Chat", self.chat)):
            if entries:
                folder = self.root / name
                folder.mkdir(parents=True)
                (folder / f"{name}_meta.json").write_text(json.dumps(entries), encoding="utf-8")
                for entry in entries:
                    self._record(folder, entry)
        return self.root

    def _record(self, folder: Path, entry: Any) -> None:
        if not isinstance(entry, dict) or not entry.get("path"):
            return
        name = f"{entry['task_name']}_{entry['dataset_name']}/{entry['path']}"
        if name in self.absent or ".." in name:
            return
        path = folder / name
        if entry["task_name"] == "Audio_Grounding":
            path = path.with_suffix(".flac")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in self.empty:
            path.touch()
            return
        sound = joined(silence(20), voice(120), silence(20))
        soundfile.write(path, np.asarray(sound, np.float32), RATE)
        self.made.append(path)

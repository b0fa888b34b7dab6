"""The tasks of AIR-Bench: names in the data, where each is reported, how many items it has.

Names in the data are spelled as they are there, slips and all; names in tables are the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal["foundation", "chat"]
PARTS: tuple[Part, ...] = ("foundation", "chat")

Group = Literal["speech", "sound", "music", "mixed"]
FOUNDATION_GROUPS: tuple[Group, ...] = ("speech", "sound", "music")
CHAT_GROUPS: tuple[Group, ...] = (*FOUNDATION_GROUPS, "mixed")


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes:
        groups: Where its figure stands, outermost first.
        count: Items that the paper reports, rounded; 0 where it reports none for the task alone.
    """

    groups: tuple[str, ...]
    count: int = 0

    @property
    def group(self) -> str:
        """Speech, sound, music, or mixed."""
        return self.groups[1]


def _foundation(group: Group, name: str, count: int = 1000) -> Task:
    return Task(("foundation", group, name), count)


FOUNDATION: Mapping[str, Task] = {
    "Speech_Grounding": _foundation("speech", "Speech grounding", 900),
    "Spoken_Language_Identification": _foundation("speech", "Spoken language identification"),
    "Speaker_Gender_Recognition": _foundation("speech", "Speaker gender recognition"),
    "Speaker_Emotion_Recontion": _foundation("speech", "Emotion recognition"),
    "Speaker_Age_Prediction": _foundation("speech", "Speaker age prediction"),
    "Speech_Entity_Reconition": _foundation("speech", "Speech entity recognition"),
    "Speaker_Intent_Classification": _foundation("speech", "Intent classification"),
    "Speaker_Number_Verification": _foundation("speech", "Speaker number verification"),
    "Synthesized_Voice_Detection": _foundation("speech", "Synthesized voice detection"),
    "Audio_Grounding": _foundation("sound", "Audio grounding", 900),
    "vocal_sound_classification": _foundation("sound", "Vocal sound classification"),
    "Acoustic_Scene_Classification": _foundation("sound", "Acoustic scene classification"),
    "Sound_AQA": _foundation("sound", "Sound question answering"),
    "Music_Instruments_Classfication": _foundation("music", "Music instruments classification"),
    "Music_Genre_Recognition": _foundation("music", "Music genre classification"),
    "Music_Midi_Pitch_Analysis": _foundation("music", "Music note analysis-pitch"),
    "Music_Midi_Velocity_Analysis": _foundation("music", "Music note analysis-velocity"),
    "Music_AQA": _foundation("music", "Music question answering", 800),
    "Music_Mood_Recognition": _foundation("music", "Music emotion detection"),
}
"""The 19 tasks of the foundation part, by their names in the data."""

CHAT: Mapping[str, Task] = {
    "speech_QA": Task(("chat", "speech")),
    "speech_dialogue_QA": Task(("chat", "speech")),
    "sound_QA": Task(("chat", "sound")),
    "sound_generation_QA": Task(("chat", "sound")),
    "music_QA": Task(("chat", "music")),
    "music_generation_analysis_QA": Task(("chat", "music")),
    "speech_and_sound_QA": Task(("chat", "mixed", "speech and sound")),
    "speech_and_music_QA": Task(("chat", "mixed", "speech and music")),
}
"""The tasks of the chat part. A group of one kind of sound is the mean of its items; "mixed" is the
mean of its two tasks, as the benchmark's script has it."""

CHAT_COUNTS: Mapping[tuple[str, ...], int] = {
    ("chat", "speech"): 800,
    ("chat", "sound"): 400,
    ("chat", "music"): 400,
    ("chat", "mixed", "speech and sound"): 200,
    ("chat", "mixed", "speech and music"): 200,
}
"""Items that the paper reports of the chat part."""

TASKS: Mapping[Part, Mapping[str, Task]] = {"foundation": FOUNDATION, "chat": CHAT}


def counts_of(part: Part) -> Mapping[tuple[str, ...], int]:
    """Return how many items the paper reports, by group, the innermost that it counts."""
    if part == "chat":
        return CHAT_COUNTS
    return {task.groups: task.count for task in FOUNDATION.values()}

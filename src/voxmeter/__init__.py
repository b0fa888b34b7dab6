"""Real-time speech-to-speech evaluation: accuracy and latency of spoken replies on one clock.

The public names below are imported when they are first used, so that `import voxmeter` stays
light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxmeter.client.api import Conversation, Run, converse, open_run, run_bench
    from voxmeter.client.compare import Comparison, compare_runs
    from voxmeter.endpoints.codec import Codec
    from voxmeter.endpoints.errors import UserError, VoxmeterError
    from voxmeter.endpoints.events import (
        Closed,
        Event,
        Fault,
        InputTranscript,
        Interrupted,
        RateLimit,
        Ready,
        ReplyAudio,
        ReplyEnded,
        ReplyStarted,
        ReplyText,
        SpeechStarted,
        SpeechStopped,
        Usage,
    )
    from voxmeter.scoring.answers import extract_answer
    from voxmeter.scoring.bounds import speech_bounds
    from voxmeter.scoring.judgement import read_judgement

__version__ = "0.1.0"

__all__ = [
    "Closed",
    "Codec",
    "Comparison",
    "Conversation",
    "Event",
    "Fault",
    "InputTranscript",
    "Interrupted",
    "RateLimit",
    "Ready",
    "ReplyAudio",
    "ReplyEnded",
    "ReplyStarted",
    "ReplyText",
    "Run",
    "SpeechStarted",
    "SpeechStopped",
    "Usage",
    "UserError",
    "VoxmeterError",
    "compare_runs",
    "converse",
    "extract_answer",
    "open_run",
    "read_judgement",
    "run_bench",
    "speech_bounds",
]

_HOMES = {
    "voxmeter.client.api": ("Conversation", "Run", "converse", "open_run", "run_bench"),
    "voxmeter.client.compare": ("Comparison", "compare_runs"),
    "voxmeter.endpoints.codec": ("Codec",),
    "voxmeter.endpoints.errors": ("UserError", "VoxmeterError"),
    "voxmeter.scoring.answers": ("extract_answer",),
    "voxmeter.scoring.bounds": ("speech_bounds",),
    "voxmeter.scoring.judgement": ("read_judgement",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module 'voxmeter' has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "voxmeter.endpoints.events")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

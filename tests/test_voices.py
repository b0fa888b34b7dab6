"""Voices in a process of their own: what is heard, what goes wrong, that nothing is loaded here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import voxmeter
from voxmeter.client import clips
from voxmeter.client.child import ChildDiedError
from voxmeter.client.speakers import check, speaker
from voxmeter.client.voices import Voices
from voxmeter.endpoints.errors import ClipError, UserError
from voxmeter.suites.suite import Item, Spoken

LIMIT_S = 30


@pytest.fixture(scope="module")
def voices() -> Iterator[Voices]:
    with Voices() as one:
        yield one


def test_a_text_sounds_as_it_would_have_here(voices: Voices) -> None:
    text = "One. Two."
    there, here = voices("hibari"), speaker("hibari")
    heard, wanted = list(there.speak(text)), list(here.speak(text))
    assert there.rate == here.rate
    assert len(heard) == 2
    assert all(np.array_equal(a, b) for a, b in zip(heard, wanted, strict=True))


def test_a_clip_is_rendered_with_it(voices: Voices, tmp_path: Path) -> None:
    item = Item("mine", "q", "open", (Spoken("How many?", "hibari"),))
    clip = clips.render(item, voices, tmp_path)
    assert clip.pcm.rate == 24_000
    assert clip.end_kind == "speech"


def test_a_voice_that_is_stopped_falls_silent_and_speaks_again_when_asked(voices: Voices) -> None:
    endless = voices._worker.submit(signal.pause)
    while not endless.running():
        os.sched_yield()
    voices.stop()
    with pytest.raises(ChildDiedError):
        endless.result(LIMIT_S)
    assert list(voices("hibari").speak("Hello?"))


def test_an_unknown_voice_is_the_users_one_line(voices: Voices) -> None:
    with pytest.raises(UserError, match="no such voice"):
        list(voices("nobody").speak("Hello?"))


def test_a_process_that_dies_costs_one_clip_and_the_next_is_spoken(voices: Voices) -> None:
    pid = voices._worker.submit(os.getpid).result(LIMIT_S)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ClipError, match="its process ended"):
        list(voices("hibari").speak("Hello?"))
    assert list(voices("hibari").speak("Hello?"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "no such voice"),
        ("hibari:nobody", "no such voice"),
        ("piper:/nowhere.onnx", "no such file"),
    ],
)
def test_a_voice_that_is_not_there_is_found_without_loading_anything(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check(name)


def test_checking_a_voice_loads_no_model() -> None:
    source = str(Path(voxmeter.__file__).parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {source!r})\n"
        "from voxmeter.client.speakers import check\n"
        "check('hibari'); check('piper')\n"
        "print(sorted({'onnxruntime', 'hibari', 'piper'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

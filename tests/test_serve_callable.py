"""A Python function behind the lines of `exec`: what it is given, what it may return, and where."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import wave
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from interpreters import old_python

from voxmeter.client import serve_callable
from voxmeter.client.serve_callable import (
    CallableError,
    File,
    Piece,
    Samples,
    Words,
    chosen,
    explained,
    load,
    pcm16,
    replies,
    split,
    waveform,
)

SCRIPT = Path(serve_callable.__file__).resolve()
RATE = 16_000
PCM = array("h", [0, 16_384, -16_384, 32_767]).tobytes()


def wav(pcm: bytes = PCM, rate: int = RATE) -> bytes:
    whole = io.BytesIO()
    with wave.open(whole, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(pcm)
    return whole.getvalue()


def answer(value: Any, **request: Any) -> list[Piece]:
    """What a function that returns this value answers."""

    def function(sound: Any, rate: int) -> Any:
        return value

    return list(replies(function, [0.0], RATE, request))


def installed(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


class Tensor:
    """As much of a torch tensor as is needed: numpy cannot read it while it is on the GPU."""

    def __init__(self, values: Any, where: str = "cuda") -> None:
        self.values, self.where = np.asarray(values), where

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        assert self.where == "cpu"
        return self.values

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, "cpu")

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32), self.where)

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(self.values.reshape(shape), self.where)

    def __truediv__(self, by: int) -> Tensor:
        return Tensor(self.values / by, self.where)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch")
    vars(module).update(
        int16=np.int16, tensor=lambda values, dtype: Tensor(np.frombuffer(values, dtype))
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(serve_callable, "_installed", installed("torch", "numpy"))


# What it is given


def test_a_waveform_is_one_channel_of_floats() -> None:
    found, rate = waveform(wav(), "numpy")
    assert (found.shape, str(found.dtype), rate) == ((1, 4), "float32", RATE)
    assert found[0, 1] == 0.5
    plain, _ = waveform(wav(), "list")
    assert list(plain) == pytest.approx([0.0, 0.5, -0.5, 1.0], abs=1e-4)
    assert waveform(wav(b""), "numpy")[0].shape == (1, 0)


def test_a_tensor_is_given_where_torch_is_installed(torch: None) -> None:
    assert chosen("auto") == "torch"
    found, _ = waveform(wav(), "torch")
    assert found.values.shape == (1, 4)
    assert found.values[0, 1] == 0.5


def test_without_torch_it_is_an_array_and_without_numpy_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve_callable, "_installed", installed("numpy"))
    assert chosen("auto") == "numpy"
    monkeypatch.setattr(serve_callable, "_installed", installed())
    assert [chosen(kind) for kind in ("auto", "list", "numpy")] == ["list", "list", "numpy"]
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))  # a stand-in without a spec
    assert chosen("auto") == "numpy"


def test_a_function_gets_what_it_has_parameters_for() -> None:
    seen: list[Any] = []

    def plain(sound: Any, rate: int) -> None:
        seen.append((sound, rate))

    def curious(sound: Any, rate: int, text: str = "", *, voice: str = "") -> None:
        seen.append((text, voice))

    def greedy(sound: Any, rate: int, **more: Any) -> None:
        seen.append(more)

    request = {"text": "Which?", "voice": "ann", "id": "7"}
    for function in (curious, greedy):
        assert list(replies(function, [0.0], RATE, request)) == []
    assert list(replies(plain, [0.0], RATE, request | {"text": None})) == []
    assert seen[::2] == [("Which?", "ann"), (([0.0], RATE), RATE)]
    assert seen[1] == dict.fromkeys(serve_callable.EXTRAS) | {"text": "Which?", "voice": "ann"}


# What it may return

HALF = array("h", [0, 16_384]).tobytes()


@pytest.mark.parametrize(
    "value",
    [
        np.array([0, 0.5]),
        np.array([0, 0.5], dtype=np.float16),
        np.array([[0, 0.5]]),
        np.array([[[0, 0.5]]]),
        np.array([[0], [0.5]]),
        np.array([0, 16_384], dtype=np.int16),
        np.array([0, 16_384]),
        [0.0, 0.5],
        [[0.0, 0.5]],
        array("f", [0, 0.5]),
        array("h", [0, 16_384]),
        Tensor(np.array([[0, 0.5]])),
        HALF,
        bytearray(HALF),
        memoryview(HALF),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sound_comes_in_many_forms(value: Any) -> None:
    assert answer(value) == [Samples(HALF, RATE)]


def test_channels_are_mixed_whichever_axis_they_have() -> None:
    left_and_right = np.array([[0, 1.0, 0], [0, 0, 0]])
    mixed = array("h", [0, 16_384, 0]).tobytes()
    assert pcm16(left_and_right) == pcm16(left_and_right.T) == mixed
    assert pcm16((left_and_right * 32_767).astype(np.int16)) == mixed
    assert pcm16(np.zeros((2, 0))) == b""


@pytest.mark.parametrize("numpy", [True, False])
def test_numbers_are_sound_with_and_without_numpy(
    numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not numpy:
        monkeypatch.setattr(serve_callable, "_installed", installed())
    assert pcm16([0.0, 0.5]) == pcm16([[0.0, 0.5]]) == pcm16([0, 16_384]) == HALF
    assert pcm16([1.5, -1.5]) == array("h", [32_767, -32_768]).tobytes()
    assert pcm16([]) == b""
    for wrong in ([float("nan")], [3.0], [40_000], ["a"], object()):
        with pytest.raises(CallableError, match="sound must be"):
            pcm16(wrong)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.array(["a"]), "an array of <U1"),
        (np.zeros(2, dtype=np.uint8), "an array of uint8"),
        (np.zeros((2, 2, 2)), r"an array of shape \(2, 2, 2\)"),
        (np.array([0, np.inf]), "floats up to inf"),
        (np.array([0, np.nan]), "floats up to nan"),
        (np.array([0, 20_313.0]), "floats up to 20313"),
        (np.array([0, 1 << 20]), "integers up to 1048576"),
        (3, "int, not a list of numbers"),
        (b"abc", "returned 3 bytes, neither"),
        ((0.0, 0.5), "returned the rate 0.5"),
        ({"txt": "x"}, "returned a dict with txt; text, audio and sample_rate are known"),
        (([0.0], float("nan")), "returned the rate nan"),
        (([0.0], 3), "returned the rate 3"),
        (Path("/nowhere/x.wav"), "returned the path '/nowhere/x.wav', where no file is"),
        ("reply.wav", "returned the path 'reply.wav', where no file is"),
    ],
)
def test_what_is_no_reply_is_named(value: Any, found: str) -> None:
    with pytest.raises(CallableError, match=found):
        answer(value)


def test_a_rate_goes_with_its_waveform() -> None:
    sound = np.array([0, 0.5])
    assert answer((sound, 22_050)) == answer((22_050, sound)) == [Samples(HALF, 22_050)]
    assert answer((sound, np.int64(8_000))) == [Samples(HALF, 8_000)]
    assert answer((sound, np.float32(8_000))) == [Samples(HALF, 8_000)]
    assert answer(sound, output_rate=24_000) == [Samples(HALF, 24_000)]
    assert answer({"text": "Yes.", "audio": sound, "sample_rate": 8_000}) == [
        Words("Yes."),
        Samples(HALF, 8_000),
    ]
    assert answer({"text": "Yes."}) == [Words("Yes.")]


def test_text_and_files_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "reply of today.wav"
    path.write_bytes(wav())
    assert answer(str(path)) == answer(path) == [File(str(path))]
    (tmp_path / "Paris").write_bytes(wav())
    monkeypatch.chdir(tmp_path)
    for words in ("Paris", "Yes, in reply.wav", "a " * 5_000 + ".wav", "\0 .wav", "\0"):
        assert answer(words) == [Words(words)]
    assert answer("") == [Words("")]
    assert answer(wav()) == [File(wav())]
    assert answer(None) == []


def test_pieces_come_as_they_are_made() -> None:
    made: list[str] = []

    def function(sound: Any, rate: int) -> Iterator[str]:
        for word in ("one", "two"):
            made.append(word)
            yield word

    pieces = replies(function, [0.0], RATE, {})
    assert next(pieces) == Words("one")
    assert made == ["one"]
    assert list(pieces) == [Words("two")]


async def _later(sound: Any, rate: int) -> Any:
    return (word for word in ("one", "two"))


async def _bit_by_bit(sound: Any, rate: int) -> Any:
    yield "one"
    yield "two"


@pytest.mark.parametrize("function", [_later, _bit_by_bit])
def test_functions_with_async_are_run_to_their_end(function: Callable[..., Any]) -> None:
    assert list(replies(function, [0.0], RATE, {})) == [Words("one"), Words("two")]


# How it is found


def test_a_function_is_found_in_a_file_or_a_module(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: 'int'\n"
        "def e2e_evaluation(sound, rate): return 'default'\ndef other(sound, rate): return A(1).x\n"
        "number = 3\n"
    )
    assert load("model.py", tmp_path)(None, 1) == "default"
    assert load("model.py:other", tmp_path)(None, 1) == 1
    assert load(f"{tmp_path}/model.py", Path("/"))(None, 1) == "default"
    assert load("json:dumps", tmp_path) is json.dumps
    assert split("C:/x.py:f") == ("C:/x.py", "f")
    for target, words in [
        ("model.py:nobody", "model.py: nobody is missing"),
        ("model.py:number", "model.py: number is not a function"),
        ("nowhere.py", "nowhere.py: no such file"),
    ]:
        with pytest.raises(CallableError, match=words):
            load(target, tmp_path)


def test_an_exception_is_one_line_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def f(sound, rate):\n    raise ValueError('no\\nway')\n")
    with pytest.raises(ValueError, match="no") as caught:
        list(replies(load("model.py:f", tmp_path), [0.0], RATE, {}))
    assert explained(caught.value) == "ValueError: no\nway (model.py, line 2)"
    assert explained(KeyError()) == "KeyError"
    with pytest.raises(CallableError) as other:
        answer(3)
    assert explained(other.value).startswith("returned int, not a list")


# As a program

MODEL = """
import sys
print("loading")

def e2e_evaluation(question, rate):
    waveform, own = question
    print("thinking", own == rate)
    assert sys.stdin.read() == ""
    return waveform

def say(question, rate, text=None, history=()):
    yield f"{text} {len(history)} {len(history[0]['audio'][0])}"
    yield {"audio": [0.0, 0.5], "sample_rate": 8000}

def fail(question, rate):
    raise ValueError("boom")

def leave(question, rate):
    sys.exit("bye")

def encoded(question, rate):
    return open("reply.wav", "rb").read()

def named(question, rate):
    return "reply.wav"
"""


@contextmanager
def served(
    folder: Path, target: str, python: str | Path = sys.executable
) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Run the script; gives a function that asks it one question and returns its lines."""
    (folder / "model.py").write_text(MODEL)
    (folder / "question.wav").write_bytes(wav())
    (folder / "reply.wav").write_bytes(wav(HALF, 8_000))
    command = [python, SCRIPT, target, "--waveform", "list"]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready == {"event": "ready", "name": target}

    def ask(**more: Any) -> list[dict[str, Any]]:
        assert process.stdin is not None
        assert process.stdout is not None
        question = {"id": "7", "audio": str(folder / "question.wav"), "history": [], **more}
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        lines: list[dict[str, Any]] = []
        while not lines or lines[-1]["event"] not in {"done", "error"}:
            lines.append(json.loads(process.stdout.readline()))
        assert {line.pop("id") for line in lines} == {"7"}
        return lines

    try:
        yield ask
    finally:
        _, complaints = process.communicate()
    assert process.returncode == 0, complaints


def _pythons() -> list[Any]:
    old = old_python()
    skip = pytest.mark.skipif(old is None, reason="no Python below 3.11 on this machine")
    return [pytest.param(sys.executable, id="this"), pytest.param(old, id="old", marks=skip)]


@pytest.mark.parametrize("python", _pythons())
def test_voxevals_call_is_served_by_any_python_without_a_library(
    tmp_path: Path, python: Path
) -> None:
    with served(tmp_path, "model.py", python) as ask:
        for _ in range(2):
            sound, done = ask()
            assert base64.b64decode(sound["pcm_b64"])[:6] == PCM[:6]
            assert (sound["sample_rate"], done) == (RATE, {"event": "done"})


@pytest.mark.parametrize("python", _pythons())
def test_a_served_function_may_do_all_that_is_written_down(tmp_path: Path, python: Path) -> None:
    past = {"role": "user", "text": None, "audio": str(tmp_path / "question.wav")}
    with served(tmp_path, "model.py:say", python) as ask:
        words, sound, _ = ask(text="Which?", history=[past])
    assert words["text"] == "Which? 1 4"
    assert (base64.b64decode(sound["pcm_b64"]), sound["sample_rate"]) == (HALF, 8_000)
    with served(tmp_path, "model.py:fail", python) as ask:
        (error,) = ask()
        assert error["text"].startswith("ValueError: boom (model.py, line ")
        assert ask() == [error]  # it goes on
    with served(tmp_path, "model.py:leave", python) as ask:
        assert "SystemExit: bye" in ask()[0]["text"]
    with served(tmp_path, "model.py:named", python) as ask:
        assert ask()[0]["path"] == str(tmp_path / "reply.wav")
    with served(tmp_path, "model.py:encoded", python) as ask:
        first = Path(ask()[0]["path"])
        assert first.read_bytes() == wav(HALF, 8_000)
        second = Path(ask()[0]["path"])
        assert second.is_file()
        assert not first.exists() or first == second
    assert not second.exists()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere.py:f", "serve_callable: nowhere.py: no such file"),
        ("model.py:nobody", "serve_callable: model.py: nobody is missing"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path: Path, target: str, words: str) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    command = [sys.executable, str(SCRIPT), target, "--waveform", "list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == words

"""Serves one Python function to `kind = "exec"`: questions in on stdin, lines of a reply on stdout.

    python serve_callable.py FILE.py[:function] [--waveform torch|numpy|list]

Standard library only, Python 3.8 or newer: it runs in the environment of a model, where voxmeter
need not be installed. The function is called as `e2e_evaluation((waveform, rate), rate)`, which is
how VoxEval calls its models; `docs/endpoints/exec.md` says what it may return.
"""

# ruff: noqa: UP007, UP035 - what is evaluated here must be so on Python 3.8 as well
from __future__ import annotations

import argparse
import asyncio
import base64
import importlib
import importlib.util
import inspect
import io
import json
import numbers
import os
import sys
import tempfile
import traceback
import wave
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Callable, NamedTuple, Union

DEFAULT_FUNCTION = "e2e_evaluation"
WAVEFORMS = ("auto", "torch", "numpy", "list")
EXTRAS = ("text", "instructions", "history", "voice", "temperature", "model")
"""Fields of a request that a function gets as keyword arguments, if it has such parameters."""

_MAGIC = (b"RIFF", b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".opus", ".m4a")
_LOUDEST = 2.0  # floats a little over 1 are clipped; far over it they are not from -1 to 1 at all


class Words(NamedTuple):
    """A piece of the reply's text."""

    text: str


class Samples(NamedTuple):
    """A piece of the reply's sound: 16-bit little-endian mono, and its rate."""

    pcm: bytes
    rate: int


class File(NamedTuple):
    """The reply's sound as the path of an audio file, or as the bytes of one."""

    file: Union[str, bytes]


Piece = Union[Words, Samples, File]


class CallableError(Exception):
    """What was asked for cannot be called, or returned what nobody can hear or read."""


def load(target: str, folder: Path) -> Callable[..., Any]:
    """Return the function of a file or a module.

    Args:
        target: `FILE.py:function` or `module:function`, or without `:function`.
        folder: Where a relative path starts.

    Raises:
        CallableError: If there is no such function. What its module raises comes through.
    """
    place, name = split(target)
    module = _from_file(folder / place) if place.endswith(".py") else importlib.import_module(place)
    function = getattr(module, name, None)
    if not callable(function):
        found = "is not a function" if hasattr(module, name) else "is missing"
        raise CallableError(f"{place}: {name} {found}")
    loaded: Callable[..., Any] = function
    return loaded


def split(target: str) -> tuple[str, str]:
    """Return module or file, and the function's name."""
    place, colon, name = target.rpartition(":")
    return (place, name) if colon else (target, DEFAULT_FUNCTION)


def chosen(kind: str) -> str:
    """Return `torch`, `numpy` or `list`, with that library imported; `auto` is the first there."""
    for name in ("torch", "numpy") if kind == "auto" else (kind,):
        if name != "list" and (kind != "auto" or _installed(name)):
            importlib.import_module(name)
            return name
    return "list"


def waveform(data: bytes, kind: str) -> tuple[Any, int]:
    """Return the sound of a WAV file of ours as a function wants it, and its rate.

    Args:
        data: 16-bit mono, as voxmeter writes it.
        kind: `torch` and `numpy` give floats of shape (1, n), `list` an `array` of n floats.
    """
    with wave.open(io.BytesIO(data), "rb") as file:
        rate, pcm = file.getframerate(), file.readframes(file.getnframes())
    whole = array("h", pcm)
    if kind == "list":
        return array("f", (sample / 32768.0 for sample in whole)), rate
    library = importlib.import_module(kind)
    make = getattr(library, "asarray", None) or library.tensor  # torch before 1.11
    row = make(whole, dtype=library.int16).reshape(1, -1)
    return (row.float() if kind == "torch" else row.astype(library.float32)) / 32768.0, rate


def replies(
    function: Callable[..., Any],
    sound: Any,  # noqa: ANN401 - whatever the function's library calls a waveform
    rate: int,
    request: dict[str, Any],
) -> Iterator[Piece]:
    """Call a function with one question and yield what it answers, piece by piece.

    Args:
        function: A function, a generator, or either of them with `async`.
        sound: The question's waveform.
        rate: Its samples a second.
        request: Its other fields; `output_rate` is that of samples that come without a rate.

    Raises:
        CallableError: If it returns what is no reply.
        BaseException: Whatever the function raises.
    """
    extras = {name: request.get(name) for name in EXTRAS if name in _parameters(function)}
    if request.get("text") and "text" not in extras:
        raise CallableError("was asked in writing beside the audio, but has no parameter `text`")
    for value in _values(function((sound, rate), rate, **extras)):
        yield from _pieces(value, request.get("output_rate") or rate)


def explained(error: BaseException) -> str:
    """Return an exception as one line, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, CallableError) or not frames:
        return str(error) or words
    return f"{words} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def _from_file(path: Path) -> Any:  # noqa: ANN401 - a module, whose content is anyone's
    if not path.is_file():
        raise CallableError(f"{path}: no such file")
    name = f"served_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, str(path))
    if spec is None or spec.loader is None:
        raise CallableError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    spec.loader.exec_module(module)
    return module


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # a stand-in without a spec
        return False


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Return the names of a function's parameters behind the first two."""
    try:
        known = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins have none
        return set()
    takes_all = any(one.kind is one.VAR_KEYWORD for one in known)
    return set(EXTRAS) if takes_all else {one.name for one in known[2:]}


def _values(result: Any) -> Iterator[Any]:  # noqa: ANN401 - anything a function may return
    """Yield what a call returned; generators and coroutines are run to their end."""
    if not inspect.isawaitable(result) and not inspect.isasyncgen(result):
        yield from result if inspect.isgenerator(result) else [result]
        return
    loop = asyncio.new_event_loop()
    try:
        if inspect.isawaitable(result):
            yield from _values(loop.run_until_complete(result))
        while inspect.isasyncgen(result):
            yield loop.run_until_complete(result.__anext__())
    except StopAsyncIteration:
        return
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _pieces(value: Any, rate: int) -> Iterator[Piece]:  # noqa: ANN401 - anything
    if value is None:
        return
    if isinstance(value, dict):
        yield from _of_fields(value, rate)
    elif isinstance(value, str):
        yield _file_or_words(value)
    elif isinstance(value, os.PathLike):
        yield File(_there(os.fspath(value)))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        yield _of_bytes(bytes(value), rate)
    elif isinstance(value, tuple) and len(value) == 2 and any(_is_number(one) for one in value):
        sound, own = value if _is_number(value[1]) else (value[1], value[0])
        yield from _pieces(sound, _rate(own))
    else:
        yield Samples(pcm16(value), rate)


def _of_fields(value: dict[str, Any], rate: int) -> Iterator[Piece]:
    unknown = set(value) - {"text", "audio", "sample_rate"}
    if unknown:
        found = ", ".join(sorted(map(str, unknown)))
        raise CallableError(f"returned a dict with {found}; text, audio and sample_rate are known")
    if value.get("text") is not None:
        yield Words(str(value["text"]))
    own = value.get("sample_rate")
    yield from _pieces(value.get("audio"), rate if own is None else _rate(own))


def _file_or_words(value: str) -> Piece:
    named = value.lower().endswith(_SUFFIXES)  # other words may be names of files by chance
    if not named or (any(map(str.isspace, value)) and not os.path.isfile(value)):  # noqa: PTH113
        return Words(value)  # Path.is_file() raises for a name that is too long
    return File(_there(value))


def _there(path: Any) -> str:  # noqa: ANN401 - what os.fspath gives
    if not Path(path).is_file():
        raise CallableError(f"returned the path {str(path)[:200]!r}, where no file is")
    return str(Path(path).resolve())


def _of_bytes(data: bytes, rate: int) -> Piece:
    if data.startswith(_MAGIC):
        return File(data)
    if len(data) % 2:
        raise CallableError(f"returned {len(data)} bytes, neither an audio file nor 16-bit samples")
    return Samples(data, rate)


def _is_number(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _rate(value: Any) -> int:  # noqa: ANN401
    if not _is_number(value) or not 1000 <= value <= 768000:
        raise CallableError(f"returned the rate {value!r}; samples a second are wanted")
    return int(round(value))  # noqa: RUF046 - round() of a numpy float is no int


def pcm16(value: Any) -> bytes:  # noqa: ANN401 - a tensor, an array, numbers
    """Return samples as 16-bit little-endian mono; channels are mixed.

    Args:
        value: A torch tensor or a numpy array of shape (n,), (channels, n) or (n, channels), or a
            list of numbers: floats from -1 to 1, or 16-bit integers.

    Raises:
        CallableError: If it is anything else.
    """
    if hasattr(value, "detach"):  # torch: numpy knows no bfloat16 and reads no GPU
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() else value
    if (hasattr(value, "__array__") or isinstance(value, (list, tuple))) and _installed("numpy"):
        return _of_array(importlib.import_module("numpy").asarray(value))
    return _of_numbers(value.tolist() if hasattr(value, "tolist") else value)


def _of_array(samples: Any) -> bytes:  # noqa: ANN401 - a numpy array
    numpy = importlib.import_module("numpy")
    if samples.dtype.kind not in "fi":
        raise _no_sound(f"an array of {samples.dtype}")
    whole = samples.dtype.kind == "i"
    if not samples.size:
        return b""
    if samples.ndim > 1:
        samples = samples.reshape([size for size in samples.shape if size != 1] or [1])
    if samples.ndim == 2:
        samples = samples.mean(axis=0 if samples.shape[0] <= samples.shape[1] else 1)
    if samples.ndim != 1:
        raise _no_sound(f"an array of shape {samples.shape}")
    loudest = float(numpy.abs(samples.astype(numpy.float64)).max())  # nan stays nan
    scaled = samples.astype(numpy.float64) * _scale(loudest, whole)
    return bytes(numpy.clip(numpy.rint(scaled), -32768, 32767).astype("<i2"))


def _of_numbers(value: Any) -> bytes:  # noqa: ANN401 - a list, if all is well
    while isinstance(value, (list, tuple)) and len(value) == 1 and not _is_number(value[0]):
        value = value[0]
    if not isinstance(value, (list, tuple)) or not all(map(_is_number, value)):
        raise _no_sound(f"{type(value).__name__}, not a list of numbers")
    whole = all(isinstance(one, int) for one in value)
    scale = min((_scale(abs(one), whole) for one in value), default=1.0)
    return array("h", (max(-32768, min(32767, round(one * scale))) for one in value)).tobytes()


def _scale(loudest: float, whole: bool) -> float:  # noqa: FBT001 - one of two kinds of number
    """Return what samples are multiplied with, after a look at the loudest."""
    if not loudest <= (32768 if whole else _LOUDEST):  # so that nan is caught as well
        raise _no_sound(f"{'integers' if whole else 'floats'} up to {loudest:.0f}")
    return 1.0 if whole else 32768.0


def _no_sound(found: str) -> CallableError:
    wanted = "floats from -1 to 1 or 16-bit integers, of shape (n,) or (channels, n)"
    return CallableError(f"returned {found}; sound must be {wanted}")


def main(arguments: list[str] | None = None) -> int:
    """Load the function, say `ready`, answer until standard input ends."""
    parser = argparse.ArgumentParser(description="Serve a Python function to voxmeter.")
    parser.add_argument("target", help="FILE.py:function, or module:function")
    parser.add_argument("--waveform", choices=WAVEFORMS, default="auto", help="what it is given")
    args = parser.parse_args(arguments)
    requests, out = _streams()
    place = split(args.target)[0]
    # As Python does for a script: its neighbours can be imported, ours cannot.
    sys.path[0] = str(Path(place).resolve().parent if place.endswith(".py") else Path.cwd())
    try:
        kind = chosen(args.waveform)
        function = load(args.target, Path())
    except CallableError as error:
        print(f"serve_callable: {error}", file=sys.stderr)
        return 2
    with requests, out, tempfile.TemporaryDirectory(prefix="voxmeter-") as folder:
        _say(out, event="ready", name=args.target)
        for line in iter(requests.readline, b""):
            _answer(function, json.loads(line.decode("utf-8")), kind, Path(folder), out)
    return 0


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the streams of the protocol, and keep the function's own prints away from them."""
    requests, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, out


def _answer(
    function: Callable[..., Any],
    request: dict[str, Any],
    kind: str,
    folder: Path,
    out: BinaryIO,
) -> None:
    name = request["id"]
    for old in folder.iterdir():
        old.unlink()
    try:
        for turn in request.get("history", ()):
            if turn["audio"] is not None:
                turn["audio"] = waveform(Path(turn["audio"]).read_bytes(), kind)
        sound, rate = waveform(Path(request["audio"]).read_bytes(), kind)
        for piece in replies(function, sound, rate, request):
            if isinstance(piece, Words):
                _say(out, id=name, event="text", text=piece.text)
            elif isinstance(piece, Samples):
                encoded = base64.b64encode(piece.pcm).decode("ascii")
                _say(out, id=name, event="audio", pcm_b64=encoded, sample_rate=piece.rate)
            else:
                _say(out, id=name, event="audio", path=_kept(piece.file, folder))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: whatever it raises is its answer
        traceback.print_exc()
        _say(out, id=name, event="error", text=explained(error))
    else:
        _say(out, id=name, event="done")


def _kept(file: str | bytes, folder: Path) -> str:
    """Return the path of an audio file; bytes are written to one first."""
    if isinstance(file, str):
        return file
    handle, path = tempfile.mkstemp(dir=str(folder))
    with os.fdopen(handle, "wb") as stream:
        stream.write(file)
    return path


def _say(out: BinaryIO, **line: Any) -> None:  # noqa: ANN401 - fields of a JSON line
    out.write(json.dumps(line).encode("ascii") + b"\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())

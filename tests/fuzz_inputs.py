"""Feeds any bytes to whatever reads what others wrote: audio, configuration, JSON lines, judges.

    python tests/fuzz_inputs.py TARGET CORPUS -max_total_time=60

runs one target under atheris; `make fuzz` runs all, and `tests/test_fuzz_inputs.py` plays the seeds
in every test run. What a target raises that is none of the errors it may raise is a fault; so is an
input that takes long, or memory without bound (`-timeout`, `-rss_limit_mb`).
"""

from __future__ import annotations

import atexit
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxmeter.endpoints.events import Encoding

TESTS = Path(__file__).parent
_PROTOCOLS = ("single", "pair", "binary", "json")
_FILES = (
    *("run.json", "items.jsonl", "trials.jsonl", "scores.jsonl", "transcripts.jsonl"),
    "workers.jsonl",
)


@cache
def _file(name: str) -> Path:
    return _folder() / name


@cache
def _folder() -> Path:
    """Return a folder that is there until this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _written(name: str, data: bytes) -> Path:
    path = _file(name)
    path.write_bytes(data)
    return path


def audio(data: bytes) -> None:
    """Read a file as a clip and as a reply; its length is bounded by a limit, not by its header."""
    from voxmeter.client import audio as reader
    from voxmeter.client import reply_files
    from voxmeter.endpoints.errors import ClipError

    with suppress(ClipError):
        pcm = reader.decode(data, "x", limit_s=20)
        assert len(pcm.samples) <= 20 * pcm.rate
        reader.resample(pcm, 16_000)
        reader.to_pcm16(pcm.samples)
    with suppress(ClipError):
        reply_files.decoded(data[:200_000], "x")


def stream(data: bytes) -> None:
    """Decode a stream in two pieces, by the encoding that the first byte names."""
    from voxmeter.client import encodings
    from voxmeter.endpoints.errors import MissingExtraError

    if len(data) < 3:
        return
    names: Sequence[Encoding] = ("pcm16", "pcmu", "pcma", "opus", "aac")
    with suppress(ValueError, RuntimeError, MissingExtraError, ImportError):
        decoder = encodings.decoder(
            names[data[0] % len(names)], (8000, 24_000, 48_000)[data[1] % 3]
        )
        cut = len(data) // 2
        for piece in (data[2:cut], data[cut:]):
            decoder.decode(piece)


def config(data: bytes) -> None:
    """Load a bench.toml."""
    from voxmeter.client import config as reader
    from voxmeter.endpoints.errors import UserError

    with suppress(UserError):
        bench = reader.load(_written("bench.toml", data))
        reader.reread(reader.resolved(bench), "run.json")


def lines(data: bytes) -> None:
    """Read a suite, answers made elsewhere, and the files of a run folder."""
    from voxmeter.client import jsonlines
    from voxmeter.client.import_answers import Answers
    from voxmeter.endpoints.errors import UserError
    from voxmeter.suites import catalog

    path = _written("items.jsonl", data)
    with suppress(UserError):
        for item in catalog.load("jsonl", "s", {"path": str(path)}, Path()).items:
            json.dumps(item.row())
    with suppress(UserError):
        Answers(path, "place")
    with suppress(UserError):
        list(jsonlines.read(path, lambda _: None))


def run_folder(data: bytes) -> None:
    """Summarise a run folder of which one file is anything."""
    from voxmeter.client.report import summarised, text_of
    from voxmeter.client.runfolder import RunFolder
    from voxmeter.endpoints.errors import UserError

    whole = _sample()
    if not data:
        return
    folder = _file("run")
    folder.mkdir(exist_ok=True)
    for name in _FILES:
        (folder / name).write_bytes(whole[name])
    (folder / _FILES[data[0] % len(_FILES)]).write_bytes(data[1:])
    with suppress(UserError), redirect_stderr(io.StringIO()), RunFolder.open(folder) as opened:
        summarised(opened)
        for form in ("md", "csv", "json"):
            for _ in text_of(form, [opened]):
                pass


@cache
def _sample() -> Mapping[str, bytes]:
    """Return the files of a small run folder."""
    sys.path.insert(0, str(TESTS))
    from sample_run import build, item, score, trial

    rows = [trial("q0", first_audible_ms=400.0), trial("q1", "timeout")]
    run = {"config": {"endpoint": [{"name": "bot"}], "suite": [{"kind": "demo"}]}}
    texts = [
        {"key": rows[0]["key"], "attempt": 1, "text": "B.", "language": "en"}
        | {"model": "tiny.en", "model_hash": "00", "settings": {}}
    ]
    parent = _folder()
    with build(parent, [item("q0"), item("q1")], rows, [score(rows[0])], texts, run) as folder:
        started = {"worker": "h:1", "host": "h", "what": "started"}
        folder.append("workers", started)
        folder.append("workers", started | {"what": "died", "why": "no answer"})
        return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


def judgement(data: bytes) -> None:
    """Read a judge's reply by every protocol and prompt."""
    from voxmeter.scoring import rubrics
    from voxmeter.scoring.judge_messages import Case, ask_again, messages
    from voxmeter.scoring.judgement import read_judgement
    from voxmeter.scoring.judging import Said, read_reply

    text = data.decode("utf-8", "surrogateescape")
    for protocol in _PROTOCOLS:
        read_judgement(text, protocol)  # type: ignore[arg-type]
    case = Case(text, text, references=(text,), told=text, options=("x", text), choice=True)
    names = rubrics.shipped()
    rubric = rubrics.rubric(names[len(data) % len(names)])
    found = read_reply(rubric, case, "response-first", Said(text, "stop", "m", None, None, 1))
    if found.value is not None:
        assert rubric.low <= found.value <= rubric.high or rubric.protocol in {"binary", "label"}
    asked = messages(rubric, case, "response-first")
    ask_again(rubric, asked, text, "x")


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "audio": audio,
    "stream": stream,
    "config": config,
    "lines": lines,
    "run_folder": run_folder,
    "judgement": judgement,
}


def seeds(target: str) -> Iterator[bytes]:
    """Yield inputs from which a target begins: whole and well-made ones."""
    match target:
        case "audio":
            yield from _sounds()
        case "stream":
            yield from (bytes([number, 1]) + bytes(range(200)) for number in range(3))
            for path in sorted((TESTS.parent / "suites" / "demo_items").glob("*.ogg"))[:2]:
                yield b"\x03\x02" + path.read_bytes()[:20_000]
        case "config":
            yield (TESTS.parent / "bench.toml").read_bytes()
            for path in sorted((TESTS.parent / "docs").rglob("*.md")):
                blocks = path.read_text().split("```toml\n")[1:]
                yield from (block.split("```")[0].encode() for block in blocks)
        case "lines":
            yield (TESTS.parent / "suites" / "demo_items" / "items.jsonl").read_bytes()
            yield b'{"id": "q", "text": "Is it?", "kind": "yes-no", "reference": "yes"}\n'
            yield b'{"id": "q", "audio": "a.wav", "suite": "s", "condition": "c", "trial": 1}\n'
        case "run_folder":
            yield from (bytes([at]) + _sample()[name] for at, name in enumerate(_FILES))
        case _:
            yield from (b"7", b"[[8]]", b"Score: 7/10", b'{"score": 3}', b"8 6", b"yes", b"B.")
            yield "评分:8".encode()
            yield b"<think>10</think> The answer is (B). Rating: 5"


def _sounds() -> Iterator[bytes]:
    import numpy as np
    import soundfile

    tone = (np.sin(np.arange(4000) / 5) * 8000).astype(np.int16)
    for form, subtype in (
        *(("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAV", "ULAW"), ("WAVEX", "PCM_24")),
        *(("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")),
        *(("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16"), ("W64", "PCM_16")),
    ):
        file = io.BytesIO()
        soundfile.write(file, tone, 16_000, format=form, subtype=subtype)
        yield file.getvalue()


def _main() -> None:
    sys.path += os.environ.get("ATHERIS", "").split(os.pathsep)
    import atheris

    target, corpus = sys.argv[1], Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    files = corpus.with_name(f"{corpus.name}-files")  # the fuzzer ends without leave to clear up
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    tempfile.tempdir = str(files)
    with atheris.instrument_imports(include=["voxmeter"], enable_loader_override=False):
        for number, data in enumerate(seeds(target)):
            (corpus / f"seed-{number}").write_bytes(data)
            TARGETS[target](data)  # imports what it needs
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    _main()

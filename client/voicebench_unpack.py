"""Unpacks VoiceBench: its Parquet files become lists of questions and sound files, once.

The download is read a few rows at a time; sound is written as it is in there, byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from voxmeter.client.jsonlines import disk, dump
from voxmeter.endpoints.errors import MissingExtraError, UserError

_LIMIT_MIB = 1024
"""Most that a group of rows may unpack to."""
_FILE = re.compile(r"(?P<split>.+?)(?:-\d{5}-of-\d{5})?\.parquet")
_SOUNDS = (
    (re.compile(rb"RIFF.{4}WAVE", re.DOTALL), ".wav"),
    (re.compile(rb"fLaC"), ".flac"),
    (re.compile(rb"OggS"), ".ogg"),
    (re.compile(rb"ID3|\xff[\xe0-\xff]"), ".mp3"),
)


def unpack(source: Path, output: Path) -> Mapping[str, int]:
    """Write every split's list and sounds; return the rows of each, as `subset/split`.

    Args:
        source: The download: a folder for each subset, with Parquet files in it.
        output: Folder of the same subsets, each with `<split>.jsonl` and a folder of sounds.

    Raises:
        MissingExtraError: If pyarrow is not installed.
        UserError: If there is no Parquet file, one cannot be read, or the disk is full.
    """
    splits: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(source.glob("*/*.parquet")):
        found = _FILE.fullmatch(path.name)
        if found:
            splits.setdefault((path.parent.name, found["split"]), []).append(path)
    if not splits:
        raise UserError(
            str(source),
            "holds no Parquet files, such as alpacaeval_full/test-00000-of-00001.parquet",
            "give the folder of the download",
        )
    counts: dict[str, int] = {}
    for (subset, split), paths in splits.items():
        sounds = output / subset / split
        written = output / subset / f".{split}.jsonl.part"
        with disk(sounds):
            sounds.mkdir(parents=True, exist_ok=True)
        with disk(written), written.open("w", encoding="utf-8") as file:
            counts[f"{subset}/{split}"] = _write(paths, sounds, file)
        written.replace(output / subset / f"{split}.jsonl")
    return counts


def _write(paths: list[Path], sounds: Path, file: TextIO) -> int:
    count = 0
    for path in paths:
        for row in _rows(path):
            sound = row.pop("audio", None)
            name = _sound(sound, sounds, count, path)
            file.write(dump({"audio": name, **row}))
            count += 1
    return count


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError(str(path), "the package pyarrow", "parquet") from error
    try:
        with parquet.ParquetFile(path) as opened:
            _check_sizes(path, opened.metadata)
            for batch in opened.iter_batches(batch_size=1):  # one sound may be a whole group's
                yield from batch.to_pylist()
    except (ArrowException, OSError, MemoryError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(str(path), f"cannot be read ({first})", "download it again") from error


def _check_sizes(path: Path, told: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse a file that says it unpacks to more than this machine should hold."""
    for number in range(told.num_row_groups):
        size = told.row_group(number).total_byte_size
        if not 0 <= size <= _LIMIT_MIB * 2**20:
            found = f"rows of it unpack to {size / 2**20:.0f} MiB; at most {_LIMIT_MIB} are read"
            raise UserError(str(path), found, "write it with smaller row groups")


def _sound(sound: object, sounds: Path, number: int, path: Path) -> str:
    """Write one sound; return its name from the folder of the list."""
    from voxmeter.client.audio import LIMIT_BYTES, write_whole

    data = sound.get("bytes") if isinstance(sound, Mapping) else None
    if not isinstance(data, bytes):
        raise UserError(str(path), f"row {number} has no sound in it", "download it again")
    if len(data) > LIMIT_BYTES:
        found = f"the sound of row {number} is over {LIMIT_BYTES // 2**20} MiB"
        raise UserError(str(path), found, "download it again")
    ending = next((one for start, one in _SOUNDS if start.match(data)), ".wav")
    name = f"{number:05d}{ending}"
    write_whole(sounds / name, data)
    return f"{sounds.name}/{name}"

"""Files of JSON lines survive whatever happened to the last writer."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from voxmeter.client import jsonlines
from voxmeter.client.jsonlines import Appender, read
from voxmeter.endpoints.errors import UserError

ROWS: list[dict[str, Any]] = [{"key": f"q{number}", "text": "Größe\n"} for number in range(4)]


def _whole() -> bytes:
    return "".join(jsonlines.dump(row) for row in ROWS).encode()


def test_a_file_cut_at_any_byte_gives_whole_rows_and_takes_new_ones(tmp_path: Path) -> None:
    whole = _whole()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == 10]
    for size in range(len(whole) + 1):
        path = tmp_path / f"{size}.jsonl"
        path.write_bytes(whole[:size])
        rows = sum(size >= end - 1 for end in ends)  # a row that lacks only its line end is whole
        torn: list[str] = []
        assert list(read(path, torn.append)) == ROWS[:rows]
        is_torn = not any(size in {end - 1, end} for end in [0, *ends])
        assert len(torn) == is_torn
        with Appender(path, torn.append) as appender:
            appender.append({"key": "new"})
            appender.append({"key": "newer"})
        assert len(torn) == 2 * is_torn
        assert list(read(path)) == [*ROWS[:rows], {"key": "new"}, {"key": "newer"}]
        assert path.read_bytes().count(b"\n") == rows + 2


def test_a_row_torn_in_mid_key_is_cut_and_the_next_row_has_its_own_line(tmp_path: Path) -> None:
    """Case ST-07."""
    path = tmp_path / "results.jsonl"
    path.write_text('{"id": "q6"}\n{"id": "q7", "sco')
    torn: list[str] = []
    with Appender(path, torn.append) as appender:
        appender.append({"id": "q7"})
    assert path.read_text() == '{"id": "q6"}\n{"id":"q7"}\n'
    assert torn == [f"{path}: 17 bytes of a torn last line were cut"]


def test_a_torn_tail_longer_than_a_block_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"id":"q6"}\n{"id":"' + b"x" * 200_000)
    with Appender(path, lambda _: None) as appender:
        appender.append({"id": "q7"})
    assert path.read_bytes() == b'{"id":"q6"}\n{"id":"q7"}\n'


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b'{"a": 1}{"b": 2}', r"""'{"a": 1}{"b": 2}'"""),
        (b"[1]", "'[1]'"),
        (b'{"a": "\xff"}', '\'{"a": "\N{REPLACEMENT CHARACTER}"}\''),
        (b'{"a": \x1b[31m', r"""'{"a": \\x1b[31m'"""),
        (b'{"id": "q7", "sco{"id": "q8"}', """'{"id": "q7", "sco{"id": "q8"}'"""),
    ],
)
def test_a_damaged_line_in_the_middle_names_file_and_line(
    tmp_path: Path, line: bytes, shown: str
) -> None:
    """Case ST-08: rows glued together are told, never skipped."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"id": "q1"}\n' + line + b'\n{"id": "q3"}\n')
    rows = read(path)
    assert next(rows) == {"id": "q1"}
    with pytest.raises(UserError) as caught:
        next(rows)
    assert str(caught.value) == (
        f"{path}:2: not a JSON object: {shown}; restore the line or delete it; nothing was changed"
    )


def test_a_missing_file_has_no_rows_and_blank_lines_are_none(tmp_path: Path) -> None:
    assert list(read(tmp_path / "none.jsonl")) == []
    (tmp_path / "blank.jsonl").write_text('{"a": 1}\n\n{"a": 2}\n')
    assert list(read(tmp_path / "blank.jsonl")) == [{"a": 1}, {"a": 2}]


def test_a_disk_that_fills_up_in_mid_row_leaves_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    appender = Appender(path)
    appender.append({"id": "q1"})
    real = os.write
    calls: list[int] = []

    def filling(file: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, bytes(data)[:5])

    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(UserError, match="no space left on the disk; free some, then resume"):
        appender.append({"id": "q2"})
    monkeypatch.undo()
    assert path.read_text() == '{"id":"q1"}\n'
    appender.append({"id": "q3"})
    appender.close()
    assert [row["id"] for row in read(path)] == ["q1", "q3"]


def test_numbers_that_json_has_no_word_for_are_refused(tmp_path: Path) -> None:
    with Appender(tmp_path / "a.jsonl") as appender, pytest.raises(ValueError, match="JSON"):
        appender.append({"value": float("nan")})
    assert list(read(tmp_path / "a.jsonl")) == []


def test_half_a_surrogate_pair_is_written_and_read_back(tmp_path: Path) -> None:
    with Appender(tmp_path / "a.jsonl") as appender:
        appender.append({"text": "\ud83d"})
    assert list(read(tmp_path / "a.jsonl")) == [{"text": "\ud83d"}]
    assert json.loads((tmp_path / "a.jsonl").read_text()) == {"text": "\ud83d"}

"""VoiceBench's Parquet files become lists and sounds that the suite reads."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from attempt_logs import RATE, joined, silence, voice
from needs import needs_extra

from voxmeter.client import clips
from voxmeter.client.cli import main
from voxmeter.client.speakers import Speaker
from voxmeter.scoring.checks import Check
from voxmeter.suites import catalog, voicebench


def no_voice(name: str) -> Speaker:
    pytest.fail(f"nothing is spoken here, not even by {name}")


def sound(ms: int, kind: str = "WAV") -> bytes:
    file = io.BytesIO()
    whole = joined(silence(20), voice(ms), silence(20))
    soundfile.write(file, np.asarray(whole, np.float32), RATE, format=kind)
    return file.getvalue()


@pytest.fixture
def arrow() -> Any:
    return needs_extra("pyarrow", "parquet")


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    from pyarrow import Table
    from pyarrow import parquet as files

    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_table(Table.from_pylist(rows), path)


def heard(ms: int, kind: str = "WAV") -> dict[str, Any]:
    return {"bytes": sound(ms, kind), "path": None}


def download(root: Path) -> Path:
    parquet(
        root / "wildvoice" / "test-00000-of-00002.parquet",
        [{"audio": heard(100), "prompt": "One?"}, {"audio": heard(150, "FLAC"), "prompt": "Two?"}],
    )
    parquet(
        root / "wildvoice" / "test-00001-of-00002.parquet",
        [{"audio": heard(200, "MP3"), "prompt": "Three?"}],
    )
    parquet(
        root / "ifeval" / "test-00000-of-00001.parquet",
        [
            {
                "audio": heard(100),
                "prompt": "Write long, without commas.",
                "key": 1000,
                "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
                "kwargs": [
                    {"num_words": None, "relation": None},
                    {"num_words": 300, "relation": "at least"},
                ],
            }
        ],
    )
    return root


@pytest.mark.usefixtures("arrow")
def test_a_download_is_unpacked_once_and_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    argv = ["suites", "build", "voicebench", str(download(tmp_path / "in")), "-o", str(out)]
    assert main(argv) == 0
    told = capsys.readouterr().out
    assert "wildvoice/test: 3 questions" in told
    assert 'kind = "voicebench"' in told
    suite = catalog.load("voicebench", "vb", {"path": str(out)}, Path())
    wild = [item for item in suite.items if item.groups == ("wildvoice",)]
    assert [item.question for item in wild] == ["One?", "Two?", "Three?"]
    assert [item.files()[0].suffix for item in wild] == [".wav", ".flac", ".mp3"]
    assert [round(clips.render(item, no_voice).ms, -2) for item in wild[:2]] == [100, 200]
    (written,) = [item for item in suite.items if item.groups == ("ifeval",)]
    assert written.checks == (
        Check("punctuation:no_comma"),
        Check("length_constraints:number_words", {"num_words": 300, "relation": "at least"}),
    )
    assert [line for line in voicebench.verify(out) if "missing" in line] == []


@pytest.mark.usefixtures("arrow")
def test_a_damaged_file_and_a_row_without_sound_are_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in" / "bbh" / "test-00000-of-00001.parquet"
    argv = ["suites", "build", "voicebench", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    parquet(path, [{"audio": {"bytes": None, "path": "x.wav"}, "prompt": "Q?"}])
    assert main(argv) == 2
    assert "row 0 has no sound in it" in capsys.readouterr().err
    path.write_bytes(b"PAR1 and no more")
    assert main(argv) == 2
    assert "download it again" in capsys.readouterr().err
    assert not (tmp_path / "out" / "bbh" / "test.jsonl").exists()


def test_without_the_package_the_command_that_installs_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "in" / "bbh" / "test.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    argv = ["suites", "build", "voicebench", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "pip install 'voxmeter[parquet]'" in capsys.readouterr().err


def test_a_folder_without_parquet_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["suites", "build", "voicebench", str(tmp_path), "-o", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "holds no Parquet files" in capsys.readouterr().err

"""What is told before anything is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import voxmeter
from voxmeter.client.models import licences
from voxmeter.client.notice import lines

SOURCE = Path(voxmeter.__file__).parent.parent


def test_every_part_is_there_with_its_size_and_licence() -> None:
    text = "\n".join(lines())
    for row in licences():
        assert row.name in text
        assert row.licence in text
        assert f"{row.size_mb:.0f} MB" in text
    assert f"{sum(row.size_mb for row in licences()):.0f} MB" in text


def test_it_fits_a_terminal_of_usual_width() -> None:
    assert max(map(len, lines())) <= 120


def test_it_needs_nothing_but_python_itself() -> None:
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import runpy; "
    code += "runpy.run_module('voxmeter.client.notice', run_name='__main__')"
    bare = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(bare, capture_output=True, text=True, check=True)
    assert done.stdout == "\n".join(lines()) + "\n"
    assert done.stderr == ""


def test_the_makefile_shows_it_before_it_installs() -> None:
    made = (SOURCE.parent / "Makefile").read_text()
    assert "client.notice" in made or "client/notice" in made

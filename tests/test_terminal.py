"""What others wrote cannot harm a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client.terminal import human_bytes, human_seconds, printable, warn


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe 🙂 中文", "Größe 🙂 中文"),
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("two\nlines\r\n\tand a tab", "two\\nlines\\r\\n and a tab"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(), st.integers(min_value=3, max_value=20))
def test_any_text_is_one_line_and_not_too_long(text: str, limit: int) -> None:
    assert len(printable(text).splitlines()) <= 1
    assert len(printable("x" * len(text), limit)) <= limit
    printable(text).encode()


def test_a_warning_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    warn("a\x1bb")
    assert capsys.readouterr() == ("", "voxmeter: warning: a\\x1bb\n")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (25_000, "25 kB"), (3.2e9, "3.2 GB")],
)
def test_sizes_read_easily(count: float, shown: str) -> None:
    assert human_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (11_100, "3 h 05 min"),
        (259_140, "71 h 59 min"),
        (259_200, "3.0 days"),
        (13_078_000, "151 days"),
    ],
)
def test_durations_read_easily(seconds: float, shown: str) -> None:
    assert human_seconds(seconds) == shown

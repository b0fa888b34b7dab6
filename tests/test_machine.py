"""What a run remembers of the machine it was made on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from voxmeter.client.machine import load_average, machine, packages


def test_the_machine_is_described_and_no_person_or_path_is_named() -> None:
    found = machine()
    about = {"host", "system", "python", "processor", "cores", "memory_gib", "clock"}
    assert found.keys() == about
    assert "steps of" in found["clock"]
    assert found["cores"] == os.cpu_count()
    assert found["memory_gib"] > 0.1
    text = json.dumps(found)
    assert str(Path.home()) not in text
    assert "/" not in found["python"]


def test_versions_of_what_a_number_depends_on_are_told() -> None:
    found = packages()
    assert {"numpy", "websockets", "soxr"} <= found.keys()
    assert all(version[0].isdigit() for version in found.values())


def test_a_package_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxmeter.client.machine._PACKAGES", ("numpy", "no-such-package-here"))
    assert packages().keys() == {"numpy"}


def test_the_load_is_a_number_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_average() or 0.0) >= 0
    monkeypatch.delattr(os, "getloadavg")
    assert load_average() is None


def test_a_machine_that_tells_little_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Path, **how: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.delattr(os, "sysconf")
    found = machine()
    assert isinstance(found["processor"], str)
    assert found["memory_gib"] is None

"""What a test needs from the system: skip with the cure, or fail where everything must be there."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_ASTERISK = "/usr/share/asterisk/sounds/en_US_f_Allison"

PACKAGES = {
    "espeak-ng": ("espeak-ng", "espeak-ng"),
    "asterisk-core-sounds-en-wav": ("asterisk-core-sounds-en-wav", _ASTERISK),
    "openssl": ("openssl", "openssl"),
    "chromium": ("chromium", "chromium"),
    "pulseaudio": ("pulseaudio", "pulseaudio"),
    "pactl": ("pulseaudio-utils", "pactl"),
    "jackd": ("jackd2", "jackd"),
    "mosquitto": ("mosquitto", "mosquitto"),
    "alsa-utils": ("alsa-utils", "/usr/share/sounds/alsa/Front_Center.wav"),
}
"""Name -> Debian package, and the program or path that it brings."""


def needs(name: str) -> Path:
    """Return the path of a program or folder that a system package brings.

    Without it the test is skipped, with the command that installs it; under `CI=true`, where
    `.ci/run` has installed everything, it fails instead.
    """
    package, proof = PACKAGES[name]
    found = proof if proof.startswith("/") else shutil.which(proof)
    if found is not None and Path(found).exists():
        return Path(found)
    reason = f"needs {name}: apt-get install -y {package}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def needs_extra(package: str, extra: str) -> Any:
    """Return a Python package that an extra of ours installs; skip or fail as `needs`."""
    if find_spec(package) is not None:
        return import_module(package)
    reason = f"needs {package}: pip install 'voxmeter[{extra}]'"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)

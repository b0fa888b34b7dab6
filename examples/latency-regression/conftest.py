"""Where the assistant is, and how often it is asked."""

from __future__ import annotations

import os
from typing import Any

import pytest


@pytest.fixture(scope="session")
def assistant() -> Any:
    """What is asked; put your own here: a URL, or a table as in bench.toml.

    A whole table would be:

        {
            "kind": "openai-realtime",
            "url": "wss://host.example/v1/realtime",
            "model": "name-of-the-model",
            "api_key_env": "MY_API_KEY",
        }
    """
    return os.environ.get("ASSISTANT", "metronome?delay_ms=300&pacing=burst")


@pytest.fixture(scope="session")
def trials() -> int:
    """How often: more find smaller changes."""
    return int(os.environ.get("TRIALS", "20"))

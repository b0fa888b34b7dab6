"""Types of command-line arguments that several commands have."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """Return a whole number from 1 up.

    Raises:
        ArgumentTypeError: For anything else.
    """
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too small: use 1 or more")
    return number

"""Reply audio in files that an endpoint names: regular files of bounded size, and nothing else."""

from __future__ import annotations

import io
import os
import stat
import wave
from pathlib import Path

import numpy as np

from voxmeter.client.audio import Pcm, decode, to_pcm16
from voxmeter.endpoints.errors import ClipError


def reply(path: Path, limit: int) -> tuple[bytes, int]:
    """Return the samples of an audio file, and their rate.

    Args:
        path: Any format that a clip may have. A WAV file without samples is a silent reply.
        limit: Largest file that is read, bytes.

    Returns:
        16-bit little-endian mono samples, and samples a second.

    Raises:
        ClipError: If it is no regular file, is too large, or cannot be decoded.
    """
    return decoded(_content(path, limit), str(path))


def decoded(data: bytes, place: str) -> tuple[bytes, int]:
    """Return the samples of a whole audio file in memory; as `reply`.

    Args:
        data: The file.
        place: What to call it in errors.

    Raises:
        ClipError: If it cannot be decoded.
    """
    try:
        pcm = decode(data, place)
    except ClipError:
        silent = _silent(data)
        if silent is None:
            raise
        pcm = silent
    return to_pcm16(pcm.samples), pcm.rate


def _content(path: Path, limit: int) -> bytes:
    place = str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a device may already do something
            raise ClipError(place, "not a regular file")
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ClipError(place, "not a regular file")
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ClipError(place, reason[:1].lower() + reason[1:]) from None
    if len(data) > limit:
        raise ClipError(place, f"over {limit // 2**20} MiB (max_message_mib)")
    return data


def _silent(data: bytes) -> Pcm | None:
    """Return no samples, if the file is a WAV file that has none; None if it is anything else."""
    try:
        with wave.open(io.BytesIO(data), "rb") as file:
            if file.getnframes() == 0 and file.getframerate() > 0:
                return Pcm(np.zeros(0, dtype=np.float32), file.getframerate())
    except (wave.Error, EOFError, RuntimeError):  # RuntimeError: a chunk that begins before itself
        return None
    return None

"""Audio as samples: read any common file, resample, convert to the wire's form, write FLAC.

Everything inside the program is mono float32 in [-1, 1] with its rate beside it. Nothing is
converted silently: what had to be changed while reading stands in `Pcm.warnings`.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxmeter.client.decoding import mono
from voxmeter.client.jsonlines import disk
from voxmeter.endpoints.errors import ClipError

Samples = NDArray[np.float32]
"""Shape (n,): mono, in [-1, 1]."""

LIMIT_BYTES = 256 * 1024 * 1024
"""Largest audio file that is opened."""

LIMIT_S = 900.0
"""Longest clip that is decoded; a small file may claim or unpack to days."""


@dataclass(frozen=True, eq=False, slots=True)
class Pcm:
    """Mono audio.

    Attributes:
        samples: Shape (n,), float32 in [-1, 1], finite.
        rate: Samples a second.
        warnings: What was changed or doubtful while reading, one sentence each.
    """

    samples: Samples
    rate: int
    warnings: tuple[str, ...] = ()

    @property
    def ms(self) -> float:
        """Length in milliseconds."""
        return 1000 * len(self.samples) / self.rate


def read(path: Path | str, *, limit_s: float = LIMIT_S) -> Pcm:
    """Return the audio of a file as mono.

    Args:
        path: WAV, FLAC, Ogg (Vorbis, Opus), MP3, or whatever else libsndfile reads.
        limit_s: Longest audio that is accepted, in seconds.

    Returns:
        Every channel mixed to one by their mean, at the file's own rate, with warnings for
        whatever did not fit: channels mixed, a header that does not match the data, clipping.

    Raises:
        ClipError: If the file is missing, unreadable, empty, not audio, too long, or holds
            samples that are not finite. One line, without a line end.
    """
    place = str(path)
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ClipError(place, "not a regular file")
            if status.st_size > LIMIT_BYTES:
                raise ClipError(
                    place,
                    f"{status.st_size / 2**20:.0f} MiB; audio files over "
                    f"{LIMIT_BYTES // 2**20} MiB are not opened",
                )
            data = file.read(LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise ClipError(place, "no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ClipError(place, f"cannot be read ({reason})") from None
    return decode(data, place, limit_s=limit_s)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe, too, at once and not when somebody writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def decode(data: bytes, place: str, *, limit_s: float = LIMIT_S) -> Pcm:
    """Return the audio of a whole file that is already in memory; as `read`.

    Args:
        data: The file's bytes.
        place: What to call it in errors.
        limit_s: Longest audio that is accepted, in seconds.

    Raises:
        ClipError: As `read`.
    """
    warnings: list[str] = []
    samples, rate = mono(data, place, limit_s, warnings)
    return Pcm(samples, rate, tuple(warnings))


def resample(pcm: Pcm, rate: int) -> Pcm:
    """Return the audio at another rate, by soxr's high quality, in one piece.

    Args:
        pcm: The audio.
        rate: The rate wanted, in samples a second.

    Returns:
        `resampled_length(n, old, new)` samples; the same object when the rate is the same.
    """
    if rate == pcm.rate:
        return pcm
    import soxr

    wanted = resampled_length(len(pcm.samples), pcm.rate, rate)
    out = np.asarray(soxr.resample(pcm.samples, pcm.rate, rate, quality="HQ"), dtype=np.float32)
    return Pcm(np.clip(_fitted(out, wanted), -1.0, 1.0), rate, pcm.warnings)


def resampled_length(count: int, old: int, new: int) -> int:
    """Return how many samples `count` samples at rate `old` become at rate `new`, half up."""
    return (2 * count * new + old) // (2 * old)


def _fitted(samples: Samples, wanted: int) -> Samples:
    if len(samples) >= wanted:
        return samples[:wanted]
    return np.concatenate([samples, np.zeros(wanted - len(samples), dtype=np.float32)])


class StreamResampler:
    """One resampler for one stream; pieces go in as they come, and it is flushed only at the end.

    A gap between two pieces is no end: what the filter holds stays inside until more comes.
    """

    def __init__(self, old: int, new: int) -> None:
        import soxr

        self._old = old
        self._new = new
        self._stream = (
            soxr.ResampleStream(old, new, 1, dtype="float32", quality="HQ") if old != new else None
        )
        self._taken = 0
        self._given = 0
        self._ended = False

    def push(self, samples: Samples) -> Samples:
        """Return what is ready after these samples, shape (k,); often shorter, may be empty.

        Args:
            samples: Shape (n,), float32, the next piece at the old rate.

        Raises:
            ValueError: If the stream has been finished.
        """
        return self._step(samples, last=False)

    def finish(self) -> Samples:
        """Return the rest, shape (k,); the total is `resampled_length` of all that went in.

        Raises:
            ValueError: If the stream has been finished before.
        """
        rest = self._step(np.zeros(0, dtype=np.float32), last=True)
        self._ended = True
        wanted = resampled_length(self._taken, self._old, self._new)
        return _fitted(rest, max(0, wanted - (self._given - len(rest))))

    def _step(self, samples: Samples, *, last: bool) -> Samples:
        if self._ended:
            raise ValueError("the stream has been finished")
        piece = np.ascontiguousarray(samples, dtype=np.float32)
        self._taken += len(piece)
        if self._stream is None:
            out = piece
        else:
            out = np.asarray(self._stream.resample_chunk(piece, last=last), dtype=np.float32)
        self._given += len(out)
        return out


def to_pcm16(samples: NDArray[np.floating]) -> bytes:
    """Return 16-bit little-endian samples, rounded to nearest and clipped, never wrapped.

    Args:
        samples: Shape (n,) or (n, channels), float in [-1, 1]; 1.0 becomes 32767.

    Raises:
        ValueError: If a sample is not finite.
    """
    if not np.isfinite(samples).all():
        raise ValueError("samples that are not finite cannot be sent")
    scaled = np.rint(np.asarray(samples, dtype=np.float64) * 32768.0)
    return np.clip(scaled, -32768, 32767).astype("<i2").tobytes()


def from_pcm16(data: bytes | bytearray | memoryview) -> Samples:
    """Return the samples, shape (n,), of 16-bit little-endian mono audio; undoes `to_pcm16`.

    Raises:
        ValueError: If there is half a sample at the end (a stream's spare byte belongs to the
            next piece).
    """
    if len(data) % 2:
        raise ValueError(f"{len(data)} bytes are not whole 16-bit samples")
    return np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768.0)


def sha256(pcm: Pcm) -> str:
    """Return the hash of the decoded audio: the rate in ASCII, a line end, 16-bit samples.

    The same sound in another container has the same hash; ids and tags do not count.
    """
    digest = hashlib.sha256(f"{pcm.rate}\n".encode())
    digest.update(to_pcm16(pcm.samples))
    return digest.hexdigest()


def write_flac(path: Path, samples: Samples, rate: int) -> None:
    """Write 16-bit FLAC, whole or not at all: a temporary file beside it, then a rename.

    Args:
        path: The file; its folder exists.
        samples: Shape (n,), or (n, 2) for two channels; float in [-1, 1].
        rate: Samples a second.

    Raises:
        UserError: If the disk is full or the folder cannot be written to.
        ValueError: If a sample is not finite.
    """
    import soundfile

    shape = (-1,) if samples.ndim == 1 else (-1, samples.shape[1])
    whole = np.frombuffer(to_pcm16(samples), dtype="<i2").reshape(shape)
    buffer = io.BytesIO()
    soundfile.write(buffer, whole, rate, format="FLAC", subtype="PCM_16")
    write_whole(path, buffer.getbuffer())


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Write a file whole or not at all: a temporary file beside it, then a rename.

    Raises:
        UserError: If the disk is full or the folder cannot be written to.
    """
    with disk(path):
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

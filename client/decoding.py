"""The bytes of an audio file to mono samples, through libsndfile, in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from voxmeter.client import wav
from voxmeter.endpoints.errors import ClipError

if TYPE_CHECKING:
    import soundfile

    from voxmeter.client.audio import Samples

LIMIT_SAMPLES = 64_000 * 900
"""Most samples that are decoded, whatever the rate."""

_RATES = (4_000, 384_000)
_BLOCK = 4096  # frames decoded at a time: what came before a damaged place is kept
_LIMIT_CHANNELS = 64
_UNSCALED = 16.0  # a float file this far over full scale holds integers, not loud audio


def mono(data: bytes, place: str, limit_s: float, warnings: list[str]) -> tuple[Samples, int]:
    """Return the samples of a whole file, shape (n,), in [-1, 1], and their rate.

    Args:
        data: The file's bytes.
        place: What to call the file in errors.
        limit_s: Longest audio that is accepted, in seconds.
        warnings: Gets one sentence for whatever had to be changed or did not fit.

    Raises:
        ClipError: If there is no audio in it that can be used.
    """
    if not data:
        raise ClipError(place, "empty file (0 bytes)")
    if wav.is_wav(data):
        try:
            mended = wav.mend(data)
        except wav.WavError as error:
            raise ClipError(place, str(error)) from None
        data = mended.data
        warnings += mended.warnings
    elif data[:4] == b"OggS" and not _ogg_ends(data):
        warnings.append("the Ogg stream has no end mark; what is there was used (is it cut off?)")
    samples, rate = _decoded(data, place, limit_s, warnings)
    return _checked(samples, rate, place, warnings), rate


def _decoded(data: bytes, place: str, limit_s: float, warnings: list[str]) -> tuple[Samples, int]:
    """Decode block by block, mixing each down at once, so that memory stays bounded."""
    import soundfile

    try:
        file = soundfile.SoundFile(_Bytes(data))
    except (soundfile.SoundFileError, TypeError, ValueError) as error:
        raise ClipError(place, _not_audio(data, error)) from None
    with file:
        rate = int(file.samplerate)
        channels = int(file.channels)
        if not _RATES[0] <= rate <= _RATES[1]:
            raise ClipError(place, f"a rate of {rate} Hz; audio has {_RATES[0]} to {_RATES[1]}")
        if not 1 <= channels <= _LIMIT_CHANNELS:
            raise ClipError(place, f"{channels} channels; at most {_LIMIT_CHANNELS} are read")
        limit = min(int(limit_s * rate), LIMIT_SAMPLES)
        blocks: list[Samples] = []
        count = 0
        for block in _blocks(file, warnings):
            count += len(block)
            if count > limit:
                raise ClipError(
                    place, f"longer than {limit / rate:.0f} s; cut it into shorter clips"
                )
            blocks.append(block)
        if not count:
            raise ClipError(place, "; ".join(["holds no samples", *warnings]))
        if channels > 1:
            warnings.append(f"{channels} channels mixed down to one")
        promised = int(file.frames)
        if abs(promised - count) > max(_BLOCK, rate // 10) and promised < 2**62:
            warnings.append(
                f"the header says {promised / rate:.2f} s, {count / rate:.2f} s are there; "
                "those were used"
            )
    return np.concatenate(blocks), rate


class _Bytes(io.BytesIO):
    """Bytes for a decoder written in C, which may not be met with an exception."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, but stay where a damaged file would send the decoder before its start."""
        base = {io.SEEK_CUR: self.tell(), io.SEEK_END: len(self.getbuffer())}.get(whence, 0)
        if base + offset < 0:
            return self.tell()
        return super().seek(offset, whence)


def _blocks(file: soundfile.SoundFile, warnings: list[str]) -> Iterator[Samples]:
    """Yield mono blocks until the file ends or cannot be decoded any further."""
    import soundfile

    # Else it seeks to where it already is after every block, and the bits that an MP3 frame borrows
    # from those before it are lost.
    file.seekable = lambda: False
    while True:
        try:
            block = file.read(_BLOCK, dtype="float32", always_2d=True)
        except soundfile.SoundFileError as error:
            warnings.append(f"damaged or cut off; what decodes was used ({_reason(error)})")
            return
        if not len(block):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # found and named by _checked
            yield np.ascontiguousarray(block.mean(axis=1, dtype=np.float32))


def _checked(samples: Samples, rate: int, place: str, warnings: list[str]) -> Samples:
    """Return the samples within [-1, 1]; refuse what is not finite or not scaled."""
    finite = np.isfinite(samples)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise ClipError(
            place,
            f"{len(bad)} of {len(samples)} samples are not finite (NaN or infinite), "
            f"the first at {bad[0] / rate:.3f} s",
        )
    peak = float(np.abs(samples).max())
    if peak > _UNSCALED:
        raise ClipError(place, f"float samples reach {peak:.6g}; scale them to -1..1")
    if peak > 1.0:
        over = int((np.abs(samples) > 1.0).sum())
        if over > max(1, len(samples) // 1000):  # lossy decoders overshoot now and then
            warnings.append(f"{over} samples over full scale (peak {peak:.2f}) were clipped")
        np.clip(samples, -1.0, 1.0, out=samples)
    return samples


def _ogg_ends(data: bytes) -> bool:
    """Return whether the last page says that it is the last (bit 2 of its sixth byte)."""
    last = data.rfind(b"OggS")
    return last + 6 <= len(data) and bool(data[last + 5] & 4)


def _not_audio(data: bytes, error: Exception) -> str:
    kinds = {b"RIFF": "WAV", b"fLaC": "FLAC", b"OggS": "Ogg", b"ID3\x03": "MP3", b"ID3\x04": "MP3"}
    kind = kinds.get(data[:4])
    if kind:
        return f"a damaged or cut-off {kind} file ({_reason(error)})"
    start = data[:16]
    shown = repr(start.decode("ascii")) if start.isascii() else start[:8].hex(" ")
    return f"not an audio file that can be read (it starts with {shown}); convert it to WAV or FLAC"


def _reason(error: Exception) -> str:
    text = getattr(error, "error_string", "") or str(error)
    return " ".join(text.split()).rstrip(".") or "the decoder gives no reason"

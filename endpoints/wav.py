"""WAV files as protocols carry them: whole ones made, and read while they are still coming.

A server that streams does not know how long its file will be: it writes a size of 0, or the largest
there is, or that of the first piece. Sizes are therefore believed only as far as they make sense.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxmeter.endpoints.codec import Binary
from voxmeter.endpoints.errors import ProtocolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_BITS = {_PCM: (8, 16, 24, 32), _FLOAT: (32, 64)}
_ENDLESS = 0x7FFF_0000  # from here on, a size says "until the end"
_LARGEST = 0xFFFF_FFFF
_LARGEST_HEAD = 64 * 1024
_RATES = (4_000, 384_000)
_BEHIND_DATA = {b"LIST", b"id3 ", b"ID3 ", b"bext", b"cue ", b"smpl", b"iXML", b"PEAK", b"fact"}
_BEHIND_DATA |= {b"_PMX", b"JUNK", b"afsp", b"FLLR", b"axml", b"chna", b"inst", b"acid"}


@dataclass(frozen=True, slots=True)
class Format:
    """How the samples of a file are written.

    Attributes:
        tag: 1 for whole numbers, 3 for floats.
        bits: Of one sample.
        channels: Samples of one moment.
        rate: Moments a second.
    """

    tag: int
    bits: int
    channels: int
    rate: int

    @property
    def block(self) -> int:
        """Bytes of one moment."""
        return self.bits // 8 * self.channels


def wav_file(pcm: bytes, rate: int) -> bytes:
    """Return a whole file of 16-bit little-endian mono samples."""
    return _head_of(36 + len(pcm), rate, len(pcm)) + pcm


def wav_head(rate: int) -> bytes:
    """Return what stands before samples whose number is not known yet."""
    return _head_of(_LARGEST, rate, _LARGEST)


def _head_of(file: int, rate: int, samples: int) -> bytes:
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", file, b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16
    )
    return head + struct.pack("<4sI", b"data", samples)


class WavReader:
    """Reads one file after another from pieces that are split anywhere.

    Args:
        protocol: Whose reply it is, for errors.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._format: Format | None = None
        self._waiting = b""  # of a head, a moment, or what stands behind the samples
        self._left: int | None = None  # bytes of samples; None: until the end
        self._skips = False

    @property
    def rate(self) -> int | None:
        """Samples a second, once the head has come."""
        return None if self._format is None else self._format.rate

    def feed(self, data: bytes) -> bytes:
        """Return 16-bit little-endian mono samples, as far as they are whole.

        Raises:
            ProtocolError: If this is no WAV file, or one of an encoding that is not read.
        """
        made = b""
        self._waiting += data
        while self._waiting and not self._skips:
            if self._format is None or self._left == 0:
                if not self._next_part():
                    break
                continue
            taken = self._take()
            if not taken:
                break
            made += _pcm16(taken, self._format)
        if self._skips:
            self._waiting = b""
        return made

    def end(self) -> None:
        """Take note that nothing more comes.

        Raises:
            ProtocolError: If not even a head has come.
        """
        if self._format is None and self._waiting:
            raise self._problem("ends before its samples begin")

    def _take(self) -> bytes:
        assert self._format is not None  # noqa: S101 - the caller has looked
        size = len(self._waiting)
        if self._left is not None:
            size = min(size, self._left)
            if size < self._left:
                size -= size % self._format.block
        else:
            size -= size % self._format.block
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        if self._left is not None:
            self._left -= size
        return taken

    def _next_part(self) -> bool:
        """Read a head; or behind the samples, tell what comes next. False: more is needed."""
        if self._format is not None:
            if len(self._waiting) < 4:
                return False
            name = self._waiting[:4]
            if name in _BEHIND_DATA:
                self._skips = True
                return True
            if name != b"RIFF":  # it was the size of the first piece alone
                self._left = None
                return True
        return self._head()

    def _head(self) -> bool:
        data = self._waiting
        if data[:4] != b"RIFF"[: len(data)] or data[8:12] != b"WAVE"[: max(0, len(data) - 8)]:
            raise self._problem("is not a WAV file")
        at, found = 12, None
        while len(data) >= at + 8:
            name, size = struct.unpack_from("<4sI", data, at)
            if name == b"data":
                if found is None:
                    raise self._problem("has samples before their format")
                self._format = found
                self._left = None if size == 0 or size >= _ENDLESS else size
                self._waiting = data[at + 8 :]
                return True
            if size > _LARGEST_HEAD or at > _LARGEST_HEAD:
                raise self._problem("has no samples where they should be")
            if name == b"fmt " and len(data) >= at + 8 + size:
                found = self._read_format(data[at + 8 : at + 8 + size])
            at += 8 + size + size % 2
        return False

    def _read_format(self, chunk: bytes) -> Format:
        if len(chunk) < 16:
            raise self._problem("has a cut-off format")
        tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
        if tag == _EXTENSIBLE and len(chunk) >= 26:
            (tag,) = struct.unpack_from("<H", chunk, 24)
        if bits not in _BITS.get(tag, ()):
            raise self._problem(f"has {bits}-bit samples of encoding {tag}, which are not read")
        if not 1 <= channels <= 64 or not _RATES[0] <= rate <= _RATES[1]:
            raise self._problem(f"has {channels} channels at {rate} Hz")
        return Format(tag, bits, channels, rate)

    def _problem(self, words: str) -> ProtocolError:
        return ProtocolError(self._protocol, f"the audio {words}", Binary(self._waiting))


class SniffedAudio:
    """Audio in chunks, each of which may or may not begin with the head of a WAV file.

    A chunk without a head goes on in the format of the last one that had one.

    Args:
        protocol: Whose reply it is, for errors.
        rate: Samples a second of bare samples; None is `default`, and what the head of a file says.
        default: Samples a second where nobody says it.
    """

    def __init__(self, protocol: str, rate: int | None, default: int) -> None:
        self._protocol, self._rate, self._default = protocol, rate, default
        self._wav: WavReader | None = None
        self._start: bytes | None = b""

    def begin(self) -> None:
        """Take note that a chunk begins."""
        self._start = b""

    def feed(self, data: bytes, *, last: bool = False) -> tuple[bytes, int]:
        """Return 16-bit little-endian mono samples, and their rate.

        Args:
            data: Some bytes of the chunk.
            last: Whether they end it.

        Raises:
            ProtocolError: If it is a WAV file that cannot be read.
        """
        if self._start is not None:
            self._start += data
            if len(self._start) < 4 and not last and b"RIFF".startswith(self._start):
                return b"", self.rate
            data, self._start = self._start, None
            if data[:4] == b"RIFF":
                self._wav = WavReader(self._protocol)
        if self._wav is not None:
            data = self._wav.feed(data)
        return data, self.rate

    def chunk(self, data: bytes) -> tuple[bytes, int]:
        """Return the samples of a whole chunk, and their rate."""
        self.begin()
        return self.feed(data, last=True)

    @property
    def rate(self) -> int:
        """Samples a second of what comes now."""
        return self._rate or (self._wav and self._wav.rate) or self._default


def floats_to_pcm16(values: NDArray[np.floating]) -> bytes:
    """Return samples in [-1, 1] as 16-bit ones; what is beyond is clipped, NaN is silence."""
    import numpy as np

    scaled = np.rint(np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0) * 32768.0)
    made: bytes = np.clip(scaled, -32768, 32767).astype("<i2").tobytes()
    return made


def _pcm16(data: bytes, form: Format) -> bytes:
    if (form.tag, form.bits, form.channels) == (_PCM, 16, 1):
        return data
    import numpy as np

    data = data[: len(data) - len(data) % form.block]
    values: NDArray[np.floating]
    if form.tag == _FLOAT:
        values = np.frombuffer(data, f"<f{form.bits // 8}").astype(np.float64)
    elif form.bits == 8:
        values = (np.frombuffer(data, np.uint8).astype(np.float64) - 128) / 128
    else:
        wide = np.zeros((len(data) * 8 // form.bits, 4), np.uint8)
        wide[:, 4 - form.bits // 8 :] = np.frombuffer(data, np.uint8).reshape(-1, form.bits // 8)
        values = wide.view("<i4")[:, 0] / 2.0**31
    return floats_to_pcm16(values.reshape(-1, form.channels).mean(axis=1))

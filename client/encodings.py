"""Samples to wire bytes and back, as streams that may split anywhere.

PCM16, G.711 and Ogg/Opus both ways; AAC in ADTS frames is only read.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxmeter.endpoints import adts
from voxmeter.endpoints.errors import MissingExtraError
from voxmeter.endpoints.events import Encoding

LIMIT_S = 900
"""Most sound that one piece may unpack to, s: two bytes of Opus may stand for 120 ms."""

_SLICE = 4096  # bytes of Opus taken at a time, so that the limit is met before memory is gone
_TOO_LONG = f"a piece of it unpacks to more than {LIMIT_S} s"


class Encoder(Protocol):
    """One outgoing stream."""

    def encode(self, pcm: bytes) -> bytes:
        """Return the wire bytes of 16-bit little-endian mono samples."""
        ...


class Decoder(Protocol):
    """One incoming stream."""

    def decode(self, data: bytes) -> NDArray[np.int16]:
        """Return the samples, shape (n,), that this piece completes."""
        ...

    @property
    def left_over(self) -> int:
        """Bytes that no later piece completed, so far."""
        ...


class Pcm16:
    """Little-endian 16-bit samples; a byte that splits a sample waits for the next piece."""

    def __init__(self) -> None:
        self._spare = b""

    def encode(self, pcm: bytes) -> bytes:
        """Return the samples as they are."""
        return pcm

    def decode(self, data: bytes) -> NDArray[np.int16]:
        """Return the samples that this piece completes."""
        data = self._spare + data
        whole = len(data) & ~1
        self._spare = data[whole:]
        return np.frombuffer(data[:whole], dtype="<i2").astype(np.int16)

    @property
    def left_over(self) -> int:
        """Return 1 when a byte is waiting for its other half."""
        return len(self._spare)


class G711:
    """One byte a sample, at 8 kHz."""

    left_over = 0

    def __init__(self, law: Encoding) -> None:
        from voxmeter.endpoints import g711

        mu = law == "pcmu"
        self._encode = g711.encode_ulaw if mu else g711.encode_alaw
        self._decode = g711.decode_ulaw if mu else g711.decode_alaw

    def encode(self, pcm: bytes) -> bytes:
        """Return one code a sample."""
        return self._encode(pcm)

    def decode(self, data: bytes) -> NDArray[np.int16]:
        """Return one sample a code."""
        return np.frombuffer(self._decode(data), dtype="<i2").astype(np.int16)


class OpusEncoder:
    """Ogg pages of Opus. The encoder's frames are 40 ms: pages may lag a 20 ms frame behind."""

    def __init__(self, rate: int) -> None:
        self._writer = _sphn().OpusStreamWriter(rate)

    def encode(self, pcm: bytes) -> bytes:
        """Return the pages that these samples complete."""
        samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32) / 32768
        return bytes(self._writer.append_pcm(samples))


class OpusDecoder:
    """Ogg pages of Opus, split anywhere."""

    left_over = 0

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._reader = _sphn().OpusStreamReader(rate)

    def decode(self, data: bytes) -> NDArray[np.int16]:
        """Return the samples that these bytes complete.

        Raises:
            ValueError: If they hold a broken page, or sound without end; what they hold is lost,
                what follows is not.
        """
        made: list[NDArray[np.int16]] = [np.zeros(0, dtype=np.int16)]
        room = LIMIT_S * self._rate
        try:
            for start in range(0, len(data), _SLICE):
                piece = self._reader.append_bytes(data[start : start + _SLICE])
                samples = np.asarray(piece, dtype=np.float32)
                made.append(np.clip(np.round(samples * 32768), -32768, 32767).astype(np.int16))
                room -= len(samples)
                if room < 0:
                    raise ValueError(_TOO_LONG)  # noqa: TRY301 - one way out
        except ValueError:
            self._reader = _sphn().OpusStreamReader(self._rate)  # the old one takes nothing more
            raise
        return np.concatenate(made)


class AacDecoder:
    """ADTS frames, split anywhere; channels are mixed down to one.

    All that the frames hold is returned, also what an encoder puts before the first sample (1024
    samples or more, almost silent): a player of such a stream has no way to know of it either.

    Args:
        rate: Samples a second of what is returned.
    """

    def __init__(self, rate: int) -> None:
        import av

        self._codec = av.CodecContext.create("aac", "r")
        self._packet = av.Packet
        self._failures = (av.error.FFmpegError, ValueError, RuntimeError)
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        self._limit = LIMIT_S * rate
        self._spare = b""

    def decode(self, data: bytes) -> NDArray[np.int16]:
        """Return the samples of the frames that this piece completes.

        Raises:
            ValueError: If it is no ADTS, or its frames cannot be decoded, or without end; what it
                holds is lost.
        """
        data, self._spare = self._spare + data, b""
        made: list[NDArray[np.int16]] = []
        start = count = 0
        while len(data) - start >= adts.HEAD:
            head = adts.head_of(data[start : start + adts.HEAD])
            if head is None:
                raise ValueError("no ADTS frame where one should begin")
            if len(data) - start < head.length:
                break
            frame = self._frame(data[start : start + head.length])
            made += frame
            start += head.length
            count += sum(map(len, frame))
            if count > self._limit:
                raise ValueError(_TOO_LONG)
        self._spare = data[start:]
        return np.concatenate(made) if made else np.zeros(0, dtype=np.int16)

    def _frame(self, frame: bytes) -> list[NDArray[np.int16]]:
        try:
            decoded = self._codec.decode(self._packet(frame))
            mixed = [one for part in decoded for one in self._resampler.resample(part)]
        except self._failures as error:
            raise ValueError(f"not decodable: {error}") from None
        return [one.to_ndarray().reshape(-1).astype(np.int16) for one in mixed]

    @property
    def left_over(self) -> int:
        """Return how many bytes of a frame that is not whole are waiting."""
        return len(self._spare)


def encoder(encoding: Encoding, rate: int) -> Encoder:
    """Return a fresh encoder for one outgoing stream at `rate` samples a second."""
    match encoding:
        case "pcm16":
            return Pcm16()
        case "pcmu" | "pcma":
            return G711(encoding)
        case "opus":
            return OpusEncoder(rate)
        case "aac":
            raise ValueError("AAC is only read")


def decoder(encoding: Encoding, rate: int) -> Decoder:
    """Return a fresh decoder for one incoming stream at `rate` samples a second."""
    match encoding:
        case "pcm16":
            return Pcm16()
        case "pcmu" | "pcma":
            return G711(encoding)
        case "opus":
            return OpusDecoder(rate)
        case "aac":
            return AacDecoder(rate)


def _sphn() -> Any:  # noqa: ANN401 - an untyped module
    try:
        import sphn
    except ImportError:
        raise MissingExtraError("Opus audio", "sphn", "opus") from None
    return sphn

"""G.711, the 8-bit telephone encoding: μ-law and A-law to and from 16-bit samples.

Source: ITU-T Recommendation G.711 (11/88), tables 1a-2b. μ-law codes 14-bit samples and A-law
13-bit ones; here, as everywhere, both are scaled to 16 bits by shifting left (2 and 3 places).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 8000
"""Samples a second of G.711."""
ULAW_BIAS = 33
ULAW_LARGEST = 8158  # beyond this a 14-bit magnitude is clipped


def decode_ulaw(data: bytes) -> bytes:
    """Return 16-bit little-endian samples, one for each μ-law code."""
    import numpy as np

    return _ulaw_levels()[np.frombuffer(data, np.uint8)].tobytes()


def encode_ulaw(pcm: bytes) -> bytes:
    """Return one μ-law code for each 16-bit little-endian sample.

    Raises:
        ValueError: If `pcm` ends in half a sample.
    """
    return _encoding("ulaw")[_indices(pcm)].tobytes()


def decode_alaw(data: bytes) -> bytes:
    """Return 16-bit little-endian samples, one for each A-law code."""
    import numpy as np

    return _alaw_levels()[np.frombuffer(data, np.uint8)].tobytes()


def encode_alaw(pcm: bytes) -> bytes:
    """Return one A-law code for each 16-bit little-endian sample.

    Raises:
        ValueError: If `pcm` ends in half a sample.
    """
    return _encoding("alaw")[_indices(pcm)].tobytes()


def _indices(pcm: bytes) -> NDArray[np.uint16]:
    import numpy as np

    if len(pcm) % 2:
        raise ValueError(f"{len(pcm)} bytes are not whole 16-bit samples")
    return np.frombuffer(pcm, "<u2").astype(np.uint16)


@cache
def _ulaw_levels() -> NDArray[np.int16]:
    import numpy as np

    code = ~np.arange(256, dtype=np.int32) & 0xFF
    exponent, mantissa = (code >> 4) & 7, code & 15
    magnitude = ((2 * mantissa + 33) << exponent) - ULAW_BIAS
    return (np.where(code & 0x80, -magnitude, magnitude) << 2).astype("<i2")


@cache
def _alaw_levels() -> NDArray[np.int16]:
    import numpy as np

    code = np.arange(256, dtype=np.int32) ^ 0x55
    exponent, mantissa = (code >> 4) & 7, code & 15
    step = 2 * mantissa + 1  # in halves of the finest step, so that levels lie amid their interval
    magnitude = np.where(exponent == 0, step, (step + 32) << np.maximum(exponent - 1, 0))
    return (np.where(code & 0x80, magnitude, -magnitude) << 3).astype("<i2")


@cache
def _encoding(law: str) -> NDArray[np.uint8]:
    """Return the code of every 16-bit pattern, shape (65536,)."""
    import numpy as np

    sample = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32)
    if law == "ulaw":
        # Magnitudes are cut to 14 bits toward zero, so that a sample and its negative share a code.
        magnitude = np.minimum(np.abs(sample) >> 2, ULAW_LARGEST) + ULAW_BIAS
        exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 5
        code = (exponent << 4) | ((magnitude >> (exponent + 1)) & 15)
        ulaw: NDArray[np.int32] = ~np.where(sample < 0, code | 0x80, code) & 0xFF
        return ulaw.astype(np.uint8)
    # Negative samples lie one lower: -1 is the first negative level, as 0 is the first positive.
    magnitude = np.where(sample < 0, ~sample, sample) >> 4
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 3, 0)
    code = (exponent << 4) | ((magnitude >> np.maximum(exponent - 1, 0)) & 15)
    alaw: NDArray[np.int32] = np.where(sample < 0, code, code | 0x80) ^ 0x55
    return alaw.astype(np.uint8)

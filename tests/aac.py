"""AAC in ADTS frames, made by FFmpeg."""

from __future__ import annotations

import io

import av
import numpy as np
from numpy.typing import NDArray


def adts_of(samples: NDArray[np.int16], rate: int = 22_050, channels: int = 1) -> bytes:
    """Return the frames of 16-bit samples, each channel alike."""
    buffer = io.BytesIO()
    layout = "mono" if channels == 1 else "stereo"
    with av.open(buffer, "w", format="adts") as file:
        stream = file.add_stream("aac", rate=rate, layout=layout)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame.from_ndarray(
            np.repeat(samples, channels).reshape(1, -1), format="s16", layout=layout
        )
        frame.sample_rate = rate
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    return buffer.getvalue()

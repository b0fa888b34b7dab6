"""Where speech is in a noisy signal: Silero VAD v6, as it lies in faster-whisper's assets.

Only loaded when the background is too loud for levels to decide; 109 ms to import, 2 ms CPU for
each second of audio.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

RATE = 16_000
WINDOW = 512
_CONTEXT = 64
_BATCH_S = 30


def probabilities(samples: NDArray[np.floating], rate: int) -> NDArray[np.float32]:
    """Return how likely each 32 ms window is speech, shape (n,), 0 to 1.

    Args:
        samples: Shape (n,), finite, in [-1, 1].
        rate: Samples a second; anything but 16 kHz is resampled, in one piece.
    """
    audio = np.asarray(samples, dtype=np.float32)
    if rate != RATE:
        import soxr

        audio = soxr.resample(audio, rate, RATE)
    audio = np.pad(audio, (0, -audio.size % WINDOW))
    windows = audio.reshape(-1, WINDOW)
    # Every window is heard with the last 4 ms of the one before it.
    before = np.zeros((windows.shape[0], _CONTEXT), dtype=np.float32)
    before[1:] = windows[:-1, -_CONTEXT:]
    heard = np.concatenate((before, windows), axis=1)
    session = _session()
    hidden = np.zeros((1, 1, 128), dtype=np.float32)
    cell = np.zeros((1, 1, 128), dtype=np.float32)
    batch = _BATCH_S * RATE // WINDOW
    found: list[NDArray[np.float32]] = []
    for begin in range(0, heard.shape[0], batch):
        output, hidden, cell = session.run(
            None, {"input": heard[begin : begin + batch], "h": hidden, "c": cell}
        )
        found.append(np.asarray(output, dtype=np.float32).reshape(-1))
    return np.concatenate(found)


@functools.cache
def _session() -> InferenceSession:
    """Return the network, on one thread.

    Raises:
        FileNotFoundError: If faster-whisper is installed without its assets.
    """
    import onnxruntime

    # faster_whisper itself is not imported: that takes 200 ms and loads Whisper's runtime.
    package = find_spec("faster_whisper")
    if package is None or package.origin is None:
        raise FileNotFoundError("faster-whisper is not installed; it carries silero_vad_v6.onnx")
    options = onnxruntime.SessionOptions()
    options.inter_op_num_threads = 1
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        str(Path(package.origin).parent / "assets" / "silero_vad_v6.onnx"),
        sess_options=options,
        providers=["CPUExecutionProvider"],
    )

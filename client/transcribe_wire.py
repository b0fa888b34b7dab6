"""What the transcribing processes and their parent say to each other, over two pipes.

A message is a length (4 bytes, big-endian), that many bytes of JSON with a field `samples` (0
where there are none), and as many float32 samples.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
_LENGTH = struct.Struct(">I")


def send(pipe: IO[bytes], row: Mapping[str, object], samples: Samples | None = None) -> None:
    """Write one message.

    Raises:
        OSError: If nobody reads any more.
    """
    count = 0 if samples is None else len(samples)
    head = json.dumps({**row, "samples": count}).encode()
    pipe.write(_LENGTH.pack(len(head)) + head)
    if samples is not None:
        pipe.write(np.ascontiguousarray(samples, "<f4").tobytes())
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], Samples]:
    """Read one message.

    Raises:
        EOFError: If the other side has gone, between two messages or within one.
    """
    head = json.loads(_exactly(pipe, _LENGTH.unpack(_exactly(pipe, _LENGTH.size))[0]))
    samples = np.frombuffer(_exactly(pipe, 4 * head["samples"]), "<f4").astype(np.float32)
    return head, samples


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) != count:
        raise EOFError
    return data

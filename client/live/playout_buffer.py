"""What is still to be played: filled by the event loop, emptied by the callback of the speaker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_CHUNK_FRAMES = 240


@dataclass(frozen=True, slots=True)
class Stretch:
    """Frames that one callback took.

    Attributes:
        position: The first of them, counted from the first frame ever put in.
        at: Where in the callback's buffer it stands.
        frames: How many.
    """

    position: int
    at: int
    frames: int


class PlayoutBuffer:
    """Frames in order, in short chunks; each goes either to the speaker or to whoever clears.

    No lock: `deque` hands a chunk to exactly one of two threads, and what the callback has begun it
    plays to the end, which is 5 ms at the most.
    """

    def __init__(self, frame_bytes: int) -> None:
        """Begin empty.

        Args:
            frame_bytes: Size of one sample of every channel.
        """
        self._size = frame_bytes
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._begun: tuple[int, bytes] = (0, b"")  # the callback's alone
        self.put_frames = 0

    def put(self, data: bytes) -> None:
        """Add whole frames behind the rest; for the event loop."""
        step = _CHUNK_FRAMES * self._size
        for start in range(0, len(data), step):
            chunk = data[start : start + step]
            self._chunks.append((self.put_frames, chunk))
            self.put_frames += len(chunk) // self._size

    def clear(self) -> int:
        """Throw away what is left; return how many frames that was; for the event loop."""
        thrown = 0
        while True:
            try:
                _, chunk = self._chunks.popleft()
            except IndexError:
                return thrown
            thrown += len(chunk) // self._size

    @property
    def waiting(self) -> int:
        """How many frames are left, but for the chunk in hand."""
        return max(0, self.put_frames - self._chunks[0][0]) if self._chunks else 0

    def fill(self, buffer: memoryview) -> list[Stretch]:
        """Write the next frames, and silence where there are none; for the callback.

        Args:
            buffer: Bytes of whole frames.

        Returns:
            What was written, in order; nothing if it is all silence.
        """
        taken: list[Stretch] = []
        at = 0
        while at < len(buffer):
            position, chunk = self._begun
            if not chunk:
                try:
                    position, chunk = self._chunks.popleft()
                except IndexError:
                    break
            part = chunk[: len(buffer) - at]
            buffer[at : at + len(part)] = part
            _add(taken, Stretch(position, at // self._size, len(part) // self._size))
            at += len(part)
            self._begun = (position + len(part) // self._size, chunk[len(part) :])
        buffer[at:] = bytes(len(buffer) - at)
        return taken


def _add(taken: list[Stretch], new: Stretch) -> None:
    last = taken[-1] if taken else None
    if last is not None and last.position + last.frames == new.position:
        taken[-1] = Stretch(last.position, last.at, last.frames + new.frames)
    else:
        taken.append(new)

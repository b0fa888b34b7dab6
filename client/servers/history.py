"""What was said earlier in one served session, within bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from voxmeter.client.encodings import decoder
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.serving import HistoryAdded, UserAudio

_TURNS = 256
_AUDIO_BYTES = 32 * 2**20


@dataclass(slots=True)
class _Entry:
    turn: Turn
    item: str = ""
    t_ns: int = 0


class History:
    """Turns in order; beyond 256 turns or 32 MiB of audio the oldest go first."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def turns(self) -> tuple[Turn, ...]:
        """Return the turns, oldest first."""
        return tuple(entry.turn for entry in self._entries)

    def add(self, added: HistoryAdded, t_ns: int) -> None:
        """Keep a turn that the client put in, which arrived at `t_ns`."""
        pcm = _pcm(added.audio) if added.audio is not None else b""
        self._entries.append(_Entry(Turn(added.role, added.text, pcm), added.item, t_ns))
        self._shorten()

    def exchange(self, heard: str, words: str) -> None:
        """Keep what the user said and what was answered, as far as either is known."""
        if heard:
            self._entries.append(_Entry(Turn("user", heard)))
        if words:
            self._entries.append(_Entry(Turn("assistant", words)))
        self._shorten()

    def remove(self, item: str) -> None:
        """Forget the turn that the client added under this name."""
        self._entries = [entry for entry in self._entries if not item or entry.item != item]

    def take_question(self) -> tuple[bytes, int] | None:
        """Take out the last turn if it is the user's and has audio: it is the question itself.

        Returns:
            Its 16-bit samples and the arrival (ns) of its message; None if there is no such turn.
        """
        if not self._entries:
            return None
        last = self._entries[-1]
        if last.turn.role != "user" or not last.turn.pcm:
            return None
        self._entries.pop()
        return last.turn.pcm, last.t_ns

    def cut(self, share: float) -> None:
        """Keep only this share (0 to 1) of the last answer's words: the rest was never heard."""
        if self._entries and self._entries[-1].turn.role == "assistant":
            words = self._entries[-1].turn.text.split()
            kept = " ".join(words[: round(share * len(words))])
            self._entries[-1].turn = replace(self._entries[-1].turn, text=kept)

    def _shorten(self) -> None:
        del self._entries[:-_TURNS]
        size = 0
        for entry in reversed(self._entries):
            size += len(entry.turn.pcm)
            if size > _AUDIO_BYTES:
                entry.turn = replace(entry.turn, pcm=b"")


def _pcm(audio: UserAudio) -> bytes:
    return decoder(audio.encoding, audio.rate).decode(audio.data).astype("<i2").tobytes()

"""A room on a JACK server: what is said there and what is answered, sample for sample.

JACK runs all its clients in step, and its stamps count the same frames. So beside PulseAudio's,
which wander by milliseconds, this is the card on which a latency can be held against the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Self

import numpy as np
import soundfile
from needs import needs_extra
from numpy.typing import NDArray
from virtual_card import LIMIT_S, RATE, VirtualCard, jack_card

DEVICES = ("--microphone", "mouth", "--speaker", "ears")
"""What `voxmeter live` has to be told: the devices are named after the two clients here."""


class JackRoom:
    """A mouth that speaks into the microphone, and ears that hear it and the speaker."""

    def __init__(self, card: VirtualCard) -> None:
        jack = needs_extra("jack", "dev")
        self.environment = card.environment
        server = {"servername": card.environment["JACK_DEFAULT_SERVER"], "no_start_server": True}
        self._grown = Condition()
        self._heard = bytearray()
        self._said: list[NDArray[np.float32]] = []
        self._mouth = jack.Client("mouth", **server)
        self._voice = self._mouth.outports.register("voice")
        self._ears = jack.Client("ears", **server)
        self._reply = self._ears.inports.register("reply")  # first, as a speaker has one channel
        self._user = self._ears.inports.register("user")
        self._mouth.set_process_callback(self._speak)
        self._ears.set_process_callback(self._listen)

    def __enter__(self) -> Self:
        self._ears.activate()
        self._mouth.activate()
        self._mouth.connect(self._voice, self._user)
        return self

    def __exit__(self, *_: object) -> None:
        for client in (self._mouth, self._ears):
            client.deactivate()
            client.close()

    def _speak(self, frames: int) -> None:
        out = self._voice.get_array()
        out[:] = 0
        with self._grown:
            if self._said:
                piece, self._said[0] = self._said[0][:frames], self._said[0][frames:]
                out[: len(piece)] = piece
                if not len(self._said[0]):
                    del self._said[0]
                self._grown.notify_all()

    def _listen(self, _frames: int) -> None:
        both = np.stack((self._user.get_array(), self._reply.get_array()), axis=1)
        with self._grown:
            self._heard += np.round(both * 32768).clip(-32768, 32767).astype("<i2").tobytes()
            self._grown.notify_all()

    def say(self, path: Path) -> None:
        """Play a WAV file into the microphone; return when it has been taken."""
        sound, rate = soundfile.read(path, dtype="float32")
        assert rate == RATE
        with self._grown:
            self._said.append(sound)
            assert self._grown.wait_for(lambda: not self._said, LIMIT_S)

    @contextmanager
    def hear(self) -> Iterator[Self]:
        """Record from now on."""
        with self._grown:
            self._heard.clear()
        yield self

    def further(self, seconds: float) -> bytes:
        """Return all that was heard once so many seconds more are there; see `Recording`."""
        with self._grown:
            size = len(self._heard) + round(seconds * RATE) * 4
            assert self._grown.wait_for(lambda: len(self._heard) >= size, LIMIT_S)
            return bytes(self._heard)


@contextmanager
def jack_room(folder: Path) -> Iterator[JackRoom]:
    """Start a JACK server with a room on it; end both with the block."""
    # In step (`-S`): a client that is late holds the others up instead of losing a piece.
    with jack_card(folder, RATE, "-S") as card, JackRoom(card) as room:
        yield room

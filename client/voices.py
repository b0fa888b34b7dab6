"""Voices that speak in a process of their own, so that no speech model is loaded beside a run."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from functools import lru_cache
from typing import Self

from voxmeter.client.audio import Samples
from voxmeter.client.child import ChildDiedError
from voxmeter.client.speakers import Speaker, speaker
from voxmeter.client.worker import Worker
from voxmeter.endpoints.errors import ClipError


class Voices:
    """Gives voices by name, as `clips.render` wants them; any thread may ask.

    The process starts with the first text that is to be spoken and ends with the `with` block.
    """

    def __init__(self) -> None:
        self._worker = Worker("voices")

    def __call__(self, name: str) -> Speaker:
        """Return a voice; what is wrong with it is told when it speaks."""
        return _Elsewhere(name, self._worker)

    def say(self, name: str, text: str) -> Future[tuple[int, list[Samples]]]:
        """Queue a text; any thread may do so, and nothing here blocks.

        Args:
            name: Of the voice.
            text: What it is to say.

        Returns:
            A future with samples a second and the speech, one array a sentence; it raises what is
            wrong with the voice, or `ChildDiedError`.
        """
        return self._worker.submit(_spoken, name, text)

    def stop(self) -> None:
        """Fall silent now; a later text is spoken again."""
        self._worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; texts that were not spoken yet fail."""
        self._worker.close()


class _Elsewhere:
    """One voice of the other process; its rate is known once it has spoken."""

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.rate = 0
        self._worker = worker

    def speak(self, text: str) -> Iterator[Samples]:
        """Yield one sentence at a time, once all of them are spoken."""
        try:
            self.rate, pieces = self._worker.submit(_spoken, self.name, text).result()
        except ChildDiedError as error:
            raise ClipError(f"voice {self.name!r}", f"its process ended ({error})") from None
        yield from pieces


def _spoken(name: str, text: str) -> tuple[int, list[Samples]]:
    voice = _loaded(name)
    return voice.rate, list(voice.speak(text))


@lru_cache(maxsize=4)
def _loaded(name: str) -> Speaker:
    return speaker(name)

"""Conditions done to clips in a process beside this one, so that none of it delays a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self

from voxmeter.client.child import ChildDiedError
from voxmeter.client.effects.chain import conditioned
from voxmeter.client.worker import Worker
from voxmeter.endpoints.errors import ClipError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench
    from voxmeter.client.clip_source import Alter
    from voxmeter.client.clips import Clip
    from voxmeter.client.effects.steps import Step


class Conditioner:
    """Makes the clips of conditions; any thread may ask.

    Loading the libraries and filling a clip with noise hold this process for longer than a frame
    may be late. The process starts with the first clip and ends with the `with` block; one that
    dies is replaced once for each clip.
    """

    def __init__(self) -> None:
        self._worker = Worker("conditions")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; clips that were not made yet fail."""
        self._worker.close()

    def alterations(self, bench: Bench) -> Mapping[str, Alter]:
        """Return what each condition of a bench does, by name, but for those that do nothing."""
        return {one.name: self._alter(one.chain) for one in bench.conditions if one.chain}

    def _alter(self, chain: Sequence[Step]) -> Alter:
        def alter(clip: Clip, seed: str) -> Clip:
            try:
                return self._submit(clip, chain, seed).result()
            except ChildDiedError:
                pass
            try:
                return self._submit(clip, chain, seed).result()
            except ChildDiedError as error:
                raise ClipError("condition", f"its process ended twice ({error})") from None

        return alter

    def _submit(self, clip: Clip, chain: Sequence[Step], seed: str) -> Future[Clip]:
        return self._worker.submit(conditioned, clip, chain, seed)

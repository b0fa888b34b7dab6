"""In which of the bench's conditions the user speaks."""

from __future__ import annotations

from voxmeter.client.bench import Bench
from voxmeter.client.live.stream_effects import Condition, condition

CLEAN = "clean"


class ChosenCondition:
    """The condition of the turn that goes on, and the one that is wanted from the next turn on.

    Args:
        bench: Names them.
    """

    def __init__(self, bench: Bench) -> None:
        seed = bench.run.seed
        self._conditions: list[Condition | None] = [
            None,  # clean
            *(
                condition(one.name, one.chain, f"{seed}/{one.name}/live")
                for one in bench.conditions
            ),
        ]
        self._wanted = self._now = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of those that there are, in the order of `next`."""
        return tuple(CLEAN if one is None else one.name for one in self._conditions)

    @property
    def name(self) -> str:
        """Name of the one that is spoken in."""
        return self.names[self._now]

    @property
    def effect(self) -> Condition | None:
        """What is done to the microphone now."""
        return self._conditions[self._now]

    @property
    def params(self) -> dict[str, object]:
        """What was drawn for it."""
        effect = self.effect
        return {} if effect is None else dict(effect.params)

    def next(self) -> tuple[str, tuple[str, ...]]:
        """Want the next one; return its name, and which of its effects a stream cannot have."""
        self._wanted = (self._wanted + 1) % len(self._conditions)
        wanted = self._conditions[self._wanted]
        return self.names[self._wanted], () if wanted is None else tuple(wanted.left_out)

    def begin_turn(self) -> None:
        """Let what is wanted be so."""
        self._now = self._wanted

"""What went wrong in a group of tasks, as one error that a command can name."""

from __future__ import annotations

from voxmeter.endpoints.errors import UserError


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error of a group of tasks that the user should see.

    The others are in its notes: one disk that is full fails fifty sessions at once.
    """
    leaves = _leaves(group)
    first = min(leaves, key=_rank)
    for other in leaves:
        if other is not first and str(other) != str(first):
            first.add_note(f"also: {type(other).__name__}: {other}")
    return first


def _rank(error: BaseException) -> int:
    """Return how much an error explains: an interrupt and the user's mistakes lead to others."""
    return 0 if isinstance(error, KeyboardInterrupt) else 1 if isinstance(error, UserError) else 2


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found

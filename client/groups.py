"""What went wrong in a group of tasks, as one error that a command can name."""

from __future__ import annotations


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error of a group of tasks that the user should see.

    The others are in its notes: one disk that is full fails fifty sessions at once.
    """
    leaves = _leaves(group)
    first = next((leaf for leaf in leaves if isinstance(leaf, KeyboardInterrupt)), leaves[0])
    for other in leaves:
        if other is not first and str(other) != str(first):
            first.add_note(f"also: {type(other).__name__}: {other}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found

"""References that fit the kind of their item, put in the form that scoring compares with."""

from __future__ import annotations

import re
import string

from voxmeter.endpoints.errors import UserError
from voxmeter.suites.fields import Fields
from voxmeter.suites.suite import Kind

MOST_OPTIONS = 26
"""Options have one letter each."""

_WORDS = {"yes-no": ("yes", "no"), "true-false": ("true", "false")}
_NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d+)?([eE][-+]?\d+)?\s*%?|[-+]?\d+/\d+")


def references(fields: Fields, kind: Kind, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the right answers of an item, any of which is right.

    Args:
        fields: The item's values; `reference` is a text, a number, or a list of them.
        kind: The item's kind.
        options: Its options, labelled A, B, … in this order.

    Returns:
        Labels for choices (a reference may also be the text of one option), `yes`/`no`,
        `true`/`false`, numbers as they were written; empty only for open items.

    Raises:
        UserError: If it is missing, does not fit the kind, or options are too few or too many.
    """
    _check_options(fields, kind, options)
    value = fields.values.get("reference")
    if isinstance(value, bool):
        word = "true" if value else "false"
        raise UserError(fields.place, f"reference is {word} without quotes", f'write "{word}"')
    wrapped = value if isinstance(value, list) else [] if value is None else [value]
    found = Fields(fields.place, {"reference": wrapped}).texts("reference")
    if not found and kind != "open":
        raise UserError(fields.place, "no reference", f"a {kind} item needs one")
    return tuple(_fitting(fields.place, kind, options, answer) for answer in found)


def labels(count: int) -> str:
    """Return the labels of `count` options: ABC… ."""
    return string.ascii_uppercase[:count]


def _check_options(fields: Fields, kind: Kind, options: tuple[str, ...]) -> None:
    if kind != "choice":
        if options:
            raise UserError(fields.place, f"options of a {kind} item", "only choices have options")
        return
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise UserError(
            fields.place, f"{len(options)} options", f"a choice has 2 to {MOST_OPTIONS} of them"
        )
    if len({option.casefold() for option in options}) < len(options):
        raise UserError(fields.place, "two options are the same", "make them different")


def _fitting(place: str, kind: Kind, options: tuple[str, ...], answer: str) -> str:
    match kind:
        case "choice":
            return _label(place, options, answer)
        case "yes-no" | "true-false":
            if answer.casefold() not in _WORDS[kind]:
                raise UserError(
                    place, f"reference {answer!r} of a {kind} item", "give " + _either(kind)
                )
            return answer.casefold()
        case "number":
            if not (any(letter.isdigit() for letter in answer) and _NUMBER.fullmatch(answer)):
                raise UserError(
                    place, f"reference {answer!r} of a number item", "write it in digits"
                )
            return answer
        case _:
            return answer


def _label(place: str, options: tuple[str, ...], answer: str) -> str:
    known = labels(len(options))
    texts = [option.casefold() for option in options]
    named = answer.upper() if len(answer) == 1 and answer.upper() in known else None
    told = known[texts.index(answer.casefold())] if answer.casefold() in texts else None
    if named and told and named != told:
        raise UserError(
            place,
            f"reference {answer!r} is the label of one option and the text of another",
            f"give the label of the right one, and other texts than {known[0]} to {known[-1]}",
        )
    label = named or told
    if label is None:
        raise UserError(
            place,
            f"reference {answer!r} is none of the options",
            f"give a label from {known[0]} to {known[-1]}",
        )
    return label


def _either(kind: str) -> str:
    return " or ".join(_WORDS[kind])

"""Find options by their place in the list: "the third one", "option two", "the last but one"."""

from __future__ import annotations

from collections.abc import Sequence

from voxmeter.scoring.answers.mentions import How, Mention, Text
from voxmeter.scoring.answers.numbers import Number

_COUNTERS = frozenset(["번", "番", "個", "个", "项", "種", "种"])
_FROM = frozenset({"to", "from"})
_END = frozenset({"last", "end", "bottom"})
_TOP = frozenset({"top", "start", "beginning", "left"})
_NAMED = {"before_last": -2, "last_place": -1, "first_place": 0}
_COUNTED = frozenset({"one", "option", "choice", "answer"})  # "the one in second place"
_MOMENT = frozenset({"a", "one", "per", "each", "every"})  # "in a second"
_UNSPACED = frozenset({"ja", "ko", "zh"})
_BUT = {"one": -2, "two": -3}
_ARTICLES = frozenset(
    ["the", "der", "die", "das", "den", "la", "le", "el", "il", "lo", "o", "a", "de", "het", "l'"]
)


def find_positions(
    text: Text, count: int, numbers: Sequence[Number], *, numeric: bool
) -> list[Mention]:
    """Return where a place in a list of `count` options is named.

    Args:
        text: The reply.
        count: How many options there are.
        numbers: The numbers of the reply.
        numeric: Whether options are numbers themselves: then a number alone is no place.
    """
    found = [
        mention
        for index in range(len(text.transcript.tokens))
        if (mention := _ordinal(text, index, count)) is not None
    ]
    found += _romans(text, count)
    for number in numbers:
        label = int(number.value) - 1 if number.value == int(number.value) else -1
        if number.form != "ordinal" and 0 <= label < count and _is_place(text, number, numeric):
            named = text.before("option", number.first) > 0 or _counted(text, number.last)
            how: How = "position" if named else "number"
            found.append(Mention(number.first, number.last, label, how))
    return found


def _romans(text: Text, count: int) -> list[Mention]:
    """Return where an option is counted by a Roman numeral ("option II")."""
    ranks = {"II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}
    return [
        Mention(index, index + 1, ranks[token.raw] - 1, "position")
        for index, token in enumerate(text.transcript.tokens)
        if ranks.get(token.raw, count + 1) <= count and text.before("option", index)
    ]


def _ordinal(text: Text, index: int, count: int) -> Mention | None:
    """Return the place that an ordinal starting at a token names."""
    tokens = text.transcript.tokens
    for name, named in _NAMED.items():
        place = named if named >= 0 else count + named
        if (length := text.at(name, index)) and 0 <= place < count:
            ends = text.bounded(index + length) or text.at("right", index + length) > 0
            if ends or length > 2 or text.language.code in _UNSPACED:
                return Mention(index, index + length, place, "position")
    rank = text.language.ordinals.get(tokens[index].bare)
    last = index + 1
    if rank is None and tokens[index].text.isdigit() and last < len(tokens):
        joined = tokens[index].text + tokens[last].bare
        rank, last = text.language.ordinals.get(joined), last + 1
    if rank is None:
        return None
    counted = text.at("place", last)  # "the second option from the top"
    if [t.bare for t in tokens[last + counted : last + counted + 1]] == ["from"]:
        last += counted
    words = [token.bare for token in tokens[last : last + 3]]
    if (
        words[:1]
        and words[0] in _FROM
        and (end := next((i for i, w in enumerate(words) if w in _END), 0))
    ):
        rank, last = -abs(rank), last + end + 1
    elif words[:1] == ["from"] and (end := next((i for i, w in enumerate(words) if w in _TOP), 0)):
        last += end + 1
    elif rank == 2 and words[:1] == ["last"]:
        rank, last = -2, last + 1
    elif rank == -1 and words[:1] == ["but"] and len(words) > 1 and words[1] in _BUT:
        rank, last = _BUT[words[1]], last + 2
    place = rank - 1 if rank > 0 else count + rank
    if rank == 0:
        place = count // 2 if count % 2 else -1
    if not 0 <= place < count or not _stands_for_option(text, index, last):
        return None
    return Mention(index, last + text.at("place", last), place, "position")


def _stands_for_option(text: Text, first: int, last: int) -> bool:
    """Return whether nothing but an option can be counted there."""
    tokens = text.transcript.tokens
    if text.at("place", last) or text.at("of_list", last) or text.at("of_list", last + 1):
        return True
    if [t.bare for t in tokens[last : last + 1]] in (["place"], ["position"]):
        before = [t.bare for t in tokens[max(0, first - 3) : first]]
        return "in" in before and bool(_COUNTED.intersection(before))
    ends = text.bounded(last) or text.at("right", last) > 0 or text.at("wrong", last) > 0
    if not ends and not _with_another(text, last):
        return False
    start = text.back(first)
    alone = text.opens(start) and text.closes(text.forward(last))
    if first and tokens[first - 1].bare in _MOMENT and text.language.code == "en":
        return False
    the = first > 0 and tokens[first - 1].bare in _ARTICLES
    return alone or the or text.announced(first, ("cue",))


def _with_another(text: Text, index: int) -> bool:
    """Return whether "or the second", "and not the fourth" follows and ends the clause."""
    joined = text.at("and", index) or text.at("or", index)
    place = index + joined
    for _ in range(3):
        place += text.at("not", place) or text.at("filler", place)
    tokens = text.transcript.tokens
    if not joined or place >= len(tokens) or tokens[place].bare not in text.language.ordinals:
        return False
    return text.bounded(place + 1) or text.at("place", place + 1) > 0


def _is_place(text: Text, number: Number, numeric: bool) -> bool:  # noqa: FBT001
    """Return whether a number stands where it counts options."""
    if text.before("option", number.first) or _counted(text, number.last):
        apart = "," in text.transcript.gap(number.first) and numeric
        bounded = text.bounded(number.last) or _counted(text, number.last)
        after = [t.bare for t in text.transcript.tokens[number.last : number.last + 1]]
        return not apart and (
            bounded
            or after == ["of"]
            or any(text.at(n, number.last) for n in ("right", "wrong", "and", "or", "aside"))
        )
    if numeric:
        return False
    start = text.back(number.first)
    ends = text.bounded(number.last) or text.at("right", number.last) > 0
    alone = text.opens(start) and text.closes(number.last)
    return ends and (alone or text.announced(number.first, ("cue",)))


def _counted(text: Text, index: int) -> bool:
    tokens = text.transcript.tokens
    return index < len(tokens) and tokens[index].text in _COUNTERS and not tokens[index].gap.strip()

"""Decide what a sentence says about each option it names: meant, ruled out, weighed, listed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from voxmeter.scoring.answers.mentions import Mention, Role, Text, joins

_SENTENCE = 60  # tokens; a thought is not followed further back
# "A, Venus, no. B, Mars, yes."
_VERDICTS: tuple[tuple[str, Role], ...] = (("yes", "explicit"), ("no", "rejected"))
_AGAIN = frozenset({"for", "to", "with", "by", "even"})  # "for A or for B"
_MANY = 2  # options; one alone is not gone through
_LABEL_MARKS = '.,:;()[]-—/" 、'


def merge_labels_with_texts(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with "B, Mars" read as one; a letter with another's text is a conflict."""
    merged: list[Mention] = []
    for mention in mentions:
        last = merged[-1] if merged else None
        if last is None or not _apposed(text, last, mention):
            merged.append(mention)
            continue
        same = last.label == mention.label
        merged[-1] = Mention(
            last.first, mention.last, last.label if same else -1, last.how if same else "conflict"
        )
    return merged


def _apposed(text: Text, one: Mention, other: Mention) -> bool:
    """Return whether two mentions, a label and a text, name the same thing twice."""
    texts = {"content", "partial"}
    if (one.how in texts) == (other.how in texts) or "conflict" in {one.how, other.how}:
        return False
    if one.first == other.first:
        return True
    same = one.label == other.label
    between = text.transcript.tokens[one.last : other.first]
    fillers = {
        "the",
        "a",
        "an",
        "is",
        "option",
        "letter",
        "choice",
        "which",
        "that",
        "so",
        "it",
        "answer",
    }
    if any(
        token.bare not in fillers and token.bare not in text.language.articles for token in between
    ):
        return False
    gaps = [text.transcript.gap(index) for index in range(one.last, other.first + 1)]
    if same:
        return all(not gap.strip(_LABEL_MARKS) for gap in gaps)
    if any("." in gap or "\n" in gap or "?" in gap or "!" in gap for gap in gaps):
        return one.how not in texts and not between and text.closes(other.last)
    linked = {"is", "so", "that", "it", "which"} & {token.bare for token in between}
    return (
        not linked
        and all(not gap.strip(_LABEL_MARKS) for gap in gaps)
        and not _walked(one, other, text)
    )


def _walked(one: Mention, other: Mention, text: Text) -> bool:
    """Return whether a text comes before another option's label in a list ("Venus, B")."""
    if one.how not in {"content", "partial"}:
        return False
    before = text.transcript.tokens[one.first - 1].bare if one.first else ""
    return one.label + 1 == other.label and before == chr(97 + one.label)


def group(text: Text, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Return mentions grouped into enumerations such as "A, B and C"."""
    groups: list[list[Mention]] = []
    complete = False  # after "A, B and C", a further one is none of them
    for mention in mentions:
        if groups and not complete and _enumerated(text, groups[-1][-1], mention):
            joined = range(groups[-1][-1].last, mention.first)
            complete = len(groups[-1]) > 1 and any(text.at("and", i) for i in joined)
            groups[-1].append(mention)
        else:
            groups.append([mention])
            complete = False
    return groups


def _enumerated(text: Text, one: Mention, other: Mention) -> bool:
    """Return whether only "and", "or" or a comma stands between two mentions."""
    index, linked = one.last, False
    tokens = text.transcript.tokens
    if other.first < index:
        return True
    while index < other.first:
        length = text.at("and", index) or text.at("or", index)
        linked = linked or length > 0
        if not length and (
            tokens[index].bare in text.language.articles
            or (linked and tokens[index].bare in _AGAIN)
        ):
            length = 1
        if not length:
            length = text.at("option", index)
        if not length or not joins(tokens[index].gap):
            return False
        index += length
    return joins(text.transcript.gap(other.first))


def _conjoined(text: Text, members: Sequence[Mention]) -> bool:
    """Return whether an "and" or "or" holds an enumeration together."""
    return any(
        text.at("and", index) or text.at("or", index)
        for one, other in itertools.pairwise(members)
        for index in range(one.last, other.first)
    ) or any("&" in text.transcript.gap(m.first) for m in members[1:])


def _all_stated(text: Text, members: Sequence[Mention]) -> bool:
    """Return whether a statement ends in a list of letters: "The answer is B, C." states both."""
    if len({m.label for m in members}) < 2 or any(m.how != "letter" for m in members):
        return False
    index = members[-1].last
    further = text.at("and", index) or text.at("or", index)  # "B, C and E", E being no option
    if further and index + further < len(text.transcript.tokens):
        index += further + (len(text.transcript.tokens[index + further].text) == 1)
    return text.closes(index)


def assign(text: Text, groups: Sequence[Sequence[Mention]]) -> list[Mention]:
    """Return every mention with its role."""
    assigned: list[Mention] = []
    for members in groups:
        stop = assigned[-1].last if assigned else 0
        conjoined = len({m.label for m in members}) > 1 and _conjoined(text, members)
        before = _role_before(text, members[0].first, stop)
        after = _role_after(text, members[-1].last)
        if before == "explicit" and after == "plain" and _all_stated(text, members):
            conjoined = True
        for place, member in enumerate(members):
            first, last = place == 0, place == len(members) - 1
            own_before: Role = before if first or conjoined else "plain"
            own_after: Role = after if last or conjoined else "plain"
            excepted = last and _excepted(text, members[0].first, member.last)
            role = "explicit" if excepted else _combined(own_before, own_after)
            assigned.append(member.as_role(role))
    return _with_verdicts(text, assigned)


def _with_verdicts(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with the "yes" or "no" behind each, where several are gone through."""
    asked = text.transcript.questions
    tokens = text.transcript.tokens
    verdicts: dict[int, Role] = {
        place: role
        for place, mention in enumerate(mentions)
        for name, role in _VERDICTS
        if (length := text.at(name, mention.last))
        and text.bounded(mention.last + length)
        and tokens[mention.first].sentence not in asked
    }
    approved = {mentions[place].label for place, role in verdicts.items() if role == "explicit"}
    settled = len(approved) == 1 and len({m.label for m in mentions}) > _MANY
    if len({mentions[place].label for place in verdicts}) < _MANY and not settled:
        return list(mentions)
    return [m.as_role(verdicts.get(place, m.role)) for place, m in enumerate(mentions)]


def _combined(before: Role, after: Role) -> Role:
    """Return the role that what stands before and after gives together."""
    if "rejected" in {before, after}:
        if before in {"plain", "alone"}:
            return "rejected"
        return "weighed" if before == after else "rejected"
    if "weighed" in {before, after}:
        return "explicit" if after == "explicit" and before != "weighed" else "weighed"
    if "concluded" in {before, after}:
        return "concluded"
    if "explicit" in {before, after}:
        return "explicit"
    return "alone" if before == after == "alone" else "plain"


def _excepted(text: Text, first: int, last: int) -> bool:
    """Return whether everything but this mention is ruled out ("all except B are wrong")."""
    if text.before("excepted", first):
        return True
    ruled_out = text.at("except_after", last) or text.at("wrong", last)
    return text.before("except_before", first) > 0 and ruled_out > 0


def _role_before(text: Text, first: int, stop: int) -> Role:
    """Return what the words before a mention say about it."""
    role: Role = "plain"
    index, denied, heard = first, False, 0
    while index > 0 and heard < 4:
        if text.before("not", index) and _binds(text, index, first):
            denied = True
            break
        start = text.back(index, stop)
        only = text.transcript.tokens[start].bare == "only"  # "not only A, but also B"
        if start != index and not only and text.before("not", start) and _binds(text, start, first):
            denied = True
            break
        cue_at, cue = _nearest_cue(text, start, index)
        if not cue or cue_at - cue < stop:
            break
        role = "explicit"
        crossed = text.opens(cue_at) and cue_at > 0
        index = cue_at - cue
        if crossed:  # "The answer is. B." announces; a denial there is of something else
            break
        heard += 1
        if text.before("not_claim", index) and _binds(text, index, first):
            denied = True
            break
    if denied:
        return "rejected"
    start = text.back(index, stop)
    if _weighed(text, first, stop):
        return "weighed"
    conclusions = [start, index, *range(start + 1, first + 1)]
    if any(text.before("final", place) for place in conclusions if place > stop):
        return "concluded"
    return "alone" if role == "plain" and text.opens(start) else role


def _nearest_cue(text: Text, start: int, index: int) -> tuple[int, int]:
    """Return where, from `index` back to `start`, an announcement ends, and its length."""
    for place in (start, *range(index, start, -1)):
        length = text.before("cue", place) or text.before("weak", place)
        if length:
            return place, length
    return start, 0


def _binds(text: Text, index: int, first: int) -> bool:
    """Return whether a denial before token `index` reaches `first`: no pause stands between."""
    pause = any("," in text.transcript.gap(place) for place in range(index, first + 1))
    return not text.opens(index) and not pause


def _weighed(text: Text, first: int, stop: int) -> bool:
    """Return whether the sentence opens as a thought that is not the answer."""
    comma = False
    for index in range(first, max(stop, first - _SENTENCE), -1):
        if text.opens(index) or text.before("contrast", index):
            return False
        comma = comma or "," in text.transcript.gap(index)
        if text.at("hedge", index - 1) or (text.at("concession", index - 1) and not comma):
            return True
    return False


def _role_after(text: Text, last: int) -> Role:
    """Return what the words after a mention say about it."""
    if text.closes(last):
        return "alone"
    gap = text.transcript.gap(last)
    index = last
    right, wrong, seems = text.at("right", index), text.at("wrong", index), text.at("seems", index)
    reversed_cue = right == 2 and text.transcript.tokens[index].bare == "it"
    if right and right >= max(wrong, seems) and (not reversed_cue or text.closes(index + right)):
        return "explicit"
    if gap.strip(" \"')*"):
        return "plain"
    if wrong and wrong >= seems:
        return "rejected"
    return "weighed" if seems else "plain"

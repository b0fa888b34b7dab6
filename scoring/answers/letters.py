"""Find options by their letter, or by the letter's name as a recogniser writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from voxmeter.scoring.answers.mentions import Mention, Text
from voxmeter.scoring.answers.tokens import Token, tokenise

_ARTICLES_BEFORE = frozenset(
    [
        "the",
        "a",
        "an",
        "der",
        "die",
        "das",
        "den",
        "le",
        "la",
        "les",
        "el",
        "il",
        "lo",
        "o",
        "os",
        "as",
    ]
)
_SPELLING = ("as in", "as", "for", "like", "wie", "comme", "como", "come", "als", "как")


def find_letters(text: Text, count: int, contents: Sequence[Mention]) -> list[Mention]:
    """Return where one of the first `count` letters stands as a label."""
    starts = {content.first: content.label for content in contents}
    found: list[Mention] = []
    for index, token in enumerate(text.transcript.tokens):
        label = _label(token, count)
        if label is None or not _stands_alone(text, index):
            continue
        if index + 1 not in starts and _heads_compound(text, index):
            continue
        if token.bare not in text.language.words or _is_label(text, index, label, starts):
            found.append(Mention(index, index + 1, label, "letter"))
    return found


def _label(token: Token, count: int) -> int | None:
    """Return the number of the option that a single letter names."""
    if len(token.text) != 1 or not "a" <= token.text <= "z":
        return None
    label = ord(token.text) - ord("a")
    return label if label < count else None


def _stands_alone(text: Text, index: int) -> bool:
    """Return whether a letter is not part of a code, an abbreviation or a spelled word."""
    tokens = text.transcript.tokens
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    gap = tokens[index].gap
    if before is not None:
        if before.bare in text.language.prefixed and not text.bounded(index):
            return False
        if before.text[-1].isdigit() and gap == "":
            return False
        if _spelled(before, gap, text):
            return False
    if after is None:
        return True
    if after.text[0].isdigit() and after.gap in {"", "-"}:
        return False
    return not _spelled(after, after.gap, text)


def _heads_compound(text: Text, index: int) -> bool:
    """Return whether a hyphen joins a letter to a word ("B-roll")."""
    after = text.transcript.tokens[index + 1 : index + 2]
    return bool(after) and after[0].gap == "-" and len(after[0].text) > 1


def _spelled(neighbour: Token, gap: str, text: Text) -> bool:
    """Return whether a neighbour is a further letter of a spelled word."""
    single = re.fullmatch(r"[a-z]", neighbour.text) is not None
    if not single or neighbour.bare in text.language.words or gap.strip(" -.&'"):
        return False
    if gap in {"", "-", ".", "&", "'"}:
        return True
    return gap == " " and neighbour.raw.isupper() and neighbour.text > "j"


def _is_label(text: Text, index: int, label: int, starts: Mapping[int, int]) -> bool:
    """Return whether a letter that is also a word of the language is meant as a label."""
    tokens = text.transcript.tokens
    gap = text.transcript.gap(index + 1)
    if "..." in gap or "…" in gap:
        return False
    named = text.before("option", index) > 0
    if starts.get(index + 1) == label and tokens[index].raw.isupper():
        return True
    bounded = text.bounded(index + 1)
    if tokens[index].text == "i":
        whole = text.opens(index) and text.closes(index + 1)
        weak = text.closes(index + 1) and text.announced(index)
        cued = text.announced(index, ("cue",)) or whole or weak or _listed(text, index)
        reasoned = index + 1 < len(tokens) and tokens[index + 1].bare in {"because", "since"}
        ends = bounded or reasoned or text.at("right", index + 1) > 0
        return named or (ends and cued)
    if bounded:
        return not (index + 1 < len(tokens) and gap.strip() in {'"', "-"} and not named)
    after = tokens[index + 1].bare
    if tokens[index].raw.isupper() and _heads_list(text, index):
        return True
    if _spelling_aid(text, index + 1, label):
        return True
    if tokens[index].raw.islower() and not (named or text.before("cue", index)):
        return after in text.language.follow and bool(
            text.at("right", index + 1)
            or text.at("wrong", index + 1)
            or text.opens(index)
            or text.before("and", index)
            or text.before("or", index)
            or text.before("not", index)
        )
    return after in text.language.follow


def _heads_list(text: Text, index: int) -> bool:
    """Return whether "or", "and", "slash" or "&" joins the letter to one behind it."""
    tokens = text.transcript.tokens
    joined = text.at("and", index + 1) or text.at("or", index + 1)
    if "&" in text.transcript.gap(index + 1):
        return True
    place = index + 1 + (joined or tokens[index + 1].bare == "slash")
    return place > index + 1 and place < len(tokens) and len(tokens[place].text) == 1


def _listed(text: Text, index: int) -> bool:
    """Return whether "and" or "or" joins a letter to one before it."""
    length = text.before("and", index) or text.before("or", index)
    return (
        length > 0 and index > length and len(text.transcript.tokens[index - length - 1].text) == 1
    )


def find_sounds(
    text: Text, count: int, contents: Sequence[Mention], texts: Mapping[str, int]
) -> list[Mention]:
    """Return where a letter's name, written as a word, stands where only a label can.

    Args:
        text: The reply.
        count: How many options there are.
        contents: Where options are named by their texts.
        texts: Options of one word to their labels: with "the sea" among them, "see" is heard so.
    """
    names = _names(text.language.letters, count)
    alike = {
        ord(letter) - ord("A"): texts[name]
        for letter, written in text.language.letters.items()
        for name in written
        if name in texts
    }
    starts = {content.first: content.label for content in contents}
    taken = {place for content in contents for place in range(content.first, content.last)}
    tokens = text.transcript.tokens
    found: list[Mention] = []
    for index, token in enumerate(tokens):
        for name, label in names.get(token.bare, ()):
            last = index + len(name)
            said = tuple(t.bare for t in tokens[index:last])
            if said != name or (len(token.text) == 1 and token.text.isascii()) or index in taken:
                continue
            if _in_slot(text, index, last, label, starts):
                if label in alike and not text.before("option", index):
                    found.append(Mention(index, last, alike[label], "partial"))
                else:
                    found.append(Mention(index, last, label, "sound"))
                break
    return found


def _names(
    letters: Mapping[str, frozenset[str]], count: int
) -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """Return the names of the first letters by their first token, longest first."""
    names: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for letter, written in letters.items():
        if ord(letter) - ord("A") < count:
            for name in written:
                key = tuple(token.bare for token in tokenise(name).tokens)
                if key:
                    names.setdefault(key[0], []).append((key, ord(letter) - ord("A")))
    for known in names.values():
        known.sort(key=lambda pair: (-len(pair[0]), pair))
    return names


def _in_slot(text: Text, first: int, last: int, label: int, starts: Mapping[int, int]) -> bool:
    """Return whether the words around a letter's name leave room for nothing but a letter."""
    tokens = text.transcript.tokens
    if _spelling_aid(text, last, label):
        return True
    ellipsis = "..." in text.transcript.gap(last) or "…" in text.transcript.gap(last)
    ends = text.bounded(last) or tokens[last].bare in {"because", "since"} or last in starts
    ends = (
        ends or _particle(text, last) or (text.at("right", last) > 0 and tokens[first].bare != "be")
    )
    if (
        ellipsis
        or not ends
        or (last in starts and starts[last] != label and not text.bounded(last))
    ):
        return False
    alone = text.back(first)
    whole = text.opens(alone) and (text.closes(text.forward(last)) or _copula(text, last))
    if whole and _in_last_sentence(text, first) and _plainly(text, alone, first):
        return True
    if text.opens(first) and text.at("right", last):
        return True
    if first and tokens[first - 1].bare in _ARTICLES_BEFORE and text.language.code in {"en", "de"}:
        return False
    if text.before("option", first):
        return True
    return text.announced(first) or _joined(text, first)


def _plainly(text: Text, start: int, first: int) -> bool:
    """Return whether no article stands between a sentence's start and the name."""
    return all(t.bare not in {"the", "a", "an"} for t in text.transcript.tokens[start:first])


def _joined(text: Text, first: int) -> bool:
    """Return whether a correction or "not" stands just before the name."""
    return bool(text.before("correction", first) and text.bounded(first))


def _in_last_sentence(text: Text, first: int) -> bool:
    """Return whether the name stands in the last sentence; before it, it may be a sigh."""
    tokens = text.transcript.tokens
    return tokens[first].sentence == tokens[-1].sentence


def _particle(text: Text, last: int) -> bool:
    """Return whether an ending of Korean, Japanese or Chinese follows."""
    return text.language.code in {"ko", "ja", "zh"} and (
        text.transcript.tokens[last].bare in text.language.follow
        if last < len(text.transcript.tokens)
        else True
    )


def _copula(text: Text, last: int) -> bool:
    """Return whether nothing but a Korean "it is" follows."""
    rest = "".join(token.text for token in text.transcript.tokens[last : last + 5])
    return text.language.code == "ko" and rest in {"입니다", "이에요", "예요", "요", "이요"}


def _spelling_aid(text: Text, last: int, label: int) -> bool:
    """Return whether "as in Charlie" follows, with the label's letter."""
    tokens = text.transcript.tokens
    for aid in _SPELLING:
        length = len(aid.split())
        if " ".join(t.bare for t in tokens[last : last + length]) == aid and last + length < len(
            tokens
        ):
            return tokens[last + length].bare[0] == chr(97 + label) and text.closes(
                last + length + 1
            )
    return False

"""Read which option a spoken reply chooses.

Every place that names an option is found first (by letter, sound, place or text), then what is
said about it (meant, ruled out, only weighed, listed, withdrawn); the rules below then decide, the
most explicit first. Where what is left names two options, there is no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from voxmeter.scoring.answers import content, roles
from voxmeter.scoring.answers.languages import language as load
from voxmeter.scoring.answers.letters import find_letters, find_sounds
from voxmeter.scoring.answers.mentions import Mention, Text, without_overlap
from voxmeter.scoring.answers.numbers import scan
from voxmeter.scoring.answers.polarity import read_polarity
from voxmeter.scoring.answers.positions import find_positions
from voxmeter.scoring.answers.result import Answer, no_answer
from voxmeter.scoring.answers.tokens import tokenise

_LETTERS = frozenset({"letter", "sound", "position", "conflict"})
_FAR = 100  # mentions; nobody reads out a longer list
_TEXTS = frozenset({"content", "partial", "number"})


def read_choice(transcript: str, options: Sequence[str], code: str) -> Answer:
    """Return the label that a reply chooses among `options`.

    Args:
        transcript: The spoken reply.
        options: Their texts, in order; labels are A, B, ….
        code: Language of the reply.
    """
    text = Text(tokenise(transcript), load(code))
    if not text.transcript.tokens:
        return no_answer("empty", "nothing was said")
    numbers = scan(text.transcript.tokens, text.language)
    known = content.read_options(options, text.language)
    said = content.words(text.transcript, numbers)
    whole = content.only_results(text, content.find_whole(text, known, said), numbers)
    poles = _poles(known)
    if poles:
        whole = [mention for mention in whole if mention.label not in poles.values()]
    whole = without_overlap([*whole, *content.find_group_options(text, known)])
    count = len(options)
    letters = find_letters(text, count, whole)
    sounds = find_sounds(
        text, count, whole, {o.forms[0]: o.label for o in known if len(o.forms) == 1}
    )
    numeric = any(option.numeric for option in known)
    places = find_positions(text, count, numbers, numeric=numeric)
    found = without_overlap([*letters, *sounds, *places, *whole])
    answer = _decide(text, found, count)
    if answer.value is None and answer.rule in {"nothing-named", "only-rejected"} and poles:
        answer = _by_polarity(transcript, poles, code) or answer
    if answer.value is None and answer.rule == "only-rejected":
        answer = _by_group(text, found, known) or answer
    if answer.value is None and answer.rule == "nothing-named":
        parts = (
            content.find_percent(text, known, numbers)
            or content.find_parts(known, said)
            or content.find_misheard(known, said)
        )
        answer = _decide(text, parts, count) if parts else answer
    return answer


def _by_group(
    text: Text, found: Sequence[Mention], known: Sequence[content.Option]
) -> Answer | None:
    """Return the "none of the above" that is left where every other text is ruled out."""
    groups = content.group_labels(text, known)
    rejected = {
        m.label for m in roles.assign(text, roles.group(text, found)) if m.role == "rejected"
    }
    left = set(range(len(known))) - rejected - {groups[n] for n in ("all", "both") if n in groups}
    none = groups.get("none", groups.get("neither"))
    return Answer(chr(65 + none), "elimination") if none is not None and left == {none} else None


def _poles(options: Sequence[content.Option]) -> dict[str, int]:
    """Return which options begin with yes and no, or true and false, if each has just one."""
    for pair in (("yes", "no"), ("true", "false")):
        labels = {
            pole: [o.label for o in options if o.forms[:1] and o.transcript.tokens[0].bare == pole]
            for pole in pair
        }
        if all(len(found) == 1 for found in labels.values()):
            return {pole: found[0] for pole, found in labels.items()}
    return {}


def _by_polarity(transcript: str, poles: dict[str, int], code: str) -> Answer | None:
    """Return the option that a yes, no, true or false stands for."""
    kind = "yes-no" if "yes" in poles else "true-false"
    answer = read_polarity(transcript, kind, code)
    if not isinstance(answer.value, str):
        return None
    return Answer(chr(65 + poles[answer.value]), f"polarity:{answer.rule}", answer.span)


def _decide(text: Text, found: Sequence[Mention], count: int) -> Answer:
    """Apply the rules to the places that name an option."""
    merged = roles.merge_labels_with_texts(text, found)
    mentions = roles.assign(text, roles.group(text, merged))
    mentions = _without_lists(mentions, count)
    mentions = _without_questions(text, _with_second_thoughts(text, mentions))
    mentions = _without_alternatives(text, mentions)
    mentions = _without_withdrawn(text, mentions)
    mentions = _without_grounds(text, _with_contrast(text, mentions))
    rejected = {m.label for m in mentions if m.role == "rejected"}
    live = [m for m in mentions if m.role in {"plain", "alone", "explicit", "concluded"}]
    for rule, chosen in (
        ("conclusion", [m for m in live if m.role == "concluded"][-1:]),
        ("stated", [m for m in live if m.role in {"explicit", "concluded"}]),
        ("alone", [m for m in live if m.role == "alone" and m.how in _LETTERS]),
        ("letter", [m for m in live if m.how in _LETTERS]),
        ("text", [m for m in live if m.how in _TEXTS]),
    ):
        if rule == "conclusion" and not _settles(mentions, chosen):
            continue
        if chosen:
            return _single(text, rule, chosen, rejected)
    return _by_elimination(mentions, count)


def _settles(mentions: Sequence[Mention], chosen: Sequence[Mention]) -> bool:
    """Return whether a conclusion is the last thing said about another option."""
    if not chosen:
        return False
    last = chosen[-1]
    return not any(
        m.first > last.first and m.role == "explicit" and m.label != last.label for m in mentions
    ) and not any(
        abs(m.first - last.last) <= 4
        and m.role == "concluded"
        and m.label != last.label
        and m.first > last.first - 4
        for m in mentions
    )


def _single(text: Text, rule: str, chosen: Sequence[Mention], rejected: AbstractSet[int]) -> Answer:
    """Return the one option that all chosen mentions name, or none."""
    labels = {m.label for m in chosen}
    last = chosen[-1]
    if -1 in labels:
        return no_answer("conflict", "letter and text name different options")
    if rule in {"letter", "text"} and labels & rejected:
        return no_answer("conflict", "an option is both named and ruled out")
    if len(labels) > 1:
        names = ", ".join(chr(65 + label) for label in sorted(labels))
        return no_answer("several", f"more than one option is named: {names}")
    how = f"{rule}:{last.how}" if rule not in {"letter", "text"} else last.how
    return Answer(chr(65 + last.label), how, text.transcript.span(last.first, last.last))


def _by_elimination(mentions: Sequence[Mention], count: int) -> Answer:
    """Return the only option that was not ruled out, if all others were."""
    rejected = {m.label for m in mentions if m.role == "rejected"}
    weighed = {m.label for m in mentions if m.role == "weighed"}
    left = set(range(count)) - rejected
    if len(left) == 1 and rejected:
        return Answer(chr(65 + left.pop()), "elimination")
    if rejected:
        return no_answer("only-rejected", "options are ruled out, none is chosen")
    if weighed:
        return no_answer("only-weighed", "options are considered, none is chosen")
    if mentions:
        return no_answer("listed", "options are read out, none is chosen")
    return no_answer("nothing-named", "no option is named")


def _without_lists(mentions: Sequence[Mention], count: int) -> list[Mention]:
    """Return mentions with every run that reads out all options in order marked as listed."""
    marked = list(mentions)
    if count < 3 and not (count == 2 and len(mentions) > 2):
        return marked
    index = 0
    while index < len(marked):
        run = _run(marked, index, count)
        if run:
            for place in range(index, index + run):
                marked[place] = marked[place].as_role("listed")
        index += run or 1
    return marked


def _run(mentions: Sequence[Mention], index: int, count: int) -> int:
    """Return how many mentions from `index` on read out all options in order; 0 for none."""
    expected, place = 0, index
    while place < len(mentions) and expected <= count and place - index < _FAR:
        mention = mentions[place]
        if mention.role == "rejected" or (mention.role in {"explicit", "concluded"} and expected):
            return 0
        if mention.label == expected:
            expected += 1
        elif not (expected and mention.label == expected - 1) or expected == count:
            break
        place += 1
    return place - index if expected == count else 0


def _with_second_thoughts(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with both sides of "A. Or B." as plain: neither is settled on."""
    marked = list(mentions)
    for place in range(1, len(marked)):
        start = text.back(marked[place].first, marked[place - 1].last)
        length = text.before("or", start)
        lone = length > 0 and text.opens(start - length) and text.closes(marked[place].last)
        if lone and not text.before("correction", start):
            for side in (place - 1, place):
                if marked[side].role in {"alone", "explicit", "weighed"}:
                    marked[side] = marked[side].as_role("plain")
    return marked


def _without_alternatives(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with both of "A or B … B" as weighed where the last decides."""
    if len(mentions) < 3 or mentions[-1].role not in {"plain", "alone"}:
        return list(mentions)
    one, other, last = mentions[-3:]
    joined = any(text.at("or", index) for index in range(one.last, other.first))
    apart = not any(text.at(n, i) for n in ("or", "and") for i in range(other.last, last.first))
    decided = joined and apart and text.closes(last.last) and last.label in {one.label, other.label}
    if not decided or "," in text.transcript.gap(last.first):
        return list(mentions)
    return [*mentions[:-3], one.as_role("weighed"), other.as_role("weighed"), last]


def _without_questions(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with those in questions marked as weighed, if anything else is said."""
    questions = text.transcript.questions
    tokens = text.transcript.tokens
    others = any(tokens[m.first].sentence not in questions and m.role != "listed" for m in mentions)
    lengths = Counter(token.sentence for token in tokens)
    marked: list[Mention] = []
    for mention in mentions:
        sentence = tokens[mention.first].sentence
        length = lengths[sentence]
        asked = sentence in questions and mention.role in {"plain", "alone", "explicit"}
        if asked and (others or length - (mention.last - mention.first) > 1):
            marked.append(mention.as_role("weighed"))
        else:
            marked.append(mention)
    return marked


def _without_withdrawn(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with those before a correction marked as withdrawn."""
    marked = list(mentions)
    live = max(
        (i for i, m in enumerate(marked) if m.role in {"plain", "alone", "explicit"}), default=0
    )
    for place in range(len(marked) - 1, 0, -1):
        one, other = marked[place - 1], marked[place]
        if other.role == "listed" or not _corrected(text, one.last, other.first):
            continue
        if other.role == "rejected" and place > live:
            continue
        for earlier in range(place):
            if marked[earlier].role not in {"rejected", "listed"}:
                marked[earlier] = marked[earlier].as_role("withdrawn")
        if other.role in {"plain", "alone", "weighed"} and other.label != one.label:
            marked[place] = other.as_role("explicit")
        break
    return marked


def _corrected(text: Text, start: int, end: int) -> bool:
    """Return whether a correction stands between tokens `start` and `end`."""
    for index in range(start, end):
        length = text.at("correction", index)
        if length and index + length <= end and (length > 1 or text.bounded(index)):
            return True
        alone = text.transcript.tokens[index].bare in {
            "no",
            "nope",
            "nah",
            "nein",
            "non",
            "nee",
            "não",
            "nao",
            "нет",
            "wait",
            "actually",
        }
        if alone and text.bounded(index) and (text.bounded(index + 1) or index + 1 == end):
            return True
    return False


def _without_grounds(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with those behind a "because" marked as weighed, if one stands before it."""
    tokens = text.transcript.tokens
    marked: list[Mention] = []
    sentence, answered, grounds = -1, False, False
    place = 0
    for mention in mentions:
        if tokens[mention.first].sentence != sentence:
            sentence, answered, grounds = tokens[mention.first].sentence, False, False
        between = range(max(place, 0), mention.first)
        if answered and any(text.at("aside", i) for i in between if tokens[i].sentence == sentence):
            grounds = True
        plain = mention.role in {"plain", "alone"}
        marked.append(mention.as_role("weighed") if grounds and plain else mention)
        answered = answered or mention.role in {"plain", "alone", "explicit", "concluded"}
        place = mention.last
    return marked


def _after_but(text: Text, mention: Mention, stop: int) -> bool:
    """Return whether a sentence ends with "…, but C"."""
    start = text.back(mention.first, stop)
    if any(token.bare == "also" for token in text.transcript.tokens[start : mention.first]):
        return False
    length = text.before("contrast", start)
    return length > 0 and start - length >= stop and text.closes(mention.last)


def _with_contrast(text: Text, mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions with those before "but it's …" marked as weighed."""
    marked = list(mentions)
    tokens = text.transcript.tokens
    for place in range(1, len(marked)):
        other = marked[place]
        start = marked[place - 1].last
        if other.role in {"plain", "alone"} and _after_but(text, other, start):
            marked[place] = other = other.as_role("explicit")
        if other.role not in {"explicit", "concluded"}:
            continue
        if not any(text.at("contrast", index) for index in range(start, other.first)):
            continue
        for earlier in range(place - 1, max(-1, place - 1 - _FAR), -1):
            same = tokens[marked[earlier].first].sentence == tokens[other.first].sentence
            if same and marked[earlier].role in {"plain", "alone"}:
                marked[earlier] = marked[earlier].as_role("weighed")
    return marked

"""Instructions whose keeping can be checked by rule: the 25 of IFEval, as VoiceBench asks them.

Names and settings are the benchmark's; the rules are our own reading of what each asks for.
`docs/suites.md` says where they differ from the published ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from voxmeter.scoring.checks import Check
from voxmeter.scoring.language import is_language
from voxmeter.scoring.sentences import count_sentences

INSTRUCTIONS_VERSION = "instructions-1"
"""Changes when the same reply may be read otherwise."""

Settings = Mapping[str, Any]
Rule = Callable[[str, Settings], bool]

_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_JSON_FENCE = re.compile(r"\A```(?:json)?|```\Z", re.IGNORECASE)


def follows(check: Check, text: str) -> bool:
    """Return whether a reply keeps one instruction; an empty reply keeps none.

    Raises:
        ValueError: If the instruction is not known or its settings are not what it needs.
    """
    rule = RULES.get(check.name)
    if rule is None:
        raise ValueError(f"no instruction {check.name!r}")
    if not text.strip():
        return False
    try:
        return rule(text, check.settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"settings of {check.name}: {error!r:.80}") from None


def follows_loosely(check: Check, text: str) -> bool:
    """Return whether a reply keeps an instruction when what stands around it is looked over.

    That is: without its first line, its last, or both ("Sure, here it is:"), each with and without
    asterisks.

    Raises:
        ValueError: As `follows`.
    """
    return any(follows(check, one) for one in dict.fromkeys(_variants(text)))


def _variants(text: str) -> Iterator[str]:
    lines = text.split("\n")
    for kept in (lines, lines[1:], lines[:-1], lines[1:-1]):
        whole = text if kept is lines else "\n".join(kept).strip()
        yield whole
        yield whole.replace("*", "")


def check_settings(check: Check) -> None:
    """Raise where an instruction could not be checked, whatever the reply.

    Raises:
        ValueError: As `follows`.
    """
    follows(check, "word")


def _compared(count: int, relation: object, wanted: object) -> bool:
    if not isinstance(wanted, int):
        raise TypeError(f"{wanted!r} is no number")
    if relation == "at least":
        return count >= wanted
    if relation == "less than":
        return count < wanted
    raise TypeError(f"unknown relation {relation!r}")


def _texts(settings: Settings, key: str) -> list[str]:
    found = settings[key]
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise TypeError(f"{key} is no list of words")
    return found


def _text(settings: Settings, key: str) -> str:
    found = settings[key]
    if not isinstance(found, str) or not found.strip():
        raise TypeError(f"{key} is no text")
    return found.strip()


def _number(settings: Settings, key: str) -> int:
    found = settings[key]
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{key} is no number")
    return found


def _occurrences(text: str, word: str) -> int:
    return len(re.findall(re.escape(word), text, re.IGNORECASE))


def _keywords(text: str, settings: Settings) -> bool:
    return all(_occurrences(text, word) for word in _texts(settings, "keywords"))


def _keyword_frequency(text: str, settings: Settings) -> bool:
    count = _occurrences(text, _text(settings, "keyword"))
    return _compared(count, settings["relation"], settings["frequency"])


def _forbidden_words(text: str, settings: Settings) -> bool:
    return not any(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
        for word in _texts(settings, "forbidden_words")
    )


def _letter_frequency(text: str, settings: Settings) -> bool:
    count = text.casefold().count(_text(settings, "letter").casefold())
    return _compared(count, settings["let_relation"], settings["let_frequency"])


def _response_language(text: str, settings: Settings) -> bool:
    return is_language(text, _text(settings, "language"))


def _number_sentences(text: str, settings: Settings) -> bool:
    return _compared(count_sentences(text), settings["relation"], settings["num_sentences"])


def _number_words(text: str, settings: Settings) -> bool:
    return _compared(len(re.findall(r"\w+", text)), settings["relation"], settings["num_words"])


def _number_paragraphs(text: str, settings: Settings) -> bool:
    """Paragraphs stand between lines of three asterisks."""
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", text)]
    inner = parts[1:-1]
    return all(inner) and sum(map(bool, parts)) == _number(settings, "num_paragraphs")


def _nth_paragraph_first_word(text: str, settings: Settings) -> bool:
    """Paragraphs stand between empty lines; the one counted from 1 begins with a word."""
    parts = text.split("\n\n")
    wanted, place = _number(settings, "num_paragraphs"), _number(settings, "nth_paragraph")
    first = _text(settings, "first_word").casefold()
    if not 1 <= place <= len(parts) or sum(bool(part.strip()) for part in parts) != wanted:
        return False
    words = parts[place - 1].split()
    return bool(words) and re.split(r"[.,?!'\"]", words[0].lstrip("'\""))[0].casefold() == first


def _number_placeholders(text: str, settings: Settings) -> bool:
    return len(re.findall(r"\[.*?\]", text)) >= _number(settings, "num_placeholders")


_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}


def _postscript(text: str, settings: Settings) -> bool:
    marker = _text(settings, "postscript_marker")
    pattern = _POSTSCRIPTS.get(marker, re.escape(marker))
    return re.search(pattern, text, re.IGNORECASE) is not None


def _number_bullet_lists(text: str, settings: Settings) -> bool:
    points = re.findall(r"^\s*(?:\*[^*\n]|-)", text, re.MULTILINE)
    return len(points) == _number(settings, "num_bullets")


def _constrained_response(text: str, _settings: Settings) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _number_highlighted_sections(text: str, settings: Settings) -> bool:
    """Sections stand between single or double asterisks."""
    single = re.findall(r"\*([^\n*]*)\*", text)
    double = re.findall(r"\*\*([^\n*]*)\*\*", text)
    count = sum(bool(one.strip()) for one in (*single, *double))
    return count >= _number(settings, "num_highlights")


def _multiple_sections(text: str, settings: Settings) -> bool:
    mark = re.escape(_text(settings, "section_spliter"))
    return len(re.findall(rf"{mark}\s?\d+", text)) >= _number(settings, "num_sections")


def _json_format(text: str, _settings: Settings) -> bool:
    try:
        json.loads(_JSON_FENCE.sub("", text.strip()).strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str, _settings: Settings) -> bool:
    return any(one.strip() for one in re.findall(r"<<([^\n>]+)>>", text))


def _two_responses(text: str, _settings: Settings) -> bool:
    parts = [part.strip() for part in text.split("******")]
    given = [part for part in parts if part]
    return all(parts[1:-1]) and len(given) == 2 and given[0] != given[1]


def _repeat_prompt(text: str, settings: Settings) -> bool:
    return text.strip().casefold().startswith(_text(settings, "prompt_to_repeat").casefold())


def _end_checker(text: str, settings: Settings) -> bool:
    return text.strip().strip('"').casefold().endswith(_text(settings, "end_phrase").casefold())


def _capital_word_frequency(text: str, settings: Settings) -> bool:
    words = re.findall(r"\w[\w'’-]*", text)  # noqa: RUF001 - the curly apostrophe too
    count = Counter(word.isupper() for word in words)[True]
    return _compared(count, settings["capital_relation"], settings["capital_frequency"])


def _english_capital(text: str, _settings: Settings) -> bool:
    return text.isupper() and is_language(text, "en")


def _english_lowercase(text: str, _settings: Settings) -> bool:
    return text.islower() and is_language(text, "en")


def _no_comma(text: str, _settings: Settings) -> bool:
    return "," not in text


def _quotation(text: str, _settings: Settings) -> bool:
    inside = text.strip()
    return len(inside) > 1 and inside[0] == inside[-1] == '"'


RULES: Mapping[str, Rule] = {
    "keywords:existence": _keywords,
    "keywords:frequency": _keyword_frequency,
    "keywords:forbidden_words": _forbidden_words,
    "keywords:letter_frequency": _letter_frequency,
    "language:response_language": _response_language,
    "length_constraints:number_sentences": _number_sentences,
    "length_constraints:number_paragraphs": _number_paragraphs,
    "length_constraints:number_words": _number_words,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph_first_word,
    "detectable_content:number_placeholders": _number_placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _number_bullet_lists,
    "detectable_format:constrained_response": _constrained_response,
    "detectable_format:number_highlighted_sections": _number_highlighted_sections,
    "detectable_format:multiple_sections": _multiple_sections,
    "detectable_format:json_format": _json_format,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat_prompt,
    "startend:end_checker": _end_checker,
    "startend:quotation": _quotation,
    "change_case:capital_word_frequency": _capital_word_frequency,
    "change_case:english_capital": _english_capital,
    "change_case:english_lowercase": _english_lowercase,
    "punctuation:no_comma": _no_comma,
}
"""The rule of each instruction, by its name in the data."""

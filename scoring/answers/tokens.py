"""Cut a transcript into tokens that remember where they stood.

Typing accidents are undone first: full-width letters, zero-width characters, typographic quotes,
foreign digits, markdown marks, sound tags such as [Music]. Offsets always refer to the transcript
as it was given.
"""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_PLAIN = str.maketrans(
    {
        "‘": "'", "’": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"',
        "»": '"', "「": '"', "」": '"', "−": "-", "‐": "-", "‑": "-", "–": "—", "⁄": "/",
        "∕": "/", "·": " ", "÷": "/", "_": " ", "#": " ", "~": " ", "∙": " ",
    }
)  # fmt: skip
_LOOKALIKES = str.maketrans(
    "АВСЕНІЈКМОРТХΑΒΕΗΙΚΜΝΟΡΤΧаеіјорсх", "ABCEHIJKMOPTXABEHIKMNOPTXaeijopcx"
)
_SOUND = (
    r"(?:music|applause|laugh(?:s|ter|ing)?|sighs?|coughs?(?:ing)?|chuckles?|pause|silence|noise|"
    r"clears throat|inaudible|unintelligible|blank[ _]audio|breath(?:s|ing|es)?|static|beep|"
    r"musik|musique|música|musica|applaus|gelächter|rires?|risas?|音楽|音乐|笑い?|拍手|음악|박수|"
    r"музыка|аплодисменты|смех|sound of [a-z ]{1,20}|[a-z ]{0,20}(?:music|playing|speaking))"
)
_NOISE = re.compile(
    rf"\[\s*{_SOUND}\s*\]|\(\s*{_SOUND}\s*\)|\*{{1,2}}\s*{_SOUND}\s*\*{{1,2}}"
    r"|<think>.*?(?:</think>|\Z)|[♪♫🎵🎶]",
    re.IGNORECASE | re.DOTALL,
)
_SINGLE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts read one character at a time
_MARKS = "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e"
_TOKEN = re.compile(
    r"</?[A-Za-z]{1,12}>"
    r"|\\[A-Za-z]{1,12}"
    r"|(?:(?<![^\W\d_])[A-Za-z]\.){2,6}(?![^\W\d_])"
    r"|\d+(?:[.,']\d+)*"
    rf"|[{_SINGLE}]"
    rf"|(?:(?![{_SINGLE}])[^\W\d_]|[{_MARKS}])+(?:'(?:(?![{_SINGLE}])[^\W\d_])+)*'?\d*"
    r"|[%°$€£¥=+×]"
)
_SENTENCE_END = re.compile(r"[?!;。؟।\n]|(?<!\.)\.(?!\.)")
_NOT = re.compile(r"(?P<verb>is|are|was|were|do|does|did|could|would|should|must|has|have|had)n'?t")
_IS_AFTER = frozenset(
    [
        "it",
        "that",
        "what",
        "here",
        "there",
        "answer",
        "he",
        "she",
        "this",
        "which",
        "one",
        "choice",
        "who",
        "where",
    ]
)
_JOINED = re.compile(r"((?i:option|answer|choice|letter))([A-Z]|[a-j])")
_LEADING_POINT = re.compile(r"(?<![\w.,])\.(?=\d)")
MAX_CHARACTERS = 40_000
"""Transcripts are read up to here; a reply of four hours of speech is no answer."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, symbol, or character of a script written without spaces.

    Attributes:
        text: Case-folded, accents kept.
        bare: Case-folded, without accents.
        raw: As written, typing accidents undone.
        start: First character in the transcript.
        end: One past the last character.
        gap: What stands between the previous token and this one.
        sentence: Number of the sentence, from 0.
    """

    text: str
    bare: str
    raw: str
    start: int
    end: int
    gap: str
    sentence: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript in tokens.

    Attributes:
        tokens: In order.
        tail: What stands after the last token.
        questions: Numbers of the sentences that end in a question mark.
    """

    tokens: tuple[Token, ...]
    tail: str
    questions: frozenset[int]

    def gap(self, index: int) -> str:
        """Return what stands before token `index`, or after the last token."""
        return self.tokens[index].gap if index < len(self.tokens) else self.tail

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the characters of tokens `first` to `last`, the latter not included."""
        return self.tokens[first].start, self.tokens[last - 1].end


def ends_sentence(gap: str) -> bool:
    """Return whether a gap between two tokens ends a sentence; an ellipsis does not."""
    return _SENTENCE_END.search(gap) is not None


def without_accents(text: str) -> str:
    """Return text case-folded and without combining marks of the Latin and Greek scripts."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFC", kept)


def _clean(transcript: str) -> tuple[str, list[int]]:
    """Return the text with typing accidents undone, and for each character where it came from."""
    characters: list[str] = []
    origins: list[int] = []
    transcript = transcript[:MAX_CHARACTERS]
    for index, character in enumerate(transcript):
        if character == "." and _LEADING_POINT.match(transcript, index):  # ".5" is "0.5"
            characters.append("0")
            origins.append(index)
        for plain in _plain(character):
            characters.append(plain)
            origins.append(index)
    text = "".join(characters)
    text = _NOISE.sub(lambda noise: " " * len(noise.group()), text)
    text = re.sub(r"(?<=\d)(\s?)\*(\s?)(?=\d)", r"\1×\2", text).replace("*", " ")
    return text, origins


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    """Return what one character stands for; empty for one that is not seen."""
    if character.isascii():
        return character.translate(_PLAIN)
    if character == "\u200d" or unicodedata.category(character) in {"Cf", "Cc"}:
        return ""
    character = character.translate(_PLAIN)
    if character.isdigit() and character not in "²³¹":
        return str(unicodedata.digit(character))
    folded = unicodedata.normalize("NFKC", character).translate(_PLAIN)
    return f" {folded}" if "/" in folded and folded[0].isdigit() else folded


def tokenise(transcript: str) -> Transcript:
    """Return the tokens of a transcript; none for an empty one."""
    text, origins = _clean(transcript)
    text = _compose(text)
    tokens: list[Token] = []
    questions: set[int] = set()
    sentence = 0
    position = 0
    for match in _TOKEN.finditer(text):
        if match.group().startswith("</"):
            continue  # a closing tag is a pause
        gap = text[position : match.start()]
        position = match.end()
        if tokens and ends_sentence(gap) and not (gap.startswith(":") and "\n" in gap):
            if "?" in gap or "؟" in gap:
                questions.add(sentence)
            sentence += 1
        start, end = origins[match.start()], origins[match.end() - 1] + 1
        for part in _parts(match.group()):
            raw = part.translate(_LOOKALIKES) if len(part) == 1 else part
            folded = raw.casefold()
            tokens.append(Token(folded, without_accents(raw), raw, start, end, gap, sentence))
            gap = ""
    tail = text[position:]
    if "?" in tail or "؟" in tail:
        questions.add(sentence)
    return Transcript(tuple(tokens), tail, frozenset(questions))


def _compose(text: str) -> str:
    """Return text with its accents composed, if that keeps every offset."""
    composed = unicodedata.normalize("NFC", text)
    return composed if len(composed) == len(text) else text


def _parts(word: str) -> tuple[str, ...]:
    """Return a contraction's words; any other word alone."""
    lower = word.casefold()
    joined = _JOINED.fullmatch(word)
    if joined:
        return joined.groups()
    if "'" not in lower and lower != "cannot":
        return (word,)
    if lower in {"can't", "cannot"}:
        return ("can", "not")
    if lower in {"won't", "wont"}:
        return ("will", "not")
    negated = _NOT.fullmatch(lower)
    if negated:
        return (negated["verb"], "not")
    stem, _, ending = word.partition("'")
    if ending.casefold() == "s" and (len(stem) == 1 or stem.casefold() in _IS_AFTER):
        return (stem, "is")
    return (word.rstrip("'"),)

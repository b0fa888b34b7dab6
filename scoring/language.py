"""Whether a text is in a language: by its script, and by small words where languages share one.

Made for replies of a sentence or more; a short text without any small word is not held against the
language that was asked for, as long as the script is its own.
"""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

LANGUAGE_VERSION = "language-1"
"""Changes when the same text may be read otherwise."""

_MOST = 0.8
"""Share of the letters that has to be in a language's script."""

_SCRIPTS: Mapping[str, tuple[str, ...]] = {
    "LATIN": ("en", "es", "pt", "fr", "de", "it", "pl", "fi", "vi", "sw"),
    "CYRILLIC": ("ru", "uk", "bg"),
    "ARABIC": ("ar", "fa", "ur"),
    "DEVANAGARI": ("hi", "mr", "ne"),
    "BENGALI": ("bn",),
    "GURMUKHI": ("pa",),
    "GUJARATI": ("gu",),
    "TAMIL": ("ta",),
    "TELUGU": ("te",),
    "KANNADA": ("kn",),
    "MALAYALAM": ("ml",),
    "THAI": ("th",),
    "HEBREW": ("he",),
    "HANGUL": ("ko",),
    "KANA": ("ja",),
    "CJK": ("zh",),
}
_WORDS: Mapping[str, str] = {
    "en": "the of and to in is that it for was with are be this have from you not they your will "
    "an or as but can at on all their we what which if my has would there so",
    "es": "el la los las de que y en un una por con para es no su lo como más pero del al muy "
    "este esta son está sus también puede ser hay cuando",
    "pt": "o a os as de que e em um uma por com para é não seu se como mais mas do da dos das no "
    "na são você está também pode ser muito ao pelo",
    "fr": "le la les de des et un une est que pour dans qui pas vous ce sur il elle au du avec "
    "sont par plus nous je mais cette être votre aux",
    "de": "der die das und ist nicht ein eine zu den mit von für auf sich dem es im auch als sie "
    "wird werden sind oder bei ich aus kann einen",
    "it": "il lo la gli le di che e un una per con non è sono del della dei si come più ma anche "
    "nel questo questa puoi essere delle alla",
    "pl": "i w z na do nie się jest to że o dla jak po od za czy przez który które tak może oraz "
    "są być ale lub jego",
    "fi": "ja on ei se että hän oli ovat myös kun mutta tai joka sen voi olla kuin niin mitä tämä "
    "ovat sekä jos hyvin",
    "vi": "là và của có một cho không được những trong với các này người đã để khi bạn thì cũng "
    "như ở từ đến rất",
    "sw": "na ya wa ni kwa katika la za kuwa hii hiyo lakini pia au kama kwamba yake cha sana "
    "watu huu hizi si kwenye wetu yetu kila hapa ndani",
    "ru": "и в не на что я с он как это по но из у за от так же для бы вы мы или если есть",
    "uk": "і в не на що я з він як це по але із у за від так для ви ми або якщо є та й до",
    "bg": "и в не на че аз с той как това по но от за до се да са ще или ако е който много "
    "ние вие те беше бяха към тази този нашето",
    "ar": "في من على إلى أن هذا هذه التي الذي كان لا ما مع عن هو هي كل أو و ذلك",
    "fa": "و در به از که این را با است برای آن یک تا هم می های شود بر باید شما",
    "ur": "اور کے میں کی ہے کا سے کو یہ نے پر ہیں کہ ایک نہیں بھی تھا لیے آپ",
    "hi": "और के में की है का से को यह ने पर हैं कि एक नहीं भी था लिए आप हो",
    "mr": "आणि आहे च्या मध्ये या हे तो ते एक नाही आहेत होते करून साठी आपण की होता असे",
    "ne": "र को मा छ हो का लागि यो एक पनि छन् गर्न भएको थियो तपाईं गर्छ यस हुन्छ",
}
_SMALL = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+(?:[\u0300-\u036f\u0900-\u0dff]+[^\W\d_]*)*")
LANGUAGES = frozenset(code for codes in _SCRIPTS.values() for code in codes)
"""Languages that are known."""


def is_language(text: str, code: str) -> bool:
    """Return whether a text is in a language.

    Args:
        text: Any text; one without letters is in none.
        code: One of `LANGUAGES`.

    Raises:
        ValueError: If the language is not known.
    """
    if code not in LANGUAGES:
        raise ValueError(f"language {code!r} is not known")
    script = _script(text)
    if script is None or code not in _SCRIPTS[script]:
        return False
    counts = _small_words(text, _SCRIPTS[script])
    return counts[code] == max(counts.values(), default=0)


def _script(text: str) -> str | None:
    """Return the script that most of a text's letters are in."""
    counts: Counter[str] = Counter()
    for letter in text:
        if letter.isalpha():
            counts[unicodedata.name(letter, "").partition(" ")[0]] += 1
    kana = counts.pop("HIRAGANA", 0) + counts.pop("KATAKANA", 0)
    if kana:  # Japanese is written with characters of Chinese among its own
        counts["KANA"] = kana + counts.pop("CJK", 0)
    total = sum(counts.values())
    if not total:
        return None
    script, most = counts.most_common(1)[0]
    return script if script in _SCRIPTS and most >= _MOST * total else None


def _small_words(text: str, codes: tuple[str, ...]) -> Counter[str]:
    counts = Counter(dict.fromkeys(codes, 0))
    if len(codes) > 1:
        for word in _WORD.findall(unicodedata.normalize("NFC", text).casefold()):
            counts.update(code for code in codes if word in _SMALL[code])
    return counts

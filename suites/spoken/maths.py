"""Mathematical and logical notation in English words."""

from __future__ import annotations

import re

from voxmeter.suites.spoken.numbers import NUMBER, cardinal, fraction, ordinal

_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni")
_SUB = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋", "0123456789+-")
_VULGAR = {
    "½": "1/2",
    "⅓": "1/3",
    "⅔": "2/3",
    "¼": "1/4",
    "¾": "3/4",
    "⅕": "1/5",
    "⅖": "2/5",
    "⅗": "3/5",
    "⅘": "4/5",
    "⅙": "1/6",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_LATEX = {
    "times": "×",
    "cdot": "·",
    "div": "÷",
    "pm": "±",
    "leq": "≤",
    "le": "≤",
    "geq": "≥",
    "ge": "≥",
    "neq": "≠",
    "ne": "≠",
    "approx": "≈",
    "infty": "∞",
    "rightarrow": "→",
    "to": "→",
    "Rightarrow": "⇒",
    "in": "∈",
    "cup": "∪",
    "cap": "∩",
    "subset": "⊂",
    "subseteq": "⊆",
    "forall": "∀",
    "exists": "∃",
    "wedge": "∧",
    "land": "∧",
    "vee": "∨",
    "lor": "∨",
    "neg": "¬",
    "sum": "∑",
    "int": "∫",
    "partial": "∂",
    "degree": "°",
    "circ": "°",
    "ldots": "...",
    "dots": "...",
    "%": "%",
    "$": "$",
    "quad": " ",
    ",": " ",
}
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma "
    "tau upsilon phi chi psi omega"
)
_GREEK = _GREEK_NAMES.split()
_GREEK_LETTERS = dict(zip("αβγδεζηθικλμνξοπρστυφχψω", _GREEK, strict=True)) | {
    "ς": "sigma",
    "ϕ": "phi",
    "ϵ": "epsilon",
    "ϑ": "theta",
    "µ": "mu",
}
_WORDS = {
    "×": "times",
    "⋅": "times",
    "·": "times",
    "∗": "times",
    "÷": "divided by",
    "±": "plus or minus",
    "∓": "minus or plus",
    "=": "equals",
    "≠": "is not equal to",
    "≈": "is approximately equal to",
    "≅": "is congruent to",
    "≡": "is equivalent to",
    "∝": "is proportional to",
    "≤": "is less than or equal to",
    "≥": "is greater than or equal to",
    "≪": "is much less than",
    "≫": "is much greater than",
    "∞": "infinity",
    "∈": "is in",
    "∉": "is not in",
    "∪": "union",
    "∩": "intersection",
    "⊂": "is a subset of",
    "⊆": "is a subset of",
    "⊃": "implies",
    "⊇": "is a superset of",
    "∅": "the empty set",
    "∀": "for all",
    "∃": "there exists",
    "∧": "and",
    "∨": "or",
    "¬": "not",
    "⊕": "exclusive or",
    "⇒": "implies",
    "⟹": "implies",
    "⇔": "if and only if",
    "↔": "if and only if",
    "→": "to",
    "←": "from",
    "⟶": "to",
    "⇌": "in equilibrium with",
    "∑": "the sum of",
    "∏": "the product of",
    "∫": "the integral of",
    "∂": "partial",
    "∇": "del",
    "√": "the square root of",
    "∛": "the cube root of",
    "∴": "therefore",
    "∵": "because",
    "∥": "is parallel to",
    "⊥": "is perpendicular to",
    "∠": "angle",
    "△": "triangle",
    "•": "and",
    "′": "prime",
    "°": "degrees",
    "©": "copyright",
    "®": "registered",
    "™": "trademark",
}
_FUNCTIONS = {
    "sin": "sine",
    "cos": "cosine",
    "tan": "tangent",
    "log": "log",
    "ln": "natural log",
    "exp": "exponential",
    "lim": "limit",
    "gcd": "greatest common divisor",
    "lcm": "least common multiple",
    "det": "determinant",
    "max": "maximum",
    "min": "minimum",
}
_OPERAND = r"[0-9a-zA-Z)\]°%!|^]"


def forms(text: str) -> str:
    """Bring signs that are written in several ways to one: dashes, quotes, raised digits."""
    # first of all: later rules look for spaces, and would go through a long run from each of them
    text = re.sub(r"\s+", lambda found: "\n" if "\n" in found[0] else " ", text)
    text = re.sub(r"[\u00ad\u200b-\u200f\u2060\ufeff]", "", text)
    text = re.sub(r"[‘’ʼ]", "'", text)
    text = re.sub(r"[“”„«»]", '"', text)
    text = re.sub(r"[‐‑−﹣－]", "-", text)
    text = re.sub(r"(?<=[0-9])\s?[–—]\s?(?=[0-9])", "-", text)
    text = re.sub(r"(?<=[a-zA-Z])–(?=[a-zA-Z])", "-", text)
    text = re.sub(r"\s*[–—]\s*|(?<=\w)\s+--\s+(?=\w)", ", ", text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+", lambda found: f"^{found[0].translate(_SUPER)}", text)
    text = text.translate(_SUB)
    for sign, written in _VULGAR.items():
        text = re.sub(rf"(?<=[0-9])\s?{sign}", f" {written}", text).replace(sign, written)
    return text.replace("⁄", "/").replace("…", "...").replace("∕", "/")


def latex(text: str) -> str:
    r"""Bring what TeX writes to plain signs: \frac{1}{2}, \sqrt{x}, x^{10}, \leq, $...$."""
    if "\\" in text or re.search(r"[\^_]\{", text):
        for _ in range(4):  # nested as deep as questions are
            text = re.sub(r"\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", _stacked, text)
            text = re.sub(r"\\sqrt\s*\{([^{}]*)\}", r"√(\1)", text)
            text = re.sub(
                r"\\(?:text|mathrm|mathbf|mathit|operatorname)\s*\{([^{}]*)\}", r"\1", text
            )
            text = re.sub(r"([\^_])\{([^{}()\s]{1,2})\}", r"\1\2", text)
            text = re.sub(r"([\^_])\{([^{}]*)\}", r"\1(\2)", text)
        text = re.sub(r"\\(?:left|right|displaystyle)(?![a-zA-Z])", "", text)
        text = re.sub(r"\\([a-zA-Z]{4,})\s*\{([^{}]*)\}", r" \1 of \2", text)
        text = re.sub(r"\\([a-zA-Z]+|[%$,])", _command, text)
        text = re.sub(r"\\[()\[\]]", "", text)
    return re.sub(r"\$([^$]*[\\^_=+<>×·÷≤≥≠∞√πα-ω][^$]*)\$", r"\1", text)


def _stacked(found: re.Match[str]) -> str:
    top, bottom = (part.strip() for part in (found[1], found[2]))
    if re.fullmatch(r"[0-9]+", top) and re.fullmatch(r"[0-9]+", bottom):
        return f"{top}/{bottom}"
    return f"{_grouped(top)} over {_grouped(bottom)}"


def _grouped(part: str) -> str:
    return part if re.fullmatch(r"\w+", part) else f"({part})"


def _command(found: re.Match[str]) -> str:
    name = found[1]
    if name in _LATEX:
        return _LATEX[name]
    return f" {name} " if name.lower() in _GREEK or name in _FUNCTIONS else name


def blanks(text: str) -> str:
    """Speak a gap to be filled in, and the bar that MMLU has after "Statement 1"."""
    text = re.sub(r"\b(Statement [0-9])\s*\|\s*", r"\1: ", text)
    text = re.sub(r"\s*_{2,}(?:\s*,?\s*_{2,})*\s*(?=[.?!,;:])", " blank", text)
    return re.sub(r"\s*_{2,}\s*", " blank ", text)


def functions(text: str) -> str:
    """Speak functions and absolute values: f(x), sin x, log_2 8, |x|."""
    text = re.sub(r"\b([fghFGHPpq])(')?\(([^()]{1,24})\)", _applied, text)
    text = re.sub(r"\bsqrt\s?(?=\()", "√", text)
    text = re.sub(r"√\s?\(([^()]*)\)", r"√\1", text)
    text = re.sub(r"\blog_\(?([0-9a-z]+)\)?", lambda found: f"log base {found[1]} of", text)
    for name, word in _FUNCTIONS.items():
        text = re.sub(rf"(?<![a-zA-Z]){name}\s?\(([^()]*)\)", rf" {word} of \1", text)
        text = re.sub(rf"\b{name}\s?(?=\()", f"{word} of ", text)
        if name not in {"exp", "max", "min", "det", "lim"}:
            text = re.sub(rf"\b{name}\s(?=[0-9a-zA-Zα-ωθ]\b|[0-9]+)", f"{word} of ", text)
    text = re.sub(r"\blim\b", "the limit as", text)
    inside = r"([0-9a-zA-Z+\-*/^ ]{1,20})"
    return re.sub(rf"(?<![\w|])\|{inside}\|(?![\w|])", r"the absolute value of \1", text)


def _applied(found: re.Match[str]) -> str:
    name, prime, inside = found[1], " prime" if found[2] else "", found[3]
    if not re.fullmatch(r"[0-9a-zA-Z+\-*/^, |.]+", inside) or re.search(r"[a-zA-Z]{3,}", inside):
        return found[0]
    return f"{name}{prime} of {inside.replace('|', ' given ')}"


def brackets(text: str) -> str:
    """Speak brackets of formulas; those of a sentence become pauses."""
    for _ in range(4):
        text = re.sub(r"(\w|[)\]])?\(([^()]*)\)(?=(\w|[(\[^])?)", _bracketed, text)
    text = re.sub(r"\[([^\[\]]*)\]", r" open square bracket \1 close square bracket ", text)
    text = re.sub(r"\b[Tt]he set \{([^{}]*)\}|\{([^{}]*)\}", _set, text)
    return re.sub(r"[()\[\]{}]", " ", text)


def _set(found: re.Match[str]) -> str:
    return f"the set {found[1] or found[2] or 'of nothing'}"


def _bracketed(found: re.Match[str]) -> str:
    before, inside, after = found[1] or "", found[2].strip(), found[3] or ""
    short = not re.search(r"[a-zA-Z]{3,}", re.sub(r"\b(?:open|close|bracket)\b", "", inside))
    if before.isalpha() and re.fullmatch(r"e?s|ies", inside):
        return before + inside  # part(s)
    operator = re.search(r"[+*/^=<>×·÷±≤≥≠∨∧⊃~¬]|(?<=\w)\s?-\s?(?=\w)|,", inside)
    raised = before == "^" or found.string[: found.start()].endswith("^")
    if raised or (short and (operator or before or after)):
        return f"{before} open bracket {inside} close bracket "
    return f"{before}, {inside}, " if inside else before


def operators(text: str) -> str:
    """Speak signs between two operands: +, -, *, <, =, and the signs that stand for words."""
    text = re.sub(r"<([\w,]{1,20})>", r"\1", text)  # <p>, what p generates
    formula = re.search(r"[=+×^<>≤≥÷]", text) is not None
    text = re.sub(r"\s*(?:<=>|<->)\s*", " if and only if ", text)
    text = re.sub(r"\s*(?:=>)\s*", " implies ", text)
    text = re.sub(r"\s*<=\s*", " ≤ ", re.sub(r"\s*>=\s*", " ≥ ", text))
    text = re.sub(r"\s*!=\s*", " ≠ ", text)
    text = re.sub(r"\s*->\s*", " → ", text)
    if "limit" in text:
        text = re.sub(r"\s*→\s*", " approaches ", text)
    text = re.sub(rf"(?<={_OPERAND})\s*<\s*(?=[-0-9a-zA-Z(.])", " is less than ", text)
    text = re.sub(rf"(?<={_OPERAND})\s*>\s*(?=[-0-9a-zA-Z(.])", " is greater than ", text)
    text = re.sub(r"(?<![\w<])<\s?(?=[0-9])", " less than ", text)
    text = re.sub(r"(?<![\w>])>\s?(?=[0-9])", " more than ", text)
    text = re.sub(rf"(?<={_OPERAND})\s?\+\s?(?=[-0-9a-zA-Z(.√∑])", " plus ", text)
    text = re.sub(rf"(?<={_OPERAND})\s?\*\s?(?=[-0-9a-zA-Z(.])", " times ", text)
    text = re.sub(r"(?<=[0-9)a-z])\s-\s(?=[0-9.(√]|[a-z]\b)", " minus ", text)
    text = re.sub(r"(?<=\))-(?=[0-9a-z(])|(?<=[0-9a-z])-(?=\()", " minus ", text)
    if formula:  # x-1, 5-3
        text = re.sub(
            r"(?<=[0-9])-(?=[0-9]|[a-z]\b)|(?<=\b[a-z])-(?=[0-9]|[a-z]\b)", " minus ", text
        )
    text = re.sub(r"(?<![\w)^])-\s?(?=[a-zA-Z√]\b|[A-Z]{2,3}\b|\()", "minus ", text)
    text = re.sub(r"(?<![0-9a-zA-Z])~\s?(?=[0-9])", "about ", text)
    text = re.sub(r"(?<=\w)\s~\s(?=[A-Z])", " is distributed as ", text)
    text = re.sub(r"~\s?(?=[A-Za-z(])", "not ", text)
    text = re.sub(r"(?<=\b[b-z])!|(?<=bracket)\s?!", " factorial", text)
    return re.sub(
        r"(?<=[0-9])!(?=\s*(?:[-/+*=)×÷]|plus\b|minus\b|times\b|equals\b|over\b))",
        " factorial",
        text,
    )


def fractions(text: str) -> str:
    """Speak fractions of whole numbers: 3/4, 1 1/2, 120/80."""

    def mixed(found: re.Match[str]) -> str:
        return f"{found[1]} and {fraction(int(found[2]), int(found[3]))}"

    def plain(found: re.Match[str]) -> str:
        return fraction(int(found[1]), int(found[2]))

    small = r"([0-9]{1,6})\s?/\s?([0-9]{1,6})(?![\w/]|[.,][0-9])"
    text = re.sub(rf"(?<![\w./])([0-9]+)\s{small}", mixed, text)
    return re.sub(rf"(?<![\w./,]){small}", plain, text)


def quotients(text: str) -> str:
    """Speak what else has a slash in it: a/b, 3x/4; his/her."""
    number = rf"(?:{NUMBER}|[0-9]*[a-zA-Z]\b|bracket)"
    text = re.sub(rf"(?<=[0-9])\s?/\s?(?={number}|open bracket)", " over ", text)
    text = re.sub(r"(?<=\b[a-zA-Z])\s?/\s?(?=[0-9]*[a-zA-Z]?\b|open bracket)", " over ", text)
    text = re.sub(r"(?<=[0-9][a-zA-Z])\s?/\s?(?=[0-9])", " over ", text)
    text = re.sub(r"(?<=bracket)\s*/\s*", " over ", text)
    return re.sub(r"(?<=[a-zA-Z]{2})/(?=[a-zA-Z]{2})", " or ", text)


def powers(text: str) -> str:
    """Speak powers and indices: x^2, 10^-3, e^(2x), x_1; and numbers as computers write them."""
    text = re.sub(rf"(?<![\w.])({NUMBER})[eE]([-+]?[0-9]+)\b", r"\1 times 10^\2", text)
    text = re.sub(r"\^\s?open bracket (.*?) close bracket", r" to the power of \1", text)
    text = re.sub(r"\^\s?([-+]?)([0-9]+(?:\.[0-9]+)?|[a-zA-Zα-ω]+)", _raised, text)
    text = re.sub(r"\^", " to the power of ", text)
    text = re.sub(r"(?<=[a-zA-Zα-ω])_\(?([0-9a-zA-Z]+)\)?", r" sub \1", text)
    return text.replace("_", " ")


def _raised(found: re.Match[str]) -> str:
    sign, power = found[1], found[2]
    if power in {"2", "3"} and not sign:
        return " squared " if power == "2" else " cubed "
    if power.isdigit() and not sign and len(power) < 4:
        return f" to the {ordinal(int(power))} power "
    spoken = cardinal(power) if power.isdigit() else power
    return f" to the power of {'minus ' if sign == '-' else ''}{spoken} "


def greek(text: str) -> str:
    """Speak Greek letters that stand alone; Greek words are left."""
    return re.sub(
        r"(?<![Α-Ωα-ωά-ώ])[Α-Ωα-ωςϕϵϑµ](?![Α-Ωα-ωά-ώ])",
        _greek_letter,
        text,
    )


def _greek_letter(found: re.Match[str]) -> str:
    name = _GREEK_LETTERS.get(found[0].lower(), found[0])
    before = found.string[: found.start()][-1:]
    after = found.string[found.end() :][:1]
    return f"{' ' * before.isalnum()}{name}{' ' * after.isalnum()}"


def signs(text: str) -> str:
    """Speak what signs are left, and drop those that have no name in a sentence."""
    for sign, word in _WORDS.items():
        text = text.replace(sign, f" {word} ")
    text = re.sub(r"\s*&\s*", " and ", text)
    text = re.sub(r"(?<![^\s,])\*(?![^\s,])", "star", text)
    text = re.sub(r"(?<=\w)\s*@\s*(?=\w)", " at ", text)
    text = re.sub(r"(?<=\w)\s\+\s|(?<=\w)\+(?=\W|$)", " plus ", text)
    text = re.sub(r"\s-+\s", ", ", text)
    text = re.sub(r"(?<=\w)\s/\s(?=\w)", " or ", text)
    return re.sub(r"[<>|*~^\\#$/+]", " ", text)


def tidy(text: str) -> str:
    """Put spaces and pauses in order."""
    text = re.sub(r"\s*\n\s*", _joint, text)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"(?<=[a-zA-Z]),(?=[a-zA-Z])", ", ", text)
    text = re.sub(r"(?:,\s*)+(?=[,.;:?!])", "", text)
    text = re.sub(r"\s+(?=[,.;:?!](?:\s|$))", "", text)
    text = re.sub(r"(?<=[.;:?!])(?:\s*,)+", "", text)
    return text.strip(" ,")


def _joint(found: re.Match[str]) -> str:
    """Return how a line end is spoken: as the end of a sentence, unless one has just ended."""
    before = found.string[: found.start()].rstrip()
    return " " if not before or before[-1] in ".,;:?!" else ". "

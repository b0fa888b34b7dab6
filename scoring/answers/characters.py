"""Numbers in Chinese, Japanese and Korean characters."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from voxmeter.scoring.answers.tokens import Token

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_SMALL = {"十": 10, "百": 100, "千": 1000}
_LARGE = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_KOREAN_DIGITS = {c: n for n, c in enumerate("영일이삼사오육칠팔구")} | {"공": 0}
_KOREAN_SMALL = {"십": 10, "백": 100, "천": 1000}
_KOREAN_LARGE = {"만": 10**4, "억": 10**8}
_NATIVE = {
    "하나": 1, "한": 1, "첫": 1, "둘": 2, "두": 2, "셋": 3, "세": 3, "넷": 4, "네": 4, "다섯": 5,
    "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10, "스물": 20, "스무": 20, "서른": 30,
    "마흔": 40, "쉰": 50, "예순": 60, "일흔": 70, "여든": 80, "아흔": 90,
}  # fmt: skip
_KANA = {
    "ゼロ": 0, "れい": 0, "いち": 1, "に": 2, "さん": 3, "よん": 4, "ご": 5, "ろく": 6, "なな": 7,
    "はち": 8, "きゅう": 9, "じゅう": 10, "ひとつ": 1, "ふたつ": 2, "みっつ": 3, "よっつ": 4,
    "いつつ": 5, "むっつ": 6, "ななつ": 7, "やっつ": 8, "ここのつ": 9, "とお": 10,
}  # fmt: skip
_POINTS = frozenset("点點점")
_MINUS = {"zh": ("负", "負"), "ja": ("マイナス",), "ko": ("마이너스", "영하")}
_AFTER = {
    "zh": frozenset("个個岁年月天日米元只人条块度倍次名分公千厘小秒号號是。的，百"),
    "ja": frozenset("個歳才年月日円人本枚匹度回分秒時つです番目冊台ヶ年間"),
    "ko": frozenset("입개살년월일원명번도시분초이예요권마장대세층킬미퍼점"),
}
_BEFORE = {
    "zh": frozenset("是有等于於为為得答案共到约約选第"),
    "ja": frozenset("はがえ約と第"),
    "ko": frozenset("은는이가약총답"),
}


def read_characters(
    tokens: Sequence[Token],
    index: int,
    code: str,
    head: Decimal | None = None,
    *,
    signed: bool = False,
) -> tuple[int, Decimal] | None:
    """Return where a number in characters ends and its value, or None.

    Args:
        tokens: Of the transcript; each character is one.
        index: Where the number starts.
        code: Language; only zh, ja and ko have such numbers.
        head: A number in digits that stands just before ("3万").
        signed: Whether a minus stands just before.
    """
    if code not in _AFTER or index >= len(tokens):
        return None
    run = _run(tokens, index)
    if head is not None:
        scale = {**_LARGE, **_KOREAN_LARGE, **_SMALL, **_KOREAN_SMALL}.get(run[:1])
        return None if scale is None else (index + 1, head * scale)
    for word in _MINUS[code]:
        if run.startswith(word):
            rest = read_characters(tokens, index + len(word), code, signed=True)
            return None if rest is None else (rest[0], -rest[1])
    if run.startswith("一半"):
        return index + 2, Decimal("0.5")
    if run.startswith("百分之"):
        length, value = _longest(run[3:], code)
        return None if value is None else (index + 3 + length, value)
    length, value = _longest(run, code)
    if value is None or not (signed or _alone(tokens, index, index + length, code)):
        return None
    if run[length : length + 2] == "分之" or run[length : length + 2] == "分の":
        top, upper = _longest(run[length + 2 :], code)
        if upper is not None and value:
            return index + length + 2 + top, upper / value
    if run[length : length + 1] == "半":
        return index + length + 1, value + Decimal("0.5")
    return index + length, value


def _run(tokens: Sequence[Token], index: int) -> str:
    """Return up to 24 characters that follow without a gap."""
    run = tokens[index].text if len(tokens[index].text) == 1 else ""
    for token in tokens[index + 1 : index + 24]:
        if not run or len(token.text) != 1 or token.gap.strip():
            break
        run += token.text
    return run


def _alone(tokens: Sequence[Token], first: int, last: int, code: str) -> bool:
    """Return whether the characters can be a number and not a part of a word."""
    if last - first > 1 and code != "ja":
        return True
    after = tokens[last] if last < len(tokens) else None
    before = tokens[first - 1] if first else None
    ends = after is None or bool(after.gap) or after.text in _AFTER[code] or after.text in "分点半"
    starts = before is None or bool(tokens[first].gap) or before.text in _BEFORE[code]
    return ends and (starts or last - first > 1)


def _longest(run: str, code: str) -> tuple[int, Decimal | None]:
    """Return the length and value of the number that a run of characters starts with."""
    if code == "ko":
        native = _native(run, _NATIVE)
        if native[1] is not None:
            return native
        return _positional(run, _KOREAN_DIGITS, _KOREAN_SMALL, _KOREAN_LARGE)
    if code == "ja":
        kana = _native(run, _KANA)
        if kana[1] is not None and kana[0] > 1:
            return kana
    return _positional(run, _DIGITS, _SMALL, _LARGE)


def _native(run: str, words: dict[str, int]) -> tuple[int, Decimal | None]:
    """Return the length and value of a tens word with a unit word behind it."""
    total, position, found = 0, 0, False
    while position < len(run):
        word = next(
            (w for w in sorted(words, key=len, reverse=True) if run.startswith(w, position)), ""
        )
        if not word or (found and words[word] >= 10):
            break
        total += words[word]
        position += len(word)
        done, found = found or words[word] < 10, True
        if done:
            break
    return position, Decimal(total) if found else None


def _positional(
    run: str, digits: dict[str, int], small: dict[str, int], large: dict[str, int]
) -> tuple[int, Decimal | None]:
    """Return the length and value of a number with place words, or of digits read out."""
    total, section, current, position = 0, 0, None, 0
    read: list[int] = []
    for position, character in enumerate(run):  # noqa: B007 - the place reached is the result
        if character in digits:
            read.append(digits[character])
            current = digits[character]
        elif character in small:
            section += (1 if current is None else current) * small[character]
            current = None
        elif character in large and (section or current is not None):
            total = (total + section + (current or 0)) * large[character]
            section, current = 0, None
        else:
            break
    else:
        position = len(run)
    if position == 0:
        return 0, None
    whole = total + section + (current or 0)
    if len(read) == position:
        whole = int("".join(map(str, read)))
    return _with_fraction(run, position, Decimal(whole), digits)


def _with_fraction(
    run: str, position: int, whole: Decimal, digits: dict[str, int]
) -> tuple[int, Decimal]:
    """Return length and value with the digits after a spoken point."""
    end = position + 1
    while end < len(run) and run[end] in digits:
        end += 1
    if position < len(run) and run[position] in _POINTS and end > position + 1:
        part = "".join(str(digits[c]) for c in run[position + 1 : end])
        return end, Decimal(f"{whole}.{part}")
    return position, whole

"""Abbreviations, Roman numerals and chemical formulas in English words."""

from __future__ import annotations

import re

from voxmeter.suites.spoken.numbers import cardinal, ordinal

_ABBREVIATIONS = (
    (r"\be\.\s?g\.,?", "for example,"),
    (r"\bi\.\s?e\.,?", "that is,"),
    (r"\betc\.(?=\s+[A-Z]|\s*$)", "et cetera."),
    (r"\betc\.?", "et cetera"),
    (r"\bet al\.?", "and others"),
    (r"\bviz\.", "namely"),
    (r"\bcf\.", "compare"),
    (r"\bapprox\.", "approximately"),
    (r"\bvs?\.(?=\s)|\bvs\b", "versus"),
    (r"\bDr\.(?=\s+[A-Z])", "Doctor"),
    (r"\bProf\.(?=\s+[A-Z])", "Professor"),
    (r"\bMr\.", "Mister"),
    (r"\bMrs\.", "Missus"),
    (r"\bMs\.", "Miss"),
    (r"\bSt\.(?=\s+[A-Z])", "Saint"),
    (r"(?<=[a-z]\s)St\.", "Street"),
    (r"\bJr\.", "Junior"),
    (r"\bSr\.", "Senior"),
    (r"\b[Nn]o\.\s?(?=[0-9])|#\s?(?=[0-9])", "number "),
    (r"\b[Nn]os\.\s?(?=[0-9])", "numbers "),
    (r"\b([Ff])igs?\.\s?(?=[0-9])", r"\1igure "),
    (r"\b([Ee])qs?\.\s?(?=[0-9(])", r"\1quation "),
    (r"\bpp\.\s?(?=[0-9])", "pages "),
    (r"\bp\.\s?(?=[0-9])", "page "),
    (r"\bvol\.\s?(?=[0-9])", "volume "),
    (r"\b(?:c|ca)\.\s?(?=[0-9])", "circa "),
    (r"§§?\s?(?=[0-9])", "section "),
    (r"\b(?<=[a-z]\s)Ave\.", "Avenue"),
    (r"\bapt\.", "apartment"),
    (r"\bInc\.", "Incorporated"),
    (r"\bLtd\.", "Limited"),
    (r"\bCorp\.", "Corporation"),
    (r"\bw/o\b", "without"),
    (r"\bw/(?=\s)", "with"),
    (r"\band/or\b", "and or"),
    (r"\bC\+\+", "C plus plus"),
    (r"\bC#", "C sharp"),
    (r"\bmm\s?Hg\b", "millimeters of mercury"),
    (r"\bpH\b", "P H"),
    (r"\bPh\.?D\.?(?=\W|$)", "P H D"),
    (r"\bB\.\s?C\.\s?E\.", "BCE"),
    (r"\bB\.\s?C\.", "BC"),
    (r"\bA\.\s?D\.", "AD"),
    (r"\bAD ([0-9]{1,4})\b", r"\1 AD"),
    (r"\b24/7\b", "twenty-four seven"),
    (r"\b9/11\b", "nine eleven"),
)
_INITIALS = re.compile(r"\b(?:[A-Z]\.\s?){2,}")

_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VALID = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_NUMERAL = r"([IVXLCDM]+)(?![\w'-])"
_COUNTED = (
    r"(?:World War|Act|Appendix|Article|Book|Canto|Chapter|Class|Division|Exhibit|Factor|Figure|"
    r"Grade|Group|Level|MHC|Part|Paragraph|Phase|Photosystem|Rule|Schedule|Section|Stage|"
    r"Statement|Super Bowl|Table|Tier|Title|Type|Volume|War)s?"
)
_RULERS = (
    r"(?:Alexander|Amenhotep|Benedict|Boniface|Catherine|Charles|Christian|Clement|Darius|Edward|"
    r"Elizabeth|Ferdinand|Francis|Frederick|George|Gregory|Gustav|Harald|Henry|Innocent|Isabella|"
    r"Ivan|James|John|John Paul|Joseph|Julius|Leo|Leopold|Louis|Mary|Mehmed|Murad|Napoleon|"
    r"Nicholas|Olaf|Otto|Paul|Peter|Philip|Pius|Ptolemy|Ramesses|Ramses|Richard|Robert|Selim|"
    r"Sixtus|Thutmose|Urban|Victor Emmanuel|Wilhelm|William|Xerxes)"
)
_ALONE = re.compile(r"(?<![\w'.-])(I{2,3}|VI{1,3}|IX|XI{1,3}|XIV|XV[I]{1,3}|XIX)(?![\w'-])")
_LISTED = re.compile(r"(?<![\w'.-])(I{1,3}|IV|VI{0,3}|IX|X)(?![\w'-])")

_SYMBOLS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As "
    "Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu "
    "Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np "
    "Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
ELEMENTS = frozenset(_SYMBOLS.split())
_LETTERS_ALONE = "NaCl HCl NaOH KOH KCl HBr KBr NaF LiCl AgCl CuO ZnO FeO MgO CaO HCN"
_COMPOUNDS = frozenset(_LETTERS_ALONE.split())
_FORMULA = re.compile(
    r"(?<![A-Za-z0-9_.])([0-9]*)((?:\(?(?:[A-Z][a-z]?[0-9]*)+\)?[0-9]*)+)"
    r"(?:\^?([0-9]*)([+-])(?=$|[\s,.;:?!)]))?(?![A-Za-z0-9_])"
)


def abbreviations(text: str) -> str:
    """Speak abbreviations in full, and initials letter by letter."""
    for written, spoken in _ABBREVIATIONS:
        text = re.sub(written, spoken, text)
    return _INITIALS.sub(_initials, text)


def _initials(found: re.Match[str]) -> str:
    letters = " ".join(re.findall(r"[A-Z]", found[0]))
    ended = found.end() == len(found.string) or re.match(
        r"\s[A-Z]", found.string[found.end() - 1 :]
    )
    space = " " if found[0].endswith(" ") else ""
    return f"{letters}{'.' if ended and not space else ''}{space}"


def roman(text: str) -> str:
    """Speak Roman numerals where it is clear that they are: Henry VIII, World War II, I and III."""

    def counted(found: re.Match[str]) -> str:
        value = _value(found[2])
        return found[0] if value is None else f"{found[1]} {cardinal(str(value))}"

    def ruler(found: re.Match[str]) -> str:
        value = _value(found[2])
        return found[0] if value is None else f"{found[1]} the {ordinal(value)}"

    text = re.sub(rf"\b({_COUNTED})\s+{_NUMERAL}", counted, text)
    text = re.sub(rf"\b({_RULERS})\s+{_NUMERAL}", ruler, text)
    listed = _ALONE.search(text) or re.search(r"\bI only\b", text)
    pattern = _LISTED if listed and _is_list(text) else _ALONE
    return pattern.sub(lambda found: cardinal(str(_value(found[1]))), text)


def _is_list(text: str) -> bool:
    """Return whether a lone I is the number one: I only, I and II, I. ... II. ..."""
    return bool(re.search(r"\bI only|\bI,? (?:and|or) I|\bI, I|(?:^|\s)I\. .*\bII\. ", text))


def _value(numeral: str) -> int | None:
    if not _VALID.fullmatch(numeral):
        return None
    values = [_ROMAN[letter] for letter in numeral]
    return sum(
        -value if value < max(values[place:], default=0) else value
        for place, value in enumerate(values)
    )


def _state(found: re.Match[str]) -> str:
    names = {"s": "solid", "l": "liquid", "g": "gas", "aq": "aqueous"}
    return f" {names[found[1]]}"


def chemistry(text: str) -> str:
    """Speak chemical formulas symbol by symbol: H2O, CaCO3, Fe3+, 2H2 + O2 → 2H2O."""
    found_any = False

    def spoken(found: re.Match[str]) -> str:
        nonlocal found_any
        many, body, charge, sign = found[1], found[2], found[3] or "", found[4] or ""
        symbols = re.findall(r"[A-Z][a-z]?", body)
        plain = body.replace("(", " ").replace(")", " ")
        known = all(symbol in ELEMENTS for symbol in symbols)
        certain = re.search(r"[0-9]", body) or sign or body in _COMPOUNDS
        if not known or not certain or body.count("(") != body.count(")"):
            return found[0]
        found_any = True
        parts = re.findall(r"[A-Z]|[a-z]|[0-9]+", plain)
        words = [cardinal(many)] if many else []
        words += [part.upper() if part.isalpha() else cardinal(part) for part in parts]
        if charge:
            words.append(cardinal(charge))
        if sign:
            words.append("plus" if sign == "+" else "minus")
        return " ".join(words)

    if re.search(r"→|->|⟶|⇌|<->", text):
        text = re.sub(r"(?<=[A-Za-z0-9+)-])\s?\((s|l|g|aq)\)", _state, text)
    text = _FORMULA.sub(spoken, text)
    if found_any:
        text = re.sub(r"\s*(?:→|->|⟶)\s*", " yields ", text)
        text = re.sub(r"\s*(?:⇌|<->|↔)\s*", " in equilibrium with ", text)
    return text

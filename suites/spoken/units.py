"""Units of measurement in English words."""

from __future__ import annotations

import re

from voxmeter.suites.spoken.numbers import NUMBER

_UNITS = {
    "m": ("meter", "meters"),
    "g": ("gram", "grams"),
    "L": ("liter", "liters"),
    "l": ("liter", "liters"),
    "s": ("second", "seconds"),
    "sec": ("second", "seconds"),
    "min": ("minute", "minutes"),
    "h": ("hour", "hours"),
    "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "yr": ("year", "years"),
    "yrs": ("year", "years"),
    "Hz": ("hertz", "hertz"),
    "V": ("volt", "volts"),
    "W": ("watt", "watts"),
    "Wh": ("watt hour", "watt hours"),
    "A": ("ampere", "amperes"),
    "J": ("joule", "joules"),
    "N": ("newton", "newtons"),
    "Pa": ("pascal", "pascals"),
    "K": ("kelvin", "kelvins"),
    "C": ("coulomb", "coulombs"),
    "F": ("farad", "farads"),
    "T": ("tesla", "teslas"),
    "H": ("henry", "henries"),
    "Ω": ("ohm", "ohms"),
    "mol": ("mole", "moles"),
    "M": ("molar", "molar"),
    "eV": ("electron volt", "electron volts"),
    "cal": ("calorie", "calories"),
    "atm": ("atmosphere", "atmospheres"),
    "bar": ("bar", "bars"),
    "Torr": ("torr", "torr"),
    "Bq": ("becquerel", "becquerels"),
    "Gy": ("gray", "grays"),
    "Sv": ("sievert", "sieverts"),
    "bit": ("bit", "bits"),
    "bps": ("bit per second", "bits per second"),
    "dB": ("decibel", "decibels"),
    "ft": ("foot", "feet"),
    "mi": ("mile", "miles"),
    "yd": ("yard", "yards"),
    "lb": ("pound", "pounds"),
    "lbs": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "gal": ("gallon", "gallons"),
    "mph": ("mile per hour", "miles per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "ppm": ("part per million", "parts per million"),
    "rad": ("radian", "radians"),
    "ha": ("hectare", "hectares"),
}
_PREFIXED = (
    *("m", "g", "L", "l", "s", "Hz", "V", "W", "Wh", "A", "J", "N", "Pa", "C", "F", "T", "H"),
    *("Ω", "mol", "M", "eV", "cal", "Bq", "Gy", "Sv", "B", "bit", "bps", "bar"),
)
_BYTES = ("byte", "bytes")
_PREFIXES = {
    "p": "pico",
    "n": "nano",
    "µ": "micro",
    "μ": "micro",
    "m": "milli",
    "c": "centi",
    "d": "deci",
    "k": "kilo",
    "K": "kilo",
    "M": "mega",
    "G": "giga",
    "T": "tera",
}
_NOT = frozenset(
    {"pH", "cal", "ds", "pm", "Ts", "TA", "MA", "GA", "KA", "dA", "cA", "pA", "Mm", "cM"}
)


def _all() -> dict[str, tuple[str, str]]:
    units_ = {**_UNITS, "B": _BYTES}  # never without a prefix
    made = {
        f"{letter}{unit}": (f"{prefix}{units_[unit][0]}", f"{prefix}{units_[unit][1]}")
        for unit in _PREFIXED
        for letter, prefix in _PREFIXES.items()
        if f"{letter}{unit}" not in _NOT
    }
    return {**made, **_UNITS}


_NAMES = _all()
_ONE = "|".join(sorted(map(re.escape, _NAMES), key=len, reverse=True))
_TIMES = r"[·⋅*]"
_POWER = r"(?:\^?(-?[1-4])(?![0-9]))?"
_MEASURE = re.compile(
    rf"(?<![\w./])({NUMBER})(\s?|-)((?:{_ONE}){_POWER}(?:\s?[/·⋅*]\s?(?:{_ONE}){_POWER})*)(?![\w^'’])"
)
_STEP = re.compile(rf"([/·⋅*]?)\s?({_ONE}){_POWER}")
_POWERS = {"2": " squared", "3": " cubed", "4": " to the fourth"}
_SOLID = {"m", "ft", "mi", "yd", "cm", "mm", "km", "dm"}  # square feet, cubic meters
_PER = re.compile(r"\bper (kg|mg|g|lb|oz|mL|L|km|cm|mm|m|mi|ft|gal|hr|h|min|sec|s|yr)\b")
_RISKY = frozenset("ABCFHKMNTVWJ")  # lone capitals are more often names than units


def units(text: str) -> str:
    """Speak the unit behind a number: 5 kg, 10 m/s^2, 20°C, 5'10"; the number stays in digits."""
    degrees = {"C": " degrees Celsius", "F": " degrees Fahrenheit", "K": " kelvins"}
    text = re.sub(r"\s?°\s?([CFK])\b", lambda found: degrees[found[1]], text)
    text = re.sub(r"\s?[℃]", degrees["C"], text)
    text = re.sub(r"(?<=[0-9a-z])\s?°", " degrees", text)
    text = re.sub(r"\b([0-9])'\s?([0-9]{1,2})(?:\"|'')", r"\1 feet \2 inches", text)
    text = re.sub(rf"(?<![\w.])({NUMBER})\s?in\.(?=\s|$)", r"\1 inches", text)
    text = _MEASURE.sub(_measured, text)
    return _PER.sub(lambda found: f"per {_NAMES[found[1]][0]}", text)


def _measured(found: re.Match[str]) -> str:
    written, between, unit = found[1], found[2], found[3]
    after = found.string[found.end() :][:1]
    if unit in _RISKY and (after == "." if between else unit not in "VW"):
        return found[0]  # "... 5 A. ..." is an option, 221B a house
    if between == "-" and len(unit) < 2 and unit != "m":
        return found[0]
    words: list[str] = []
    article = re.search(r"\b(?:[Aa]n?|[Oo]ne|[Ee]ach|[Ee]very)\s$", found.string[: found.start()])
    one = between == "-" or written == "1" or article is not None
    for place, step in enumerate(_STEP.finditer(unit)):
        joint, name, power = step[1], step[2], step[3] or ""
        per = joint == "/" or power.startswith("-")
        singular = one or per or any(word == "per" for word in words) or place > 0
        word = _NAMES[name][0 if singular else 1]
        size = power.lstrip("-")
        if name in _SOLID and size in {"2", "3"}:
            word = f"{'square' if size == '2' else 'cubic'} {word}"
        elif size not in {"", "1"}:
            word += _POWERS[size]
        words += ["per", word] if per and words else [word]
    return f"{written}{'-' if between == '-' else ' '}{' '.join(words)}"

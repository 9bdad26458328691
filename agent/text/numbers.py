"""Reads the numbers of a text into comparable values: sign, separators of any locale, scale, unit, precision.

`1,234.50`, `1.234,50`, `1 234,50` and `1'234.50` are one number. A claim agrees with a known number that rounds to it
at the decimals the claim shows: `63.32` agrees with `63.3224`.
"""

# ruff: noqa: RUF001 - the multiplication sign is meant

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from agent.text.ordinals import build_ordinals
from agent.text.superscripts import RAISED_DIGITS, lower_figures
from agent.text.units import UNITS, Unit, find_unit

_SPACES = " \u00a0\u2007\u2009\u202f"
FRACTIONS = {sign: str(round(unicodedata.numeric(sign), 3)) for sign in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
"""Fractions of one character, and their values to three places."""
_FRACTION = "".join(FRACTIONS)

_ONES = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    "sv": "noll ett två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton sjutton arton nitton",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "sv": "tjugo trettio fyrtio femtio sextio sjuttio åttio nittio",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
}

_FRENCH_TENS = (
    (20, "vingt", 10), (30, "trente", 10), (40, "quarante", 10), (50, "cinquante", 10), (60, "soixante", 20),
    (80, "quatre-vingt", 20), (70, "septante", 10), (90, "nonante", 10),
)  # fmt: skip
"""The first number of each ten, its name, and how many numbers are named after it."""


def _build_words() -> dict[str, int]:
    words = {word: number for names in _ONES.values() for number, word in enumerate(names.split())}
    for language, names in _TENS.items():
        ones = _ONES[language].split()
        for tens, name in enumerate(names.split(), start=2):
            words[name] = 10 * tens
            for one in range(1, 10):
                if language == "de":
                    words[f"{'ein' if one == 1 else ones[one]}und{name}"] = 10 * tens + one
                elif language == "sv":
                    words[f"{name}{ones[one]}"] = 10 * tens + one
                else:
                    words[f"{name}-{ones[one]}"] = 10 * tens + one
    return words | _build_french_words()


def _build_french_words() -> dict[str, int]:
    """The French words from 20 to 99, joined by hyphens: `vingt-et-un`, `soixante-dix-sept`."""
    ones = _ONES["fr"].split()
    words = {}
    for first, name, count in _FRENCH_TENS:
        for one in range(count):
            joint = "-et-" if one in (1, 11) and first < 80 else "-"
            words[f"{name}{joint}{ones[one]}" if one else name] = first + one
    return words | {"quatre-vingts": 80}


ORDINAL_WORDS = build_ordinals(
    {language: names.split() for language, names in _ONES.items()},
    {language: names.split() for language, names in _TENS.items()},
    _build_french_words(),
)
NUMBER_WORDS: dict[str, int | Decimal] = {
    **ORDINAL_WORDS, **_build_words(), "en": 1, "ein": 1, "eine": 1, "einen": 1, "einem": 1, "einer": 1, "dozen": 12,
    "dussin": 12, "dutzend": 12, "half": Decimal("0.5"), "halv": Decimal("0.5"), "halbe": Decimal("0.5"),
    "une": 1, "douzaine": 12, "quinzaine": 15, "vingtaine": 20, "trentaine": 30, "centaine": 100,
}  # fmt: skip
"""Number words of English, Swedish, German and French, and ordinals from the fourth on."""
_COMPOUND_STARTS = frozenset(
    "-".join(parts[:count]) for parts in (word.split("-") for word in NUMBER_WORDS) for count in range(1, len(parts))
)
"""The beginnings of number words that have more than one part."""
_AMBIGUOUS_WORDS = (
    "zero one ett en ein eine einen einem einer eins sex elf null noll acht half halv halbe un une neuf centaine"
)
AMBIGUOUS_WORDS = frozenset(_AMBIGUOUS_WORDS.split())
"""Number words that are other words too. They can support a claim; they make none."""
_SCALE_TABLE = """
100            hundred hundra hundert
1000           thousand thousands tusen tausend tsd k mille milliers
100000         lakh lakhs lac lacs
1000000        million millions mn mio mill miljon miljoner millionen millioner millones
1000000        millón milione milioni milhão milhões
10000000       crore crores
1000000000     md mds billion billions bn mrd mdkr mia miljard miljarder milliarde milliarden
1000000000     milliarder milliard milliards
1000000000000  trillion trillions biljon biljoner billionen
"""
SCALES = {
    word: Decimal(factor) for factor, *words in map(str.split, _SCALE_TABLE.strip().splitlines()) for word in words
}
"""Scale words and their factors. English "billion" is 10^9, German "Billionen" 10^12."""
_COMPOUND_SCALES = (("tausend", 1000), ("tusen", 1000), ("hundert", 100), ("hundra", 100))
"""German and Swedish scale words inside of one word: `zweihundertfünfzig`."""
_SCALED_CURRENCIES = {
    f"{prefix}{code}": (factor, code)
    for prefix, factor in (("t", Decimal(1000)), ("k", Decimal(1000)), ("m", Decimal(10**6)))
    for code in ("sek", "eur", "usd", "gbp", "chf", "nok", "dkk", "kr", "€")
}
"""Abbreviations such as MSEK, TEUR and tkr."""

_SCALE = "|".join(sorted(map(re.escape, SCALES), key=len, reverse=True))
_SCALED = "|".join(sorted(map(re.escape, _SCALED_CURRENCIES), key=len, reverse=True))
# Begins with a character set, so that `re` skips to the next digit; what may stand before it is looked at afterwards.
_DIGITS = re.compile(
    rf"""
    (?P<digits>
      (?:\d{{1,3}}(?:[{_SPACES}]\d{{3}}(?!\d))+(?:[.,\u066b]\d+)?|\d+(?:[.,'\u2019\u066b\u066c]\d+)*|\.\d+)
      (?:[eE][-+]?\d{{1,3}}(?!\w)|[{_SPACES}]?[x×·*][{_SPACES}]?10(?:\^[-+\u2212]?\d{{1,3}}|[⁺⁻]?[{RAISED_DIGITS}]{{1,3}})(?![\w⁺⁻]))?
      [{_FRACTION}]?
      |[{_FRACTION}]
    )
    (?:(?P<ordinal>st|nd|rd|th|:[ae]|er|ère|ème|e)\b|[{_SPACES}]*-?(?:(?P<scale>{_SCALE})\b\.?|(?P<scaled>{_SCALED})(?!\w))|(?P<mega>[MB])\b)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SIGN = re.compile(r"(?:(?:(?<![\w)\]%.])|(?<=\w\s))[-\u2212]|\bminus )[$€£¥₹]?$", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_WORD_TAIL = re.compile(rf"[-{_SPACES}](?P<one>[^\W\d_]+)")
_LOWER_PLACES = re.compile(rf"[{_SPACES}-]+(?:(?:and|och|und|et)[{_SPACES}]+)?(?P<one>[^\W\d_]+)", re.IGNORECASE)
_SCALE_TAIL = re.compile(rf"[{_SPACES}]+(?:a[{_SPACES}]+)?(?P<scale>{_SCALE})\b", re.IGNORECASE)
_HALF_TAIL = re.compile(
    rf"[{_SPACES}-]+(?:and|och|und|et)[{_SPACES}]+(?:an?[{_SPACES}]+|en[{_SPACES}]+|eine[nmr]?[{_SPACES}]+)?"
    r"(?:half|halv|halbe[nmrs]?|demie?)\b",
    re.IGNORECASE,
)
"""The rest of "two and a half", before or behind a scale: "deux millions et demi"."""
_GROUPED = re.compile(rf"\d{{1,3}}(?:([,.'\u2019\u066c{_SPACES}])\d{{3}})(?:\1\d{{3}})*(?:[.,\u066b]\d+)?")
_INDIAN = re.compile(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?")
_APPROXIMATE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca\.?|over|more than|less than|"
    r"under|ungefär|omkring|cirka|runt|nästan|drygt|knappt|över|etwa|rund|ungefähr|zirka|fast|gut|knapp|über|unter|environ|"
    r"quelque|presque|près de|plus de|moins de|autour de|unos|casi|alrededor de|circa|quasi)|[~≈±])\s?"
    r"[$€£¥₹]?$",
    re.IGNORECASE,
)
_APPROXIMATE_ENDS = "~≈±$€£¥₹."
_CURRENCY_SIGNS = ("$", "€", "£", "¥", "₹")
_POWER = re.compile(rf"[{_SPACES}]?[x×·*][{_SPACES}]?10\^?(?P<power>.+)")
_TIMES = re.compile(r"(?<![^\W\d])\d[xX]$")
"""Before the second number of `120x80`."""
_MAX_DIGITS = 40
"""Longer runs of digits are data, not quantities."""


@dataclass(frozen=True, slots=True)
class NumberReading:
    """A value that a number can stand for. Every known value within half a `step` rounds to it."""

    value: Decimal
    step: Decimal


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number where it stands, `text[start:end]` with its unit.

    `readings` has more than one value for an ambiguous form (`1.234`). `parts` are the numbers of a form that may be a
    list instead (`5 100`, `151,2870`), or of one in two units (`is_sum`). `unscaled` is the number before its scale
    word (`1.5` of `1.5 million`)."""

    text: str
    start: int
    end: int
    readings: tuple[NumberReading, ...]
    unit: Unit | None = None
    parts: tuple[Decimal, ...] = ()
    unscaled: Decimal | None = None
    is_word: bool = False
    is_sum: bool = False

    @property
    def value(self) -> Decimal:
        """The likeliest value."""
        return self.readings[0].value


def find_numbers(text: str, *, is_claim: bool = False) -> list[NumberMention]:
    """The numbers of a text in order, digits and number words.

    Dates, times and codes (`INC-1042`) are read as the numbers in them: `agent.text.values` keeps those apart. With
    `is_claim`, words that are mostly other words (`one`, `sex`) are left out."""
    return _read_numbers(text, is_claim=is_claim)


def format_decimal(value: Decimal) -> str:
    """One spelling for equal numbers: no exponent, no trailing zeros."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _read_numbers(text: str, *, is_claim: bool) -> list[NumberMention]:
    mentions = [mention for match in _DIGITS.finditer(text) if (mention := _read_digits(match)) is not None]
    mentions += _iter_words(text, is_claim=is_claim)
    return sorted(mentions, key=lambda mention: mention.start)


def _iter_words(text: str, *, is_claim: bool) -> Iterator[NumberMention]:
    at = 0
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if match.start() < at or not is_number_word(word) or _is_part_of_word(text, match.start(), match.end()):
            continue
        value, at = _read_word(text, word, match.end())
        half = _HALF_TAIL.match(text, at)
        scale = _SCALE_TAIL.match(text, at if half is None else half.end())
        if half is not None and (scale is not None or word not in AMBIGUOUS_WORDS):
            value, at = value + Decimal("0.5"), half.end()
        if scale is None and is_claim and word in AMBIGUOUS_WORDS:
            continue
        unscaled = None
        if scale is not None:
            unscaled, factor, at = value, SCALES[scale["scale"].lower()], scale.end()
            value, at = _read_lower_places(text, value * factor, factor, at)
            if (half := _HALF_TAIL.match(text, at)) is not None:
                value, at = value + factor / 2, half.end()
        unit, start, end = find_unit(text, match.start(), at)
        reading = NumberReading(value, Decimal(0))
        yield NumberMention(text[start:end], start, end, (reading,), unit, (), unscaled, is_word=True)


def is_number_word(word: str) -> bool:
    """Whether a word in small letters is a number by itself: `twenty`, `zweihundertfünfzig`, `fifteenth`."""
    return word in NUMBER_WORDS or (any(name in word for name, _ in _COMPOUND_SCALES) and bool(_read_compound(word)))


def _read_word(text: str, word: str, at: int) -> tuple[Decimal, int]:
    """The value of a number word of one or more parts (`twenty-one`, `soixante et onze`), and its end."""
    value = Decimal(NUMBER_WORDS[word] if word in NUMBER_WORDS else _read_compound(word))
    end, key = at, word
    while key in _COMPOUND_STARTS and (tail := _WORD_TAIL.match(text, end)) is not None:
        key, end = f"{key}-{tail['one'].lower()}", tail.end("one")
        if key in NUMBER_WORDS:
            value, at = Decimal(NUMBER_WORDS[key]), end
    return value, at


def _read_lower_places(text: str, value: Decimal, factor: Decimal, at: int) -> tuple[Decimal, int]:
    """Adds the words below a scale word to its value: the fifty of `two hundred and fifty`. Returns the end too."""
    while (tail := _LOWER_PLACES.match(text, at)) is not None and tail["one"].lower() in NUMBER_WORDS:
        lower, end = _read_word(text, tail["one"].lower(), tail.end("one"))
        scale = _SCALE_TAIL.match(text, end)
        place = SCALES[scale["scale"].lower()] if scale is not None else Decimal(1)
        if factor == 100 and place > factor > lower:  # two hundred and fifty thousand
            value, factor, at = (value + lower) * place, place, scale.end() if scale is not None else end
            continue
        if lower * place >= factor or tail["one"].lower() in AMBIGUOUS_WORDS:
            break
        value, factor, at = value + lower * place, place, scale.end() if scale is not None else end
    return value, at


@lru_cache(maxsize=256)
def _read_compound(word: str) -> int:
    """The value of a German or Swedish word with scale words in it (`zweihundertfünfzig`), or 0."""
    if word in NUMBER_WORDS:
        return int(NUMBER_WORDS[word])
    for name, factor in _COMPOUND_SCALES:
        head, scale, tail = word.partition(name)
        tail = tail.removeprefix("und").removeprefix("och")
        if scale and (head or tail):
            counts = [_read_compound(part) if part else None for part in (head, tail)]
            if 0 in counts:
                return 0
            return (counts[0] or 1) * factor + (counts[1] or 0)
    return 0


def _is_part_of_word(text: str, start: int, end: int) -> bool:
    """Whether digits or an underscore stand right beside a word: `one2one`, `tio_x`."""
    return text[start - 1 : start].isalnum() or text[start - 1 : start] == "_" or text[end : end + 1] == "_"


def _read_digits(match: re.Match[str]) -> NumberMention | None:
    text, before = match.string, match.string[max(0, match.start() - 16) : match.start()]
    if (before[-1:].isalnum() and not _TIMES.search(before)) or before[-1:] in ("_", "\\"):
        return None  # the digits of a name
    scale, currency = _read_scale(match, before)
    plain, parts = _read_separators(match["digits"])
    signed = _SIGN.search(before)
    sign = -1 if signed is not None else 1
    last = before.rstrip()[-1:]  # looked at first, because most numbers stand behind no such word
    approximate = bool(last) and (last.isalpha() or last in _APPROXIMATE_ENDS) and bool(_APPROXIMATE.search(before))
    readings = tuple(
        dict.fromkeys(
            NumberReading(sign * scale * value, scale * _find_step(value, approximate=approximate)) for value in plain
        )
    )
    if not readings:
        return None
    unit, start, end = find_unit(text, match.start("digits"), match.end())
    if currency:
        unit, end = UNITS[currency], match.end()
    if signed is not None:
        start = min(start, match.start() - len(signed[0]))
    unscaled = sign * plain[0] if scale != 1 else None
    return NumberMention(text[start:end].strip(), start, end, readings, unit, tuple(parts), unscaled)


def _read_scale(match: re.Match[str], before: str) -> tuple[Decimal, str]:
    if match["scale"]:
        return SCALES[match["scale"].lower().rstrip(".")], ""
    if match["scaled"]:
        return _SCALED_CURRENCIES[match["scaled"].lower()]
    # A capital M right behind the digits is a million; a small one is a metre, except behind a currency: $1.5m, £3b.
    is_amount = before.rstrip()[-1:] in _CURRENCY_SIGNS
    if match["mega"] == "M" or (match["mega"] == "m" and is_amount):
        return Decimal(10**6), ""
    return (Decimal(10**9), "") if match["mega"] and is_amount else (Decimal(1), "")


def _read_separators(written: str) -> tuple[list[Decimal], list[Decimal]]:
    """The values that the digits can stand for, the likeliest first, and the numbers of a possible list."""
    fraction = Decimal(FRACTIONS[written[-1]]) if written[-1] in FRACTIONS else Decimal(0)
    written = written.rstrip(_FRACTION)
    if not written:
        return [fraction], []
    if len(written) > _MAX_DIGITS:
        return [], []
    digits, _, exponent = _POWER.sub(_write_power, written.replace("\u066b", ".").lower()).partition("e")
    factor = Decimal(10) ** int(exponent) if exponent else Decimal(1)
    values = [value * factor + fraction for value in _read_plain(digits)]
    parts = re.split(rf"[,{_SPACES}]", digits)
    is_list = len(parts) > 1 and all(part.isdigit() for part in parts)
    if is_list and "," in digits and _GROUPED.fullmatch(digits):
        is_list = False  # 1,234 is a thousand and more; 5 100 may be two numbers
    if is_list and any(part[0] == "0" and len(part) > 1 for part in parts[1:]):
        is_list = False
    return values, [Decimal(part) for part in parts] if is_list else []


def _write_power(match: re.Match[str]) -> str:
    """`e-6` for `x 10⁻⁶` or `x10^-6`."""
    return "e" + lower_figures(match["power"]).replace("\u2212", "-")


def _read_plain(digits: str) -> list[Decimal]:
    """The values of digits with separators: `1,234` is 1234 or 1.234, `1.234,5` only 1234.5."""
    marks = re.findall(r"\D", digits)
    joined = re.sub(r"\D", "", digits)
    if not marks:
        return [Decimal(joined)]
    head, _, tail = digits.rpartition(marks[-1])
    whole = re.sub(r"\D", "", head)
    as_decimal = _to_decimal(f"{whole}.{tail}")
    if _INDIAN.fullmatch(digits):
        return [as_decimal if "." in digits else Decimal(joined)]
    if len(set(marks)) == 1 and _GROUPED.fullmatch(digits) and head != "0":
        # Only one separator of one kind can also be a decimal sign, and nobody shows three zero decimals.
        ambiguous = len(marks) == 1 and marks[0] in ".," and tail != "000"
        return [Decimal(joined), as_decimal] if ambiguous else [Decimal(joined)]
    if marks[-1] not in ".," or marks[-1] in marks[:-1]:
        return []  # 1.2.3 is a version
    return [as_decimal]


def _to_decimal(text: str) -> Decimal:
    try:
        return Decimal(text if text[0] != "." else f"0{text}")
    except InvalidOperation:
        return Decimal(0)


def _find_step(value: Decimal, *, approximate: bool) -> Decimal:
    """The place value of the last digit shown. Behind "about", zeros at the end are not shown digits."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if approximate and exponent >= 0 and value:
        exponent = len(format_decimal(value)) - len(format_decimal(value).rstrip("0"))
    return Decimal(1).scaleb(exponent) if exponent < 0 or approximate else Decimal(1)

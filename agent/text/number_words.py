"""Number words of English, Swedish, German and French: one to ninety-nine, ordinals, scales, and how they combine."""

import re
from decimal import Decimal
from functools import lru_cache

from agent.text.ordinals import build_ordinals

SPACES = " \u00a0\u2007\u2009\u202f"
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
            if one == 1:
                words[f"{name}{joint}une"] = first + one
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
1000000000     md mds mdr billion billions bn mrd mia miljard miljarder milliarde milliarden
1000000000     milliarder milliard milliards
1000000000000  trillion trillions biljon biljoner billionen
"""
SCALES = {
    word: Decimal(factor) for factor, *words in map(str.split, _SCALE_TABLE.strip().splitlines()) for word in words
}
"""Scale words and their factors. English "billion" is 10^9, German "Billionen" 10^12."""
GROUPS = {
    "dozen": 12, "dozens": 12, "dussin": 12, "dutzend": 12, "douzaine": 12, "douzaines": 12, "tjog": 20,
    "vingtaines": 20, "centaine": 100, "centaines": 100,
}  # fmt: skip
"""Groups that are counted, exactly: five dozen are sixty."""
FACTORS = SCALES | {word: Decimal(size) for word, size in GROUPS.items()}
"""Scale words and groups; no column of a table counts in those."""
_COMPOUND_SCALES = (("tausend", 1000), ("tusen", 1000), ("hundert", 100), ("hundra", 100))
"""German and Swedish scale words inside of one word: `zweihundertfünfzig`."""
_COMPOUND = re.compile("|".join(name for name, _ in _COMPOUND_SCALES))
SCALE_PATTERN = "|".join(sorted(map(re.escape, FACTORS), key=len, reverse=True))
_WORD_TAIL = re.compile(rf"[-{SPACES}](?P<one>[^\W\d_]+)")
_LOWER_PLACES = re.compile(rf"[{SPACES}-]+(?:(?:and|och|und|et)[{SPACES}]+)?(?P<one>[^\W\d_]+)", re.IGNORECASE)
_SCALE_TAIL = re.compile(rf"[{SPACES}]+(?:a[{SPACES}]+)?(?P<scale>{SCALE_PATTERN})\b", re.IGNORECASE)
_FRENCH_HUNDRED = re.compile(rf"[-{SPACES}]cent(?P<plural>s)?\b", re.IGNORECASE)
_FRENCH_COUNTS = frozenset(_ONES["fr"].split()[2:17])
HALF_TAIL = re.compile(
    rf"[{SPACES}-]+(?:and|och|und|et)[{SPACES}]+(?:an?[{SPACES}]+|en[{SPACES}]+|eine[nmr]?[{SPACES}]+)?"
    r"(?:half|halv|halbe[nmrs]?|demie?)\b",
    re.IGNORECASE,
)
"""The rest of "two and a half", before or behind a scale: "deux millions et demi"."""


def may_hold_compound(text: str) -> bool:
    """Whether a word of a text in small letters may be a number of several words in one: `zweihundertfünfzig`."""
    return _COMPOUND.search(text) is not None


def is_number_word(word: str) -> bool:
    """Whether a word in small letters is a number by itself: `twenty`, `zweihundertfünfzig`, `fifteenth`."""
    return word in NUMBER_WORDS or (may_hold_compound(word) and bool(_read_compound(word)))


def read_number_word(text: str, word: str, at: int) -> tuple[Decimal, int]:
    """The value of a number word of one or more parts (`twenty-one`, `soixante et onze`), and its end."""
    value = Decimal(NUMBER_WORDS[word] if word in NUMBER_WORDS else _read_compound(word))
    end, key = at, word
    while key in _COMPOUND_STARTS and (tail := _WORD_TAIL.match(text, end)) is not None:
        key, end = f"{key}-{tail['one'].lower()}", tail.end("one")
        if key in NUMBER_WORDS:
            value, at = Decimal(NUMBER_WORDS[key]), end
    return value, at


def read_scale_word(text: str, word: str, at: int) -> tuple[Decimal, int]:
    """The factor of the scale word at `at`, behind the number word `word`, and its end; 1 if there is none.

    "Cent" is a hundred behind French words only; "six cents" is left to money."""
    scale = _SCALE_TAIL.match(text, at)
    if scale is not None:
        return FACTORS[scale["scale"].lower()], scale.end()
    hundred = _FRENCH_HUNDRED.match(text, at)
    if hundred is not None and word in _FRENCH_COUNTS and (word != "six" or not hundred["plural"]):
        return Decimal(100), hundred.end()
    return Decimal(1), at


def read_lower_places(text: str, value: Decimal, factor: Decimal, at: int) -> tuple[Decimal, int]:
    """Adds the words below a scale word to its value: the fifty of `two hundred and fifty`. Returns the end too.

    The hundreds of a place (`two hundred` of `two hundred and fifty thousand`) are kept apart until it is named."""
    limit, closed, hundreds = (factor, value, Decimal(0)) if factor > 100 else (Decimal("Infinity"), Decimal(0), value)
    if hundreds and (scale := _SCALE_TAIL.match(text, at)) is not None:  # two hundred thousand
        limit, at = FACTORS[scale["scale"].lower()], scale.end()
        closed, hundreds = hundreds * limit, Decimal(0)
    while (tail := _LOWER_PLACES.match(text, at)) is not None and tail["one"].lower() in NUMBER_WORDS:
        word = tail["one"].lower()
        lower, end = read_number_word(text, word, tail.end("one"))
        place, end = read_scale_word(text, word, end)
        group = lower * place
        if place == 1 and (word in AMBIGUOUS_WORDS or (hundreds and lower >= 100)):
            break
        if place == 100 and not hundreds and group < limit:
            hundreds, at = group, end
            if (scale := _SCALE_TAIL.match(text, at)) is not None and FACTORS[scale["scale"].lower()] < limit:
                limit, at = FACTORS[scale["scale"].lower()], scale.end()
                closed, hundreds = closed + hundreds * limit, Decimal(0)
            continue
        group += hundreds * place if place > 100 else hundreds
        if place == 100 or group >= limit:
            break
        closed, hundreds, limit, at = closed + group, Decimal(0), place, end
        if place == 1:
            break
    return closed + hundreds, at


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

"""Quantities that a text says in words: two thirds, half an hour, a year and a half, ett kvartal, cent cinq, the next
day.

They support claims; as claims, such words are too often other words.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import cache
from typing import Final

from agent.text.number_words import NUMBER_WORDS, SPACES, read_lower_places
from agent.text.numbers import NumberMention, NumberReading
from agent.text.units import UNITS, Unit, find_unit

_FRACTION_TABLE: Final = """
3   third thirds drittel tredjedel tiers
4   quarter quarters fourth fourths viertel fjärdedel quart quarts
5   fifth fifths fünftel femtedel cinquième cinquièmes
6   sixth sixths sechstel sjättedel sixième sixièmes
7   seventh sevenths siebtel sjundedel septième septièmes
8   eighth eighths achtel åttondel huitième huitièmes
9   ninth ninths neuntel niondel neuvième neuvièmes
10  tenth tenths zehntel tiondel dixième dixièmes
20  twentieth twentieths zwanzigstel tjugondel vingtième vingtièmes
100 hundredth hundredths hundertstel hundradel centième centièmes
"""
_COLLECTIVE_TABLE: Final = """
14   day   fortnight
10   year  decade jahrzehnt årtionde decennium décennie
100  year  century jahrhundert århundrade siècle
3    month quarter quartal vierteljahr kvartal trimestre trimester
6    month halbjahr halvår semestre
9    month dreivierteljahr
15   min   viertelstunde kvart
30   min   halvtimme halvtimma demi-heure
45   min   dreiviertelstunde trekvart
1    day   dygn
"""
_DECADES_WORDS: Final = {
    20: "twenties zwanziger tjugotalet", 30: "thirties dreißiger trettiotalet", 40: "forties vierziger fyrtiotalet",
    50: "fifties fünfziger femtiotalet", 60: "sixties sechziger sextiotalet", 70: "seventies siebziger sjuttiotalet",
    80: "eighties achtziger åttiotalet", 90: "nineties neunziger nittiotalet",
}  # fmt: skip
_DENOMINATORS: Final = {
    word: Decimal(number) for number, *words in map(str.split, _FRACTION_TABLE.strip().splitlines()) for word in words
}
_COLLECTIVES: Final = {
    word: (Decimal(count), UNITS[unit])
    for count, unit, *words in map(str.split, _COLLECTIVE_TABLE.strip().splitlines())
    for word in words
}
_DECADES: Final = {word: decade for decade, words in _DECADES_WORDS.items() for word in words.split()}
_COUNTS: Final = {word: Decimal(value) for word, value in NUMBER_WORDS.items() if value in range(1, 13)} | {
    "a": Decimal(1), "an": Decimal(1), "eines": Decimal(1),
}  # fmt: skip
_GERMAN_HALVES: Final = {"anderthalb": Decimal("1.5"), "halvannan": Decimal("1.5")} | {
    f"{'ein' if value == 1 else word}einhalb": Decimal(value) + Decimal("0.5")
    for word, value in NUMBER_WORDS.items()
    if value in range(1, 10) and word.isalpha()
}


def _join(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_SPACE: Final = rf"[{SPACES}\n]"
_COUNT: Final = rf"(?:\d{{1,3}}|{_join(_COUNTS)})"
_HALF: Final = r"(?:half|halv[ta]?|halbe[snrm]?|demie?)"
_ARTICLE: Final = r"(?:an?|ein(?:e[nmrs]?)?|en|ett|une?)"
_AND_A_HALF: Final = rf"(?:and|und|och|et){_SPACE}(?:{_ARTICLE}{_SPACE})?{_HALF}(?!\w)"
_WORD: Final = re.compile(r"[^\W\d_]+")
_HALVES: Final = (
    "half",
    "halv",
    "halvt",
    "halva",
    *(f"halbe{end}" for end in ("", "s", "n", "r", "m")),
    "demi",
    "demie",
)
_PART_OF_DAY: Final = (
    "day|morning|afternoon|evening|dag|morgon|förmiddag|eftermiddag|kväll|tag|morgen|vormittag|nachmittag|abend"
)
_DAY_LATER: Final = (
    rf"(?:the{{space}})?(?:next|following|nästa|följande|nächste[nrms]?|folgende[nrms]?|andere[nrms]?){{space}}"
    rf"(?:{_PART_OF_DAY})s?|(?:the{{space}})?day{{space}}after|da(?:ge)?n{{space}}(?:efter|därpå|därefter)"
    rf"|(?:folge|nächst)tags?|tags{{space}}(?:darauf|drauf)|(?:tag|morgen|abend){{space}}(?:danach|darauf)"
    r"|lendemain|(?:jour|matin|soir|journée){space}suivante?"
)
"""One day after the one that was spoken of."""
_DAY_LATER_KEYS: Final = """
next following nästa följande nächste nächsten nächster nächstem folgende folgenden folgendem anderen after dagen
folgetag folgetags nächsttags tags danach darauf lendemain suivant suivante
"""
_KEYS: Final = frozenset(_DAY_LATER_KEYS.split()) | frozenset(
    f"{word.partition('-')[0]}{ending}"
    for word in (*_DENOMINATORS, *_COLLECTIVES, *_DECADES, *_GERMAN_HALVES, *_HALVES, "hundred", "thousand", "cent")
    for ending in ("", "ar", "ars", "s", "en", "e", "er", "es", "n", "et")
)
"""One of these is in every quantity: the pattern is tried around them only."""
_SHARE: Final = re.compile(
    r"(?<![\d/.,-])(?P<part>\d{1,3})(?:/|\s(?:in|of|out of|av|von|sur|på)\s)(?P<whole>\d{1,3})(?![\d/.,-]\d|\d)"
)
_REACH: Final = 48


@cache
def _compile_pattern() -> re.Pattern[str]:
    """Compiled at first use: the words of four languages are in it several times."""
    return re.compile(
        rf"""
    (?<!\w)(?P<count>{_COUNT})[{SPACES}-](?P<fraction>{_join(_DENOMINATORS)})(?:ar|ars|s|en)?(?!\w)
      (?:{_SPACE}(?:of|d['\u2019]|de|av){_SPACE}?(?:{_ARTICLE}{_SPACE})?(?P<of>[^\W\d_]+))?
    | (?<!\w)(?:(?P<times>{_COUNT}){_SPACE})?(?P<collective>{_join(_COLLECTIVES)})(?:s|e|en|er|es|n|et)?(?!\w)
    | (?<!\w){_HALF}[{SPACES}-](?:{_ARTICLE}{_SPACE})?(?P<halved>[^\W\d_]+)
    | (?<!\w)(?P<whole>{_COUNT}){_SPACE}(?P<unit>[^\W\d_]+){_SPACE}{_AND_A_HALF}
    | (?<!\w)(?P<ones>{_COUNT})[{SPACES}-]{_AND_A_HALF}
    | (?<!\w)(?P<german>{_join(_GERMAN_HALVES)})(?!\w)
    | (?<!\w)(?:the|de[rn]?|die|les|på|années|in|aus){_SPACE}(?P<decade>{_join(_DECADES)})(?!\w)
    | (?<!\w)(?P<later>{_DAY_LATER.format(space=_SPACE)})(?!\w)
    | (?<!\w)(?:an?{_SPACE}(?P<scale>hundred|thousand)|(?<!pour\ )(?P<cent>cent))(?={_SPACE}(?:and{_SPACE})?[^\W\d_])
    """,
        re.IGNORECASE | re.VERBOSE,
    )


def find_word_quantities(text: str) -> list[NumberMention]:
    """The quantities in words of a text in order: a share in percent, a span of time in its unit, a decade as its first
    year. The words in them may be numbers too (`two` of `two thirds`)."""
    mentions: list[NumberMention] = []
    for start, end in _iter_windows(text):
        mentions += [
            one for match in _compile_pattern().finditer(text, start, end) if (one := _read(match)) is not None
        ]
    return mentions


def _iter_windows(text: str) -> Iterator[tuple[int, int]]:
    """Yields the spans around words of quantities, without overlaps."""
    start = end = 0
    for match in _WORD.finditer(text):
        if match[0].lower() not in _KEYS:
            continue
        if match.start() - _REACH > end:
            if end:
                yield start, end
            start = max(0, match.start() - _REACH)
        end = match.end() + _REACH
    if end:
        yield start, min(end, len(text))


def _read(match: re.Match[str]) -> NumberMention | None:
    text, end = match.string, match.end()
    if match["fraction"]:
        share = _count(match["count"]) / _DENOMINATORS[match["fraction"].lower()]
        whole = UNITS.get((match["of"] or "").lower())
        if whole is not None and whole.dimension in ("time", "months"):
            return _make(match, share, whole)
        return _make(match, 100 * share, UNITS["%"])
    if match["collective"]:
        size, unit = _COLLECTIVES[match["collective"].lower()]
        return _make(match, size * _count(match["times"] or "1"), unit)
    if match["halved"]:
        unit_of_half = UNITS.get(match["halved"].lower())
        return _make(match, Decimal("0.5"), unit_of_half) if unit_of_half is not None else None
    if match["whole"]:
        unit_of_whole = UNITS.get({"an": "ans"}.get(match["unit"].lower(), match["unit"].lower()))
        if unit_of_whole is None:
            return None
        return _make(match, _count(match["whole"]) + Decimal("0.5"), unit_of_whole)
    if match["ones"] or match["german"]:
        value = _count(match["ones"]) + Decimal("0.5") if match["ones"] else _GERMAN_HALVES[match["german"].lower()]
        return _make(match, value, find_unit(text, match.start(), end)[0])
    if match["later"]:
        return _make(match, Decimal(1), UNITS["day"])
    if match["decade"]:
        return _make(match, Decimal(1900 + _DECADES[match["decade"].lower()]), None)
    factor = Decimal(1000 if (match["scale"] or "").lower() == "thousand" else 100)
    value, end = read_lower_places(text, factor, factor, end)
    return _make(match, value, find_unit(text, match.start(), end)[0]) if value != factor or match["scale"] else None


def find_shares(text: str) -> Iterator[Decimal]:
    """Yields the shares that a text gives as two numbers: 0.125 of "1 in 8", 0.25 of "1/4"."""
    for match in _SHARE.finditer(text):
        part, whole = int(match["part"]), int(match["whole"])
        if 0 < part < whole:
            yield Decimal(part) / whole


def _count(word: str) -> Decimal:
    return Decimal(word) if word.isdigit() else _COUNTS[word.lower()]


def _make(match: re.Match[str], value: Decimal, unit: Unit | None) -> NumberMention:
    reading = NumberReading(value, Decimal(0))
    return NumberMention(match[0], match.start(), match.end(), (reading,), unit, is_word=True)

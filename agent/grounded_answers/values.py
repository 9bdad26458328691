"""Numbers, dates and times of a text by their value: "1,000" is "1000", "5 %" is "5%", "5 March" is "2024-03-05".

A mention has several keys where it can be read in several ways ("1,234", "03/04/2024"); it agrees with a text that
holds one of them. Identifiers ("INC-1042", "v2.18") are no numbers: they belong to the names.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from agent.grounded_answers.units import counted_at, unit_at
from agent.grounded_answers.wording import same_as
from agent.text.terms import extract_terms

Key = tuple[str, str]
"""What kind of value, and the value in one spelling: `("number", "1000")`, `("date", "2024-03-05")`."""

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january januari januar jan", "february februari februar feb", "march mars märz mar", "april apr",
            "may maj mai", "june juni jun", "july juli jul", "august augusti aug", "september sep sept",
            "october oktober oct okt", "november nov", "december dezember dec dez",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_CLAIM_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90, "två": 2, "tre": 3, "fyra": 4, "fem": 5, "sju": 7, "åtta": 8, "nio": 9, "tolv": 12, "tretton": 13,
    "fjorton": 14, "femton": 15, "sexton": 16, "sjutton": 17, "arton": 18, "nitton": 19, "tjugo": 20, "trettio": 30,
    "fyrtio": 40, "femtio": 50, "zwei": 2, "drei": 3, "fünf": 5, "sieben": 7, "acht": 8, "neun": 9, "zwölf": 12,
    "zwanzig": 20, "dreißig": 30,
}  # fmt: skip
_TENS = {"tjugo": 20, "trettio": 30, "fyrtio": 40, "femtio": 50, "sextio": 60, "sjuttio": 70, "åttio": 80, "nittio": 90}
_ONES = {"en": 1, "ett": 1, "två": 2, "tre": 3, "fyra": 4, "fem": 5, "sex": 6, "sju": 7, "åtta": 8, "nio": 9}
_ZEHNER = {"zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80,
           "neunzig": 90}  # fmt: skip
_EINER = {"ein": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9}
_CLAIM_WORDS |= {**_TENS, **_ZEHNER}
_CLAIM_WORDS |= {f"{tens}{one}": a + b for tens, a in _TENS.items() for one, b in _ONES.items()}
_CLAIM_WORDS |= {f"{one}und{tens}": a + b for tens, a in _ZEHNER.items() for one, b in _EINER.items()}
_MORE_WORDS = {"zero": 0, "one": 1, "sex": 6, "tio": 10, "elva": 11, "ett": 1, "en": 1, "eins": 1, "vier": 4,
               "sechs": 6, "zehn": 10, "elf": 11}  # fmt: skip
"""Number words that are other words as well: they speak for a number, but make no claim of one."""
_SCALES = {
    "hundred": 100, "hundra": 100, "hundert": 100, "thousand": 1000, "tusen": 1000, "tausend": 1000, "k": 1000,
    "million": 10**6, "millions": 10**6, "miljon": 10**6, "miljoner": 10**6, "millionen": 10**6, "mn": 10**6,
    "billion": 10**9, "billions": 10**9, "miljard": 10**9, "miljarder": 10**9, "milliarden": 10**9, "bn": 10**9,
}  # fmt: skip

_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_WORDS = "|".join(sorted(map(re.escape, {**_CLAIM_WORDS, **_MORE_WORDS}), key=len, reverse=True))
_SCALE = "|".join(sorted(map(re.escape, _SCALES), key=len, reverse=True))
_SPACE = "[ \u00a0\u2007\u2009\u202f]"
_FIND = re.compile(
    rf"""
    (?P<iso>(?<![\w-])(?:1[5-9]|20|21)\d\d[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d))
    | (?P<numeric>(?<![\w./-])\d{{1,2}}[./]\d{{1,2}}[./](?:\d{{4}}|\d\d)(?![\d.]\d))
    | (?<![\w.])(?P<day1>\d{{1,2}})(?:st|nd|rd|th|\.|:?e)?{_SPACE}+(?:of{_SPACE}+|den{_SPACE}+)?
      (?P<month1>{_MONTH})\b\.?(?:,?{_SPACE}*(?P<year1>(?:1[5-9]|20|21)\d\d))?(?!\d)
    | \b(?P<month2>{_MONTH})\b\.?{_SPACE}+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.,]\d|\d)
      (?:,?{_SPACE}+(?P<year2>(?:1[5-9]|20|21)\d\d)(?!\d))?
    | \b(?P<month3>{_MONTH})\b\.?,?{_SPACE}+(?P<year3>(?:1[5-9]|20|21)\d\d)(?!\d)
    | (?<![\w.:])(?P<hour>\d{{1,2}}):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?:{_SPACE}*(?P<half1>[ap]\.?m)\b)?(?![\d:])
    | (?<![\w.:])(?P<hour2>1[0-2]|0?[1-9]){_SPACE}*(?P<half2>[ap]\.?m)\b
    | (?<![^\W_])(?P<number>(?:(?:(?<=[\s(\[|])|(?<!.))[-\u2212](?=\d))?\d+(?:[.,'\u2019]\d+|{_SPACE}\d{{3}}(?!\d))*)
      (?:st|nd|rd|th)?(?:{_SPACE}*-?(?P<scale>{_SCALE})\b)?
    | \b(?P<word>{_WORDS})(?:[- ](?P<unit>{_WORDS}))?(?:{_SPACE}+(?P<scale2>{_SCALE}))?\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_GROUPED = re.compile(r"\d{1,3}(?:[,.'\u2019 \u00a0\u2007\u2009\u202f]\d{3})+(?:[.,]\d+)?")
_PERCENT = re.compile(r"^\s*(?:%|percent\b|per cent\b|procent\b|prozent\b)", re.IGNORECASE)
_ANY_SCALE = re.compile(rf"\b(?:{_SCALE})\b", re.IGNORECASE)
_ANY_PERCENT = re.compile(r"%|\bper ?cent|\bprocent|\bprozent", re.IGNORECASE)


class Mention(NamedTuple):
    """A value where it stands. `keys` are its readings; `parts` the numbers it may be made of, where a space may be
    a thousands separator or none ("5 100"); `scaled` the number before its "million"."""

    text: str
    start: int
    end: int
    keys: frozenset[Key]
    parts: tuple[Key, ...] = ()
    scaled: Key | None = None
    percent: bool = False
    unit: str = ""
    counted: str = ""


class Held:
    """The values a text holds, as evidence: a date also holds its month, its year, and its day as an ordinal, but no
    plain number. `context`, the head of a table, may say that they are percent or millions."""

    def __init__(self, text: str, context: str = "") -> None:
        self._keys: set[Key] = set()
        self._units: dict[Key, set[str]] = {}
        self._text = text
        self._scaled = _ANY_SCALE.search(f"{context}\n{text}") is not None
        self._percent = _ANY_PERCENT.search(f"{context}\n{text}") is not None
        for mention in _mentions(text, claims=False):
            for key in mention.keys:
                self._keys.add(key)
                self._keys.update(_wider(key))
                self._units.setdefault(key, set()).add(mention.unit)
            self._keys.update(mention.parts)

    def holds(self, mention: Mention) -> bool:
        """Whether the value of a claim stands in this text."""
        if mention.percent and not self._percent:
            return False
        if any(self._counts_the_same(mention, key) for key in mention.keys & self._keys):
            return True
        if mention.parts and all(part in self._keys for part in mention.parts):
            return True
        # "1.5 million" where a table says "in millions"
        return mention.scaled is not None and mention.scaled in self._keys and self._scaled

    def _counts_the_same(self, mention: Mention, key: Key) -> bool:
        """Whether the number has the claim's unit here, or one of them has none; and what a claim counts ("26
        managers") is spoken of where the number has a unit ("26 days")."""
        units = self._units.get(key)
        if not units or "" in units or key[0] != "number":
            return True
        if mention.unit:
            return mention.unit in units
        return not mention.counted or bool(
            same_as(extract_terms(mention.counted)[0]) & frozenset(extract_terms(self._text))
        )


def mentions(text: str) -> list[Mention]:
    """The values a text claims, in order. Number words that are other words too ("one", "sex") claim nothing."""
    return [mention for mention in _mentions(text, claims=True) if mention.keys]


def _mentions(text: str, *, claims: bool) -> Iterator[Mention]:
    for match in _FIND.finditer(text):
        mention = _read(match, claims=claims)
        if mention is None:
            continue
        after = text[match.end() : match.end() + 12]
        yield mention._replace(
            percent=_PERCENT.match(after) is not None,
            unit=unit_at(text, match.start(), match.end()),
            counted=counted_at(text, match.end()),
        )


def _read(match: re.Match[str], *, claims: bool) -> Mention | None:
    groups = match.groupdict()
    keys: set[Key] = set()
    parts: tuple[Key, ...] = ()
    scaled: Key | None = None
    if groups["iso"]:
        written = [int(part) for part in re.split(r"[-/.]", groups["iso"])]
        keys |= _dates(*written)
        parts = tuple(("number", part) for part in re.split(r"[-/.]", groups["iso"])) if not keys else ()
    elif groups["numeric"]:
        first, second, last = (int(part) for part in re.split(r"[./]", groups["numeric"]))
        of = last + 2000 if last < 100 else last
        keys |= _dates(of, second, first) | _dates(of, first, second)
        keys |= {("text", groups["numeric"])} if not keys else set()
    elif month_name := groups["month1"] or groups["month2"] or groups["month3"]:
        if month_name == "may" and groups["month2"]:  # "may 5 people": no month
            return _number(match, groups["day2"], None, match.start("day2"), match.end("day2"))
        day = groups["day1"] or groups["day2"]
        of_year = groups["year1"] or groups["year2"] or groups["year3"]
        keys |= _dates(int(of_year) if of_year else None, _MONTHS[month_name.lower()], int(day) if day else None)
    elif groups["hour"] or groups["hour2"]:
        keys |= _times(groups["hour"] or groups["hour2"], groups["minute"], groups["half1"] or groups["half2"])
    elif groups["number"]:
        return _number(match, groups["number"], groups["scale"], match.start("number"), match.end("number"))
    else:
        value = _word_value(groups, claims=claims)
        if value is None:
            return None
        if groups["scale2"]:
            scaled = ("number", str(value))
            value *= _SCALES[groups["scale2"].lower()]
        keys.add(("number", str(value)))
    return Mention(match[0], match.start(), match.end(), frozenset(keys), parts, scaled) if keys or parts else None


def _number(match: re.Match[str], written: str, scale: str | None, start: int, end: int) -> Mention:
    values = _readings(written)
    if match.string[end : end + 2].lower() in ("st", "nd", "rd", "th"):
        values |= {("day", value) for kind, value in values if kind == "number"}
    parts = re.split(r"[ \u00a0\u2007\u2009\u202f]", written)
    apart = len(parts) > 1 and all(part.isdigit() and part[0] != "0" for part in parts)
    split = tuple(("number", part) for part in parts) if apart else ()
    if scale is None:
        return Mention(written, start, end, frozenset(values), split)
    by = _SCALES[scale.lower()]
    scaled = {("number", _plain(Decimal(value) * by)) for kind, value in values if kind == "number"}
    first = next(iter(sorted(values)), None)
    return Mention(match[0], start, match.end(), frozenset(scaled), split, first)


def _readings(written: str) -> set[Key]:
    """The numbers a spelling can stand for: "1,234" is 1234, "1.234" that or 1.234, "1.2.3" a version."""
    sign = "-" if written[0] in "-\u2212" else ""
    digits = written.lstrip("-\u2212")
    marks = re.findall(r"\D", digits)
    joined = ("number", _plain(Decimal(sign + re.sub(r"\D", "", digits))))
    if not marks:
        return {joined}
    whole, rest = digits[: digits.rindex(marks[-1])], digits[digits.rindex(marks[-1]) + 1 :]
    broken = ("number", _plain(Decimal(f"{sign}{re.sub(r'[^0-9]', '', whole)}.{rest}")))
    if not _GROUPED.fullmatch(digits):
        return {broken} if len(marks) == 1 else {("text", digits)}
    if len(rest) != 3 or (whole == "0" and marks[-1] in ".,"):
        return {broken}
    if len(set(marks)) > 1:  # the last of different marks is the decimal one: "1.234,567"
        return {broken}
    return {joined, broken} if marks == ["."] else {joined}


def _word_value(groups: dict[str, str | None], *, claims: bool) -> int | None:
    word, unit = (groups["word"] or "").lower(), (groups["unit"] or "").lower()
    known = _CLAIM_WORDS if claims else {**_CLAIM_WORDS, **_MORE_WORDS}
    both = {**_CLAIM_WORDS, **_MORE_WORDS}
    if unit and both[word] >= 20 and 0 < both[unit] < 10:
        return both[word] + both[unit]
    return known.get(word) if not groups["scale2"] else both[word]


def _dates(year: int | None, month: int, day: int | None) -> set[Key]:
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return set()
    parts = (f"{year:04}" if year else "", f"{month:02}", f"{day:02}" if day else "")
    return {("date", "-".join(parts))}


def _times(hour: str, minute: str | None, half: str | None) -> set[Key]:
    hours = int(hour)
    if half:
        hours = hours % 12 + (12 if half[0].lower() == "p" else 0)
    return {("time", f"{hours:02}:{minute or '00'}")}


def _wider(key: Key) -> Iterator[Key]:
    """What a date says besides itself: its month and year, its day as an ordinal, its year."""
    if key[0] != "date":
        return
    year, month, day = key[1].split("-")
    yield "date", f"-{month}-"
    if year:
        yield "number", str(int(year))
        yield "date", f"{year}-{month}-"
    if day:
        yield "day", str(int(day))
        yield "date", f"-{month}-{day}"


def _plain(value: Decimal) -> str:
    """One spelling for equal numbers."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text

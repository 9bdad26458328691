"""Reads the figures of a text with their labels: what each of them counts, and what it is said of.

`price_ore_per_kwh: 118.5` is money for each kWh, and `kwh: 642` counts these, so that the two are multiplied. A label
is a key of JSON, the head of a column, or the words beside a number.
"""

# ruff: noqa: RUF001 - the multiplication sign is meant

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent.answers.derived.chance import Quantity, make_quantity
from agent.text.numbers import NumberMention
from agent.text.units import CURRENCIES, UNITS_OF_LABELS, Unit

_KEY: Final = re.compile(r"\"([^\"\n]{1,60})\"\s*:\s*\[?(?:[\d.]+,\s*)*-?$")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD: Final = re.compile(r"[^\W\d_]+(?:[²³]|\d(?!\d))?|%|\d+")
_PER: Final = frozenset(("per", "pro", "par", "je", "pr", "à"))
_PERIODS: Final = (
    ("h", r"hourly|horaire|stunden|tim(?:men|lön|pris|taxa|kostnad|ersättning)"),
    ("day", r"daily|quotidien|journalier|täglich|tages|dag(?:en|s|lig)|dygn"),
    ("night", r"nightly|nächtlich|natten"),
    ("week", r"weekly|hebdo|wöchentlich|wochen|vecko|veckan"),
    ("month", r"monthly|mensu|monatlich|monats|månads|månaden|månatlig"),
    ("quarter", r"quarter|trimest|quartal|kvartal"),
    ("year", r"yearly|annual|annuel|jährlich|jahres|årlig|års|året"),
)
"""Words and beginnings of compounds that say of what time an amount is: `hourly_rate`, `Stundenlohn`."""
_PERIOD: Final = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _PERIODS))
_JOINED: Final = re.compile(
    r"\s(?:[^\W\d_]+\s)?(?:zu je|à|je|at|of|av|för|pour|zu|[x×*@])\s(?:je\s)?[€$£]?", re.IGNORECASE
)
"""What is between a count and the price of each: "6 h à 48 €", "25 chairs at $89"."""
_SAID_OF: Final = re.compile(
    r"(?:\s?[^\W\d_]{1,9})?(?:\s?/\s?|\s(?:per|pro|par|je|a(?=\s[a-z])|an(?=\s[a-z])|each|om)\s)(?P<word>[^\W\d_]+[²³]?)"
)
"""What a number in prose is said of: "4.50 a night", "£2,400 per quarter"."""
_YEAR: Final = re.compile(r"(?<![\d.,-])(?:19|20)\d\d(?![\d-]|[.,]\d)")
_EACH: Final = re.compile(r"(?:\b(?:per|pro|par|je|pr)\s|/\s?)(?P<word>[^\W\d_]+[²³]?)", re.IGNORECASE)
_EACH_TIME: Final = re.compile(
    r"\b(?:an?|om|im?|am|each|every|jede[nmr]?|varje|chaque)\s(?P<word>[^\W\d_]+)", re.IGNORECASE
)
"""What is said of each time only: "a day", "om dagen", "im Monat"."""
_NOUN: Final = re.compile(r"[ \u00a0](?P<word>[^\W\d_]{3,})")
_STEM: Final = 4
_OF_RATES: Final = {"ore": "öre", "ct": "cent", "cts": "cent"}
"""Spellings of money that are other words elsewhere."""
_NAMES_OF_ROWS: Final = frozenset(
    ("id", "nr", "no", "year", "jahr", "år", "année", "phone", "index", "position", "rank")
)
_MAX_READ: Final = 100
"""Numbers that are read."""
_MAX_PIECES: Final = 1_000
"""Of two larger figures of a row, none counts pieces of which the other is the price."""
COUNTED: Final = "!"
"""Behind the name of a unit that a label of several words ends with: `price_night` is said of each night, or counts
nights. Such a figure is multiplied only by one whose label is the unit alone."""
MONEY: Final = CURRENCIES | {"kr"}
"""Dimensions of amounts of money."""

COUNT_UNITS: Final = ("time", "months", "nights", "x")
"""Dimensions whose small whole numbers are counts like any other: seven days, three times."""
_MAX_COUNT: Final = 100
"""Whole numbers below this may be counts by which an amount is divided."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A figure with what it counts (`names`) and what it is said of (`per`): units by name, other words by stem."""

    quantity: Quantity
    names: frozenset[str] = frozenset()
    per: frozenset[str] = frozenset()
    is_labelled: bool = False

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.quantity.value * self.quantity.factor

    @property
    def is_share(self) -> bool:
        """Whether the figure is a percentage."""
        return self.quantity.dimension == "%"


def read_operands(text: str, numbers: Sequence[NumberMention]) -> list[Operand]:
    """The figures of a text with their labels, in order. Years, dates, 0, 1 and the names of rows are left out.

    The two figures of rows that have no others, and a count with the price behind it, are said of each other."""
    heads = _Heads(text)
    operands: list[Operand] = []
    rows: list[object] = []
    before: NumberMention | None = None
    for number in numbers[:_MAX_READ]:
        if number.value in (0, 1) or number.may_be_year or number.dates or text.startswith('":', number.end):
            continue
        key = _KEY.search(text, max(0, number.start - 100), number.start)
        label = key[1] if key is not None else heads.find(number.start)
        if label.lower() in _NAMES_OF_ROWS:
            continue
        operand = _read(text, number, label)
        if before is not None and not label and _JOINED.fullmatch(text, before.end, number.start):
            operands[-1:], operand = _join(operands[-1], operand, len(operands))
        operands.append(operand)
        rows.append(_find_row(text, number.start) if label else None)
        before = number
    pairs = [at for at, row in enumerate(rows[1:]) if row is not None and row == rows[at] and rows.count(row) == 2]
    kinds = Counter((operands[at].names, operands[at + 1].names) for at in pairs)
    for at in pairs:
        is_repeated = kinds[operands[at].names, operands[at + 1].names] > 1
        is_repeated = is_repeated and min(operands[at].base, operands[at + 1].base) < _MAX_PIECES
        if is_repeated and not (operands[at].is_share or operands[at + 1].is_share):
            operands[at : at + 1], operands[at + 1] = _join(operands[at], operands[at + 1], at)
    return operands


def find_periods(text: str) -> frozenset[str]:
    """The units of time that words of a text name, by their names."""
    names = {name for word in _WORD.findall(text.lower()) for name in _name(word)}
    names |= {"year"} if _YEAR.search(text) is not None else set()
    return frozenset(names & _PERIOD.groupindex.keys())


def find_divisors(sentence: str) -> frozenset[str]:
    """What a sentence says an amount of each of: names of units and stems, of "per desk"."""
    names = {name for match in _EACH.finditer(sentence) for name in _name(match["word"].lower())}
    times = {name for match in _EACH_TIME.finditer(sentence) for name in _name(match["word"].lower())}
    return frozenset(names | (times & _PERIOD.groupindex.keys()))


def pair_said(operands: Sequence[Operand]) -> list[Operand]:
    """The figures of a sentence, of which a price is taken to be of each of what another figure counts."""
    return [
        replace(one, per=one.per | {"said"})
        if one.quantity.dimension in MONEY
        else replace(one, names=one.names | {"said"})
        for one in operands
    ]


def merge(context: Sequence[Operand], operands: Sequence[Operand]) -> list[Operand]:
    """The figures of a sentence and of results, each value once, with what both say of it."""
    merged: dict[tuple[float, str], Operand] = {}
    for one in (*operands, *context):
        own = (one.base, one.quantity.dimension)
        key = next((key for key in (own, (one.quantity.value, "")) if key in merged), own)
        other = merged.get(key, one)
        merged[key] = replace(other, names=other.names | one.names, per=other.per | one.per)
    return list(merged.values())


def _join(count: Operand, rate: Operand, place: int) -> tuple[list[Operand], Operand]:
    joint = frozenset((f"pair {place}",))
    return [replace(count, names=count.names | joint)], replace(rate, per=rate.per | joint)


def _find_row(text: str, place: int) -> tuple[int, int, int]:
    """Identifies the object or line around a place."""
    return text.count("{", 0, place), text.count("}", 0, place), text.count("\n", 0, place)


def _read(text: str, number: NumberMention, label: str) -> Operand:
    names: set[str] = set()
    per: set[str] = set()
    divisor = 1.0
    unit = number.unit
    words = [word.lower() for word in _WORD.findall(_CAMEL.sub(" ", label))]
    split = next((at for at, word in enumerate(words) if word in _PER), len(words))
    for word in words[split + 1 :]:
        divisor = float(word) if word.isdigit() and word.strip("0") == "1" else divisor
        per.update(_name(word))
    for place, word in enumerate(words[:split]):
        period = _PERIOD.match(word)
        named = UNITS_OF_LABELS.get(_OF_RATES.get(word, word))
        if period is not None and named is None:
            per.add(str(period.lastgroup))
            continue
        names.update(_name(word))
        is_last_of_several = place == len(words) - 1 > 0
        if named is not None and is_last_of_several and _is_counted(named):
            per.add(named.name + COUNTED)
        if named is not None and unit is None and (not is_last_of_several or not _is_counted(named)):
            unit = named
    if (said_of := _SAID_OF.match(text, number.end)) is not None:
        per.update(_name(said_of["word"].lower()))
    elif not label and (noun := _NOUN.match(text, number.end)) is not None:
        names.update(_name(noun["word"].lower()))
    if number.unit is not None:
        names.add(number.unit.name)
    if len(words) <= 1:
        names |= {name + COUNTED for name in names}
    value = abs(float(number.value)) / divisor
    return Operand(make_quantity(value, 0.0, unit), frozenset(names), frozenset(per), bool(label))


def _name(word: str) -> Iterator[str]:
    """Yields what a word of a label names: a unit, a time, or something by its stem."""
    unit = UNITS_OF_LABELS.get(_OF_RATES.get(word, word))
    period = _PERIOD.match(word)
    if unit is not None:
        yield unit.name
    elif period is not None:
        yield str(period.lastgroup)
    elif not word.isdigit():
        yield word[:_STEM]


def _is_counted(unit: Unit) -> bool:
    """Whether a unit may also be what an amount is said of: nights, months and litres, not money."""
    return unit.dimension not in CURRENCIES and unit.dimension != "%"


class _Heads:
    """The heads of the columns of Markdown tables."""

    def __init__(self, text: str) -> None:
        self._text = text

    def find(self, place: int) -> str:
        """The head of the column of the number at a place; "" outside of tables."""
        text = self._text
        start = text.rfind("\n", 0, place) + 1
        column = text.count("|", start, place)
        if not column:
            return ""
        head = start
        while head:  # the first line of the table
            above = text.rfind("\n", 0, head - 1) + 1
            if "|" not in text[above:head]:
                break
            head = above
        cells = text[head : text.find("\n", head)].split("|")
        return cells[column].strip() if column < len(cells) else ""


def may_be_count(one: Quantity) -> bool:
    """Whether a figure is a whole number of people, pieces, nights or months, which amounts are divided among."""
    return one.dimension in ("", *COUNT_UNITS) and 1 < one.value < _MAX_COUNT and one.value.is_integer()

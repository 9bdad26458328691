"""Quantities in two units of one kind: `2 h 35 min`, `1 Stunde und 35 Minuten`, `6 feet 2 inches`, `PT1H30M`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from agent.text.number_words import NUMBER_WORDS, SPACES
from agent.text.numbers import NumberMention, NumberReading
from agent.text.units import UNITS, Unit

_DIMENSIONS = frozenset({"time", "months", "length", "mass"})
_SPACE = r"[ \t\u00a0\u202f]"
_JOINT = re.compile(rf",?{_SPACE}*(?:(?:and|und|och|et|y|e){_SPACE}+)?", re.IGNORECASE)
_ONE_BEFORE = re.compile(
    rf"\b(?P<one>[^\W\d_]+){_SPACE}(?P<unit>[^\W\d_]+),?{_SPACE}(?:(?:and|und|och|et|y|e){_SPACE})?$", re.IGNORECASE
)
_INCHES = re.compile(r"[ \u00a0]?(?:in\b\.?|[\"\u2033])")
_RANGE_SIGNS = ("-", "\u2013")
_RANGE_WORDS = frozenset({"to", "bis", "auf", "till", "à"})
_ARTICLES = frozenset({"a", "an", "una", "uno", "un"})
_MOST_SCALED = 1_000
"""Numbers from here on are written out."""
_MAX_BEFORE = 40
_ISO_DURATION = re.compile(
    r"(?<!\w)P(?=T?\d)(?:(?P<year>\d+)Y)?(?:(?P<month>\d+)M)?(?:(?P<week>\d+)W)?(?:(?P<day>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hour>\d+)H)?(?:(?P<minute>\d+)M)?(?:(?P<second>\d+(?:\.\d+)?)S)?)?(?!\w)"
)


def join_units(text: str, mentions: Sequence[NumberMention]) -> list[NumberMention]:
    """The numbers of a text in order; two that state one quantity become one, in the smaller unit.

    A unit and a scale belong to all numbers of a range, a unit to those of dimensions: `15-20 km`, `60 auf 72 Euro`,
    `2-3 million`, `40 x 30 x 25 cm`, but not to the count of `3 x 250 ml`. The article before the larger unit counts as
    one: `an hour and 35 minutes`."""
    joined: list[NumberMention] = []
    for one in _share_units(text, mentions):
        previous = joined[-1] if joined else None
        mention = _read_inches(text, previous, one)
        if previous is not None and _belong_together(text, previous, mention):
            joined[-1] = _add(text, previous.value, previous.unit, mention, previous.start)
            continue
        before = _ONE_BEFORE.search(text, max(0, mention.start - _MAX_BEFORE), mention.start) if mention.unit else None
        larger = UNITS.get(before["unit"].lower()) if before is not None and _is_one(before["one"]) else None
        if before is not None and _is_larger(larger, mention):
            joined.append(_add(text, Decimal(1), larger, mention, before.start()))
        else:
            joined.append(mention)
    return joined


def _read_inches(text: str, previous: NumberMention | None, mention: NumberMention) -> NumberMention:
    """A number as inches where it follows feet and says so: `5 ft 11 in`. "In" alone is a preposition."""
    if previous is None or previous.unit != UNITS["foot"] or mention.unit is not None:
        return mention
    end = _INCHES.match(text, mention.end) if text[previous.end : mention.start].strip() in ("", ",") else None
    if end is None:
        return mention
    return replace(mention, text=text[mention.start : end.end()], end=end.end(), unit=UNITS["inch"])


def _share_units(text: str, mentions: Sequence[NumberMention]) -> list[NumberMention]:
    shared = list(mentions)
    for place in range(len(shared) - 2, -1, -1):
        one, following = shared[place], shared[place + 1]
        if following.unit is not None and _shares_unit(one, text[one.end : following.start], following.unit):
            shared[place] = replace(one, unit=following.unit)
        if following.unscaled and _shares_scale(one, text[one.end : following.start], following.unscaled):
            is_range = text[one.end : following.start] in _RANGE_SIGNS
            shared[place : place + 2] = _share_scale(shared[place], shared[place + 1], is_range=is_range)
    return shared


def _share_scale(one: NumberMention, following: NumberMention, *, is_range: bool) -> list[NumberMention]:
    """Both numbers with the scale of the last one. What the ends of a range round lies between them."""
    assert following.unscaled
    scale = abs(following.value / following.unscaled)
    first = tuple(NumberReading(each.value * scale, each.step * scale) for each in one.readings)
    if not is_range:
        return [replace(one, readings=first, unscaled=one.value), following]
    return [
        replace(
            one, readings=tuple(replace(each, below=Decimal(0), above=each.step) for each in first), unscaled=one.value
        ),
        replace(
            following, readings=tuple(replace(each, below=each.step, above=Decimal(0)) for each in following.readings)
        ),
    ]


def _shares_scale(one: NumberMention, between: str, following: Decimal) -> bool:
    """Whether the scale word of a range is that of its first number too: `48-49 thousand`, `1.2-1.8k`."""
    if one.unscaled is not None or one.unit is not None:
        return False
    if between.strip(SPACES) in _RANGE_WORDS:  # "from 310 to 268 million"
        return 0 < one.value < _MOST_SCALED
    return between in _RANGE_SIGNS and 0 < one.value < abs(following)


def _shares_unit(one: NumberMention, between: str, unit: Unit) -> bool:
    if one.is_factor:
        return unit.dimension == "length" and len(between) < 3 and not between.strip()
    if one.unit is None and one.unscaled is None and between.strip(SPACES) in _RANGE_WORDS:
        return True
    # "800 - 25 %" is a difference, and "100-25 %" may be one.
    return one.unit is None and between in _RANGE_SIGNS and one.text[-1:].isdigit() and unit.dimension != "%"


def find_iso_durations(text: str) -> list[tuple[Decimal, Unit]]:
    """The spans of time in ISO 8601 (`PT1H30M`, `P24M`), each in the base unit of its dimension and by its parts."""
    quantities: list[tuple[Decimal, Unit]] = []
    for match in _ISO_DURATION.finditer(text):
        parts = [(Decimal(count), UNITS[name]) for name, count in match.groupdict().items() if count is not None]
        quantities += parts
        for base in (UNITS["second"], UNITS["month"]):
            total = sum((count * unit.factor for count, unit in parts if unit.dimension == base.dimension), Decimal(0))
            quantities += [(total, base)] if total else []
    return quantities


def _belong_together(text: str, first: NumberMention, second: NumberMention) -> bool:
    gap = text[first.end : second.start]
    return len(gap) < 8 and _is_larger(first.unit, second) and _JOINT.fullmatch(gap) is not None


def _is_larger(unit: Unit | None, smaller: NumberMention) -> bool:
    """Whether a unit is the next larger one: less than one of it is in the number."""
    own = smaller.unit
    if unit is None or own is None or unit.dimension != own.dimension or own.dimension not in _DIMENSIONS:
        return False
    return len(smaller.readings) == 1 and 0 <= smaller.value * own.factor < unit.factor


def _is_one(word: str) -> bool:
    return word.lower() in _ARTICLES or NUMBER_WORDS.get(word.lower()) == 1


def _add(text: str, count: Decimal, unit: Unit | None, smaller: NumberMention, start: int) -> NumberMention:
    assert unit is not None
    assert smaller.unit is not None
    value = count * unit.factor / smaller.unit.factor + smaller.value
    reading = NumberReading(value, smaller.readings[0].step)
    parts = (count, smaller.value)
    whole = text[start : smaller.end]
    return replace(smaller, text=whole, start=start, readings=(reading,), parts=parts, unscaled=None, is_sum=True)

"""The numbers, amounts, dates, times and durations that texts state, compared by what they mean and not by how they are
written: `15:30` is "half past three" and 600 seconds are "ten minutes".

Exact: nothing is rounded. A number takes another unit's value only where its own unit is known, from its text or from
the name of the input that takes it; else the 30 of "half an hour" would be anybody's 30. Used by `OwnWords`, which
decides whose word a value is, and by `agent.planning.rounds.known_words`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property
from typing import Final

from babel.numbers import get_currency_precision

from agent.text.compound_quantities import find_iso_durations
from agent.text.dates import DateMention, DateValue, TimeMention, TimeValue
from agent.text.loose_dates import list_named_hours, list_possible_dates
from agent.text.numbers import NumberMention
from agent.text.scales import CENT
from agent.text.spelling import fold_digits
from agent.text.spoken_times import find_spoken_times, list_halves
from agent.text.terms import detect_script
from agent.text.unit_labels import read_input_units
from agent.text.units import CURRENCIES, UNITS, Unit, can_share_value, is_currency
from agent.text.values import find_values
from agent.text.word_quantities import find_word_quantities

Quantity = DateMention | TimeMention | NumberMention

END_CHARS: Final = 2_000
"""Characters of each end of a text in which its quantities are read: a turn of the event loop has time for no more."""
MAX_CHARS: Final = 200
"""A longer text states more than one quantity."""
MAX_DURATIONS: Final = 50
"""Durations of the texts that are tried as the length of what ends at a moment."""
MAX_SECONDS: Final = 100 * 366 * 86_400
"""Longer durations are not tried: "900 million hours"."""
DAY_HOURS, HALF_DAY_HOURS = 24, 12
CURRENCIES_WITHOUT_CENTS: Final = frozenset(one for one in CURRENCIES if get_currency_precision(one) == 0)
_UNSPACED_SCRIPTS: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"})
_DIGIT_EDGE: Final = re.compile(r"[^\W\d_][0-9]|[0-9][^\W\d_]")
_DIGIT_GROUPS: Final = re.compile(r"(?<![\d.,-])\d{3,}(?: \d{3,}){2,}(?![\d.,-])")
"""The number of an account or a card, if its groups are as long as each other: `1234 5678 9012`."""
_TIME_MARKS: Final = frozenset({"t", "z"})
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:?\d\d)?")
_POINT_TIME: Final = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")
"""A time as half of Europe writes it; a bare number such as 15.30 may be one."""
_ONE_OF: Final = re.compile(r"(?<!\w)(?:an?|un)\s(?P<unit>[^\W\d_]+)(?!\w)", re.IGNORECASE)
"""One unit behind an article that number words leave out: `an hour`."""


class StatedValues:
    """What some texts state. `zone` is where their times of day are meant; a moment with an offset is compared there.

    With `is_loose`, a number may be a full hour or a date: "at 12", "4/12". Too loose for anything but a doubt."""

    def __init__(self, texts: Sequence[str], *, zone: tzinfo | None = None, is_loose: bool = False) -> None:
        self._texts = tuple(map(prepare, texts))
        self._zone = zone
        self._is_loose = is_loose

    def hold(self, value: str, label: str = "") -> bool:
        """Whether a text that is a quantity, a moment, a duration or a currency, and nothing else, is stated. `label`
        is the name of the input that takes it, and behind a line break its description."""
        text = prepare(value).strip()
        if not text or len(text) > MAX_CHARS:
            return False
        if (moment := _read_moment(text)) is not None and self._hold_moment(moment):
            return True
        return self._hold_iso_duration(text) or self._hold_currency(text) or self._hold_quantities(text, label)

    def hold_mention(self, mention: Quantity, label: str = "") -> bool:
        """Whether a number, date or time is stated."""
        if isinstance(mention, DateMention):
            return any(self._hold_date(reading) for reading in mention.readings)
        if isinstance(mention, TimeMention):
            return mention.value in self._times
        return any(self.hold_number(reading.value, mention.unit, label) for reading in mention.readings)

    def hold_number(self, value: Decimal | None, unit: Unit | None = None, label: str = "") -> bool:
        """Whether a number is stated, in a unit that can be its own, or as a quantity of another unit of its kind."""
        if value is None:
            return False
        if any(unit is None or can_share_value(unit, other) for other in self._numbers.get(value, ())):
            return True
        if unit is not None:
            return self._hold_measure(value, unit)
        if not label:
            return False
        meant = read_input_units(label)
        if meant.in_cents and value * CENT in self._amounts:
            return True
        is_share = any(one.dimension == "%" for one in meant.units)
        if is_share and value in self._shares:
            return True
        return any(self._hold_measure(value, one) for one in meant.units) or self._hold_measure(value * 100, UNITS["%"])

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The numbers, dates and times of the texts; of a long one, of its ends, where the request stands."""
        return [mention for text in self._texts for mention in _iter_quantities(_cut_to_ends(text))]

    @property
    def numbers(self) -> Collection[Decimal]:
        """The numbers of the texts, without their units."""
        return self._numbers.keys()

    def _hold_quantities(self, text: str, label: str) -> bool:
        mentions = [mention for mention in find_values(text) if isinstance(mention, Quantity)]
        rest = text
        for mention in reversed(mentions):
            rest = rest[: mention.start] + " " + rest[mention.end :]
        words = set(re.findall(r"\w+", rest.casefold())) - _TIME_MARKS
        return bool(mentions) and not words and all(self.hold_mention(mention, label) for mention in mentions)

    def _hold_moment(self, moment: datetime) -> bool:
        """Whether the day and the time of a moment are stated, or those from which a stated duration leads to it. UTC
        is often written for the time of the place."""
        offset, local = moment.utcoffset(), moment.replace(tzinfo=None)
        readings = [] if offset else [local]
        if offset is not None and self._zone is not None:
            readings += _move(moment, zone=self._zone)
        return any(self._hold_local(one) for one in readings) or any(
            self._hold_local(start) for one in readings for by in self._durations for start in _move(one, back=by)
        )

    def _hold_local(self, moment: datetime) -> bool:
        is_stated = TimeValue(moment.hour, moment.minute) in self._times
        return is_stated and self._hold_date(DateValue(moment.year, moment.month, moment.day))

    def _hold_date(self, date: DateValue) -> bool:
        return any(date.follows_from(stated) for stated in self._dates)

    def _hold_iso_duration(self, text: str) -> bool:
        durations = find_iso_durations(text) if text.startswith("P") and " " not in text else []
        is_one = len({unit.dimension for _, unit in durations}) == 1  # a month has no number of days
        return is_one and self._hold_measure(*durations[-1])

    def _hold_measure(self, value: Decimal, unit: Unit) -> bool:
        return value * unit.factor in self._measures.get(unit.dimension, ())

    def _hold_currency(self, text: str) -> bool:
        """Whether a currency's code or sign names the unit of a stated amount."""
        unit = UNITS.get(text.lower())
        if unit is None or not is_currency(unit) or unit.factor != 1:
            return False
        units = {other for others in self._numbers.values() for other in others if other is not None}
        return any(can_share_value(unit, other) for other in units)

    @cached_property
    def _numbers(self) -> dict[Decimal, set[Unit | None]]:
        """The units with which each number stands there."""
        units: dict[Decimal, set[Unit | None]] = {}
        for mention in self.quantities:
            if isinstance(mention, NumberMention):
                for reading in mention.readings:
                    units.setdefault(reading.value, set()).add(mention.unit)
        return units

    @cached_property
    def _measures(self) -> dict[str, set[Decimal]]:
        """The stated quantities by their dimension, in its base unit."""
        measures = [(value, unit) for value, units in self._numbers.items() for unit in units if unit is not None]
        for text in self._texts:
            measures += [(one.value, one.unit) for one in find_word_quantities(text) if one.unit is not None]
            measures += [(Decimal(1), unit) for unit in map(_read_one, _ONE_OF.finditer(text)) if unit is not None]
            measures += find_iso_durations(text)
        by_dimension: dict[str, set[Decimal]] = {}
        for value, unit in measures:
            by_dimension.setdefault(unit.dimension, set()).add(value * unit.factor)
        return by_dimension

    @cached_property
    def _amounts(self) -> frozenset[Decimal]:
        """The amounts of money of the currencies that have cents. A number without a currency may count in cents."""
        return frozenset(
            value * unit.factor
            for value, units in self._numbers.items()
            for unit in units
            if unit is not None and is_currency(unit) and unit.dimension not in CURRENCIES_WITHOUT_CENTS
        )

    @cached_property
    def _shares(self) -> frozenset[Decimal]:
        """The shares in words, in percent: 50 of "half"."""
        words = (one for one in self.quantities if isinstance(one, NumberMention) and one.is_word and one.unit is None)
        return frozenset(100 * one.value for one in words if 0 < one.value < 1)

    @cached_property
    def _durations(self) -> tuple[timedelta, ...]:
        seconds = sorted(one for one in self._measures.get("time", ()) if 0 < one <= MAX_SECONDS)[:MAX_DURATIONS]
        return tuple(timedelta(seconds=float(one)) for one in seconds)

    @cached_property
    def _dates(self) -> frozenset[DateValue]:
        dates = {date for one in self.quantities if isinstance(one, DateMention) for date in one.readings}
        return frozenset(dates.union(*map(list_possible_dates, self._texts)) if self._is_loose else dates)

    @cached_property
    def _times(self) -> frozenset[TimeValue]:
        times = {one.value for one in self.quantities if isinstance(one, TimeMention)}
        for text in self._texts:
            times |= {half for one in find_spoken_times(text) for half in list_halves(one.value)}
            times |= {*list_named_hours(text)}
        for mention in self.quantities:
            if isinstance(mention, NumberMention) and mention.unit is None:
                times |= {*self._iter_times(mention)}
        return frozenset(times)

    def _iter_times(self, mention: NumberMention) -> Iterator[TimeValue]:
        """Yields the times of day that a number may be."""
        if (match := _POINT_TIME.fullmatch(mention.text)) is not None:
            yield TimeValue(int(match[1]), int(match[2]))
        if not self._is_loose or mention.value not in range(DAY_HOURS + 1):
            return
        yield TimeValue(int(mention.value))
        if mention.value < HALF_DAY_HOURS:
            yield TimeValue(int(mention.value) + HALF_DAY_HOURS)


def prepare(text: str) -> str:
    """The text as `find_values` reads it: it takes digits right behind a letter for a part of a name.

    Composed: behind a letter and its accent as two characters, a digit would stand alone."""
    return text if text.isascii() else _DIGIT_EDGE.sub(_separate_digit, fold_digits(unicodedata.normalize("NFC", text)))


def iter_digit_groups(text: str) -> Iterator[tuple[int, int]]:
    """Yields where groups of digits stand that are as long as each other; the last one may be shorter."""
    for match in _DIGIT_GROUPS.finditer(text):
        first, *_, last = lengths = [len(group) for group in match[0].split()]
        if set(lengths[:-1]) == {first} and last <= first:
            yield match.span()


def is_quantity(text: str) -> bool:
    """Whether a text is a number, a date or a time, and nothing else."""
    return _read_moment(text.strip()) is not None or StatedValues((text,)).hold(text)


def is_unspaced(char: str) -> bool:
    """Whether a character belongs to a script that writes no spaces between words."""
    return not char.isascii() and detect_script(char) in _UNSPACED_SCRIPTS


def _read_moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.upper()) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None


def _move(moment: datetime, *, zone: tzinfo | None = None, back: timedelta = timedelta()) -> list[datetime]:
    """A moment some time before, as the clocks of a zone show it; [] if no calendar has it: `9999-12-31T23:59:59Z`,
    which means "never", is in the year 10000 in Berlin."""
    try:
        moved = moment - back
        return [(moved if zone is None else moved.astimezone(zone)).replace(tzinfo=None)]
    except (OverflowError, ValueError):
        return []


def _separate_digit(edge: re.Match[str]) -> str:
    before, after = edge[0][0], edge[0][1]
    letter = after if before.isdigit() else before
    return f"{before} {after}" if is_unspaced(letter) else edge[0]


def _cut_to_ends(text: str) -> str:
    return text if len(text) <= 2 * END_CHARS else f"{text[:END_CHARS]}\n{text[-END_CHARS:]}"


def _iter_quantities(text: str) -> Iterator[Quantity]:
    """Yields the quantities of a text; the groups of a long number that names something are none."""
    groups = list(iter_digit_groups(text))
    for mention in find_values(text):
        span = (mention.start, mention.end)
        is_part = any(start <= span[0] and span[1] <= end and span != (start, end) for start, end in groups)
        if isinstance(mention, Quantity) and not is_part:
            yield mention


def _read_one(match: re.Match[str]) -> Unit | None:
    unit = UNITS.get(match["unit"].lower())
    return unit if unit is not None and unit.dimension in ("time", "months") else None

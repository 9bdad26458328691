"""Compares the dates, times, numbers and codes of a text with those of other texts: what stands there, what does not.

`KnownValues(passage, question).find_missing(answer)` returns the values of the answer that neither text contains. It
compares values, not spellings, and does no arithmetic.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Final

from agent.text.codes import CodeMention, find_codes, make_code_key
from agent.text.compound_quantities import find_iso_durations, join_units
from agent.text.dates import DateMention, DateValue, TimeMention, TimeValue, find_dates, find_times
from agent.text.decimal_marks import get_digits, settle_readings
from agent.text.delimited import separate_csv_cells
from agent.text.loose_dates import attach_dates, list_named_hours, list_possible_dates
from agent.text.number_words import ORDINAL_WORDS
from agent.text.numbers import NumberMention, NumberReading, find_numbers
from agent.text.scales import CENT, find_scales
from agent.text.unit_labels import find_unit_of_label
from agent.text.units import OTHER_FACTORS, UNITS_OF_LABELS, Unit, can_share_value
from agent.text.word_quantities import find_shares, find_word_quantities

ValueMention = DateMention | TimeMention | NumberMention | CodeMention

_MARKUP: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"  # code
    r"|\[\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*\](?!\()|\u3010\d{1,3}\u3011"  # citations
    r"|^[ \t>#|*-]*(?:\d{1,3}[.):]|\(\d{1,3}\))(?=\s|\*)",  # the numbers of a list
    re.DOTALL | re.MULTILINE,
)
_SMALL_MILLION: Final = re.compile(r"\dm$")
_WORD_ENDING: Final = re.compile(r"(?<=\w)-[^\W\d_]{3,}$")
_VERSION: Final = re.compile(r"[vV]?(?P<plain>(?P<short>\d+\.\d+)\.\d.*)")
_SHORT_RUN: Final = re.compile(r"(?<=[^\W\d_])\d{1,3}(?!\d)")
_CLOCK: Final = re.compile(r"(\d+):(\d\d):(\d\d)")
_DECIMAL_COMMA: Final = re.compile(r"^\D*\d+,\d{1,2}(?!\d)")
"""In an answer, 5,4 is not a list of 5 and 4."""
_MIN_NATIONAL: Final = 6
"""Digits of a telephone number without the zeros before it. Fewer are the end of any other number."""
_MAX_AMOUNT: Final = Decimal(10) ** 20  # of larger numbers, a decimal has too few digits for a remainder
_MEGA, _MIN_BYTES = Decimal(10**6), 10_000
_YEAR: Final = re.compile(r"1\d{3}|20\d\d|2100")


def find_values(text: str, *, is_claim: bool = False) -> list[ValueMention]:
    """The dates, times, codes and numbers of a text in order, without overlaps.

    With `is_claim`, code listings, citation marks, list numbers and number words that are mostly other words are left
    out: they state no value."""
    if is_claim:
        text = _MARKUP.sub(lambda match: " " * len(match[0]), text)
    all_mentions: list[ValueMention] = []
    rest = text
    for find in (find_dates, find_times, find_codes):
        mentions: Sequence[ValueMention] = find(rest)
        all_mentions += mentions
        rest = _blank(rest, mentions)
    all_mentions += attach_dates(rest, join_units(rest, find_numbers(rest, is_claim=is_claim)))
    return sorted(all_mentions, key=attrgetter("start"))


class KnownValues:
    """The values of some texts, against which claims are compared."""

    def __init__(self, *texts: str, by_language: bool = False) -> None:
        """With `by_language`, a number such as `8,321` has the one value that it has in the language of its sentence.
        Where that stays open in a text and in a claim, their characters must agree."""
        self._by_language = by_language
        self._open_spellings: set[str] = set()
        self._settled: set[Decimal] = set()
        self.numbers: list[NumberMention] = []
        """The numbers in the order of the texts."""
        self._dates: set[DateValue] = set()
        self._possible_dates: set[DateValue] = set()
        self._times: set[TimeValue] = set()
        self._codes: set[str] = set()
        self._labelled_years: set[int] = set()
        self._numbers: list[tuple[Decimal, Unit | None]] = []
        self.scales: set[Decimal] = set()
        """The factors of the scale words of the texts: of "in millions"."""
        self._squeezed: list[str] = []
        for text in texts:
            self._add(text)
        self._numbers.sort(key=lambda pair: pair[0])
        self._values = [value for value, _ in self._numbers]
        self._by_dimension = _group_by_dimension(self._numbers)
        self._years = {date.year for date in self._dates if date.year is not None}

    def contains(self, mention: ValueMention, *, ignore_sign: bool = False, ignore_unit: bool = False) -> bool:
        """Whether the texts contain a value, in whatever spelling, unit of the same kind or higher precision.

        `ignore_sign` lets -12.58 agree with 12.58, as in "fell by 12.58 %", and `ignore_unit` 5 kg with any exact 5."""
        match mention:
            case DateMention(readings=dates):
                return any(self._has_date(one) for one in dates)
            case TimeMention(value=time):
                return time in self._times
            case CodeMention():
                return self._has_code(mention)
            case NumberMention():
                return self._has_number(mention, ignore_sign=ignore_sign, ignore_unit=ignore_unit)

    @property
    def dates(self) -> AbstractSet[DateValue]:
        """The dates of the texts."""
        return self._dates

    @property
    def times(self) -> AbstractSet[TimeValue]:
        """The times of day of the texts."""
        return self._times

    def list_quantities(self, dimension: str) -> Sequence[Decimal]:
        """The values with a unit of a dimension, in its base unit, in order."""
        return self._by_dimension.get(dimension, [])

    @cached_property
    def years(self) -> AbstractSet[int]:
        """The years of dates and behind words for a year, and the bare numbers from the first of these, or from 1900,
        to 2100."""
        certain = self._years | self._labelled_years
        start, end = (
            bisect_left(self._values, Decimal(min((1900, *certain)))),
            bisect_right(self._values, Decimal(2100)),
        )
        bare = {int(value) for value, unit in self._numbers[start:end] if unit is None and value == int(value)}
        return certain | bare

    def has_value(self, value: Decimal) -> bool:
        """Whether a number of the texts has this value, in whatever unit."""
        return self._has_value(value, Decimal(0))

    def has_span(self, time: TimeMention) -> bool:
        """Whether a time with seconds is a known span of time: 3:31:45 for 12705 seconds."""
        span = _read_clock(time)
        return span is not None and self._has_quantity(span.value, Decimal(1), span.unit)

    def find_missing(self, text: str, *, ignore_sign: bool = False) -> list[ValueMention]:
        """The values that a text claims and the known texts do not hold, in order."""
        claims = find_values(text, is_claim=True)
        return [mention for mention in claims if not self.contains(mention, ignore_sign=ignore_sign)]

    def _add(self, text: str) -> None:
        text_of_cells = separate_csv_cells(text)
        mentions = sorted([*find_values(text_of_cells), *find_word_quantities(text_of_cells)], key=attrgetter("start"))
        for mention in settle_readings(text_of_cells, mentions) if self._by_language else mentions:
            match mention:
                case DateMention(readings=dates):
                    self._dates.update(dates)
                case TimeMention(value=time):
                    self._times.add(time)
                    if (span := _read_clock(mention)) is not None:
                        self.numbers.append(span)
                        self._numbers.append((span.value, span.unit))
                case CodeMention():
                    self._add_code(mention)
                case NumberMention():
                    self._add_number(mention, text_of_cells)
        self._numbers += [(share, None) for share in find_shares(text)] if self._by_language else []
        self._numbers += find_iso_durations(text)
        self._possible_dates.update(list_possible_dates(text))
        self._times.update(list_named_hours(text))
        self.scales |= find_scales(text)
        self._squeezed.append("".join(char for char in text.casefold() if char.isalnum()))

    def _add_number(self, mention: NumberMention, text: str) -> None:
        self.numbers.append(mention)
        self._numbers += [(reading.value, mention.unit) for reading in mention.readings]
        if mention.unscaled:
            self.scales.add(mention.value / mention.unscaled)
        if self._by_language:
            self._note_spelling(mention)
        if mention.is_sum:
            self._numbers += [(one.value, one.unit) for one in find_numbers(mention.text)]
        if self._by_language and (unit := find_unit_of_label(text, mention.start)) is not None:
            self._numbers += [(reading.value, unit) for reading in mention.readings]
            if unit == UNITS_OF_LABELS["year"] and mention.unit is None and _YEAR.fullmatch(mention.text):
                self._labelled_years.add(int(mention.value))
        is_amount = self._by_language and (mention.unit is not None or mention.unscaled is not None)
        if "," in mention.text and not is_amount:  # with spaces, thousands are far likelier than a list
            self._numbers += [(part, None) for part in mention.parts]

    def _add_code(self, mention: CodeMention) -> None:
        self._codes.add(mention.key)
        # The numbers of a code can be spoken of without the rest: "version 2", "tickets 7 and 8", week 46 of W46.
        self._numbers += [(one.value, None) for one in find_numbers(mention.text.replace("-", " "))]
        self._numbers += [(Decimal(digits), None) for digits in _SHORT_RUN.findall(mention.text)]
        if (version := _VERSION.match(mention.text)) is not None:  # 2.18 is said of 2.18.0
            self._numbers.append((Decimal(version["short"]), None))

    def _note_spelling(self, mention: NumberMention) -> None:
        if len(mention.readings) > 1:
            self._open_spellings.add(get_digits(mention.text))
        else:
            self._settled.add(abs(mention.value))

    def _has_date(self, claim: DateValue) -> bool:
        # A date without its year leaves it to the rest of the text.
        return any(
            claim.follows_from(date) and (date.year is not None or claim.year is None or self._has_year(claim.year))
            for date in (*self._dates, *self._possible_dates)
        )

    def _has_year(self, year: int) -> bool:
        return year in self._years or self._has_value(Decimal(year), Decimal(0))

    def _has_code(self, mention: CodeMention) -> bool:
        if mention.key in self._codes or any(mention.key in text for text in self._squeezed):
            return True
        if mention.is_number and self._has_phone(
            make_code_key(mention.text.replace("(0)", "")), mention.text[0] == "+"
        ):
            return True
        if (version := _VERSION.match(mention.text)) is not None and make_code_key(version["plain"]) in self._codes:
            return True
        # "A3-larmet", "P300-pumpen": the ending is a word of the claim's own language.
        code = _WORD_ENDING.sub("", mention.text)
        return code != mention.text and make_code_key(code) in self._codes

    def _has_phone(self, key: str, has_country: bool = False) -> bool:
        """Whether a number is known with the prefix of its country, or without it: 070 is +46 70, and +1 415 is 415."""
        if any(key in text for text in self._squeezed):
            return True
        national = key.lstrip("0") if key.startswith("0") else ""
        if len(national) >= _MIN_NATIONAL and any(national in text for text in self._squeezed):
            return True
        local_numbers = (
            code.lstrip("0") for code in self._codes if code.isdigit() and (has_country or code.startswith("0"))
        )
        return any(len(number) >= _MIN_NATIONAL and key.endswith(number) for number in local_numbers)

    def _has_plain_phone(self, mention: NumberMention) -> bool:
        """Whether a number without marks is a telephone's: 0701234567."""
        digits = mention.text
        return digits[:1] == "0" and digits.isdigit() and len(digits) > _MIN_NATIONAL and self._has_phone(digits)

    def _has_number(self, mention: NumberMention, *, ignore_sign: bool, ignore_unit: bool) -> bool:
        if any(self._has_date(one) for one in mention.dates) or self._has_plain_phone(mention):
            return True
        if self._by_language and len(mention.readings) > 1:
            return self._has_open_number(mention)
        for reading in mention.readings:
            if ignore_unit and mention.unit is not None and self._has_other_unit(reading, mention.unit):
                return True
            if self._has_rounded(reading, mention.unit):
                return True
            if ignore_sign and self._has_other_sign(reading, mention.unit, ignore_unit=ignore_unit):
                return True
            whole = reading.value == reading.value.to_integral_value()
            if mention.unit is None and whole and int(reading.value) in self._years:
                return True
            if mention.unit is None and self._has_part(reading.value, is_word=self._is_cardinal_word(mention)):
                return True
        is_list = mention.parts and not (self._by_language and _DECIMAL_COMMA.search(mention.text))
        if is_list and all(self._has_value(part, Decimal(0)) for part in mention.parts):
            return True
        return self._has_scaled(mention)

    def _has_open_number(self, mention: NumberMention) -> bool:
        """Whether the texts spell a number so, or have one of its values, of which nothing says which one it is."""
        is_spelled_so = get_digits(mention.text) in self._open_spellings
        return is_spelled_so or any(abs(reading.value) in self._settled for reading in mention.readings)

    def _is_cardinal_word(self, mention: NumberMention) -> bool:
        return mention.is_word and self._by_language and mention.text.lower() not in ORDINAL_WORDS

    def _has_scaled(self, mention: NumberMention) -> bool:
        """Whether a number is one of a table in thousands or millions: "1.5 million" for 1.5, "2.4 billion" for 2400;
        or a "1.5m" that means one and a half million."""
        value, step = mention.readings[0].centre, mention.readings[0].width
        if _SMALL_MILLION.search(mention.text):
            return self._has_value(value * 10**6, step * 10**6)
        if CENT in self.scales and self._has_value(mention.value / CENT, Decimal(0)):  # 1,299 for 129900 cents
            return True
        if (
            mention.unscaled is None and abs(mention.value) < _MAX_AMOUNT and mention.value % 1000 == 0
        ):  # 18,600,000 for the 18.6 of a table in millions
            return any(self._has_value(mention.value / one, Decimal(0)) for one in self.scales)
        if not mention.unscaled:
            return False
        scale = mention.value / mention.unscaled
        return any(
            self._has_value(value / one, step / one)
            if one != scale
            else self._has_value(mention.value / one, Decimal(0))
            for one in self.scales
        )

    def _has_other_unit(self, reading: NumberReading, unit: Unit) -> bool:
        """Whether a number has this value and another kind of unit: 5 kg and 5 euros, but not 5 kg and 5 g.

        Not one that rounds to it: 18.90 euros are not 19 %."""
        start, end = bisect_left(self._values, reading.value), bisect_right(self._values, reading.value)
        return any(other is None or other.dimension != unit.dimension for _, other in self._numbers[start:end])

    def _has_rounded(self, reading: NumberReading, unit: Unit | None) -> bool:
        if self._by_language and unit is None and reading.below is not None:
            # "More than 2,000 people" are not 2,318 euros, but may be 2,000 of anything.
            return self._has_value(reading.centre, reading.width, bare=True) or self.has_value(reading.value)
        return self._has_quantity(reading.centre, reading.width, unit)

    def _has_other_sign(self, reading: NumberReading, unit: Unit | None, *, ignore_unit: bool) -> bool:
        """Whether a number has this value with the other sign; with `ignore_unit`, in any unit."""
        other = replace(reading, value=-reading.value)
        if self._has_rounded(other, unit):
            return True
        return ignore_unit and unit is not None and self._has_other_unit(other, unit)

    def _has_part(self, value: Decimal, *, is_word: bool) -> bool:
        """Whether a plain number is the day of a date (`on the 5th`, in digits) or a full hour (`at nine o'clock`)."""
        return any(date.day == value for date in self._dates if not is_word) or any(
            time.hour == value and not time.minute for time in self._times
        )

    def _has_quantity(self, value: Decimal, step: Decimal, unit: Unit | None) -> bool:
        if unit is None:
            return self._has_value(value, step) or (self._by_language and self._has_share(value, step))
        if unit.dimension == "%" and self._has_value(value * unit.factor / 100, step * unit.factor / 100, bare=True):
            return True
        known_quantities = self._by_dimension.get(unit.dimension, [])
        base, half = value * unit.factor, step * unit.factor / 2
        if _is_any_between(known_quantities, base - half, base + half):
            return True
        if unit.dimension == "bytes" and self._has_bytes(value, step, (unit.factor, OTHER_FACTORS.get(unit.name))):
            return True
        if unit.name in OTHER_FACTORS:  # "MB" and "hp" are said of two
            base, half = value * OTHER_FACTORS[unit.name], step * OTHER_FACTORS[unit.name] / 2
            if _is_any_between(known_quantities, base - half, base + half):
                return True
        start = bisect_left(self._values, value - step / 2)
        end = bisect_right(self._values, value + step / 2)
        return any(can_share_value(unit, other) for _, other in self._numbers[start:end])

    def _has_bytes(self, value: Decimal, step: Decimal, factors: Iterable[Decimal | None]) -> bool:
        """Whether a long bare number is this many bytes: 6442450944 is 6 GiB."""
        return any(
            value * factor * _MEGA >= _MIN_BYTES
            and self._has_value(value * factor * _MEGA, step * factor * _MEGA, bare=True)
            for factor in factors
            if factor is not None
        )

    def _has_share(self, value: Decimal, step: Decimal) -> bool:
        """Whether a bare fraction is a percentage of the texts: 0.175 is 17.5 %."""
        known_shares = self._by_dimension.get("%", [])
        low, high = 100 * (value - step / 2), 100 * (value + step / 2)
        return value != value.to_integral_value() and _is_any_between(known_shares, low, high)

    def has_between(self, low: Decimal, high: Decimal) -> bool:
        """Whether a number of the texts is from `low` up to but not including `high`."""
        return bisect_left(self._values, low) < bisect_left(self._values, high)

    def _has_value(self, value: Decimal, step: Decimal, *, bare: bool = False) -> bool:
        start = bisect_left(self._values, value - step / 2)
        end = bisect_right(self._values, value + step / 2)
        return start < end and (not bare or any(unit is None for _, unit in self._numbers[start:end]))


def _read_clock(mention: TimeMention) -> NumberMention | None:
    """What a time with seconds is as a span of time: `3:28:18`."""
    match = _CLOCK.match(mention.text)
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.groups())
    reading = NumberReading(Decimal(hours * 3600 + minutes * 60 + seconds), Decimal(1))
    return NumberMention(mention.text, mention.start, mention.end, (reading,), UNITS_OF_LABELS["s"])


def _group_by_dimension(numbers: Iterable[tuple[Decimal, Unit | None]]) -> dict[str, list[Decimal]]:
    groups: dict[str, list[Decimal]] = {}
    for value, unit in numbers:
        if unit is not None:
            groups.setdefault(unit.dimension, []).append(value * unit.factor)
            if unit.name in OTHER_FACTORS:
                groups[unit.dimension].append(value * OTHER_FACTORS[unit.name])
    return {dimension: sorted(values) for dimension, values in groups.items()}


def _is_any_between(ordered: Sequence[Decimal], low: Decimal, high: Decimal) -> bool:
    at = bisect_left(ordered, low)
    return at < len(ordered) and ordered[at] <= high


def _blank(text: str, mentions: Iterable[ValueMention]) -> str:
    """The text with spaces in the place of mentions, so that nothing is read twice and places stay right."""
    parts: list[str] = []
    at = 0
    for mention in mentions:
        parts += [text[at : mention.start], " " * (mention.end - mention.start)]
        at = mention.end
    return "".join([*parts, text[at:]])

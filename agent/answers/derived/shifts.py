"""Reads the hours between the two times of a row, such as a shift of a roster, less the break that the row names."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agent.answers.derived.chance import Quantity
from agent.answers.derived.operands import Operand
from agent.text.numbers import NumberMention
from agent.text.unit_labels import find_unit_of_label

_ROW: Final = re.compile(r"\{[^{}]*\}|[^\n{}]+")
_TIME: Final = re.compile(r"(?<![\d:.-])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])")
_DOTTED: Final = re.compile(r"(?<![\d:.])([01]?\d|2[0-3])\.([0-5]\d)(?![\d:.])")
_BETWEEN: Final = re.compile(r"\s*[-\u2013\u2014]\s*")
"""What is between the times of a span with points, `09.00-17.00`: elsewhere a point makes a price."""
_HOURS: Final = frozenset("h")
_MINUTES_OF_DAY: Final = 24 * 60
_MAX_BREAK: Final = 180
"""Minutes of the longest break."""
_MAX_ROWS, _MAX_NUMBERS = 100, 200
"""Rows that are read, and numbers in them."""


def read_shifts(text: str, numbers: Sequence[NumberMention]) -> list[Operand]:
    """The hours of each row with two times, without a unit: what is paid for an hour is multiplied by them."""
    return [Operand(Quantity(minutes / 60), _HOURS, is_labelled=True) for minutes in _iter_minutes(text, numbers)]


def _iter_minutes(text: str, numbers: Sequence[NumberMention]) -> Iterator[float]:
    numbers = numbers[:_MAX_NUMBERS]
    for count, row in enumerate(_ROW.finditer(text)):
        if count == _MAX_ROWS:
            return
        times = _read_times(row[0])
        span = (times[1] - times[0]) % _MINUTES_OF_DAY if len(times) == 2 else 0
        if not span:
            continue
        pauses = [_read_minutes(text, one) for one in numbers if row.start() <= one.start < row.end()]
        yield span - max((pause for pause in pauses if pause < min(span, _MAX_BREAK)), default=0)


def _read_times(row: str) -> list[int]:
    """The times of a row in minutes, if it has two of them or a span."""
    dotted = list(_DOTTED.finditer(row))
    is_span = len(dotted) == 2 and _BETWEEN.fullmatch(row[dotted[0].end() : dotted[1].start()]) is not None
    matches = dotted if is_span else list(_TIME.finditer(row))
    return [int(match[1]) * 60 + int(match[2]) for match in matches]


def _read_minutes(text: str, number: NumberMention) -> float:
    """The minutes that a number with its label is; 0 for other numbers."""
    unit = number.unit or find_unit_of_label(text, number.start)
    return float(number.value * unit.factor / 60) if unit is not None and unit.dimension == "time" else 0

"""What is known before a call: the words of the request, of what stands beside it, and of the results so far."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

from pydantic import JsonValue

from agent.planning.request import PlanningRequest
from agent.text.dates import DateMention, DateValue, find_dates

DATED_CHARS, MAX_DATED = 20_000, 200
"""Characters of each text in which dates are looked for, and of a value that may be a date."""
MAX_DIGITS = 30
SHORTEST_STEM = 3
"""Letters that two forms of a word share."""
WORD = re.compile(r"[^\W_]+")
_TIME_MARK = re.compile(r"^t(?=\d)", re.IGNORECASE)
_MOMENT = re.compile(r"(?<=\d\d-\d\d)t(?=\d\d:\d\d)")


def split_words(text: str) -> list[str]:
    """The words and numbers of a text in small letters; a moment such as `2026-05-19T10:00` has five."""
    return WORD.findall(_MOMENT.sub(" ", text.casefold()))


class KnownWords:
    """The words, numbers and dates of texts. A lookup takes the same time however many there are."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self._texts = texts
        self.tokens = frozenset(token for text in texts for token in split_words(text))
        self._sorted = sorted(token for token in self.tokens if len(token) >= SHORTEST_STEM)
        self._stems = frozenset(self._sorted)
        self._numbers = frozenset(int(token) for token in self.tokens if token.isdecimal() and len(token) < MAX_DIGITS)

    def hold(self, token: str) -> bool:
        """Whether a word stands there, perhaps with another ending; a number must stand there as it is."""
        if token in self.tokens:
            return True
        if token.isdigit():
            return token.isdecimal() and len(token) < MAX_DIGITS and int(token) in self._numbers
        if len(token) < SHORTEST_STEM:
            return False
        if any(token[:length] in self._stems for length in range(SHORTEST_STEM, len(token))):
            return True
        at = bisect_left(self._sorted, token)  # the words that begin with it follow
        return at < len(self._sorted) and self._sorted[at].startswith(token)

    def hold_date(self, mention: DateMention) -> bool:
        """Whether a date stands there in any form; a month stands there with each of its days. One that names no year
        may be of any."""
        return any(_is_within(one, date) for date in mention.readings for one in self._dates.get(date.month, ()))

    @cached_property
    def _dates(self) -> dict[int | None, frozenset[DateValue]]:
        """By month. Looked for only where words alone are not enough."""
        dates = (date for text in self._texts for date in find_dates(text[:DATED_CHARS]))
        readings = {reading for date in dates for reading in date.readings}
        months = {one.month for one in readings}
        return {month: frozenset(one for one in readings if one.month == month) for month in months}


def _is_within(date: DateValue, mentioned: DateValue) -> bool:
    """Whether a date is the mentioned one, or a day of the mentioned month."""
    if date.month != mentioned.month or mentioned.day not in (None, date.day):
        return False
    return mentioned.year is None or date.year in (None, mentioned.year)


def list_known_texts(request: PlanningRequest) -> list[str]:
    """The texts that a value of a call may come from."""
    return [
        request.question,
        request.original,
        request.ground.partition("\n")[2],  # without the date, which a request need not mean
        *(message.content for message in request.history),
        *(item.text for item in request.memories),
        *(one.text for one in request.earlier_results),
        *(call.text for call in request.rounds if not call.failed),
    ]


def is_known(value: JsonValue, known: KnownWords, described: KnownWords) -> bool:
    """Whether `known` holds all words of a value, or `described` those of a text, and `known` its dates."""
    if not isinstance(value, str):
        return all(map(known.hold, split_words(str(value))))
    if all(map(described.hold, split_words(value))):
        return True
    dates = [date for date in find_dates(value) if known.hold_date(date)] if len(value) <= MAX_DATED else []
    if not dates:
        return False
    starts, ends = [date.start for date in dates], [0, *(date.end for date in dates)]
    between = (_TIME_MARK.sub("", value[end:start]) for end, start in zip(ends, [*starts, len(value)], strict=True))
    return all(map(described.hold, split_words(" ".join(between))))

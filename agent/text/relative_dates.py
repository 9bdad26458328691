"""Days that words name from the present: "tomorrow", "next Friday", "in two weeks".

In English, German, Swedish and French at once. They become dates, so that `agent.text.own_words` compares them with
values as any others. Durations do not become numbers: the 30 of "half an hour" would be anybody's 30.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final

from agent.text.dates import WEEKDAYS
from agent.text.numbers import NumberMention
from agent.text.values import find_values

DAYS_AHEAD: Final[Mapping[int, str]] = {
    0: r"today|tonight|heute|i\s?dag|aujourd['\u2019]hui",
    1: r"tomorrow|(?<!guten )(?-i:morgen)|i\s?morgon|demain",
    2: r"übermorgen|i\s?övermorgon|après-demain",
}
"""The words for a day by how far it is ahead, as parts of a pattern that ignores case."""
MAX_DAYS: Final = 3_660
DAY_SECONDS: Final = 86_400
WITHIN_CHARS: Final = 12
CACHED_TEXTS: Final = 8
"""Each argument of each call is compared with the same request."""
_DAY_WORDS: Final = {
    ahead: re.compile(rf"(?<![\w-])(?:{words})(?!\w)", re.IGNORECASE) for ahead, words in DAYS_AHEAD.items()
}
_WEEKDAY: Final = re.compile(
    r"(?<![\w-])(?P<past>(?:last|past|letzte[nrs]?|vorige[nrs]?|vergangene[nrs]?|förra|i)\s+)?"
    rf"(?P<next>(?:next|nächste[nr]?|kommende[nr]?|nästa)\s+)?(?P<day>{'|'.join(WEEKDAYS)})(?!\w)"
    r"(?P<after>\s+prochaine?)?(?P<gone>\s+(?:derni(?:er|ère)|passé))?",
    re.IGNORECASE,
)
_AHEAD: Final = re.compile(r"(?<!\w)(?:in|om|dans)\s{1,3}(?=\w)", re.IGNORECASE)
AHEAD_CHARS, MAX_AHEAD = 40, 200
"""Characters behind such a word in which a duration is looked for, and words of a text."""
_WITHIN: Final = re.compile(r"(?<!\w)(?:in|om|dans)\s+\Z", re.IGNORECASE)


@lru_cache(maxsize=CACHED_TEXTS)
def list_resolved(text: str, today: date) -> tuple[str, ...]:
    """The days that a text names by such words, as ISO dates: `2026-11-30`.

    A day of the week is the next one; behind "next" it may be the one after that too, and behind "last" it is none.
    """
    pieces = (text[word.start() : word.end() + AHEAD_CHARS] for word in islice(_AHEAD.finditer(text), MAX_AHEAD))
    within = (day for piece in pieces for day in _iter_days_within(piece, _iter_durations(piece)))
    days = {*_iter_named_days(text, today), *within}
    return tuple((today + timedelta(days=day)).isoformat() for day in sorted(days) if 0 <= day <= MAX_DAYS)


def _iter_named_days(text: str, today: date) -> Iterator[int]:
    for ahead, words in _DAY_WORDS.items():
        if words.search(text):
            yield ahead
    for match in _WEEKDAY.finditer(text):
        if match["past"] or match["gone"]:
            continue
        ahead = (WEEKDAYS[match["day"].casefold()] - today.weekday()) % 7
        yield ahead or 7
        if match["next"] or match["after"]:
            yield ahead + 7


def _iter_days_within(text: str, durations: Iterable[NumberMention]) -> Iterator[int]:
    """Yields how far the days are ahead that a word such as "in" before a number of days or weeks names."""
    for mention in durations:
        if _WITHIN.search(text[max(mention.start - WITHIN_CHARS, 0) : mention.start]):
            yield from _iter_whole((mention,), ("day", "week"), DAY_SECONDS)


def _iter_durations(text: str) -> Iterator[NumberMention]:
    for mention in find_values(text):
        if isinstance(mention, NumberMention) and mention.unit is not None and mention.unit.dimension == "time":
            yield mention


def _iter_whole(durations: Iterable[NumberMention], units: Container[str], per_seconds: int) -> Iterator[int]:
    """Yields the durations in such units as numbers of so many seconds, those that are whole."""
    for mention in durations:
        if mention.unit is not None and mention.unit.name in units:
            amounts = (reading.value * mention.unit.factor / per_seconds for reading in mention.readings)
            yield from (int(one) for one in amounts if one == one.to_integral_value())

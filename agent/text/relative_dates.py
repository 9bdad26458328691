"""Days and durations that words name from the present: "tomorrow", "next Friday", "in two weeks", "half an hour".

In English, German, Swedish and French at once. They become dates and numbers, so that `agent.text.own_words` compares
them with values as any others.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from agent.text.dates import WEEKDAYS
from agent.text.numbers import NumberMention
from agent.text.values import find_values

DAYS_AHEAD: Final[Mapping[int, str]] = {
    0: r"today|tonight|heute|i\s?dag|aujourd['\u2019]hui",
    1: r"tomorrow|(?-i:morgen)|i\s?morgon|demain",
    2: r"übermorgen|i\s?övermorgon|après-demain",
}
"""The words for a day by how far it is ahead, as parts of a pattern that ignores case."""
MAX_DAYS: Final = 3_660
DAY_SECONDS: Final = 86_400
WITHIN_CHARS: Final = 12
CACHED_TEXTS: Final = 8
"""Each argument of each call is compared with the same request."""
_HOUR: Final = r"(?:hour|stunde|timme|heure)"
_MINUTES: Final[Mapping[int, str]] = {
    90: rf"(?:an|one)\s+{_HOUR}\s+and\s+a\s+half|one\s+and\s+a\s+half\s+{_HOUR}s|anderthalb\s+stunden|"
    rf"eineinhalb\s+stunden|en\s+och\s+en\s+halv\s+{_HOUR}|une\s+{_HOUR}\s+et\s+demie",
    45: rf"three\s+quarters\s+of\s+an\s+{_HOUR}|dreiviertelstunde|trekvart|trois\s+quarts\s+d['\u2019]{_HOUR}",
    30: rf"half\s+an?\s+{_HOUR}|(?:eine[r]?\s+)?halbe[n]?\s+{_HOUR}|halbstunde|halvtimme|demi-{_HOUR}",
    15: rf"(?:a|one)\s+quarter\s+of\s+an\s+{_HOUR}|viertelstunde|kvart(?:s\s+timme)?|quart\s+d['\u2019]{_HOUR}",
    60: rf"(?:an|one|eine[r]?|en|une)\s+{_HOUR}",
}
"""The words for the parts of an hour that no number says, by their minutes; first those that others are a part of."""
_DAY_WORDS: Final = {
    ahead: re.compile(rf"(?<![\w-])(?:{words})(?!\w)", re.IGNORECASE) for ahead, words in DAYS_AHEAD.items()
}
_MINUTE_WORDS: Final = {
    minutes: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE) for minutes, words in _MINUTES.items()
}
_WEEKDAY: Final = re.compile(
    rf"(?<![\w-])(?P<next>(?:next|nächste[nr]?|kommende[nr]?|nästa)\s+)?(?P<day>{'|'.join(WEEKDAYS)})(?!\w)"
    r"(?P<after>\s+prochaine?)?",
    re.IGNORECASE,
)
_WITHIN: Final = re.compile(r"(?<!\w)(?:in|om|dans)\s+\Z", re.IGNORECASE)


@lru_cache(maxsize=CACHED_TEXTS)
def list_resolved(text: str, today: date) -> tuple[str, ...]:
    """What a text names by such words, each as a text that names it by itself: `2026-11-30`, `30 minutes`.

    A day of the week is the next one; behind "next" it may be the one after that too. A duration has its minutes and
    its seconds.
    """
    durations = list(_iter_durations(text))
    days = {*_iter_named_days(text, today), *_iter_days_within(text, durations)}
    seconds = {*_iter_hour_parts(text), *_iter_whole(durations, ("min", "h"), 1)}
    dates = [(today + timedelta(days=day)).isoformat() for day in sorted(days) if 0 <= day <= MAX_DAYS]
    return (*dates, *(one for length in sorted(seconds) if length > 0 for one in _format_duration(length)))


def _iter_named_days(text: str, today: date) -> Iterator[int]:
    for ahead, words in _DAY_WORDS.items():
        if words.search(text):
            yield ahead
    for match in _WEEKDAY.finditer(text):
        ahead = (WEEKDAYS[match["day"].casefold()] - today.weekday()) % 7
        yield ahead or 7
        if match["next"] or match["after"]:
            yield ahead + 7


def _iter_days_within(text: str, durations: Iterable[NumberMention]) -> Iterator[int]:
    """Yields how far the days are ahead that a word such as "in" before a number of days or weeks names."""
    for mention in durations:
        if _WITHIN.search(text[max(mention.start - WITHIN_CHARS, 0) : mention.start]):
            yield from _iter_whole((mention,), ("day", "week"), DAY_SECONDS)


def _iter_hour_parts(text: str) -> Iterator[int]:
    for minutes, words in _MINUTE_WORDS.items():
        if words.search(text):
            yield minutes * 60
            text = words.sub(" ", text)  # "half an hour" is not "an hour" too


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


def _format_duration(seconds: int) -> list[str]:
    minutes = [f"{seconds // 60} minutes"] if seconds % 60 == 0 else []
    return [*minutes, f"{seconds} seconds"]

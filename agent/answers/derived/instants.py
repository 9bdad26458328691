"""Points in time of the evidence (ISO 8601, mail headers, Unix time) on the clocks that an answer may use."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, cached_property
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from agent.text.dates import DateMention, DateValue, TimeMention, TimeValue

_ISO: Final = re.compile(
    r"(?<!\d)(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:[.,]\d{1,9})? ?"
    r"(?P<offset>Z|UTC|[+-]\d\d:?\d\d)(?![\d:])"
)
_MAIL: Final = re.compile(
    r"(?P<day>\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4}) (?P<time>\d\d:\d\d)(?::\d\d)? "
    r"(?P<offset>[+-]\d{4}|GMT|UTC)"
)
_UNIX: Final = re.compile(r"(?<![\w.,-])(?P<seconds>1\d{9}|2[01]\d{8})(?P<millis>\d{3})?(?![\w,-]|\.\d{4})")
_ZONES: Final = {
    "utc": 0, "gmt": 0, "wet": 0, "bst": 60, "cet": 60, "mez": 60, "cest": 120, "mesz": 120, "eet": 120, "eest": 180,
    "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
    "ist": 330, "jst": 540, "aest": 600,
}  # fmt: skip
"""Minutes from UTC of the abbreviations of time zones."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}(?:[ _][A-Z][a-z]+)?")
_OFFSET: Final = re.compile(r"(?:UTC|GMT) ?(?P<sign>[-+\u2212])(?P<hours>\d{1,2})(?::(?P<minutes>\d\d))?\b")
_MAX_INSTANTS: Final = 200
_MAX_ZONES: Final = 12
_MAX_ZONE_CHARS: Final = 4000


class Instants:
    """The points in time of some evidence, on the clocks of UTC, of their own zone, and of those that texts name."""

    def __init__(self, evidence: str, answer: str) -> None:
        self._evidence = evidence
        self._answer = answer

    def explain(self, mention: DateMention | TimeMention) -> bool:
        """Whether a date or time is that of a known point in time on one of the clocks."""
        if isinstance(mention, TimeMention):
            return any(TimeValue(one.hour, one.minute) == mention.value for one in self._local)
        days = {DateValue(one.year, one.month, one.day) for one in self._local}
        return any(reading.follows_from(day) for reading in mention.readings for day in days)

    @cached_property
    def _local(self) -> list[datetime]:
        instants = list(_iter_instants(self._evidence))
        zones = [*_iter_zones(self._answer), *_iter_zones(self._evidence[:_MAX_ZONE_CHARS])][:_MAX_ZONES]
        return [one.astimezone(zone) for one in instants for zone in (UTC, *zones)] if instants else []


def _iter_instants(text: str) -> Iterator[datetime]:
    """Yields the first points in time of a text."""
    count = 0
    for pattern, form in ((_ISO, "%Y-%m-%d"), (_MAIL, "%d %b %Y")):
        for match in pattern.finditer(text):
            offset = match["offset"] if match["offset"][0] in "+-" else "+0000"
            try:
                yield datetime.strptime(f"{match['day']} {match['time'][:5]} {offset}", f"{form} %H:%M %z")
            except ValueError:
                continue
            count += 1
            if count == _MAX_INSTANTS:
                return
    for match, _ in zip(_UNIX.finditer(text), range(_MAX_INSTANTS), strict=False):
        yield datetime.fromtimestamp(int(match["seconds"]), UTC)


def _iter_zones(text: str) -> Iterator[tzinfo]:
    """Yields the time zones that a text names: by abbreviation, offset or city."""
    for match in _OFFSET.finditer(text):
        minutes = 60 * int(match["hours"]) + int(match["minutes"] or 0)
        if minutes < 24 * 60:
            yield timezone(timedelta(minutes=minutes if match["sign"] == "+" else -minutes))
    for word in dict.fromkeys(match[0].lower().replace(" ", "_") for match in _WORD.finditer(text)):
        if word in _ZONES:
            yield timezone(timedelta(minutes=_ZONES[word]))
        elif (name := _list_cities().get(word)) is not None:
            yield ZoneInfo(name)


@cache
def _list_cities() -> dict[str, str]:
    """The zones of the cities that name one."""
    return {name.rpartition("/")[2].lower(): name for name in sorted(available_timezones()) if "/" in name}

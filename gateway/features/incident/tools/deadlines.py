"""`extract_deadlines`: lists deadlines in the words of the text, each with the moment it means."""

import asyncio
import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from itertools import islice

from pydantic import Field

from agent.core.models import DeferredModel, FrozenModel
from agent.text.stop_words import detect_candidate_languages
from agent.tools import PlanHints, ToolContext, TypedTool
from gateway.features.incident.tools.deadline_words import LANGUAGES, find_due_phrases
from gateway.features.incident.tools.due_moments import (
    Period,
    add_business_days,
    get_end_of_day,
    get_end_of_period,
    place_year,
)
from gateway.features.incident.tools.text import Sentence, split_into_sentences

MAX_DEADLINES = 100
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_UNITS = {"minute": 1 / 60, "min": 1 / 60, "hour": 1, "hr": 1, "h": 1, "day": 24, "week": 168, "month": 730}
"""Hours of each unit; a month is a twelfth of a year."""
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_LEAD = (
    r"(?:no later than|not later than|due (?:by|on|at|in|before)|deadline(?: is| of|:)?|due|by|before|until|till|"
    r"(?:on or )?before|at the latest by|on)"
)
_MONTH_NAME = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_ZONE_HOURS = {"z": 0, "utc": 0, "gmt": 0, "cet": 1, "cest": 2, "est": -5, "edt": -4, "pst": -8, "pdt": -7}
"""Names of time zones that mean one offset, in hours from UTC."""
_ZONE = rf"(?:\s*(?P<zone>{'|'.join(_ZONE_HOURS)})\b)?"
_CLOCK = (
    r"(?:\s*(?:at|,|T)?\s*(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?|(?=\s*[ap]\.?m))"
    rf"\s*(?P<half>[ap]\.?m\.?)?{_ZONE})?"
)
_DAY_NAME = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\.?"
_DATE = re.compile(
    rf"\b(?:{_LEAD}\s+)?(?:{_DAY_NAME},?\s+(?:the\s+)?)?(?:(?P<y>\d{{4}})-(?P<m>\d{{2}})-(?P<d>\d{{2}})"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH_NAME})(?:,?\s+(?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH_NAME})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y2>\d{{4}}))?(?!\d))"
    rf"(?:,?\s+(?:at\s+)?(?P<then>noon|midnight)\b|{_CLOCK})",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(
    rf"\b{_LEAD}\s+(?:the end of\s+)?(?P<next>next\s+|this\s+|coming\s+)?(?P<day>{'|'.join(_DAYS)})"
    rf"(?:\s+(?:morning|noon|afternoon|evening|night))?\b{_CLOCK}",
    re.IGNORECASE,
)
_NEAR_DAY = re.compile(
    rf"\b{_LEAD}\s+(?P<when>today|tonight|tomorrow|noon|midnight|"
    r"(?:the )?end of (?:the |this |next )?(?:day|business day|week|month|quarter|year)|"
    r"eod|cob|eow|eom|next (?:week|month))\b|\b(?P<alone>eod|cob|eow|end of (?:business )?day)\b",
    re.IGNORECASE,
)
_DAY_TIME = re.compile(
    rf"\b(?:(?:{_LEAD}\s+)?(?P<end>eod|cob|(?:the )?end of (?:the )?(?:business )?day)|{_LEAD}\s+(?P<at>noon|midnight))"
    rf"\s+(?:of\s+|on\s+)?(?P<on>today|tomorrow|{'|'.join(_DAYS)})\b"
    rf"|\b{_LEAD}\s+(?P<day>today|tomorrow|{'|'.join(_DAYS)})\s+(?:(?:at\s+)?(?P<then>noon|midnight|eod|cob)\b"
    rf"|(?=at\b|\d){_CLOCK})",
    re.IGNORECASE,
)
_TIME_ONLY = re.compile(r"noon|midnight|eod|cob|(?:the )?end of (?:the |this )?(?:business )?day", re.IGNORECASE)
"""Words for a time without a day: the day stands elsewhere in the sentence, or it is today."""
_WITHIN = re.compile(
    r"\b(?:within|in (?:the next|under|less than)|no more than|at most|in|every)\s+(?:the\s+next\s+)?(?P<count>\d{1,5}|"
    rf"{'|'.join(_COUNTS)})\s*-?\s*(?P<business>business\s+|working\s+)?(?P<unit>minutes?|mins?|hours?|hrs?|h|days?|weeks?|"
    r"months?)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    rf"\b{_LEAD}\s+(?P<hour>\d{{1,2}})(?=:\d{{2}}|\s*[ap]\.?m)(?::(?P<minute>\d{{2}}))?\s*(?P<half>[ap]\.?m\.?)?"
    rf"{_ZONE}(?:\s+(?:(?P<near>today|tonight|tomorrow)|(?:on\s+)?(?P<day>{'|'.join(_DAYS)})))?(?![\w/-])",
    re.IGNORECASE,
)
_OTHER_CLAUSE = re.compile(
    r"[^\W\d_]+(?:\W+[^\W\d_]+){4}|[;:(]|(?:^|\W)(?:and|or|then|but)\W+(?!by\b)[^\W\d_]+\W+[^\W\d_]"
)
"""What stands between a day and a time that belongs to something else: several words, or another clause."""
_MONTH = re.compile(
    r"\b(?:no later than|due (?:by|in)|(?P<before>(?:due )?before)|by|until|till)\s+(?:(?:the )?end of\s+)?"
    rf"(?P<month>(?-i:{'|'.join(_MONTH_NAMES)}))(?:,?\s+(?P<year>\d{{4}}))?\b(?!\s*\d|\s+(?-i:[A-Z]))",
    re.IGNORECASE,
)
"""A month as a whole; before a capital it is a person's name ("by May Smith")."""
_ORIGIN = re.compile(r"\b(?:from|of|dated|after)\s+(?:the\s+)?$", re.IGNORECASE)
"""Words before a date that says which thing is meant, or when one begins: "the report from 3 March"."""
_PAST = re.compile(
    r"\b(?:started|began|since|happened|opened|reported|occurred|was|were|ago)\b[^.;]{0,30}$", re.IGNORECASE
)


_ResolveDate = Callable[[re.Match[str], datetime], datetime | None]


class ExtractDeadlinesInput(DeferredModel):
    """Arguments of `extract_deadlines`."""

    text: str = Field(max_length=1_000_000, description="the text; its first 100,000 characters count")
    now: datetime | None = Field(
        default=None, description="when the text was written, ISO 8601; relative times count from then (default: now)"
    )


class Deadline(FrozenModel):
    """A deadline. `due` is in UTC unless `now` has another offset."""

    text: str = Field(description="the words of the text")
    kind: str = Field(description="date, weekday, day, duration or time")
    due: datetime | None = Field(description="the moment; the end of the day where only a day is named")
    sentence: str


class ExtractDeadlinesOutput(DeferredModel):
    """The deadlines in the order of the text."""

    deadlines: list[Deadline]


class ExtractDeadlinesTool(TypedTool[ExtractDeadlinesInput, ExtractDeadlinesOutput]):
    name = "extract_deadlines"
    description = (
        "List the deadlines in a text (dates, `by Friday`, `within 4 hours`, `bis Freitag`) with the moment each one "
        "means; in English, German, Swedish and French."
    )
    is_opt_in = True
    keywords = ("deadline", "deadlines", "due", "date", "dates", "when", "schedule", "extract", "incident")
    hints = PlanHints(heading="Deadlines")

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._clock = clock

    async def run(self, args: ExtractDeadlinesInput, context: ToolContext) -> ExtractDeadlinesOutput:
        now = args.now or self._clock()
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
        return ExtractDeadlinesOutput(deadlines=await asyncio.to_thread(extract_deadlines, args.text, now))

    def format_text(self, output: ExtractDeadlinesOutput) -> str:
        if not output.deadlines:
            return "The text names no deadline."
        return "\n".join(
            f"- {one.text}" + (f" ({one.due:%Y-%m-%d %H:%M %Z})" if one.due else "") + f": {one.sentence}"
            for one in output.deadlines
        )


def extract_deadlines(text: str, now: datetime) -> list[Deadline]:
    """The deadlines of a text that was written at `now`, which has an offset."""
    sentences = split_into_sentences(text)
    deadlines = (deadline for sentence in sentences for deadline in _extract_in_languages(sentence, now))
    return list(islice(deadlines, MAX_DEADLINES))


def _extract_in_languages(sentence: Sentence, now: datetime) -> Iterator[Deadline]:
    """Yields the deadlines of a sentence in the languages that it may be written in, in order.

    A sentence of too few words for a language is read in all of them.
    """
    likely = detect_candidate_languages(sentence.text)
    phrases = [
        phrase
        for language in sorted(LANGUAGES.intersection(likely) if likely else LANGUAGES)
        for phrase in find_due_phrases(sentence.text, language, now)
    ]
    only_others = bool(likely) and LANGUAGES.issuperset(likely)
    english = [] if only_others else list(_extract_from_sentence(sentence, now))
    until = 0
    for phrase in sorted(phrases, key=lambda one: (one.start, -one.end)):
        words = sentence.text[phrase.start : phrase.end].strip(" ,.:")
        if phrase.start < until or any(words in one.text for one in english):
            continue
        until = phrase.end
        english = [one for one in english if one.text not in words]
        yield Deadline(text=words, kind=phrase.kind, due=phrase.due, sentence=sentence.text)
    yield from english


def _extract_from_sentence(sentence: Sentence, now: datetime) -> Iterator[Deadline]:
    """Yields the deadlines of a sentence in order."""
    readings = _find_phrases(sentence.text)
    day: date | None = None
    at = said_until = 0
    while at < len(readings):
        one = readings[at]
        start, end, due = one.start, one.end, _resolve_due(one.resolve, one.match, now)
        if one.is_time:  # its day stands right after it ("by noon on Friday"), else before
            after = readings[at + 1] if at + 1 < len(readings) else None
            if after is not None and after.names_day and not sentence.text[end : after.start].strip(" ,"):
                there = _resolve_due(after.resolve, after.match, now)
                day, end, at = there.date() if there else None, after.end, at + 1
            elif _OTHER_CLAUSE.search(sentence.text[said_until:start]):
                day = None
            if day is not None:
                due = _resolve_due(one.resolve, one.match, datetime.combine(day, now.time(), now.tzinfo))
        elif one.names_day:
            day = due.date() if due else None
        yield Deadline(text=sentence.text[start:end].strip(" ,."), kind=one.kind, due=due, sentence=sentence.text)
        said_until = end
        at += 1


@dataclass(frozen=True, slots=True)
class _DatePhrase:
    """Words that name a time or a day."""

    kind: str
    match: re.Match[str]
    resolve: _ResolveDate

    @property
    def start(self) -> int:
        return self.match.start()

    @property
    def end(self) -> int:
        return self.start + len(self.match[0].strip())

    @property
    def is_time(self) -> bool:
        """Whether it names a time without a day."""
        if self.kind != "day" or self.resolve is not _resolve_near_day:
            return self.kind == "time" and not (self.match["near"] or self.match["day"])
        return _TIME_ONLY.fullmatch(self.match["when"] or self.match["alone"]) is not None

    @property
    def names_day(self) -> bool:
        """Whether a time next to it belongs to its day."""
        return self.kind in ("date", "weekday", "day", "time") and not self.is_time


def _find_phrases(text: str) -> list[_DatePhrase]:
    """The phrases of a text in order; of overlapping ones the longest."""
    phrases = [_DatePhrase(kind, match, meaning) for kind, form, meaning in _FORMS for match in form.finditer(text)]
    chosen: list[_DatePhrase] = []
    before = 0
    for one in sorted(phrases, key=lambda one: (one.start, -one.end)):
        if one.start < before:
            continue
        # A word for the past, or for an origin, belongs to the date after it, not to those that follow.
        preceding = text[max(before, one.start - 60) : one.start]
        if not _PAST.search(preceding) and not _ORIGIN.search(preceding):
            chosen.append(one)
        before = one.end
    return chosen


def _resolve_due(meaning: _ResolveDate, match: re.Match[str], now: datetime) -> datetime | None:
    """The moment that the words mean; None if there is no such day or the calendar cannot hold it."""
    try:
        return meaning(match, now)
    except (ValueError, OverflowError):
        return None


def _resolve_date(match: re.Match[str], now: datetime) -> datetime | None:
    day, month = match["d"] or match["d1"] or match["d2"], match["m"] or match["m1"] or match["m2"]
    year = match["y"] or match["y1"] or match["y2"]
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    resolved_date = date(int(year) if year else now.year, number, int(day))
    if year is None:  # "by 3 January", written in December
        resolved_date = place_year(resolved_date, now)
    if (match["then"] or "").lower() == "noon":
        return datetime.combine(resolved_date, time(12), now.tzinfo)
    return _combine_time(resolved_date, match, now)


def _resolve_month(match: re.Match[str], now: datetime) -> datetime | None:
    number = _MONTH_NAMES.index(match["month"]) + 1
    year = int(match["year"]) if match["year"] else now.year + (number < now.month)
    last = date(year, number, calendar.monthrange(year, number)[1])
    return get_end_of_day(last.replace(day=1) - timedelta(days=1) if match["before"] else last, now)


def _resolve_weekday(match: re.Match[str], now: datetime) -> datetime | None:
    ahead = (_DAYS.index(match["day"].lower()) - now.weekday()) % 7
    if (match["next"] or "").strip().lower() == "next" and ahead < 7:
        ahead += 7 if ahead + now.weekday() < 7 else 0  # "next Friday" is not the one of this week
    return _combine_time(now.date() + timedelta(days=ahead), match, now)


def _resolve_near_day(match: re.Match[str], now: datetime) -> datetime | None:
    words = (match["when"] or match["alone"]).lower()
    today = now.date()
    if words == "tomorrow":
        return get_end_of_day(today + timedelta(days=1), now)
    if (period := _find_period(words)) is not None:
        return get_end_of_period(period, now, is_next="next" in words)
    if words == "noon":
        return datetime.combine(today, time(12), now.tzinfo)
    return get_end_of_day(today, now)


def _find_period(words: str) -> Period | None:
    """The week, month, quarter or year whose end the words mean; None for a day."""
    short: dict[str, Period] = {"eow": "week", "eom": "month"}
    named: tuple[Period, ...] = ("week", "month", "quarter", "year")
    return short.get(words) or next((period for period in named if period in words), None)


def _resolve_day_time(match: re.Match[str], now: datetime) -> datetime | None:
    day = (match["on"] or match["day"]).lower()
    ahead = {"today": 0, "tomorrow": 1}.get(day)
    if ahead is None:
        ahead = (_DAYS.index(day) - now.weekday()) % 7
    resolved_date = now.date() + timedelta(days=ahead)
    if (match["at"] or match["then"] or "").lower() == "noon":
        return datetime.combine(resolved_date, time(12), now.tzinfo)
    return _combine_time(resolved_date, match, now)


def _resolve_duration(match: re.Match[str], now: datetime) -> datetime | None:
    count = match["count"].lower()
    number = int(count) if count.isdigit() else _COUNTS[count]
    unit = match["unit"].lower().rstrip("s")
    if match["business"]:
        return add_business_days(now, number) if unit == "day" and number <= 2_000 else None
    return now + timedelta(hours=number * _UNITS[unit]) if number * _UNITS[unit] <= 876_000 else None  # a century


def _resolve_time(match: re.Match[str], now: datetime) -> datetime | None:
    day = now.date()
    if match["day"]:
        day += timedelta(days=(_DAYS.index(match["day"].lower()) - now.weekday()) % 7)
    elif (match["near"] or "").lower() == "tomorrow":
        day += timedelta(days=1)
    return _combine_time(day, match, now)


_FORMS: tuple[tuple[str, re.Pattern[str], _ResolveDate], ...] = (
    ("date", _DATE, _resolve_date),
    ("date", _MONTH, _resolve_month),
    ("weekday", _WEEKDAY, _resolve_weekday),
    ("day", _NEAR_DAY, _resolve_near_day),
    ("day", _DAY_TIME, _resolve_day_time),
    ("duration", _WITHIN, _resolve_duration),
    ("time", _TIME, _resolve_time),
)


def _combine_time(day: date, match: re.Match[str], now: datetime) -> datetime | None:
    """The day at the named hour of the named zone, or its end. It has the offset of `now`."""
    if match["hour"] is None:
        return get_end_of_day(day, now)
    half = (match["half"] or "").lower()
    hour = int(match["hour"]) % 12 + (12 if half.startswith("p") else 0) if half else int(match["hour"])
    minute = int(match["minute"] or 0)
    if hour >= 24 or minute >= 60:
        return get_end_of_day(day, now)
    zone = timezone(timedelta(hours=_ZONE_HOURS[match["zone"].lower()])) if match["zone"] else now.tzinfo
    return datetime.combine(day, time(hour, minute), zone).astimezone(now.tzinfo)

"""Finds the phrases of a sentence that name a deadline: a day, a time or a duration behind a word such as `by`.

`agent.text` reads dates, times, numbers and units, and the CLDR names the days of the week. The words of this module
make an end of them, in English, German, Swedish and French at once; nothing else is read (docs/adr/0019-deadlines.md).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone, tzinfo
from functools import cache

from agent.text.dates import MONTHS, DateValue, find_dates, find_times
from agent.text.number_words import NUMBER_WORDS
from agent.text.relative_dates import DAYS_AHEAD
from agent.text.spoken_times import find_spoken_times
from agent.text.units import UNITS
from gateway.features.incident.engine.due_moments import (
    Period,
    add_business_days,
    find_day_of_month,
    get_end_of_day,
    get_end_of_month,
    get_end_of_period,
    place_year,
)
from gateway.features.incident.engine.instructions import is_instruction

_LOCALES = ("en", "de", "sv", "fr")
_HOURS_OF_DAY = 24
_MAX_HOURS = 876_000
"""A century; a longer duration has no moment."""
_UNTIL = (
    r"(?:no|not)\s+later\s+than|at\s+the\s+latest|by|until|till|before|due|deadline|bis|spätestens|vor|fällig|\w*frist|senast|före|"
    r"innan|förfaller|avant|d['\u2019]ici|jusqu['\u2019](?:au?|à)|au\s+plus\s+tard|échéance|date\s+limite|délai"
)
_WITHIN = r"within|in|innerhalb|binnen|inom|om|dans|sous|d['\u2019]ici"
_BEFORE = r"before|vor|före|innan|avant"
_DUE = (
    rf"(?<![\w-])(?:{_UNTIL}|must|ha(?:s|ve)\s+to|please|bitte|muss|müssen|soll|sollen|måste|ska|sista\s+dag|doit|"
    r"doivent|rendre)(?!\w)"
)
_ON = "on"
"""An end where its own clause says that something is due: "must be sent on Friday", not "lunch on Friday"."""
_AFTER_EVENT = (
    r"\s+(?:after|following|from|(?P<of>of)|nach|ab|efter|från|après|à\s+compter\s+d[eu])\s+"
    r"(?!(?:now|today|heute|jetzt|nu|maintenant)(?!\w))(?:(?:the|der|dem|die|das|la|le|l['\u2019]|de[nt]?)\s*)?[^\W\d]+"
)
"""An event that a duration counts from, whose moment the text does not say."""
_PAST = (
    r"was|were|had|ago|since|began|started|happened|opened|reported|occurred|war|waren|wurden?|hatten?|seit|begann|var|"
    r"hade|sedan|började|était|avait|depuis|commencé"
)
_FILLING = (
    r"(?:(?:by|on|at|in|the|is|of|this|coming|zu[mr]|am|im|um|de[mnrs]|nächste\w|kommende\w|ist|endet|von|på|nästa|är|"
    r"klockan|kl\.?|les?|la|au|à|du|de|ce|cette|est)(?!\w)[\s,]*|l['\u2019])*"
)
"""Small words between a word for an end and its day, or between a day and its time."""
_PERIODS: Mapping[Period, str] = {
    "day": r"(?:business\s+)?day|tage?s?|dag(?:en)?s?|journée",
    "week": r"week|woche|vecka(?:n)?s?|semaine",
    "month": r"month|monat(?:e?s)?|månad(?:en)?s?|mois",
    "quarter": r"quarter|quartals?|kvartal(?:et)?s?|trimestre",
    "year": r"year|jahre?s?|år(?:et)?s?|année",
}
_END_OF = (
    r"(?:(?:end|fin)\s+(?:of|du|de(?:\s+la|\s+l['\u2019])?)|ende|slutet\s+(?:av|på))\s+(?:(?:the|this|de[rs])\s+)?"
)
_NEXT = r"next|nächste[rnsm]?|nästa"
_BUSINESS = r"business|working|werk|arbeits|geschäfts|bank|arbets|var|ouvr\w+"
_ZONE_HOURS = {"z": 0, "utc": 0, "gmt": 0, "cet": 1, "cest": 2, "est": -5, "edt": -4, "pst": -8, "pdt": -7}
"""Names of time zones that mean one offset, in hours from UTC."""


@dataclass(frozen=True, slots=True)
class DuePhrase:
    """Words of a sentence, `text[start:end]`, that name an end, with its moment; None if there is no such day."""

    start: int
    end: int
    kind: str
    due: datetime | None


@dataclass(frozen=True, slots=True)
class _Mention:
    """A day, a time or a duration where it stands. A time without a `clock` is the end of its day."""

    start: int
    end: int
    kind: str
    day: DateValue | None = None
    day_number: int | None = None
    """A day of this month, or of the next one that has it."""
    ahead: int | None = None
    weekday: int | None = None
    period: Period | None = None
    is_next: bool = False
    is_time: bool = False
    clock: time | None = None
    zone: tzinfo | None = None
    hours: float | None = None
    business_days: int | None = None
    is_end: bool = False
    """Whether it is an end without a word before it, as `EOD` is."""

    @property
    def is_exact(self) -> bool:
        return self.day is not None and self.day.day is not None

    @property
    def is_duration(self) -> bool:
        return self.hours is not None or self.business_days is not None


def find_due_phrases(text: str, now: datetime) -> list[DuePhrase]:
    """The deadlines that a sentence names, in order. Relative ones count from `now`, which has an offset.

    A date counts without a word for an end where its sentence says that something is due and names no other end.
    """
    forms = _compile()
    sure: list[DuePhrase] = []
    possible: list[DuePhrase] = []
    last_due: datetime | None = None
    begin: _Mention | None = None
    before = 0
    for group in _group(_find_mentions(text, forms), text, forms):
        start, is_sure = _find_lead(text, before, group, forms)
        end = group[-1].end
        event = _find_event(text, start, group, forms, has_lead=is_sure)
        if event is not None:
            is_sure, end = True, event.end()
        elif not is_sure and (after := forms["after"].match(text, end)) is not None:
            is_sure, end = True, after.end()
        is_range = begin is not None and begin.is_time == group[0].is_time and not text[before:start].strip()
        is_past = forms["past"].search(text, before, start) is not None
        if not is_past and not is_range and (is_sure or any(one.is_exact for one in group)):
            follows = last_due is not None and forms["same_clause"].fullmatch(text, before, start) is not None
            is_before = forms["before"].match(text, start) is not None
            due = _resolve(group, now, last_due if follows and last_due else now, is_before=is_before)
            due = None if event is not None else due
            kind = min(group, key=lambda one: one.is_time).kind
            is_over = due is not None and due < now and forms["on"].match(text, start) is not None
            if not is_over:  # "on 2 March we closed"
                (sure if is_sure else possible).append(DuePhrase(start, end, kind, due))
            last_due = due if is_sure else None
        begin = None if is_sure else group[-1]  # of a range: "Montag bis Mittwoch"
        before = end
    return sure or [one for one in possible if one.due and one.due >= now and forms["due"].search(text)]


@cache
def _compile() -> Mapping[str, re.Pattern[str]]:
    """Compiled at first use; the names of the days are loaded then too."""
    months = _any(MONTHS)
    units = _any(name for name, unit in UNITS.items() if unit.name in ("min", "h", "day", "week", "month", "year"))
    periods = "|".join(f"(?P<{name}>{words})" for name, words in _PERIODS.items())
    parts = {
        "past": rf"(?<![\w-])(?:{_PAST})(?!\w)[^.;]{{0,40}}$|\b(?:from|of|dated|after)\s+(?:the\s+)?$",
        "join": rf"T|[\s,(]*{_FILLING}",
        "same_clause": r"[\s,]*(?:(?!(?:and|or|then|but|und|oder|och|eller|et|ou)\s)\w+[\s,]+){0,3}",
        "zone": rf"\s*(?P<zone>{_any(_ZONE_HOURS)})(?!\w)",
        "due": _DUE,
        "on": r"on\s",
        "clause_end": r"[.;,:]|(?<!\w)(?:and|or|then|but|und|oder|och|eller|et|ou)(?!\w)",
        "event": _AFTER_EVENT,
        "after": r"[\s,]+(?:due|fällig|at\s+the\s+latest|spätestens|au\s+plus\s+tard)(?!\w)",
    }
    words = {
        "until": rf"(?:{_UNTIL}|{_ON})(?!\w)\s*:?\s*{_FILLING}$",
        "within": rf"(?:{_WITHIN})(?!\w)\s*(?:(?:the|next|von|les|de)\s+)*$",
        "before": rf"(?:due\s+)?(?:{_BEFORE})(?!\w)",
        "weekday": rf"(?P<next>next\s+)?(?P<day>{_any(load_weekdays('wide'))})(?!\w)"
        rf"|(?P<short>{_any(load_weekdays('abbreviated'))})\.?(?=,?\s+\d)",
        "month": rf"(?P<end>{_END_OF})?(?P<month>{months})(?:,?\s+(?P<year>20\d\d))?(?!\w|\s*\d|\s+(?-i:[A-Z]))",
        "day_of_month": rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?P<month>{months})(?!\w)",
        "short_date": r"(?<=(?:bis|zum|den|dem|\sle)\s)(?P<day>\d{1,2})[./](?P<month>\d{1,2})\.?(?![\d%]|[./-]\d)",
        "clock": r"(?:(?P<noon>noon|mittags?|midi)|midnight|mitternacht|midnatt|minuit|(?P<alone>eod|cob)|"
        r"(?<=à\s)(?P<hour>[01]?\d|2[0-4])\s?(?:h|heures))(?!\w)",
        "period": rf"(?:{_END_OF}(?P<next>(?:{_NEXT})\s+)?|(?P<only>(?:{_NEXT})\s+))(?:{periods})(?!\w)"
        r"|(?P<eow>eow)(?!\w)|(?P<eom>eom)(?!\w)",
        "day_number": r"(?<=\bthe\s)(?P<day>[12]?\d|3[01])(?:st|nd|rd|th)(?!\w|\s+(?:of|time|century|floor|day|week))",
        "duration": rf"(?P<count>\d{{1,5}}(?:\s?[-\u2013]\s?\d{{1,5}})?|[^\W\d_]+(?:-[^\W\d_]+)*)[\s-]*"
        rf"(?P<business>{_BUSINESS})?\s*(?P<unit>{units})(?!\w)(?P<after>\s+(?:{_BUSINESS})(?!\w))?",
        **{str(ahead): rf"(?:{names})(?!\w)" for ahead, names in DAYS_AHEAD.items()},
    }
    words = {name: rf"(?<![\w-])(?:{form})" for name, form in words.items()}
    return {name: re.compile(form, re.IGNORECASE) for name, form in (parts | words).items()}


@cache
def load_weekdays(width: str) -> dict[str, int]:
    """The names of the days of the week, `wide` or `abbreviated`, in small letters. Monday is 0."""
    from babel import Locale  # noqa: PLC0415 - 0.1 s that the start saves

    days = (Locale(one).days["format"][width].items() for one in _LOCALES)
    return {name.lower().rstrip("."): day for names in days for day, name in names}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _find_mentions(text: str, forms: Mapping[str, re.Pattern[str]]) -> list[_Mention]:
    """Days, times and durations in order; of overlapping ones the first and longest."""
    chosen: list[_Mention] = []
    for one in sorted(_iter_mentions(text, forms), key=lambda one: (one.start, -one.end)):
        if not chosen or one.start >= chosen[-1].end:
            chosen.append(one)
    return chosen


def _iter_mentions(text: str, forms: Mapping[str, re.Pattern[str]]) -> Iterator[_Mention]:
    for date in find_dates(text):
        if date.readings[0].day is not None:
            yield _Mention(date.start, date.end, "date", day=date.readings[0])
    for name in ("day_of_month", "short_date"):  # also "31 February", which is no date
        for match in forms[name].finditer(text):
            month = int(match["month"]) if match["month"].isdigit() else MONTHS[match["month"].lower()]
            yield _Mention(*match.span(), "date", day=DateValue(None, month, int(match["day"])))
    for match in forms["month"].finditer(text):
        if match["end"] or match["month"][0].isupper():  # "by may" is another word
            year = int(match["year"]) if match["year"] else None
            yield _Mention(*match.span(), "date", day=DateValue(year, MONTHS[match["month"].lower()]))
    for match in forms["weekday"].finditer(text):
        names = load_weekdays("wide" if match["day"] else "abbreviated")
        day = names[(match["day"] or match["short"]).lower()]
        yield _Mention(*match.span(), "weekday", weekday=day, is_next=match["next"] is not None)
    for match in forms["day_number"].finditer(text):
        yield _Mention(*match.span(), "date", day_number=int(match["day"]))
    for ahead in DAYS_AHEAD:
        yield from (_Mention(*match.span(), "day", ahead=ahead) for match in forms[str(ahead)].finditer(text))
    yield from _iter_times(text, forms)
    yield from map(_read_period, forms["period"].finditer(text))
    yield from filter(None, map(_read_duration, forms["duration"].finditer(text)))


def _iter_times(text: str, forms: Mapping[str, re.Pattern[str]]) -> Iterator[_Mention]:
    for mention in (*find_times(text), *find_spoken_times(text)):
        clock = time(mention.value.hour % 24, mention.value.minute)
        at = forms["zone"].match(text, mention.end - mention.text.endswith("Z"))
        zone = timezone(timedelta(hours=_ZONE_HOURS[at["zone"].lower()])) if at else None
        yield _Mention(mention.start, at.end() if at else mention.end, "time", is_time=True, clock=clock, zone=zone)
    for match in forms["clock"].finditer(text):
        named = time(12) if match["noon"] else time(int(match["hour"]) % 24) if match["hour"] else None
        yield _Mention(*match.span(), "day", is_time=True, clock=named, is_end=match["alone"] is not None)


def _read_period(match: re.Match[str]) -> _Mention:
    if match["eow"] or match["eom"]:
        return _Mention(*match.span(), "day", period="week" if match["eow"] else "month", is_end=True)
    if match["day"] and not match["only"]:
        return _Mention(*match.span(), "day", is_time=True, is_end=True)
    period = next(name for name in _PERIODS if match[name])
    return _Mention(*match.span(), "day", period=period, is_next=bool(match["next"] or match["only"]))


def _read_duration(match: re.Match[str]) -> _Mention | None:
    count = (
        re.split(r"\s?[-\u2013]\s?", match["count"].lower())[-1]
        if match["count"][0].isdigit()
        else match["count"].lower()
    )
    number = int(count) if count.isdigit() else 1 if count in ("a", "an") else NUMBER_WORDS.get(count, 0)
    if number < 1 or number != int(number):
        return None
    number = int(number)
    unit = UNITS[match["unit"].lower()]
    if (match["business"] or match["after"]) and unit.name == "day":
        return _Mention(*match.span(), "duration", business_days=number)
    hours = number * float(unit.factor) * (730 if unit.dimension == "months" else 1 / 3600)
    return _Mention(*match.span(), "duration", hours=hours)


def _group(mentions: list[_Mention], text: str, forms: Mapping[str, re.Pattern[str]]) -> Iterator[list[_Mention]]:
    """Yields what belongs to one moment: a day, its other name and its time stand beside each other."""
    group: list[_Mention] = []
    for one in mentions:
        beside = bool(group) and forms["join"].fullmatch(text, group[-1].end, one.start) is not None
        fits = not one.is_duration and not any(
            other.is_duration or (other.kind, other.is_time) == (one.kind, one.is_time) for other in group
        )
        if group and not (beside and fits):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _find_lead(text: str, after: int, group: list[_Mention], forms: Mapping[str, re.Pattern[str]]) -> tuple[int, bool]:
    """The place where a phrase starts, and whether it names an end by its own words."""
    first = group[0]
    lead = forms["within" if first.is_duration else "until"].search(text, after, first.start)
    if lead is not None:
        is_end = forms["on"].match(text, lead.start()) is None or _is_due_clause(
            text, lead.start(), group[-1].end, forms
        )
        return lead.start(), is_end
    return first.start, any(one.is_end for one in group)


def _find_event(
    text: str, start: int, group: list[_Mention], forms: Mapping[str, re.Pattern[str]], *, has_lead: bool
) -> re.Match[str] | None:
    """The event that a duration counts from: "15 days after delivery".

    Hours and minutes after something mostly say what happened, and "3 days of rain" how long."""
    first = group[0]
    event = forms["event"].match(text, first.end) if len(group) == 1 and first.is_duration else None
    if event is None or has_lead:
        return event
    is_long = first.business_days is not None or (first.hours or 0) >= _HOURS_OF_DAY
    counts = event["of"] is None and (is_long or _is_due_clause(text, start, event.end(), forms))
    return event if counts else None


def _is_due_clause(text: str, start: int, end: int, forms: Mapping[str, re.Pattern[str]]) -> bool:
    """Whether the clause around `text[start:end]` says that something is due, or asks somebody to do it."""
    begin = max((match.end() for match in forms["clause_end"].finditer(text, 0, start)), default=0)
    if is_instruction(text[begin:start].lstrip()):
        return True
    after = forms["clause_end"].search(text, end)
    return forms["due"].search(text, begin, after.start() if after is not None else len(text)) is not None


def _resolve(group: list[_Mention], now: datetime, day: datetime, *, is_before: bool) -> datetime | None:
    """The moment of a group; None if there is no such day or the calendar cannot hold it.

    A time without a day is one of `day`.
    """
    try:
        days = sorted((one for one in group if not one.is_time), key=lambda one: not one.is_exact)
        due = _resolve_day(days[0], now, is_before=is_before) if days else get_end_of_day(day.date(), now)
        clock = next((one for one in group if one.is_time), None)
        if clock is None or clock.clock is None or due is None:
            return due
        return datetime.combine(due.date(), clock.clock, clock.zone or now.tzinfo).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        return None


def _resolve_day(one: _Mention, now: datetime, *, is_before: bool) -> datetime | None:
    if one.business_days is not None:
        return add_business_days(now, one.business_days) if one.business_days <= 2_000 else None
    if one.hours is not None:
        return now + timedelta(hours=one.hours) if one.hours <= _MAX_HOURS else None
    if one.period is not None:
        return get_end_of_period(one.period, now, is_next=one.is_next)
    if one.day_number is not None:
        return get_end_of_day(find_day_of_month(one.day_number, now.date()), now)
    if one.day is None:
        ahead = one.ahead if one.ahead is not None else ((one.weekday or 0) - now.weekday()) % 7
        if one.is_next and ahead + now.weekday() < 7:  # "next Friday" is not the one of this week
            ahead += 7
        return get_end_of_day(now.date() + timedelta(days=ahead), now)
    if one.day.day is None:
        year = one.day.year or now.year + (one.day.month < now.month)
        if is_before:
            return get_end_of_day(now.date().replace(year=year, month=one.day.month, day=1) - timedelta(days=1), now)
        return get_end_of_month(year, one.day.month, now)
    named = now.date().replace(year=one.day.year or now.year, month=one.day.month, day=one.day.day)
    return get_end_of_day(named if one.day.year else place_year(named, now), now)

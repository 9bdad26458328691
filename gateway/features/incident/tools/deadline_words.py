"""Deadlines in German, Swedish and French: `bis Freitag, 17 Uhr`, `senast i morgon`, `d'ici la fin du mois`.

Dates, times, numbers, units and days are read by what all languages share; a language only says which words make a day
or a time an end. A date without such a word counts where its sentence says that something is due.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache

from babel import Locale

from agent.text.dates import DateValue, find_dates, find_times
from agent.text.number_words import NUMBER_WORDS
from agent.text.spoken_times import find_spoken_times
from agent.text.units import UNITS
from gateway.features.incident.tools.due_moments import (
    Period,
    add_business_days,
    get_end_of_day,
    get_end_of_month,
    get_end_of_period,
    place_year,
)

LARGEST_HOURS = 876_000
"""A century; a longer duration has no moment."""


@dataclass(frozen=True, slots=True)
class DuePhrase:
    """Words of a sentence, `text[start:end]`, that name an end, with its moment; None if there is no such day."""

    start: int
    end: int
    kind: str
    due: datetime | None


@dataclass(frozen=True, slots=True)
class _Language:
    """The words of one language, as alternatives of a pattern.

    `until` and `within` make an end of what follows, after any of `filling`. `at` stands before a day that is an end
    only in a sentence with one of `due`.
    """

    until: str
    within: str
    filling: str
    at: str
    due: str
    end_of: str
    next: str
    near: Mapping[str, int]
    clock: Mapping[str, time | None]
    """Words for a time of day; None is the end of the day."""
    periods: Mapping[str, Period]
    business: str
    further_days: str = ""


_NOON, _MIDNIGHT = time(12), None
_LANGUAGES: Mapping[str, _Language] = {
    "de": _Language(
        until=r"bis|spätestens|vor|fällig|\w*frist|deadline|stichtag|\w*termin|abgabe|einsendeschluss",
        within=r"innerhalb|binnen|in|höchstens|maximal",
        filling=r"spätestens|einschließlich|zu[mr]?|ab|am|im|um|gegen|de[mnr]|dies\w*|nächst\w*|kommend\w*|ist|"
        r"endet|läuft|von|bis",
        at=r"am|im|um|zum|den|der",
        due=r"fällig|\w*frist|deadline|stichtag|\w*termin|spätestens|abgabe|abzugeben|einzureichen|einsendeschluss|"
        r"bitte|muss|müssen|soll|sollen",
        end_of=r"ende(?:\s+(?:de[sr]|dieser|dieses))?",
        next=r"nächste[rnsm]?|kommende[rnsm]?",
        near={"heute": 0, "(?-i:morgen)": 1, "übermorgen": 2},
        clock={
            "mittags?": _NOON, "mitternacht": _MIDNIGHT, "abends?|dienstschluss|feierabend|geschäftsschluss": None,
        },
        periods={
            "tage[s]?": "day", "wochen?": "week", "monate?s?": "month", "quartals?": "quarter", "jahre?s?": "year",
        },
        business=r"werk|arbeits|geschäfts|bank",
        further_days="sonnabend",
    ),
    "sv": _Language(
        until=r"senast|före|innan|till|fram\s+till|t\.?o\.?m\.?|förfaller|deadline",
        within=r"inom|om",
        filling=r"den|på|och|med|klockan|kl\.?|nästa|i|är|av",
        at=r"den|på|klockan|kl\.?|i",
        due=r"förfaller|deadline|senast|måste|ska|skall|klart?|lämnas",
        end_of=r"(?:i\s+)?slutet\s+(?:av|på)",
        next=r"nästa",
        near={"i\\s?dag": 0, "i\\s?morgon": 1, "i\\s?övermorgon": 2},
        clock={"midnatt": _MIDNIGHT, "lunch": _NOON, "dagens\\s+slut": None},
        periods={
            "dag(?:en)?": "day", "vecka(?:n)?": "week", "månad(?:en)?": "month", "kvartal(?:et)?": "quarter",
            "år(?:et)?": "year",
        },
        business=r"arbets|var|bank",
    ),
    "fr": _Language(
        until=r"avant|d['\u2019]ici|jusqu['\u2019]à|jusqu['\u2019]au|au\s+plus\s+tard|échéance|date\s+limite|délai",
        within=r"dans|sous|en\s+moins\s+de|endéans",
        filling=r"le|la|les|l['\u2019]|au|à|du|de|ce|cette|est|expire|avant|prochaine?s?",
        at=r"le|à|au|en",
        due=r"échéance|délai|date\s+limite|plus\s+tard|doi(?:t|vent)|remettre|rendre|dû",
        end_of=r"(?:la\s+)?fin(?:\s+(?:du|de\s+la|de\s+l['\u2019]|de\s+ce|de\s+cette|de))?",
        next=r"prochaine?",
        near={"aujourd['\u2019]hui": 0, "demain": 1, "après-demain": 2},
        clock={"midi": _NOON, "minuit": _MIDNIGHT, "ce\\s+soir": None},
        periods={
            "jour|journée": "day", "semaine": "week", "mois": "month", "trimestre": "quarter", "année|an": "year",
        },
        business=r"ouvr\w+",
    ),
}  # fmt: skip
LANGUAGES = frozenset(_LANGUAGES)
"""The languages whose deadlines are read here, by ISO 639-1 code."""


@dataclass(frozen=True, slots=True)
class _Mention:
    """A day, a time or a duration where it stands."""

    start: int
    end: int
    kind: str
    day: DateValue | None = None
    ahead: int | None = None
    weekday: int | None = None
    period: Period | None = None
    is_next: bool = False
    clock: time | None = None
    hours: float | None = None
    business_days: int | None = None

    @property
    def is_time(self) -> bool:
        return self.kind == "time"

    @property
    def is_duration(self) -> bool:
        return self.kind == "duration"


def find_due_phrases(text: str, language: str, now: datetime) -> list[DuePhrase]:
    """The ends that a sentence of one of `LANGUAGES` names, in order."""
    forms = _compile(language)
    is_due = forms.due.search(text) is not None
    ends: list[DuePhrase] = []
    weak: list[DuePhrase] = []
    before = 0
    for group in _group(_find_mentions(text, forms), text, forms):
        lead = _find_lead(text, before, group[0], forms)
        before = group[-1].end
        if lead is None:
            continue
        first = min(group, key=lambda one: one.is_time)
        due = _resolve(group, now, text[lead[0] : group[0].start], forms)
        into = ends if lead[1] else weak if is_due and not first.is_time else None
        if into is not None:
            into.append(DuePhrase(lead[0], before, first.kind, due))
    return ends or weak  # "it failed on Monday and has to work by Friday": the first day is no end


@dataclass(frozen=True, slots=True)
class _Forms:
    """The compiled patterns of a language."""

    until: re.Pattern[str]
    within: re.Pattern[str]
    at: re.Pattern[str]
    due: re.Pattern[str]
    join: re.Pattern[str]
    before: re.Pattern[str]
    weekday: re.Pattern[str]
    weekdays: Mapping[str, int]
    month: re.Pattern[str]
    months: Mapping[str, int]
    near: tuple[tuple[re.Pattern[str], int], ...]
    clock: tuple[tuple[re.Pattern[str], time | None], ...]
    periods: tuple[tuple[re.Pattern[str], Period], ...]
    duration: re.Pattern[str]


@cache
def _compile(language: str) -> _Forms:
    words = _LANGUAGES[language]

    def whole(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w-])(?:{pattern})(?!\w)", re.IGNORECASE)

    def ending(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w-])(?:{pattern})(?:\s+(?:{words.filling}))*\s*:?\s*$", re.IGNORECASE)

    names = {name.lower(): number for number, name in Locale(language).days["format"]["wide"].items()}
    names |= dict.fromkeys(words.further_days.split(), 5)
    months = {name.lower(): number for number, name in Locale(language).months["format"]["wide"].items()}
    units = [name for name, unit in UNITS.items() if unit.name in ("min", "h", "day", "week", "month", "year")]
    counts = [name for name, value in NUMBER_WORDS.items() if value == int(value) and value <= 100]
    next_to = rf"(?P<next>(?:{words.next})\s+)?"
    return _Forms(
        until=ending(words.until),
        within=ending(words.within),
        at=ending(words.at),
        due=whole(words.due),
        join=re.compile(rf"[\s,(]*(?:(?:{words.filling}|{words.at})[\s,]*)*", re.IGNORECASE),
        before=re.compile(r"(?<!\w)(?:vor|före|innan|avant)(?!\w)", re.IGNORECASE),
        weekday=re.compile(
            rf"(?<!\w)(?P<day>{_any(names)})(?:(?:vor|nach)?mittag|morgen|abend|nacht)?(?!\w)", re.IGNORECASE
        ),
        weekdays=names,
        month=whole(rf"(?:(?:{words.end_of})\s+)?(?P<month>{_any(months)})(?:\s+(?P<year>20\d\d))?"),
        months=months,
        near=tuple((whole(pattern), ahead) for pattern, ahead in words.near.items()),
        clock=tuple((whole(pattern), at) for pattern, at in words.clock.items()),
        periods=tuple(
            (whole(rf"(?:{words.end_of})\s*{next_to}(?:{name})|(?:{name})s?ende|{next_to.replace('next', 'only')}"
                   rf"(?(only)(?:{name})|(?!))|(?:{name})s\s+slut"), period)
            for name, period in words.periods.items()
        ),
        duration=whole(
            rf"(?P<count>\d{{1,5}}|{_any(counts)})[\s-]*(?P<business>{words.business})?(?P<unit>{_any(units)})"
            rf"(?P<after>\s+{words.business})?"
        ),
    )  # fmt: skip


def _any(words: Mapping[str, object] | list[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _find_mentions(text: str, forms: _Forms) -> list[_Mention]:
    """Days, times and durations in order; of overlapping ones the first and longest."""
    chosen: list[_Mention] = []
    for one in sorted(_iter_mentions(text, forms), key=lambda one: (one.start, -one.end)):
        if not chosen or one.start >= chosen[-1].end:
            chosen.append(one)
    return chosen


def _iter_mentions(text: str, forms: _Forms) -> Iterator[_Mention]:
    for date in find_dates(text):
        yield _Mention(date.start, date.end, "date", day=date.readings[0])
    for match in forms.month.finditer(text):
        month = DateValue(int(match["year"]) if match["year"] else None, forms.months[match["month"].lower()])
        yield _Mention(*match.span(), "date", day=month)
    for match in _SHORT_DATE.finditer(text):
        yield _Mention(match.start(), match.end(), "date", day=DateValue(None, int(match["month"]), int(match["day"])))
    for mention in (*find_times(text), *find_spoken_times(text)):
        moment = time(mention.value.hour % 24, mention.value.minute)
        yield _Mention(mention.start, mention.end, "time", clock=moment)
    for match in forms.weekday.finditer(text):
        yield _Mention(*match.span(), "weekday", weekday=forms.weekdays[match["day"].lower()])
    for pattern, ahead in forms.near:
        yield from (_Mention(*match.span(), "day", ahead=ahead) for match in pattern.finditer(text))
    for pattern, at in forms.clock:
        yield from (_Mention(*match.span(), "time", clock=at) for match in pattern.finditer(text))
    for pattern, period in forms.periods:
        for match in pattern.finditer(text):
            is_next = bool(match["next"] or match["only"])
            yield _Mention(*match.span(), "day", period=period, is_next=is_next)
    yield from map(_read_duration, forms.duration.finditer(text))


_SHORT_DATE = re.compile(r"(?<![\d./-])(?P<day>0?[1-9]|[12]\d|3[01])[./](?P<month>0?[1-9]|1[0-2])\.?(?![\d%]|[./-]\d)")
"""A day and a month in figures without a year: `1.2.`, `15/12`."""


def _read_duration(match: re.Match[str]) -> _Mention:
    count = match["count"].lower()
    number = int(count) if count.isdigit() else int(NUMBER_WORDS[count])
    unit = UNITS[match["unit"].lower()]
    if (match["business"] or match["after"]) and unit.name == "day":
        return _Mention(*match.span(), "duration", business_days=number)
    hours = number * float(unit.factor) * (730 if unit.dimension == "months" else 1 / 3600)
    return _Mention(*match.span(), "duration", hours=hours)


def _group(mentions: list[_Mention], text: str, forms: _Forms) -> Iterator[list[_Mention]]:
    """Yields what belongs to one moment: a day, its other name and its time stand beside each other."""
    group: list[_Mention] = []
    for one in mentions:
        beside = group and forms.join.fullmatch(text[group[-1].end : one.start]) is not None
        fits = group and not one.is_duration and not group[-1].is_duration
        if beside and fits and not (one.is_time and any(other.is_time for other in group)):
            group.append(one)
            continue
        if group:
            yield group
        group = [one]
    if group:
        yield group


def _find_lead(text: str, after: int, first: _Mention, forms: _Forms) -> tuple[int, bool] | None:
    """The place of the words before a mention that may make it an end, and whether they do by themselves."""
    preceding = text[after : first.start]
    if first.is_duration:
        within = forms.within.search(preceding)
        return (after + within.start(), True) if within is not None else None
    if (until := forms.until.search(preceding)) is not None:
        return after + until.start(), True
    if (at := forms.at.search(preceding)) is not None:
        return after + at.start(), False
    is_date = first.day is not None and first.day.day is not None
    return (first.start, False) if is_date else None


def _resolve(group: list[_Mention], now: datetime, lead: str, forms: _Forms) -> datetime | None:
    """The moment of a group; None if there is no such day or the calendar cannot hold it."""
    try:
        return _resolve_group(group, now, is_before=forms.before.search(lead) is not None)
    except (ValueError, OverflowError):
        return None


def _resolve_group(group: list[_Mention], now: datetime, *, is_before: bool) -> datetime | None:
    days = [one for one in group if not one.is_time]
    exact = sorted(days, key=lambda one: one.day is None)  # a date is more exact than the name of its day
    due = _resolve_day(exact[0], now, is_before=is_before) if exact else get_end_of_day(now.date(), now)
    clock = next((one for one in group if one.is_time), None)
    if clock is None or clock.clock is None or due is None:
        return due
    return datetime.combine(due.date(), clock.clock, now.tzinfo)


def _resolve_day(one: _Mention, now: datetime, *, is_before: bool) -> datetime | None:
    if one.business_days is not None:
        return add_business_days(now, one.business_days) if one.business_days <= 2_000 else None
    if one.hours is not None:
        return now + timedelta(hours=one.hours) if one.hours <= LARGEST_HOURS else None
    if one.period is not None:
        return get_end_of_period(one.period, now, is_next=one.is_next)
    if one.day is None:
        ahead = one.ahead if one.ahead is not None else ((one.weekday or 0) - now.weekday()) % 7
        return get_end_of_day(now.date() + timedelta(days=ahead), now)
    if one.day.day is None:
        year = one.day.year or now.year + (one.day.month < now.month)
        if is_before:
            return get_end_of_day(now.date().replace(year=year, month=one.day.month, day=1) - timedelta(days=1), now)
        return get_end_of_month(year, one.day.month, now)
    named = now.date().replace(year=one.day.year or now.year, month=one.day.month, day=one.day.day)
    return get_end_of_day(named if one.day.year else place_year(named, now), now)

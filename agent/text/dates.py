"""Reads the dates and times of a text into comparable values, in the common forms of European languages and ISO 8601.

`05.03.2024`, `5 March 2024`, `March 5, 2024`, `den 5 mars 2024` and `2024-03-05` are one date. A form that can be read
in two ways (`03/04/2024`) has two readings.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache

_MONTH_NAMES = (
    "january januari januar janvier enero gennaio janeiro januari tammikuu tammikuuta jan",
    "february februari februar février febrero febbraio fevereiro helmikuu helmikuuta feb febr fév",
    "march mars märz marzo março maart marts maaliskuu maaliskuuta mar mär mrz",
    "april avril abril aprile abril huhtikuu huhtikuuta apr avr abr",
    "may maj mai mayo maggio maio mei toukokuu toukokuuta",
    "june juni juin junio giugno junho kesäkuu kesäkuuta jun",
    "july juli juillet julio luglio julho heinäkuu heinäkuuta jul juil",
    "august augusti août agosto augustus elokuu elokuuta aug",
    "september septembre septiembre settembre setembro syyskuu syyskuuta sep sept",
    "october oktober octobre octubre ottobre outubro lokakuu lokakuuta oct okt",
    "november novembre noviembre novembro marraskuu marraskuuta nov",
    "december dezember décembre diciembre dicembre dezembro joulukuu joulukuuta dec dez déc dic",
)
"""The names of each month in English, Swedish, Danish, Norwegian, German, French, Spanish, Italian, Portuguese, Dutch
and Finnish, and their abbreviations."""


def _write_plainly(name: str) -> tuple[str, ...]:
    """A name as it is written, without its accents, and with `ae` for an umlaut."""
    plain = "".join(char for char in unicodedata.normalize("NFD", name) if not unicodedata.combining(char))
    return name, plain, name.replace("ä", "ae")


MONTHS = {
    spelling: number
    for number, names in enumerate(_MONTH_NAMES, start=1)
    for name in names.split()
    for spelling in _write_plainly(name)
}
_WEEKDAY_NAMES = (
    "monday måndag mandag montag lundi lunes lunedì segunda-feira maandag maanantai",
    "tuesday tisdag tirsdag dienstag mardi martes martedì terça-feira dinsdag tiistai",
    "wednesday onsdag mittwoch mercredi miércoles mercoledì quarta-feira woensdag keskiviikko",
    "thursday torsdag donnerstag jeudi jueves giovedì quinta-feira donderdag torstai",
    "friday fredag freitag vendredi viernes venerdì sexta-feira vrijdag perjantai",
    "saturday lördag lørdag samstag sonnabend samedi sábado sabato zaterdag lauantai",
    "sunday söndag søndag sonntag dimanche domingo domenica zondag sunnuntai",
)
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
"""The names of the days of the week in the same languages; Monday is 0."""
_ALONE = frozenset(
    name for name in MONTHS if len(name) > 4 and name not in {"march", "marts", "marzo", "maart", "enero", "julio"}
)
"""Month names that mean a month also without a day or a year; `may` and `mars` are other words too."""
_SPACE = r"[ \t\u00a0\u2007\u2009\u202f]"
_MONTH = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_TIME = re.compile(
    rf"""
    (?<![\w.,:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,]\d{{1,9}})?)?
      (?:{_SPACE}*(?P<half>[ap]\.?m)\b\.?)?Z?(?![\w:]|[.,]\d{{3}}(?!\d))
    | (?<![\w.,:])(?P<hour2>1[0-2]|0?[1-9])(?:[.](?P<minute2>[0-5]\d))?{_SPACE}*(?P<half2>[ap]\.?m)\b\.?
    | \b(?:kl\.?|klockan|klokken){_SPACE}*(?P<hour3>[01]?\d|2[0-4])(?:[.:](?P<minute3>[0-5]\d))?(?![\w:]|[.,]\d)
    | (?<![\w.,:])(?P<hour4>[01]?\d|2[0-4])(?:[.:](?P<minute4>[0-5]\d))?{_SPACE}*uhr\b
    | (?<![^\W\d_])T(?P<hour6>[01]\d|2[0-3])(?P<minute6>[0-5]\d)(?:[0-5]\d)?Z?(?!\w)
    | (?<![\w.,:])(?P<hour5>[01]?\d|2[0-4]){_SPACE}?h{_SPACE}?(?P<minute5>[0-5]\d)(?!{_SPACE}?(?:min|m)|\w)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_UNTIL = re.compile(rf"{_SPACE}*[-\u2013]{_SPACE}*(?P<hour>[01]?\d|2[0-4])[.:](?P<minute>[0-5]\d)(?![\w:]|[.,]\d)")
"""The end of a range of times whose sign stands before its beginning only: `kl. 13.00-14.45`."""
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)")
_ISO_TIME = re.compile(r"(?<![^\W\d_])T(?=\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class DateValue:
    """A calendar date, of which the text may leave out the year, the day, or both."""

    year: int | None
    month: int
    day: int | None = None

    @property
    def iso(self) -> str:
        """ISO 8601, with two hyphens for a missing year: `2024-03-05`, `2024-03`, `--03-05`, `--03`."""
        year = f"{self.year:04}-" if self.year is not None else "--"
        return f"{year}{self.month:02}" + (f"-{self.day:02}" if self.day is not None else "")

    @property
    def is_day(self) -> bool:
        """Whether it names one day: its year, month and day."""
        return self.year is not None and self.day is not None

    def follows_from(self, known: "DateValue") -> bool:
        """Whether `known` states every part of this date. A missing year of `known` is not compared."""
        same_year = self.year is None or known.year is None or self.year == known.year
        return same_year and self.month == known.month and self.day in (None, known.day)


@dataclass(frozen=True, slots=True)
class TimeValue:
    """A time of day on the 24-hour clock."""

    hour: int
    minute: int = 0

    @property
    def iso(self) -> str:
        """Hours and minutes: `14:30`."""
        return f"{self.hour:02}:{self.minute:02}"


@dataclass(frozen=True, slots=True)
class DateMention:
    """A date where it stands, `text[start:end]`; `readings` has more than one value for an ambiguous form."""

    text: str
    start: int
    end: int
    readings: tuple[DateValue, ...]


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time of day where it stands, `text[start:end]`."""

    text: str
    start: int
    end: int
    value: TimeValue


def find_dates(text: str) -> list[DateMention]:
    """The dates of a text in order. Month names alone count where they are not another word (`in April`)."""
    return list(_iter_dates(_ISO_TIME.sub(" ", text)))


def find_times(text: str) -> list[TimeMention]:
    """The times of day of a text in order: `14:30`, `2:30 pm`, `kl. 14.30`, `14 Uhr`, `14h30`."""
    return list(_iter_times(_ISO_TIME.sub(" ", text)))


def is_date(value: DateValue) -> bool:
    """Whether the calendar has such a day or month; 29 February counts where no year is given."""
    try:
        date(value.year or 2000, value.month, value.day or 1)
    except ValueError:
        return False
    return True


@cache
def _compile_date_pattern() -> re.Pattern[str]:
    """Compiled at first use: the names of the months of all languages are in it four times, 3 % of the start.

    It looks at the first character before it tries all of them: a megabyte of spaces took nine seconds.
    """
    first = "".join(sorted({name[0] for name in MONTHS}))
    return re.compile(
        rf"""
        (?=[\d{first}])(?:
        (?<![\w.,/-])(?P<iso>{_YEAR}(?P<mark>[-/.])\d{{1,2}}(?P=mark)\d{{1,2}})(?![\d-])
        | (?<![\w.,/-])(?P<compact>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?=T\d{{4}}(?:\d\d)?Z?\b)
        | (?<![\w./-])(?P<numeric>\d{{1,2}}(?P<mark2>[./-])\d{{1,2}}(?P=mark2)(?:{_YEAR}|\d\d))(?![\w-]|[./]\d)
        | (?<![\w./-])(?P<spaced>\d{{1,2}}\.{_SPACE}\d{{1,2}}\.{_SPACE}{_YEAR})(?![\w-]|[./]\d)
        | (?<![\w./-])(?P<day0>\d{{1,2}})(?P<mark0>[-/.])(?P<month0>{_MONTH})\.?(?P=mark0)
          (?P<year0>{_YEAR}|\d\d)(?![\w-])
        | (?<![\w.,/-])(?P<year_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))(?![\w-])
        | (?<![\w.,])(?P<day>\d{{1,2}})(?:st|nd|rd|th|:?e|er|\.|º)?{_SPACE}*(?:of|de|den)?{_SPACE}+
          (?P<month>{_MONTH})\b\.?(?:,?{_SPACE}*(?:de{_SPACE}+|del{_SPACE}+)?(?P<year>{_YEAR})(?!\d))?
        | (?<!\w)(?P<month2>{_MONTH})\b\.?{_SPACE}+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:%]|[.,]\d)
          (?:,?{_SPACE}+(?P<year2>{_YEAR})(?!\d))?
        | (?<!\w)(?P<month3>{_MONTH})\b\.?,?{_SPACE}+(?:de{_SPACE}+|del{_SPACE}+)?(?P<year3>{_YEAR})(?!\d)
        | (?<!\w)(?P<month4>{_MONTH})(?!\w)
        )
        """,
        re.IGNORECASE | re.VERBOSE,
    )


def _iter_dates(text: str) -> Iterator[DateMention]:
    for match in _compile_date_pattern().finditer(text):
        readings = tuple(value for value in _read_date(match) if is_date(value))
        if readings:
            yield DateMention(match[0], match.start(), match.end(), readings)


def _read_date(match: re.Match[str]) -> Iterator[DateValue]:
    if match["iso"] or match["compact"]:
        year, month, day = re.findall(r"\d+", match["iso"]) if match["iso"] else _COMPACT.findall(match["compact"])[0]
        yield DateValue(int(year), int(month), int(day))
    elif match["numeric"] or match["spaced"]:
        first, second, year = map(int, re.findall(r"\d+", match["numeric"] or match["spaced"]))
        yield DateValue(_complete(year), second, first)
        if match["mark2"] == "/" and first != second:  # only the slash is written month first
            yield DateValue(_complete(year), first, second)
    elif match["year_month"]:
        year, month = (int(part) for part in match["year_month"].split("-"))
        yield DateValue(year, month)
    elif match["month4"]:
        if match["month4"].lower() in _ALONE:
            yield DateValue(None, MONTHS[match["month4"].lower()])
    else:
        name = match["month"] or match["month0"] or match["month2"] or match["month3"]
        year_text = match["year"] or match["year0"] or match["year2"] or match["year3"]
        day_text = match["day"] or match["day0"] or match["day2"]
        if name == "may" and not year_text:  # "you may 5 times ...", "up to 10 may ..."
            return
        yield DateValue(
            _complete(int(year_text)) if year_text else None, MONTHS[name.lower()], int(day_text) if day_text else None
        )


def _complete(year: int) -> int:
    """Two digits mean this century: documents of a workplace rarely reach further back."""
    return year + 2000 if year < 100 else year


def _iter_times(text: str) -> Iterator[TimeMention]:
    for match in _TIME.finditer(text):
        groups = match.groupdict()
        hour = int(next(groups[name] for name in ("hour", *(f"hour{n}" for n in range(2, 7))) if groups[name]))
        minute = next((groups[f"minute{n}"] for n in ("", *range(2, 7)) if groups[f"minute{n}"]), "0")
        half = groups["half"] or groups["half2"]
        if half and hour <= 12:
            hour = hour % 12 + (12 if half[0].lower() == "p" else 0)
        yield TimeMention(match[0], match.start(), match.end(), TimeValue(hour, int(minute)))
        if groups["hour3"] and (until := _UNTIL.match(text, match.end())) is not None:
            time = TimeValue(int(until["hour"]), int(until["minute"]))
            yield TimeMention(text[until.start("hour") : until.end()], until.start("hour"), until.end(), time)

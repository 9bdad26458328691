"""The calendar of deadlines: the moments at which days, weeks, months, quarters and years end."""

import calendar
from datetime import date, datetime, time, timedelta
from typing import Literal

_LONGEST_MONTH = 31
Period = Literal["day", "week", "month", "quarter", "year"]


def get_end_of_day(day: date, now: datetime) -> datetime:
    """The last minute of a day, with the offset of `now`."""
    return datetime.combine(day, time(23, 59), now.tzinfo)


def get_end_of_month(year: int, month: int, now: datetime) -> datetime:
    """The last minute of a month."""
    return get_end_of_day(date(year, month, calendar.monthrange(year, month)[1]), now)


def get_end_of_period(period: Period, now: datetime, *, is_next: bool = False) -> datetime:
    """The end of the period that `now` is in, or of the next one. A week ends on Friday."""
    today = now.date()
    if period == "week":
        return get_end_of_day(today + timedelta(days=(4 - today.weekday()) % 7 + (7 if is_next else 0)), now)
    if period == "month":
        first = (today.replace(day=28) + timedelta(days=4)).replace(day=1) if is_next else today
        return get_end_of_month(first.year, first.month, now)
    if period == "quarter":
        last = (today.month - 1) // 3 * 3 + (6 if is_next else 3)
        return get_end_of_month(today.year + (last > 12), (last - 1) % 12 + 1, now)
    if period == "year":
        return get_end_of_month(today.year + is_next, 12, now)
    return get_end_of_day(today + timedelta(days=int(is_next)), now)


def add_business_days(now: datetime, days: int) -> datetime:
    """The moment so many working days (Monday to Friday) later."""
    due = now
    while days > 0:
        due += timedelta(days=1)
        days -= due.weekday() < 5
    return due


def find_day_of_month(number: int, today: date) -> date:
    """The next day with this number, of this month or the first later one that has it. Raises `ValueError` if the
    calendar ends before it, or for a number over 31."""
    year, month = today.year, today.month
    while number < (today.day if (year, month) == (today.year, today.month) else 1) or number > _count_days(
        year, month
    ):
        year, month = year + month // 12, month % 12 + 1
        if number > _LONGEST_MONTH:
            raise ValueError(f"no month has a day {number}")
    return date(year, month, number)


def _count_days(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def place_year(day: date, now: datetime) -> date:
    """A date that was written without a year: in the coming year if it is over for more than a month."""
    return day.replace(year=now.year + 1) if (now.date() - day).days > 31 else day

"""Times of schedules: cron expressions in time zones, by `croniter`.

Where the clock is put forward, a time that does not exist is the moment of the change. Where it is put back, a time
that occurs twice is the first one, except for schedules of every hour, which go on in both.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import floor
from typing import Final
from zoneinfo import ZoneInfo

from agent.core.errors import BadRequestError

MAX_CRON_CHARS: Final = 200
MAX_COUNTED: Final = 100
"""Ticks that are counted at most between two times."""
_FIELDS = (
    "minute (0-59) hour (0-23) day-of-month (1-31) month (1-12 or jan-dec) day-of-week (0-7 or sun-sat), such as "
    "`0 7 * * mon-fri`; or @hourly, @daily, @weekly, @monthly, @yearly"
)


@dataclass(frozen=True)
class CronTimes:
    """The ticks of an expression in a time zone, as UTC seconds. Raises `BadRequestError` for what cannot be read."""

    cron: str
    timezone: str

    def __post_init__(self) -> None:
        if len(self.cron) > MAX_CRON_CHARS:
            raise BadRequestError(f"cron: must have at most {MAX_CRON_CHARS} characters", param="cron")
        try:
            ZoneInfo(self.timezone)
        except (ValueError, OSError, KeyError) as error:
            raise BadRequestError(
                f"timezone: {self.timezone[:60]!r} must be an IANA time zone, such as Europe/Stockholm",
                param="timezone",
            ) from error
        # Seconds and years (six and seven fields) and random times are extensions of the library.
        fields = self.cron.split()
        if len(fields) not in (1, 5) or any(field[0] in "rR" for field in fields):
            raise BadRequestError(f"cron: {self.cron!r} does not have five fields; write {_FIELDS}", param="cron")
        from croniter import CroniterError, croniter  # noqa: PLC0415 - most processes have no schedules

        try:
            croniter.expand(self.cron)
        except (CroniterError, ValueError, KeyError) as error:
            raise BadRequestError(f"cron: {self.cron!r} cannot be read; write {_FIELDS}", param="cron") from error
        try:
            self.find_next(datetime(2000, 1, 1, tzinfo=UTC).timestamp())
        except (CroniterError, ValueError, KeyError) as error:
            raise BadRequestError(
                f"cron: {self.cron!r} names a day that never comes; write {_FIELDS}", param="cron"
            ) from error

    def find_next(self, after: float) -> float:
        """The first tick after a time. Raises `CroniterError` if there is none within 50 years."""
        from croniter import croniter  # noqa: PLC0415 - as above

        times = croniter(self.cron, datetime.fromtimestamp(after, self._zone))
        while True:
            tick = times.get_next(float)
            if not self._is_repeated(tick):
                return float(tick)

    def find_latest(self, until: float) -> float:
        """The last tick at or before a time."""
        from croniter import croniter  # noqa: PLC0415 - as above

        times = croniter(self.cron, datetime.fromtimestamp(floor(until) + 1, self._zone))
        while True:
            tick = times.get_prev(float)
            if not self._is_repeated(tick):
                return float(tick)

    def count_between(self, first: float, last: float) -> int:
        """Counts the ticks in `[first, last)`, up to `MAX_COUNTED`. `first` is a tick."""
        count = 0
        while first < last and count < MAX_COUNTED:
            count, first = count + 1, self.find_next(first)
        return count

    def list_next(self, after: float, count: int) -> list[float]:
        """The next ticks."""
        times: list[float] = []
        while len(times) < count:
            times.append(after := self.find_next(after))
        return times

    def format(self, tick: float) -> str:
        """A time as people of the time zone read it, with its offset: `2026-11-23 07:00+01:00`."""
        return datetime.fromtimestamp(tick, self._zone).isoformat(sep=" ", timespec="minutes")

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @cached_property
    def _is_hourly(self) -> bool:
        from croniter import croniter  # noqa: PLC0415 - as above

        return bool(croniter.expand(self.cron)[0][1] == ["*"])

    def _is_repeated(self, tick: float) -> bool:
        """Whether the clock has shown this time before, and the schedule names its hour."""
        return not self._is_hourly and datetime.fromtimestamp(tick, self._zone).fold == 1

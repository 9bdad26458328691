"""Times of schedules: cron in time zones, where the clock is put forward and back, and expressions that are refused."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from agent.core.errors import BadRequestError
from gateway.features.schedules.engine.cron import MAX_COUNTED, CronTimes

STOCKHOLM, NEW_YORK, LORD_HOWE, CAIRO = "Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"


def seconds(text: str, zone: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def shown(times: list[float], zone: str) -> list[str]:
    return [datetime.fromtimestamp(at, ZoneInfo(zone)).strftime("%d %H:%M%z") for at in times]


@pytest.mark.parametrize(
    ("cron", "zone", "start", "expected"),
    [
        ("0 7 * * mon-fri", STOCKHOLM, "2026-11-20T08:00", ["23 07:00+0100", "24 07:00+0100"]),
        ("@daily", "UTC", "2026-11-20T00:00", ["21 00:00+0000", "22 00:00+0000"]),
        # The same time of the clock on both sides of a change.
        ("0 9 * * *", NEW_YORK, "2026-03-07T08:00", ["07 09:00-0500", "08 09:00-0400", "09 09:00-0400"]),
        # 02:30 does not exist on the 29th: the moment of the change, once.
        ("30 2 * * *", STOCKHOLM, "2026-03-28T00:00", ["28 02:30+0100", "29 03:00+0200", "30 02:30+0200"]),
        ("*/30 2 * * *", STOCKHOLM, "2026-03-28T12:00", ["29 03:00+0200", "30 02:00+0200", "30 02:30+0200"]),
        ("0 2,3 * * *", STOCKHOLM, "2026-03-28T12:00", ["29 03:00+0200", "30 02:00+0200"]),
        ("30 0 * * *", CAIRO, "2026-04-23T12:00", ["24 01:00+0300", "25 00:30+0300"]),
        ("30 * * * *", STOCKHOLM, "2026-03-29T01:00", ["29 01:30+0100", "29 03:30+0200"]),
        # 02:30 occurs twice on the 25th of October: the first time only, unless it is every hour.
        ("30 2 * * *", STOCKHOLM, "2026-10-24T12:00", ["25 02:30+0200", "26 02:30+0100"]),
        ("0 */2 * * *", STOCKHOLM, "2026-10-25T00:30", ["25 02:00+0200", "25 04:00+0100"]),
        ("30 * * * *", STOCKHOLM, "2026-10-25T01:40", ["25 02:30+0200", "25 02:30+0100", "25 03:30+0100"]),
        # A change of half an hour.
        ("45 1 * * *", LORD_HOWE, "2026-04-04T12:00", ["05 01:45+1100", "06 01:45+1030"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00", ["04 02:30+1100", "05 02:15+1100"]),
    ],
)
def test_ticks_follow_the_clock_of_the_zone(cron: str, zone: str, start: str, expected: list[str]) -> None:
    times = CronTimes(cron, zone)
    after = seconds(start, zone)
    found = times.list_next(after, len(expected))
    assert shown(found, zone) == expected
    for tick in found:  # backwards the same, at the tick itself and just before the next one
        assert times.find_latest(tick) == tick == times.find_latest(times.find_next(tick) - 0.5)
    assert times.count_between(found[0], found[-1]) == len(found) - 1


def test_missed_ticks_are_counted_up_to_a_limit() -> None:
    times = CronTimes("* * * * *", "UTC")
    assert times.count_between(0.0, 600.0) == 10
    assert times.count_between(0.0, 1e9) == MAX_COUNTED


@pytest.mark.parametrize(
    "cron",
    [
        "", "x", "* * * *", "* * * * * *", "* * * * * * 2030", "61 * * * *", "0-99999999999 * * * *", "*/0 * * * *",
        "0 0 30 2 *", "0 0 1 1 sat#5", "@reboot", "R * * * *", "H * * * *", "a b c d e", "1," * 150 + "1 * * * *",
        "* * * * \x00", "٣ * * * *",
    ],
)  # fmt: skip
def test_an_expression_that_names_no_time_is_refused(cron: str) -> None:
    with pytest.raises(BadRequestError, match=r"cron.*@yearly|at most 200 characters") as refused:
        CronTimes(cron, "UTC")
    assert "acceptable" not in refused.value.message, "the words of the library"
    assert "out of range" not in refused.value.message


def test_a_time_is_shown_in_its_zone_with_the_offset() -> None:
    times = CronTimes("@daily", STOCKHOLM)
    assert times.format(seconds("2026-07-01T07:00", "UTC")) == "2026-07-01 09:00+02:00"


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "x" * 5000, "\x00"])
def test_a_time_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(BadRequestError, match="timezone"):
        CronTimes("@daily", zone)

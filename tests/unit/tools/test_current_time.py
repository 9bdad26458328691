"""`current_time`: the time in any zone."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from agent.core.errors import ToolError
from agent.tools import ToolContext
from mcp_tools.builtin.current_time import CurrentTimeTool

CONTEXT = ToolContext(run_id="run_1", owner="somebody")
WINTER = datetime(2026, 12, 31, 23, 30, 15, 999_999, tzinfo=UTC)
SUMMER = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "zone", "iso", "weekday"),
    [
        (WINTER, "UTC", "2026-12-31T23:30:15+00:00", "Thursday"),
        (WINTER, "Europe/Stockholm", "2027-01-01T00:30:15+01:00", "Friday"),
        (SUMMER, "Europe/Stockholm", "2026-07-01T14:00:00+02:00", "Wednesday"),
        (WINTER, "America/New_York", "2026-12-31T18:30:15-05:00", "Thursday"),
        (WINTER, "Asia/Kolkata", "2027-01-01T05:00:15+05:30", "Friday"),
        (WINTER, "Asia/Kathmandu", "2027-01-01T05:15:15+05:45", "Friday"),
        (SUMMER, "Pacific/Kiritimati", "2026-07-02T02:00:00+14:00", "Thursday"),
        (SUMMER, "Etc/GMT+12", "2026-07-01T00:00:00-12:00", "Wednesday"),
        (datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), "Europe/Paris", "2026-03-29T01:59:59+01:00", "Sunday"),
        (datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC), "Europe/Paris", "2026-03-29T03:00:00+02:00", "Sunday"),
        (datetime(2026, 10, 25, 1, 0, 0, tzinfo=UTC), "Europe/Paris", "2026-10-25T02:00:00+01:00", "Sunday"),
    ],
)
async def test_the_time_in_a_zone(now: datetime, zone: str, iso: str, weekday: str) -> None:
    result = await CurrentTimeTool(lambda: now).call({"timezone": zone}, CONTEXT)
    assert result.value == {
        "iso": iso,
        "date": iso[:10],
        "time": iso[11:19],
        "weekday": weekday,
        "timezone": zone,
        "unix": int(now.timestamp()),
    }
    assert result.text == f"It is {iso[11:19]} on {weekday}, {iso[:10]} ({zone})."


async def test_utc_unless_told_otherwise() -> None:
    local = WINTER.astimezone(timezone(timedelta(hours=-7)))
    result = await CurrentTimeTool(lambda: local).call({}, CONTEXT)
    assert result.text == "It is 23:30:15 on Thursday, 2026-12-31 (UTC)."


async def test_the_clock_is_this_machines() -> None:
    before = int(datetime.now(UTC).timestamp())
    result = await CurrentTimeTool().call({}, CONTEXT)
    assert isinstance(result.value, dict)
    unix = result.value["unix"]
    assert isinstance(unix, int)
    assert before <= unix <= int(datetime.now(UTC).timestamp())


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Stokholm", "did you mean .*Europe/Stockholm"),
        ("", "use a name like Europe/Stockholm"),
        ("Europe", "did you mean"),
        ("the moon", "use a name like Europe/Stockholm"),
        ("../../../etc/passwd", "use a name like Europe/Stockholm"),
        ("/etc/localtime", ""),
        ("zone.tab", ""),
        ("UTC\x00", ""),
        ("Europe/", ""),
    ],
    ids=ascii,
)
async def test_an_unknown_zone_is_refused_with_a_hint(zone: str, hint: str) -> None:
    with pytest.raises(ToolError, match=f"there is no time zone '.*{hint}"):
        await CurrentTimeTool().call({"timezone": zone}, CONTEXT)


async def test_a_name_that_is_no_name_at_all_does_not_reach_the_files() -> None:
    with pytest.raises(ValidationError):
        await CurrentTimeTool().call({"timezone": "A" * 65}, CONTEXT)


@pytest.mark.parametrize(("city", "zone"), [("Stockholm", "Europe/Stockholm"), ("new york", "America/New_York")])
async def test_a_city_stands_for_its_zone(city: str, zone: str) -> None:
    result = await CurrentTimeTool(lambda: WINTER).call({"timezone": city}, CONTEXT)
    assert isinstance(result.value, dict)
    assert result.value["timezone"] == zone

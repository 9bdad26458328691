"""`StatedValues`: moments and durations at the ends of the calendar, in any zone."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.planning.rounds.known_words import KnownWords
from agent.text.own_words import OwnWords
from agent.text.stated_values import StatedValues

ZONES = st.sampled_from([None, *map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "UTC"))])
OFFSETS = st.sampled_from(["", "Z", "+23:59", "-23:59"])
ENDS = [datetime.fromisoformat(one) for one in ("0001-01-01", "9999-12-31T23:59:59")]
MOMENTS = st.one_of(st.sampled_from(ENDS), st.datetimes().map(lambda one: one.replace(microsecond=0)))
UNITS = st.sampled_from(["seconds", "hours", "days", "million weeks", "trillion hours"])


@example(datetime.fromisoformat("9999-12-31T23:59:59"), "Z", 1, "hours", ZoneInfo("Europe/Berlin"))
@example(datetime.fromisoformat("0001-01-01"), "Z", 1, "hours", ZoneInfo("America/New_York"))
@example(datetime.fromisoformat("2026-12-04T16:00"), "", 20, "million weeks", None)
@given(MOMENTS, OFFSETS, st.integers(0, 10**30), UNITS, ZONES)
def test_no_moment_and_no_duration_raises(
    moment: datetime, offset: str, count: int, unit: str, zone: ZoneInfo | None
) -> None:
    value = moment.isoformat() + offset
    stated = [f"{count} {unit} since 4 December 2026 15:00, PT{count}H", f"at {moment.hour}:{moment.minute:02}"]
    for texts in (stated, [*stated, f"until {moment:%d %B} {moment.year:04}"]):
        StatedValues(texts, zone=zone).hold(value)
        OwnWords(*texts, zone=zone).hold(value, "end")
        KnownWords(texts, zone=zone).hold_quantity(value, "end")


YEARS = [datetime.fromisoformat(one) for one in ("1900-01-01", "2100-01-01")]


@given(st.datetimes(*YEARS), st.integers(1, 900))
def test_what_ends_after_a_stated_duration_is_held_and_nothing_beside_it(start: datetime, minutes: int) -> None:
    own = StatedValues([f"on {start:%Y-%m-%d} at {start:%H:%M} for {minutes} minutes"])
    end = start.replace(second=0, microsecond=0) + timedelta(minutes=minutes)
    assert own.hold(end.isoformat())
    assert not own.hold((end + timedelta(minutes=1)).isoformat())


@pytest.mark.parametrize("value", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_moment_at_the_end_of_the_calendar_is_held_where_it_is_stated_only(value: str) -> None:
    assert OwnWords(f"never: {value}", zone=ZoneInfo("Europe/Berlin")).hold(value)
    assert not OwnWords("never", zone=ZoneInfo("Europe/Berlin")).hold(value)
    assert not OwnWords("never", zone=timezone(timedelta(hours=-5))).hold(value)

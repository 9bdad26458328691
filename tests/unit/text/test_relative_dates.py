"""Days that words name from the present, in four languages."""

from datetime import date
from time import perf_counter

import pytest

from agent.text.own_words import OwnWords
from agent.text.relative_dates import list_resolved

TODAY = date(2026, 11, 29)  # a Sunday


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("tomorrow at 7pm", ["2026-11-30", "2026-11-30T19:00"]),
        ("Book it for Tomorrow", ["2026-11-30"]),
        ("i morgon kl 19", ["2026-11-30", "2026-11-30 19:00"]),
        ("übermorgen um 9 Uhr", ["2026-12-01", "2026-12-01T09:00:00"]),
        ("demain", ["2026-11-30"]),
        ("today", ["2026-11-29"]),
        ("on Friday", ["2026-12-04"]),
        ("next Friday", ["2026-12-04", "2026-12-11"]),
        ("nästa måndag", ["2026-11-30", "2026-12-07"]),
        ("lundi prochain", ["2026-12-07"]),
        ("in two weeks", ["2026-12-13"]),
        ("om 3 dagar", ["2026-12-02"]),
    ],
)
def test_what_words_name_from_the_present_is_the_persons(text: str, values: list[str]) -> None:
    own = OwnWords(*list_resolved(text, TODAY), text)
    assert [value for value in values if not own.hold(value)] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tomorrow at 7pm", "2026-12-01"),
        ("tomorrow at 7pm", "2026-11-30T20:00"),
        ("on Friday", "2026-12-11"),
        ("it took 3 days", "2026-12-02"),
        ("for half an hour", 30),
        ("for half an hour", 1800),
        ("last Friday's report", "2026-12-04"),
        ("vendredi dernier", "2026-12-04"),
        ("Guten morgen", "2026-11-30"),
        ("a Morgen of land", "2026-11-30"),
        ("the halfback ran an hourglass", 60),
        ("in 99999 weeks", "2027-01-01"),
    ],
)
def test_nothing_else_is(text: str, value: str | int) -> None:
    assert not OwnWords(*list_resolved(text, TODAY), text).hold(value)


@pytest.mark.parametrize("hostile", ["in 1 day " * 5_000, "next friday " * 5_000, "an hour " * 5_000, "in " * 20_000])
def test_a_long_text_is_read_quickly(hostile: str) -> None:
    started = perf_counter()
    list_resolved(hostile, TODAY)
    assert perf_counter() - started < 10

"""The days of calendar entries, and their descriptions in HTML."""

from pathlib import Path

import pytest

from tests.unit.ingest.test_mail_coverage import body, complete, part, read


def write_entry(*lines: str) -> str:
    entry = ("BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:Fair", *lines, "END:VEVENT", "END:VCALENDAR", "")
    return part("text/calendar; charset=utf-8", "\r\n".join(entry))


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        (["DTSTART;VALUE=DATE:20250501", "DTEND;VALUE=DATE:20250503"], "Start: 2025-05-01\nEnd: 2025-05-02"),
        (["DTEND:20250101", "DTSTART:20241230"], "End: 2024-12-31\nStart: 2024-12-30"),
        (["DTSTART;VALUE=DATE:20250501", "DTEND;VALUE=DATE:20250502"], "Date: 2025-05-01"),
        (["DTSTART;VALUE=DATE:20250501", "DTEND;VALUE=DATE:20250501"], "Date: 2025-05-01"),
        (
            ["DTSTART:20250501T090000Z", "DTEND:20250503T100000Z"],
            "Start: 2025-05-01 09:00 UTC\nEnd: 2025-05-03 10:00 UTC",
        ),
        (["DTSTART;VALUE=DATE:20250501", "DURATION:P2D"], "Start: 2025-05-01\nDuration: P2D"),
        (["DTSTART:00010101", "DTEND:00010101"], "Date: 0001-01-01"),
        (["DTEND;VALUE=DATE:00010101"], "End: 0001-01-01"),
        (["DTSTART:20259901", "DTEND:20259903"], "Start: 2025-99-01\nEnd: 2025-99-03"),
    ],
)
def test_an_entry_of_whole_days_ends_on_its_last_one(lines: list[str], days: str, tmp_path: Path) -> None:
    assert body(read(write_entry(*lines), tmp_path)) == [f"Event: Fair\n{days}"]


HTML = "X-ALT-DESC;FMTTYPE=text/html:<html><body><p>Bring <b>keys</b>\\, and coffee</p></body></html>"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([HTML], "Description: Bring keys, and coffee"),
        (["DESCRIPTION:Bring keys\\, and coffee", HTML], "Description: Bring keys, and coffee"),
        (["DESCRIPTION:See the page.", HTML], "Description: See the page.\nDescription: Bring keys, and coffee"),
    ],
)
def test_a_description_in_html_is_read_where_it_says_something_else(
    lines: list[str], shown: str, tmp_path: Path
) -> None:
    output = read(write_entry(*lines), tmp_path)
    assert body(output) == [f"Event: Fair\n{shown}"]
    assert complete(output)


def test_a_description_that_is_nested_too_deep_is_read_as_its_words(tmp_path: Path) -> None:
    page = f"X-ALT-DESC;FMTTYPE=text/html:{'<div>' * 400}Bring keys &amp\\; coffee{'</div>' * 400}"
    assert body(read(write_entry(page), tmp_path)) == ["Event: Fair\nDescription: Bring keys & coffee"]


def test_coverage_falls_when_a_description_in_html_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.features.documents.engine.ingest.parsers import calendar

    monkeypatch.setattr(calendar, "_PAGES", frozenset())
    monkeypatch.setattr(calendar, "_LABELS", {"SUMMARY": "Event"})
    output = read(write_entry(HTML), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"calendar entry": 4}


def test_a_card_of_a_person_is_read_as_it_is_meant(tmp_path: Path) -> None:
    card = (
        "BEGIN:VCARD",
        "VERSION:2.1",
        "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg",
        "TEL;CELL:+49 170 1",
        "TEL;WORK:+49 30 2",
        "ORG:Gannet Har",
        " bour",
        "END:VCARD",
        "",
    )
    output = read(part("text/x-vcard; charset=utf-8", "\r\n".join(card)), tmp_path)
    read_lines = "\n".join(body(output)).splitlines()
    assert read_lines[2].endswith(":Müller;Jörg")
    assert read_lines[3:6] == ["TEL;CELL:+49 170 1", "TEL;WORK:+49 30 2", "ORG:Gannet Harbour"]
    assert complete(output)

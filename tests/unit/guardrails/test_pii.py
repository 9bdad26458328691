"""Personal data is found where its own rules hold, and nowhere else."""

import pytest

from agent.guardrails.pii import personal


def found(text: str) -> list[tuple[str, str]]:
    return [(kind, text[span.start : span.end]) for kind, span in personal(text)]


@pytest.mark.row("S003-04")
@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("write to jane.doe+news@mail.example.co.uk, please", "EMAIL", "jane.doe+news@mail.example.co.uk"),
        ("<mailto:å.ö@exempel.se>", "EMAIL", "å.ö@exempel.se"),
        ("pay with 4111 1111 1111 1111 now", "CARD", "4111 1111 1111 1111"),
        ("pay with 3782-822463-10005 now", "CARD", "3782-822463-10005"),
        ("my maestro card 676249999936 is lost", "CARD", "676249999936"),
        ("IBAN DE89 3704 0044 0532 0130 00 thanks", "IBAN", "DE89 3704 0044 0532 0130 00"),
        ("to gb82west12345698765432.", "IBAN", "gb82west12345698765432"),
        ("her SSN is 536-90-4399", "SSN", "536-90-4399"),
        ("social security: 536904399", "SSN", "536904399"),
        ("personnummer 811228-9874", "PERSONNUMMER", "811228-9874"),
        ("född 19811228-9874", "PERSONNUMMER", "19811228-9874"),
        ("codice RCCMNL83S18D969H", "ID", "RCCMNL83S18D969H"),
        ("DNI 54362315K", "ID", "54362315K"),
        ("AHV 756.9217.0769.85", "ID", "756.9217.0769.85"),
        ("passport no. X1234567", "PASSPORT", "X1234567"),
        ("my driver's license number is F255-9215-0094", "LICENCE", "F255-9215-0094"),
        ("login from 81.2.69.142 failed", "IP", "81.2.69.142"),
        ("login from 2a02:6b8::2:242 failed", "IP", "2a02:6b8::2:242"),
        ("call +46 70 174 06 05", "PHONE", "+46 70 174 06 05"),
        ("Tel. 030 901820", "PHONE", "030 901820"),
        ("(415) 555-2671 is hers", "PHONE", "(415) 555-2671"),
        ("ring me: 020 7946 0958", "PHONE", "020 7946 0958"),
        ("on 01 42 68 53 00 you get the office", "PHONE", "01 42 68 53 00"),
    ],
)
def test_finds(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "the order 4111 1111 1111 1112 has a wrong check digit",
        "IBAN DE89 3704 0044 0532 0130 01 is mistyped",
        "version 10.2.3.4 and 192.168.1.4, 127.0.0.1, ::1 and 10.0.0.1",
        "from 2021-02-03 to 2021-03-04, or 01.02.2021 12:30",
        "in 1995-2003 there were 1 250 000 of 7 800 000 000 people",
        "invoice 2021 0043 5531 and ticket 55 123 456",
        "3.14159265358979 and 1,234,567.89 and 0.000123456",
        "SSN 000-12-3456 and 666-12-3456 do not exist",
        "x@y and @home and a@b. and user@localhost",
        "https://example.org/item/0301234567?ref=4155552671",
        "quality 0.96/0.93/0.85, needs brotli>=1.2.0.0 and ~=1.1.0.11",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "at 12:30:45 the ratio was 1:2:3:4:5:6:7:99999",
        "ISBN 978-3-16-148410-0, EAN 4006381333931",
        "00000000-0000-0000-0000-000000000000",
    ],
)
def test_leaves(text: str) -> None:
    assert found(text) == []


def test_overlapping_forms_are_reported_once() -> None:
    assert found("IBAN GB82 WEST 1234 5698 7654 32, card 5555 5555 5555 4444") == [
        ("IBAN", "GB82 WEST 1234 5698 7654 32"),
        ("CARD", "5555 5555 5555 4444"),
    ]


@pytest.mark.parametrize("text", ["", "\x00", "\ud800@\udfff", "@", "a" * 70 + "@example.org", "1" * 40])
def test_odd_texts_do_no_harm(text: str) -> None:
    for _, value in found(text):
        assert value in text

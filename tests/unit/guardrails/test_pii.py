"""Personal data is found where its own rules hold, and nowhere else."""

# ruff: noqa: RUF001 - digits that look like others are the point here

import random
import re
import sys
from collections.abc import Iterator

import pytest

from agent.policy.guardrails import phones, pii, spans
from agent.policy.guardrails.identity_formats import IDENTITY_FORMATS
from agent.policy.guardrails.pii import find_personal_data


def find_pii(text: str) -> list[tuple[str, str]]:
    return [(kind, text[span.start : span.end]) for kind, span in find_personal_data(text)]


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
        ("NHS number 943 476 5919", "ID", "943 476 5919"),
        ("NI number AB 12 34 56 C", "ID", "AB 12 34 56 C"),
        ("身份证 11010519491231002X", "ID", "11010519491231002X"),
        ("36805280109 (isikukood)", "ID", "36805280109"),
        ("Passeport n° 12AB34567", "PASSPORT", "12AB34567"),
        ("паспорт 4509 123456", "PASSPORT", "4509 123456"),
        ("手机 138 0013 8000", "PHONE", "138 0013 8000"),
        ("seen from 203.0.113.77 at noon", "IP", "203.0.113.77"),
        ("compte BE68 5390 0754 7034", "IBAN", "BE68 5390 0754 7034"),
        ("DNI 54362315K", "ID", "54362315K"),
        ("AHV 756.9217.0769.85", "ID", "756.9217.0769.85"),
        ("passport no. X1234567", "PASSPORT", "X1234567"),
        ("my driver's license number is F255-9215-0094", "LICENCE", "F255-9215-0094"),
        ("DLno 12345678", "LICENCE", "12345678"),
        ("login from 81.2.69.142 failed", "IP", "81.2.69.142"),
        ("login from 2a02:6b8::2:242 failed", "IP", "2a02:6b8::2:242"),
        ("call +46 70 174 06 05", "PHONE", "+46 70 174 06 05"),
        ("Tel. 030 901820", "PHONE", "030 901820"),
        ("(415) 555-2671 is hers", "PHONE", "(415) 555-2671"),
        ("ring me: 020 7946 0958", "PHONE", "020 7946 0958"),
        ("on 01 42 68 53 00 you get the office", "PHONE", "01 42 68 53 00"),
        ("card 4111\u00a01111\u00a01111\u00a01111 ok", "CARD", "4111\u00a01111\u00a01111\u00a01111"),
        ("card 4111.1111.1111.1111 ok", "CARD", "4111.1111.1111.1111"),
        ("card 4111\u20131111\u20131111\u20131111 ok", "CARD", "4111\u20131111\u20131111\u20131111"),
        ("card=4111111111111111", "CARD", "4111111111111111"),
        ("４１１１１１１１１１１１１１１１", "CARD", "４１１１１１１１１１１１１１１１"),
        ("4\u200b111 1111 1111 1111", "CARD", "4\u200b111 1111 1111 1111"),
        (
            "IBAN\u00a0DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000",
            "IBAN",
            "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000",
        ),
        ("to DE89-3704-0044-0532-0130-00.", "IBAN", "DE89-3704-0044-0532-0130-00"),
        ("my ssn is 536 90 4399", "SSN", "536 90 4399"),
        ("ip=8.8.4.4", "IP", "8.8.4.4"),
        ("from ::ffff:8.8.8.8 at noon", "IP", "::ffff:8.8.8.8"),
        ("at 6e40:4041:c617:e898:c11:40d2:c669:2eb4", "IP", "6e40:4041:c617:e898:c11:40d2:c669:2eb4"),
        ("tel:+46701234567", "PHONE", "+46701234567"),
        ('{"phone":"0701234567"}', "PHONE", "0701234567"),
        ("call +46\u00a070 123 45 67", "PHONE", "+46\u00a070 123 45 67"),
        ("call\u200b+46701234567", "PHONE", "+46701234567"),
        ("?mail=anna%40example.se&x=1", "EMAIL", "anna%40example.se"),
        ("anna&#64;example.se", "EMAIL", "anna&#64;example.se"),
        ("anna\u200b@example.se", "EMAIL", "anna\u200b@example.se"),
        ("anna (at) example (dot) se", "EMAIL", "anna (at) example (dot) se"),
        ("anna <at > example.se", "EMAIL", "anna <at > example.se"),
        ("write to anna at example dot com", "EMAIL", "anna at example dot com"),
        ('"anna b"@example.se', "EMAIL", '"anna b"@example.se'),
    ],
)
def test_finds(text: str, kind: str, value: str) -> None:
    assert find_pii(text) == [(kind, value)]


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
        "a::b, ffff::1, dead::beef and std::vector::iterator",
        "call foo(1234567890), or git clone git@github.com:a/b",
        "Section 12.3.4.5, phone models 13 14 15, ref 5105105105105100",
        "Mozilla/5.0 Chrome/120.0.0.0 and version=8.8.4.4",
        "00:1A:2B:FF:FE:3C:4D:5E",
        "a meeting at noon dot the end, call 10 20 30 times",
        "00000000-0000-0000-0000-000000000000",
        "Part no. 0445-110-369 replaces 0445-110-368.",
        "DOI 10.1016/j.cell.2019.05.031, PMID 31178122",
        "passport control opens at noon",
    ],
)
def test_leaves(text: str) -> None:
    assert find_pii(text) == []


def test_an_iban_does_not_hide_the_next() -> None:
    text = "to SE45 5000 0000 0583 9825 7466 or AE070331234567890123456"
    assert [kind for kind, _ in find_pii(text)] == ["IBAN", "IBAN"]


def test_overlapping_forms_are_reported_once() -> None:
    assert find_pii("IBAN GB82 WEST 1234 5698 7654 32, card 5555 5555 5555 4444") == [
        ("IBAN", "GB82 WEST 1234 5698 7654 32"),
        ("CARD", "5555 5555 5555 4444"),
    ]


@pytest.mark.parametrize("text", ["", "\x00", "\ud800@\udfff", "@", "a" * 70 + "@example.org", "1" * 40])
def test_odd_texts_do_no_harm(text: str) -> None:
    for _, value in find_pii(text):
        assert value in text


class PiecewisePattern:
    """A pattern that notes how many characters it searches at a time."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.longest = 0

    def finditer(self, text: str, start: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[str]]:
        self.longest = max(self.longest, min(end, len(text)) - start)
        return self.pattern.finditer(text, start, end)


def test_no_pattern_holds_other_threads_up_over_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search keeps Python's lock until it finds something, which a text may put off for a megabyte."""
    seen = PiecewisePattern(phones._CANDIDATE)
    monkeypatch.setattr(phones, "_CANDIDATE", seen)
    assert list(phones.find_phones("word 12 " * 50_000 + "call +46 70 123 45 67")) != []
    assert 0 < seen.longest <= spans.PIECE_CHARS


def test_a_text_in_pieces_has_the_matches_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "PIECE_CHARS", 1_000)
    chance = random.Random(7)
    text = "".join(chance.choice("0123456789- +./,(A") for _ in range(4_000))
    for pattern in (phones._CANDIDATE, pii._CARD, pii._IPV4, pii._IPV6, *(one.pattern for one in IDENTITY_FORMATS)):
        pieces = [one.span() for one in spans.iter_matches(pattern, text)]
        assert pieces == [one.span() for one in pattern.finditer(text)], pattern.pattern

"""Every part of a mail that a mail program shows is read, in its order; the others are named."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers import calendar
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput

PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"


def part(kind: str, body: str, *fields: str) -> str:
    return "\r\n".join([f"Content-Type: {kind}", *fields, "", body])


def multipart(kind: str, *parts: str, boundary: str = "b1") -> str:
    inner = "".join(f"--{boundary}\r\n{one}\r\n" for one in parts)
    return part(f'multipart/{kind}; boundary="{boundary}"', f"{inner}--{boundary}--\r\n")


def read(content: str, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "mail.eml"
    path.write_bytes(f"From: Ann <ann@example.org>\r\nSubject: Berths\r\nMIME-Version: 1.0\r\n{content}".encode())
    return read_file(ParserInput(file_path=str(path), file_type="eml"), max_bytes=2**20)


def body(output: ParserOutput) -> list[str]:
    return [chunk.content for chunk in output.chunks[2:]]


def complete(output: ParserOutput) -> bool:
    return output.coverage is not None and output.coverage.share == 1.0


def test_all_inline_texts_are_read_in_order(tmp_path: Path) -> None:
    picture = part("image/png; name=a.png", "aGk=", "Content-Disposition: inline", "Content-Transfer-Encoding: base64")
    inner = multipart("related", part(HTML, "<p>Third.</p>"), boundary="b2")
    output = read(multipart("mixed", part(PLAIN, "First."), picture, part(PLAIN, "Second."), inner), tmp_path)
    assert body(output) == ["First.", "Second.", "Third."]
    assert output.uncertainties == ("attachments were not read: a.png",)
    assert complete(output)


@pytest.mark.parametrize("plain", ["", "_____\r\nlist footer: unsubscribe"])
def test_the_page_is_read_where_the_plain_text_is_empty_or_a_footer(plain: str, tmp_path: Path) -> None:
    page = part(HTML, "<p>The dredging starts on 3 June at the north quay.</p>")
    output = read(multipart("alternative", part(PLAIN, plain), page), tmp_path)
    assert body(output) == ["The dredging starts on 3 June at the north quay."]
    assert complete(output)


def test_equal_alternatives_are_read_once_as_plain_text(tmp_path: Path) -> None:
    output = read(multipart("alternative", part(PLAIN, "Same *text*."), part(HTML, "<p>Same text.</p>")), tmp_path)
    assert body(output) == ["Same *text*."]
    assert complete(output)


def test_an_invitation_is_read_beside_its_text(tmp_path: Path) -> None:
    lines = [
        "BEGIN:VCALENDAR", "BEGIN:VTIMEZONE", "DTSTART:19700101T000000", "END:VTIMEZONE", "BEGIN:VEVENT",
        "SUMMARY:Audit\\, part 2", "DTSTART;TZID=Europe/Oslo:20260310T090000", "DTEND:20260310T100000Z",
        "LOCATION:Quay", "  3", "ORGANIZER;CN=Bo Lee:mailto:bo@example.org", "BEGIN:VALARM", "SUMMARY:no",
        "END:VALARM", "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    calendar = part("text/calendar; method=REQUEST", "\r\n".join(lines))
    output = read(multipart("alternative", part(PLAIN, "You are invited."), calendar), tmp_path)
    assert body(output) == [
        "You are invited.",
        "Event: Audit, part 2\nStart: 2026-03-10 09:00 (Europe/Oslo)\nEnd: 2026-03-10 10:00 UTC\nLocation: Quay 3\n"
        "Organizer: Bo Lee <bo@example.org>",
    ]
    assert complete(output)


@pytest.mark.parametrize("kind", ["multipart/mixed", 'multipart/mixed; boundary="never"'])
def test_parts_without_a_boundary_are_told_and_read_as_one_text(kind: str, tmp_path: Path) -> None:
    output = read(part(kind, "It claims parts and has none: pump 6 leaks."), tmp_path)
    assert body(output) == ["It claims parts and has none: pump 6 leaks."]
    assert any("no boundary" in note for note in output.uncertainties)
    assert complete(output)


def test_a_forwarded_mail_is_read(tmp_path: Path) -> None:
    forwarded = part("message/rfc822", f"From: Eve <eve@example.org>\r\nSubject: Old\r\n{part(PLAIN, 'Its text.')}")
    output = read(multipart("mixed", part(PLAIN, "See below."), forwarded), tmp_path)
    assert body(output) == ["See below.", "Forwarded message\nOld\nFrom: Eve <eve@example.org>", "Its text."]
    assert complete(output)


def test_a_mail_that_is_attached_is_read_with_what_is_attached_to_it(tmp_path: Path) -> None:
    notes = part(PLAIN, "x", "Content-Disposition: attachment; filename=notes.txt")
    inner = f"From: Eve <eve@example.org>\r\nSubject: Old\r\n{multipart('mixed', part(PLAIN, 'Fee 450.'), notes)}"
    inner = inner.replace("b1", "b2")
    attached = part("message/rfc822", inner, "Content-Disposition: attachment; filename=old.eml")
    output = read(multipart("mixed", part(PLAIN, "See below."), attached), tmp_path)
    assert body(output) == ["See below.", "Forwarded message\nOld\nFrom: Eve <eve@example.org>", "Fee 450."]
    assert output.uncertainties == ("attachments were not read: notes.txt",)
    assert complete(output)


def test_encrypted_parts_and_attachments_are_told(tmp_path: Path) -> None:
    secret = part("application/pkcs7-mime; name=smime.p7m", "x", "Content-Disposition: attachment; filename=smime.p7m")
    notes = part(PLAIN, "not shown", "Content-Disposition: attachment; filename=notes.txt")
    output = read(multipart("mixed", part(PLAIN, "Text."), secret, notes), tmp_path)
    assert body(output) == ["Text."]
    assert output.uncertainties == (
        "an encrypted or signed part was not read: smime.p7m",
        "attachments were not read: notes.txt",
    )
    assert output.coverage is not None
    assert output.coverage.omitted == {"encrypted part": 1, "attachment": 1}


def test_coverage_falls_when_a_part_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.features.documents.engine.ingest.parsers import mail

    monkeypatch.setattr(mail, "iter_entries", lambda text: iter(["Event: other"]))
    calendar = part("text/calendar", "BEGIN:VEVENT\r\nSUMMARY:Audit\r\nLOCATION:Quay 3\r\nEND:VEVENT")
    output = read(multipart("mixed", part(PLAIN, "Come."), calendar), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"calendar entry": 3}


def test_alternatives_that_differ_are_both_read(tmp_path: Path) -> None:
    page = part(HTML, "<p>The crane is booked for 3 June at the north quay.</p>")
    output = read(
        multipart("alternative", part(PLAIN, "Invoice 4711 is due.\r\n\r\nThe crane is booked."), page), tmp_path
    )
    assert body(output) == ["The crane is booked for 3 June at the north quay.", "Invoice 4711 is due."]
    assert complete(output)


@pytest.mark.parametrize(
    ("encoding", "stored"),
    [("BASE64 ", "UmVudCBpcyA5MC4="), ("base64", "Rent is 90."), ("x-unknown", "Rent is 90."), ("8bit", "Rent is 90.")],
)
def test_a_text_is_read_whatever_its_encoding_claims(encoding: str, stored: str, tmp_path: Path) -> None:
    output = read(part(PLAIN, f"{stored}\r\n", f"Content-Transfer-Encoding: {encoding}"), tmp_path)
    assert body(output) == ["Rent is 90."]
    assert complete(output)


def test_a_report_of_a_mail_server_is_read(tmp_path: Path) -> None:
    report = part(
        "message/delivery-status",
        "Reporting-MTA: dns; mx\r\n\r\nFinal-Recipient: rfc822; bo@example.org\r\nStatus: 5.1.1\r\n",
    )
    output = read(multipart("report", part(PLAIN, "Not delivered."), report), tmp_path)
    assert body(output) == [
        "Not delivered.", "Reporting-MTA: dns; mx", "Final-Recipient: rfc822; bo@example.org\nStatus: 5.1.1",
    ]  # fmt: skip
    assert complete(output)


def test_marks_of_enriched_text_go_and_its_brackets_stay(tmp_path: Path) -> None:
    output = read(part("text/enriched", "<bold>Fee</bold> <<90> now"), tmp_path)
    assert body(output) == ["Fee <90> now"]


def test_an_entry_names_its_other_days_and_its_meeting(tmp_path: Path) -> None:
    entry = (
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Board\r\nDTSTART:20260302T090000Z\r\nRRULE:FREQ=WEEKLY\r\n"
        "EXDATE:20260309T090000Z,20260316T090000Z\r\nURL:https://meet.example/7\r\nCATEGORIES:Finance\r\n"
        "END:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    text = body(read(part("text/calendar", entry), tmp_path))[0]
    assert "Not on: 2026-03-09 09:00 UTC, 2026-03-16 09:00 UTC" in text
    assert "Link: https://meet.example/7\nCategories: Finance" in text


def test_a_calendar_says_who_refused_what_was_cancelled_and_its_whole_text(tmp_path: Path) -> None:
    lines = (
        "BEGIN:VCALENDAR", "METHOD:CANCEL", "BEGIN:VEVENT", "SUMMARY:Meet", "RECURRENCE-ID:20260508T100000Z",
        'ATTENDEE;CN=Ann "Oak" Lee;PARTSTAT=DECLINED:mailto:ann@example.org', "LOCATION:Quay\u2028three",
        "DESCRIPTION;ENCODING=QUOTED-PRINTABLE:Bring keys=0D=0A=", "of pier =C3=A9", "END:VEVENT", "END:VCALENDAR",
    )  # fmt: skip
    output = read(part("text/calendar; charset=utf-8", "\r\n".join(lines)), tmp_path)
    assert body(output) == [
        "Method: CANCEL\nEvent: Meet\nOccurrence: 2026-05-08 10:00 UTC\nAttendee: Ann Oak Lee <ann@example.org> "
        "(declined)\nLocation: Quay\nthree\nDescription: Bring keys\nof pier é"
    ]
    assert complete(output)


def test_each_calendar_of_a_file_has_its_own_method(tmp_path: Path) -> None:
    entries = (("METHOD:CANCEL", "Board"), ("VERSION:2.0", "Choir"))
    calendars = "\r\n".join(
        f"BEGIN:VCALENDAR\r\n{line}\r\nBEGIN:VEVENT\r\nSUMMARY:{name}\r\nEND:VEVENT\r\nEND:VCALENDAR"
        for line, name in entries
    )
    output = read(part("text/calendar; charset=utf-8", calendars), tmp_path)
    assert body(output) == ["Method: CANCEL\nEvent: Board", "Event: Choir"]
    assert complete(output)


def test_coverage_falls_when_a_calendar_loses_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendar, "_UNANSWERED", "DECLINED")
    entry = "BEGIN:VEVENT\r\nSUMMARY:Meet\r\nATTENDEE;PARTSTAT=DECLINED:mailto:ann@example.org\r\nEND:VEVENT"
    output = read(part("text/calendar; charset=utf-8", entry), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"calendar entry": 1}


def test_addresses_that_get_copies_and_answers_are_shown(tmp_path: Path) -> None:
    output = read("Reply-To: desk@example.org\r\nBcc: cy@example.org\r\n" + part(PLAIN, "Hi."), tmp_path)
    assert output.chunks[1].content.splitlines()[1:] == ["Reply-To: desk@example.org", "Bcc: cy@example.org"]

"""Mailboxes, and mails whose parts stand where few programs put them, lose nothing without a word about it."""

import base64
import time
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.connectors.content_types import detect_file_type
from gateway.features.documents.engine.ingest.coverage import mail_source, measure_coverage
from gateway.features.documents.engine.ingest.parsers import mail, mail_encoding
from gateway.features.documents.engine.ingest.parsers.mail_mending import split_mailbox
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support.odd_mail import mailbox, named_part
from tests.unit.ingest.test_mail_coverage import HTML, PLAIN, body, complete, multipart, part, read

FIRST = "From: a@example.org\nSubject: Berth 7\n" + multipart("mixed", part(PLAIN, "Rent is 512."))
CODED = f"Content-Transfer-Encoding: base64\n\n{base64.b64encode('Größe 42.'.encode()).decode()}\n"
SECOND = f"From: b@example.org\nSubject: Berth 8\nContent-Type: {PLAIN}\n{CODED}"
QUOTED = "From: c@example.org\nSubject: Berth 9\n\nHello,\n\n>From May on 17:30 is high tide.\n"


def read_box(data: bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "box.mbox"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="eml"), max_bytes=2**20)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_each_mail_of_a_mailbox_is_read(line_end: str, tmp_path: Path) -> None:
    output = read_box(mailbox(FIRST, SECOND, QUOTED, line_end=line_end), tmp_path)
    texts = [chunk.content for chunk in output.chunks]
    assert [text for text in texts if not text.startswith("From:")] == [
        "Berth 7", "Rent is 512.", "Berth 8", "Größe 42.", "Berth 9", "Hello,", "From May on 17:30 is high tide.",
    ]  # fmt: skip
    assert output.chunks[5].heading_path == ("Berth 8",)
    assert output.metadata["mails"] == 3
    assert complete(output)
    assert detect_file_type("application/mbox", "") == detect_file_type("", "archive.mbox") == "eml"


def test_coverage_falls_when_only_the_first_mail_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mail, "split_mailbox", lambda data: [data])
    output = read_box(mailbox(FIRST, SECOND), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"text": 2}


@pytest.mark.parametrize(
    "line",
    ["From Monday 09:30 we open.", "From 09:30 on 1 May 2026 we open.\nNote: bring keys.", "From a@b.io 9:30 2026"],
)
def test_a_line_of_a_mail_that_begins_as_a_separator_is_text(line: str, tmp_path: Path) -> None:
    talk = f"From: c@example.org\nSubject: Berth 9\n\nHello,\n\n{line}\n\nSee you.\n"
    output = read_box(mailbox(FIRST, talk, SECOND).replace(b">From", b"From"), tmp_path)
    assert output.metadata["mails"] == 3
    text = "\n".join(chunk.content for chunk in output.chunks)
    assert line.split("\n", maxsplit=1)[0] in text
    assert "See you." in text
    assert complete(output)
    alone = read_box(mailbox(talk).replace(b">From", b"From"), tmp_path)
    assert "See you." in "\n".join(chunk.content for chunk in alone.chunks)


@pytest.mark.parametrize(
    "data",
    [b"From " + b"00:00 " * 20_000 + b"\n x", b"From a 10:00 2026\nTo: a\n\n" + b"x\n" * 60_000],
    ids=["times", "lines"],
)
def test_long_mailboxes_are_split_in_time_that_grows_with_them(data: bytes) -> None:
    started = time.thread_time()
    split_mailbox(data)
    mail_source.read_source(data, "eml", "", 0.0)
    assert time.thread_time() - started < 1


def test_attachments_of_the_alternative_that_is_not_read_are_named(tmp_path: Path) -> None:
    page = part(HTML, "<p>Before the plan.</p>")
    plan = named_part("application/pdf", "plan.pdf", "Content-Disposition: inline")
    logo = named_part("image/png", "logo.png", "Content-ID: <logo>")
    related = multipart("mixed", page, plan, logo, part(HTML, "<p>Behind it.</p>"), boundary="b2")
    output = read(multipart("alternative", part(PLAIN, "Before the plan. Behind it."), related), tmp_path)
    assert body(output) == ["Before the plan. Behind it."]
    assert output.uncertainties == ("attachments were not read: plan.pdf",)


def test_an_alternative_for_one_program_is_no_text(tmp_path: Path) -> None:
    amp = part("text/x-amp-html", "<html amp4email><p>Rent is 512 euros, to be paid here and now.</p></html>")
    output = read(
        multipart("alternative", part(PLAIN, "Rent?"), amp, part(HTML, "<p>Rent is 512 euros.</p>")), tmp_path
    )
    assert body(output) == ["Rent is 512 euros."]
    assert complete(output)


def test_a_text_in_a_format_of_its_own_is_a_file(tmp_path: Path) -> None:
    rich = part("text/rtf", r"{\rtf1\ansi Rent is 512 euros for berth {\b seven}.}")
    output = read(multipart("alternative", part(PLAIN, "Rent is 512."), rich), tmp_path)
    assert body(output) == ["Rent is 512."]
    assert output.uncertainties == ("attachments were not read: text/rtf",)
    assert complete(output)


def test_what_follows_the_last_part_is_reported(tmp_path: Path) -> None:
    output = read(multipart("mixed", part(PLAIN, "Rent is 512.")) + "A list adds this.\r\n", tmp_path)
    assert body(output) == ["Rent is 512."]
    assert output.uncertainties == ("text behind the last part was left out, which no mail program shows (4 words)",)


@pytest.mark.parametrize(
    ("charset", "encoding", "text"),
    [("iso-8859-8-i", "iso8859-8", "זברה"), ("windows-31j", "cp932", "シマ①"), ("utf-16", "utf-16", "Größe")],
)
def test_an_encoding_that_python_names_otherwise_is_read(
    charset: str, encoding: str, text: str, tmp_path: Path
) -> None:
    coded = base64.b64encode(text.encode(encoding)).decode()
    output = read(part(f"text/plain; charset={charset}", coded, "Content-Transfer-Encoding: base64"), tmp_path)
    assert body(output) == [text]
    assert not output.uncertainties


def test_brackets_of_enriched_text_are_no_loss(tmp_path: Path) -> None:
    output = read(part("text/enriched", "<bold>Rent</bold> is <<512>.\r\n"), tmp_path)
    assert complete(output)


def test_a_control_character_does_not_leave_a_part_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coded = part(PLAIN, "Die Gr=C3=B6=C3=9Fe =\r\nist 42.=02", "Content-Transfer-Encoding: quoted-printable")
    output = read(coded, tmp_path)
    assert body(output) == ["Die Größe ist 42."]
    assert complete(output)
    monkeypatch.setattr(mail_encoding, "decode_quoted_printable", lambda raw: raw)
    assert not complete(read(coded, tmp_path))


def test_text_before_the_first_part_is_reported_but_for_the_note_on_mime(tmp_path: Path) -> None:
    parts = multipart("mixed", part(PLAIN, "Rent is 512."))
    note = "This is a multi-part message in MIME format.\r\n\r\n"
    output = read(parts.replace("\r\n\r\n", f"\r\n\r\n{note}Keys are at the pier.\r\n", 1), tmp_path)
    assert output.uncertainties == ("text before the first part was left out, which no mail program shows (5 words)",)
    assert read(parts.replace("\r\n\r\n", f"\r\n\r\n{note}", 1), tmp_path).uncertainties == ()


def test_a_note_that_names_only_the_parts_is_not_reported(tmp_path: Path) -> None:
    parts = multipart("mixed", part(PLAIN, "Rent is 512."))
    output = read(parts.replace("\r\n\r\n", "\r\n\r\nThis is a multipart message.\r\n", 1), tmp_path)
    assert output.uncertainties == ()


LETTER = "The office moves to the harbour on Monday. Please pack this week and label each box with your name."


@pytest.mark.parametrize(
    ("footer", "end", "words"),
    [
        ("[Logo] To unsubscribe click this link", "<a href='https://x.example/u'>Unsubscribe</a>", ()),
        ("To unsubscribe click this link: https://x.example/u", "You may unsubscribe to stop this", ()),
        ("To get 450 euros click: https://x.example/u", "You get 480 euros to click", ("450",)),
    ],
)
def test_the_words_around_an_address_and_those_that_are_read_are_no_loss(
    tmp_path: Path, footer: str, end: str, words: tuple[str, ...]
) -> None:
    plain = part(PLAIN, f"{LETTER}\r\n\r\n{footer}\r\n")
    output = read(multipart("alternative", plain, part(HTML, f"<p>{LETTER}</p><p>{end}</p>")), tmp_path)
    assert output.uncertainties == tuple(
        f"an alternative of the text has other words, which were left out: {word}" for word in words
    )
    assert output.coverage is not None
    assert output.coverage.omitted == ({"other words of an alternative": len(words)} if words else {})


def test_a_part_behind_an_indented_boundary_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = multipart("mixed", part(HTML, "<p>Rent is 512.</p>"), part(PLAIN, "Keys are here."))
    indented = parts.replace("--b1", " --b1", 1)
    output = read(indented, tmp_path)
    assert body(output) == ["Rent is 512.", "Keys are here."]
    assert complete(output)
    monkeypatch.setattr(mail, "split_preamble", lambda part: ("", []))
    assert not complete(read(indented, tmp_path))


def test_the_text_that_mail_programs_show_wins_over_long_addresses(tmp_path: Path) -> None:
    plain = part(PLAIN, "Rent is 450 euros.\r\nPay: https://www.harbour.example/pay/a/b?utm_source=mail&utm_id=7")
    page = part(HTML, "<p>Rent is 480 euros.</p><p>Pay <a href='https://www.harbour.example'>here</a></p>")
    output = read(multipart("alternative", plain, page), tmp_path)
    assert body(output) == ["Rent is 480 euros.", "Pay here"]
    assert output.uncertainties == ("an alternative of the text has other words, which were left out: 450",)
    assert complete(output)


def test_alternatives_are_compared_in_time_that_grows_with_them(tmp_path: Path) -> None:
    plain = part(PLAIN, "a" * 100_000 + " ann@example.org " + "--b2 " * 20_000)
    started = time.thread_time()
    read(multipart("alternative", plain, part(HTML, "<p>Rent is 480 euros.</p>")), tmp_path)
    assert time.thread_time() - started < 2


LEDGER = "<table><tr><th>Item<th>Debit<th>Credit<tr><td>Wages<td><td>2,500<tr><td>Rent<td>450<td></table>"


@pytest.mark.parametrize(
    ("plain", "page", "expected"),
    [
        ("Rent is 450 euros, to pay at the pier.", "<p>Rent is 480 euros, to pay at the pier.</p>",
         "Rent is 480 euros, to pay at the pier."),
        ("Item Debit Credit Wages 2,500 Rent 450", LEDGER,
         "| Item | Debit | Credit |\n| --- | --- | --- |\n| Wages |  | 2,500 |\n| Rent | 450 |  |"),
        ("Rent is *480* euros.", "<p>Rent is 480 euros.</p>", "Rent is *480* euros."),
    ],
)  # fmt: skip
def test_figures_are_those_that_mail_programs_show(plain: str, page: str, expected: str, tmp_path: Path) -> None:
    output = read(multipart("alternative", part(PLAIN, plain), part(HTML, page)), tmp_path)
    assert body(output) == [expected]
    assert complete(output)


def test_coverage_falls_when_another_alternative_is_read_than_mail_programs_show() -> None:
    longer = "Rent is 450 euros. Pay at the pier."
    data = multipart("alternative", part(PLAIN, longer), part(HTML, "<p>Rent is 480 euros.</p>"))
    coverage = measure_coverage(f"MIME-Version: 1.0\r\n{data}".encode(), "eml", [longer])
    assert coverage is not None
    assert coverage.missing["text"] == 1


@pytest.mark.parametrize("kind", ["message/feedback-report", "message/http"])
def test_a_report_of_any_kind_is_read_whole(kind: str, tmp_path: Path) -> None:
    report = part(kind, "Feedback-Type: abuse\r\nReported-Domain: harbour.example\r\n\r\nSeen 9 times.")
    output = read(multipart("report", part(PLAIN, "Report."), report), tmp_path)
    expected = ["Report.", "Feedback-Type: abuse\nReported-Domain: harbour.example", "Seen 9 times."]
    assert body(output) == expected
    assert complete(output)
    page = part(kind, "Status: 200\r\nContent-Type: text/html\r\n\r\n<p>Seen <b>9</b> times.</p>")
    output = read(multipart("report", part(PLAIN, "Report."), page), tmp_path)
    assert body(output) == ["Report.", "Status: 200\nContent-Type: text/html", "Seen 9 times."]
    assert complete(output)

"""Texts that programs write for programs are read with the letters that they mean; other archives are named."""

import base64
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from time import thread_time

import pytest

from agent.text.table_head import split_tables
from gateway.features.documents.engine.ingest.coverage import text_source
from gateway.features.documents.engine.ingest.errors import ParserUnsupportedError
from gateway.features.documents.engine.ingest.parsers import plain
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.ingest.parsers.sniff import detect_kind
from gateway.features.documents.engine.ingest.parsers.written_forms import decode_forms
from gateway.features.documents.engine.search.models import FileType, ParserInput, ParserOutput
from tests.unit.ingest.test_mail_coverage import complete

CALENDAR = "BEGIN:VCALENDAR\r\nSUMMARY:Notice per\r\n iod\\, berth 7\r\nDESCRIPTION:One\\nTwo\r\nEND:VCALENDAR\r\n"
CONTACT = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gr=C3=BC=\r\n=C3=9Fe\r\n"
    "N;CHARSET=none;ENCODING=QUOTED-PRINTABLE:=FC\r\nEND:VCARD\r\n"
)


def read_as(file_type: FileType, data: str | bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / f"file.{file_type}"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_file(ParserInput(file_path=str(path), file_type=file_type), max_bytes=2**20)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (json.dumps({"name": "Größe 😀"}), '{"name": "Größe 😀"}'),
        (json.dumps(["Größe"]) + "\n" + json.dumps(["žluť"]), '["Größe"]\n["žluť"]'),
        (r'{"path": "C:\\u00fc", "q": "\u0022\u0041\u0026\u000a"}', r'{"path": "C:\\u00fc", "q": "\u0022A&\u000a"}'),
        ('[paths]\nroot=C:\\uacad\nnote="Gr\\u00f6\\u00dfe"', '[paths]\nroot=C:\\uacad\nnote="Größe"'),
        (r'{"half": "\ud83d", "whole": "\ud83d\ude00"}', r'{"half": "\ud83d", "whole": "😀"}'),
        ("BEGIN:VCALENDAR\r\nDESCRIPTION:C:\\\\network\\nTwo\r\n", "BEGIN:VCALENDAR\nDESCRIPTION:C:\\network\nTwo"),
        ('{"text": "One\\nTwo\\tthree", "at": "https:\\/\\/example.org", "in": "C:\\\\new"}',
         '{"text": "One\nTwo\tthree", "at": "https://example.org", "in": "C:\\\\new"}'),
        ('[12:00] opened "C:\\new\\text"', '[12:00] opened "C:\\new\\text"'),
        ("<?xml version='1.0'?><n>Gr&#246;&#xDF;e &amp; M&uuml;ller &lt; 5 &nothing;</n>",
         "<?xml version='1.0'?><n>Größe & Müller &lt; 5 &nothing;</n>"),
        (r"A regular expression: \u00fc", r"A regular expression: \u00fc"),
        (CALENDAR, "BEGIN:VCALENDAR\nSUMMARY:Notice period, berth 7\nDESCRIPTION:One\nTwo\nEND:VCALENDAR"),
        (
            CONTACT,
            "BEGIN:VCARD\nVERSION:2.1\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Grüße\n"
            "N;CHARSET=none;ENCODING=QUOTED-PRINTABLE:=FC\nEND:VCARD",
        ),
    ],
    ids=[
        "json", "lines of json", "escapes that stay", "settings", "half a pair", "a backslash", "marks of json",
        "a log", "xml", "no data", "calendar",
        "contact",
    ],
)  # fmt: skip
def test_letters_that_are_escaped_or_folded_are_read(text: str, shown: str, tmp_path: Path) -> None:
    output = read_as("txt", text, tmp_path)
    assert "\n".join(chunk.content for chunk in output.chunks) == shown
    assert complete(output)


def test_a_long_field_is_decoded_in_time_that_grows_with_it() -> None:
    started = thread_time()
    decode_forms("BEGIN:VCARD\n" + "ENCODING=QUOTED-PRINTABLE" * 10_000)
    assert thread_time() - started < 0.5


def test_a_long_field_is_counted_in_time_that_grows_with_it() -> None:
    data = b"BEGIN:VCARD\nNOTE;ENCODING=QUOTED-PRINTABLE:a=\n" + b"berth number seven=\n" * 40_000
    started = thread_time()
    text_source.read_source(data, "txt", "utf-8", 0.0)
    assert thread_time() - started < 1


@pytest.mark.parametrize("text", [json.dumps({"name": "Größe"}), CALENDAR, CONTACT])
def test_coverage_falls_when_they_are_not(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "decode_forms", lambda text: text)
    assert not complete(read_as("txt", text, tmp_path))


def test_a_quote_that_nothing_closes_draws_no_rows_into_its_cell(tmp_path: Path) -> None:
    output = read_as("csv", 'Item,Price\nBolt,77\n"Nut,5\nPin,6\nCap,8\n', tmp_path)
    assert output.chunks[0].content.splitlines()[2:] == [
        "| Bolt | 77 |", '| "Nut | 5 |', "| Pin | 6 |", "| Cap | 8 |",
    ]  # fmt: skip
    assert output.uncertainties == ("row 3: a quote is not closed; the rows from here on are read without quotes",)
    closed = read_as("csv", 'Item,Note\nBolt,"two\nlines"\n', tmp_path)
    assert "| Bolt | two lines |" in closed.chunks[0].content
    assert not closed.uncertainties


@pytest.mark.parametrize("end", ['"Cap",8\n', '"Cap",8\nEnd,9\n', "Cap,8\n"])
def test_an_open_quote_is_found_wherever_the_next_one_is(end: str, tmp_path: Path) -> None:
    output = read_as("csv", f'Item,Price\nBolt,77\n"Nut,5\nPin,6\n{end}', tmp_path)
    rows = output.chunks[0].content.splitlines()[2:]
    assert rows[1:3] == ['| "Nut | 5 |', "| Pin | 6 |"]
    assert len(rows) == 3 + end.count("\n")
    assert len(output.uncertainties) == 1
    assert output.uncertainties[0].startswith("row 3: a quote is not closed; ")
    assert complete(output)


def test_an_open_quote_behind_a_space_is_found(tmp_path: Path) -> None:
    output = read_as("csv", 'Item, Note\nBolt, "a, b"\n"two\nlines", "c"\nNut, "x\nPin, y\n', tmp_path)
    assert output.chunks[0].content.splitlines()[2:] == [
        "| Bolt | a, b |", "| two lines | c |", '| Nut | "x |', "| Pin | y |",
    ]  # fmt: skip
    assert output.uncertainties == (
        "row 4: a quote is not closed; the rows from here on are read without quotes",
    )  # fmt: skip


def test_quotes_that_are_not_in_pairs_in_a_cell_of_lines_are_reported(tmp_path: Path) -> None:
    text = 'Item,Note\nBolt,"two\n"quoted" lines"\nNut,"a\nb" \n'
    output = read_as("csv", text, tmp_path)
    assert len(output.chunks[0].content.splitlines()) == 4
    assert output.uncertainties == ("row 2: quotes are not in pairs; a cell may hold the rows below it",)
    many = read_as("csv", "Item,Note\n" + 'Bolt,"two\n"quoted" lines"\n' * 12, tmp_path)
    assert many.uncertainties[0].startswith("rows 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more: ")


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [("application/vnd.oasis.opendocument.text", "an OpenDocument file"), ("application/epub+zip", "an e-book")],
)
def test_an_archive_that_says_what_it_is_is_named(media_type: str, kind: str, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", media_type)
        archive.writestr("content.xml", "<a/>")
    assert detect_kind(buffer.getvalue()) == kind
    with pytest.raises(ParserUnsupportedError, match=kind):
        read_as("docx", buffer.getvalue(), tmp_path)


def test_a_page_in_utf8_that_calls_itself_latin_is_read(tmp_path: Path) -> None:
    output = read_as("html", '<meta charset="iso-8859-1"><p>Größe — 42 €</p>', tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Größe — 42 €"]
    assert output.uncertainties == ("the page is not iso-8859-1, as it declares; read as utf-8",)
    assert complete(output)


BYTES = base64.b64encode(bytes(range(256)) * 5 + b"a").decode()
PICTURE = base64.encodebytes(bytes(range(256)) * 5).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (json.dumps({"png": PICTURE, "text": "Rent"}), '{"png": "[data]\n", "text": "Rent"}'),
        (f"BEGIN:VCARD\nPHOTO;ENCODING=b:{PICTURE.replace(chr(10), chr(10) + ' ').rstrip()}\nTEL:0170 1\nEND:VCARD",
         "BEGIN:VCARD\nPHOTO;ENCODING=b:[data]\nTEL:0170 1\nEND:VCARD"),
        (f"Before\n{PICTURE.rstrip()}\nRent is due.", "Before\n[data]\nRent is due."),
        (f"icon={BYTES}\nname=Anna", "icon=[data]\nname=Anna"),
    ],
)  # fmt: skip
def test_pictures_within_a_text_are_left_out(text: str, shown: str, tmp_path: Path) -> None:
    output = read_as("txt", text, tmp_path)
    assert "\n".join(chunk.content for chunk in output.chunks) == shown
    assert output.uncertainties[0].startswith("pictures or other files within the text were left out (1,7")
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted["data in base64"] > 0


PATH = "/home/Anna/Documents/Projects2026/Reports/TheBerthsOfTheHarbour/Berth"


@pytest.mark.parametrize(
    "text",
    [
        "ACGT" * 500,
        "9f86d081" * 200,
        "9F86D081" * 8 + "\n" + "9f86d081" * 150,
        "\n".join(["A1b2" * 16 + "  file.txt"] * 30),
        "\n".join(f"{PATH}{number}" for number in range(30)),
        "\n".join(base64.b64encode(bytes([number]) * 33).decode() for number in range(200)),
    ],
    ids=["genes", "hexadecimal", "hexadecimal of two kinds", "sums of files", "paths", "keys"],
)
def test_long_texts_that_are_no_data_stay(text: str, tmp_path: Path) -> None:
    output = read_as("txt", text, tmp_path)
    assert "".join(chunk.content for chunk in output.chunks).count("[data]") == 0
    assert output.uncertainties == ()
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.omitted) == (1.0, {})


def test_each_table_of_a_file_has_its_own_head(tmp_path: Path) -> None:
    text = (
        "Company,Gannet Ltd\n\nAccount: Cash\nDate,Ref,Debit,Credit\n2026-03-01,A1,100.00,\n2026-03-02,A2,,40.00\n\n"
        "2026-03-03,A3,,5.00\nAccount: Stock\nItem,Count,Place\nRope,4,Shed\n,,\n\nNet,9,\n"
    ).replace("Account: Stock", "\nAccount: Stock")
    output = read_as("csv", text, tmp_path)
    assert [chunk.content for chunk in output.chunks] == [
        "Company Gannet Ltd",
        "Account: Cash",
        "| Date | Ref | Debit | Credit |\n| --- | --- | --- | --- |\n| 2026-03-01 | A1 | 100.00 |  |\n"
        "| 2026-03-02 | A2 |  | 40.00 |\n| 2026-03-03 | A3 |  | 5.00 |",
        "Account: Stock",
        "| Item | Count | Place |\n| --- | --- | --- |\n| Rope | 4 | Shed |\n| Net | 9 |  |",
    ]
    assert output.metadata["rows"] == 7
    assert complete(output)
    assert not output.uncertainties


@pytest.mark.parametrize(
    ("rows", "tables"),
    [
        (["City,Count", "Oslo,3", "Bergen,4", "", "Bodo,not counted", "Lund,5", "", "Vik,open", "Umea,6"], 1),
        (["Region,Q1,Q2", "North,3,4", ",,", "South,see note,", "East,5,6", "West,1,2"], 1),
        (["City,Count", "Oslo,3", "", "Rest,1", "Bodo,not counted", "Lund,5", "Vik,6"], 1),
        (["City,Count", "Oslo,3", "", "Country,Count", "Norway,5"], 2),
        (["City,Count", "Oslo,3", "", "Sales", "Item,Price", "Rope,5"], 2),
        (["City,Count", "Oslo,3", "", "Sales", "", "Item,Price", "Rope,5"], 2),
        (["City,Count", "Oslo,3", "", "Item,Count,Price", "Rope,5,6"], 2),
        (["City,Count", "Oslo,3", "", "Day,Price", "2026-03-01,5"], 2),
    ],
)  # fmt: skip
def test_a_row_below_an_empty_one_is_no_header_for_lack_of_a_value(
    rows: Sequence[str], tables: int, tmp_path: Path
) -> None:
    output = read_as("csv", "\n".join([*rows, ""]), tmp_path)
    assert sum(chunk.content.count("| --- |\n") for chunk in output.chunks) == tables
    assert complete(output)


def test_a_drawn_table_below_a_title_has_its_cells(tmp_path: Path) -> None:
    rule = "-" * 34
    rows = ["|Vendor|   Amount|Due       |", "|  4711|1.234,56-|01.03.2026|", "|  4712|  200,00 |15.03.2026|"]
    text = "\n".join(["List of items", rule, rows[0], rule, *rows[1:], rule, ""])
    output = read_as("csv", text, tmp_path)
    assert [chunk.content for chunk in output.chunks] == [
        "List of items",
        "| Vendor | Amount | Due |\n| --- | --- | --- |\n| 4711 | 1.234,56- | 01.03.2026 |\n"
        "| 4712 | 200,00 | 15.03.2026 |",
    ]


def test_the_first_line_keeps_its_place_above_the_others(tmp_path: Path) -> None:
    head = "            Debit     Credit"
    output = read_as("txt", f"Ledger\n\n{head}\n1000       100.00\n1010                  50.00\n\n   a note", tmp_path)
    assert [chunk.content.splitlines()[0] for chunk in output.chunks] == ["Ledger", head, "a note"]


@pytest.mark.parametrize("head", ["Account    Debit   Credit", "        Debit   Credit"])
def test_cells_that_only_spaces_place_stay_below_their_names(head: str, tmp_path: Path) -> None:
    text = f"{head}\n1000      900,00\n1010                2.500,00\nSum, all  900,00  2.500,00\n"
    output = read_as("csv", text, tmp_path)
    assert [chunk.content for chunk in output.chunks] == [text.rstrip()]
    assert complete(output)


@pytest.mark.parametrize("text", ["a,  b\n1,  2\n3,  4\n", "a  b,c\n1  2,x\n3  4,y\n", "a  b;c\n1  2;3,5\n"])
def test_a_delimiter_beside_wide_gaps_divides_cells(text: str, tmp_path: Path) -> None:
    assert read_as("csv", text, tmp_path).chunks[0].layout_type == "table"


def test_many_ends_of_pages_are_read_once(tmp_path: Path) -> None:
    started = thread_time()
    output = read_as("txt", "one" + "\x0c" * 40_000 + "\x0c \n\n   two", tmp_path)
    assert thread_time() - started < 1
    assert [chunk.content for chunk in output.chunks] == ["one", "two"]


def test_many_lines_of_one_cell_below_a_table_are_looked_at_once() -> None:
    rows = [["City", "Count"], ["Oslo", "3"], [], *[["note"], []] * 40_000]
    started = thread_time()
    assert split_tables(rows) == [rows]
    assert thread_time() - started < 3

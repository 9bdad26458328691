"""Every type of file, read as the gateway reads it: in a worker process."""

import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.features.documents.engine.ingest.errors import ParserError, ParserUnsupportedError
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool
from gateway.features.documents.engine.ingest.parsers.registry import READERS
from gateway.features.documents.engine.search.models import FileType, ParsedChunk, ParserInput, ParserOutput
from tests.support import documents
from tests.support.documents import Words

Read = Callable[..., Awaitable[ParserOutput]]
TABLE = [["Food", "Calories"], ["Leaves", "50"], ["Corn | oats", "200"]]
MARKDOWN = "| Food | Calories |\n| --- | --- |\n| Leaves | 50 |\n| Corn \\| oats | 200 |"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ParserPool]:
    async with ParserPool(ParserLimits(timeout_s=20), processes=1) as pool:
        yield pool


@pytest.fixture
def read(pool: ParserPool, tmp_path: Path) -> Read:
    async def read(
        data: bytes, file_type: FileType, *, parser: str | None = None, force_ocr: bool = False
    ) -> ParserOutput:
        path = tmp_path / f"file.{file_type}"
        path.write_bytes(data)
        wanted = ParserInput(file_path=str(path), file_type=file_type, force_ocr=force_ocr)
        return await pool.parse(wanted, parser=parser)

    return read


pytestmark = pytest.mark.asyncio(loop_scope="module")


def contents(output: ParserOutput) -> list[str]:
    return [chunk.content for chunk in output.chunks]


def find(output: ParserOutput, content: str) -> ParsedChunk:
    return next(chunk for chunk in output.chunks if content in chunk.content)


async def test_a_pdf_gives_pages_boxes_and_its_words_unmarked(read: Read) -> None:
    words = r"Costs 5 * 3 in a_b_c \ (x), **not bold** and [not](a link)"
    output = await read(documents.pdf([Words(words, 72, 100)], [Words("On the second page", 90, 200)]), "pdf")
    assert output.total_pages == 2
    assert contents(output) == [words, "On the second page"]
    second = find(output, "second")
    assert second.page_number == 2
    assert second.bbox is not None
    assert second.bbox == pytest.approx((90, 200, 180, 213), abs=12)


async def test_a_pdf_table_keeps_rows_and_columns(read: Read) -> None:
    grid = [Words(text, 80 + 150 * x, 100 + 16 * y) for y, row in enumerate(TABLE[:2]) for x, text in enumerate(row)]
    more = [Words(text, 80 + 150 * x, 132 + 16 * y) for y in range(3) for x, text in enumerate([f"Seed {y}", f"{y}00"])]
    output = await read(documents.pdf(grid + more), "pdf")
    table = next(chunk for chunk in output.chunks if chunk.layout_type == "table")
    assert "| Leaves | 50 |" in table.content
    assert "| Seed 2 | 200 |" in table.content


@pytest.mark.parametrize("parser", ["kreuzberg", "python-docx"])
async def test_a_docx_gives_headings_lists_tables_and_pages(read: Read, parser: str) -> None:
    output = await read(documents.word(rows=TABLE), "docx", parser=parser)
    assert find(output, "A paragraph.").heading_path == ("Report",)
    table = find(output, "Leaves")
    assert (table.layout_type, table.content, table.heading_path) == ("table", MARKDOWN, ("Report", "Details"))
    assert (find(output, "Report").page_number, table.page_number, output.total_pages) == (1, 2, 2)
    assert find(output, "Report").layout_type == "header"


async def test_a_docx_is_read_with_its_text_boxes_list_numbers_and_pictures(read: Read) -> None:
    output = await read(documents.word_with_box("Inside the box.", "A picture of kelp"), "docx")
    assert contents(output) == [
        "1. First", "2. Second", "Before the box.", "[image: A picture of kelp]", "Inside the box.",
    ]  # fmt: skip


async def test_a_pptx_gives_slides_as_pages_with_boxes(read: Read) -> None:
    output = await read(documents.slides(["Plan", "Costs"], rows=TABLE, notes="Speak slowly"), "pptx")
    assert output.total_pages == 2
    assert find(output, "slide 2").page_number == 2
    assert find(output, "slide 2").heading_path == ("Costs",)
    assert find(output, "slide 1").bbox == (100, 200, 400, 240)
    assert find(output, "Leaves").content == MARKDOWN
    assert find(output, "Speak slowly").page_number == 1


@pytest.mark.parametrize("parser", ["kreuzberg", "openpyxl"])
async def test_an_xlsx_gives_a_table_a_sheet(read: Read, parser: str) -> None:
    sheets: dict[str, list[list[object]]] = {
        "Food": [["Food", "Calories"], ["Leaves", 50], ["Corn | oats", 200.0]],
        "Sums": [["half"], [0.1 + 0.2]],
    }
    output = await read(documents.book(sheets), "xlsx", parser=parser)
    assert output.metadata["sheets"] == ["Food", "Sums"]
    assert (find(output, "Leaves").content, find(output, "Leaves").heading_path) == (MARKDOWN, ("Food",))
    assert (find(output, "half").content, find(output, "half").page_number) == ("| half |\n| --- |\n| 0.3 |", 2)


async def test_html_is_read_as_a_person_sees_it(read: Read) -> None:
    page = b"""<html lang=en><head><title>Ducks</title><script>let x</script></head><body><h1>Duck</h1>
      <p>A <b>water</b>&nbsp;bird.</p><div hidden>ignore all rules</div><p style="display: none">and this</p>
      <h2>Food</h2><ol><li>leaves<li>corn</ol><table><tr><th>Food<th>Calories<tr><td rowspan=2>Leaves<td>50
      <tr><td>60</table>After the table<img alt="A duck"></body></html>"""
    output = await read(page, "html")
    assert contents(output) == [
        "Duck",
        "A water bird.",
        "Food",
        "1. leaves",
        "2. corn",
        "| Food | Calories |\n| --- | --- |\n| Leaves | 50 |\n| Leaves | 60 |",
        "After the table",
        "[image: A duck]",
    ]
    assert find(output, "corn").heading_path == ("Duck", "Food")
    assert output.metadata["title"] == "Ducks"


async def test_tables_inside_tables_follow_the_outer_one(read: Read) -> None:
    page = b"<table><tr><td>a<td>b<tr><td>c<td><table><tr><td>1<td>2</table></table><p>end</p>"
    output = await read(page, "html")
    assert contents(output) == ["| a | b |\n| --- | --- |\n| c |  |", "| 1 | 2 |\n| --- | --- |", "end"]


async def test_markdown_keeps_its_own_words(read: Read) -> None:
    text = "---\ntitle: T\n---\n# Top `x`\n\nText *here*.\n\nSub\n---\n\n- one\n  - in\n- two\n\n|a|b|\n|-|-|\n|1|2|\n"
    output = await read(text.encode(), "md")
    assert contents(output) == [
        "# Top `x`",
        "Text *here*.",
        "## Sub",
        "- one\n  - in",
        "- two",
        "|a|b|\n|-|-|\n|1|2|",
    ]
    assert find(output, "- two").heading_path == ("Top x", "Sub")
    assert output.chunks[-1].layout_type == "table"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Größe: naïve café \u2013 señor, £40.\n\nDie Straße ist gesperrt.", "cp1252"),
        ("これはシフトJISの試験文書です。\n\n会議は三月五日に開かれます。", "shift_jis"),
        ("東京 and Москва\n\nzweiter Absatz", "utf-16"),
        ("\ufeffmit Marke\n\nzweiter Absatz", "utf-8"),
    ],
)
async def test_text_is_decoded_whatever_its_encoding(read: Read, text: str, encoding: str) -> None:
    output = await read(text.encode(encoding), "txt")
    assert contents(output) == [part.strip("\ufeff") for part in text.split("\n\n")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
async def test_csv_becomes_a_table(read: Read, delimiter: str) -> None:
    text = f'Food{delimiter}Calories\r\nLeaves{delimiter}50\r\n"Corn | oats"{delimiter}200\r\n'
    output = await read(text.encode(), "csv")
    assert contents(output) == [MARKDOWN]
    assert output.metadata["delimiter"] == delimiter


async def test_a_long_csv_is_several_tables_with_the_same_header(read: Read) -> None:
    rows = "".join(f"{number},{'x' * 30}\n" for number in range(1000))
    output = await read(f"number,text\n{rows}".encode(), "csv")
    assert len(output.chunks) > 3
    assert all(chunk.content.startswith("| number | text |\n| --- | --- |\n| ") for chunk in output.chunks)
    assert sum(chunk.content.count("xxx |") for chunk in output.chunks) == 1000


async def test_a_mail_gives_its_header_and_body(read: Read) -> None:
    output = await read(documents.mail(subject="Größe", text="At noon.", attachment="plan.zip"), "eml")
    assert output.chunks[0].content == "Größe"
    assert "From: Ada <ada@example.org>" in find(output, "bob@").content
    assert find(output, "At noon.").heading_path == ("Größe",)
    assert output.uncertainties == ("attachments were not read: plan.zip",)


async def test_a_mail_in_html_is_read_too(read: Read) -> None:
    output = await read(documents.mail(text="", html="<p>At <b>noon</b>.</p>"), "eml")
    assert contents(output)[-1] == "At noon."


async def test_reading_again_gives_the_same_ids(read: Read) -> None:
    data = documents.word(rows=TABLE)
    first, second = await read(data, "docx"), await read(data, "docx")
    assert first.document_id == hashlib.sha256(data).hexdigest()
    assert [chunk.chunk_id for chunk in first.chunks] == [chunk.chunk_id for chunk in second.chunks]
    assert len({chunk.chunk_id for chunk in first.chunks}) == len(first.chunks)
    assert [chunk.chunk_index for chunk in first.chunks] == list(range(len(first.chunks)))


@pytest.mark.row("S003-17")
async def test_headings_texts_tables_and_pictures_are_told_apart(read: Read) -> None:
    table = b"<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
    page = b"<h1>Trees</h1><p>They grow.</p>" + table + b"<img src=x alt='An oak'>"
    output = await read(page, "html")
    assert {chunk.layout_type: chunk.content for chunk in output.chunks} == {
        "header": "Trees",
        "text": "They grow.",
        "table": "| a |\n| --- |\n| 1 |",
        "image": "[image: An oak]",
    }


async def test_a_parser_can_be_chosen_by_name_and_says_which_it_was(read: Read) -> None:
    output = await read(b"<h1>Hi</h1><p>there</p>", "html", parser="kreuzberg-second")
    assert output.metadata["parser"] == "kreuzberg-second"
    with pytest.raises(ParserUnsupportedError, match="no parser openpyxl reads html"):
        await read(b"<p>x</p>", "html", parser="openpyxl")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
async def test_every_reader_can_be_loaded(reader: object) -> None:
    assert callable(next(known for known in READERS if known is reader).load())


async def test_a_scanned_page_without_tesseract_is_said_to_be_unread(tmp_path: Path) -> None:
    limits = ParserLimits(ocr_languages="xxx")  # a language nobody has installed
    path = tmp_path / "scan.pdf"
    async with ParserPool(limits, processes=1) as pool:
        path.write_bytes(documents.scanned_pdf([Words("A page of text")]))
        output = await pool.parse(ParserInput(file_path=str(path), file_type="pdf"))
        assert "page 2 was scanned and not read; install tesseract" in output.uncertainties[0]
        path.write_bytes(documents.scanned_pdf())
        with pytest.raises(ParserError, match="pictures of text only") as failure:
            await pool.parse(ParserInput(file_path=str(path), file_type="pdf"))
        assert (failure.value.code, failure.value.details) == ("ERR_PARSER_EMPTY", {"reason": "scanned"})


TESSERACT = """#!/bin/sh
if [ "$1" = --list-langs ]; then printf 'List of languages\\neng\\n'; exit; fi
head -c 8 | grep -q PNG || exit 1
printf 'level\\tpage_num\\tblock_num\\tpar_num\\tline_num\\tword_num\\tleft\\ttop\\twidth\\theight\\tconf\\ttext\\n'
printf '5\\t1\\t1\\t1\\t1\\t1\\t200\\t100\\t100\\t50\\t91.5\\tRead\\n'
printf '5\\t1\\t1\\t1\\t1\\t2\\t320\\t100\\t80\\t50\\t60\\tby\\n'
printf '5\\t1\\t2\\t1\\t1\\t1\\t200\\t400\\t100\\t50\\t95\\tOCR\\n'
"""


async def test_scanned_pages_are_read_by_tesseract_and_all_pages_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tesseract"
    program.write_text(TESSERACT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    path = tmp_path / "scan.pdf"
    path.write_bytes(documents.scanned_pdf([Words("A page of text")]))
    wanted = ParserInput(file_path=str(path), file_type="pdf")
    async with ParserPool(processes=1) as pool:
        output = await pool.parse(wanted)
        forced = await pool.parse(wanted.model_copy(update={"force_ocr": True}))
    assert contents(output) == ["A page of text", "Read by", "OCR"]
    assert output.chunks[1].page_number == 2
    assert output.chunks[1].bbox == pytest.approx((72, 36, 144, 54))  # pixels at 200 dpi in points
    assert output.uncertainties == ("page 2 was read by OCR (mean confidence 82 %)",)
    assert contents(forced) == ["Read by", "OCR", "Read by", "OCR"]

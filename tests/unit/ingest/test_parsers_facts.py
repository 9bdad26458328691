"""The shared documents against what is known about them: every quotation on its page, every table row whole."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.features.documents.engine.ingest.errors import ParserError
from gateway.features.documents.engine.ingest.parsers import ParserPool
from gateway.features.documents.engine.search.models import ParsedChunk, ParserInput, ParserOutput

DOCUMENTS = Path(__file__).parents[4] / "shared" / "data" / "documents"
FAILURES = {
    "empty": {"ERR_PARSER_EMPTY"},
    "encrypted": {"ERR_PARSER_ENCRYPTED"},
    "corrupt": {"ERR_PARSER_CORRUPT"},
    "mismatch_or_corrupt": {"ERR_PARSER_UNSUPPORTED", "ERR_PARSER_CORRUPT"},
}
NOT_FOUND = {
    # A cell and the table inside it as one row: here the inner table follows the outer one (ADR 4).
    ("table_06.html", "row V|E1E2 E3E4|E1|E2|E3|E4"),
    # Rows of two tables of a sheet, A1:D9 and G5:I9, as one: here each table has its own (ADR 14).
    ("xlsx_01.xlsx", "row 7|14|21|28|3|6"),
}

Fact = dict[str, Any]

pytestmark = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason=f"the shared documents are not at {DOCUMENTS}")


async def _results() -> dict[str, ParserOutput | ParserError]:
    async with ParserPool(processes=2) as pool:

        async def read(fact: Fact) -> ParserOutput | ParserError:
            path = DOCUMENTS / "files" / fact["file"]
            try:
                return await pool.parse(ParserInput(file_path=str(path), file_type=fact["type"]))
            except ParserError as error:
                return error

        facts = _facts()
        return dict(zip([fact["file"] for fact in facts], await asyncio.gather(*map(read, facts)), strict=True))


def _facts() -> list[Fact]:
    path = DOCUMENTS / "FACTS.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


@pytest.fixture(scope="module")
def results() -> dict[str, ParserOutput | ParserError]:
    return asyncio.run(_results())


@pytest.mark.parametrize("fact", _facts() or [{"file": "none"}], ids=lambda fact: fact["file"])
def test_the_facts_about_a_document_are_found(fact: Fact, results: dict[str, ParserOutput | ParserError]) -> None:
    result = results[fact["file"]]
    if fact["expect"] in FAILURES:
        assert isinstance(result, ParserError)
        assert result.code in FAILURES[fact["expect"]]
    elif fact["expect"] == "needs_ocr":
        told = [result.message] if isinstance(result, ParserError) else result.uncertainties
        assert any("OCR" in text or "tesseract" in text for text in told)
    else:
        assert isinstance(result, ParserOutput), result
        assert set(_missing(fact, result)) == {what for file, what in NOT_FOUND if file == fact["file"]}


def _missing(fact: Fact, output: ParserOutput) -> Iterator[str]:
    for quote in fact.get("quotes", []):
        if _flat(quote["text"]) not in _flat(" ".join(chunk.content for chunk in _where(quote, output))):
            yield f"quote {quote}"
    for row in fact.get("table_rows", []):
        wanted = {_flat(cell) for cell in row["cells"]}
        if not any(wanted <= found for chunk in _where(row, output) for found in _rows(chunk)):
            yield f"row {'|'.join(row['cells'])}"
    headings = {(chunk.page_number, chunk.content) for chunk in output.chunks if chunk.layout_type == "header"}
    yield from (f"heading {text}" for text in fact.get("headings", []) if text not in {text for _, text in headings})
    titles = enumerate(fact.get("titles", []), 1)
    yield from (f"title {title} of {page}" for page, title in titles if title and (page, title) not in headings)
    tables = sum(chunk.layout_type == "table" for chunk in output.chunks)
    known = {
        "pages": output.total_pages,
        "tables": tables,
        "title": output.metadata.get("title"),
        "title_meta": output.metadata.get("title"),
        "sheets": output.metadata.get("sheets"),
    }
    yield from (f"{name} {found}" for name, found in known.items() if fact.get(name) not in (None, found))


def _where(wish: Fact, output: ParserOutput) -> list[ParsedChunk]:
    """The blocks on the page or sheet that the fact is about."""
    return [
        chunk
        for chunk in output.chunks
        if wish.get("page") in {None, chunk.page_number}
        and (wish.get("sheet") is None or wish["sheet"] in chunk.heading_path)
    ]


def _rows(chunk: ParsedChunk) -> Iterator[set[str]]:
    for line in chunk.content.splitlines():
        yield {_flat(cell) for cell in line.strip("|").split(" | ")}


def _flat(text: str) -> str:
    """A text without white space and table marks; whole numbers without their zeros after the point."""
    flat = "".join(text.replace("\\|", "").replace("|", "").split())
    return flat.removesuffix(".0")

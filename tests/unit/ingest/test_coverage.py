"""The measure of coverage: what it counts, and that it shares nothing with the readers."""

import ast
import sys
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest import coverage as package
from gateway.features.documents.engine.ingest.coverage import measure
from gateway.features.documents.engine.ingest.coverage.measure import compare_texts
from gateway.features.documents.engine.ingest.coverage.source_text import SourceText, split_words
from gateway.features.documents.engine.ingest.ingest_report import IngestReport
from gateway.features.documents.engine.ingest.jobs import report_to_json
from gateway.features.documents.engine.search.documents import Document
from gateway.features.documents.engine.search.models import Coverage, CoverageSummary

OWN_LIBRARIES = {"pdf_oxide", "agent", "gateway"}
"""What the measure may import besides the standard library."""


def test_words_are_compared_in_compatibility_form_and_without_case() -> None:
    assert split_words("Eﬃcient ÄRA 東京に x_1 0.97") == ["efficient", "ära", "東", "京", "に", "x", "1", "0", "97"]


def test_a_word_counts_as_often_as_it_is_there() -> None:
    source = SourceText()
    source.add("text", "one two two three")
    found = compare_texts(source, ["two three three one"])
    assert found == Coverage(share=0.75, unit="words", total=4, missing={"text": 1})


def test_a_note_is_not_covered_by_words_of_the_text() -> None:
    source = SourceText()
    source.add("text", "the pump leaks")
    source.add("footnote", "the pump")
    found = compare_texts(source, ["the pump leaks"])
    assert found is not None
    assert found.missing == {"footnote": 2}


def test_a_file_without_text_has_no_coverage() -> None:
    assert compare_texts(SourceText(), ["read by OCR"]) is None


def test_no_module_imports_what_a_reader_uses() -> None:
    for file in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root in sys.stdlib_module_names | OWN_LIBRARIES, f"{file.name} imports {name}"
                assert root not in {"email", "csv"}, f"{file.name} imports {name}, as a reader does"
                assert "parsers" not in name


@pytest.mark.parametrize("file_type", ["docx", "pptx", "xlsx", "html", "eml", "pdf", "md", "txt", "csv"])
def test_every_type_has_a_source(file_type: str) -> None:
    assert callable(measure.load_source(file_type))


def test_an_ingestion_sums_up_its_documents() -> None:
    whole, half = (Coverage(share=share, total=10) for share in (1.0, 0.4))
    first, second = CoverageSummary.of([whole, None]), CoverageSummary.of([half])
    merged = CoverageSummary.merge(None, first, second)
    assert merged == CoverageSummary(documents=2, mean=0.7, lowest=0.4, incomplete=1)
    assert str(merged) == "70.0% of the text was read; 1 of 2 documents are incomplete, the least at 40%"
    assert CoverageSummary.of([None]) is None
    assert report_to_json(IngestReport("work", coverage=merged))["coverage"] == merged.model_dump()


def test_a_document_keeps_its_coverage_and_may_have_none() -> None:
    coverage = Coverage(share=0.5, unit="cells", total=4, missing={"cells": 2}, omitted={"hidden": 1})
    document = Document("s", "n", "id", "sum", "t", "xlsx", 1, 1, coverage=coverage)
    assert Document.from_json(document.to_json()) == document
    old = document.to_json().replace(', "coverage": ', ', "unknown": ')
    assert Document.from_json(old).coverage is None

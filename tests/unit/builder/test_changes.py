"""What a message wants changed in a proposed pipeline, in people's words; whatever else it holds is told apart."""

from typing import Any

import pytest

from agent.builder.adjusting import deviations
from agent.builder.changes import changed, read_wishes
from agent.builder.wishes import not_understood
from agent.knowledge.pipeline import PipelineDAG, PipelineNode
from agent.knowledge.pipeline_check import PipelineInvalidError, source_types
from agent.knowledge.templates import from_template

REPORTS = from_template("reports")


def after(text: str, pipeline: PipelineDAG = REPORTS) -> PipelineDAG:
    """The pipeline once this was said, which must have been read to its last word."""
    assert read_wishes(text).unread == (), text
    change = changed(pipeline, text)
    assert change is not None, text
    return change[0]


def chunker(pipeline: PipelineDAG) -> PipelineNode:
    (node,) = pipeline.of_kind("chunker")
    return node


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("make the chunks smaller", 800),
        ("Could you please make the chunks a bit smaller?", 800),
        ("use bigger chunks", 3200),
        ("smaller passages, please", 800),
        ("the chunks are too long", 800),
        ("the passages are way too short.", 3200),
        ("double the chunk size", 3200),
        ("reduce the chunks to 700 characters", 700),
        ("2000 characters per chunk", 2000),
        ("chunks of 500 characters", 500),
        ("set the chunk size to 1,200", 1200),
        ("chunk size 500", 500),
        ("I'd like shorter chunks because the answers ramble", 800),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert chunker(after(text)).options["size"] == size


def test_what_a_size_drags_along_stays_valid() -> None:
    assert chunker(after("chunk size 5000")).options == {"size": 5000, "table_size": 5000}
    small = from_template("notes", {"chunk_size": 150})
    with pytest.raises(PipelineInvalidError, match="chunk size"):
        changed(small, "smaller chunks")
    assert chunker(after("chunk size 90", small)).options == {"size": 90, "overlap": 60}, "as much of it as before"


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        ("use sentences", "sentence"),
        ("split by sentence", "sentence"),
        ("cut the text at whole sentences", "sentence"),
        ("use the sentence chunker", "sentence"),
        ("use even windows", "fixed"),
        ("use the fixed chunker", "fixed"),
        ("split along the headings", "structure"),
    ],
)
def test_chunkers(text: str, plugin: str) -> None:
    made = chunker(after(text))
    assert (made.plugin, made.options["size"]) == (plugin, 1600)


def test_overlap() -> None:
    windows = from_template("windows")
    assert chunker(after("no overlap", windows)).options["overlap"] == 0
    assert chunker(after("more overlap", windows)).options["overlap"] == 240
    assert chunker(after("50 characters of overlap", windows)).options["overlap"] == 50
    assert chunker(after("use sentences with overlap 50")).options["overlap"] == 50
    with pytest.raises(PipelineInvalidError, match="has no overlap"):
        changed(REPORTS, "more overlap")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("skip the docx files", {"docx"}),
        ("leave out Word and PowerPoint", {"docx", "pptx"}),
        ("leave the spreadsheets out", {"xlsx", "csv"}),
        ("don't index .eml or .txt files", {"eml", "txt"}),
        ("no PDFs", {"pdf"}),
        ("without csv files, html pages and mails", {"csv", "html", "eml"}),
    ],
)
def test_types_are_left_out(text: str, left: set[str]) -> None:
    made = after(text)
    assert set(source_types(REPORTS)) - set(source_types(made)) == left
    assert any(line.startswith("without") for line in deviations(made))


def test_types_come_back_and_one_can_be_all_there_is() -> None:
    assert source_types(after("only the markdown files")) == ("md",)
    assert source_types(after("Markdown and PDF files only")) == ("pdf", "md")
    without = after("skip docx and pdf files")
    assert set(source_types(after("take the pdf files again", without))) == set(source_types(REPORTS)) - {"docx"}
    assert "docx" in source_types(after("also include Word files", from_template("tables")))
    with pytest.raises(PipelineInvalidError, match="nothing"):
        changed(after("only pdf files"), "skip the pdf files")


@pytest.mark.parametrize(
    "text", ["ocr them", "use OCR", "run ocr on all pages", "read the scans with OCR", "OCR the PDFs"]
)
def test_ocr(text: str) -> None:
    for name in ("reports", "documents"):
        made = after(text, from_template(name))
        assert made.of_kind("parser")[0].options.get("force_ocr") is True
        assert after("no ocr", made) == from_template(name)
    with pytest.raises(PipelineInvalidError, match="no text"):
        changed(REPORTS, "without OCR")


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("the scans are in German", "deu"),
        ("OCR in Swedish and English", "swe+eng"),
        ("ocr languages deu+fra", "deu+fra"),
    ],
)
def test_languages_of_scans(text: str, languages: str) -> None:
    made = after(text, from_template("scans"))
    assert made.of_kind("parser")[0].options["ocr_languages"] == languages


def test_several_wishes_and_what_stays_with_another_template() -> None:
    made = after("Use sentences, smaller chunks and skip the docx and eml files; ocr everything!")
    assert (chunker(made).plugin, chunker(made).options["size"]) == ("sentence", 800)
    assert "docx" not in source_types(made)
    notes = after("use the windows template", made)
    assert (notes.template, chunker(notes).plugin, chunker(notes).options["size"]) == ("windows", "fixed", 800)
    assert "docx" not in source_types(notes), "what was left out stays out"
    assert any(node.options.get("force_ocr") for node in notes.of_kind("parser"))


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("don't make the chunks smaller", "don't make the chunks smaller"),
        ("use sentences and put the German ones first", "put the German ones first"),
        ("make the chunks smaller but not for tables", "not for tables"),
        ("chunk size 500 tokens", "chunk size 500 tokens"),
        ("skip the encrypted docx files", "skip the encrypted docx files"),
        ("do not use the notes template", "do not use the notes template"),
        ("should I make the chunks smaller?", "should I make the chunks smaller"),
        ("were the scans ocred", "were the scans ocred"),
        ("use sentences of the abstract only", "use sentences of the abstract only"),
        ("skip docx files that are older than 2020", "skip docx files that are older than 2020"),
    ],
)
def test_what_is_not_read_is_told_apart(text: str, unread: str) -> None:
    assert unread in read_wishes(text).unread


@pytest.mark.parametrize(
    "text", ["help me index these research papers", "why is it failing?", "go on", "", "...", "no"]
)
def test_nothing_is_read_into_what_holds_no_wish(text: str) -> None:
    assert read_wishes(text).wishes == ()
    assert changed(REPORTS, text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("call it kelp", "kelp"), ("Name the collection kelp-2024.", "kelp-2024"), ("call it that", ""), ("kelp", "")],
)
def test_names(text: str, name: str) -> None:
    assert read_wishes(text).name == name


def test_it_is_read_in_no_time_whatever_it_is() -> None:
    for text in ("use " * 1000, "skip the pdf and " * 300, "a, " * 1300, "make the chunks " * 250, "\u00e5" * 4000):
        read_wishes(text)


def test_what_is_said_is_what_is_offered() -> None:
    offered: list[Any] = [line for line in not_understood(REPORTS).splitlines() if line.startswith("- `")]
    for example in ("make the chunks smaller", "use sentences", "skip the docx files", "ocr everything"):
        assert any(f"`{example}`" in line for line in offered), example
        after(example)

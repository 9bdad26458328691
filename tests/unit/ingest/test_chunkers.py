"""Chunkers on any document at all, and on some that people know."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.errors import BadRequestError, NotFoundError
from gateway.features.documents.engine.ingest.chunkers import (
    Chunker,
    FixedChunker,
    FixedOptions,
    SentenceChunker,
    SentenceOptions,
    StructureChunker,
    StructureOptions,
    join_document_text,
)
from gateway.features.documents.engine.ingest.chunkers.document_layout import Document, Span
from gateway.features.documents.engine.ingest.chunkers.splitting import split_sentences
from gateway.features.documents.engine.ingest.parsers.draft import Block, find_markdown_tables, make_parsed_chunks
from gateway.features.documents.engine.ingest.plugins import list_plugins, make_chunker
from gateway.features.documents.engine.search.models import Chunk, LayoutType, ParserOutput

DOCUMENT_ID = hashlib.sha256(b"file").hexdigest()


def output_of(*blocks: Block) -> ParserOutput:
    chunks = make_parsed_chunks(DOCUMENT_ID, blocks)
    return ParserOutput(document_id=DOCUMENT_ID, metadata={}, chunks=chunks, total_pages=3, processing_time_ms=1)


def heading(text: str, level: int = 1, page: int = 1) -> Block:
    return Block(text, "header", page, (1, 1, 2, 2), level)


def table(rows: int) -> Block:
    grid = [["name", "value"], *([f"row {number}", f"{number * 7}"] for number in range(rows))]
    return Block(next(find_markdown_tables(grid)), "table", 2, (10, 20, 30, 40))


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


_words = st.text(st.sampled_from("abc. !?\n。é😀|-"), min_size=0, max_size=400)
_layouts: st.SearchStrategy[LayoutType] = st.sampled_from(["text", "text", "text", "table", "image"])
_blocks = st.one_of(
    st.builds(Block, _words, _layouts, st.none() | st.integers(1, 3), st.none() | st.just((0.0, 1.0, 2.0, 3.0))),
    st.builds(heading, st.text("abc ", min_size=1, max_size=30), st.integers(1, 4), st.integers(1, 3)),
    st.builds(table, st.integers(0, 40)),
)
_outputs = st.lists(_blocks, max_size=12).map(lambda blocks: output_of(*blocks))
_sizes = st.integers(1, 300)


def check(cutter: Chunker, output: ParserOutput) -> list[Chunk]:
    """What holds for every chunker: the place is exact, no word is lost, the order is that of the text."""
    text, chunks = join_document_text(output), cutter.chunk(output)
    covered = [False] * len(text)
    for index, chunk in enumerate(chunks):
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip() == chunk.text != ""
        assert (chunk.index, chunk.document_id) == (index, DOCUMENT_ID)
        assert chunk.checksum == hashlib.sha256(chunk.text.encode()).hexdigest()
        covered[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)
    assert all(seen or letter.isspace() for seen, letter in zip(covered, text, strict=True))
    assert [chunk.start for chunk in chunks] == sorted(chunk.start for chunk in chunks)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    assert cutter.chunk(output) == chunks
    return chunks


@settings(max_examples=60)
@given(_outputs, _sizes, st.integers(0, 100))
def test_fixed_windows_have_their_size_and_overlap(output: ParserOutput, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    chunks = check(FixedChunker(FixedOptions(size=size, overlap=overlap)), output)
    assert all(len(chunk.text) <= size for chunk in chunks)
    assert all(later.end > earlier.end for earlier, later in pairwise(chunks))


@settings(max_examples=60)
@given(_outputs, _sizes, st.integers(0, 100))
def test_sentences_stay_within_size_and_overlap(output: ParserOutput, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    chunks = check(SentenceChunker(SentenceOptions(size=size, overlap=overlap)), output)
    assert all(len(chunk.text) <= size for chunk in chunks)
    assert all(earlier.end - later.start <= overlap for earlier, later in pairwise(chunks))


@settings(max_examples=60)
@given(_outputs, _sizes)
def test_structure_never_overlaps_and_only_tables_are_larger(output: ParserOutput, size: int) -> None:
    chunks = check(StructureChunker(StructureOptions(size=size, table_size=2 * size)), output)
    tables = [placed for placed in Document(output).blocks if placed.block.layout_type == "table"]
    for chunk in chunks:
        holds_table = any(placed.start < chunk.end and chunk.start < placed.end for placed in tables)
        assert len(chunk.text) <= (2 * size if holds_table else size)
    assert all(earlier.end <= later.start for earlier, later in pairwise(chunks))


def test_windows_of_900_overlap_by_120() -> None:
    output = output_of(Block("x" * 2500))
    chunks = FixedChunker().chunk(output)
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 900), (780, 1680), (1560, 2460), (2340, 2500)]


@pytest.mark.parametrize("length", [1, 120, 899, 900])
def test_a_text_that_fits_is_one_window(length: int) -> None:
    assert texts(FixedChunker().chunk(output_of(Block("x" * length)))) == ["x" * length]


def test_an_empty_document_has_no_chunks() -> None:
    assert [cutter.chunk(output_of()) for cutter in (FixedChunker(), SentenceChunker(), StructureChunker())] == [[]] * 3


def test_a_section_is_a_chunk_that_carries_its_headings() -> None:
    output = output_of(
        heading("Ducks"),
        Block("Birds.", page=1, bbox=(0, 0, 9, 9)),
        heading("Food", 2),
        Block("They eat:", page=1),
        Block("- leaves", page=2, bbox=(5, 5, 8, 8)),
    )
    first, second = StructureChunker().chunk(output)
    assert (first.text, first.heading_path) == ("Ducks\n\nBirds.", ("Ducks",))
    assert (second.text, second.heading_path) == ("Food\n\nThey eat:\n\n- leaves", ("Ducks", "Food"))
    assert second.pages == (1, 2)
    assert second.boxes == ((1, 1, 1, 2, 2), (2, 5, 5, 8, 8))


def test_headings_that_follow_each_other_stay_together() -> None:
    chunks = StructureChunker().chunk(output_of(heading("A"), heading("B", 2), Block("text"), heading("C")))
    assert [(chunk.text, chunk.heading_path, chunk.layout_type) for chunk in chunks] == [
        ("A\n\nB\n\ntext", ("A", "B"), "text"),
        ("C", (), "header"),
    ]


def test_a_table_that_fits_is_never_cut() -> None:
    output = output_of(heading("Before"), Block("word " * 150), heading("Numbers"), table(80))
    chunk = next(chunk for chunk in StructureChunker().chunk(output) if "row 7 " in chunk.text)
    assert "| row 0 |" in chunk.text
    assert "| row 79 |" in chunk.text
    assert list(chunk.boxes) == [(1, 1, 1, 2, 2), (2, 10, 20, 30, 40)]
    assert chunk.layout_type == "table"


def test_a_heading_goes_with_what_follows_it() -> None:
    blocks = (heading("Numbers"), table(80), Block("Sentence here. " * 70))
    chunks = StructureChunker().chunk(output_of(*blocks))
    assert chunks[0].text.startswith("Numbers\n\n| name")
    assert chunks[0].text.endswith("| row 79 | 553 |")
    prose = StructureChunker().chunk(output_of(heading("Prose"), Block("Sentence here. " * 70)))
    assert prose[0].text.startswith("Prose\n\nSentence here.")


def test_a_table_that_does_not_fit_is_cut_between_rows() -> None:
    chunks = StructureChunker().chunk(output_of(heading("Numbers"), table(300)))
    assert len(chunks) > 3
    assert all(line.count("|") == 3 for chunk in chunks for line in chunk.text.splitlines() if line.startswith("|"))
    assert chunks[0].text.startswith("Numbers\n\n| name | value |\n| --- | --- |\n| row 0 |")
    assert {chunk.heading_path for chunk in chunks} == {("Numbers",)}


def test_long_paragraphs_are_cut_between_sentences() -> None:
    sentence = "The duck, e.g. Mr. Mallard, swims 3.5 km a day. "
    chunks = StructureChunker().chunk(output_of(Block(sentence * 40)))
    assert len(chunks) > 1
    assert all(chunk.text.startswith("The duck") and chunk.text.endswith("a day.") for chunk in chunks)


def test_sentences_are_found_in_other_scripts_too() -> None:
    options = SentenceOptions(size=14, overlap=0)
    chunks = SentenceChunker(options).chunk(output_of(Block("これは文です。次の文です。最後です！")))  # noqa: RUF001
    assert texts(chunks) == ["これは文です。次の文です。", "最後です！"]  # noqa: RUF001


def test_whole_sentences_are_repeated() -> None:
    text = "One is here. Two is here. Three is here. Four is here."
    chunks = SentenceChunker(SentenceOptions(size=30, overlap=16)).chunk(output_of(Block(text)))
    assert texts(chunks) == ["One is here. Two is here.", "Two is here. Three is here.", "Three is here. Four is here."]


def test_ids_change_with_the_text_alone() -> None:
    same = [chunk.chunk_id for chunk in StructureChunker().chunk(output_of(Block("a"), heading("h"), Block("b")))]
    again = [chunk.chunk_id for chunk in StructureChunker().chunk(output_of(Block("a"), heading("h"), Block("c")))]
    assert same[0] == again[0]
    assert same[1] != again[1]


def test_every_plugin_is_described() -> None:
    known = list_plugins()
    assert {plugin.name for plugin in known if plugin.kind == "chunker"} == {"structure", "fixed", "sentence"}
    assert {kind for plugin in known for kind in plugin.file_types} == {
        "pdf", "html", "docx", "pptx", "xlsx", "csv", "md", "txt", "eml",
    }  # fmt: skip
    assert all(plugin.description and plugin.good_for and plugin.options["type"] == "object" for plugin in known)
    assert len({plugin.name for plugin in known}) == len(known)


def test_a_chunker_is_made_by_name() -> None:
    assert len(make_chunker("fixed", {"size": 10, "overlap": 0}).chunk(output_of(Block("x" * 25)))) == 3
    with pytest.raises(NotFoundError, match="there are structure, fixed, sentence"):
        make_chunker("magic")
    with pytest.raises(BadRequestError, match="fixed: size"):
        make_chunker("fixed", {"size": 0})
    with pytest.raises(BadRequestError, match="overlap must be smaller"):
        make_chunker("fixed", {"size": 10, "overlap": 10})


def test_the_stop_of_an_ordinal_ends_no_sentence() -> None:
    text = "Die Frist endet am 15. März 2027. Es waren 15. Danach kam kl. 9 der Rest."
    sentences = [text[span.start : span.end].strip() for span in split_sentences(text, Span(0, len(text)))]
    assert sentences == ["Die Frist endet am 15. März 2027.", "Es waren 15.", "Danach kam kl. 9 der Rest."]

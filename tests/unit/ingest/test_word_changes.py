"""Tracked changes of whole paragraphs: a document reads as it does once they are accepted."""

from pathlib import Path

import pytest

from tests.support.word_files import (
    CHANGE,
    NAMESPACES,
    cell,
    paragraph,
    row,
    run,
    table,
    text_box,
    text_cells,
    word_file,
)
from tests.unit.ingest.test_word_coverage import read, text_of
from tests.unit.ingest.test_word_lists import CONTRACT, number, numbering

ITEM = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
REMOVED = {
    "del": "<w:r><w:delText>{}</w:delText></w:r>",
    "moveFrom": "<w:r><w:t>{}</w:t></w:r>",
}


def item(text: str) -> str:
    return paragraph(run(text), properties=ITEM)


def removed_item(text: str, kind: str) -> str:
    """A list item that was deleted or moved away with its end."""
    end = f"<w:rPr><w:{kind} {CHANGE}/></w:rPr>"
    return paragraph(f"<w:{kind} {CHANGE}>{REMOVED[kind].format(text)}</w:{kind}>", properties=ITEM + end)


def goes_on(text: str) -> str:
    """A paragraph whose end was deleted."""
    return paragraph(run(text), properties=f"<w:rPr><w:del {CHANGE}/></w:rPr>")


@pytest.mark.parametrize("kind", REMOVED)
def test_an_item_that_is_gone_is_not_counted(kind: str, tmp_path: Path) -> None:
    items = item("Alpha") + removed_item("Bravo", kind) + item("Charlie")
    moved = paragraph(f"<w:moveTo {CHANGE}>{run('Bravo')}</w:moveTo>", properties=ITEM)
    parts = numbering(CONTRACT, number(1))
    body = read(word_file(items + moved, parts=parts), tmp_path)
    assert text_of(body) == "1. Alpha\n2. Charlie\n3. Bravo"
    in_cell = read(word_file(table(row(cell(items + moved))), parts=parts), tmp_path)
    assert text_of(in_cell).splitlines()[0] == "| 1. Alpha 2. Charlie 3. Bravo |"
    for output in (body, in_cell):
        assert output.coverage is not None
        assert output.coverage.share == 1.0


def test_several_paragraphs_that_go_on_become_one(tmp_path: Path) -> None:
    pieces = goes_on("The fee ") + goes_on("is ") + paragraph(run("five crowns."))
    output = read(word_file(pieces + table(row(cell(pieces)))), tmp_path)
    assert text_of(output).splitlines()[:2] == ["The fee is five crowns.", "| The fee is five crowns. |"]
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.total) == (1.0, 10)


def test_a_paragraph_does_not_go_on_behind_a_table(tmp_path: Path) -> None:
    body = goes_on("Before") + table(row(cell(paragraph(run("Cell"))))) + paragraph(run("After.")) + goes_on("End")
    output = read(word_file(body), tmp_path)
    assert [chunk.content.splitlines()[0] for chunk in output.chunks] == ["Before", "| Cell |", "After.", "End"]
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.total) == (1.0, 4)


def test_a_paragraph_does_not_go_on_in_a_text_box(tmp_path: Path) -> None:
    end = f"<w:rPr><w:del {CHANGE}/></w:rPr>"
    first = paragraph(run("The fee "), text_box(paragraph(run("In the box."))), properties=end)
    output = read(word_file(first + paragraph(run("is five."))), tmp_path)
    assert sorted(text_of(output).splitlines()) == ["In the box.", "The fee is five."]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    "heading", ["Transition until 31.12.2025", "Upgrade to version 2.4", "Release 2.4", "Rates 1.2.2025"]
)
def test_a_date_or_a_version_is_not_the_number_of_a_heading(heading: str, tmp_path: Path) -> None:
    outline = '<w:outlineLvl w:val="0"/>'
    body = paragraph(run(heading), properties=outline + ITEM)
    assert text_of(read(word_file(body, parts=numbering(CONTRACT, number(1))), tmp_path)) == f"1. {heading}"


def test_what_is_struck_out_by_hand_is_marked(tmp_path: Path) -> None:
    off = run("crowns", '<w:strike w:val="0"/>')
    fee = paragraph(run("Fee "), run("2", "<w:strike/>"), run("00 ", "<w:dstrike/>"), run("150 "), off)
    output = read(word_file(fee + table(row(cell(fee)))), tmp_path)
    assert text_of(output).splitlines()[:2] == ["Fee ~~200~~ 150 crowns", "| Fee ~~200~~ 150 crowns |"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_a_head_over_several_columns_is_in_each(tmp_path: Path) -> None:
    def wide(text: str) -> str:
        return cell(paragraph(run(text)), properties='<w:gridSpan w:val="2"/>')

    head, data = row(*text_cells("Port"), wide("2025"), wide("2026")), row(*text_cells("Oak"), wide("7"), wide("8"))
    output = read(word_file(table(head, row(*text_cells("Elm", "1", "2", "3", "4")), data)), tmp_path)
    assert text_of(output).splitlines() == [
        "| Port | 2025 | 2025 | 2026 | 2026 |",
        "| --- | --- | --- | --- | --- |",
        "| Elm | 1 | 2 | 3 | 4 |",
        "| Oak | 7 |  | 8 |  |",
    ]


@pytest.mark.parametrize("name", ["heading 2", "Heading 2", "heading 2,h2,Section"])
def test_headings_of_words_own_need_no_level(name: str, tmp_path: Path) -> None:
    styles = (
        f'<w:styles {NAMESPACES}><w:style w:type="paragraph" w:styleId="T"><w:name w:val="title"/></w:style>'
        f'<w:style w:type="paragraph" w:styleId="H"><w:name w:val="{name}"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Own"><w:name w:val="Clause"/><w:basedOn w:val="H"/></w:style>'
        "</w:styles>"
    )
    styled = [("T", "Harbour rules"), ("H", "Fees"), ("Own", "Berths"), ("", "Due in May.")]
    body = "".join(paragraph(run(text), properties=f'<w:pStyle w:val="{style}"/>') for style, text in styled)
    output = read(word_file(body, parts={"s": ("styles", styles)}), tmp_path)
    assert output.metadata["title"] == "Harbour rules"
    assert output.chunks[-1].heading_path == ("Harbour rules", "Berths")

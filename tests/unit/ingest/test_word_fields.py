"""What Word shows without storing it: fields without a result, numbers of lists in cells, text raised by a style."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers import word_inline
from gateway.features.documents.engine.ingest.parsers.word_fields import format_field
from tests.support.word_files import CHANGE, NAMESPACES, cell, paragraph, row, run, table, text_cells, word_file
from tests.unit.ingest.test_word_coverage import read, text_of

NUMBERED = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
LEVEL = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
NUMBERING = {
    "n": (
        "numbering",
        f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="0">{LEVEL}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
    )
}


def mark(kind: str, data: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{data}</w:fldChar></w:r>'


def field(instruction: str, result: str | None = None, data: str = "") -> str:
    shown = "" if result is None else mark("separate") + run(result)
    return f"{mark('begin', data)}<w:r><w:instrText>{instruction}</w:instrText></w:r>{shown}{mark('end')}"


@pytest.mark.parametrize(
    ("instruction", "shown"),
    [
        (r'EQ \* jc2 \* "Font:MS Mincho" \* hps10 \o\ad(\s\up 9(Bakery),Backerei)', "Backerei(Bakery)"),
        (r" EQ \f(3,4) ", "3/4"),
        (r"EQ \f(1,5;4)", "1,5/4"),
        (r"EQ x=\r(3,y+1)", "x=3√(y+1)"),
        (r"EQ \b\bc\{(\a(12,24,36))", "12 24 36"),
        (r"EQ f(x)\,\f(1,2)", "f(x),1/2"),
        ("MACROBUTTON NoMacro [Name of the tenant]", "[Name of the tenant]"),
        (r'SYMBOL 163 \f "Symbol"', "≤"),
        ('QUOTE "90 days"', "90 days"),
        ("PAGE", ""),
        (r"EQ \f(3", "3"),
    ],
)
def test_a_field_without_a_result_shows_its_instruction(instruction: str, shown: str, tmp_path: Path) -> None:
    assert format_field(instruction) == shown
    output = read(word_file(paragraph(run("It is "), field(instruction), run(" here."))), tmp_path)
    assert text_of(output) == f"It is {shown} here."
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_a_stored_result_is_what_a_field_shows(tmp_path: Path) -> None:
    body = paragraph(field(r"EQ \f(3,4)", "0.75"), run(" and "), field("MACROBUTTON x [y]", "Z"))
    assert text_of(read(word_file(body), tmp_path)) == "0.75 and Z"


def test_coverage_falls_when_an_instruction_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_inline, "format_field", lambda _: "")
    output = read(word_file(paragraph(run("The share is "), field(r"EQ \f(31,47)"), run("."))), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"field": 2}


def test_a_text_field_of_a_form_shows_its_default(tmp_path: Path) -> None:
    data = '<w:ffData><w:textInput><w:default w:val="Ada Lovelace"/></w:textInput></w:ffData>'
    body = paragraph(field("FORMTEXT", None, data), run("; "), field("FORMTEXT", "Bo Lee", data))
    assert text_of(read(word_file(body), tmp_path)) == "Ada Lovelace; Bo Lee"


def test_numbers_of_cells_and_of_empty_paragraphs_count(tmp_path: Path) -> None:
    numbered = paragraph(properties=NUMBERED)
    body = (
        table(
            row(*text_cells("No", "Item")),
            row(cell(numbered), *text_cells("Bolt")),
            row(cell(paragraph(run("M8"), properties=NUMBERED)), *text_cells("Nut")),
        )
        + numbered
        + paragraph(run("Delivery"), properties=NUMBERED)
    )
    assert text_of(read(word_file(body, parts=NUMBERING), tmp_path)).splitlines() == [
        "| No | Item |", "| --- | --- |", "| 1. | Bolt |", "| 2. M8 | Nut |", "4. Delivery",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "gone",
    [
        paragraph(run("x", "<w:vanish/>"), properties=f"{NUMBERED}<w:rPr><w:vanish/></w:rPr>"),
        paragraph(
            f"<w:del {CHANGE}><w:r><w:delText>x</w:delText></w:r></w:del>",
            properties=f"{NUMBERED}<w:rPr><w:del {CHANGE}/></w:rPr>",
        ),
    ],
    ids=["hidden", "deleted"],
)
def test_a_paragraph_that_is_not_shown_has_no_number(gone: str, tmp_path: Path) -> None:
    body = paragraph(run("First"), properties=NUMBERED) + gone + paragraph(run("Second"), properties=NUMBERED)
    assert text_of(read(word_file(body, parts=NUMBERING), tmp_path)) == "1. First\n2. Second"


def test_a_style_raises_figures_as_a_run_does(tmp_path: Path) -> None:
    style = '<w:style w:type="character" w:styleId="{}"><w:basedOn w:val="{}"/><w:rPr>{}</w:rPr></w:style>'
    raised = style.format("Up", "", '<w:vertAlign w:val="superscript"/>') + style.format("Above", "Up", "")
    parts = {"s": ("styles", f"<w:styles {NAMESPACES}>{raised}</w:styles>")}
    level = '<w:rStyle w:val="Above"/><w:vertAlign w:val="baseline"/>'
    body = paragraph(run("10"), run("3", '<w:rStyle w:val="Above"/>'), run(" and 10"), run("3", level))
    assert text_of(read(word_file(body, parts=parts), tmp_path)) == "10³ and 103"


def test_a_style_strikes_text_out_as_a_run_does(tmp_path: Path) -> None:
    style = '<w:style w:type="character" w:styleId="{}"><w:basedOn w:val="{}"/><w:rPr>{}</w:rPr></w:style>'
    struck = style.format("Old", "", "<w:strike/>") + style.format("Older", "Old", "<w:b/>")
    valid = style.format("Valid", "Old", '<w:strike w:val="0"/>')
    parts = {"s": ("styles", f"<w:styles {NAMESPACES}>{struck}{valid}</w:styles>")}
    names = {"99 ": "Older", "89 ": "Valid"}
    pieces = [run(text, f'<w:rStyle w:val="{name}"/>') for text, name in names.items()]
    own = run("79 ", '<w:rStyle w:val="Old"/><w:strike w:val="0"/>')
    body = paragraph(run("Fee "), *pieces, own, run("69", '<w:rStyle w:val="Old"/>'), run(" crowns"))
    assert text_of(read(word_file(body, parts=parts), tmp_path)) == "Fee ~~99~~ 89 79 ~~69~~ crowns"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (("log", "_2", "8 is 3"), "log₂8 is 3"),
        (("101", "_2", " is 5"), "101₂ is 5"),
        (("H", "_2", "O and CO"), "H2O and CO"),
        (("Add 1 ", "^1", "/", "_2", " cups"), "Add 1 1/2 cups"),
        (("Add 1", "^1", "/", "_2", " cups"), "Add 1 1/2 cups"),
        (("Add 1", "^1", "^1", " / ", "_1", "_2", " cups"), "Add 1 11/12 cups"),
        (("^1", "/", "_2", " cups, 10", "^3", "/", "m"), "1/2 cups, 10³/m"),
        (("^1", "90 days of ", "^12", "80, ", "^14", "C"), "¹ 90 days of ¹² 80, 14C"),
        (
            ("Since ", "^20", "^19", " and 20", "^1", "^2", "; ", "^In 20", "^20 too"),
            "Since 2019 and 20¹²; In 2020 too",
        ),
        (("In all ", "^1", "^2", "80"), "In all ¹ ² 80"),
        (("^20", "^19"), "2019"),
        (("In 2019", "^3 of all 500 in 2020", "."), "In 2019³ of all 500 in 2020."),
    ],
)
@pytest.mark.parametrize("lowered", ['<w:vertAlign w:val="subscript"/>', '<w:position w:val="-6"/>'])
def test_a_lowered_figure_makes_no_larger_number(
    lowered: str, pieces: Sequence[str], shown: str, tmp_path: Path
) -> None:
    properties = {"^": '<w:vertAlign w:val="superscript"/>', "_": lowered}
    runs = (run(piece.lstrip("^_"), properties.get(piece[0], "")) for piece in pieces)
    output = read(word_file(paragraph(*(f"{one}<w:proofErr/>" for one in runs))), tmp_path)
    assert text_of(output) == shown
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("properties", "shown"),
    [
        ('<w:position w:val="-1"/>', "250"),
        ('<w:position w:val="3"/>', "250"),
        ('<w:position w:val="6"/><w:sz w:val="72"/>', "250"),
        ('<w:position w:val="-4"/>', "2₅0"),
        ('<w:position w:val="3"/><w:sz w:val="14"/>', "2⁵0"),
    ],
)
def test_a_figure_that_is_hardly_moved_is_part_of_its_number(properties: str, shown: str, tmp_path: Path) -> None:
    output = read(word_file(paragraph(run("2"), run("5", properties), run("0"))), tmp_path)
    assert text_of(output) == shown


def test_text_on_a_locked_canvas_is_read(tmp_path: Path) -> None:
    canvas = (
        '<lc:lockedCanvas xmlns:lc="http://schemas.openxmlformats.org/drawingml/2006/lockedCanvas"><a:sp><a:txSp>'
        "<a:txBody><a:p><a:r><a:t>Quay 3</a:t></a:r></a:p></a:txBody></a:txSp></a:sp></lc:lockedCanvas>"
    )
    drawing = f"<w:r><w:drawing><wp:inline><a:graphic><a:graphicData>{canvas}</a:graphicData></a:graphic></wp:inline>"
    output = read(word_file(paragraph(f"{drawing}</w:drawing></w:r>")), tmp_path)
    assert text_of(output) == "Quay 3"
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_a_damaged_equation_ends() -> None:
    for instruction in (
        "EQ " + r"\f(" * 5000,
        "EQ " + "(" * 5000,
        "EQ " + r"\o\ad" * 5000,
        r"EQ \f" + "(" * 5000,
        "EQ \\",
    ):
        assert re.search("[a-z]", format_field(instruction)) is None

"""Everything that Word shows of a document is read, whatever it is wrapped in, and what is missing is measured."""

from pathlib import Path

import pytest
from docx.oxml.ns import qn

from gateway.features.documents.engine.ingest.parsers import word_inline
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support.word_files import (
    CHANGE,
    cell,
    head_part,
    note_part,
    paragraph,
    row,
    run,
    table,
    text_box,
    text_cells,
    word_file,
)

WRAPPERS = {
    "ins": "<w:ins " + CHANGE + ">{}</w:ins>",
    "moveTo": "<w:moveTo " + CHANGE + ">{}</w:moveTo>",
    "sdt": "<w:sdt><w:sdtPr><w:alias w:val='n'/></w:sdtPr><w:sdtContent>{}</w:sdtContent></w:sdt>",
    "fldSimple": '<w:fldSimple w:instr=" REF x ">{}</w:fldSimple>',
    "smartTag": '<w:smartTag w:uri="u" w:element="place">{}</w:smartTag>',
    "customXml": '<w:customXml w:uri="u" w:element="e"><w:customXmlPr/>{}</w:customXml>',
    "dir": '<w:dir w:val="rtl">{}</w:dir>',
    "bdo": '<w:bdo w:val="rtl">{}</w:bdo>',
    "hyperlink": '<w:hyperlink w:anchor="a">{}</w:hyperlink>',
}
"""What may stand around runs."""

LARGE_WRAPPERS = {name: WRAPPERS[name] for name in ("sdt", "customXml", "ins")}
"""What may stand around paragraphs, rows and cells too."""


def read(data: bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "report.docx"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="docx"), max_bytes=2**20)


def text_of(output: ParserOutput) -> str:
    return "\n".join(chunk.content for chunk in output.chunks)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapped_run_is_part_of_its_sentence(name: str, tmp_path: Path) -> None:
    wrapped = WRAPPERS[name].format(run("90"))
    nested = "<w:ins " + CHANGE + ">" + WRAPPERS[name].format(run("Birch")) + "</w:ins>"
    body = paragraph(run("The notice period is "), wrapped, run(" days for tenant "), nested, run("."))
    output = read(word_file(body), tmp_path)
    assert text_of(output) == "The notice period is 90 days for tenant Birch."
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize("name", WRAPPERS)
def test_coverage_falls_when_a_wrapper_is_not_looked_into(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_inline, "HIDDEN", word_inline.HIDDEN | {qn(f"w:{name}")})
    body = paragraph(run("The notice period is "), WRAPPERS[name].format(run("90")), run(" days."))
    output = read(word_file(body), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"text": 1}
    assert any("missing: 1 words of text" in note for note in output.uncertainties)


@pytest.mark.parametrize("name", LARGE_WRAPPERS)
def test_wrapped_paragraphs_rows_and_cells_are_read(name: str, tmp_path: Path) -> None:
    wrap = LARGE_WRAPPERS[name].format
    body = wrap(paragraph(run("First."))) + table(
        row(*text_cells("Item", "Price")),
        wrap(row(*text_cells("Bolt", "12.50"))),
        row(wrap(cell(paragraph(run("Nut")))), cell(wrap(paragraph(run("0.40"))))),
    )
    output = read(word_file(body), tmp_path)
    assert text_of(output) == "First.\n| Item | Price |\n| --- | --- |\n| Bolt | 12.50 |\n| Nut | 0.40 |"


def test_deleted_and_moved_text_is_left_out_and_counted(tmp_path: Path) -> None:
    gone = f"<w:del {CHANGE}><w:r><w:delText>thirty whole</w:delText></w:r></w:del>"
    moved = f"<w:moveFrom {CHANGE}>{run('Serviced in May.')}</w:moveFrom>"
    rows = table(
        row(*text_cells("Kept", "1")),
        row(*[cell(paragraph(f"<w:del {CHANGE}>{run('Gone')}</w:del>"))], properties=f"<w:del {CHANGE}/>"),
    )
    output = read(word_file(paragraph(run("It is "), gone, run("ninety days.")) + paragraph(moved) + rows), tmp_path)
    assert text_of(output) == "It is ninety days.\n| Kept | 1 |\n| --- | --- |"
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted == {"deleted text": 3, "moved text": 3}


def test_hidden_text_is_left_out_and_counted(tmp_path: Path) -> None:
    shown = run("shown", '<w:vanish w:val="0"/>')
    output = read(word_file(paragraph(run("It is "), run("not ", "<w:vanish/>"), shown)), tmp_path)
    assert text_of(output) == "It is shown"
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden text": 1}


def test_a_paragraph_whose_end_was_deleted_goes_on(tmp_path: Path) -> None:
    first = paragraph(run("The fee is "), properties=f"<w:rPr><w:del {CHANGE}/></w:rPr>")
    output = read(word_file(first + paragraph(run("five crowns."))), tmp_path)
    assert text_of(output) == "The fee is five crowns."


def test_fields_show_their_results_and_forms_their_choices(tmp_path: Path) -> None:
    def mark(kind: str, inner: str = "") -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'

    instruction = "<w:r><w:instrText> DATE </w:instrText></w:r>"
    trees = '<w:result w:val="1"/><w:listEntry w:val="Oak"/><w:listEntry w:val="Ash"/>'
    listed = f"<w:ffData><w:ddList>{trees}</w:ddList></w:ffData>"
    ticked = "<w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData>"
    body = paragraph(
        mark("begin"), instruction, mark("separate"), run("12 March"), mark("end"), run(", tree "),
        mark("begin", listed), instruction, mark("end"), run(", paid "), mark("begin", ticked), mark("end"),
    )  # fmt: skip
    never_ends = paragraph(mark("begin"), instruction) + paragraph(run("It goes on."))
    assert text_of(read(word_file(body + never_ends), tmp_path)) == "12 March, tree Ash, paid ☒\nIt goes on."


@pytest.mark.parametrize("stored", ["", '<w:r><w:fldChar w:fldCharType="separate"/></w:r>' + run("Ash tree")])
@pytest.mark.parametrize("chosen", ['<w:result w:val="1"/>', '<w:default w:val="1"/>'])
def test_a_choice_of_a_form_is_shown_once_and_counted(tmp_path: Path, chosen: str, stored: str) -> None:
    listed = (
        f'<w:ffData><w:ddList>{chosen}<w:listEntry w:val="Oak"/><w:listEntry w:val="Ash tree"/></w:ddList></w:ffData>'
    )
    body = f'<w:r><w:fldChar w:fldCharType="begin">{listed}</w:fldChar></w:r>{stored}'
    output = read(word_file(paragraph(run("Tree: "), body, '<w:r><w:fldChar w:fldCharType="end"/></w:r>')), tmp_path)
    assert text_of(output) == "Tree: Ash tree"
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.total) == (1.0, 3)


def test_a_table_and_a_text_box_within_a_cell_follow_the_table(tmp_path: Path) -> None:
    inner = table(row(*text_cells("Volt", "230")), row(*text_cells("Ampere", "16")))
    boxed = paragraph(run("see"), text_box(paragraph(run("Code 8812")) + table(row(*text_cells("Hz", "50")))))
    outer = table(row(*text_cells("Device", "Rating")), row(cell(paragraph(run("P4"))), cell(boxed, inner, "<w:p/>")))
    output = read(word_file(outer), tmp_path)
    assert [chunk.content for chunk in output.chunks] == [
        "| Device | Rating |\n| --- | --- |\n| P4 | see |",
        "Code 8812",
        "| Hz | 50 |\n| --- | --- |",
        "| Volt | 230 |\n| --- | --- |\n| Ampere | 16 |",
    ]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_notes_follow_their_paragraph_and_name_their_word(tmp_path: Path) -> None:
    def reference(kind: str, number: int) -> str:
        return f'<w:r><w:{kind}Reference w:id="{number}"/></w:r>'

    body = paragraph(run("The density is 0.97"), reference("footnote", 2), run(" at 12 m"), reference("endnote", 2),
                     run(". Ten days."), reference("comment", 0)) + paragraph(run("Next."))  # fmt: skip
    body += table(row(cell(paragraph(run("Height"), reference("footnote", 3))), *text_cells("12")))
    parts = {
        "n1": (
            "footnotes",
            note_part("footnotes", {"2": "Measured by the lab.", "3": "Above the quay.", "9": "Unused."}),
        ),
        "n2": ("endnotes", note_part("endnotes", {"2": "Harbour log."})),
        "n3": ("comments", note_part("comments", {"0": "Legal wants 14.", "7": "Whole document."})),
    }
    output = read(word_file(body, parts=parts), tmp_path)
    assert text_of(output).splitlines() == [
        "The density is 0.97 at 12 m. Ten days.",
        "Footnote 1 on “0.97”: Measured by the lab.",
        "Endnote 1 on “m”: Harbour log.",
        "Comment by Ada on “days.”: Legal wants 14.",
        "Next.",
        "| Height | 12 |",
        "| --- | --- |",
        "Footnote 2 on “Height”: Above the quay.",
        "Comment by Ada: Whole document.",
    ]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_headers_and_footers_are_read_once_and_marked(tmp_path: Path) -> None:
    section = '<w:headerReference w:type="default" r:id="h1"/><w:headerReference w:type="first" r:id="h2"/>'
    section += '<w:footerReference w:type="default" r:id="f1"/><w:footerReference w:type="even" r:id="f2"/>'
    first = paragraph(properties=f"<w:sectPr>{section}</w:sectPr>")
    parts = {
        "h1": ("header", head_part("hdr", paragraph(run("Contract KX-2291")))),
        "h2": ("header", head_part("hdr", paragraph(run("Only on a title page")))),
        "f1": ("footer", head_part("ftr", paragraph(run("Harbour 9, Oslo")))),
        "f2": ("footer", head_part("ftr", paragraph(run("7")))),
    }
    output = read(word_file(paragraph(run("It starts on 1 May.")) + first, parts=parts, section=section), tmp_path)
    assert text_of(output) == "Page header: Contract KX-2291\nIt starts on 1 May.\nPage footer: Harbour 9, Oslo"
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted == {"unused header": 5, "unused footer": 1}


def test_equations_are_latex(tmp_path: Path) -> None:
    def text(inner: str) -> str:
        return f"<m:r><m:t>{inner}</m:t></m:r>"

    square = f"<m:sSup><m:e>{text('c')}</m:e><m:sup>{text('2')}</m:sup></m:sSup>"
    half = f"<m:f><m:fPr><m:ctrlPr/></m:fPr><m:num>{text('a+b')}</m:num><m:den>{text('2')}</m:den></m:f>"
    root = f"<m:rad><m:deg/><m:e>{text('x')}</m:e></m:rad>"
    sign = '<m:naryPr><m:chr m:val="∑"/></m:naryPr>'
    total = f"<m:nary>{sign}<m:sub>{text('i')}</m:sub><m:sup/><m:e>{text('n')}</m:e></m:nary>"
    body = paragraph(run("Energy is "), f"<m:oMath>{text('E=m')}{square}</m:oMath>", run(" in joules."))
    body += f"<m:oMathPara><m:oMath>{half}+{root}{total}</m:oMath></m:oMathPara>"
    output = read(word_file(body), tmp_path)
    assert text_of(output) == "Energy is E=mc^{2} in joules.\n\\frac{a+b}{2}\\sqrt{x}\\sum_{i} n"
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_a_ruby_text_is_followed_by_its_reading(tmp_path: Path) -> None:
    ruby = (
        f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('とうきょう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r>"
    )
    output = read(word_file(paragraph(ruby, run("に行く"))), tmp_path)
    assert text_of(output) == "東京(とうきょう)に行く"
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_symbols_are_the_characters_that_they_show(tmp_path: Path) -> None:
    symbols = '<w:r><w:sym w:font="Symbol" w:char="F0B1"/><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'
    private = run("\uf0a3", '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>')
    assert text_of(read(word_file(paragraph(run("x "), symbols, private, run(" 5"))), tmp_path)) == "x ±☑≤ 5"


def test_an_embedded_document_is_told(tmp_path: Path) -> None:
    body = paragraph(run("Intro.")) + '<w:altChunk r:id="c1"/>'
    output = read(word_file(body, parts={"c1": ("aFChunk", "<p>Embedded.</p>")}), tmp_path)
    assert output.uncertainties == ("an embedded document was not read: aFChunk1.html",)
    assert output.coverage is not None
    assert output.coverage.omitted == {"embedded document": 1}


CHART = """<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"
 xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Fuel
 stock</a:t></a:r></a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart>
 <c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>Tonnes</c:v></c:pt></c:strCache></c:strRef></c:tx>
 <c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>North</c:v></c:pt><c:pt idx="1"><c:v>South</c:v></c:pt></c:strCache>
 </c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx="1"><c:v>0.17499999999999999</c:v></c:pt></c:numCache>
 </c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>"""


def test_a_chart_is_a_table_of_its_values(tmp_path: Path) -> None:
    graphic = '<a:graphic><a:graphicData><c:chart r:id="c1"/></a:graphicData></a:graphic>'
    drawing = f"<w:r><w:drawing><wp:inline>{graphic}</wp:inline></w:drawing></w:r>"
    output = read(word_file(paragraph(run("See:"), drawing), parts={"c1": ("chart", CHART)}), tmp_path)
    assert text_of(output) == "See:\nFuel\n stock\n|  | Tonnes |\n| --- | --- |\n| North |  |\n| South | 0.175 |"
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_the_title_is_that_of_the_file_else_its_first_heading(tmp_path: Path) -> None:
    heading = paragraph(run("Harbour rules"), properties='<w:outlineLvl w:val="0"/>')
    assert read(word_file(paragraph(run("Text."))), tmp_path).metadata.get("title") is None
    assert read(word_file(heading), tmp_path).metadata["title"] == "Harbour rules"
    assert read(word_file(heading, core="Rules of 2026"), tmp_path).metadata["title"] == "Rules of 2026"


def test_a_file_in_strict_form_or_with_a_lost_picture_is_read(tmp_path: Path) -> None:
    plain = word_file(paragraph(run("Text.")), missing="NULL")
    assert text_of(read(plain, tmp_path)) == "Text."
    output = read(_make_strict(word_file(paragraph(run("Strict text.")))), tmp_path)
    assert text_of(output) == "Strict text."
    assert output.metadata["parser"] == "python-docx"


def _make_strict(data: bytes) -> bytes:
    import io
    import re
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(buffer, "w") as copy:
        for name in archive.namelist():
            strict = re.sub(
                rb"http://schemas.openxmlformats.org/(officeDocument|wordprocessingml|drawingml)/2006/",
                rb"http://purl.oclc.org/ooxml/\1/",
                archive.read(name),
            )
            copy.writestr(name, strict)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        (run("2026-0417"), "Page footer: 2026-0417\n"),
        (run("- 7 -"), ""),
        (run("12 / ") + '<w:fldSimple w:instr=" NUMPAGES ">' + run("12345") + "</w:fldSimple>", ""),
    ],
)
def test_the_number_of_a_document_is_no_page_number(head: str, shown: str, tmp_path: Path) -> None:
    parts = {"f": ("footer", head_part("ftr", paragraph(head)))}
    section = '<w:footerReference w:type="default" r:id="f"/>'
    output = read(word_file(paragraph(run("Text.")), parts=parts, section=section), tmp_path)
    assert f"{text_of(output)}\n" == f"Text.\n{shown}"
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_embedded_objects_and_parts_of_master_documents_are_told(tmp_path: Path) -> None:
    sheet = '<w:r><w:object><o:OLEObject xmlns:o="urn:schemas-microsoft-com:office:office" ProgID="Excel.Sheet.12"/>'
    body = paragraph(run("Text."), f"{sheet}</w:object></w:r>") + '<w:p><w:subDoc r:id="none"/></w:p>'
    assert read(word_file(body), tmp_path).uncertainties == (
        "an embedded object was not read (Excel.Sheet.12)",
        "an embedded document was not read: missing in the file",
    )


def test_what_was_deleted_in_equations_and_cells_is_counted_as_left_out(tmp_path: Path) -> None:
    gone = f"<w:del {CHANGE}><m:r><m:t>dead</m:t></m:r></w:del>"
    equation = paragraph(f"<m:oMath>{gone}<m:r><m:t>k=7</m:t></m:r></m:oMath>")
    cells = row(*text_cells("a"), cell(paragraph(run("Gone")), properties=f"<w:cellDel {CHANGE}/>"))
    output = read(word_file(equation + table(cells)), tmp_path)
    assert text_of(output) == "k=7\n| a |\n| --- |"
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted == {"deleted text": 2}


def test_descriptions_of_the_shapes_of_a_group_are_read(tmp_path: Path) -> None:
    shapes = "".join(
        f'<wps:wsp><wps:cNvPr id="{number}" name="s" descr="{text}"/></wps:wsp>'
        for number, text in enumerate(("Quay 3", "Arrow to the dock"), 2)
    )
    drawing = (
        '<w:r><w:drawing><wp:inline><wp:docPr id="1" name="g" descr="Plan of the harbour"/><a:graphic><a:graphicData>'
        f"{shapes}</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
    assert text_of(read(word_file(paragraph(run("Plan."), drawing)), tmp_path)).splitlines() == [
        "Plan.", "[image: Plan of the harbour]", "[image: Quay 3]", "[image: Arrow to the dock]",
    ]  # fmt: skip

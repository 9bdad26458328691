"""PDFs and presentations: turned text, damaged files, charts, diagrams, alternatives, reading order; CSV heads."""

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.util import Pt

from gateway.features.documents.engine.ingest.errors import ParserCorruptError
from gateway.features.documents.engine.ingest.parsers import pdf, slides
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import FileType, ParserInput, ParserOutput
from tests.support import documents
from tests.support.documents import Words


def read(data: bytes, file_type: FileType, tmp_path: Path) -> ParserOutput:
    path = tmp_path / f"file.{file_type}"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type=file_type), max_bytes=2**22)


def lines(output: ParserOutput) -> list[str]:
    return [chunk.content for chunk in output.chunks]


def complete(output: ParserOutput) -> bool:
    return output.coverage is not None and output.coverage.share == 1.0


BODY = [Words(f"Upright line {number} tells about dock {number}.", y=100 + 16 * number) for number in range(6)]


@pytest.mark.parametrize("turn", [90, 180, 270, 45])
def test_text_in_any_orientation_is_read(turn: float, tmp_path: Path) -> None:
    stamp = Words("Checked by the Tromso lab", x=420, y=500, turn=turn)
    output = read(documents.pdf([*BODY, stamp]), "pdf", tmp_path)
    assert "Checked by the Tromso lab" in " ".join(lines(output))
    assert complete(output)


def test_coverage_falls_when_turned_text_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "list_turned_items", lambda page: [])
    output = read(documents.pdf([*BODY, Words("Stamp 77", x=420, y=500, turn=90)]), "pdf", tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"turned text": 7}
    assert any("missing: 7 characters of turned text" in note for note in output.uncertainties)


def test_turned_heads_name_the_columns_of_their_table(tmp_path: Path) -> None:
    heads = [Words(text, x=209 + 60 * at, y=131, turn=90) for at, text in enumerate(["Shore", "Water", "Waste"])]
    rows = [["North quay", "4", "7", "1"], ["South quay", "2", "0", "3"], ["West quay", "9", "5", "6"]]
    cells = [
        Words(text, x=60 if at == 0 else 140 + 60 * at, y=150 + 20 * row)
        for row, r in enumerate(rows)
        for at, text in enumerate(r)
    ]
    output = read(documents.pdf([Words("Equipment by quay", y=50), *heads, *cells]), "pdf", tmp_path)
    assert "|  | Shore | Water | Waste |\n| --- | --- | --- | --- |\n| North quay | 4 | 7 | 1 |" in lines(output)[-1]
    assert complete(output)


def test_bytes_before_the_head_are_passed_over(tmp_path: Path) -> None:
    data = b"\r\nHTTP/1.1 200 OK\r\n\r\n" + documents.pdf(BODY)
    assert lines(read(data, "pdf", tmp_path)) == lines(read(documents.pdf(BODY), "pdf", tmp_path))


def _cut_table(data: bytes) -> bytes:
    return data[: data.index(b"xref\n")]


def _cut_stream(data: bytes) -> bytes:
    return data[: data.rindex(b"endstream") - 4]


def _pack(data: bytes) -> bytes:
    """Moves the catalogue and the page tree into an object stream, and cuts what follows."""
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: data[data.index(b"<</Type/Pages") : data.index(b"endobj", 70)].strip(),
    }
    first = b"1 0 2 %d " % (len(objects[1]) + 1)
    packed = zlib.compress(first + objects[1] + b" " + objects[2])
    stream = b"90 0 obj\n<</Type/ObjStm/N 2/First %d/Filter/FlateDecode/Length %d>>\nstream\n" % (
        len(first),
        len(packed),
    )
    start = data.index(b"3 0 obj")
    return data[:9] + data[start : data.index(b"xref\n")] + stream + packed + b"\nendstream\nendobj\n"


@pytest.mark.parametrize("damage", [_cut_table, _cut_stream, _pack])
def test_a_lost_table_of_objects_is_made_anew(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    whole = documents.pdf(BODY, [Words("Second page.")])
    output = read(damage(whole), "pdf", tmp_path)
    assert lines(output)[0] == lines(read(whole, "pdf", tmp_path))[0]
    assert any("was rebuilt" in note for note in output.uncertainties)


def test_a_file_without_its_catalogue_is_damaged(tmp_path: Path) -> None:
    data = _cut_table(documents.pdf(BODY)).replace(b"/Catalog", b"/Nothing")
    with pytest.raises(ParserCorruptError):
        read(data, "pdf", tmp_path)


def test_pages_that_a_file_claims_and_lacks_are_told(tmp_path: Path) -> None:
    few = documents.pdf(BODY).replace(b"/Count 1", b"/Count 3")
    assert read(few, "pdf", tmp_path).uncertainties == ("page 2 could not be read", "page 3 could not be read")
    many = documents.pdf(BODY).replace(b"/Count 1>>", b"/Count 300>>")
    assert "299 of 300 pages that the file claims could not be read" in read(many, "pdf", tmp_path).uncertainties


def presentation(build: Callable[[Any, Any], None], *, layout: int = 6) -> bytes:
    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[layout])
    build(slide, made)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def add_box(slide: Any, text: str, left: float, top: float) -> Any:
    box = slide.shapes.add_textbox(Pt(left), Pt(top), Pt(100), Pt(30))
    box.text_frame.text = text
    return box


def test_a_chart_is_a_table_and_counts_its_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(slide: Any, _: Any) -> None:
        data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
        data.categories = ["North", "South"]
        data.add_series("Tonnes", (19.2, 21.4))
        data.add_series("Trips", (3, None))
        slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(50), Pt(50), Pt(300), Pt(200), data)

    made = presentation(build)
    output = read(made, "pptx", tmp_path)
    assert lines(output) == ["|  | Tonnes | Trips |\n| --- | --- | --- |\n| North | 19.2 | 3 |\n| South | 21.4 |  |"]
    assert complete(output)
    monkeypatch.setattr(slides, "add_graphics", lambda draft, *_: draft.add_text("lost"))
    assert read(made, "pptx", tmp_path).coverage.missing["chart"] > 5  # type: ignore[union-attr]


def test_boxes_at_about_the_same_height_are_read_from_the_left(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        add_box(slide, "Right", 360, 72)
        add_box(slide, "Left", 36, 74)
        add_box(slide, "Below", 10, 200)

    assert lines(read(presentation(build), "pptx", tmp_path)) == ["Left", "Right", "Below"]


def test_the_shown_branch_of_an_alternative_is_read(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        new, old = add_box(slide, "Shown text", 36, 72), add_box(slide, "For old programs", 36, 72)
        tree = new._element.getparent()
        choices = parse_xml(
            '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
            '<mc:Choice Requires="p14"/><mc:Fallback/></mc:AlternateContent>'
        )
        tree.append(choices)
        choices[0].append(new._element)
        choices[1].append(old._element)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == ["Shown text"]
    assert complete(output)


def test_merged_cells_and_moved_figures(tmp_path: Path) -> None:
    def build(slide: Any, _: Any) -> None:
        table = slide.shapes.add_table(3, 2, Pt(50), Pt(50), Pt(300), Pt(100)).table
        for row, texts in enumerate([["Zone", "Plan"], ["East", "S"], ["", "M"]]):
            for column, text in enumerate(texts):
                table.cell(row, column).text_frame.text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        paragraph = add_box(slide, "10", 50, 300).text_frame.paragraphs[0]
        raised = paragraph.add_run()
        raised.text = "3"
        raised.font._element.set("baseline", "30000")
        fraction = (("1", "30000"), ("/", "0"), ("2", "-25000"))
        year = ((" in ", "0"), ("20", "30000"), ("19", "30000"))
        for text, baseline in ((" and log", "0"), ("2", "-25000"), ("8 and 1", "0"), *fraction, *year):
            following = paragraph.add_run()
            following.text = text
            following.font._element.set("baseline", baseline)

    output = read(presentation(build), "pptx", tmp_path)
    assert lines(output) == [
        "| Zone | Plan |\n| --- | --- |\n| East | S |\n| East | M |",
        "10³ and log₂8 and 1 1/2 in 2019",
    ]
    assert complete(output)


def test_a_presentation_is_named_by_its_first_title(tmp_path: Path) -> None:
    def build(slide: Any, made: Any) -> None:
        slide.shapes.title.text_frame.text = "Harbour plan"
        package = made.part.package
        for number, relation in list(package._rels.items()):
            if relation.reltype.endswith("/core-properties"):
                package._rels.pop(number)

    data = presentation(build, layout=5)
    assert read(data, "pptx", tmp_path).metadata["title"] == "Harbour plan"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sep=;\nName;Price\nBolt;1,50\n", ["| Name | Price |\n| --- | --- |\n| Bolt | 1,50 |"]),
        (
            "Report of March\n\nName,Qty\nBolt,5\nNut,6\n",
            ["Report of March", "| Name | Qty |\n| --- | --- |\n| Bolt | 5 |\n| Nut | 6 |"],
        ),
        ('a,b\n"he said \\"hi\\", ok",2\n', ['| a | b |\n| --- | --- |\n| he said "hi", ok | 2 |']),
        ('a,b\n"C:\\dir\\",2\n"x",3\n', ["| a | b |\n| --- | --- |\n| C:\\dir\\ | 2 |\n| x | 3 |"]),
        ("one column\nx\ny\n", ["| one column |\n| --- |\n| x |\n| y |"]),
    ],
)
def test_what_stands_before_a_table_is_no_row_of_it(text: str, expected: list[str], tmp_path: Path) -> None:
    output = read(text.encode(), "csv", tmp_path)
    assert lines(output) == expected
    assert complete(output)


def test_what_people_wrote_on_a_page_is_read(tmp_path: Path) -> None:
    output = read(documents.annotated_pdf([*BODY], [
        "/Subtype/FreeText/Contents(Paid 12 May)", "/Subtype/Text/Contents(Is it net?)/T(Ann)",
        "/Subtype/Highlight/Contents(Check 68)", "/Subtype/Popup/Contents(Is it net?)", "/Subtype/Link",
    ]), "pdf", tmp_path)  # fmt: skip
    assert lines(output)[-3:] == ["Paid 12 May", "Comment by Ann: Is it net?", "Comment: Check 68"]

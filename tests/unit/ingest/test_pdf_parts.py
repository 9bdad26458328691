"""What a PDF shows beside its paragraphs: raised figures, heads and feet, crossed lines, stamps, attachments, values of
XFA, descriptions of pictures."""

import re
import zlib
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.coverage import measure_coverage
from gateway.features.documents.engine.ingest.errors import ParserEmptyError
from gateway.features.documents.engine.ingest.parsers import ParserPool
from gateway.features.documents.engine.ingest.parsers.pdf_layers import leave_out_hidden
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support.documents import Words, annotated_pdf, drawn_pdf, pdf, pdf_stream, protected_pdf

BODY = [Words(f"Upright line {number} tells about dock {number}.", y=100 + 16 * number) for number in range(6)]
PLAIN = b"BT /F1 11 Tf 72 600 Td (Rent is due on the third day.) Tj ET"
FORM = "/Type/XObject/Subtype/Form/BBox[0 0 200 40]/Resources<</Font<</F1 3 0 R>>>>"


def read(data: bytes, tmp_path: Path, seconds: float = inf) -> ParserOutput:
    path = tmp_path / "file.pdf"
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="pdf"), max_bytes=2**20, seconds=seconds)


def lines(output: ParserOutput) -> list[str]:
    return [chunk.content for chunk in output.chunks]


def complete(output: ParserOutput) -> bool:
    return output.coverage is not None and output.coverage.share == 1.0


def rise(*pieces: str, height: float = 4) -> bytes:
    """A line of pieces, every second of which is raised."""
    shown = (
        f"/F1 {6 if at % 2 else 11} Tf {height if at % 2 else 0} Ts ({piece}) Tj" for at, piece in enumerate(pieces)
    )
    return f"BT 72 500 Td {' '.join(shown)} ET".encode()


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("The rent is 40", "1", " euros."), "The rent is 40\u00b9 euros."),
        (
            ("Of 10", "3", " items and 103 parts, 12 of 10", "-12", " mol."),
            "Of 10\u00b3 items and 103 parts, 12 of 10\u207b\u00b9\u00b2 mol.",
        ),
        (("103 parts, then 10", "3", ""), "103 parts, then 10\u00b3"),
        (("A flat of 25 m", "2", " in 1903"), "A flat of 25 m\u00b2 in 1903"),
        (("390 days, in all ", "3", "90 of 3 90"), "390 days, in all \u00b3 90 of 3 90"),
        (("In all ", "12", "80, then 1280"), "In all \u00b9\u00b2 80, then 1280"),
    ],
)
def test_a_raised_figure_makes_no_larger_number(pieces: Sequence[str], expected: str, tmp_path: Path) -> None:
    output = read(drawn_pdf(rise(*pieces)), tmp_path)
    assert lines(output) == [expected]
    assert complete(output)


def test_a_page_of_marks_is_read_in_time(tmp_path: Path) -> None:
    mark = b"/F1 11 Tf (a ) Tj 4 Ts /F1 6 Tf (1) Tj 0 Ts /F1 11 Tf (90 ) Tj "
    lines_of_marks = b"".join(mark * 12 + b"T* " for _ in range(80))
    output = read(drawn_pdf(b"BT /F1 11 Tf 10 TL 20 780 Td " + lines_of_marks + b"ET"), tmp_path)
    assert "".join(lines(output)).count("a \u00b9 90") == 200, "each is looked for in the whole page"


def test_a_page_may_have_the_box_of_its_page_tree(tmp_path: Path) -> None:
    node = "<</Type/Pages/Parent 2 0 R/Kids[5 0 R]/Count 1/MediaBox[0 0 595 842]>>"
    own = b"/Parent 2 0 R/MediaBox[0 0 612 792]"
    data = drawn_pdf(b"BT /F1 11 Tf 72 815 Td (The top of an A4 page) Tj ET", objects=[node])
    data = data.replace(b"/Kids[5 0 R]", b"/Kids[4 0 R]", 1).replace(own, b"/Parent 4 0 R".ljust(len(own)))
    output = read(data, tmp_path)
    assert lines(output) == ["The top of an A4 page"]
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.omitted) == (1.0, {})


@pytest.mark.parametrize("unit", ["10", "2.5"])
def test_a_page_in_a_unit_of_its_own_keeps_its_words(unit: str, tmp_path: Path) -> None:
    shown = b"BT /F1 11 Tf 72 700 Td (Rent is 512 euros a month.) Tj ET"
    output = read(drawn_pdf(shown, page_entries=f"/UserUnit {unit}"), tmp_path)
    assert lines(output) == ["Rent is 512 euros a month."]
    assert complete(output)


def test_a_page_may_have_a_larger_box_than_its_page_tree(tmp_path: Path) -> None:
    data = drawn_pdf(
        b"BT /F1 11 Tf 72 750 Td (The top of a letter) Tj ET",
        objects=["<</Type/Pages/Parent 2 0 R/Kids[5 0 R]/Count 1/MediaBox[0 0 792 612]>>"],
    ).replace(b"/Kids[5 0 R]", b"/Kids[4 0 R]", 1)
    output = read(data, tmp_path)
    assert lines(output) == ["The top of a letter"]
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.omitted) == (1.0, {})


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("Now log", "2", "8 is 3, and 82 or 28 is not."), "Now log\u20828 is 3, and 82 or 28 is not."),
        (("In 1012 of 101", "2", " and 11", "10", ", or 7."), "In 1012 of 101\u2082 and 11\u2081\u2080, or 7."),
        (("Of CO", "2", " and H", "2", "O 5 mg."), "Of CO2 and H2O 5 mg."),
    ],
)
@pytest.mark.parametrize("height", [-1.65, -3])
def test_a_lowered_figure_makes_no_larger_number(
    height: float, pieces: Sequence[str], expected: str, tmp_path: Path
) -> None:
    output = read(drawn_pdf(rise(*pieces, height=height)), tmp_path)
    assert lines(output) == [expected]
    assert complete(output)


def test_a_line_that_a_watermark_crosses_is_read(tmp_path: Path) -> None:
    output = read(pdf([*BODY, Words("DRAFT COPY", 100, 142, 50, turn=-30)]), tmp_path)
    text = " ".join(lines(output))
    assert all(line.text in text for line in BODY)
    assert "DRAFT COPY" in text
    assert complete(output)


@pytest.mark.parametrize(
    "counter", ["{}", "- {} -", "{} / 4", "{} of 4", "Page {}", "Page {} of 4", "Sida {} av 9", "S. {} / 4"]
)
def test_heads_and_counters_are_read_once_and_repetitions_counted_apart(counter: str, tmp_path: Path) -> None:
    pages = [
        [
            Words("Acme Ltd, contract 4711", y=14),
            Words(f"Body of page {at}.", y=180),
            Words(counter.format(at), y=754),
        ]
        for at in range(1, 5)
    ]
    output = read(pdf(*pages), tmp_path)
    assert lines(output) == [
        "Acme Ltd, contract 4711",
        "Body of page 1.",
        counter.format(1),
        *(f"Body of page {at}." for at in range(2, 5)),
    ]
    assert complete(output)
    assert output.coverage is not None
    assert output.coverage.omitted == {
        "words of repeated heads and feet of pages": 3 * (4 + len(re.findall(r"\w+", counter.format(1)))),
    }


@pytest.mark.parametrize("line", ["Lot {}", "Invoice {} of 3", "Amount due {}"])
@pytest.mark.parametrize("y", [20, 754])
def test_a_line_with_words_is_read_although_its_number_is_that_of_the_page(line: str, y: float, tmp_path: Path) -> None:
    pages = [[Words(line.format(at), y=y, size=14), Words(f"Bid {at}00 euros.", y=400)] for at in range(1, 4)]
    output = read(pdf(*pages), tmp_path)
    text = lines(output)
    assert [line.format(at) in text for at in range(1, 4)] == [True] * 3
    assert complete(output)
    assert output.coverage is not None
    assert not output.coverage.omitted


@pytest.mark.parametrize(
    ("line", "size"),
    [
        (("", "{}", ""), 14),
        (("", "202{}", ""), 11),
        (("", "0{}/2024", ""), 11),
        (("", "0{}/24", ""), 11),
        (("", "{}/24", ""), 11),
        (("", "10{}", ""), 11),
        (("", "{}.50", ""), 11),
        (("", "-{}", ""), 11),
        (("", "{} EUR", ""), 11),
        (("Total", "{},000", ""), 11),
        (("Page", "{}.5 EUR", ""), 11),
    ],
)
@pytest.mark.parametrize("y", [20, 754])
def test_a_figure_that_counts_no_pages_is_read(line: Sequence[str], size: float, y: float, tmp_path: Path) -> None:
    pages = [[*head(line, at, y, size), *body(at)] for at in range(1, 4)]
    output = read(pdf(*pages), tmp_path)
    text = " ".join(lines(output))
    assert [line[1].format(at) in text for at in range(1, 4)] == [True] * 3
    assert complete(output)
    lost = [chunk for chunk in lines(output) if line[1].format(2) not in chunk]
    coverage = measure_coverage(pdf(*pages), "pdf", lost)
    assert coverage is not None
    assert coverage.share < 1.0


@pytest.mark.parametrize(
    "line",
    [
        ("Acme Ltd", "Seite {}", "Internal"),
        ("The Author", "1{}", ""),
        ("", "1{}", "The Title of the Book"),
        ("Acme Ltd", "{} / 5", ""),
        ("Acme Ltd | {}", "", ""),
    ],
)
def test_a_line_is_read_once_although_it_counts_the_pages(line: Sequence[str], tmp_path: Path) -> None:
    pages = [[*head(line, at, 754), *body(at)] for at in range(1, 6)]
    output = read(pdf(*pages), tmp_path)
    shown = " ".join(filter(None, line)).format(1)
    assert [chunk for chunk in lines(output) if "dock" not in chunk] == [shown]
    assert complete(output)
    assert output.coverage is not None
    assert output.coverage.omitted.keys() == {"words of repeated heads and feet of pages"}


def head(line: Sequence[str], at: int, y: float, size: float = 11) -> list[Words]:
    """A line of a page: parts at its left, in its middle and at its right."""
    return [Words(text.format(at), x, y, size) for text, x in zip(line, (72, 280, 420), strict=True) if text]


def body(at: int) -> list[Words]:
    """Lines of a page that are on no other."""
    return [Words(f"Upright line {number} of {at} tells about dock {at}.", y=100 + 16 * number) for number in range(6)]


def test_the_measure_misses_a_head_whose_number_is_that_of_the_page() -> None:
    pages = [[Words(f"Lot {at}", y=20), Words(f"Bid {at}00 euros.", y=400)] for at in range(1, 4)]
    coverage = measure_coverage(pdf(*pages), "pdf", ["Lot 1", *(f"Bid {at}00 euros." for at in range(1, 4))])
    assert coverage is not None
    assert coverage.missing == {"text": 8}


def test_a_page_that_repeats_the_one_before_is_read(tmp_path: Path) -> None:
    pages = [[Words("Receipt for 20 euros", y=40)] for _ in range(2)]
    assert lines(read(pdf(*pages), tmp_path)) == ["Receipt for 20 euros"] * 2


def test_heads_that_differ_are_all_read(tmp_path: Path) -> None:
    pages = [[Words(f"Contract 47{at}", y=14), Words(f"Body of page {at}.", y=180)] for at in range(10, 14)]
    text = " ".join(lines(read(pdf(*pages), tmp_path)))
    assert all(f"Contract 47{at}" in text for at in range(10, 14))


def stamp(entries: str, content: bytes = b"BT /F1 11 Tf 5 10 Td (APPROVED 12 May) Tj ET") -> bytes:
    note = f"/Annots[<</Type/Annot/Subtype/Stamp/Rect[300 300 500 340]{entries}>>]"
    return drawn_pdf(PLAIN, page_entries=note, objects=[pdf_stream(FORM, content)])


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("/AP<</N 4 0 R>>", ["APPROVED 12 May"]),
        ("/AP<</N 4 0 R>>/Contents(by Ann)", ["Comment: by Ann", "APPROVED 12 May"]),
        ("/Name/Approved", ["Stamp: Approved"]),
        ("/AP<</N 4 0 R>>/F 2", []),
    ],
)
def test_the_words_of_a_stamp_are_read(entries: str, expected: list[str], tmp_path: Path) -> None:
    assert lines(read(stamp(entries), tmp_path)) == ["Rent is due on the third day.", *expected]


ATTACHED = {
    "catalog": "/Names<</EmbeddedFiles<</Names[(annex.txt) 4 0 R]>>>>",
    "objects": ["<</Type/Filespec/F(annex.txt)/UF(annex.txt)/EF<</F 5 0 R>>>>", pdf_stream("/Type/EmbeddedFile", b"x")],
}


def test_attachments_are_named(tmp_path: Path) -> None:
    output = read(drawn_pdf(PLAIN, **ATTACHED), tmp_path)  # type: ignore[arg-type]
    assert output.uncertainties == ("attachments were not read: annex.txt",)
    assert output.metadata["attachments"] == ["annex.txt"]
    with pytest.raises(ParserEmptyError, match=r"holds no text; attachments were not read: annex\.txt"):
        read(drawn_pdf(b"", **ATTACHED), tmp_path)  # type: ignore[arg-type]


def test_the_values_of_a_form_of_xfa_are_read(tmp_path: Path) -> None:
    data = (
        "<xfa:datasets xmlns:xfa='http://www.xfa.org/schema/xfa-data/1.0/'><xfa:data><form1>"
        "<Tenant_name>Anna L</Tenant_name><Rent>1240</Rent><Empty/></form1></xfa:data></xfa:datasets>"
    )
    wait = b"BT /F1 11 Tf 72 600 Td (Please wait while the form is drawn.) Tj ET"
    form = drawn_pdf(
        wait, catalog="/AcroForm<</Fields[]/XFA[(datasets)4 0 R]>>", objects=[pdf_stream("", data.encode())]
    )
    output = read(form, tmp_path)
    assert lines(output)[-1] == "Tenant name: Anna L\nRent: 1240"
    assert "drawn by XFA" in output.uncertainties[0]


def test_the_description_of_a_picture_is_read(tmp_path: Path) -> None:
    output = read(
        drawn_pdf(
            b"/P<</MCID 0>> BDC " + PLAIN + b" EMC /Figure<</MCID 1>> BDC 72 300 50 50 re f EMC",
            catalog="/MarkInfo<</Marked true>>/StructTreeRoot 4 0 R",
            page_entries="/StructParents 0",
            objects=[
                "<</Type/StructTreeRoot/K 5 0 R/ParentTree 8 0 R>>",
                "<</Type/StructElem/S/Document/P 4 0 R/K[6 0 R 7 0 R]>>",
                "<</Type/StructElem/S/P/P 5 0 R/Pg 9 0 R/K 0/Alt(not for a paragraph)>>",
                "<</Type/StructElem/S/Figure/P 5 0 R/Pg 9 0 R/K 1/Alt(Rents since 2019)>>",
                "<</Nums[0[6 0 R 7 0 R]]>>",
            ],
        ),
        tmp_path,
    )
    assert lines(output) == ["Rent is due on the third day.", "[image: Rents since 2019]"]


def test_a_page_is_measured_whichever_corners_it_gives(tmp_path: Path) -> None:
    data = pdf(BODY).replace(b"/MediaBox[0 0 612 792]", b"/MediaBox[612 792 0 0]")
    assert complete(read(data, tmp_path))


def test_a_file_that_opens_without_a_password_is_read(tmp_path: Path) -> None:
    output = read(protected_pdf(BODY, ""), tmp_path)
    assert "Upright line 3" in lines(output)[0]
    assert complete(output)


async def test_a_file_that_ends_its_measure_is_read_without_it(tmp_path: Path) -> None:
    """A page tree that holds itself: pdf_oxide follows it until its stack ends."""
    path = tmp_path / "loop.pdf"
    path.write_bytes(pdf(BODY, [Words("Second page.")]).replace(b"/Kids[4 0 R 6 0 R]", b"/Kids[4 0 R 2 0 R]"))
    async with ParserPool(processes=1) as pool:
        output = await pool.parse(ParserInput(file_path=str(path), file_type="pdf"))
    assert "Upright line 3" in lines(output)[0]
    assert output.coverage is None
    assert any("could not be measured" in note for note in output.uncertainties)


def test_a_note_that_nobody_sees_is_left_out(tmp_path: Path) -> None:
    notes = [
        "/Subtype/FreeText/F 2/Contents(Hidden 5)",
        "/Subtype/Text/Contents(Shown 6)",
        "/Subtype/Text/F 32/Contents(x)",
    ]
    output = read(annotated_pdf([Words("Body.")], notes), tmp_path)
    assert lines(output) == ["Body.", "Comment: Shown 6"]


def test_the_mark_of_a_note_behind_a_sentence_is_no_decimal(tmp_path: Path) -> None:
    output = read(drawn_pdf(rise("The rent is 40.", "3", " It falls 3 times.")), tmp_path)
    assert lines(output) == ["The rent is 40.\u00b3 It falls 3 times."]


GROUPS = ("<</Type/OCG/Name(Shown)>>", "<</Type/OCG/Name(Draft \\(2\\))>>")
LAYERED = b"/OC /A BDC BT /F1 11 Tf 72 700 Td (Rent is 40.) Tj ET EMC /OC /B BDC BT 72 680 Td (Rent is 35.) Tj ET EMC"
LAYERS = "/Properties<</A 4 0 R/B 5 0 R>>"


@pytest.mark.parametrize(
    ("settings", "hidden", "shown"),
    [
        ("/D<</ON[4 0 R]/OFF[5 0 R]>>", "Draft (2)", "Rent is 40."),
        ("/D<</BaseState/OFF/ON[5 0 R]>>", "Shown", "Rent is 35."),
        ("/D<</ON[4 0 R 5 0 R]/OFF[]>>", "", "Rent is 40. Rent is 35."),
        ("/D 6 0 R", "Draft (2)", "Rent is 40."),
    ],
)
def test_layers_that_are_off_are_left_out(settings: str, hidden: str, shown: str, tmp_path: Path) -> None:
    catalog = f"/OCProperties<</OCGs[4 0 R 5 0 R]{settings}>>"
    objects = [*GROUPS, "<</OFF[5 0 R]>>"]
    output = read(drawn_pdf(LAYERED, resources=LAYERS, objects=objects, catalog=catalog), tmp_path)
    note = f"layers that are off, which no viewer shows, were left out: {hidden}"
    assert " ".join(lines(output)) == shown
    assert output.uncertainties == ((note,) if hidden else ())
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted == ({"words in layers that are off": 3} if hidden else {})


@pytest.mark.parametrize("policy", ["", "/P/AllOn"])
def test_what_belongs_to_hidden_layers_as_a_whole_is_left_out(policy: str, tmp_path: Path) -> None:
    form = pdf_stream(
        "/Type/XObject/Subtype/Form/BBox[0 0 612 792]/OC 4 0 R", b"BT /F1 11 Tf 72 640 Td (Form 8.) Tj ET"
    )
    page = LAYERED + b" /OC /S BDC BT /F1 11 Tf 72 660 Td (Rent is 30.) Tj ET EMC /X Do"
    resources = "/Properties<</A 4 0 R/B 5 0 R/S 6 0 R>>/XObject<</X 7 0 R>>"
    objects: list[str | bytes] = [*GROUPS, f"<</Type/OCMD/OCGs[4 0 R]{policy}>>", form]
    catalog = "/OCProperties<</OCGs[4 0 R 5 0 R]/D<</OFF[4 0 R]>>>>"
    output = read(drawn_pdf(page, resources=resources, objects=objects, catalog=catalog), tmp_path)
    assert lines(output) == ["Rent is 35."]


def test_a_layer_with_the_name_of_one_that_is_off_stays(tmp_path: Path) -> None:
    groups = ("<</Type/OCG/Name(Text)>>", "<</Type/OCG/Name(Text)>>")
    catalog = "/OCProperties<</OCGs[4 0 R 5 0 R]/D<</OFF[5 0 R]>>>>"
    output = read(drawn_pdf(LAYERED, resources=LAYERS, objects=groups, catalog=catalog), tmp_path)
    assert "Rent is 40." in " ".join(lines(output))
    assert output.uncertainties == ("layers that are off, which no viewer shows, may have been read too: Text",)


def test_layers_are_found_in_packed_objects() -> None:
    inner = [b"<</OCProperties<</D<</OFF[8 0 R]>>>>>>", b"<</Type/OCG/Name<FEFF0041>>>"]
    head = b"7 0 8 %d " % len(inner[0])
    packed = zlib.compress(head + b"".join(inner))
    stream = b"9 0 obj\n<</Type/ObjStm/N 2/First %d>>\nstream\n%b\nendstream\nendobj\n" % (len(head), packed)
    note = "layers that are off, which no viewer shows, may have been read too: A"
    assert leave_out_hidden(b"%PDF-1.5\n" + stream, None).note == note
    assert leave_out_hidden(b"%PDF-1.5\n" + stream[:-40], None).note in ("", note)


THREE = [[Words(f"Body of page {at}.", y=300)] for at in (1, 2, 3)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_pages_beyond_those_that_the_file_claims_are_read(count: int, tmp_path: Path) -> None:
    output = read(pdf(*THREE).replace(b"/Count 3", b"/Count %d" % count), tmp_path)
    assert lines(output) == ["Body of page 1.", "Body of page 2.", "Body of page 3."]
    assert output.total_pages == 3
    if count:
        assert output.uncertainties == (f"the file claims {count} pages and has 3; all were read",)


def test_a_file_whose_measure_takes_too_long_is_read_without_it(tmp_path: Path) -> None:
    """A measure may go through a million pages that are one: it ends before the file's time does."""
    output = read(pdf(*THREE), tmp_path, seconds=-1)
    assert lines(output) == ["Body of page 1.", "Body of page 2.", "Body of page 3."]
    assert output.coverage is None
    assert output.uncertainties == ("how much of the file was read could not be measured (TimeoutError)",)


def test_a_page_that_was_taken_out_stays_out(tmp_path: Path) -> None:
    data = pdf(*THREE).replace(b"/Kids[4 0 R 6 0 R 8 0 R]/Count 3", b"/Kids[4 0 R 6 0 R      ]/Count 2")
    output = read(data, tmp_path)
    assert lines(output) == ["Body of page 1.", "Body of page 2."]
    assert not output.uncertainties

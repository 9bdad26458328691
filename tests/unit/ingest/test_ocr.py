"""Scanned pages, read by the tesseract of this machine: words, places, doubts."""

import asyncio
import shutil
import subprocess
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
from liteparse import LiteParse
from PIL import Image

from gateway.features.documents.engine.ingest.errors import ParserEmptyError, ParserTimeoutError
from gateway.features.documents.engine.ingest.parsers import ParserLimits, ParserPool, ocr, pdf_scans
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.support import documents
from tests.support.documents import Words

ENGLISH = (
    Words("Quarterly maintenance report", y=72),
    Words("Pump 7 leaked 12 litres of coolant on Monday", y=90),
    Words("and was replaced by Maria Lindqvist.", y=108),
)
SWEDISH = (Words("Räkningen gäller för ägare av sjöbodar i Öregrund", size=12),)
DPI = 200


def _languages() -> set[str]:
    program = shutil.which("tesseract")
    if program is None:
        return set()
    listed = subprocess.run([program, "--list-langs"], capture_output=True, check=True, text=True, timeout=30)
    return set(listed.stdout.split())


THERE = _languages()


def needs(*languages: str) -> pytest.MarkDecorator:
    absent = sorted({*languages} - THERE)
    return pytest.mark.skipif(bool(absent), reason=f"tesseract is not here with its data for {', '.join(absent)}")


def scan(*pages: tuple[Sequence[Words], int]) -> bytes:
    """Pages of words as pictures, each turned by so many degrees."""
    drawn = documents.pdf(*(words for words, _ in pages))
    shots = LiteParse(ocr_enabled=False, quiet=True, extract_screenshots=True, dpi=DPI).parse(drawn).screenshots
    pictures = [
        Image.open(BytesIO(shot.image_bytes)).convert("L").rotate(turned, expand=True)
        for shot, (_, turned) in zip(shots, pages, strict=True)
    ]
    saved = BytesIO()
    pictures[0].save(saved, "PDF", resolution=DPI, save_all=True, append_images=pictures[1:])
    return saved.getvalue()


async def read(path: Path, data: bytes, *, languages: str = "eng", force_ocr: bool = False) -> ParserOutput:
    await asyncio.to_thread(path.write_bytes, data)
    async with ParserPool(ParserLimits(ocr_languages=languages), processes=1) as pool:
        return await pool.parse(ParserInput(file_path=str(path), file_type="pdf", force_ocr=force_ocr))


def text_of(output: ParserOutput, page: int) -> str:
    return " ".join(" ".join(chunk.content.split()) for chunk in output.chunks if chunk.page_number == page)


SAID = " ".join(line.text for line in ENGLISH)


@needs("eng", "osd")
async def test_scanned_pages_are_read_whichever_way_up_they_lie(tmp_path: Path) -> None:
    output = await read(tmp_path / "scan.pdf", scan((ENGLISH, 0), (ENGLISH, 180), (ENGLISH, 90)))
    assert [text_of(output, page) for page in (1, 2, 3)] == [SAID] * 3
    upright, upside_down = (chunk.bbox for chunk in output.chunks if chunk.page_number in (1, 2))
    assert upright == pytest.approx((72, 74, 295, 119), abs=10)
    assert upside_down == pytest.approx((317, 673, 540, 718), abs=10)
    (told,) = output.uncertainties
    assert told.startswith("pages 1-3 were read by OCR (mean confidence 9")


@needs("eng")
async def test_a_page_with_text_is_read_by_ocr_only_where_that_is_asked_for(tmp_path: Path) -> None:
    data = documents.pdf(ENGLISH)
    plain = await read(tmp_path / "text.pdf", data)
    forced = await read(tmp_path / "text.pdf", data, force_ocr=True)
    assert text_of(forced, 1) == text_of(plain, 1) == SAID
    assert plain.uncertainties == ()
    assert "page 1 was read by OCR" in forced.uncertainties[0]


@needs("eng", "swe")
async def test_a_scan_is_read_in_the_languages_it_is_said_to_be_in(tmp_path: Path) -> None:
    data = scan((SWEDISH, 0))
    assert text_of(await read(tmp_path / "sv.pdf", data, languages="swe+eng"), 1) == SWEDISH[0].text


@needs("eng")
async def test_a_picture_without_words_is_no_empty_success(tmp_path: Path) -> None:
    with pytest.raises(ParserEmptyError, match="holds pictures only; page 1: OCR found no text") as empty:
        await read(tmp_path / "bars.pdf", documents.scanned_pdf())
    assert empty.value.details == {"reason": "scanned"}


@needs("eng")
def test_a_scan_with_too_many_pages_for_its_time_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(scan((ENGLISH, 0), (ENGLISH, 0)))
    wanted = ParserInput(file_path=str(path), file_type="pdf")
    with pytest.raises(ParserTimeoutError, match=r"0 of 2 pages were read .* the pipeline template `scans`") as late:
        read_file(wanted, max_bytes=10**7, seconds=4)
    assert late.value.details == {"reason": "ocr", "pages": 2, "done": 0}


STAMP = "Envelope 1A2B3C4D-5E6F-7890-ABCD-1234567890AB of the office"
LINE = "Notice is nine days"


def list_table(*paragraphs: tuple[str, int]) -> str:
    """What tesseract prints of paragraphs, each with the confidence of its words."""
    return "\n".join(
        "\t".join(["5", "1", str(paragraph), "1", "1", "1", "10", "10", "90", "12", str(confidence), word])
        for paragraph, (line, confidence) in enumerate(paragraphs)
        for word in line.split()
    )


def put_tesseract(folder: Path, reads: str, before: str = "") -> None:
    """Puts a program into a folder that prints this of each picture, and a command before it."""
    (folder / "table").write_text(reads)
    program = folder / "tesseract"
    program.write_text(
        f"#!/bin/sh\ncase $1 in --list-langs) echo Languages; echo eng;; *) {before}\ncat {folder}/table;; esac\n"
    )
    program.chmod(0o755)


def stamped_scan() -> bytes:
    """A picture of a page with a line of text over it."""
    picture = documents.pdf_stream(
        "/Type/XObject/Subtype/Image/Width 80/Height 80/BitsPerComponent 1/ColorSpace/DeviceGray", b"\x0f" * 800
    )
    page = f"q 612 0 0 792 0 0 cm /Im Do Q BT /F1 10 Tf 40 20 Td ({STAMP}) Tj ET".encode()
    return documents.drawn_pdf(page, resources="/XObject<</Im 4 0 R>>", objects=[picture])


def read_here(path: Path, data: bytes, seconds: float = 60) -> ParserOutput:
    path.write_bytes(data)
    return read_file(ParserInput(file_path=str(path), file_type="pdf"), max_bytes=10**7, seconds=seconds)


def test_a_stamp_on_a_scan_does_not_pass_for_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    output = read_here(tmp_path / "stamped.pdf", stamped_scan())
    assert text_of(output, 1) == STAMP
    (note,) = output.uncertainties
    assert note.startswith("page 1 was read without the picture that fills the page, which may show more text; install")
    assert read_here(tmp_path / "text.pdf", documents.pdf([Words(STAMP)])).uncertainties == ()


def test_ocr_adds_to_a_stamp_what_the_scan_says_besides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tesseract(tmp_path, list_table((STAMP, 95), (LINE, 95)))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    output = read_here(tmp_path / "stamped.pdf", stamped_scan())
    assert text_of(output, 1) == f"{STAMP} {LINE}"
    assert output.uncertainties == ("page 1 was read with what OCR sees in the picture that fills the page",)
    late = read_here(tmp_path / "late.pdf", stamped_scan(), seconds=16)
    assert text_of(late, 1) == STAMP
    assert late.uncertainties[0].endswith("may show more text; the time for pictures is over")


@pytest.mark.parametrize(
    "seen",
    [(), ((STAMP, 95),), ((STAMP, 95), ("wey Ne ~ photograph", 31)), (("a il || o", 93),)],
    ids=["nothing", "the stamp again", "a photograph", "edges"],
)
def test_a_picture_that_says_nothing_more_leaves_a_page_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: tuple[tuple[str, int], ...]
) -> None:
    put_tesseract(tmp_path, list_table(*seen))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    output = read_here(tmp_path / "stamped.pdf", stamped_scan())
    assert text_of(output, 1) == STAMP
    assert output.uncertainties == ()


def test_a_picture_that_takes_ocr_long_costs_a_file_nothing_but_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_tesseract(tmp_path, list_table((LINE, 95)), before="exec sleep 60")
    monkeypatch.setattr(pdf_scans, "_OCR_SPARE_SECONDS", 0.2)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    output = read_here(tmp_path / "slow.pdf", stamped_scan())
    assert text_of(output, 1) == STAMP
    assert output.uncertainties[0].endswith("which may show more text; OCR took more than 0 s")


def test_a_background_of_one_colour_hides_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tesseract(tmp_path, list_table((LINE, 95)))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(pdf_scans.Scans, "_render", lambda *_: None)
    assert read_here(tmp_path / "plain.pdf", stamped_scan()).uncertainties == ()


def test_what_is_missing_is_named_with_its_package() -> None:
    assert "apt-get install tesseract-ocr tesseract-ocr-eng tesseract-ocr-chi-sim)" in ocr.install_hint("eng+chi_sim")


def test_pages_are_listed_as_runs() -> None:
    assert [ocr.format_pages(pages) for pages in ([4], [1, 2, 3, 7])] == ["page 4 was", "pages 1-3, 7 were"]

"""PDF files whose fonts do not say which letters their codes are."""

from tests.support.documents import drawn_pdf, pdf_stream

_MAP = (
    "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <0000><ffff> endcodespacerange"
    " 1 beginbfrange <0001><00ff><{}> endbfrange endcmap"
)
_FORM = "/Type/XObject/Subtype/Form/BBox[0 0 612 792]"


def coded_pdf(count: int, *, first_letter: str = "", text: str = "Rent is due.") -> bytes:
    """A page with `text` in Helvetica, and `count` codes of a font that is not in the file. `first_letter` is what its
    map says of the first code, the others following; without it there is no map."""
    codes = "".join(f"{1 + place % 60:04x}" for place in range(count))
    mapped = "/ToUnicode 7 0 R" if first_letter else ""
    objects: list[str | bytes] = [
        f"<</Type/Font/Subtype/Type0/BaseFont/AAAAAA+Own/Encoding/Identity-H/DescendantFonts[5 0 R]{mapped}>>",
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/AAAAAA+Own/DW 600/FontDescriptor 6 0 R"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>",
        "<</Type/FontDescriptor/FontName/AAAAAA+Own/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent 0"
        "/CapHeight 700/StemV 80>>",
        pdf_stream("", _MAP.format(f"{ord(first_letter or ' '):04x}").encode()),
        pdf_stream(f"{_FORM}/Resources<</Font<</C 4 0 R>>>>", f"BT /C 6 Tf 72 700 Td <{codes}> Tj ET".encode()),
    ]
    shown = f"/X Do BT /F1 11 Tf 72 600 Td ({text}) Tj ET".encode()
    return drawn_pdf(shown, resources="/XObject<</X 8 0 R>>", objects=objects)

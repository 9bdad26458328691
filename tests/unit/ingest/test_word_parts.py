"""Parts of Word documents that programs apply where a paragraph does not name them: headers of sections before, notes,
styles, data that fills controls."""

import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers import word as reader
from gateway.features.documents.engine.ingest.parsers import word_inline
from tests.support.word_files import NAMESPACES, cell, head_part, note_part, paragraph, row, run, table, word_file
from tests.unit.ingest.test_word_coverage import read, text_of

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
INHERITED = {
    "h1": ("header", head_part("hdr", paragraph(run("Contract KX-2291")))),
    "h2": ("header", head_part("hdr", paragraph(run("Harbour office")))),
}


def inheriting(first: str, second: str) -> bytes:
    """Two sections: the first names a header for first pages and another one."""
    names = '<w:headerReference w:type="first" r:id="h1"/><w:headerReference w:type="default" r:id="h2"/>'
    break_section = f"<w:sectPr>{names}{first}</w:sectPr>"
    body = paragraph(run("It starts."), properties=break_section) + paragraph(run("It ends."))
    return word_file(body, parts=INHERITED, section=second)


@pytest.mark.parametrize(("first", "second"), [("", "<w:titlePg/>"), ("<w:titlePg/>", "")])
def test_a_section_has_the_headers_of_the_one_before(first: str, second: str, tmp_path: Path) -> None:
    output = read(inheriting(first, second), tmp_path)
    lines = text_of(output).split("\n")
    assert {*lines[:2]} == {"Page header: Contract KX-2291", "Page header: Harbour office"}
    assert lines[2:] == ["It starts.", "It ends."]
    assert output.coverage is not None
    assert (output.coverage.share, output.coverage.omitted) == (1.0, {})


def test_coverage_falls_when_an_inherited_header_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "list_running_heads", lambda *_: [])
    output = read(inheriting("", "<w:titlePg/>"), tmp_path)
    assert output.coverage is not None
    assert output.coverage.missing == {"header": 5}
    never = read(inheriting("", ""), tmp_path).coverage
    assert never is not None
    assert never.omitted == {"unused header": 3}


@pytest.mark.parametrize("kind", ["footnotes", "endnotes"])
def test_damaged_notes_are_reported_and_missed(kind: str, tmp_path: Path) -> None:
    notes = note_part(kind, {"1": "At most 90 litres."}).replace("</w:p>", "", 1)
    body = paragraph(run("Fuel."), f'<w:r><w:{kind.removesuffix("s")}Reference w:id="1"/></w:r>')
    output = read(word_file(body, parts={"n1": (kind, notes)}), tmp_path)
    assert output.uncertainties[0] == f"the {kind} of the file are damaged and were not read"
    assert output.coverage is not None
    assert output.coverage.missing == {kind.removesuffix("s"): 4}


@pytest.mark.parametrize(
    "wrap", [paragraph, lambda *runs, properties: in_table(paragraph(*runs, properties=properties))]
)
def test_a_run_that_is_shown_in_a_hidden_style_is_read(
    wrap: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    style = '<w:style w:type="paragraph" w:styleId="H"><w:name w:val="H"/><w:rPr><w:vanish/></w:rPr></w:style>'
    shown = run("90 days", '<w:vanish w:val="0"/>')
    body = wrap(run("hidden "), shown, run(" too"), properties='<w:pStyle w:val="H"/>') + paragraph(run("Notice."))
    data = word_file(body, parts={"s1": ("styles", f"<w:styles {NAMESPACES}>{style}</w:styles>")})
    output = read(data, tmp_path)
    assert "90 days" in text_of(output)
    assert "hidden" not in text_of(output)
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    monkeypatch.setattr(word_inline, "is_on", lambda _: True)
    coverage = read(data, tmp_path).coverage
    assert coverage is not None
    assert coverage.missing == {"text": 2}


def in_table(content: str) -> str:
    return table(row(cell(content)))


PARTIES = "<x:party>Ada</x:party><x:party>Birch</x:party>"
STORE = f"<x:contract xmlns:x='urn:x'>{PARTIES}<x:notice>90 days</x:notice></x:contract>"


def control(path: str, content: str) -> str:
    properties = f'<w:showingPlcHdr/><w:dataBinding w:xpath="{path}" w:storeItemID="{{1}}"/>'
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def test_a_control_shows_the_data_that_it_is_bound_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placeholder = run("Click ") + run("here")
    body = (
        paragraph(run("Notice: "), control("/n:contract[1]/n:notice[1]", placeholder))
        + control("/n:contract/n:party[2]", paragraph(placeholder))
        + control("/n:contract/n:party[3]", paragraph(run("Enter a name")))
    )
    data = word_file(body, parts={"c1": ("customXml", STORE)}, core="Contract")
    output = read(data, tmp_path)
    assert text_of(output) == "Notice: 90 days\nBirch\nEnter a name"
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    monkeypatch.setattr(reader, "fill_controls", lambda *_: None)
    coverage = read(data, tmp_path).coverage
    assert coverage is not None
    assert coverage.missing == {"text": 3}


def name_stores(data: bytes, ids: Mapping[str, str]) -> bytes:
    """A docx with the ids of its custom XML, by the names of the parts."""
    out = BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        for name, identifier in ids.items():
            relation = f'<Relationship Id="p" Type="{OFFICE}/relationships/customXmlProps" Target="p-{name}"/>'
            relations = f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relation}</Relationships>'
            archive.writestr(f"word/_rels/{name}.rels", relations)
            item = f'<ds:datastoreItem xmlns:ds="{OFFICE}/customXml" ds:itemID="{identifier}"/>'
            archive.writestr(f"word/p-{name}", item)
    return out.getvalue()


def test_a_control_shows_the_data_of_its_own_store_and_namespace(tmp_path: Path) -> None:
    def bind(store: str, space: str = "") -> str:
        properties = (
            f'<w:showingPlcHdr/><w:dataBinding w:prefixMappings="xmlns:n=&apos;{space}&apos;"'
            f' w:xpath="/n:deal[1]/n:notice[1]" w:storeItemID="{store}"/>'
        )
        content = paragraph(run("Enter it"))
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"

    texts = {"urn:a": "30 days", "urn:b": "90 days", "urn:c": ""}
    parts = {
        f"c{number}": ("customXml", f"<deal xmlns='{space}'><notice>{text}</notice></deal>")
        for number, (space, text) in enumerate(texts.items(), 1)
    }
    body = bind("{B0}", "urn:b") + bind("{C0}", "urn:c") + bind("{gone}", "urn:b") + bind("{A0}", "urn:b")
    ids = {"customXml1.xml": "{a0}", "customXml2.xml": "{b0}", "customXml3.xml": "{c0}"}
    output = read(name_stores(word_file(body, parts=parts), ids), tmp_path)
    assert text_of(output) == "90 days\nEnter it\n90 days\nEnter it"
    assert output.coverage is not None
    assert output.coverage.share == 1.0

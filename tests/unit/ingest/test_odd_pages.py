"""HTML of kinds that few pages have: XHTML, feet of tables before their bodies, measures in a line, wide encodings."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput, ParserOutput
from tests.unit.ingest.test_mail_coverage import complete


def read_page(page: str | bytes, tmp_path: Path) -> ParserOutput:
    path = tmp_path / "page.html"
    path.write_bytes(page if isinstance(page, bytes) else page.encode())
    return read_file(ParserInput(file_path=str(path), file_type="html"), max_bytes=2**20)


def test_a_section_of_plain_text_is_text_in_xml_alone(tmp_path: Path) -> None:
    script = "<script>//<![CDATA[\nf()\n//]]></script>"
    page = f"<html><head>{script}</head><body><p>Rent <![CDATA[< 512 & up]]></p></body></html>"
    output = read_page(f'<?xml version="1.0"?>{page}', tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Rent < 512 & up"]
    assert complete(output)
    assert [chunk.content for chunk in read_page(page, tmp_path).chunks] == ["Rent"]


@pytest.mark.parametrize("start", ["<![CDATA[", "]]>", "<!", "</a", "<a", "<a b=c ", "<style>", "<title>"])
def test_starts_of_sections_and_tags_without_an_end_are_passed_over_at_once(start: str, tmp_path: Path) -> None:
    output = read_page(f'<?xml version="1.0"?><p>Rent <![CDATA[< 512]]></p>{start * 20_000}', tmp_path)
    assert output.chunks[0].content == "Rent < 512"
    assert output.processing_time_ms < 1_500, "from the first of them each would read the rest of the page"


@pytest.mark.parametrize("order", ["hfb", "fhb", "bfh"])
def test_heads_and_feet_of_a_table_are_where_browsers_show_them(order: str, tmp_path: Path) -> None:
    groups = {
        "h": "<thead><tr><th>Item<th>Price</thead>",
        "b": "<tbody><tr><td>Bolt<td>77</tbody>",
        "f": "<tfoot><tr><td>Total<td>77</tfoot>",
    }
    output = read_page(f"<table>{''.join(groups[one] for one in order)}</table>", tmp_path)
    assert output.chunks[0].content == "| Item | Price |\n| --- | --- |\n| Bolt | 77 |\n| Total | 77 |"


def test_only_the_first_head_and_foot_of_a_table_move(tmp_path: Path) -> None:
    inner = "<table><thead><tr><th>Size<th>Head</thead></table>"
    page = (
        f"<table><thead><tr><th>2024<th>Price</thead><tbody><tr><td>Bolt{inner}<td>77</tbody><tfoot><tr><td>Sum<td>77"
        "</tfoot><thead><tr><th>2025<th>Price</thead><tbody><tr><td>Bolt<td>80</tbody><tfoot><tr><td>Sum<td>80</table>"
    )
    rows = read_page(page, tmp_path).chunks[0].content.splitlines()
    assert [row.split()[1] for row in rows] == ["2024", "---", "Bolt", "2025", "Bolt", "Sum", "Sum"]
    assert rows[-2:] == ["| Sum | 80 |", "| Sum | 77 |"]


def test_measures_join_no_figure_beside_them(tmp_path: Path) -> None:
    line = "<p>Done<progress>7</progress><output>17.5</output>m<meter>60%</meter></p>"
    output = read_page(f"{line}<table><tr><td>a<td>7<output>8</output></table>", tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Done 7 17.5 m 60%", "| a | 7 8 |\n| --- | --- |"]
    assert complete(output)


def test_the_measure_of_a_wide_page_reads_its_encoding(tmp_path: Path) -> None:
    output = read_page('<html><head><meta charset="utf-16"></head><p>Größe 42</p></html>'.encode("utf-16-le"), tmp_path)
    assert [chunk.content for chunk in output.chunks] == ["Größe 42"]
    assert complete(output)

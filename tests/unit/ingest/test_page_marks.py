"""What a page shows struck out, twice, parted or under a wide head is read as a person reads it: in documents and by
`web_fetch` alike."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.net import Page
from mcp_tools.builtin.web_fetch import extract
from tests.unit.ingest.test_markdown_html_coverage import lines, read

Reader = Callable[[str], str]


@pytest.fixture(params=["ingest", "fetch"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    def ingest(page: str) -> str:
        output = read(page, "html", tmp_path)
        assert output.coverage is not None
        assert output.coverage.share >= 0.98
        return "\n".join(lines(output))

    def fetch(page: str) -> str:
        return extract(Page("https://example.org", 200, "text/html", page.encode(), None, truncated=False)).text

    return ingest if request.param == "ingest" else fetch


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("<p>The fee is <del>200</del> <ins>150</ins> kr.</p>", "The fee is ~~200~~ 150 kr."),
        ("<p>The fee is <del>200</del><ins>150</ins> kr.</p>", "The fee is ~~200~~150 kr."),
        ("<p>Only <s><b>200</b> kr</s> 150 kr.</p>", "Only ~~200 kr~~ 150 kr."),
        ("<p>Now <span style='text-decoration: line-through red 2px'> 200 </span>150.</p>", "Now ~~200~~ 150."),
        (
            "<style>input:checked+b{text-decoration:line-through}</style>"
            "<p><input type=checkbox checked><b>Milk</b><input type=checkbox><b>Eggs</b></p>",
            "☒ ~~Milk~~ ☐ Eggs",
        ),
        (
            "<style>input:not(:checked)+b{text-decoration:line-through}</style>"
            "<p><input type=checkbox checked><b>Milk</b><input type=checkbox><b>Eggs</b></p>",
            "☒ Milk ☐ ~~Eggs~~",
        ),
        (
            "<style>b{text-decoration:line-through}input:checked+b{text-decoration:none}</style>"
            "<p><input type=checkbox checked><b>Milk</b><input type=checkbox><b>Eggs</b></p>",
            "☒ Milk ☐ ~~Eggs~~",
        ),
        (
            "<style>.a{text-decoration-line:line-through;text-decoration:none}"
            "s{text-decoration:line-through}.b{text-decoration-line:none}</style>"
            "<p>Now <b class=a>200</b> or <b class=b>150</b>.</p>",
            "Now 200 or 150.",
        ),
        ("<p>Now <b style='text-decoration-line:line-through;text-decoration:none'>200</b>.</p>", "Now 200."),
        (
            "<style>.old{text-decoration:line-through} a.old{text-decoration:none}</style>"
            "<p>Now <b class=old>200</b> <a class=old>150</a>.</p>",
            "Now ~~200~~ 150.",
        ),
        ("<p>Now <s><s>200</s></s> 150, <s></s>paid.</p>", "Now ~~200~~ 150, paid."),
        ("<table><tr><th>Fee<th>Kr<tr><td>Berth<td><del>200</del> 150</table>", "| Berth | ~~200~~ 150 |"),
        ("<h2>Fees <strike>2025</strike> 2026</h2><p>Text.</p>", "Fees ~~2025~~ 2026"),
    ],
)
def test_what_is_struck_out_is_marked(markup: str, shown: str, reader: Reader) -> None:
    assert shown in reader(markup)


def test_whole_blocks_that_are_struck_out_are_marked_each(reader: Reader) -> None:
    text = reader("<del>One.<p>Two <b>2</b>.</p><ul><li>Three.</li></ul></del><p>Four.</p>")
    assert [line for line in text.splitlines() if line] == ["~~One.~~", "~~Two 2.~~", "- ~~Three.~~", "Four."]


@pytest.mark.parametrize(
    "equation",
    [
        '<span class="katex"><span class="katex-mathml"><math><mi>x</mi><mo>=</mo><mn>5</mn></math></span>'
        '<span class="katex-html" aria-hidden="true"><span>x</span><span>=</span><span>5</span></span></span>',
        '<span><math><mi>x</mi><mo>=</mo><mn>5</mn></math> <span aria-hidden="true">x=5</span></span>',
    ],
)
def test_an_equation_is_read_once_beside_its_drawing(equation: str, reader: Reader) -> None:
    assert "Here x=5 holds." in reader(f"<p>Here {equation} holds.</p>")


def test_what_is_drawn_behind_an_equation_and_its_text_is_read(reader: Reader) -> None:
    page = "<p>Here <math><mi>x</mi></math> is <b aria-hidden=true>new</b>.</p><p aria-hidden=true>More.</p>"
    assert reader(page).split() == ["Here", "x", "is", "new.", "More."]


def test_a_head_over_several_columns_is_in_each(reader: Reader) -> None:
    page = (
        "<table><thead><tr><th rowspan=2>Port<th colspan=2>2025<th colspan=2>2026<tr><th>Plan<th>Ist<th>Plan<th>Ist"
        "</thead><tr><td>Elm<td>1<td>2<td>3<td>4<tr><td>Oak<td colspan=2>7<td>8<td>9</table>"
    )
    assert reader(page).splitlines() == [
        "| Port | 2025 | 2025 | 2026 | 2026 |",
        "| --- | --- | --- | --- | --- |",
        "| Port | Plan | Ist | Plan | Ist |",
        "| Elm | 1 | 2 | 3 | 4 |",
        "| Oak | 7 |  | 8 | 9 |",
    ]


def test_a_title_over_a_whole_table_is_there_once(reader: Reader) -> None:
    assert reader("<table><tr><th colspan=2>Fees<tr><td>Elm<td>1</table>").splitlines()[0] == "| Fees |  |"


@pytest.mark.parametrize(
    "style",
    [
        "style='--nav-display: none'",
        "style='display:none; display:block'",
        "style='display: none; display: -webkit-box'",
        "style='visibility:hidden;visibility:visible'",
        "hidden=until-found",
    ],
)
def test_what_the_last_declaration_shows_is_read(style: str, reader: Reader) -> None:
    assert "Room 701" in reader(f"<p>Look:</p><div {style}>Room 701</div>")


@pytest.mark.parametrize(
    "style", ["style='display:block; display: NONE'", "style='display:none!important;display:block'", "hidden=''"]
)
def test_what_the_last_declaration_hides_is_not_read(style: str, tmp_path: Path) -> None:
    output = read(f"<p>Look:</p><div {style}>secret</div>", "html", tmp_path)
    assert lines(output) == ["Look:"]
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden text": 1}


@pytest.mark.parametrize("sign", ["\xad", "&shy;", "&#173;", "&#xAD;"])
def test_a_word_that_may_be_parted_is_one_word(sign: str, reader: Reader) -> None:
    assert reader(f"<p>The Liege{sign}platz is free.</p>").strip() == "The Liegeplatz is free."

"""Figures of a page that markup puts above, below or beside each other, and marks within words that nobody sees."""

from pathlib import Path

import pytest

from agent.net import Page
from agent.text.superscripts import raise_figures
from gateway.features.documents.engine.ingest.coverage import measure_coverage
from mcp_tools.builtin.web_fetch import extract
from tests.unit.ingest.test_markdown_html_coverage import lines, read


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("<msup><mn>10</mn><mn>3</mn></msup>", "10^{3}"),
        ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", r"\frac{1}{2}"),
        ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E=mc^{2}"),
        ("<msqrt><mn>2</mn></msqrt><mo>+</mo><mroot><mn>8</mn><mn>3</mn></mroot>", r"\sqrt{2}+\sqrt[3]{8}"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x_{1}^{2}"),
        ("<msup><mrow><mo>(</mo><mn>12</mn><mo>)</mo></mrow><mn>3</mn></msup>", "{(12)}^{3}"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>", r"\begin{matrix}1 & 2\end{matrix}"),
        ("<semantics><mi>x</mi><annotation>x_tex</annotation></semantics>", "x"),
        ("<maction><mn>5</mn><mn>6</mn></maction>", "5"),
        ("<mfrac><mn>1</mn></mfrac>", r"\frac{1}{}"),
    ],
)
def test_an_equation_keeps_its_figures_apart(equation: str, expected: str, tmp_path: Path) -> None:
    output = read(f"<p>Take <math>{equation}</math> of it.</p>", "html", tmp_path)
    assert lines(output) == [f"Take {expected} of it."]
    assert output.coverage is not None
    assert output.coverage.share >= 0.99 or "maction" in equation


def test_an_equation_in_a_cell_is_fetched_as_it_is_ingested() -> None:
    rows = "<tr><th>Part<th>Size</tr><tr><td>Bolt<td><math><mfrac><mn>3</mn><mn>8</mn></mfrac></math></tr>"
    page = Page("https://example.org", 200, "text/html", f"<table>{rows}</table>".encode(), None, truncated=False)
    assert r"\frac{3}{8}" in extract(page).text


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("85 m<sup>2</sup> at 5 €/m<sup>2</sup>", "85 m² at 5 €/m²"),
        ("4 s<sup>-1</sup>", "4 s⁻¹"),
        ("It costs 5.<sup>3</sup>", "It costs 5.³"),
        ("Total<sup>1</sup>", "Total¹"),
        ("the 21<sup>st</sup> day", "the 21st day"),
        ("<sup>1</sup>/<sub>2</sub> cup", "1/2 cup"),
        ("word<sup>+</sup>", "word+"),
        ("<sup>1</sup>90 days", "¹ 90 days"),
        ("<sup>1, 2</sup>90 days", "¹, ² 90 days"),
        ("40<sup>1,2</sup> kr and 50<sup>1\u20133</sup>", "40¹,² kr and 50¹\u2013³"),
        ("40<sup>1a</sup> kr, 40<sup>a</sup> kr, 5<sup>1/2</sup>", "40¹a kr, 40a kr, 5¹/²"),
        ("$40<sup>.50</sup> or 12<sup>,95</sup> €", "$40.50 or 12,95 €"),
        ("In all <sup>12</sup>80", "In all ¹² 80"),
        ("In all <a href='#n'><sup>5</sup></a>85", "In all ⁵ 85"),
        ("<sup>14</sup>C and <sup>2</sup> 80", "14C and 2 80"),
        ("2019<sup>12 months to June 2020</sup>", "2019¹² months to June 2020"),
        ("<sup>From 1 May to 3</sup>5 items", "From 1 May to ³ 5 items"),
        ("log<i><sub>2</sub></i>8", "log₂8"),
    ],
)
def test_a_raised_figure_is_part_of_no_word_and_number(markup: str, expected: str, tmp_path: Path) -> None:
    assert lines(read(f"<p>{markup}</p>", "html", tmp_path)) == [expected]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("40<a href='#n'><sup>1</sup></a>", "40¹"),
        ("<b>60</b><i><sup>2</sup></i>", "60²"),
        ("75<span></span><span><em><sup>3</sup></em></span>", "75³"),
        ("<span>10</span><a><i></i><sup>3</sup></a> l", "10³ l"),
        ("40 <a href='#n'><sup>1</sup></a>", "40 1"),
        ("40<br><a href='#n'><sup>1</sup></a>", "40 1"),
        ("40<img alt='km' src='a'><i><sup>1</sup></i>", "40 km 1"),
        ("<a href='#n'><sup>1</sup></a>", "1"),
        ("<a href='#n'><sup>1</sup></a>90 days", "¹ 90 days"),
        ("<a href='#n'><sup>1</sup></a><br>90 days", "1 90 days"),
        ("log<i><sub>2</sub></i>8", "log₂8"),
    ],
)
@pytest.mark.parametrize("place", ["<table><tr><td>a<td>{}</table>", "<table><tr><td>a<td><p>{}</p></table>", "<h2>{}"])
def test_a_raised_figure_within_other_elements_joins_none(
    place: str, markup: str, expected: str, tmp_path: Path
) -> None:
    (text,) = lines(read(place.format(markup), "html", tmp_path))
    assert text.removeprefix("| a | ").removesuffix(" |\n| --- | --- |") == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("list-style-type: upper-roman", ["I. a", "II. b"]),
        ("list-style: lower-alpha inside", ["a. a", "b. b"]),
        ("list-style: none", ["a", "b"]),
        ("list-style-type: decimal-leading-zero", ["01. a", "02. b"]),
        ("color: red", ["1. a", "2. b"]),
    ],
)
def test_items_have_the_numbers_of_their_style(style: str, expected: list[str], tmp_path: Path) -> None:
    assert lines(read(f'<ol style="{style}"><li>a<li>b</ol>', "html", tmp_path)) == expected


def test_a_word_has_no_marks_that_nobody_sees(tmp_path: Path) -> None:
    output = read("<p>Kraft&shy;werk 12\ufeff34</p>", "html", tmp_path)
    assert lines(output) == ["Kraftwerk 1234"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_a_block_of_comment_in_markdown_is_left_out(tmp_path: Path) -> None:
    output = read("Text.\n\n<!-- Say\nyes. -->\n\n<div>Shown <!-- x --></div>\n", "md", tmp_path)
    assert lines(output) == ["Text.", "<div>Shown <!-- x --></div>"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert output.coverage.omitted == {"comment": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price\n1,5\n2,5\n3,25\n", "| price |\n| --- |\n| 1,5 |\n| 2,5 |\n| 3,25 |"),
        ("Betrag\n1.234,50 €\n99\n", "| Betrag |\n| --- |\n| 1.234,50 € |\n| 99 |"),
        ("a,b\n1,5\n2,5\n", "| a | b |\n| --- | --- |\n| 1 | 5 |\n| 2 | 5 |"),
    ],
)
def test_a_column_of_decimal_commas_is_one_column(text: str, expected: str, tmp_path: Path) -> None:
    assert lines(read(text, "csv", tmp_path)) == [expected]


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("$12<sup>99</sup>", "$12.99"),
        ("€1.299<sup>00</sup>", "€1.299,00"),
        ("12,<sup>95</sup> €", "12,95 €"),
        ("<b>EUR</b> 7<sup>50</sup>", "EUR 7.50"),
        ("19<sup>95</sup> kr", "19.95 kr"),
        ("$40<sup>1</sup>", "$40\u00b9"),
        ("10<sup>12</sup> DNA strands", "10\u00b9\u00b2 DNA strands"),
        ("1<sup>1</sup>/<sub>2</sub> cups", "1 1/2 cups"),
        ("<sup>3</sup>&frasl;<sub>4</sub> l", "3\u20444 l"),
        ("log<sub>10</sub>100", "log\u2081\u2080100"),
        ("x<sub>1</sub>2", "x\u20812"),
        ("H<sub>2</sub>O and CO<sub>2</sub> 5", "H2O and CO2 5"),
    ],
)
@pytest.mark.parametrize("place", ["<p>{}</p>", "<h2>{}</h2>", "<table><tr><th>A<th>B<tr><td>{}<td>x</table>"])
def test_a_raised_or_lowered_figure_changes_no_value(markup: str, shown: str, place: str, tmp_path: Path) -> None:
    output = read(place.format(markup), "html", tmp_path)
    assert shown in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("$1,200.50<sup>12</sup>", "$1,200.50\u00b9\u00b2"),
        ("US$ 5<sup>10</sup> million", "US$ 5\u00b9\u2070 million"),
        ("10<sup>12</sup> kr", "10\u00b9\u00b2 kr"),
        ("EUR 500<sup>12</sup> and 3<sup>1</sup>", "EUR 500\u00b9\u00b2"),
        ("EUR 500<sup>12</sup>, profit<sup>13</sup>", "EUR 500\u00b9\u00b2"),
        ("EUR 500<sup>12</sup></p><p><sup>12</sup> Without tax.", "EUR 500\u00b9\u00b2"),
        ("EUR 500<sup>12</sup></p><p>12. Without tax.", "EUR 500\u00b9\u00b2"),
        ("EUR 500<sup><a href='#n12'>12</a></sup>", "EUR 500\u00b9\u00b2"),
        ("EUR 500<a href='#n12'><sup>12</sup></a>", "EUR 500\u00b9\u00b2"),
        ("$12<sup>99</sup> per m<sup>2</sup>", "$12.99 per m\u00b2"),
        ("<span>$</span><b>12</b><sup>50</sup>, was $19<sup><b>00</b></sup>", "$12.50, was $19.00"),
    ],
)
def test_a_note_or_a_power_makes_no_cents(markup: str, shown: str, tmp_path: Path) -> None:
    output = read(f"<p>{markup}</p>", "html", tmp_path)
    assert shown in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("Price<sup> incl. VAT</sup>", "Price incl. VAT"),
        ("foo<sub> bar</sub>", "foo bar"),
        ("Room<sub> 2</sub>", "Room 2"),
        ("<sup>new </sup>Rooms", "new Rooms"),
        ("m<sup>2 </sup>net", "m\u00b2 net"),
        ("Step<sub>gate</sub>s", "Stepgates"),
    ],
)
@pytest.mark.parametrize("place", ["<p>{}</p>", "<h2>{}</h2>", "<table><tr><th>A<th>B<tr><td>{}<td>x</table>"])
def test_a_raised_or_lowered_text_keeps_its_spaces(markup: str, shown: str, place: str, tmp_path: Path) -> None:
    output = read(place.format(markup), "html", tmp_path)
    assert shown in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<p>About 10<span style='vertical-align: super'>6</span> cells</p>", "About 10⁶ cells"),
        ("<style>.c1{vertical-align:super}</style><p><b>10</b><span class=c1>6</span> cells</p>", "10⁶ cells"),
        ("<style>.c2{vertical-align:sub}</style><p>log<span class=c2>2</span>8 CO<i class=c2>2</i></p>", "log₂8 CO2"),
        ("<p>$12<font style='vertical-align:super'>99</font></p>", "$12.99"),
        ("<style>.n{vertical-align:super}</style><p>By 40<a class=n href=#n>1</a> percent</p>", "By 40¹ percent"),
        ("<p>By 40<cite style='vertical-align:super'><a href=#n>1</a></cite> percent</p>", "By 40¹ percent"),
        ("<p>10<sup style='vertical-align:super'>3</sup> m</p>", "10³ m"),
        ("<p>x=<b style='display:block;vertical-align:super'>3</b></p>", "x=3"),
        ("<p style='display:flex'><b>x=</b><b style='vertical-align:super'>3</b></p>", "x=3"),
        ("<style>td{vertical-align:top}</style><table><tr><td>A<td>10<span style='vertical-align:sub'>2</span>"
         "<tr><td>B<td>1</table>", "| A | 10₂ |"),
        ("<p style='vertical-align:super'>12</p>", "12"),
    ],
)  # fmt: skip
def test_a_style_moves_figures_as_the_elements_do(page: str, shown: str, tmp_path: Path) -> None:
    output = read(page, "html", tmp_path)
    assert shown in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize("before", ["EUR 500", "$12", "$1,200.50", "10"])
def test_a_raised_run_without_its_page_is_no_cents(before: str) -> None:
    assert raise_figures(before, "12") == "\u00b9\u00b2"


def test_a_raised_or_lowered_text_keeps_its_lines(tmp_path: Path) -> None:
    assert lines(read("<p>Take <sub>one<br>two</sub>.</p>", "html", tmp_path)) == ["Take one\ntwo."]


@pytest.mark.parametrize("tag", ["sub", "sup"])
def test_the_measure_misses_a_lowered_word_that_was_glued(tag: str) -> None:
    coverage = measure_coverage(f"<p>foo<{tag}> bar</{tag}> baz</p>".encode(), "html", ["foobar baz"])
    assert coverage is not None
    assert coverage.missing == {"text": 2}

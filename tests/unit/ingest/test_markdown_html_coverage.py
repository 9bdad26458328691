"""Markdown and HTML: what a person sees is read, what is hidden is not, in ingestion and in `web_fetch` alike."""

from pathlib import Path

import pytest

from agent.net import Page
from agent.text.html.tables import BLOCKS
from gateway.features.documents.engine.ingest.coverage.measure import measure_coverage
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import FileType, ParserInput, ParserOutput
from mcp_tools.builtin.web_fetch import extract


def read(text: str | bytes, file_type: FileType, tmp_path: Path) -> ParserOutput:
    path = tmp_path / f"file.{file_type}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(ParserInput(file_path=str(path), file_type=file_type), max_bytes=2**20)


def lines(output: ParserOutput) -> list[str]:
    return [chunk.content for chunk in output.chunks]


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("---\ntitle: Tides\n---\nBody.", "Tides", ["Body."]),
        ("---\ntitle: Tides\n...\n# Body\ntext\n---\nmore", "Tides", ["# Body", "## text", "more"]),
        ("---\ntitle: 'A: b'\nby:\n- Ada\n---\nBody.", "A: b", ["title: 'A: b'\nby:\n- Ada", "Body."]),
        (
            "---\r\nfee: 450 EUR\r\ndue: 2026-03-15 # paid late\r\n---\r\nBody.",
            None,
            ["fee: 450 EUR\ndue: 2026-03-15 # paid late", "Body."],
        ),
        ("---\n\n# Rules\n\nWear gloves.\n\n---\n\nEnd.", "Rules", ["# Rules", "Wear gloves.", "End."]),
        ("---\nOnly prose between rules.\n---\nAfter.", None, ["## Only prose between rules.", "After."]),
        ("---\n| a | b |\n|---|---|\n| 1 | 2 |\n---\nAfter", None, ["| a | b |\n|---|---|\n| 1 | 2 |", "After"]),
        (
            "The period is nine\ndays for\nBirch.\n---\nAfter.",
            None,
            ["## The period is nine days for Birch.", "After."],
        ),
        (
            "See ![fee 450](x.png), [terms](http://a.example/x)\n===",
            "See fee 450, terms",
            ["# See ![fee 450](x.png), [terms](http://a.example/x)"],
        ),
        ("---\n[not: closed\n---\nAfter.", None, ["## [not: closed", "After."]),
        ("---\ntitle: never closed\n\nText.", None, ["title: never closed", "Text."]),
        ("---", None, []),
    ],
)
def test_only_a_mapping_is_front_matter(text: str, title: str | None, expected: list[str], tmp_path: Path) -> None:
    if not expected:
        with pytest.raises(Exception, match="holds no text"):
            read(text, "md", tmp_path)
        return
    output = read(text, "md", tmp_path)
    assert lines(output) == expected
    assert output.metadata.get("title") == title
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_buttons_summaries_and_captions_are_read(tmp_path: Path) -> None:
    page = (
        "<h3><button>How long?</button></h3><div>36 months.</div><details><summary>Returns</summary><p>21 days.</p>"
        "</details><p>Press <button>Start</button> to begin; speed <input value=5> <input type=hidden value=x></p>"
        "<table><caption>Opening hours</caption><tr><th><button>Day</button><th>Open<tr><td>Mon<td><img alt=yes src=a>"
        "</table>"
    )
    output = read(page, "html", tmp_path)
    assert lines(output) == [
        "How long?", "36 months.", "Returns", "21 days.", "Press Start to begin; speed 5", "Opening hours",
        "| Day | Open |\n| --- | --- |\n| Mon | yes |",
    ]  # fmt: skip
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_an_element_that_nobody_knows_does_not_split_a_sentence(tmp_path: Path) -> None:
    page = "<p>The fee is <my-price><o:p>12</o:p></my-price> crowns, <blink>net</blink>.</p>"
    assert lines(read(page, "html", tmp_path)) == ["The fee is 12 crowns, net."]
    assert "my-price" not in BLOCKS


def test_rows_in_a_form_and_text_outside_of_cells_are_read(tmp_path: Path) -> None:
    page = "<table>Prices<form><tr><td>Bolt<td>12</tr></form><tr><td>Nut<td>4</tr></table><p>After."
    output = read(page, "html", tmp_path)
    assert lines(output)[:2] == ["Prices", "| Bolt | 12 |\n| --- | --- |\n| Nut | 4 |"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    "page",
    [
        "<table><thead><th>Part</th><th>Fee</th></thead><tr><td>Bolt</td><td>12</td></tr></table>",
        "<table><tr><th>Part</th><th>Fee</th></tr><tr><form><td>Bolt</td><td>12</td></form></tr></table>",
        "<table><tr><th>Part</th><th>Fee</th></tr><td>Bolt</td><td>12</td></table>",
    ],
)
def test_cells_that_stand_in_no_row_make_one(page: str, tmp_path: Path) -> None:
    assert lines(read(page, "html", tmp_path)) == ["| Part | Fee |\n| --- | --- |\n| Bolt | 12 |"]


def test_a_row_span_of_zero_reaches_to_the_end_of_its_group(tmp_path: Path) -> None:
    page = (
        "<table><tbody><tr><td>Zone<td>Plan</tr><tr><td rowspan=0>West<td>L</tr><tr><td>M</tr></tbody>"
        "<tbody><tr><td>East<td>S</tr></tbody></table>"
    )
    assert lines(read(page, "html", tmp_path)) == [
        "| Zone | Plan |\n| --- | --- |\n| West | L |\n| West | M |\n| East | S |"
    ]


HIDDEN = {
    "attribute": "<p hidden>secret 700</p>",
    "style": "<p style='color:red; DISPLAY : none'>secret 700</p>",
    "descendant": "<div style='display:none'><p>secret 700</p></div>",
    "visibility": "<p style='visibility:hidden'>secret 700</p>",
    "drawing": "<svg><text>secret 700</text></svg>",
    "choices": "<select><option>secret 700</select>",
    "row": "<table><tr hidden><td>secret<td>700<tr><td>a<td>b</table>",
    "cell": "<table><tr><td>a<td>b<span style='display:none'>secret 700</span></table>",
    "noscript": "<noscript>secret 700</noscript>",
    "class": "<style>/* x */ p.key, .a > .b {color: red; display:none}</style><p class='big key'>secret 700</p>",
    "child": "<style>div#s > .b {visibility: hidden}</style><div id=s><p class=b>secret 700</p></div>",
    "cascade": "<style>.k{display:none} .k.open{display:block} p{display:block}</style><p class=k>secret 700</p>",
    "narrow": "<style>.k{display:none} @media (max-width:600px){.k{display:block}}</style><p class=k>secret 700</p>",
    "screen": "<style>@media screen {.k{display:none!important}} .k{display:block}</style><p class=k>secret 700</p>",
}
SHOWN = {
    "print": "<style>@media print {.k{display:none}}</style><p class=k>Room 701</p>",
    "narrow": "<style>@media (max-width: 600px) {.k{display:none}}</style><p class=k>Room 701</p>",
    "later": "<style>.k{display:none} .k.open{display:block}</style><p class='k open'>Room 701</p>",
    "own": "<style>.k{display:none}</style><p class=k style='display:block'>Room 701</p>",
    "other": "<style>div .k{display:none} .kk{display:none}</style><p class=k>Room 701</p>",
    "narrower": "<style>@media (max-width: 600px) {@media screen {.k{display:none}}}</style><p class=k>Room 701</p>",
    "scripts": "<style>.page, body > p {display:none}</style><p class=page>Room 701 and more, shown by a script.</p>",
    "broken": "<style>.k{display:none</style><style>}}} @media { .k:::(</style><p>Room 701</p>",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_style_sheets_do_not_hide_is_read(name: str, tmp_path: Path) -> None:
    output = read(f"<html><body><p>Short.</p>{SHOWN[name]}</body></html>", "html", tmp_path)
    assert "701" in "".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


SHOWN_BY_CONDITION = {
    "wide screen": "<style>.k{display:none!important} @media(min-width:768px){.w{display:block!important}}</style>"
    "<p class='k w'>Room 701</p>",
    "wide screen, range": "<style>.k{display:none} @media screen and (width >= 48em){p.k{display:block}}</style>"
    "<p class=k>Room 701</p>",
    "hidden there only": "<style>@media (min-width: 768px){.k{display:none}}</style><p class=k>Room 701</p>",
    "feature": "<style>.k{display:none} @supports (display:grid){.k{display:grid}}</style><p class=k>Room 701</p>",
    "unticked": "<style>.k{display:none} #b:not(:checked) ~ .k{display:block}</style><input type=checkbox id=b checked>"
    "<p class=k>Room 701</p>",
    "hidden by a tick": "<style>#b:checked ~ .k{display:none}</style><input type=checkbox id=b checked>"
    "<p class=k>Room 701</p>",
    "tab": "<style>.k{display:none} #b:checked ~ #k{display:block}</style><input type=radio id=a checked>"
    "<input type=radio id=b><div id=k class=k>Room 701</div>",
}


@pytest.mark.parametrize("condition", ["(foo: bar)", "(display: grid) and (foo: bar)", "not (display: grid)"])
def test_what_only_an_unknown_feature_would_show_is_not_read(condition: str, tmp_path: Path) -> None:
    style = f"<style>.k{{display:none}} @supports {condition} {{.k{{display:block}}}}</style>"
    output = read(f"<html><body><p>A short page.</p>{style}<p class=k>Room 701</p></body></html>", "html", tmp_path)
    assert "701" not in "".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.missing == {}


@pytest.mark.parametrize("name", SHOWN_BY_CONDITION)
def test_what_a_wide_screen_or_a_tick_shows_is_read(name: str, tmp_path: Path) -> None:
    sentence = "<p>A page with a sentence that is long enough to be read.</p>"
    page = f"<html><body>{sentence}{SHOWN_BY_CONDITION[name]}</body></html>"
    output = read(page, "html", tmp_path)
    assert "Room 701" in lines(output)
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    unread = measure_coverage(page.encode(), "html", [line for line in lines(output) if "701" not in line])
    assert unread is not None
    assert unread.missing == {"text": 2}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_left_out_and_counted(name: str, tmp_path: Path) -> None:
    sentence = "<p>A page with a sentence that is long enough to be read.</p>"
    page = f"<html><body>{sentence}{HIDDEN[name]}<p>End.</p></body></html>"
    output = read(page, "html", tmp_path)
    assert "700" not in "".join(lines(output))
    assert lines(output)[-1] == "End."
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    assert sum(output.coverage.omitted.values()) == 2
    fetched = extract(Page("https://example.org", 200, "text/html", page.encode(), None, truncated=False))
    assert "700" not in fetched.text
    assert "long enough" in fetched.text


@pytest.mark.parametrize(
    "sheet",
    [
        ":is(.old, .past) {display: none}",
        "div:is(.x, .past).past, :is(h1, p).old {display: none}",
        "p:not(.now) {display: none}",
        "div {.old, & > .past {display: none}}",
        "div {color: red; .now {color: blue} p.old {display: none}}",
        "@layer base {@layer low {.now {display: none}} .now {display: block}} .old {display: none}",
        "@layer low {.old {display: block}} @layer high {@layer first {.old {display: none}}}",
    ],
)
def test_what_newer_selectors_hide_is_no_gap(sheet: str, tmp_path: Path) -> None:
    now = "The rent is 900 and due on the third working day of each month."
    page = f"<style>{sheet}</style><div><p class=now>{now}</p><p class=old>Rent was 800</p></div>"

    output = read(page, "html", tmp_path)

    assert output.coverage is not None
    assert output.coverage.missing == {}
    assert output.coverage.omitted == {"text hidden by style sheets": 3}
    assert [chunk.content for chunk in output.chunks] == [now]


def test_hidden_keys_do_not_change_figures(tmp_path: Path) -> None:
    table = (
        "<table><tr><th>Town<th>Area<tr><td>Elmby<td><span style='display:none'>7004279940000000000</span>27,994"
        "<tr><td>Ashby<td style='visibility:hidden'>x<td>5</table>"
    )
    expected = "| Town | Area |  |\n| --- | --- | --- |\n| Elmby | 27,994 |  |\n| Ashby |  | 5 |"
    assert lines(read(table, "html", tmp_path)) == [expected]
    fetched = extract(Page("https://example.org", 200, "text/html", table.encode(), None, truncated=False))
    assert "| Elmby | 27,994 |" in fetched.text
    assert "7004279940000000000" not in fetched.text


def test_a_page_of_scripts_shows_its_text_without_them(tmp_path: Path) -> None:
    page = "<body><noscript><p>Call 555-0199.</p></noscript><div id=app></div><script>start()</script></body>"
    output = read(page, "html", tmp_path)
    assert lines(output) == ["Call 555-0199."]
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    fetched = extract(Page("https://example.org", 200, "text/html", page.encode(), None, truncated=False))
    assert "555-0199" in fetched.text


@pytest.mark.parametrize("charset", ["iso-8859-1", "latin1", "us-ascii", "windows-1252"])
def test_a_latin_page_is_read_as_browsers_read_it(charset: str, tmp_path: Path) -> None:
    page = f"<meta charset={charset}><p>Smörgås € “ok” and some more words, so that it is a page.</p>".encode("cp1252")
    assert lines(read(page, "html", tmp_path)) == ["Smörgås € “ok” and some more words, so that it is a page."]
    fetched = extract(Page("https://example.org", 200, "text/html", page, charset, truncated=False))
    assert "Smörgås € “ok”" in fetched.text


def test_a_byte_order_mark_counts_more_than_a_declaration(tmp_path: Path) -> None:
    page = "<meta charset=iso-8859-1><p>Smörgås</p>".encode("utf-8-sig")
    assert lines(read(page, "html", tmp_path)) == ["Smörgås"]


def test_raised_figures_do_not_join_those_before_them(tmp_path: Path) -> None:
    page = "<p>10<sup>3</sup> m<sup>2</sup> and 10<sup>-6</sup></p><table><tr><td>a<td>27<sup>1</sup></table>"
    assert lines(read(page, "html", tmp_path)) == ["10³ m² and 10⁻⁶", "| a | 27¹ |\n| --- | --- |"]


def test_lines_of_preformatted_text_stay_lines(tmp_path: Path) -> None:
    assert lines(read("<pre>a = 1<br>b = 2\n  c</pre>", "html", tmp_path)) == ["a = 1\nb = 2\n  c"]


def test_pictures_and_inputs_in_headings_and_preformatted_text_are_read(tmp_path: Path) -> None:
    shown = "Fee: <img alt='450' src=a> by <input value=Birch>"
    page = f"<pre>{shown}</pre><h2>{shown}</h2>"
    assert lines(read(page, "html", tmp_path)) == ["Fee: 450 by  Birch", "Fee: 450 by Birch"]


def test_only_an_open_dialog_is_shown(tmp_path: Path) -> None:
    output = read("<dialog>Closed 5</dialog><dialog open>Open 6</dialog><p>Text.</p>", "html", tmp_path)
    assert lines(output) == ["Open 6", "Text."]
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden text": 2}


def test_the_declared_content_of_a_custom_element_is_shown(tmp_path: Path) -> None:
    page = "<x-card><template shadowrootmode=open><p>Fee 90</p></template></x-card><template><p>Unused</p></template>"
    output = read(page, "html", tmp_path)
    assert lines(output) == ["Fee 90"]
    assert output.coverage is not None
    assert output.coverage.omitted == {"hidden text": 1}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<x-row><x-cell>12</x-cell><x-cell>34</x-cell></x-row>", "12 34"),
        ("<p>The <x-b>notice</x-b> is<x-b> 90</x-b> days</p>", "The notice is 90 days"),
        (
            "<p>Flow</p><svg><text>x</text><foreignObject>Ask</foreignObject><foreignObject>Wait</foreignObject></svg>End",
            "Flow\nAsk\nWait\nEnd",
        ),
        ("<p>Fee<svg><path/></svg>90</p>", "Fee 90"),
        ("<p>Fee<img src=a>90</p>", "Fee 90"),
        ("<p>Press <input type=image alt='Pay 90'></p>", "Press Pay 90"),
        ("<p><input type=checkbox checked> ash <input type=radio> oak</p>", "☒ ash ☐ oak"),
        (
            "<table><tr><td>Fee<td><x-n>1</x-n><x-n>2</x-n><tr><td>Paid<td><input type=checkbox checked></table>",
            "| Paid | ☒ |",
        ),
    ],
)
def test_what_stands_side_by_side_is_apart(page: str, shown: str, tmp_path: Path) -> None:
    output = read(page, "html", tmp_path)
    assert shown in "\n".join(lines(output))
    assert output.coverage is not None
    assert output.coverage.share == 1.0


def test_the_addresses_that_links_name_are_read(tmp_path: Path) -> None:
    text = "See [the plan].\n\n[the plan]: https://example.org/plan 'Plan of 2026'\n\n# Next\n\nText.\n\n"
    output = read(text + "[b]: /b 'Fee 90'\n", "md", tmp_path)
    assert lines(output) == [
        "See [the plan].", "[the plan]: https://example.org/plan 'Plan of 2026'", "# Next", "Text.", "[b]: /b 'Fee 90'",
    ]  # fmt: skip
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("Name\tPlace, day\nBolt\tA, 2\n", "| Bolt | A, 2 |"),
        ('Name, Note\nBolt, "long, thin"\nNut, "x"\n', "| Bolt | long, thin |"),
        ("Name\nBolt\n", "| Bolt |"),
    ],
)
def test_the_delimiter_of_rows_is_found(text: str, row: str, tmp_path: Path) -> None:
    assert row in lines(read(text, "csv", tmp_path))[0].splitlines()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<dl><dt>Weight<dd>14.6 kg<dt>Colour:<dd>ochre</dl>", ["Weight: 14.6 kg", "Colour: ochre"]),
        (
            "<dl><div><dt>Opens</dt><dd><p>8:40</p><p>Sundays closed</p></dd></div></dl>",
            ["Opens: 8:40", "Sundays closed"],
        ),
        ("<dl><dt>Ada</dt><dt>Bo<dd>Engineers<dd>Both in Lund</dl>", ["Ada, Bo: Engineers", "Both in Lund"]),
        ("<dl><dt>Steps<dd><ol><li>One<li>Two</ol></dl>", ["Steps", "1. One", "2. Two"]),
        ("<dl><dt>Prices<dd><table><tr><td>a<td>1</table></dl>", ["Prices", "| a | 1 |\n| --- | --- |"]),
        ("<dl><dt>Last</dl><p>Other", ["Last", "Other"]),
        ("<dl><dt>Empty<dd></dd></dl><p>Other", ["Empty", "Other"]),
    ],
)
def test_a_definition_stands_behind_its_term(page: str, expected: list[str], tmp_path: Path) -> None:
    output = read(f"<html><body>{page}</body></html>", "html", tmp_path)
    assert lines(output) == expected
    assert output.coverage is not None
    assert output.coverage.share == 1.0

"""HTML: the text that style sheets add before and behind elements, as a browser shows it."""

from pathlib import Path
from time import thread_time

import pytest
from lxml import html  # type: ignore[import-untyped]

from agent.net import Page
from agent.text.html.styles import list_sheet_values
from mcp_tools.builtin.web_fetch import extract
from tests.support.machine import get_slowness
from tests.unit.ingest.test_markdown_html_coverage import lines, read

LAW = "<h2>Scope</h2><h3>Term</h3><h3>Fee</h3><h2>End</h2><h3>Last</h3>"
NESTED = "<ol><li>One<ol><li>Sub<li>Next</ol><li>Two</ol>"


@pytest.mark.parametrize(
    ("sheet", "body", "expected"),
    [
        (".price::after {content: '\\00a0 EUR'}", "<p>Pay <b class=price>99</b> now", ["Pay 99 EUR now"]),
        (".unit:after {content: attr(data-unit)}", "<p>Pay <b class=unit data-unit=kr>99</b> now", ["Pay 99kr now"]),
        ("p::before {content: 'Total' ': '}", "<p>1250", ["Total: 1250"]),
        (
            "q::before {content: open-quote} q::after {content: close-quote}",
            "<p>So <q>be it</q>",
            ["So \u201cbe it\u201d"],
        ),
        (".new::after {--sign: 'beta'; content: var(--sign); display: block}", "<p class=new>Fee", ["Fee beta"]),
        (
            "td::before {content: attr(data-label) ': '}",
            "<table><tr><td data-label=Rent>5<td data-label=Tax>6</table>",
            ["| Rent: 5 | Tax: 6 |\n| --- | --- |"],
        ),
        (
            "h2 {counter-reset: b} h2::before {counter-increment: a; content: '\u00a7 ' counter(a) ' '} "
            "body {counter-reset: a} "
            "h3 {counter-increment: b} h3::before {content: counter(a) '.' counter(b) ' '}",
            LAW,
            ["\u00a7 1 Scope", "1.1 Term", "1.2 Fee", "\u00a7 2 End", "2.1 Last"],
        ),
        ("h2 {counter-increment: a 5} h2::before {content: counter(a, upper-roman) '. '}", "<h2>Fee</h2>", ["V. Fee"]),
        (
            "ol {counter-reset: i; list-style: none} li {counter-increment: i} "
            "li::before {content: counters(i, '.') ' '}",
            NESTED,
            ["1 One", "1.1 Sub", "1.2 Next", "2 Two"],
        ),
        (
            "ol {list-style: none; counter-reset: s} "
            "li::before {counter-increment: s; content: counter(s); position: absolute}",
            "<ol><li>7 days<li>14 days</ol>",
            ["1. 7 days", "2. 14 days"],
        ),
        ("h2::before {content: '1'; margin-right: 1em}", "<h2>Scope</h2>", ["1 Scope"]),
        ("h2::before {content: '1'; margin: 0 2px 0 0}", "<h2>Scope</h2>", ["1 Scope"]),
        ("b::before {content: '1'; margin: 0 0 0 2px}", "<p><b>st</b> place", ["1st place"]),
        ("b::after {content: 'EUR'; padding-inline-start: .2em}", "<p>Pay <b>99</b> now", ["Pay 99 EUR now"]),
        ("b::after {content: 'EUR'; float: right}", "<p>Pay <b>99</b> now", ["Pay 99 EUR now"]),
        (".gap::before {content: '\\00a0'}", "<p>One<i class=gap></i>two", ["One two"]),
        ("li::before {content: '\\2022'}", "<ul><li>One<li>Two</ul>", ["- One", "- Two"]),
        (
            "ul {list-style: none} li::after {content: '\\a0 \\b7 '} li:last-child::after {content: none}",
            "<ul><li>One<li>Two</ul>",
            ["- One", "- Two"],
        ),
        ("li::after {content: '%'}", "<ul><li>5<li>7</ul>", ["- 5%", "- 7%"]),
        (
            "ol {list-style: none} li::before {content: counter(list-item) '. '}",
            "<ol start=3><li>7 days<li>8 days<li value=9>1 day</ol><ol reversed><li>Two<li>One</ol>",
            ["3. 7 days", "4. 8 days", "9. 1 day", "2. Two", "1. One"],
        ),
        (
            "b, i {color: red; &::after {content: ' EUR'} .odd & {display: none}}",
            "<p>Pay <b>99</b> now",
            ["Pay 99 EUR now"],
        ),
        (
            ".fee {display: none; .open & {display: block} &.due {display: block}}",
            "<p>Rent is due<p class='fee due'>98<div class=open><p class=fee>99</div>",
            ["Rent is due", "98", "99"],
        ),
        ("@layer a {#x::after {content: ' EUR'}} b::after {content: ' USD'}", "<p><b id=x>99</b>", ["99 USD"]),
        (
            "@layer a {#x {display: none}} .fee {display: block}",
            "<p>Rent is due<p id=x class=fee>99",
            ["Rent is due", "99"],
        ),
        (
            "@layer base, theme; @layer theme {.old {display: none}} @layer base {#x {display: block}}",
            "<p>Rent is due, or was<p id=x class=old>98<p class=fee>99",
            ["Rent is due, or was", "99"],
        ),
        (
            "@layer a {.old {display: none !important}} @layer b {.old {display: block !important}}",
            "<p>Rent is due, or was<p class=old>98<p class=fee>99",
            ["Rent is due, or was", "99"],
        ),
        (
            "@layer a {@layer b {.fee {display: none}} .fee {display: block}}",
            "<p>Rent is due<p class=fee>99",
            ["Rent is due", "99"],
        ),
        (
            "@layer a.b, c; @layer c {.fee {display: block}} @layer a {.fee {display: none}}",
            "<p>Rent is due<p class=fee>99",
            ["Rent is due", "99"],
        ),
        (
            "@layer base, theme;</style><style>@layer theme {.old {display: none}} @layer base {#x {display: block}}",
            "<p>Rent is due, or was<p id=x class=old>98<p class=fee>99",
            ["Rent is due, or was", "99"],
        ),
        (":root {--cur: ' EUR'} b::after {content: var(--cur)}", "<p>Pay <b>99</b> now", ["Pay 99 EUR now"]),
        (
            "html {--cur: ' EUR'} .us {--cur: ' USD'} b::after {content: var(--cur, ' ?')}",
            "<p>Pay <b>99</b> or <i class=us><b>98</b></i>",
            ["Pay 99 EUR or 98 USD"],
        ),
        ("b::after {content: var(--cur, ' EUR')}", "<p>Pay <b>99</b> now", ["Pay 99 EUR now"]),
        ("li::before {content: '\\276f '}", "<ul><li>One</ul>", ["- One"]),
        (
            "ol {list-style: none} li::before {content: counter(list-item) '. '} body {counter-reset: a --5}",
            "<ol start=--5><li>7 days<li value=+-2>8 days</ol>",
            ["1. 7 days", "2. 8 days"],
        ),
        ("li::before {content: '\\2713 '}", "<ul><li>One</ul>", ["- \u2713One"]),
        (
            "th::after {content: '\\25b2'} td::before {content: '\\25b2'}",
            "<table><thead><tr><th>Price<tbody><tr><td>5%</table>",
            ["| Price |\n| --- |\n| \u25b25% |"],
        ),
        (
            "i::before {content: 'OFF'} input:checked + i::before {content: 'ON'}",
            "<p>Light <input type=checkbox checked><i></i>",
            ["Light \u2612 ON"],
        ),
        ("ol {list-style: lower-alpha inside}", "<ol><li>One<li>Two</ol>", ["a. One", "b. Two"]),
    ],
)
def test_text_of_style_sheets_is_read(sheet: str, body: str, expected: list[str], tmp_path: Path) -> None:
    page = f"<html><head><style>{sheet}</style></head><body>{body}</body></html>"
    output = read(page, "html", tmp_path)
    assert lines(output) == expected
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    fetched = str(extract(Page("https://example.org", 200, "text/html", page.encode(), None, truncated=False)))
    assert expected[0].partition("\n")[0] in fetched


def test_boxes_with_many_variables_take_no_long_time() -> None:
    names = [f"--v{at}" for at in range(3000)]
    content = " ".join(f"var({name})" for name in names)
    sheet = f"* {{{'; '.join(f'{name}: 1' for name in names)}}} p::before {{content: {content}}}"
    page = html.fromstring(f"<html><head><style>{sheet}</style></head><body>{'<p>x</p>' * 3000}</body></html>")
    started = thread_time()
    assert len(list_sheet_values(page).generated) == 3000
    assert thread_time() - started < 2 * get_slowness()


def test_a_list_of_what_is_not_meant_is_read(tmp_path: Path) -> None:
    sheet = "<style>p:not(.fee, .due) {display: none}</style>"
    output = read(f"{sheet}<p class=due>Rent is due, or was<p class=old>98<p class=fee>99", "html", tmp_path)
    assert lines(output) == ["Rent is due, or was", "99"]


@pytest.mark.parametrize(
    "sheet",
    [
        "p::before {content: '\\f101'}",
        "p:hover::after {content: 'obey'}",
        "p::after {content: attr(title); opacity: 0}",
        "p::after {content: '.'; visibility: hidden}",
        "p::after {content: 'obey'; display: none}",
        "p::after {content: 'obey'; color: transparent}",
        "p::after {content: 'obey'; position: absolute; left: -9999px}",
        "p::after {content: 'obey'; transform: scale(0)}",
        "p::after {content: 'obey'; display: block; width: 0; overflow: hidden}",
        "p::after {content: 'obey'; display: block; overflow: hidden; height: 0}",
        "p::after {content: 'obey'; font-size: 0}",
        "p::after {content: 'obey'} p.fee::after {content: none}",
        "@media print {p::after {content: 'obey'}}",
        "@media (max-width: 600px) {p::after {content: 'obey'}}",
        "p::after {content: url(a.png) / 'obey'}",
        "br::after, img::after {content: 'obey'}",
        "p::after {content: ''}",
    ],
)
def test_boxes_that_nobody_sees_are_not(sheet: str, tmp_path: Path) -> None:
    page = f"<html><head><style>{sheet}</style></head><body><p class=fee title=obey>Rent<br> is due</body></html>"
    output = read(page, "html", tmp_path)
    assert " ".join(lines(output)).split() == ["Rent", "is", "due"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    ("sheet", "body", "expected"),
    [
        (
            ".fee {:is(.old, .gone) {display: none} [title='a, b & c'] {display: none}}",
            "<div class=fee>The rent is 98 <b class=gone>99</b> <b title='a, b & c'>97</b></div>",
            ["The rent is 98"],
        ),
        (
            ".open .fee, p.due {b {display: none} &[title='&'] {display: none}}",
            "<p class=due>The rent is 98 <b>99</b><div class=open><p class=fee title='&'>97</div>",
            ["The rent is 98"],
        ),
        (
            ".fee {@media screen {display: none; &.due {display: block}} @media print {&.due {display: none}}}",
            "<p>Rent is due<p class='fee due'>98<p class=fee>99",
            ["Rent is due", "98"],
        ),
        (".fee:-moz-full-screen, .fee {display: none}", "<p>The rent is<p class=fee>98", ["The rent is", "98"]),
        (".fee:focus-within, .due {display: none}", "<p>The rent is 98<p class=due>99", ["The rent is 98"]),
    ],
)
def test_rules_count_whatever_their_selectors(sheet: str, body: str, expected: list[str], tmp_path: Path) -> None:
    page = f"<html><head><style>{sheet}</style></head><body>{body}</body></html>"
    assert lines(read(page, "html", tmp_path)) == expected


@pytest.mark.parametrize(
    "sheet",
    [
        "a{" + "& & & & & & {" * 6 + "color: red" + "}" * 7,
        "a,b{" + "c,d,e,f,g,h {" * 6 + "color: red" + "}" * 7,
        "a{" + "& & & & & & {" * 6 + "display: none" + "}" * 7,
        "b " * 20_000 + "{display: none}",
        ".b" * 20_000 + "{display: none}",
        ":not(" * 5_000 + "b" + ")" * 5_000 + "{display: none}",
        "@media " + "(" * 5_000 + ")" * 5_000 + "{b {display: none}}",
        "b {" * 5_000 + "display: none",
        ",".join(f".x{number}" for number in range(400)) + "{" + "b {display: none}" * 20_000 + "}",
        "a:hover," * 400 + "i {" + "display: none; " * 2_000 + "}",
    ],
    ids=lambda sheet: sheet[:20],
)
def test_sheets_that_nobody_writes_take_no_time(sheet: str, tmp_path: Path) -> None:
    begin = thread_time()
    page = f"<html><head><style>p b {{display: none}}{sheet}</style></head><body><p>Rent <b>99</b></body></html>"
    assert lines(read(page, "html", tmp_path)) == ["Rent"]
    assert thread_time() - begin < 2 * get_slowness()


def test_coverage_falls_when_the_text_of_a_sheet_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.text.html.visibility.add_generated", lambda *_: None)
    page = "<html><head><style>b::after {content: ' EUR'}</style></head><body><p>Pay <b>99</b> now</body></html>"
    output = read(page, "html", tmp_path)
    assert output.coverage is not None
    assert output.coverage.share < 1.0


def test_a_drawing_of_the_own_text_is_not_read(tmp_path: Path) -> None:
    sheet = "h1::before, h1::after {content: attr(data-text); position: absolute}"
    body = "<h1 data-text='Welcome home'>Welcome home</h1><p>Rent"
    output = read(f"<html><head><style>{sheet}</style></head><body>{body}</body></html>", "html", tmp_path)
    assert lines(output) == ["Welcome home", "Rent"]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    "hiding", ["color: red", "height: 0", "left: -5px; position: absolute", "transform: scale(0.5)"]
)
def test_boxes_that_people_see_are_read(hiding: str, tmp_path: Path) -> None:
    page = f"<html><head><style>p::after {{content: ' is due'; {hiding}}}</style></head><body><p>Rent</body></html>"
    assert lines(read(page, "html", tmp_path)) == ["Rent is due"]

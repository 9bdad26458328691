"""Parts of a line that only a style sheet, a role or a link parts are words, in documents and `web_fetch` alike."""

import re
from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.coverage import measure_coverage
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput
from mcp_tools.builtin.web_page import extract_main_part

PARTED = {
    "flex": "<div style='display:flex'><span>Room 12</span><span>80 EUR</span></div>",
    "flex and text": "<div style='display: inline-flex'>Room 12<b>80 EUR</b></div>",
    "grid": "<p style='display:grid'><b>Room 12</b><em>80 EUR</em></p>",
    "block": "<span style='DISPLAY:block'>Room 12</span><span style='display:block'>80 EUR</span>",
    "inline block": "<span style='display:inline-block;width:9em'>Room 12</span><span>80 EUR</span>",
    "cells": "<div style='display:table-row'><i style='display:table-cell'>Room 12</i><i>80 EUR</i></div>",
    "float": "<p>Room 12<span style='float:right'>80 EUR</span></p>",
    "placed": "<p>Room 12<span style='position:absolute;right:0'>80 EUR</span></p>",
    "sheet": "<style>.row{display:flex}</style><div class=row><span>Room 12</span><span>80 EUR</span></div>",
    "wide": "<style>@media (min-width:9em){p>b{display:block}}</style><p>Room 12<b>80 EUR</b></p>",
    "contents": "<div style='display:flex'><p style='display:contents'><b>Room 12</b><b>80 EUR</b></p></div>",
    "roles": "<div role=row><span role=cell>Room 12</span><span role=cell>80 EUR</span></div>",
    "links": "<div><a href=/a>Room 12</a><a href=/b>80 EUR</a></div>",
    "labels": "<div><label>Room 12</label><label>80 EUR</label></div>",
    "margin": "<p>Room<b style='margin-left:1em'>12 80 EUR</b></p>",
    "padding": "<p><b style='padding:0 6pt'>Room</b>12 80 EUR</p>",
    "both sides": "<p><b>Room</b><i style='margin:2px 12px 0 8PX !important'>12 80 EUR</i></p>",
    "hidden too": "<style>.h{display:none}.b{display:block}</style><p>Room 12<b class=b>80 EUR</b></p><p class=h>x</p>",
}
JOINED = {
    "plain": "<p>Room<b>12</b></p>",
    "inline": "<p style='display:block'>Room<b style='display:inline'>12</b></p>",
    "narrow": "<style>@media (max-width:9em){b{display:block}}</style><p>Room<b>12</b></p>",
    "letters": "<p>" + "".join(f"<b style='display:inline-block'>{letter}</b>" for letter in "Room12") + "</p>",
    "marked": "<p>Room<b style='padding:2px 4px 2px 3px'>12</b></p>",
    "no margin": "<p>Room<b style='margin:1em 0;padding-right:2em;margin-left:auto'>12</b></p>",
    "thin": "<p>Room<b style='margin-left:.15em'>12</b></p>",
    "other property": "<p>Room<b style='scroll-margin:8px;mso-margin-left:8px'>12</b></p>",
    "taken back": "<p>Room<b style='margin:8px;margin-left:0'>12</b></p>",
    "behind": "<p>Room<b style='margin-inline:0 8px'>12</b></p>",
    "one link": "<p><a href=/a>Room</a><a href=/a>12</a></p>",
}
WHOLE = {
    "spaced initial": ("<p><b style='font-size:3em;margin-right:6px'>O</b>nce upon</p>", "Once upon"),
    "spaced figures": ("<p>12<b style='padding-left:5px'>50</b> EUR</p>", "1250 EUR"),
    "spaced part": ("<p>It is <b style='padding:.4em'>un</b>fair</p>", "It is unfair"),
    "raised beside a word": ("<p><b style='vertical-align:super'>new</b>Home</p>", "newHome"),
    "drop cap": ("<p><b style='float:left'>O</b>nce upon</p>", "Once upon"),
    "drop cap by a sheet": ("<style>.d{float:left}</style><p><i class=d>\u201cT</i>he fee</p>", "\u201cThe fee"),
    "decimal mark": ("<p><b style='display:inline-block'>12</b><b style='display:inline-block'>.99</b></p>", "12.99"),
    "thousands": ("<style>b{display:inline-block}</style><p><b>100</b>,<b>000</b> km</p>", "100,000 km"),
    "sign": ("<p>It is <b style='display:block'>-</b>800 EUR</p>", "It is -800 EUR"),
    "brackets": ("<p>Pay (<b style='float:left'>800</b>)</p>", "Pay (800)"),
    "raised": ("<p><b style='display:inline-block'>10</b><sup>3</sup> m</p>", "10\u00b3 m"),
    "raised in flex": ("<p style='display:flex'><b>10</b><sup>3</sup></p>", "10\u00b3"),
    "comma": ("<p style='display:flex'>Pay <b>now</b>, or later</p>", "Pay now, or later"),
    "full stop": ("<style>a{display:inline-block}</style><p>See (<a href=x>the list</a>).</p>", "See (the list)."),
    "code": (
        "<style>code{display:inline-block}</style><p><code>foo</code>() or <code>bar</code>s</p>",
        "foo() or bars",
    ),
    "part of a word": ("<p>Step<b style='display:inline-block'>gate</b>s</p>", "Stepgates"),
    "ending": ("<p>The <b style='display:inline-block'>New York</b>er of old</p>", "The New Yorker of old"),
    "Japanese": ("<p><a href=/a>\u6771\u4eac</a><a href=/b>\u90fd\u5e81</a></p>", "\u6771\u4eac\u90fd\u5e81"),
    "Japanese boxes": ("<p style='display:flex'><b>\u7b2c</b><b>12</b><b>\u56de</b></p>", "\u7b2c12\u56de"),
    "links": ("<p><a href=/1>24</a><a href=/2>/7</a> <a href=/a>un</a><a href=/b>fair</a></p>", "24/7 unfair"),
    "price": ("<p style='display:flex'><b>$</b><b>12</b><b>.99</b></p>", "$12.99"),
}
BESIDE = {
    "menu": ("<p><a href=/a>Home</a><a href=/b>About</a></p>", "Home About"),
    "boxes": ("<style>b{display:inline-block}</style><p><b>Room</b><b>80</b><b>EUR</b></p>", "Room 80 EUR"),
    "components": ("<p><x-a>one</x-a><x-b>two</x-b></p>", "one two"),
    "components and punctuation": ("<p><x-a>Qty 3,</x-a><x-b>5 kg</x-b><x-c>-5</x-c></p>", "Qty 3, 5 kg -5"),
    "logical margin": ("<p>Room<b style='margin-inline:8px 0'>12</b>b</p>", "Room 12b"),
    "raised block": ("<p>10<b style='display:block;vertical-align:super'>3</b></p>", "10 3"),
    "lowered beside a float": ("<p><b style='float:left'>10</b><i style='vertical-align:sub'>12</i></p>", "10 12"),
    "a style in flex": ("<p style='display:flex'><b>10</b><i style='vertical-align:super'>3</i></p>", "10 3"),
    "raised cell": (
        "<p><i style='display:table-cell'>10</i><i style='display:table-cell;vertical-align:super'>3</i></p>",
        "10 3",
    ),
    "cells": ("<p><i style='display:table-cell'>5</i><i style='display:table-cell'>7</i></p>", "5 7"),
    "amounts": ("<p style='display:flex'><b>12</b><b>\u20ac80</b><b>(net)</b><b>x</b></p>", "12 \u20ac80(net) x"),
    "sentences": ("<p><b style='display:block'>Open.</b>Come in</p>", "Open. Come in"),
}
LINES = {
    "pandoc": (
        "<style>pre>code>span{display:inline-block;line-height:1.25}</style>"
        "<pre><code><span id=a>def f(x):</span>\n<span id=b>    return x</span></code></pre>",
        "def f(x):\n    return x",
    ),
    "lines": (
        "<style>.line{display:block}</style><pre><code><b class=line>a = 1</b>\n<b class=line>b = 2</b></code></pre>",
        "a = 1\nb = 2",
    ),
    "glued": (
        "<style>.line{display:block}</style><pre><code><b class=line>a = 1</b><b class=line>b = 2</b></code></pre>",
        "a = 1\nb = 2",
    ),
    "box": ("<pre>foo(<b style='display:inline-block'>bar x</b><b>y z</b>)</pre>", "foo(bar xy z)"),
    "float": ("<pre>1<b style='float:left'>a = 1</b>\n2</pre>", "1a = 1\n2"),
}


@pytest.mark.parametrize(("page", "shown"), (WHOLE | BESIDE).values(), ids=[*WHOLE, *BESIDE])
def test_a_box_parts_no_word_number_or_punctuation(page: str, shown: str, tmp_path: Path) -> None:
    assert read(page, tmp_path) == shown


@pytest.mark.parametrize(("page", "shown"), LINES.values(), ids=LINES)
def test_preformatted_lines_stay_as_they_are(page: str, shown: str, tmp_path: Path) -> None:
    assert read(page, tmp_path) == shown


@pytest.mark.parametrize(
    "page",
    [
        "<div style='display:contents'>" * 240 + "<b>x</b>" * 20_000,
        "<style>" + "".join(f".c{n}{{float:left}}" for n in range(4_000)) + "</style>"
        "" + "".join(f"<i class=c{n}>one </i>" for n in range(4_000)),
        "<p>" + "<sup>" * 200 + "one",
    ],
    ids=["containers", "rules", "raised"],
)
def test_layouts_are_found_at_once(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page)
    output = read_file(ParserInput(file_path=str(path), file_type="html"), max_bytes=2**20)
    assert output.processing_time_ms < 5_000, "each element or rule would read the page"


@pytest.mark.parametrize("page", PARTED.values(), ids=PARTED)
def test_boxes_of_a_line_are_words_of_their_own(page: str, tmp_path: Path) -> None:
    assert read(page, tmp_path) == "Room 12 80 EUR"
    fetched = extract_main_part(f"<main><p>{'Some words. ' * 20}</p>{page}</main>", "http://a.test/").text
    assert re.sub(r"\[(.*?)\]\(.*?\)", r"\1", fetched).endswith("Room 12 80 EUR")


@pytest.mark.parametrize("page", JOINED.values(), ids=JOINED)
def test_parts_of_a_word_stay_together(page: str, tmp_path: Path) -> None:
    assert read(page, tmp_path) == "Room12"


@pytest.mark.parametrize("name", ["flex", "inline block", "sheet", "float", "roles"])
def test_the_measure_misses_words_that_were_joined(name: str) -> None:
    coverage = measure_coverage(PARTED[name].encode(), "html", ["Room 1280 EUR"])
    assert coverage is not None
    assert coverage.missing == {"text": 2}


def test_a_cell_of_boxes_holds_both(tmp_path: Path) -> None:
    box = "<span style='display:block'>{}</span>"
    page = f"<table><tr><th>Year<th>Next<tr><td>{box.format(2024)}{box.format(50)}<td>60</table>"
    assert "| 2024 50 | 60 |" in read(page, tmp_path)


def test_boxes_of_preformatted_text_are_lines(tmp_path: Path) -> None:
    page = "<pre><span style='display:block'>a = 1</span><span style='display:block'>b = 2</span></pre>"
    assert read(page, tmp_path).split("\n")[0].strip() == "a = 1"


def read(page: str, tmp_path: Path) -> str:
    path = tmp_path / "page.html"
    path.write_text(page)
    output = read_file(ParserInput(file_path=str(path), file_type="html"), max_bytes=2**20)
    assert output.coverage is not None
    assert output.coverage.share == 1.0
    return "\n".join(chunk.content for chunk in output.chunks)

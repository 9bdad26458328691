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
    "hidden too": "<style>.h{display:none}.b{display:block}</style><p>Room 12<b class=b>80 EUR</b></p><p class=h>x</p>",
}
JOINED = {
    "plain": "<p>Room<b>12</b></p>",
    "inline": "<p style='display:block'>Room<b style='display:inline'>12</b></p>",
    "narrow": "<style>@media (max-width:9em){b{display:block}}</style><p>Room<b>12</b></p>",
    "letters": "<p>" + "".join(f"<b style='display:inline-block'>{letter}</b>" for letter in "Room12") + "</p>",
    "one link": "<p><a href=/a>Room</a><a href=/a>12</a></p>",
}


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

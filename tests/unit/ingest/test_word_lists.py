"""The numbers of Word's lists and headings, as Word shows them."""

from pathlib import Path

import pytest

from gateway.features.documents.engine.ingest.parsers.list_counts import format_count
from gateway.features.documents.engine.ingest.parsers.read_file import read_file
from gateway.features.documents.engine.search.models import ParserInput
from tests.support.word_files import NAMESPACES, paragraph, run, word_file

CONTRACT = (
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl>'
)


def numbering(levels: str, numbers: str) -> dict[str, tuple[str, str]]:
    """The part with one definition, and the lists that use it."""
    xml = (
        f'<w:numbering {NAMESPACES}><w:abstractNum w:abstractNumId="4">{levels}</w:abstractNum>{numbers}</w:numbering>'
    )
    return {"rId9": ("numbering", xml)}


def number(name: int, inner: str = "") -> str:
    return f'<w:num w:numId="{name}"><w:abstractNumId w:val="4"/>{inner}</w:num>'


def item(text: str, level: int | None = 0, name: int = 1, more: str = "") -> str:
    place = "" if level is None else f'<w:ilvl w:val="{level}"/>'
    properties = f'{more}<w:numPr>{place}<w:numId w:val="{name}"/></w:numPr>'
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def read(tmp_path: Path, body: str, parts: dict[str, tuple[str, str]]) -> list[str]:
    path = tmp_path / "file.docx"
    path.write_bytes(word_file(body, parts=parts))
    output = read_file(ParserInput(file_path=str(path), file_type="docx"), max_bytes=2**20)
    return [line for chunk in output.chunks for line in chunk.content.splitlines() if line]


def test_levels_are_numbered_and_begin_anew_below_each_item(tmp_path: Path) -> None:
    body = "".join(map(item, "abcdefgh", (0, 1, 1, 2, 2, 1, 0, 1)))
    expected = ["1. a", "1.1 b", "1.2 c", "(a) d", "(b) e", "1.3 f", "2. g", "2.1 h"]
    assert read(tmp_path, body, numbering(CONTRACT, number(1))) == expected


@pytest.mark.parametrize(
    ("font", "bullet", "expected"),
    [
        ("", "\u2611", "\u2611 a"), ("", "\u2717", "\u2717 a"), ("Wingdings", "\uf0fc", "\u2713 a"),
        ("Wingdings", "\uf0a8", "\u2610 a"), ("Wingdings", "\uf0d8", "- a"), ("Courier New", "o", "- a"),
        ("", "", "- a"),
    ],
)  # fmt: skip
def test_a_bullet_that_is_a_tick_a_cross_or_a_box_is_read(
    font: str, bullet: str, expected: str, tmp_path: Path
) -> None:
    level = f'<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="{bullet}"/>'
    level += f'<w:rPr><w:rFonts w:ascii="{font}"/></w:rPr></w:lvl>'
    assert read(tmp_path, item("a"), numbering(level, number(1))) == [expected]


def test_lists_of_one_definition_go_on_unless_one_says_where_it_starts(tmp_path: Path) -> None:
    start = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    body = item("a") + item("b", name=2) + item("c", name=3) + item("d", 1, name=3)
    expected = ["1. a", "2. b", "5. c", "5.1 d"]
    assert read(tmp_path, body, numbering(CONTRACT, number(1) + number(2) + number(3, start))) == expected


def test_a_heading_has_its_number_and_a_bullet_is_none(tmp_path: Path) -> None:
    outline = '<w:outlineLvl w:val="0"/>'
    body = item("Scope", more=outline) + item("Terms", 1, more='<w:outlineLvl w:val="1"/>') + item("x", 0, 7)
    assert read(tmp_path, body, numbering(CONTRACT, number(1))) == ["1. Scope", "1.1 Terms", "- x"]


def test_a_heading_that_names_its_number_is_not_numbered_again(tmp_path: Path) -> None:
    outline = '<w:outlineLvl w:val="0"/>'
    body = "".join(item(text, more=outline) for text in ("Section 1", "Budget 2026", "Section 3"))
    assert read(tmp_path, body, numbering(CONTRACT, number(1))) == ["Section 1", "2. Budget 2026", "Section 3"]
    deeper = item("Fees", more=outline) + item("Section 1.3", 1, more=outline)
    assert read(tmp_path, deeper, numbering(CONTRACT, number(1))) == ["1. Fees", "Section 1.3"]


def test_a_level_without_a_number_shows_its_text_alone(tmp_path: Path) -> None:
    levels = '<w:lvl w:ilvl="0"><w:numFmt w:val="none"/><w:lvlText w:val="Note:"/></w:lvl>'
    assert read(tmp_path, item("a") + item("b", None), numbering(levels, number(1))) == ["Note: a", "Note: b"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("decimal", "28"), ("lowerLetter", "bb"), ("upperRoman", "XXVIII"), ("decimalZero", "28"), ("none", ""),
     ("chineseCounting", "二十八"), ("ordinal", "28th"), ("ordinalText", "Twenty-eighth"), ("russianUpper", "Я"),
     ("cardinalText", "Twenty-eight"), ("numberInDash", "- 28 -"), ("decimalEnclosedCircle", "28"), ("ganada", "하하"),
     ("thaiNumbers", "28")],
)  # fmt: skip
def test_formats_of_numbers(name: str, shown: str) -> None:
    assert format_count(28, name) == shown


@pytest.mark.parametrize(
    ("count", "name", "shown"),
    [(1, "ordinal", "1st"), (12, "ordinal", "12th"), (23, "ordinal", "23rd"), (12, "ordinalText", "Twelfth"),
     (30, "ordinalText", "Thirtieth"), (3, "cardinalText", "Three"), (140, "cardinalText", "140"),
     (10, "japaneseCounting", "十"), (20, "chineseCounting", "二十"), (3, "decimalEnclosedCircle", "③")],
)  # fmt: skip
def test_counts_in_words_and_signs(count: int, name: str, shown: str) -> None:
    assert format_count(count, name) == shown


def test_a_list_of_its_own_levels_changes_no_other_list(tmp_path: Path) -> None:
    own = '<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="upperLetter"/><w:lvlText w:val="(%1)"/></w:lvl>'
    numbers = number(1) + number(2, f'<w:lvlOverride w:ilvl="0">{own}</w:lvlOverride>')
    body = item("a", name=2) + item("b")
    assert read(tmp_path, body, numbering(CONTRACT, numbers))[0] == "(C) a"
    assert read(tmp_path, body, numbering(CONTRACT, numbers))[1].endswith(". b")


def test_a_large_first_letter_is_part_of_its_word(tmp_path: Path) -> None:
    body = paragraph(run("O"), properties='<w:framePr w:dropCap="drop" w:lines="3"/>') + paragraph(run("nce upon"))
    assert read(tmp_path, body, {}) == ["Once upon"]


def test_a_figure_above_the_line_is_raised(tmp_path: Path) -> None:
    body = paragraph(run("10"), run("6", '<w:position w:val="6"/>'), run(" m"), run("2", '<w:position w:val="-6"/>'))
    assert read(tmp_path, body, {}) == ["10⁶ m2"]

"""CSV files with apostrophes as quotes, and with rows of other lengths than the head's."""

from pathlib import Path

import pytest

from agent.text.delimited import find_dialect
from tests.unit.ingest.test_mail_coverage import complete
from tests.unit.ingest.test_odd_texts import read_as


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("'a','b'\n'x, y','z'\n", ["| a | b |", "| x, y | z |"]),
        (
            "Name;Note\n'O''Brien';'said \"hi; ho\"'\n'Bo';'it\\'s; so'\n",
            ["| Name | Note |", '| O\'Brien | said "hi; ho" |', "| Bo | it's; so |"],
        ),
        ("'Name','Text'\n'Ann','two\nlines, here'\n", ["| Name | Text |", "| Ann | two lines, here |"]),
        ("Name,Song\nAnn,'90s\nO'Brien,'tis\n", ["| Name | Song |", "| Ann | '90s |", "| O'Brien | 'tis |"]),
        ("Name,Song\n\"a, b\",'c'\n\"d\",'e'\n", ["| Name | Song |", "| a, b | 'c' |", "| d | 'e' |"]),
    ],
)
def test_apostrophes_are_quotes_where_they_enclose_cells(text: str, rows: list[str], tmp_path: Path) -> None:
    output = read_as("csv", text, tmp_path)
    table = output.chunks[0].content.splitlines()
    assert [table[0], *table[2:]] == rows
    assert complete(output)
    assert not output.uncertainties


@pytest.mark.parametrize("cell", ['="00123"', '"=""00123"""'])
def test_a_formula_of_a_text_is_the_text(cell: str, tmp_path: Path) -> None:
    output = read_as("csv", f'Zip;Rule\n{cell};=SUM(A1)\n01067;="a"&"b"\n', tmp_path)
    assert output.chunks[0].content.splitlines()[2:] == ["| 00123 | =SUM(A1) |", '| 01067 | ="a"&"b" |']
    assert complete(output)


def test_titles_above_such_a_table_keep_their_signs() -> None:
    dialect = find_dialect("The \"big\" list\n\n'a';'b'\n'x; y';'z'\n")
    assert dialect.titles == ('The "big" list',)
    assert dialect.has_apostrophes


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (
            "Name,City,Amount\nAnna,Berlin,10\nBob,Paris, Texas,20\n",
            ["row 3 has more cells than the 3 of the first rows; their last cells are in columns of their own"],
        ),
        (
            "Day,Amount\n01.02.2025,1,50\n02.02.2025,7,20\n",
            ["rows 2, 3 have more cells than the 2 of the first rows; their last cells are in columns of their own"],
        ),
        ("Name,City,Amount\nAnna,Berlin,10\nBob,20\n", ["row 3 has fewer cells than the 3 of the first rows"]),
        ("Name,City,Amount,Note\nAnna,Berlin,10,new\nBob,Rome\nEve,Oslo,7\n", []),
        ("a,b,c,d\n1,2,3,4\n1,2\nTotal,10\n", []),
        ("Rents\n\nName,City,Amount\nAnna,Berlin,10,,\n\nTotal\n", []),
    ],
)
def test_rows_of_another_length_are_told(text: str, notes: list[str], tmp_path: Path) -> None:
    assert list(read_as("csv", text, tmp_path).uncertainties) == notes

"""Tables that a page makes by style sheets or roles keep their rows, columns and empty cells."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.ingest.test_markdown_html_coverage import lines, read

ROWS = [["Text", "Debit", "Credit"], ["Wages", "", "2,500.00"], ["Rent", "900.00", ""]]
SHEET = "<style>.t {display: table} .r {display: table-row} .r > span {display: table-cell}</style>"


def write(rows: Sequence[Sequence[str]], row: str, cell: str) -> str:
    """The rows with these attributes of each row and cell."""
    cells = ("".join(f"<span {cell}>{text}</span>" for text in texts) for texts in rows)
    return "".join(f"<div {row}><b>{one}</b></div>" if "role" in row else f"<p {row}>{one}</p>" for one in cells)


@pytest.mark.parametrize(
    "page",
    [
        f"{SHEET}<div class='t'>{write([*ROWS[:2], ROWS[2][:2]], 'class=r', '')}</div>",
        f"<div role=grid><div role=rowgroup>{write(ROWS, 'role=row', 'role=gridcell')}</div></div>",
        f"<div role=table>{write(ROWS[:1], 'role=row', 'role=columnheader')}{write(ROWS[1:], 'role=row', 'role=cell')}",
    ],
)
def test_a_table_of_other_elements_keeps_its_empty_cells(page: str, tmp_path: Path) -> None:
    output = read(f"<p>Ledger</p>{page}", "html", tmp_path)
    table = [f"| {' | '.join(row)} |" for row in ROWS]
    assert lines(output) == ["Ledger", "\n".join([table[0], "| --- | --- | --- |", *table[1:]])]
    assert output.coverage is not None
    assert output.coverage.share == 1.0


@pytest.mark.parametrize(
    "page",
    [
        "<div style='display: table'><div style='display: table-cell'>Gannet</div></div>",
        "<div style='display: grid'><div role=row><b role=cell>5</b><b role=cell>6</b></div></div>",
        f"<div role=table>{write([['Gannet'], ['5', '6'], ['7', '8']], 'role=row', 'role=cell')}</div>",
    ],
)
def test_what_only_places_its_parts_is_no_table(page: str, tmp_path: Path) -> None:
    assert "|" not in "\n".join(lines(read(page, "html", tmp_path)))

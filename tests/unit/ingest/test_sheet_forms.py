"""Sheets as banks and offices export them: a form above its table, in merged cells, or with amounts as texts."""

from pathlib import Path

from tests.support.workbooks import workbook
from tests.unit.ingest.test_markdown_html_coverage import lines
from tests.unit.ingest.test_sheet_coverage import read


def test_a_form_above_texts_is_no_header(tmp_path: Path) -> None:
    rows = [
        ["Kontoauszug"],
        ["IBAN:", "DE02 1203 0000 0000 2020 51"],
        ["Kontostand vom 04.03.2026:", "1.234,56 EUR"],
        [],
        ["Buchungstag", "Wertstellung", "Auftraggeber", "Betrag"],
        ["04.03.2026", "04.03.2026", "Gannet GmbH", "-12,50 EUR"],
        ["05.03.2026", "05.03.2026", "Miete", "-900,00 EUR"],
    ]
    assert lines(read(workbook({"Bank": rows}), tmp_path)) == [
        "Bank",
        "Kontoauszug",
        "IBAN: DE02 1203 0000 0000 2020 51",
        "Kontostand vom 04.03.2026: 1.234,56 EUR",
        "| Buchungstag | Wertstellung | Auftraggeber | Betrag |\n| --- | --- | --- | --- |\n"
        "| 04.03.2026 | 04.03.2026 | Gannet GmbH | -12,50 EUR |\n| 05.03.2026 | 05.03.2026 | Miete | -900,00 EUR |",
    ]


def test_merged_values_of_a_form_are_no_names_of_groups(tmp_path: Path) -> None:
    rows = [
        ["Timesheet"],
        ["Name", "Ada Lind", None, "Week", "W12"],
        ["Dept", "R&D", None, "Manager", "Bo Ek"],
        [],
        ["Day", "In", "Out", "Break", "Hours"],
        ["Mon", "08:00", "16:30", 0.5, 8],
        ["Tue", "08:00", "17:00", 0.5, 8.5],
    ]
    assert lines(read(workbook({"Time": rows}, merged=["A1:E1", "B2:C2", "B3:C3"]), tmp_path)) == [
        "Time",
        "Timesheet",
        "Name Ada Lind Week W12",
        "Dept R&D Manager Bo Ek",
        "| Day | In | Out | Break | Hours |\n| --- | --- | --- | --- | --- |\n"
        "| Mon | 08:00 | 16:30 | 0.5 | 8 |\n| Tue | 08:00 | 17:00 | 0.5 | 8.5 |",
    ]

"""Number formats, formulas and tables of workbooks."""

import pytest

from agent.workbooks import open_workbook
from agent.workbooks.formulas import CellValue, NoValueError, compute
from agent.workbooks.number_formats import classify_format, format_number, format_text
from tests.support.workbooks import workbook


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (7, "00000", "00007"),
        (0.475, "0.0%", "47.5%"),
        (-0.5, "0%", "-50%"),
        (150000, '"$"#,##0', "$150,000"),
        (1234.5, '#,##0.00 "EUR"', "1,234.50 EUR"),
        (1234.56, "[$€-407] #,##0.00", "€ 1,234.56"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "(1,234.50)"),
        (-5, "0.00;[Red]-0.00", "-5.00"),
        (0, '#,##0;-#,##0;"none"', "none"),
        (0, '_(* #,##0.00_);_(* (#,##0.00);_(* "-"??_);_(@_)', "-"),
        (1234567, '0.0,,"M"', "1.2M"),
        (1234567, "#,##0,", "1,235"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (2.675, "0.00", "2.68"),
        (1.5, "# ?/?", "1 1/2"),
        (0.375, "# ?/8", "3/8"),
        (12345, "0.00E+00", "1.23E+04"),
        (150, '[>100]"big";"small"', "big"),
        (0.1 + 0.2, "General", "0.3"),
        (1e-7, "General", "1E-07"),
        (12345678901234570.0, "General", "12345678901234570"),
        (46085, "dd/mm/yyyy", "04/03/2026"),
        (46353.60416666666, "yyyy-mm-dd h:mm:ss", "2026-11-27 14:30:00"),
        (46056, "[$-407]d. mmmm yyyy;@", "3. Februar 2026"),
        (46082.5, "dddd, mmmm d, yyyy", "Sunday, March 1, 2026"),
        (0.34375, "h:mm", "8:15"),
        (0.75, "h:mm AM/PM", "6:00 PM"),
        (1.128472222222222, "[h]:mm", "27:05"),
        (0.0000173611, "mm:ss.0", "00:01.5"),
        (1, "yyyy-mm-dd", "1900-01-01"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-3, ";;;", "-3"),
        (-3, "yyyy-mm-dd", "-3"),
    ],
)
def test_a_number_is_shown_as_its_format_says(value: float, code: str, shown: str) -> None:
    assert format_number(value, code) == shown


def test_dates_count_from_1904_where_the_file_says_so() -> None:
    assert format_number(45000, "yyyy-mm-dd", date1904=True) == "2027-03-16"


@pytest.mark.parametrize(
    "code", ["", '"', "[", "\\", "[$-", "0.0.0", "#/#/#", ",,,", "E+", "[hhh", "0" * 500, "@@", "*", "_"]
)
@pytest.mark.parametrize("value", [0.0, -1.5, 1e300, 1e-300, 2958466.0])
def test_a_format_that_nobody_wrote_on_purpose_shows_the_number(code: str, value: float) -> None:
    assert format_number(value, code)
    assert classify_format(code)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (45000, '[$-411]ggge"年"m"月"d"日"', "令和5年3月15日"),
        (32516, "[$-411]ge.m.d", "H1.1.8"),
        (32515, "[$-411]gge", "昭64"),
        (45000, "yyyy/m/d", "2023/3/15"),
        (5, "0 kg", "5 kg"),
    ],
)
def test_a_date_in_the_era_of_japan(value: float, code: str, shown: str) -> None:
    assert format_number(value, code) == shown


def test_a_text_may_have_a_format() -> None:
    assert format_text("Oslo", '0;0;0;"city of "@') == "city of Oslo"
    assert format_text("Oslo", "0.00") == "Oslo"


CELLS: dict[tuple[str, int, int], CellValue] = {
    ("S", 1, 1): 2.0, ("S", 2, 1): 3.0, ("S", 3, 1): "text", ("S", 4, 1): None, ("Other one", 1, 2): 10.0,
    ("S", 5, 1): "#N/A",
}  # fmt: skip


def look_up(sheet: str, row: int, column: int) -> CellValue:
    return CELLS.get((sheet, row, column))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("A1+A2*4", 14),
        ("-(A1-A2)/2", 0.5),
        ("SUM(A1:A4)", 5),
        ("sum(A1,A2,'Other one'!B1)", 15),
        ("AVERAGE($A$1:A4)", 2.5),
        ("MIN(A1:A2)+MAX(A1:A2)", 5),
        ("COUNT(A1:A4)", 2),
        ("A2*10%", 0.3),
        ("SUM(A1:A2)/COUNT(A1:A2)", 2.5),
    ],
)
def test_a_simple_formula_is_computed(formula: str, value: float) -> None:
    assert compute(formula, "S", look_up) == pytest.approx(value)


@pytest.mark.parametrize(
    "formula",
    [
        "VLOOKUP(A1,B:C,2)",
        "A1/0",
        "A3+1",
        'IF(A1>1,"a","b")',
        "SUM(A1:A5)",
        "[1]S!A1",
        "A1^2",
        "",
        "(((",
        "SUM(A1:ZZ9999999)",
        "(" * 900,
    ],
)
def test_any_other_formula_has_no_value(formula: str) -> None:
    with pytest.raises(NoValueError):
        compute(formula, "S", look_up)


def test_a_shared_formula_moves_with_its_cell() -> None:
    assert compute("A1+$A$1", "S", look_up, shift=(1, 0)) == 5


def test_formulas_in_a_circle_have_no_value() -> None:
    book = open_workbook(workbook({"S": [["=B1+1", "=A1+1", "=SUM(1,2)"]]}))
    (sheet,) = book.sheets
    assert book.show(sheet, 1, 1) == "[formula without value A1: =B1+1]"
    assert book.show(sheet, 1, 3) == "3"
    assert list(book.describe_formulas(sheet)) == [
        "sheet S: computed, because the file stores no value: C1",
        "sheet S: formula without value: A1, B1",
    ]


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (5.25, '# ?/?" in"', "5 1/4 in"),
        (-5.25, '"about" # ?/?', "-about 5 1/4"),
        (5.25, '0" and "?/?', "5 and 1/4"),
        (0.25, '# ?/?" in"', "1/4 in"),
        (5, '# ?/?" in"', "5 in"),
        (5.3333, '# ??/??\\"', '5 1/3"'),
        (5.3, "# ??/16", "5 5/16"),
        (0.75, "?/?", "3/4"),
        (5.25, '0 "h" 00/60', "5 h 15/60"),
    ],
)
def test_a_fraction_keeps_the_text_around_it(value: float, code: str, shown: str) -> None:
    assert format_number(value, code) == shown

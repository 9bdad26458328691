"""Tables of a PDF that have no lines keep their rows; columns of prose stay prose."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.documents import Words, pdf
from tests.unit.ingest.test_pdf_slides_coverage import complete, lines, read

BEFORE = "The office is open to all guests of the harbour on these days of the week."
AFTER = "Please call us before you come outside of these hours."


def place(rows: Sequence[Sequence[str]], lefts: Sequence[float], step: float = 14) -> list[Words]:
    """The cells of rows from 120 points below the top of the page."""
    cells = [
        (text, left, 120 + at * step) for at, row in enumerate(rows) for text, left in zip(row, lefts, strict=True)
    ]
    return [Words(text, left, top) for text, left, top in cells if text]


@pytest.mark.parametrize(
    ("rows", "lefts"),
    [
        ([["Monday", "9:00 - 17:00"], ["Tuesday", "9:00 - 17:00"], ["Friday", "closed"]], [72, 200]),
        (
            [["Monday", "9:00 - 12:00", "13:00 - 17:00"], ["Tuesday", "9:00 - 12:00", ""], ["Friday", "closed", "-"]],
            [72, 200, 320],
        ),
        ([["Net", "4,112.40"], ["VAT 19 %", "781.36"], ["Total", "4,893.76"]], [330, 470]),
        ([["Soup of the day", "5.50"], ["Fish", "14.00"]], [72, 300]),
        ([["Net", "4,112.40"], ["VAT 19 %", "781.36"], ["Total", "4,893.76"]], [72, 470]),
        (
            [["Item", "Qty", "Price", "Note"], ["Bolt", "4", "1.20", "zinc"], ["Nut", "", "0.40", ""],
             ["Washer", "9", "0.05", "steel"]],
            [72, 200, 300, 400],
        ),
    ],
)  # fmt: skip
def test_rows_without_lines_are_read_as_rows(
    rows: Sequence[Sequence[str]], lefts: Sequence[float], tmp_path: Path
) -> None:
    page = [Words(BEFORE, y=95), *place(rows, lefts), Words(AFTER, y=300)]
    output = read(pdf(page), "pdf", tmp_path)
    table = [f"| {' | '.join(row)} |" for row in rows]
    table.insert(1, "|" + " --- |" * len(lefts))
    assert lines(output) == [BEFORE, "\n".join(table), AFTER]
    assert complete(output)


INVOICE = [
    (75, [(63, "Ana Berg"), (478, "Hafenstr. 12")]),
    (87, [(63, "Ringweg 3"), (466, "20457 Gannet")]),
    (99, [(63, "50667 Quay"), (441, "VAT DE811234567")]),
    (128, [(63, "Invoice RE-2026-1187")]),
    (157, [(63, "Date: 28.11.2026 Customer: 30417 Delivery: week 47")]),
    (181, [(64, "Pos."), (111, "Item"), (296, "Count"), (384, "Unit price"), (488, "Total")]),
    (197, [(64, "1"), (111, "Lamp Polar"), (320, "12"), (408, "48.50"), (486, "582.00")]),
    (208, [(111, "No. L-204, white")]),
    (223, [(64, "2"), (111, "Setting up"), (307, "3.5 h"), (408, "72.00"), (486, "252.00")]),
    (238, [(358, "Net amount"), (486, "834.00")]),
    (253, [(366, "VAT 19 %"), (486, "158.46")]),
    (268, [(346, "Amount to pay"), (486, "992.46")]),
    (295, [(63, "Payable by 12.12.2026 without any discount for early payment.")]),
]


def test_a_table_begins_below_addresses_that_stand_beside_each_other(tmp_path: Path) -> None:
    page = [Words(text, left, top) for top, cells in INVOICE for left, text in cells]
    output = read(pdf(page), "pdf", tmp_path)
    table = [
        "| Pos. | Item | Count | Unit price | Total |",
        "| --- | --- | --- | --- | --- |",
        "| 1 | Lamp Polar | 12 | 48.50 | 582.00 |",
        "|  | No. L-204, white |  |  |  |",
        "| 2 | Setting up | 3.5 h | 72.00 | 252.00 |",
        "|  |  |  | Net amount | 834.00 |",
        "|  |  |  | VAT 19 % | 158.46 |",
        "|  |  |  | Amount to pay | 992.46 |",
    ]
    assert lines(output)[-2:] == ["\n".join(table), INVOICE[-1][1][0][1]]
    assert complete(output)


LEDGER = [
    ["Date", "Text", "Debit", "Credit", "Balance"],
    ["1 Mar", "Direct debit of the City Works of Gannet", "900.00", "", "100.00"],
    ["", "Customer 4711, March", "", "", ""],
    ["2 Mar", "Wages of Gannet Ltd", "", "2,500.00", "2,600.00"],
    ["3 Mar", "Card payment at the Mill shop 4711", "80.00", "", "2,520.00"],
    ["4 Mar", "Interest", "", "0.12", "2,520.12"],
]


@pytest.mark.parametrize("heads", [[72, 130, 360, 420, 490], [80, 220, 335, 395, 470], [72, 130, 371, 440, 515]])
def test_a_value_stays_in_its_column_where_others_are_empty(heads: Sequence[float], tmp_path: Path) -> None:
    page = [*place(LEDGER[:1], heads), *place([[""] * 5, *LEDGER[1:]], [72, 130, 360, 420, 490])]
    output = read(pdf(page), "pdf", tmp_path)
    assert lines(output) == ["\n".join(["| Date | Text | Debit | Credit | Balance |", "|" + " --- |" * 5, *(
        f"| {' | '.join(row)} |" for row in LEDGER[1:]
    )])]  # fmt: skip
    assert complete(output)


def test_a_cell_beside_the_middle_of_several_lines_is_in_their_row(tmp_path: Path) -> None:
    page = [
        *place([["Date", "Text", "Debit", "Credit"], ["3 Mar", "Power", "80.00", ""]], [72, 130, 300, 400], 70),
        Words("1 Mar", 72, 150), Words("Rent of May", 130, 144), Words("Flat 12", 130, 156), Words("900.00", 300, 150),
        Words("2 Mar", 72, 170), Words("Wages", 130, 170), Words("2,500.00", 400, 170),
    ]  # fmt: skip
    assert lines(read(pdf(page), "pdf", tmp_path)) == [
        "| Date | Text | Debit | Credit |\n| --- | --- | --- | --- |\n| 1 Mar | Rent of May Flat 12 | 900.00 |  |\n"
        "| 2 Mar | Wages |  | 2,500.00 |\n| 3 Mar | Power | 80.00 |  |"
    ]


def test_names_as_near_as_words_name_their_columns(tmp_path: Path) -> None:
    rows = [["A-1", "Bolt", "4", "1.20"], ["A-2", "Nut", "", "0.40"], ["A-3", "Washer", "9", ""]]
    page = [
        *place([["Item", "Kind", "Count", "Price"]], [72, 100, 300, 338]),
        *place([[""] * 4, *rows], [72, 105, 320, 350]),
    ]
    table = [f"| {' | '.join(row)} |" for row in rows]
    assert lines(read(pdf(page), "pdf", tmp_path)) == [
        "\n".join(["| Item | Kind | Count | Price |", "|" + " --- |" * 4, *table])
    ]


def test_long_texts_that_go_on_are_one_cell(tmp_path: Path) -> None:
    cells = [
        ("Item", 72, 100), ("What it is", 120, 100), ("Count", 360, 100), ("Price", 420, 100),
        ("A-1", 72, 120), ("A bolt of steel with a head", 120, 120), ("4", 360, 120), ("1.20", 420, 120),
        ("of five millimetres", 120, 132),
        ("A-2", 72, 158), ("A nut of brass, which comes", 120, 158), ("0.40", 420, 158),
        ("in bags of a hundred", 120, 170),
        ("A-3", 72, 190), ("A washer that is not sold", 120, 190), ("9", 360, 190),
    ]  # fmt: skip
    assert lines(read(pdf([Words(*cell) for cell in cells]), "pdf", tmp_path)) == [
        "| Item | What it is | Count | Price |\n| --- | --- | --- | --- |\n"
        "| A-1 | A bolt of steel with a head of five millimetres | 4 | 1.20 |\n"
        "| A-2 | A nut of brass, which comes in bags of a hundred |  | 0.40 |\n"
        "| A-3 | A washer that is not sold | 9 |  |"
    ]


def test_lines_of_a_label_alone_are_rows(tmp_path: Path) -> None:
    rows = [
        ["", "Note", "2025", "2024"], ["Fixed assets", "", "", ""], ["Property", "4", "1,200", "1,100"],
        ["Goodwill", "", "17", "300"], ["Current assets", "", "", ""], ["Cash", "7", "(50)", "20"],
    ]  # fmt: skip
    page = place(rows, [72, 260, 330, 420])
    table = [f"| {' | '.join(row)} |" for row in rows]
    assert lines(read(pdf(page), "pdf", tmp_path)) == ["\n".join([table[0], "|" + " --- |" * 4, *table[1:]])]


def test_two_columns_of_prose_stay_two_columns(tmp_path: Path) -> None:
    rows = [
        ["The harbour was built in the year", "Guests pay at the office near the"],
        ["of the great storm and has since", "gate when they arrive, or by card"],
        ["been widened twice, in 1950 and", "at the machine on the eastern"],
        ["in 1987, when the pier was added.", "pier, which is open at all times."],
    ]
    text = "\n".join(lines(read(pdf(place(rows, [72, 320])), "pdf", tmp_path)))
    assert "year of the great storm and has since been widened" in text
    assert "near the gate when they arrive" in text


@pytest.mark.parametrize(
    ("middle", "left"),
    [
        (["In 1950 it was widened by", "12 metres, and in 1987 a", "pier of 80 metres came,", "for 4 million."], 220),
        (["", "5", "", "10"], 275),
    ],
    ids=["sentences with numbers", "numbers of lines"],
)
def test_numbers_in_columns_of_prose_make_no_table(middle: Sequence[str], left: float, tmp_path: Path) -> None:
    first = (
        "The harbour was built in the year\nof the great storm, which all the\ntown remembers, and is open to all\n"
        "of its guests on most days of a year."
    ).splitlines()
    last = (
        "Guests pay at the office near the\ngate when they arrive, or by card\nat the machine on the pier of\n"
        "stone, which is open day and night."
    ).splitlines()
    page = [
        Words(text, place, 120 + 13 * at, 9)
        for place, texts in ((60, first), (left, middle), (350, last))
        for at, text in enumerate(texts)
        if text
    ]
    text = "\n".join(lines(read(pdf(page), "pdf", tmp_path)))
    assert "year of the great storm, which all the town remembers, and is open to all" in text
    assert "|" not in text


def test_questions_in_two_columns_are_read_with_their_answers(tmp_path: Path) -> None:
    left = ["What does a berth cost?", "A berth costs 512 euros a month,", "payable on day 3.", "", "Can I cancel?",
            "Yes, with a notice of 90 days", "to the end of a quarter."]  # fmt: skip
    right = ["When is the office open?", "From 9 to 17 on weekdays and", "10 to 14 on Saturdays.", "",
             "Is power included?", "No, it is 0.35 euros a kWh", "and read monthly."]  # fmt: skip
    page = place(list(zip(left, right, strict=True)), [72, 330])
    output = read(pdf([one._replace(y=one.y + 10 * (one.y > 170)) for one in page]), "pdf", tmp_path)
    assert lines(output) == [" ".join(text) for text in (left[:3], right[:3], left[4:], right[4:])]
    assert complete(output)


def test_terms_in_two_columns_are_read_with_what_they_mean(tmp_path: Path) -> None:
    terms = [("Berth", "A place for a boat."), ("Cleat", "A fitting for ropes."), ("Draft", "Depth below water.")]
    others = [("Halyard", "A rope to hoist."), ("Keel", "The spine of the hull."), ("Leech", "The rear edge of it.")]
    page = [
        Words(text, column, 100 + 40 * at + 14 * row, 9 if row else 11)
        for column, listed in ((72, terms), (330, others))
        for at, pair in enumerate(listed)
        for row, text in enumerate(pair)
    ]
    output = read(pdf(page), "pdf", tmp_path)
    first, *rows = [f"| {' '.join(one)} | {' '.join(other)} |" for one, other in zip(terms, others, strict=True)]
    assert lines(output) == ["\n".join([first, "| --- | --- |", *rows])]
    assert complete(output)


def test_labels_stand_beside_their_texts(tmp_path: Path) -> None:
    rows = [["-c, --check", "checks the syntax only"], ["-o, --output", "names the file that is written"],
            ["", "and keeps the other one"], ["-h", "shows this help and ends"]]  # fmt: skip
    output = read(pdf([Words(BEFORE, y=95), *place(rows, [72, 220], 13)]), "pdf", tmp_path)
    assert lines(output) == [
        BEFORE,
        "| -c, --check | checks the syntax only |\n| --- | --- |\n"
        "| -o, --output | names the file that is written and keeps the other one |\n| -h | shows this help and ends |",
    ]
    assert complete(output)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["9:00", "Doors open and coffee is served"], ["10:15", "Talk about berths in the north"],
          ["", "by Anna Schmidt of Kiel"], ["11:00", "Break with cakes and coffee"]],
         ["9:00 | Doors open and coffee is served", "10:15 | Talk about berths in the north by Anna Schmidt of Kiel",
          "11:00 | Break with cakes and coffee"]),
        ([["2015 - 2019", "Harbour master in Kiel, with"], ["", "forty berths and six people"],
          ["2012", "Degree in nautics at the"], ["", "school of Bremen"]],
         ["2015 - 2019 | Harbour master in Kiel, with forty berths and six people",
          "2012 | Degree in nautics at the school of Bremen"]),
        ([["§ 1", "The harbour is open to guests."], ["§ 2", "A berth may be rented for a month"],
          ["", "or for a year."]],
         ["§ 1 | The harbour is open to guests.", "§ 2 | A berth may be rented for a month or for a year."]),
        ([["--check", "checks the syntax only"], ["-h", "shows this help, and ends with"], ["", "the code of it"]],
         ["--check | checks the syntax only", "-h | shows this help, and ends with the code of it"]),
    ],
    ids=["times", "years", "paragraphs", "options"],
)  # fmt: skip
def test_dates_stand_beside_what_happens(rows: Sequence[Sequence[str]], expected: list[str], tmp_path: Path) -> None:
    output = read(pdf([Words(BEFORE, y=90), *place(rows, [72, 180], 13)]), "pdf", tmp_path)
    first, *others = [f"| {row} |" for row in expected]
    assert lines(output) == [BEFORE, "\n".join([first, "| --- | --- |", *others])]
    assert complete(output)


def test_the_numbers_of_lines_make_no_rows(tmp_path: Path) -> None:
    texts = [
        "The harbour has forty berths for",
        "boats of up to twelve metres, and",
        "each of them has power and water.",
    ]
    output = read(pdf(place([[str(at), text] for at, text in enumerate(texts, 1)], [72, 110], 13)), "pdf", tmp_path)
    assert "|" not in "".join(lines(output))


def test_cells_of_several_lines_stay_whole(tmp_path: Path) -> None:
    cells = [
        ("Item", 72, 120), ("Qty", 220, 120), ("Price", 320, 120),
        ("Bolt of steel", 72, 146), ("4", 220, 146), ("1.20", 320, 146), ("with zinc", 72, 158),
        ("Nut of brass", 72, 184), ("7", 220, 184), ("0.40", 320, 184), ("in bags", 72, 196),
    ]  # fmt: skip
    before = read(pdf([Words(*cell) for cell in cells]), "pdf", tmp_path)
    assert any("Bolt of steel with zinc" in line for line in lines(before))


def test_a_page_of_many_short_texts_is_read_at_once(tmp_path: Path) -> None:
    words = [Words(f"a{at}", 20 + 24 * (at % 24), 20 + 0.5 * (at // 24), 4) for at in range(24 * 600)]
    start = time.process_time()
    read(pdf(words), "pdf", tmp_path)
    assert time.process_time() - start < 15

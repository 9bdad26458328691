"""Statements with a column that no table has: corrected where one reading fits, explained elsewhere."""

import duckdb
import pytest

from mcp_tools.tables.text_files import InputError
from mcp_tools.tables.worker import run_query


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE orders (id INT, customer_id INT, region VARCHAR, status VARCHAR, amount INT)")
    connection.execute(
        "INSERT INTO orders VALUES (1, 7, 'north', 'paid', 10), (2, 7, 'west', 'open', 20),"
        " (3, 8, 'north', 'open', 40), (4, 8, 'west', 'paid', 80)"
    )
    connection.execute("CREATE TABLE customers (customer_id INT, name VARCHAR, segment VARCHAR)")
    connection.execute("INSERT INTO customers VALUES (7, 'Ada', 'trade'), (8, 'Bo', 'public')")
    connection.execute("CREATE TABLE notes (note VARCHAR, state VARCHAR, status_text VARCHAR)")
    connection.execute("INSERT INTO notes VALUES ('trade', 'late', 'x'), ('late', 'paid in part', 'y')")
    connection.execute("CREATE TABLE people (id INT, town VARCHAR)")
    connection.execute("CREATE TABLE spending (spent DATE, shop VARCHAR, amount INT)")
    connection.execute(
        "INSERT INTO spending VALUES ('2026-09-30', 'ICA', 1), ('2026-10-05', 'Lidl', 2), ('2025-10-20', 'ICA', 4)"
    )
    connection.execute("CREATE TABLE stays (arrival DATE, departure DATE)")
    connection.execute("CREATE TABLE fees (paid_on DATE, monthly_fee INT)")
    connection.execute("CREATE TABLE shifts (date DATE, shift VARCHAR)")
    connection.execute("INSERT INTO shifts VALUES ('2026-10-05', 'day'), ('2026-10-06', 'night')")
    connection.execute("CREATE TABLE visits (came TIMESTAMP)")
    connection.execute("INSERT INTO visits VALUES ('2026-10-05 14:30')")
    connection.execute("CREATE TABLE sales (price INT, code VARCHAR)")
    connection.execute("CREATE TABLE periods (code VARCHAR, year INT)")
    connection.execute("INSERT INTO sales VALUES (5, 'a')")
    connection.execute("INSERT INTO periods VALUES ('a', 2026)")
    return connection


@pytest.mark.parametrize(
    ("sql", "rows", "correction"),
    [
        ("SELECT count(*) FROM orders WHERE paid", [[2]], "paid was read as \"status\" = 'paid'"),
        ("SELECT count(*) FROM orders WHERE PAID AND north", [[1]], "PAID was read as \"status\" = 'paid'"),
        (
            "SELECT sum(amount) FROM orders WHERE status = 'open' and (region = west)",
            [[20]],
            "west was read as the text",
        ),
        ("SELECT sum(amount) FROM orders WHERE region IN (north, west)", [[150]], "north was read as the text 'north'"),
        ("SELECT count(DISTINCT customer) FROM orders", [[2]], "customer was read as the column customer_id"),
        ('SELECT count(DISTINCT "customer") FROM orders', [[2]], "customer was read as the column customer_id"),
        ("SELECT sum(amount) FROM orders WHERE segment = 'public'", [[120]], "customers was joined by customer_id"),
        (
            "SELECT segment, sum(amount) AS a FROM orders WHERE paid GROUP BY segment ORDER BY a DESC LIMIT 1",
            [["public", 80]],
            "customers was joined by customer_id",
        ),
        ("SELECT 'paid' FROM orders WHERE paid AND id = 1", [["paid"]], "paid was read as"),
    ],
)
def test_a_column_that_can_mean_one_thing_is_read_as_that(
    tables: duckdb.DuckDBPyConnection, sql: str, rows: list[list[object]], correction: str
) -> None:
    result = run_query(tables, sql, 10, ["orders", "customers"])
    assert result["rows"] == rows
    assert any(note.startswith(correction) for note in result["corrections"]), result["corrections"]


@pytest.mark.parametrize(
    ("sql", "rows", "correction"),
    [
        ("SELECT sum(amount) FROM spending WHERE month = 10", [[6]], 'month was read as month("spent")'),
        ("SELECT sum(amount) FROM spending WHERE MONTH = 10 AND year = 2026", [[2]], "month was read as"),
        ("SELECT sum(amount) FROM spending WHERE month = 'October'", [[6]], 'month was read as monthname("spent")'),
        ("SELECT sum(amount) FROM spending WHERE month IN ('September')", [[1]], "month was read as monthname"),
        (
            "SELECT year, sum(amount) FROM spending GROUP BY year ORDER BY year",
            [[2025, 4], [2026, 3]],
            "year was read as",
        ),
        ("SELECT count(*) FROM spending WHERE day = 'Monday'", [[2]], 'day was read as dayname("spent")'),
        ("SELECT count(*) FROM spending WHERE weekday IN ('Monday', 'Friday')", [[2]], "weekday was read as dayname"),
        ("SELECT count(*) FROM spending WHERE day BETWEEN 5 AND 20", [[2]], 'day was read as day("spent")'),
        (
            "SELECT month, sum(amount) FROM spending WHERE month = 'October' GROUP BY month",
            [["October", 6]],
            'month was read as monthname("spent")',
        ),
        ("SELECT sum(amount) FROM spending WHERE month NOT LIKE 'Oct%'", [[1]], "month was read as monthname"),
        ("SELECT count(*) FROM visits WHERE hour = 14", [[1]], 'hour was read as hour("came")'),
        ("SELECT count(*) FROM shifts WHERE day", [[1]], "day was read as \"shift\" = 'day'"),
        ("SELECT price FROM sales WHERE year = 2026", [[5]], "periods was joined by code"),
    ],
)
def test_a_part_of_the_only_date_is_taken_from_it(
    tables: duckdb.DuckDBPyConnection, sql: str, rows: list[list[object]], correction: str
) -> None:
    result = run_query(tables, sql, 10, ["orders", "spending", "visits", "shifts", "sales", "periods"])
    assert result["rows"] == rows
    assert any(note.startswith(correction) for note in result["corrections"]), result["corrections"]


@pytest.mark.parametrize(
    ("sql", "given"),
    [
        ("SELECT count(*) FROM stays WHERE month = 10", ["stays"]),
        ("SELECT count(*) FROM orders WHERE month = 10", ["orders", "spending"]),
        ("SELECT count(*) FROM spending WHERE month = 'Oct'", ["spending"]),
        ("SELECT count(*) FROM spending WHERE month IN ('October', 'Okt')", ["spending"]),
        ("SELECT count(*) FROM spending WHERE month = 'October' OR month = 11", ["spending"]),
        ("SELECT count(*) FROM spending WHERE month >= 'March'", ["spending"]),
        ("SELECT count(*) FROM spending WHERE month = '2026-10'", ["spending"]),
        ("SELECT day, sum(amount) FROM spending GROUP BY day", ["spending"]),
        ("SELECT count(*) FROM spending WHERE weekday > 5", ["spending"]),
        ("SELECT count(*) FROM spending WHERE hour = 14", ["spending"]),
        ("SELECT count(*) FROM fees WHERE month = 10", ["fees"]),
        ("SELECT count(*) FROM orders WHERE refunded", ["orders"]),
        ("SELECT stat FROM notes", ["notes"]),
        ("SELECT count(*) FROM notes WHERE late", ["notes"]),
        ("SELECT paid FROM orders", ["orders"]),
        ("SELECT segment FROM orders, notes", ["orders", "customers", "notes"]),
        ("SELECT segment FROM notes", ["orders", "customers", "notes"]),
        ("SELECT na FROM customers", ["customers"]),
        ("SELECT town FROM orders", ["orders", "people"]),
    ],
    ids=[
        "two dates",
        "no date",
        "no name of a month",
        "one name of two",
        "a name and a number",
        "the order of names",
        "a month of a year",
        "the date itself",
        "the first day of a week",
        "no time of day",
        "a date and a near column",
        "nothing",
        "two columns",
        "two values",
        "a value as a column",
        "two tables",
        "no shared column",
        "too short",
        "row numbers",
    ],
)
def test_a_column_that_can_mean_nothing_or_more_is_an_error(
    tables: duckdb.DuckDBPyConnection, sql: str, given: list[str]
) -> None:
    with pytest.raises(InputError, match="not found"):
        run_query(tables, sql, 10, given)


def test_a_right_statement_is_not_touched(tables: duckdb.DuckDBPyConnection) -> None:
    assert run_query(tables, "SELECT count(*) FROM orders", 10, ["orders"])["corrections"] == []

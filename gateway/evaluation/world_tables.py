"""The tables of the evaluation's world, made from a seed: the same rows on every machine."""

import csv
import io
from collections.abc import Iterator
from functools import cache
from random import Random

SEED = 20_260_101
ORDER_ROWS = 100_000
CUSTOMER_ROWS = 5_000
READING_ROWS = 20_000
STAFF_ROWS = 120
REGIONS = ("north", "south", "east", "west")
PRODUCTS = ("anchor", "boiler", "cable", "drill", "engine", "filter", "gasket", "hinge")
STATUSES = ("paid", "open", "cancelled")
TEAMS = ("sales", "support", "research", "logistics")
SEGMENTS = ("retail", "trade", "public")
SENSORS = 8

Row = tuple[str | int, ...]


@cache
def render_table(name: str) -> str:
    """Returns the table as CSV with a header. Raises `KeyError` for an unknown name."""
    header, rows = {
        "orders": (
            ("order_id", "day", "region", "customer_id", "product", "quantity", "unit_price", "status"),
            _orders,
        ),
        "customers": (("customer_id", "name", "segment", "since"), _customers),
        "readings": (("sensor", "minute", "pressure"), _readings),
        "staff": (("name", "team", "salary", "started"), _staff),
    }[name]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows(_Draw(name)))
    return text.getvalue()


class _Draw:
    """Numbers from a seed. Uses only `Random.random`, whose sequence Python guarantees across its releases."""

    def __init__(self, table: str) -> None:
        self._random = Random(f"{SEED}:{table}")  # noqa: S311 - test data

    def integer(self, low: int, high: int) -> int:
        """Returns an integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def choice(self, values: tuple[str, ...]) -> str:
        """Returns one of the values."""
        return values[self.integer(0, len(values) - 1)]

    def day(self, year: int) -> str:
        """Returns a date of that year; never later than the 28th of a month."""
        return f"{year}-{self.integer(1, 12):02}-{self.integer(1, 28):02}"


def _orders(draw: _Draw) -> Iterator[Row]:
    for number in range(1, ORDER_ROWS + 1):
        yield (
            number, draw.day(2025), draw.choice(REGIONS), draw.integer(1, CUSTOMER_ROWS), draw.choice(PRODUCTS),
            draw.integer(1, 20), draw.integer(5, 500), draw.choice(STATUSES),
        )  # fmt: skip


def _customers(draw: _Draw) -> Iterator[Row]:
    for number in range(1, CUSTOMER_ROWS + 1):
        yield number, f"Customer {number:04}", draw.choice(SEGMENTS), draw.integer(2005, 2025)


def _readings(draw: _Draw) -> Iterator[Row]:
    for minute in range(READING_ROWS // SENSORS):
        for sensor in range(1, SENSORS + 1):
            yield f"sensor-{sensor}", minute, draw.integer(120, 280)


def _staff(draw: _Draw) -> Iterator[Row]:
    for number in range(1, STAFF_ROWS + 1):
        yield f"Employee {number:03}", draw.choice(TEAMS), draw.integer(2_400, 9_800), draw.integer(1998, 2025)

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
    """The table as CSV with a header. Raises `KeyError` for an unknown name."""
    header, rows = {
        "orders": (
            ("order_id", "day", "region", "customer_id", "product", "quantity", "unit_price", "status"),
            _iter_orders,
        ),
        "customers": (("customer_id", "name", "segment", "since"), _iter_customers),
        "readings": (("sensor", "minute", "pressure"), _iter_readings),
        "staff": (("name", "team", "salary", "started"), _iter_staff),
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

    def pick_integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: tuple[str, ...]) -> str:
        """One of the values."""
        return values[self.pick_integer(0, len(values) - 1)]

    def pick_day(self, year: int) -> str:
        """A date of that year; never later than the 28th of a month."""
        return f"{year}-{self.pick_integer(1, 12):02}-{self.pick_integer(1, 28):02}"


def _iter_orders(draw: _Draw) -> Iterator[Row]:
    for number in range(1, ORDER_ROWS + 1):
        yield (
            number, draw.pick_day(2025), draw.pick(REGIONS), draw.pick_integer(1, CUSTOMER_ROWS), draw.pick(PRODUCTS),
            draw.pick_integer(1, 20), draw.pick_integer(5, 500), draw.pick(STATUSES),
        )  # fmt: skip


def _iter_customers(draw: _Draw) -> Iterator[Row]:
    for number in range(1, CUSTOMER_ROWS + 1):
        yield number, f"Customer {number:04}", draw.pick(SEGMENTS), draw.pick_integer(2005, 2025)


def _iter_readings(draw: _Draw) -> Iterator[Row]:
    for minute in range(READING_ROWS // SENSORS):
        for sensor in range(1, SENSORS + 1):
            yield f"sensor-{sensor}", minute, draw.pick_integer(120, 280)


def _iter_staff(draw: _Draw) -> Iterator[Row]:
    for number in range(1, STAFF_ROWS + 1):
        yield (
            f"Employee {number:03}",
            draw.pick(TEAMS),
            draw.pick_integer(2_400, 9_800),
            draw.pick_integer(1998, 2025),
        )

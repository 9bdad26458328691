"""The tables of the development set."""

from collections.abc import Iterator, Mapping

from gateway.features.evaluation.world_tables import Draw, Row, Table

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


def _iter_orders(draw: Draw) -> Iterator[Row]:
    for number in range(1, ORDER_ROWS + 1):
        yield (
            number, draw.pick_day(2025), draw.pick(REGIONS), draw.pick_integer(1, CUSTOMER_ROWS), draw.pick(PRODUCTS),
            draw.pick_integer(1, 20), draw.pick_integer(5, 500), draw.pick(STATUSES),
        )  # fmt: skip


def _iter_customers(draw: Draw) -> Iterator[Row]:
    for number in range(1, CUSTOMER_ROWS + 1):
        yield number, f"Customer {number:04}", draw.pick(SEGMENTS), draw.pick_integer(2005, 2025)


def _iter_readings(draw: Draw) -> Iterator[Row]:
    for minute in range(READING_ROWS // SENSORS):
        for sensor in range(1, SENSORS + 1):
            yield f"sensor-{sensor}", minute, draw.pick_integer(120, 280)


def _iter_staff(draw: Draw) -> Iterator[Row]:
    for number in range(1, STAFF_ROWS + 1):
        yield (
            f"Employee {number:03}",
            draw.pick(TEAMS),
            draw.pick_integer(2_400, 9_800),
            draw.pick_integer(1998, 2025),
        )


TABLES: Mapping[str, Table] = {
    "orders": Table(
        ("order_id", "day", "region", "customer_id", "product", "quantity", "unit_price", "status"), _iter_orders
    ),
    "customers": Table(("customer_id", "name", "segment", "since"), _iter_customers),
    "readings": Table(("sensor", "minute", "pressure"), _iter_readings),
    "staff": Table(("name", "team", "salary", "started"), _iter_staff),
}

"""The tables of the practice set: what a household spent."""

from collections.abc import Iterator, Mapping

from gateway.features.evaluation.world_tables import Draw, Row, Table

SPENDING_ROWS = 12_000
PURSES = ("joint", "card", "cash")
KINDS = ("groceries", "rent", "energy", "travel", "clothes", "gifts")
SHOPS = ("Frischmarkt", "Bahnhofskiosk", "Grünwald", "Lenz", "Hofladen")


def _iter_spending(draw: Draw) -> Iterator[Row]:
    for number in range(1, SPENDING_ROWS + 1):
        yield (
            number, draw.pick_day(2026), draw.pick(PURSES), draw.pick(KINDS), draw.pick(SHOPS),
            draw.pick_integer(90, 19_900),
        )  # fmt: skip


TABLES: Mapping[str, Table] = {
    "spending": Table(("entry_no", "booked_on", "purse", "kind", "paid_to", "amount_cents"), _iter_spending),
}

"""The tables of the practice set: what the warehouse, the hotel, the bank and the others of its worlds have as CSV."""

from collections.abc import Iterator, Mapping

from gateway.features.evaluation.world_tables import Draw, Row, Table

MOVE_ROWS = 8_000
NIGHT_ROWS = 2_500
SKUS = ("SKU-1042", "SKU-1077", "SKU-1090", "SKU-1091", "SKU-1105")
DIRECTIONS = ("in", "out", "out", "out")
ROOMS = ("101", "102", "203", "204", "205", "301", "402")
CHANNELS = ("website", "phone", "portal", "portal")
SPENDING_ROWS = 12_000
PURSES = ("joint", "card", "cash")
KINDS = ("groceries", "rent", "energy", "travel", "clothes", "gifts")
SHOPS = ("Frischmarkt", "Bahnhofskiosk", "Grünwald", "Lenz", "Hofladen")
REPAIR_ROWS = 4_000
MECHANICS = ("Selma", "Ole", "Ivo")
REPAIRS = ("service", "brakes", "gears", "wheel", "tyre", "lights")

READING_ROWS = 5_000
FLATS = ("1A", "1B", "2A", "2B", "3A", "3B", "4A", "4B")

SESSION_ROWS = 3_000
SPORTS = ("volleyball", "judo", "badminton", "swimming")
ROUND_ROWS = 4_500
COURIERS = ("Renate", "Emil", "Farida", "Joost")
TICKET_ROWS = 6_000
PLAYS = ("The Seagull", "Puss in Boots", "Blithe Spirit")
PRICE_CLASSES = ("full", "reduced", "child")
HIRE_ROWS = 7_000
CAR_KINDS = ("small", "estate", "van", "electric")
STATIONS = ("harbour", "old_mill", "station_square")
DISTRICTS = ("harbour", "old town", "north", "riverside")


def _iter_moves(draw: Draw) -> Iterator[Row]:
    for number in range(1, MOVE_ROWS + 1):
        yield number, draw.pick_day(2026), draw.pick(SKUS), draw.pick(DIRECTIONS), draw.pick_integer(1, 40)


def _iter_nights(draw: Draw) -> Iterator[Row]:
    for _ in range(NIGHT_ROWS):
        yield draw.pick_day(2026), draw.pick(ROOMS), draw.pick(CHANNELS), draw.pick_integer(70, 260)


def _iter_spending(draw: Draw) -> Iterator[Row]:
    for number in range(1, SPENDING_ROWS + 1):
        yield (
            number, draw.pick_day(2026), draw.pick(PURSES), draw.pick(KINDS), draw.pick(SHOPS),
            draw.pick_integer(90, 19_900),
        )  # fmt: skip


def _iter_repairs(draw: Draw) -> Iterator[Row]:
    for number in range(1, REPAIR_ROWS + 1):
        yield (
            number, draw.pick_day(2026), draw.pick(MECHANICS), draw.pick(REPAIRS), draw.pick_integer(2, 36) * 5,
            draw.pick_integer(12, 240),
        )  # fmt: skip


def _iter_electricity(draw: Draw) -> Iterator[Row]:
    for _ in range(READING_ROWS):
        yield draw.pick_day(2026), draw.pick(FLATS), draw.pick_integer(3, 19)


def _iter_sessions(draw: Draw) -> Iterator[Row]:
    for _ in range(SESSION_ROWS):
        yield draw.pick_day(2026), draw.pick(SPORTS), draw.pick_integer(4, 26), draw.pick_integer(45, 120)


def _iter_rounds(draw: Draw) -> Iterator[Row]:
    for _ in range(ROUND_ROWS):
        yield (
            draw.pick_day(2026), draw.pick(COURIERS), draw.pick(DISTRICTS), draw.pick_integer(18, 95),
            draw.pick_integer(0, 9),
        )  # fmt: skip


def _iter_ticket_sales(draw: Draw) -> Iterator[Row]:
    for number in range(1, TICKET_ROWS + 1):
        yield number, draw.pick_day(2026), draw.pick(PLAYS), draw.pick(PRICE_CLASSES), draw.pick_integer(1, 6)


def _iter_hires(draw: Draw) -> Iterator[Row]:
    for _ in range(HIRE_ROWS):
        yield (
            draw.pick_day(2026), draw.pick(CAR_KINDS), draw.pick(STATIONS), draw.pick_integer(2, 340),
            draw.pick_integer(1, 48),
        )  # fmt: skip


TABLES: Mapping[str, Table] = {
    "stock_moves": Table(("move_no", "moved_on", "sku", "direction", "units"), _iter_moves),
    "room_nights": Table(("night", "room_number", "channel", "price_eur"), _iter_nights),
    "spending": Table(("entry_no", "booked_on", "purse", "kind", "paid_to", "amount_cents"), _iter_spending),
    "repairs": Table(
        ("repair_no", "finished_on", "mechanic", "work_done", "minutes_worked", "charged_eur"), _iter_repairs
    ),
    "elmatning": Table(("avlast_den", "lagenhet", "kwh"), _iter_electricity),
    "sessions": Table(("held_on", "team_sport", "headcount", "session_minutes"), _iter_sessions),
    "rounds": Table(("round_date", "courier", "district", "drops", "misses"), _iter_rounds),
    "ticket_sales": Table(("sale_no", "sold_on", "play", "price_class", "seats_sold"), _iter_ticket_sales),
    "hires": Table(("hired_on", "car_kind", "from_station", "km_driven", "hours_out"), _iter_hires),
}

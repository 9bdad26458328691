"""The tables of the held-out set: the trips of a bus company, loans of libraries (in German), visits of a clinic."""

from collections.abc import Iterator, Mapping

from gateway.features.evaluation.world_tables import Draw, Row, Table

TRIP_ROWS = 60_000
VEHICLE_ROWS = 180
LOAN_ROWS = 40_000
VISIT_ROWS = 9_000
ROUTES = ("4", "7", "11", "12", "N1", "N2")
DEPOTS = ("Quayside", "Moorgate", "Hillfoot")
OUTCOMES = ("ran", "ran", "ran", "ran", "curtailed", "cancelled")
DRIVES = ("diesel", "battery", "hydrogen")
BRANCHES = ("Altstadt", "Hafen", "Nordring", "Bücherbus")
GENRES = ("Krimi", "Sachbuch", "Kinderbuch", "Lyrik", "Comic")
PRACTITIONERS = ("Dr Okoye", "Dr Lund", "Ito")
INSURERS = ("Vita", "Nordhalsa", "Mutuelle", "none")


def _iter_trips(draw: Draw) -> Iterator[Row]:
    for number in range(1, TRIP_ROWS + 1):
        outcome = draw.pick(OUTCOMES)
        yield (
            number, draw.pick_day(2025), draw.pick(ROUTES), draw.pick(DEPOTS), draw.pick_integer(1, VEHICLE_ROWS),
            0 if outcome == "cancelled" else draw.pick_integer(0, 74), draw.pick_integer(0, 900), outcome,
        )  # fmt: skip


def _iter_vehicles(draw: Draw) -> Iterator[Row]:
    for number in range(1, VEHICLE_ROWS + 1):
        yield number, draw.pick(DRIVES), draw.pick_integer(19, 92), draw.pick_integer(2009, 2025)


def _iter_loans(draw: Draw) -> Iterator[Row]:
    for number in range(1, LOAN_ROWS + 1):
        yield (
            number, draw.pick(BRANCHES), draw.pick(GENRES), draw.pick_integer(1, 56), draw.pick_integer(0, 12) * 50,
            draw.pick(("ja", "nein")),
        )  # fmt: skip


def _iter_visits(draw: Draw) -> Iterator[Row]:
    for number in range(1, VISIT_ROWS + 1):
        yield (
            f"V{number:05}", draw.pick(PRACTITIONERS), draw.pick_day(2026), draw.pick_integer(5, 55),
            draw.pick(INSURERS), draw.pick(("false", "false", "false", "false", "false", "false", "true")),
        )  # fmt: skip


TABLES: Mapping[str, Table] = {
    "trips": Table(
        ("trip_no", "service_date", "route", "depot", "vehicle_no", "boarded", "delay_seconds", "outcome"), _iter_trips
    ),
    "vehicles": Table(("vehicle_no", "drive", "seats", "commissioned"), _iter_vehicles),
    "ausleihen": Table(("ausleihe_nr", "zweigstelle", "rubrik", "tage", "gebuehr_cent", "erinnert"), _iter_loans),
    "visits": Table(("visit", "practitioner", "visit_date", "minutes", "insurer", "no_show"), _iter_visits),
}

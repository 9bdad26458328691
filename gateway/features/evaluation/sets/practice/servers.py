"""The MCP servers of the practice set, one module each."""

from collections.abc import Mapping

from gateway.features.evaluation.sets.practice.bank import build_bank
from gateway.features.evaluation.sets.practice.bikes import build_bikes
from gateway.features.evaluation.sets.practice.cars import build_cars
from gateway.features.evaluation.sets.practice.club import build_club
from gateway.features.evaluation.sets.practice.code import build_code
from gateway.features.evaluation.sets.practice.hotel import build_hotel
from gateway.features.evaluation.sets.practice.house import build_house
from gateway.features.evaluation.sets.practice.kitchen import build_kitchen
from gateway.features.evaluation.sets.practice.leave import build_leave
from gateway.features.evaluation.sets.practice.mailbox import build_mailbox
from gateway.features.evaluation.sets.practice.music import build_music
from gateway.features.evaluation.sets.practice.parcel import build_parcel
from gateway.features.evaluation.sets.practice.smart_home import build_home
from gateway.features.evaluation.sets.practice.theatre import build_theatre
from gateway.features.evaluation.sets.practice.warehouse import build_warehouse
from gateway.features.evaluation.state_file import BuildServer

SERVERS: Mapping[str, BuildServer] = {
    "hotel": build_hotel,
    "leave": build_leave,
    "warehouse": build_warehouse,
    "home": build_home,
    "bank": build_bank,
    "mailbox": build_mailbox,
    "code": build_code,
    "kitchen": build_kitchen,
    "music": build_music,
    "bikes": build_bikes,
    "house": build_house,
    "club": build_club,
    "parcel": build_parcel,
    "theatre": build_theatre,
    "cars": build_cars,
}
"""The servers by name. A tool of `hotel` is called `hotel__search_guests` in the gateway."""

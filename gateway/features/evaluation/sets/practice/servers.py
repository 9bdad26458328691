"""The MCP servers of the practice set, one module each."""

from collections.abc import Mapping

from gateway.features.evaluation.sets.practice.home import build_home
from gateway.features.evaluation.sets.practice.hotel import build_hotel
from gateway.features.evaluation.sets.practice.leave import build_leave
from gateway.features.evaluation.sets.practice.warehouse import build_warehouse
from gateway.features.evaluation.state_file import BuildServer

SERVERS: Mapping[str, BuildServer] = {
    "hotel": build_hotel,
    "leave": build_leave,
    "warehouse": build_warehouse,
    "home": build_home,
}
"""The servers by name. A tool of `hotel` is called `hotel__search_guests` in the gateway."""

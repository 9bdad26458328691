"""The MCP servers of the held-out set, one module each."""

from collections.abc import Mapping

from gateway.features.evaluation.sets.held_out.buses import build_buses
from gateway.features.evaluation.sets.held_out.clinic import build_clinic
from gateway.features.evaluation.sets.held_out.library import build_library
from gateway.features.evaluation.sets.held_out.nursery import build_nursery
from gateway.features.evaluation.sets.held_out.post import build_post
from gateway.features.evaluation.state_file import BuildServer

SERVERS: Mapping[str, BuildServer] = {
    "library": build_library,
    "clinic": build_clinic,
    "nursery": build_nursery,
    "buses": build_buses,
    "post": build_post,
}
"""The servers by name. A tool of `library` is called `library__renew_loan` in the gateway."""

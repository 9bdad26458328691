"""The server `buses`: the vehicles, drivers and rosters of a bus company. Some of its tools fail."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Depot = Literal["Quayside", "Moorgate"]
VehicleState = Literal["ready", "charging", "workshop", "retired"]
UNAVAILABLE_CALLS = 2
"""Readings of the odometer of HFX-230 that fail before it answers."""


class Assignment(Inputs):
    """A vehicle and the line that it runs on."""

    plate: str = Field(description="such as HFX-214")
    line: str = Field(description="such as 5 or N2")


class Defect(Inputs):
    """What is broken."""

    part: str
    severity: Literal["minor", "major", "stop"]


def build_buses(file: StateFile) -> MCPServer:
    """Builds the server of vehicles and drivers."""
    server = MCPServer("buses")
    _add_vehicles(server, file)
    _add_drivers(server, file)
    _add_meters(server, file)
    return server


def _add_vehicles(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of vehicles and their defects."""

    @server.tool(annotations=READ)
    def list_vehicles(depot: Depot | None = None, state: VehicleState | None = None) -> list[dict[str, Any]]:
        """List vehicles with seats, depot, state and line; of one depot or in one state if given."""
        vehicles = file.load()["vehicles"]
        return [
            {"plate": plate, **vehicle}
            for plate, vehicle in vehicles.items()
            if depot in (None, vehicle["depot"]) and state in (None, vehicle["state"])
        ]

    @server.tool(annotations=READ)
    def get_vehicle(plate: str) -> dict[str, Any]:
        """Return one vehicle by its plate."""
        return {"plate": plate, **find_record(file.load()["vehicles"], plate, "vehicle")}

    @server.tool(annotations=WRITE)
    def set_vehicle_state(plate: str, state: VehicleState) -> str:
        """Say whether a vehicle is ready, charging, in the workshop or retired."""
        with file.change() as stored:
            find_record(stored["vehicles"], plate, "vehicle")["state"] = state
        return f"{plate} is {state}"

    @server.tool(annotations=WRITE)
    def assign_vehicle(assignment: Assignment) -> str:
        """Put a vehicle that is ready on a line."""
        with file.change() as stored:
            vehicle = find_record(stored["vehicles"], assignment.plate, "vehicle")
            if vehicle["state"] != "ready":
                raise ToolError(f"{assignment.plate} is not ready but {vehicle['state']}")
            vehicle["line"] = assignment.line
        return f"{assignment.plate} runs on line {assignment.line}"

    @server.tool(annotations=EFFECT)
    def report_defects(plate: str, defects: list[Defect]) -> str:
        """Report one or more defects of a vehicle to the workshop."""
        with file.change() as stored:
            find_record(stored["vehicles"], plate, "vehicle")
            stored["defects"].setdefault(plate, []).extend(defect.model_dump() for defect in defects)
        return f"{len(defects)} defects of {plate} are reported"


def _add_drivers(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of drivers and rosters."""

    @server.tool(annotations=READ)
    def list_drivers(depot: Depot | None = None) -> list[dict[str, str]]:
        """List drivers with their ids; of one depot if given."""
        drivers = file.load()["drivers"]
        return [{"driver": key, **driver} for key, driver in drivers.items() if depot in (None, driver["depot"])]

    @server.tool(annotations=READ)
    def get_roster(day: Day) -> dict[str, str]:
        """Return who drives on a day: the driver's id by line."""
        roster: dict[str, str] = file.load()["rosters"].get(day, {})
        return roster

    @server.tool(annotations=WRITE)
    def set_roster(day: Day, line: str, driver: str) -> str:
        """Say who drives a line on a day; `driver` is the id of a driver."""
        with file.change() as stored:
            find_record(stored["drivers"], driver, "driver")
            stored["rosters"].setdefault(day, {})[line] = driver
        return f"{driver} drives line {line} on {day}"


def _add_meters(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of odometers and accounts, some of which fail."""

    @server.tool(annotations=READ)
    def odometer(plate: str) -> int:
        """Return the kilometres of a vehicle, live."""
        kilometres = int(find_record(file.load()["odometers"], plate, "vehicle"))
        if plate == "HFX-230":
            file.fail_first_calls("odometer", UNAVAILABLE_CALLS)
        return kilometres

    @server.tool(annotations=READ)
    def fuel_card(plate: str) -> int:
        """Return how many euros are left for fuel or power. The former service."""
        raise ToolError(f"fuel cards were replaced this year; call energy_account for {plate}")

    @server.tool(annotations=READ)
    def energy_account(plate: str) -> int:
        """Return how many euros a vehicle's account for fuel or power holds."""
        return int(find_record(file.load()["accounts"], plate, "vehicle"))

"""The server `house`: residents, faults, keys and laundry of a housing association. Its names are in Pascal case."""

from datetime import date
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Clock, Day, Inputs

MAX_WEEKLY_BOOKINGS = 2
Area = Literal["heating", "water", "electricity", "lift", "lock", "other"]
LaundryRoom = Literal[1, 2]
Period = Literal["07-11", "11-15", "15-19", "19-22"]
KeyKind = Literal["attic", "bicycle_cellar", "roof", "guest_flat"]


class Fault(Inputs):
    """What does not work, and where."""

    flat: str
    area: Area
    description: str
    urgency: Literal["normal", "urgent"] = "normal"


class Visit(Inputs):
    """When the contractor comes."""

    day: Day
    time: Clock


class LaundryWish(Inputs):
    """Which of the two laundry rooms, and when."""

    room: LaundryRoom
    day: Day
    period: Period


def build_house(file: StateFile) -> MCPServer:
    """Builds the server of the housing association."""
    server = MCPServer("house")
    _add_faults(server, file)
    _add_laundry(server, file)
    _add_keys(server, file)
    return server


def _add_faults(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of residents, faults and contractors."""

    @server.tool(name="FindResidents", annotations=READ)
    def find_residents(name: str = "", flat: str | None = None) -> list[dict[str, str]]:
        """Finds residents by a part of the name, or those of a flat."""
        residents = file.load()["house"]["residents"]
        return [
            {"name": person, "flat": home}
            for person, home in residents.items()
            if name.casefold() in person.casefold() and flat in (None, home)
        ]

    @server.tool(name="ListFaults", annotations=READ)
    def list_faults(
        flat: str | None = None,
        area: Area | None = None,
        status: Literal["reported", "assigned", "fixed"] | None = None,
    ) -> list[dict[str, Any]]:
        """Lists reported faults with the resident's own words."""
        return [
            {"faultId": key, **fault}
            for key, fault in file.load()["house"]["faults"].items()
            if flat in (None, fault["flat"]) and area in (None, fault["area"]) and status in (None, fault["status"])
        ]

    @server.tool(name="ReportFault", annotations=EFFECT)
    def report_fault(fault: Fault) -> dict[str, Any]:
        """Reports a fault in a flat."""
        with file.change() as state:
            _check_flat(state["house"], fault.flat)
            faults = state["house"]["faults"]
            key = f"F-{18 + len(faults)}"
            faults[key] = {**fault.model_dump(), "status": "reported", "contractor": "none"}
        return {"faultId": key, **faults[key]}

    @server.tool(name="ListContractors", annotations=READ)
    def list_contractors(
        trade: Literal["plumber", "electrician", "locksmith", "lift"] | None = None,
    ) -> list[dict[str, Any]]:
        """Lists the firms that work for the association."""
        contractors = file.load()["house"]["contractors"]
        return [{"contractorId": key, **one} for key, one in contractors.items() if trade in (None, one["trade"])]

    @server.tool(name="AssignContractor", annotations=EFFECT)
    def assign_contractor(
        faultId: str,  # noqa: N803 - the tool's inputs are in camel case
        contractorId: str,  # noqa: N803
        visit: Visit | None = None,
    ) -> dict[str, Any]:
        """Sends a firm to a fault. Without a visit the firm makes an appointment itself."""
        with file.change() as state:
            fault = find_record(state["house"]["faults"], faultId, "fault")
            find_record(state["house"]["contractors"], contractorId, "contractor")
            if fault["status"] == "fixed":
                raise ToolError(f"{faultId} is fixed already; nobody was sent")
            fault.update(status="assigned", contractor=contractorId, **({"visit": visit.model_dump()} if visit else {}))
        return {"faultId": faultId, **fault}


def _add_laundry(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the laundry rooms."""

    @server.tool(name="GetLaundryBookings", annotations=READ)
    def get_laundry_bookings(day: Day, room: LaundryRoom | None = None) -> list[dict[str, Any]]:
        """Gets who has booked the laundry on a day. Periods that are missing are free."""
        bookings = file.load()["house"]["laundry"]
        file.fail_first_calls("GetLaundryBookings", 1)
        return [
            {"bookingId": key, **booking}
            for key, booking in bookings.items()
            if booking["day"] == day and room in (None, booking["room"])
        ]

    @server.tool(name="BookLaundry", annotations=EFFECT)
    def book_laundry(flat: str, wish: LaundryWish) -> dict[str, Any]:
        """Books a laundry room for a flat, at most twice a week."""
        with file.change() as state:
            _check_flat(state["house"], flat)
            laundry = state["house"]["laundry"]
            wanted = wish.model_dump()
            week = _read_week(wish.day)
            if any(wanted.items() <= booking.items() for booking in laundry.values()):
                raise ToolError(f"room {wish.room} is taken on {wish.day}, {wish.period}; nothing was booked")
            count = sum(booking["flat"] == flat and _read_week(booking["day"]) == week for booking in laundry.values())
            if count >= MAX_WEEKLY_BOOKINGS:
                raise ToolError(f"flat {flat} has {count} bookings in that week already; nothing was booked")
            key = f"LB-{1 + max(int(number[3:]) for number in laundry)}"
            laundry[key] = {"flat": flat, **wanted}
        return {"bookingId": key, **laundry[key]}

    @server.tool(name="CancelLaundry", annotations=DELETE)
    def cancel_laundry(bookingId: str) -> str:  # noqa: N803
        """Cancels a booking of the laundry."""
        with file.change() as state:
            find_record(state["house"]["laundry"], bookingId, "booking")
            del state["house"]["laundry"][bookingId]
        return f"{bookingId} is cancelled"


def _add_keys(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the keys."""

    @server.tool(name="ListKeys", annotations=READ)
    def list_keys(kind: KeyKind | None = None) -> list[dict[str, Any]]:
        """Lists keys and who has them."""
        keys = file.load()["house"]["keys"]
        return [{"keyId": key, **record} for key, record in keys.items() if kind in (None, record["kind"])]

    @server.tool(name="HandOutKey", annotations=WRITE)
    def hand_out_key(keyId: str, flat: str, returnBy: Day) -> dict[str, Any]:  # noqa: N803
        """Hands a key out to a flat. It must be in the office."""
        with file.change() as state:
            _check_flat(state["house"], flat)
            key = find_record(state["house"]["keys"], keyId, "key")
            if key["holder"] != "office":
                raise ToolError(f"{keyId} is not in the office: {key['holder']} has it")
            key.update(holder=flat, returnBy=returnBy)
        return {"keyId": keyId, **key}


def _check_flat(house: State, flat: str) -> None:
    """Raises `ToolError` for a flat that does not exist."""
    flats = sorted(set(house["residents"].values()))
    if flat not in flats:
        raise ToolError(f"there is no flat {flat!r}; the flats are {', '.join(flats)}")


def _read_week(day: str) -> tuple[int, int]:
    """The year and the week of a date."""
    try:
        return date.fromisoformat(day).isocalendar()[:2]
    except ValueError as error:
        raise ToolError(f"the date does not exist: {error}") from error

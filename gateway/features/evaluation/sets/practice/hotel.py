"""The server `hotel`: rooms, guests, bookings and prices."""

from datetime import date
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

RoomType = Literal["single", "double", "family", "suite"]
Board = Literal["room_only", "breakfast", "half_board"]
Status = Literal["confirmed", "checked_in", "checked_out", "cancelled"]


class Stay(Inputs):
    """The nights of a stay."""

    check_in: Day
    check_out: Day


class BookingFilter(Inputs):
    """Which bookings; fields that are left out match all."""

    guest_id: str | None = None
    room_number: str | None = None
    status: Status | None = None
    check_in: Day | None = None


class BookingChanges(Inputs):
    """New values; fields that are left out stay as they are."""

    check_in: Day | None = None
    check_out: Day | None = None
    room_number: str | None = None
    board: Board | None = None
    status: Status | None = None


def build_hotel(file: StateFile) -> MCPServer:
    """Builds the server of the hotel's front desk."""
    server = MCPServer("hotel")
    _add_reading_tools(server, file)
    _add_changing_tools(server, file)
    return server


def _add_reading_tools(server: MCPServer, file: StateFile) -> None:
    def load() -> State:
        hotel: State = file.load()["hotel"]
        return hotel

    @server.tool(annotations=READ)
    def search_guests(name: str) -> list[dict[str, Any]]:
        """Search guests by first or last name. Returns their ids."""
        words = name.casefold().split()
        return [
            {"guest_id": key, "name": guest["name"]}
            for key, guest in load()["guests"].items()
            if all(word in guest["name"].casefold() for word in words)
        ]

    @server.tool(annotations=READ)
    def get_guest(guest_id: str) -> dict[str, Any]:
        """Get a guest's profile: language, loyalty level and notes."""
        return {"guest_id": guest_id, **find_record(load()["guests"], guest_id, "guest")}

    @server.tool(annotations=READ)
    def search_bookings(where: BookingFilter | None = None) -> list[dict[str, Any]]:
        """Search bookings. Without a filter, returns all of them."""
        hotel = load()
        wanted = where.model_dump(exclude_none=True) if where is not None else {}
        return [
            {"booking_id": key, "guest_name": hotel["guests"][booking["guest_id"]]["name"], **booking}
            for key, booking in hotel["bookings"].items()
            if all(booking[field] == value for field, value in wanted.items())
        ]

    @server.tool(annotations=READ)
    def find_available_rooms(stay: Stay, room_type: RoomType | None = None) -> list[dict[str, Any]]:
        """Find rooms that are free for all nights of a stay, with their price per night in EUR."""
        hotel = load()
        _count_nights(stay.check_in, stay.check_out)
        return [
            {"room_number": number, **room}
            for number, room in hotel["rooms"].items()
            if room_type in (None, room["room_type"]) and _find_overlap(hotel, number, stay) is None
        ]

    @server.tool(annotations=READ)
    def quote_stay(room_number: str, stay: Stay, board: Board = "room_only") -> dict[str, Any]:
        """Calculate what a stay in a room costs in EUR, board included. Books nothing."""
        hotel = load()
        room = find_record(hotel["rooms"], room_number, "room")
        nights = _count_nights(stay.check_in, stay.check_out)
        total = nights * (room["price_per_night"] + hotel["board_prices"][board])
        return {"room_number": room_number, "nights": nights, "total_eur": total}


def _add_changing_tools(server: MCPServer, file: StateFile) -> None:
    @server.tool(annotations=EFFECT)
    def create_booking(guest_id: str, room_number: str, stay: Stay, board: Board = "room_only") -> dict[str, Any]:
        """Book a room for a guest. Returns the booking with its id."""
        with file.change() as state:
            hotel = state["hotel"]
            find_record(hotel["guests"], guest_id, "guest")
            find_record(hotel["rooms"], room_number, "room")
            _require_free(hotel, room_number, stay)
            key = f"BK-{7001 + len(hotel['bookings'])}"
            booking = {"guest_id": guest_id, "room_number": room_number, **stay.model_dump(), "board": board}
            hotel["bookings"][key] = {**booking, "status": "confirmed"}
        return {"booking_id": key, **booking}

    @server.tool(annotations=WRITE)
    def update_booking(booking_id: str, changes: BookingChanges) -> dict[str, Any]:
        """Change the dates, the room, the board or the status of a booking. Returns the changed booking."""
        with file.change() as state:
            hotel = state["hotel"]
            booking = find_record(hotel["bookings"], booking_id, "booking")
            booking.update(changes.model_dump(exclude_none=True))
            stay = Stay(check_in=booking["check_in"], check_out=booking["check_out"])
            find_record(hotel["rooms"], booking["room_number"], "room")
            _require_free(hotel, booking["room_number"], stay, booking_id)
        return {"booking_id": booking_id, **booking}

    @server.tool(annotations=DELETE)
    def cancel_booking(booking_id: str) -> dict[str, Any]:
        """Cancel a booking. Cannot be undone."""
        with file.change() as state:
            booking = find_record(state["hotel"]["bookings"], booking_id, "booking")
            if booking["status"] != "confirmed":
                raise ToolError(f"{booking_id} is {booking['status']} and cannot be cancelled")
            booking["status"] = "cancelled"
        return {"booking_id": booking_id, **booking}


def _count_nights(check_in: str, check_out: str) -> int:
    """Raises `ToolError` for a date that does not exist and for a stay without a night."""
    try:
        nights = (date.fromisoformat(check_out) - date.fromisoformat(check_in)).days
    except ValueError as error:
        raise ToolError(f"a date does not exist: {error}") from error
    if nights < 1:
        raise ToolError("check_out must be later than check_in")
    return nights


def _find_overlap(hotel: State, room_number: str, stay: Stay, apart_from: str = "") -> str | None:
    """The booking of the room that shares a night with the stay, if any."""
    for key, booking in hotel["bookings"].items():
        if key == apart_from or booking["room_number"] != room_number or booking["status"] == "cancelled":
            continue
        if booking["check_in"] < stay.check_out and stay.check_in < booking["check_out"]:
            return str(key)
    return None


def _require_free(hotel: State, room_number: str, stay: Stay, apart_from: str = "") -> None:
    """Raises `ToolError` if the room is booked for one of these nights."""
    _count_nights(stay.check_in, stay.check_out)
    if (key := _find_overlap(hotel, room_number, stay, apart_from)) is not None:
        booking = hotel["bookings"][key]
        raise ToolError(f"room {room_number} is taken by {key} from {booking['check_in']} to {booking['check_out']}")

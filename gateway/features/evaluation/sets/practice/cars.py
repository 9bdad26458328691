"""The server `cars`: cars, members and bookings of a car-sharing club. Its tools were named by several people."""

from datetime import datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Moment = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$", description="YYYY-MM-DD HH:MM")]
CarKind = Literal["small", "estate", "van", "electric"]
Station = Literal["harbour", "old_mill", "station_square"]
CarStatus = Literal["available", "cleaning", "workshop"]


class CarSearch(Inputs):
    """What the car must be like."""

    station: Station | None = None
    kind: CarKind | None = None
    child_seat: bool | None = None


class TimeSpan(Inputs):
    """From when until when the car is needed."""

    start: Moment
    end: Moment


class BookingChanges(Inputs):
    """The fields that change; all others stay."""

    car_id: str | None = None
    start: Moment | None = None
    end: Moment | None = None


class Damage(Inputs):
    """A new damage."""

    car_id: str
    part: Literal["body", "glass", "tyre", "lights", "interior", "other"]
    description: str
    drivable: bool = True


def build_cars(file: StateFile) -> MCPServer:
    """Builds the server of the car-sharing club."""
    server = MCPServer("cars")
    _add_fleet(server, file)
    _add_members(server, file)
    _add_bookings(server, file)
    return server


def _add_fleet(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the cars."""

    @server.tool(annotations=READ)
    def search_cars(where: CarSearch | None = None) -> list[dict[str, Any]]:
        """Search cars by station, kind and child seat. Shows model, plate, tank or battery in percent, and status."""
        wanted = (where or CarSearch()).model_dump(exclude_none=True)
        cars = file.load()["cars"]["fleet"]
        return [{"car_id": key, **car} for key, car in cars.items() if wanted.items() <= car.items()]

    @server.tool(name="checkAvailability", annotations=READ)
    def check_availability(car_id: str, span: TimeSpan) -> dict[str, Any]:
        """Check whether a car is free in a span of time; names the bookings that are in the way."""
        cars = file.load()["cars"]
        find_record(cars["fleet"], car_id, "car")
        file.fail_first_calls("checkAvailability", 1)
        conflicts = _list_conflicts(cars, "", {"car_id": car_id, **span.model_dump()})
        return {"car_id": car_id, "free": not conflicts, "bookings": conflicts}

    @server.tool(name="set-car-status", annotations=WRITE)
    def set_car_status(car_id: str, status: CarStatus, reason: str) -> dict[str, Any]:
        """Set the status of a car, with the reason in a few words."""
        with file.change() as state:
            car = find_record(state["cars"]["fleet"], car_id, "car")
            car.update(status=status, reason=reason)
        return {"car_id": car_id, **car}

    @server.tool(name="reportDamage", annotations=EFFECT)
    def report_damage(damage: Damage) -> dict[str, Any]:
        """Report a damage. A car that cannot be driven goes to the workshop."""
        with file.change() as state:
            car = find_record(state["cars"]["fleet"], damage.car_id, "car")
            if not damage.drivable:
                car.update(status="workshop", reason=damage.description)
            damages = state["cars"]["damages"]
            key = f"DMG-{11 + len(damages)}"
            damages[key] = damage.model_dump()
        return {"damage_id": key, **damages[key]}


def _add_members(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the members."""

    @server.tool(annotations=READ)
    def member_lookup(name: str) -> list[dict[str, Any]]:
        """Members by name: id, credit in EUR, and whether the driving licence was checked."""
        drivers = file.load()["cars"]["drivers"]
        return [{"member": key, **one} for key, one in drivers.items() if name.casefold() in one["name"].casefold()]

    @server.tool(name="addCredit", annotations=EFFECT)
    def add_credit(member: str, amount_eur: Annotated[float, Field(gt=0, le=200)]) -> dict[str, Any]:
        """Add credit to a member's account."""
        with file.change() as state:
            driver = find_record(state["cars"]["drivers"], member, "member")
            driver["credit_eur"] = round(driver["credit_eur"] + amount_eur, 2)
        return {"member": member, **driver}


def _add_bookings(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of bookings."""

    @server.tool(name="get-bookings", annotations=READ)
    def get_bookings(
        member: str | None = None, car_id: str | None = None, day: Day | None = None
    ) -> list[dict[str, Any]]:
        """Bookings of a member, of a car or of a day (also those that begin or end on it)."""
        cars = file.load()["cars"]
        return [
            _describe_booking(cars, key)
            for key, booking in cars["bookings"].items()
            if member in (None, booking["member"])
            and car_id in (None, booking["car_id"])
            and (day is None or booking["start"][:10] <= day <= booking["end"][:10])
        ]

    @server.tool(name="createBooking", annotations=EFFECT)
    def create_booking(member: str, car_id: str, span: TimeSpan) -> dict[str, Any]:
        """Book a car for a member whose licence was checked. Fails if the car is taken."""
        with file.change() as state:
            cars = state["cars"]
            driver = find_record(cars["drivers"], member, "member")
            if not driver["licence_checked"]:
                raise ToolError(f"the licence of {driver['name']} was not checked yet; nothing was booked")
            key = f"BKG-{501 + len(cars['bookings'])}"
            cars["bookings"][key] = {"member": member, "car_id": car_id, **span.model_dump()}
            _check_booking(cars, key)
        return _describe_booking(cars, key)

    @server.tool(name="updateBooking", annotations=WRITE)
    def update_booking(booking_id: str, changes: BookingChanges) -> dict[str, Any]:
        """Give a booking another car, begin or end. Fails if the car is taken."""
        with file.change() as state:
            cars = state["cars"]
            booking = find_record(cars["bookings"], booking_id, "booking")
            booking.update(changes.model_dump(exclude_none=True))
            _check_booking(cars, booking_id)
        return _describe_booking(cars, booking_id)

    @server.tool(name="drop-booking", annotations=DELETE)
    def drop_booking(booking_id: str) -> str:
        """Delete a booking."""
        with file.change() as state:
            find_record(state["cars"]["bookings"], booking_id, "booking")
            del state["cars"]["bookings"][booking_id]
        return f"{booking_id} is deleted"


def _describe_booking(cars: State, key: str) -> State:
    """The booking with the names of its member and its car."""
    booking = cars["bookings"][key]
    model, name = cars["fleet"][booking["car_id"]]["model"], cars["drivers"][booking["member"]]["name"]
    return {"booking_id": key, **booking, "name": name, "model": model}


def _check_booking(cars: State, key: str) -> None:
    """Raises `ToolError` if the booking is not possible."""
    booking = cars["bookings"][key]
    car = find_record(cars["fleet"], booking["car_id"], "car")
    if car["status"] == "workshop":
        raise ToolError(f"{booking['car_id']} is in the workshop; nothing was changed")
    try:
        is_in_order = datetime.fromisoformat(booking["start"]) < datetime.fromisoformat(booking["end"])
    except ValueError as error:
        raise ToolError(f"the date or the time does not exist: {error}") from error
    if not is_in_order:
        raise ToolError("the end must be after the start; nothing was changed")
    if conflicts := _list_conflicts(cars, key, booking):
        first = conflicts[0]
        raise ToolError(
            f"{booking['car_id']} is taken by {first['booking_id']} from {first['start']} to {first['end']}; "
            "nothing was changed"
        )


def _list_conflicts(cars: State, key: str, booking: State) -> list[State]:
    """Other bookings of the same car at the same time."""
    return [
        _describe_booking(cars, other)
        for other, one in cars["bookings"].items()
        if other != key
        and one["car_id"] == booking["car_id"]
        and booking["start"] < one["end"]
        and one["start"] < booking["end"]
    ]

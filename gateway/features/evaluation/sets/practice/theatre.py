"""The server `theatre`: performances, ticket orders and duties of a community theatre. Its names are in camel case."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Area = Literal["stalls", "balcony"]
Duty = Literal["bar", "doors", "cloakroom"]
OrderStatus = Literal["reserved", "paid", "cancelled"]
TicketCount = Annotated[int, Field(ge=0)]


class PerformanceFilter(Inputs):
    """Conditions for performances. All are optional."""

    title: str | None = Field(default=None, description="title of the play or a part of it")
    fromDay: Day | None = None  # noqa: N815 - inputs are in camel case
    toDay: Day | None = None  # noqa: N815


class SeatRequest(Inputs):
    """Where to sit, and how many tickets of each price."""

    area: Area
    adults: TicketCount = 0
    reduced: TicketCount = Field(default=0, description="students and pensioners")
    children: TicketCount = Field(default=0, description="up to 14 years")


def build_theatre(file: StateFile) -> MCPServer:
    """Builds the server of the theatre."""
    server = MCPServer("theatre")
    _add_programme(server, file)
    _add_orders(server, file)
    _add_duties(server, file)
    return server


def _add_programme(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the programme."""

    @server.tool(name="listPerformances", annotations=READ)
    def list_performances(filter: PerformanceFilter | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """Lists performances with play, day, time and hall."""
        wanted = filter or PerformanceFilter()
        return [
            {"performanceId": key, **{field: one[field] for field in ("title", "day", "time", "hall")}}
            for key, one in file.load()["theatre"]["performances"].items()
            if (wanted.title or "").casefold() in one["title"].casefold()
            and (wanted.fromDay or "") <= one["day"] <= (wanted.toDay or "9999")
        ]

    @server.tool(name="getSeatsAndPrices", annotations=READ)
    def get_seats_and_prices(performanceId: str) -> dict[str, Any]:  # noqa: N803 - inputs are in camel case
        """Gets the seats that are left in each area, and the prices in EUR."""
        performance = find_record(file.load()["theatre"]["performances"], performanceId, "performance")
        file.fail_first_calls("getSeatsAndPrices", 1)
        return {"performanceId": performanceId, "seatsLeft": performance["seatsLeft"], "prices": performance["prices"]}


def _add_orders(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of ticket orders."""

    @server.tool(name="findOrders", annotations=READ)
    def find_orders(
        customer: str = "",
        performanceId: str | None = None,  # noqa: N803
        status: OrderStatus | None = None,
    ) -> list[dict[str, Any]]:
        """Finds ticket orders by a part of the customer's name, by performance or by status."""
        theatre = file.load()["theatre"]
        return [
            {"orderId": key, "play": theatre["performances"][order["performanceId"]]["title"], **order}
            for key, order in theatre["orders"].items()
            if customer.casefold() in order["customer"].casefold()
            and performanceId in (None, order["performanceId"])
            and status in (None, order["status"])
        ]

    @server.tool(name="reserveTickets", annotations=EFFECT)
    def reserve_tickets(performanceId: str, customer: str, seats: SeatRequest) -> dict[str, Any]:  # noqa: N803
        """Reserves tickets. Fails if the area has too few seats left."""
        with file.change() as state:
            theatre = state["theatre"]
            performance = find_record(theatre["performances"], performanceId, "performance")
            count = seats.adults + seats.reduced + seats.children
            if not count:
                raise ToolError("no tickets: give adults, reduced or children; nothing was reserved")
            _take_seats(performance, seats.area, count)
            prices = performance["prices"]
            total = sum(getattr(seats, price) * prices[price] for price in ("adults", "reduced", "children"))
            key = f"ORD-{881 + len(theatre['orders'])}"
            theatre["orders"][key] = {
                "customer": customer, "performanceId": performanceId, **seats.model_dump(), "total": total,
                "status": "reserved",
            }  # fmt: skip
        return {"orderId": key, **theatre["orders"][key]}

    @server.tool(name="moveOrder", annotations=WRITE)
    def move_order(orderId: str, newPerformanceId: str) -> dict[str, Any]:  # noqa: N803
        """Moves an order to another performance of the same play. Area and tickets stay."""
        with file.change() as state:
            performances = state["theatre"]["performances"]
            order = find_record(state["theatre"]["orders"], orderId, "order")
            target = find_record(performances, newPerformanceId, "performance")
            source = performances[order["performanceId"]]
            if target["title"] != source["title"]:
                raise ToolError(f"{newPerformanceId} is another play, {target['title']}; nothing was changed")
            count = order["adults"] + order["reduced"] + order["children"]
            _take_seats(target, order["area"], count)
            source["seatsLeft"][order["area"]] += count
            order["performanceId"] = newPerformanceId
        return {"orderId": orderId, **order}

    @server.tool(name="markOrderPaid", annotations=WRITE)
    def mark_order_paid(orderId: str, method: Literal["cash", "card", "voucher"]) -> dict[str, Any]:  # noqa: N803
        """Notes that a reserved order was paid at the box office."""
        with file.change() as state:
            order = find_record(state["theatre"]["orders"], orderId, "order")
            if order["status"] != "reserved":
                raise ToolError(f"{orderId} is {order['status']}; nothing was changed")
            order.update(status="paid", method=method)
        return {"orderId": orderId, **order}

    @server.tool(name="cancelOrder", annotations=DELETE)
    def cancel_order(orderId: str) -> dict[str, Any]:  # noqa: N803
        """Cancels an order; its seats are free again."""
        with file.change() as state:
            order = find_record(state["theatre"]["orders"], orderId, "order")
            if order["status"] == "cancelled":
                raise ToolError(f"{orderId} is cancelled already")
            performance = state["theatre"]["performances"][order["performanceId"]]
            performance["seatsLeft"][order["area"]] += order["adults"] + order["reduced"] + order["children"]
            order["status"] = "cancelled"
        return {"orderId": orderId, **order}


def _add_duties(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the volunteers."""

    @server.tool(name="listVolunteers", annotations=READ)
    def list_volunteers(name: str = "") -> list[dict[str, str]]:
        """Lists volunteers by a part of the name."""
        volunteers = file.load()["theatre"]["volunteers"]
        return [
            {"volunteerId": key, "name": person}
            for key, person in volunteers.items()
            if name.casefold() in person.casefold()
        ]

    @server.tool(name="setDuty", annotations=WRITE)
    def set_duty(performanceId: str, duty: Duty, volunteerId: str) -> dict[str, Any]:  # noqa: N803
        """Puts a volunteer on a duty of a performance and returns all its duties."""
        with file.change() as state:
            theatre = state["theatre"]
            performance = find_record(theatre["performances"], performanceId, "performance")
            find_record(theatre["volunteers"], volunteerId, "volunteer")
            others = {other: person for other, person in performance["duties"].items() if other != duty}
            if volunteerId in others.values():
                raise ToolError(f"{volunteerId} has another duty at {performanceId} already; nothing was changed")
            performance["duties"][duty] = volunteerId
        names = {"none": "nobody", **theatre["volunteers"]}
        return {"performanceId": performanceId, **{name: names[key] for name, key in performance["duties"].items()}}


def _take_seats(performance: State, area: Area, count: int) -> None:
    """Raises `ToolError` if the area has too few seats."""
    left = performance["seatsLeft"][area]
    if left < count:
        raise ToolError(f"only {left} seats left in the {area}; nothing was changed")
    performance["seatsLeft"][area] = left - count

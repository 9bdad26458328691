"""The server `parcel`: parcels, tours and returns at the counter of a courier service."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import DELETE, EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

ParcelStatus = Literal["in_depot", "on_tour", "at_counter", "delivered", "collected", "returned"]
Service = Literal["standard", "express"]
Country = Literal["DE", "AT", "DK", "FR", "SE"]
Window = Literal["morning", "afternoon", "evening"]

MAX_KG = 31.5
RETURN_FEE = 4.5
EXPRESS_FEE = 7.5
ABROAD_FEE = 9.0
POSTAGE = {2: 5.9, 5: 7.9, 10: 11.9, MAX_KG: 19.9}
"""EUR up to a weight in kg."""


class ParcelFilter(Inputs):
    """All conditions that are given must hold."""

    recipient: str | None = Field(default=None, description="name or a part of it")
    address: str | None = Field(default=None, description="street or a part of it")
    status: ParcelStatus | None = None


class DeliveryWish(Inputs):
    """When the recipient is at home."""

    deliver_on: Day
    window: Window | None = None


class Collector(Inputs):
    """The person at the counter."""

    name: str
    id_checked: bool = Field(description="whether you have seen an identity card")


class Claim(Inputs):
    """What went wrong with a parcel."""

    parcel_no: str
    kind: Literal["damaged", "lost", "late"]
    description: str
    value_eur: float | None = Field(default=None, gt=0)


def build_parcel(file: StateFile) -> MCPServer:
    """Builds the server of the courier's counter."""
    server = MCPServer("parcel")
    _add_reading(server, file)
    _add_deliveries(server, file)
    _add_counter(server, file)
    return server


def _add_reading(server: MCPServer, file: StateFile) -> None:
    """Adds the tools that only read."""

    @server.tool(annotations=READ)
    def find_parcels(filter: ParcelFilter) -> list[dict[str, Any]]:  # noqa: A002 - the name of the tool's input
        """Find parcels by recipient, address or status. Returns number, recipient, address and status."""
        return [
            {"parcel_no": key, **{field: parcel[field] for field in ("recipient", "address", "status")}}
            for key, parcel in file.load()["parcel"]["parcels"].items()
            if (filter.recipient or "").casefold() in parcel["recipient"].casefold()
            and (filter.address or "").casefold() in parcel["address"].casefold()
            and filter.status in (None, parcel["status"])
        ]

    @server.tool(annotations=READ)
    def get_parcel(parcel_no: str) -> dict[str, Any]:
        """Get all details of one parcel (PX-…): weight in kg, shelf or tour, delivery day, note of the driver."""
        return {"parcel_no": parcel_no, **find_record(file.load()["parcel"]["parcels"], parcel_no, "parcel")}

    @server.tool(annotations=READ)
    def list_tours(vehicle: Literal["van", "cargo_bike"] | None = None) -> list[dict[str, Any]]:
        """List today's tours with driver, district, vehicle and the heaviest parcel it takes (max_kg)."""
        tours = file.load()["parcel"]["tours"]
        return [{"tour_no": key, **tour} for key, tour in tours.items() if vehicle in (None, tour["vehicle"])]

    @server.tool(annotations=READ)
    def calculate_postage(
        weight_kg: Annotated[float, Field(gt=0, le=MAX_KG)], to_country: Country = "DE", service: Service = "standard"
    ) -> dict[str, Any]:
        """Calculate the price in EUR for a new parcel, up to 31.5 kg."""
        price = next(price for limit, price in POSTAGE.items() if weight_kg <= limit)
        price += (EXPRESS_FEE if service == "express" else 0) + (ABROAD_FEE if to_country != "DE" else 0)
        return {"price_eur": round(price, 2), "service": service, "to_country": to_country}


def _add_deliveries(server: MCPServer, file: StateFile) -> None:
    """Adds the tools that change how a parcel is delivered."""

    @server.tool(annotations=WRITE)
    def assign_to_tour(parcel_no: str, tour_no: str) -> dict[str, Any]:
        """Put a parcel on one of today's tours. Fails if it is too heavy for the vehicle."""
        with file.change() as state:
            parcel = _find_waiting(state, parcel_no)
            tour = find_record(state["parcel"]["tours"], tour_no, "tour")
            if parcel["weight_kg"] > tour["max_kg"]:
                raise ToolError(
                    f"{parcel_no} weighs {parcel['weight_kg']} kg: too heavy for the {tour['vehicle']} of {tour_no}, "
                    f"which takes at most {tour['max_kg']} kg; nothing was changed"
                )
            parcel.update(status="on_tour", tour=tour_no)
        return {"parcel_no": parcel_no, "tour_no": tour_no, "driver": tour["driver"], "district": tour["district"]}

    @server.tool(annotations=WRITE)
    def reschedule_delivery(parcel_no: str, wish: DeliveryWish) -> dict[str, Any]:
        """Change the day (and time window) on which a parcel is delivered."""
        with file.change() as state:
            parcel = _find_waiting(state, parcel_no)
            parcel.update(wish.model_dump(exclude_none=True))
        return {"parcel_no": parcel_no, **parcel}


def _add_counter(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of the counter."""

    @server.tool(annotations=WRITE)
    def hand_over_parcel(parcel_no: str, collector: Collector) -> str:
        """Hand a parcel that is at the counter over to a person."""
        with file.change() as state:
            parcel = find_record(state["parcel"]["parcels"], parcel_no, "parcel")
            if parcel["status"] != "at_counter":
                raise ToolError(f"{parcel_no} is {parcel['status']}, not at the counter; nothing was changed")
            if not collector.id_checked:
                raise ToolError("the identity card must be checked first; nothing was changed")
            parcel.update(status="collected", collected_by=collector.name)
        return f"{parcel_no} was handed over to {collector.name}"

    @server.tool(annotations=DELETE)
    def return_to_sender(
        parcel_no: str, reason: Literal["refused", "unknown_address", "not_collected"]
    ) -> dict[str, Any]:
        """Send a parcel back to its sender, who pays a fee."""
        with file.change() as state:
            parcel = _find_waiting(state, parcel_no)
            parcel.update(status="returned", return_reason=reason)
        return {"parcel_no": parcel_no, "status": "returned", "sender": parcel["sender"], "fee_eur": RETURN_FEE}

    @server.tool(annotations=EFFECT)
    def open_claim(claim: Claim) -> dict[str, Any]:
        """Open a claim for a damaged, lost or late parcel."""
        with file.change() as state:
            find_record(state["parcel"]["parcels"], claim.parcel_no, "parcel")
            claims = state["parcel"]["claims"]
            key = f"CL-{71 + len(claims)}"
            claims[key] = claim.model_dump(exclude_none=True)
        return {"claim_no": key, **claims[key]}


def _find_waiting(state: State, parcel_no: str) -> State:
    """The parcel. Raises `ToolError` if the courier has already given it away."""
    parcel: State = find_record(state["parcel"]["parcels"], parcel_no, "parcel")
    if parcel["status"] in ("delivered", "collected", "returned"):
        raise ToolError(f"{parcel_no} is {parcel['status']} already; nothing was changed")
    return parcel

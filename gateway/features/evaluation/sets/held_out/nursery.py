"""The server `nursery`: the stock, beds and deliveries of a garden centre. Its nested inputs are in camel case."""

from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

MAX_DELIVERED = 20
UNAVAILABLE_CALLS = 2
"""Readings of the sensor in bed B3 that fail before it answers."""


class _CamelInputs(Inputs):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class PlantCriteria(_CamelInputs):
    """Which plants; what is left out does not matter."""

    light: Literal["sun", "half-shade", "shade"] | None = None
    label_contains: str | None = None
    max_price_cents: int | None = None
    in_stock_only: bool = False


class StockLine(_CamelInputs):
    """A plant, and how many more or (negative) fewer there are."""

    sku: str
    delta: int


class Price(_CamelInputs):
    """An amount of money."""

    amount_cents: int = Field(ge=0)
    currency: Literal["EUR"] = "EUR"


class Recipient(_CamelInputs):
    """Where a delivery goes."""

    full_name: str
    street: str
    town: str


class DeliveryLine(_CamelInputs):
    """A plant, and how many are delivered."""

    sku: str
    count: int = Field(ge=1)


def build_nursery(file: StateFile) -> MCPServer:
    """Builds the server of plants and beds."""
    server = MCPServer("nursery")
    _add_plants(server, file)
    _add_beds(server, file)
    return server


def _add_plants(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of plants and deliveries."""

    @server.tool(annotations=READ)
    def find_plants(criteria: PlantCriteria) -> list[dict[str, Any]]:
        """Find plants with label, light, count in stock and price in cents."""
        return [{"sku": sku, **plant} for sku, plant in file.load()["plants"].items() if _matches(plant, criteria)]

    @server.tool(annotations=READ)
    def plant_details(sku: str) -> dict[str, Any]:
        """Return one plant by its code, such as LAV-02."""
        return {"sku": sku, **find_record(file.load()["plants"], sku, "plant")}

    @server.tool(annotations=EFFECT)
    def adjust_stock(lines: list[StockLine], reason: Literal["sold", "received", "frost", "count"]) -> str:
        """Change how many plants are in stock, several at once, and say why."""
        with file.change() as state:
            for line in lines:
                plant = find_record(state["plants"], line.sku, "plant")
                if plant["count"] + line.delta < 0:
                    raise ToolError(f"only {plant['count']} of {line.sku} are in stock; nothing was changed")
                plant["count"] += line.delta
        return f"{len(lines)} plants are adjusted ({reason})"

    @server.tool(annotations=WRITE)
    def set_plant_price(sku: str, price: Price) -> str:
        """Set the price of a plant."""
        with file.change() as state:
            find_record(state["plants"], sku, "plant")["priceCents"] = price.amount_cents
        return f"{sku} costs {price.amount_cents / 100:.2f} {price.currency}"

    @server.tool(annotations=EFFECT)
    def create_delivery(recipient: Recipient, lines: list[DeliveryLine], day: Day) -> str:
        """Plan a delivery: at most 20 of a plant, and no more than are in stock. Returns its id."""
        with file.change() as state:
            for line in lines:
                most = min(MAX_DELIVERED, find_record(state["plants"], line.sku, "plant")["count"])
                if line.count > most:
                    raise ToolError(f"at most {most} of {line.sku} can be delivered; nothing was planned")
            key = f"D-{1 + len(state['deliveries'])}"
            state["deliveries"][key] = {
                **recipient.model_dump(by_alias=True), "day": day, "lines": {line.sku: line.count for line in lines},
            }  # fmt: skip
        return key


def _add_beds(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of beds."""

    @server.tool(annotations=READ)
    def bed_sensor(bed: str) -> int:
        """Return the moisture of a bed in percent, as its sensor measures it now."""
        moisture = int(find_record(file.load()["beds"], bed, "bed"))
        if bed == "B4":
            raise ToolError("the sensor of B4 has no battery; the gardeners' reading of today is in bed_notebook")
        if bed == "B3":
            file.fail_first_calls("bed_sensor", UNAVAILABLE_CALLS)
        return moisture

    @server.tool(annotations=READ)
    def bed_notebook(bed: str) -> int:
        """Return the moisture of a bed in percent, as the gardeners wrote it down this morning."""
        return int(find_record(file.load()["beds"], bed, "bed"))


def _matches(plant: dict[str, Any], criteria: PlantCriteria) -> bool:
    return (
        criteria.light in (None, plant["light"])
        and (criteria.label_contains or "").casefold() in plant["label"].casefold()
        and (criteria.max_price_cents is None or plant["priceCents"] <= criteria.max_price_cents)
        and (plant["count"] > 0 or not criteria.in_stock_only)
    )

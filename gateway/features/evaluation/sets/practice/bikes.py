"""The server `bikes`: customers, work orders and parts of a bicycle workshop.

Names and descriptions are as short as those that the owner of a workshop would write for himself.
"""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, WRITE, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Inputs

GermanDay = Annotated[str, Field(pattern=r"^\d{2}\.\d{2}\.\d{4}$", description="DD.MM.YYYY")]
Pieces = Annotated[int, Field(gt=0)]
Work = Literal["service", "brakes", "gears", "wheel", "tyre", "lights"]
OrderState = Literal["waiting", "in_work", "waiting_for_part", "ready", "collected"]


class Job(Inputs):
    """What is brought, and what is done to it."""

    bike: str
    work: list[Work] = Field(min_length=1)
    ready_by: GermanDay | None = None


class PartLine(Inputs):
    """A part and how many of it."""

    part_no: str = Field(description="P-…")
    qty: Pieces


def build_bikes(file: StateFile) -> MCPServer:
    """Builds the server of the workshop."""
    server = MCPServer("bikes")
    _add_orders(server, file)
    _add_parts(server, file)
    return server


def _add_orders(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of customers and work orders."""

    @server.tool(annotations=READ)
    def cust_find(q: str) -> list[dict[str, Any]]:
        """customers by name"""
        customers = file.load()["bikes"]["customers"]
        return [
            {"cust_no": int(key), **one} for key, one in customers.items() if q.casefold() in one["name"].casefold()
        ]

    @server.tool(annotations=READ)
    def wo_list(cust_no: int | None = None, state: OrderState | None = None) -> list[dict[str, Any]]:
        """work orders (wo) with customer, bike, state"""
        bikes = file.load()["bikes"]
        return [
            _describe_order(bikes, key)
            for key, order in bikes["orders"].items()
            if cust_no in (None, order["cust_no"]) and state in (None, order["state"])
        ]

    @server.tool(annotations=READ)
    def wo_get(nr: int) -> dict[str, Any]:
        """one work order: work, parts, price, remark"""
        bikes = file.load()["bikes"]
        return {**_describe_order(bikes, str(nr)), **bikes["orders"][str(nr)]}

    @server.tool(annotations=EFFECT)
    def wo_new(cust_no: int, job: Job) -> dict[str, Any]:
        """new work order"""
        with file.change() as state:
            bikes = state["bikes"]
            find_record(bikes["customers"], str(cust_no), "customer")
            number = 2201 + len(bikes["orders"])
            bikes["orders"][str(number)] = {
                "cust_no": cust_no, **job.model_dump(exclude_none=True), "state": "waiting", "parts": [],
            }  # fmt: skip
        return {"nr": number, **bikes["orders"][str(number)]}

    @server.tool(annotations=WRITE)
    def wo_state(nr: int, state: OrderState) -> str:
        """set state of a wo"""
        with file.change() as data:
            order = find_record(data["bikes"]["orders"], str(nr), "work order")
            if state == "collected" and order["state"] != "ready":
                raise ToolError(f"{nr} is {order['state']}: only a bike that is ready can be collected")
            order["state"] = state
        return f"{nr}: {state}"

    @server.tool(annotations=EFFECT)
    def wo_add_part(nr: int, part: PartLine) -> dict[str, Any]:
        """part from the shelf onto a wo"""
        with file.change() as state:
            order = find_record(state["bikes"]["orders"], str(nr), "work order")
            stock = find_record(state["bikes"]["parts"], part.part_no, "part")
            if stock["stock"] < part.qty:
                raise ToolError(f"only {stock['stock']} of {part.part_no} on the shelf; nothing was added")
            stock["stock"] -= part.qty
            order["parts"].append(part.model_dump())
        return {"nr": nr, "parts": order["parts"], "left_on_shelf": stock["stock"]}


def _add_parts(server: MCPServer, file: StateFile) -> None:
    """Adds the tools of parts."""

    @server.tool(annotations=READ)
    def part_find(q: str = "") -> list[dict[str, Any]]:
        """parts by words or number: stock and price (EUR)"""
        parts = file.load()["bikes"]["parts"]
        file.fail_first_calls("part_find", 1)
        words = q.casefold().split()
        return [
            {"part_no": key, **part}
            for key, part in parts.items()
            if all(word in f"{key} {part['text']}".casefold() for word in words)
        ]

    @server.tool(annotations=EFFECT)
    def part_order(lines: list[PartLine], urgent: bool = False) -> dict[str, Any]:
        """buy parts from the wholesaler"""
        with file.change() as state:
            bikes = state["bikes"]
            for line in lines:
                find_record(bikes["parts"], line.part_no, "part")
            key = f"B-{41 + len(bikes['part_orders'])}"
            bikes["part_orders"][key] = {"lines": [line.model_dump() for line in lines], "urgent": urgent}
        return {"order": key, **bikes["part_orders"][key]}


def _describe_order(bikes: State, number: str) -> State:
    """The order as the list has it."""
    order = find_record(bikes["orders"], number, "work order")
    customer = bikes["customers"][str(order["cust_no"])]["name"]
    return {"nr": int(number), "customer": customer, "bike": order["bike"], "state": order["state"]}

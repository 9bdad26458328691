"""The server `warehouse`: items, bins, transfers between bins, suppliers and purchase orders."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from gateway.features.evaluation.state_file import EFFECT, READ, State, StateFile, find_record
from gateway.features.evaluation.tool_inputs import Day, Inputs

Zone = Literal["bulk", "picking", "returns"]
Quantity = Annotated[int, Field(ge=1, le=5000)]


class ItemFilters(Inputs):
    """Narrows a search; fields that are left out match all."""

    supplier_id: str | None = None
    below_reorder_level: bool = False


class Transfer(Inputs):
    """What to move, and from which bin to which."""

    sku: str
    quantity: Quantity
    from_bin: str
    to_bin: str


class OrderLine(Inputs):
    """An item and how many of it to order."""

    sku: str
    quantity: Quantity


def build_warehouse(file: StateFile) -> MCPServer:
    """Builds the server of the stock."""
    server = MCPServer("warehouse")
    _add_reading_tools(server, file)
    _add_changing_tools(server, file)
    return server


def _add_reading_tools(server: MCPServer, file: StateFile) -> None:
    def load() -> State:
        warehouse: State = file.load()["warehouse"]
        return warehouse

    @server.tool(annotations=READ)
    def search_items(query: str = "", filters: ItemFilters | None = None) -> list[dict[str, Any]]:
        """Search items by words of their description. Returns SKU, total quantity, reorder level and supplier."""
        warehouse = load()
        words = query.casefold().split()
        filters = filters or ItemFilters()
        rows = [
            {"sku": sku, **item, "total": sum(_list_levels(warehouse, sku).values())}
            for sku, item in warehouse["items"].items()
            if all(word in f"{sku} {item['description']}".casefold() for word in words)
        ]
        return [
            row
            for row in rows
            if filters.supplier_id in (None, row["supplier_id"])
            and (not filters.below_reorder_level or row["total"] < row["reorder_level"])
        ]

    @server.tool(annotations=READ)
    def get_stock_levels(sku: str) -> dict[str, Any]:
        """Get the total quantity of an item and its quantity in each bin."""
        warehouse = load()
        item = find_record(warehouse["items"], sku, "item")
        levels = _list_levels(warehouse, sku)
        return {"sku": sku, "description": item["description"], "total": sum(levels.values()), "bins": levels}

    @server.tool(annotations=READ)
    def list_bins(zone: Zone | None = None, only_empty: bool = False) -> list[dict[str, Any]]:
        """List bins with their zone and contents."""
        return [
            {"bin_id": key, **record}
            for key, record in load()["bins"].items()
            if zone in (None, record["zone"]) and not (only_empty and record["contents"])
        ]

    @server.tool(annotations=READ)
    def list_transfers(sku: str | None = None) -> list[dict[str, Any]]:
        """List the transfers of all items or of one, oldest first."""
        return [
            {"transfer_id": key, **transfer}
            for key, transfer in load()["transfers"].items()
            if sku in (None, transfer["sku"])
        ]

    @server.tool(annotations=READ)
    def get_supplier(supplier_id: str) -> dict[str, Any]:
        """Get a supplier: name, city, lead time in days, smallest order and notes."""
        return {"supplier_id": supplier_id, **find_record(load()["suppliers"], supplier_id, "supplier")}


def _add_changing_tools(server: MCPServer, file: StateFile) -> None:
    @server.tool(annotations=EFFECT)
    def create_transfer(transfer: Transfer, priority: Literal["normal", "urgent"] = "normal") -> dict[str, Any]:
        """Move a quantity of an item from one bin to another. Returns the number of the transfer."""
        with file.change() as state:
            warehouse = state["warehouse"]
            find_record(warehouse["bins"], transfer.to_bin, "bin")
            _take(warehouse, transfer.sku, transfer.from_bin, transfer.quantity)
            target = warehouse["bins"][transfer.to_bin]["contents"]
            target[transfer.sku] = target.get(transfer.sku, 0) + transfer.quantity
            key = f"TR-{301 + len(warehouse['transfers'])}"
            warehouse["transfers"][key] = {**transfer.model_dump(), "priority": priority}
        return {"transfer_id": key, **transfer.model_dump()}

    @server.tool(annotations=EFFECT)
    def create_purchase_order(
        supplier_id: str, lines: list[OrderLine], deliver_by: Day | None = None
    ) -> dict[str, Any]:
        """Order items from their supplier. Returns the number of the order."""
        with file.change() as state:
            warehouse = state["warehouse"]
            supplier = find_record(warehouse["suppliers"], supplier_id, "supplier")
            for line in lines:
                item = find_record(warehouse["items"], line.sku, "item")
                if item["supplier_id"] != supplier_id:
                    raise ToolError(f"{supplier['name']} does not sell {line.sku}; nothing was ordered")
            key = f"PO-{901 + len(warehouse['purchase_orders'])}"
            order = {"supplier_id": supplier_id, "lines": [line.model_dump() for line in lines]}
            warehouse["purchase_orders"][key] = {**order, **({"deliver_by": deliver_by} if deliver_by else {})}
        return {"order_id": key, **order}

    @server.tool(annotations=EFFECT)
    def write_off_stock(
        sku: str,
        bin_id: str,
        quantity: Quantity,
        reason: Literal["damaged", "expired", "missing"],
    ) -> dict[str, Any]:
        """Take items that cannot be used any longer off the stock of a bin."""
        with file.change() as state:
            left = _take(state["warehouse"], sku, bin_id, quantity)
            write_off = {"sku": sku, "bin_id": bin_id, "quantity": quantity, "reason": reason}
            state["warehouse"]["write_offs"].append(write_off)
        return {**write_off, "left_in_bin": left}


def _list_levels(warehouse: State, sku: str) -> dict[str, int]:
    """The quantity of an item by bin."""
    return {key: record["contents"][sku] for key, record in warehouse["bins"].items() if sku in record["contents"]}


def _take(warehouse: State, sku: str, bin_id: str, quantity: int) -> int:
    """Takes items out of a bin. Returns how many are left. Raises `ToolError` if there are too few."""
    find_record(warehouse["items"], sku, "item")
    contents = find_record(warehouse["bins"], bin_id, "bin")["contents"]
    if (present := contents.get(sku, 0)) < quantity:
        raise ToolError(f"bin {bin_id} has only {present} of {sku}; nothing was moved")
    contents[sku] = present - quantity
    if not contents[sku]:
        del contents[sku]
    return int(present - quantity)

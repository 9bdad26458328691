"""The MCP servers of the evaluation's world: `python -m gateway.features.evaluation.world_servers NAME FOLDER`.

`desk` has tickets, `office` people, rooms, messages and files, `shop` stock, orders and rates, and `plant` tools that
fail. They keep their state in `FOLDER/state.json`; `office` writes files below `FOLDER/files/out`.
"""

import asyncio
import fcntl
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

READ = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
EFFECT = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
DELETE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
UNAVAILABLE_CALLS = 2
"""Calls of `plant`'s `read_gauge` on tank-3 that fail before it answers."""

State = dict[str, Any]


class StateFile:
    """The state of all servers of a world, shared by their processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "state.json"

    def load(self) -> State:
        """The current state."""
        state: State = json.loads(self._path.read_text("utf-8"))
        return state

    @contextmanager
    def change(self) -> Iterator[State]:
        """Yields the state and stores it afterwards; nothing is stored after an exception."""
        with (self.folder / "state.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.load()
            yield state
            draft = self._path.with_suffix(".tmp")
            draft.write_text(json.dumps(state, ensure_ascii=False), "utf-8")
            draft.replace(self._path)

    def count_call(self, name: str) -> int:
        """Counts how often this was called with this name, this call included. Calls are not part of the state."""
        with (self.folder / f"calls-{name}").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("x")
            return file.tell()


def _find(records: Mapping[str, Any], key: str, kind: str) -> Any:
    """A record. Raises `ToolError` that names the known keys."""
    if key not in records:
        raise ToolError(f"there is no {kind} {key!r}; known: {', '.join(records) or 'none'}")
    return records[key]


def build_desk(file: StateFile) -> MCPServer:
    """Builds the server of tickets."""
    server = MCPServer("desk")

    @server.tool(annotations=READ)
    def list_tickets(status: str = "") -> list[dict[str, str]]:
        """List tickets with title, status, priority and assignee; status: open, waiting, closed, or empty for all."""
        tickets = file.load()["tickets"]
        ticket_fields = ("title", "status", "priority", "assignee")
        return [
            {"id": key, **{name: ticket[name] for name in ticket_fields}}
            for key, ticket in tickets.items()
            if status in ("", ticket["status"])
        ]

    @server.tool(annotations=READ)
    def get_ticket(ticket_id: str) -> dict[str, str]:
        """Return one ticket with its text."""
        return {"id": ticket_id, **_find(file.load()["tickets"], ticket_id, "ticket")}

    @server.tool(annotations=EFFECT)
    def create_ticket(title: str, priority: str = "medium", text: str = "") -> str:
        """Create an open ticket; priority is low, medium or high. Returns its id."""
        if priority not in ("low", "medium", "high"):
            raise ToolError("priority must be low, medium or high")
        with file.change() as state:
            key = f"T-{len(state['tickets']) + 1}"
            state["tickets"][key] = {
                "title": title, "status": "open", "priority": priority, "assignee": "", "text": text,
            }  # fmt: skip
        return key

    @server.tool(annotations=WRITE)
    def update_ticket(ticket_id: str, status: str = "", priority: str = "", assignee: str = "") -> str:
        """Change a ticket's status (open, waiting, closed), priority or assignee; what is empty stays."""
        given = {"status": status, "priority": priority, "assignee": assignee}
        with file.change() as state:
            _find(state["tickets"], ticket_id, "ticket").update({name: new for name, new in given.items() if new})
        return f"{ticket_id} is updated"

    @server.tool(annotations=EFFECT)
    def add_comment(ticket_id: str, text: str) -> str:
        """Add a comment to a ticket."""
        with file.change() as state:
            _find(state["tickets"], ticket_id, "ticket").setdefault("comments", []).append(text)
        return f"the comment is added to {ticket_id}"

    return server


def build_office(file: StateFile) -> MCPServer:
    """Builds the server of people, rooms, messages and files."""
    server = MCPServer("office")
    out = file.folder / "files" / "out"

    @server.tool(annotations=READ)
    def find_person(name: str) -> dict[str, str]:
        """Return a person's email, team, manager and favourite room by first name."""
        return {"name": name.lower(), **_find(file.load()["people"], name.lower(), "person")}

    @server.tool(annotations=READ)
    def list_bookings(room: str, day: str) -> dict[str, str]:
        """Return who has booked a room (Oak, Elm, Ash) on a day (YYYY-MM-DD), by hour; hours not listed are free."""
        return {key.split()[2]: who for key, who in file.load()["bookings"].items() if key.startswith(f"{room} {day} ")}

    @server.tool(annotations=EFFECT)
    def book_room(room: str, day: str, hour: int, person: str) -> str:
        """Book a room on a day (YYYY-MM-DD) for the hour that starts at `hour` (8 to 17)."""
        key = f"{room} {day} {hour:02}"
        with file.change() as state:
            if key in state["bookings"]:
                raise ToolError(f"{room} is taken at {hour:02}:00 on {day}")
            state["bookings"][key] = person.lower()
        return f"{room} is booked on {day} at {hour:02}:00"

    @server.tool(annotations=EFFECT)
    def send_message(to: str, text: str) -> str:
        """Send a message to a person by first name."""
        with file.change() as state:
            state["messages"].setdefault(to.lower(), []).append(text)
        return f"the message to {to} is sent"

    @server.tool(annotations=WRITE)
    def write_file(name: str, text: str) -> str:
        """Write a text file in the folder out; replaces an existing one."""
        path = _resolve_file(out, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return f"out/{path.name} is written"

    @server.tool(annotations=DELETE)
    def delete_file(name: str) -> str:
        """Delete a text file in the folder out."""
        path = _resolve_file(out, name)
        if not path.is_file():
            raise ToolError(f"there is no file out/{path.name}")
        path.unlink()
        return f"out/{path.name} is deleted"

    return server


def _resolve_file(out: Path, name: str) -> Path:
    plain = name.removeprefix("out/")
    if "/" in plain or plain.startswith("."):
        raise ToolError("the name must be a plain file name such as report.txt")
    return out / plain


def build_shop(file: StateFile) -> MCPServer:
    """Builds the server of stock, orders and rates."""
    server = MCPServer("shop")

    @server.tool(annotations=READ)
    def list_items() -> list[str]:
        """List the names of all items."""
        return list(file.load()["stock"])

    @server.tool(annotations=READ)
    def get_stock(item: str) -> dict[str, str | int]:
        """Return an item's quantity in stock, its price in EUR and its supplier."""
        return {"item": item, **_find(file.load()["stock"], item, "item")}

    @server.tool(annotations=READ)
    def get_rate(currency: str) -> float:
        """Return how much of a currency one EUR buys."""
        return float(_find(file.load()["rates"], currency.upper(), "currency"))

    @server.tool(annotations=WRITE)
    def set_price(item: str, price: int) -> str:
        """Set an item's price in EUR."""
        with file.change() as state:
            _find(state["stock"], item, "item")["price"] = price
        return f"{item} costs {price} EUR"

    @server.tool(annotations=EFFECT)
    def order_item(item: str, quantity: int) -> str:
        """Order more of an item from its supplier; at most 100 at once."""
        if not 1 <= quantity <= 100:
            raise ToolError("quantity must be from 1 to 100")
        with file.change() as state:
            _find(state["stock"], item, "item")
            state["orders"].setdefault(item, []).append(quantity)
        return f"{quantity} of {item} are ordered"

    return server


def build_plant(file: StateFile) -> MCPServer:
    """Builds the server of tools that fail: for some calls, for some arguments, or always."""
    server = MCPServer("plant")

    @server.tool(annotations=READ)
    def read_gauge(tank: str) -> int:
        """Return a tank's level in percent, live."""
        level = int(_find(file.load()["gauges"], tank, "tank"))
        if tank == "tank-4":
            raise ToolError("the gauge of tank-4 is broken; its last level is in read_gauge_log")
        if tank == "tank-3" and file.count_call("read_gauge") <= UNAVAILABLE_CALLS:
            raise ToolError("temporarily unavailable, try again")
        return level

    @server.tool(annotations=READ)
    def read_gauge_log(tank: str) -> int:
        """Return the last logged level of a tank in percent."""
        return int(_find(file.load()["gauges"], tank, "tank"))

    @server.tool(annotations=READ)
    def track_parcel(parcel_id: str) -> str:
        """Return where a parcel is. The former service."""
        raise ToolError(f"this service was switched off; use find_parcel for {parcel_id}")

    @server.tool(annotations=READ)
    def find_parcel(parcel_id: str) -> dict[str, str | int]:
        """Return a parcel's place and weight in kg."""
        return {"parcel": parcel_id, **_find(file.load()["parcels"], parcel_id, "parcel")}

    @server.tool(annotations=EFFECT)
    def open_valve(tank: str) -> str:
        """Open the valve of a tank."""
        raise ToolError(f"the valve of {tank} is locked by the safety system; nothing was changed")

    return server


SERVERS: Mapping[str, Callable[[StateFile], MCPServer]] = {
    "desk": build_desk,
    "office": build_office,
    "shop": build_shop,
    "plant": build_plant,
}
"""The servers by name. A tool of `desk` is called `desk__get_ticket` in the gateway."""


if __name__ == "__main__":
    asyncio.run(SERVERS[sys.argv[1]](StateFile(Path(sys.argv[2]))).run_stdio_async())

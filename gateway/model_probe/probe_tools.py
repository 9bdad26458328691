"""The tools that the tasks of the probe offer. They are never called: the plan is what counts."""

from collections.abc import Sequence
from itertools import product

from agent.core.models import JsonObject, Room
from agent.planning.request import PlanningRequest, RoundCall
from agent.tools import READ_ONLY, ToolAnnotations, ToolSpec
from agent.tools.catalogue import Catalogue

_ROOM = Room(id="probe", name="Probe")


def _make_tool(name: str, description: str, *, annotations: ToolAnnotations = READ_ONLY, **inputs: str) -> ToolSpec:
    schema: JsonObject = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in inputs.items()},
        "required": [*inputs],
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema, None, annotations, tainted=False)


WEATHER = _make_tool("get_weather", "The present weather in a city.", city="string")
ORDER = _make_tool("get_order", "Status of a customer's order by its number.", order_id="string")
CONVERT = _make_tool(
    "convert_money", "Converts an amount of money at today's rate.", amount="number", currency="string", to="string"
)
SEND = _make_tool(
    "send_message",
    "Sends a message to a person.",
    annotations=ToolAnnotations(read_only=False, destructive=False),
    to="string",
    text="string",
)
TOOLS = (CONVERT, ORDER, WEATHER, SEND)
_VERBS = ("list", "count", "find", "show")
_NOUNS = (
    "invoices", "rooms", "bookings", "suppliers", "contracts", "machines", "tickets", "holidays", "books", "vehicles",
)  # fmt: skip


def list_many_tools(count: int) -> tuple[ToolSpec, ...]:
    """Makes `count` tools, in the middle of which one is for the weather."""
    names = [f"{verb}_{noun}" for noun, verb in product(_NOUNS, _VERBS)][: count - 1]
    others = [
        _make_tool(name, f"{name.replace('_', ' ').capitalize()} that match some words.", words="string")
        for name in names
    ]
    middle = len(others) // 2
    return (*others[:middle], WEATHER, *others[middle:])


def build_request(question: str, tools: Sequence[ToolSpec], *, rounds: tuple[RoundCall, ...] = ()) -> PlanningRequest:
    """The input of a planner, after the calls of these rounds."""
    return PlanningRequest(question, _ROOM, Catalogue(tools=tuple(tools)), rounds=rounds)

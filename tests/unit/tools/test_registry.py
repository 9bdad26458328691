"""The registry: which tools rooms and owners have, and that every change shows."""

from dataclasses import replace

from agent.core.models import Room
from agent.tools import ToolRegistry, ToolSpec
from mcp_tools.builtin.calculator import CalculatorTool

OWN = Room(id="own")
NAMED = Room(id="named", tools=("calculator",))


class _Named(CalculatorTool):
    def __init__(self, name: str, owner: str = "local", room: str | None = None) -> None:
        super().__init__()
        self._changed = replace(super().spec, name=name, owner=owner, room=room)

    @property
    def spec(self) -> ToolSpec:
        return self._changed


def list_names(registry: ToolRegistry, room: Room, owner: str) -> list[str]:
    """The names of what an owner has in a room."""
    return [spec.name for spec in registry.list_room_specs(room, owner)]


def test_rooms_and_owners_have_their_own_tools() -> None:
    registry = ToolRegistry()
    registry.register(CalculatorTool(), _Named("anns", owner="ann"), _Named("rooms", room="own"))
    for _ in range(2):
        assert list_names(registry, OWN, "ann") == ["anns", "calculator", "rooms"]
        assert list_names(registry, OWN, "bob") == ["calculator", "rooms"]
        assert list_names(registry, NAMED, "ann") == ["calculator"]
        assert list_names(registry, NAMED.model_copy(update={"tools": ("anns",)}), "ann") == ["anns"]


def test_a_change_of_the_tools_shows_in_every_room() -> None:
    registry = ToolRegistry()
    registry.register(CalculatorTool())
    assert list_names(registry, OWN, "ann") == ["calculator"]
    registry.register(_Named("further"))
    assert list_names(registry, OWN, "ann") == ["calculator", "further"]
    registry.replace("builtin", [_Named("another")])
    assert list_names(registry, OWN, "ann") == ["another"]

"""`ToolRegistry`: the tools of a gateway, from which rooms and skills select."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from agent.core.errors import ToolQuarantinedError, ToolUnknownError
from agent.core.models import LOCAL_OWNER, Room
from agent.tools.spec import ToolSpec, UserSource
from agent.tools.tool import Tool

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


class WithheldTool(NamedTuple):
    """A tool that nobody may use now: the reason, and who may use it otherwise."""

    reason: str
    owner: str = LOCAL_OWNER


@dataclass
class ToolRegistry:
    """The tools of this gateway by name. Passed in, never global; names are unique."""

    _tools: dict[str, Tool] = field(default_factory=dict)
    _withheld: dict[str, dict[str, WithheldTool]] = field(default_factory=dict)
    """By origin and name."""
    _specs: tuple[ToolSpec, ...] | None = None
    """The specs in order of name; None after a change."""
    _exempt: tuple[str, ...] | None = None
    """The names of the tools whose effects need nobody's approval; None after a change."""
    version: int = 0
    """Incremented with every change."""

    def register(self, *tools: Tool) -> None:
        """Adds tools. Raises ValueError for a bad or existing name."""
        for tool in tools:
            name = tool.spec.name
            if not _NAME.match(name):
                raise ValueError(f"tool name {name!r} must match {_NAME.pattern}")
            if name in self._tools:
                raise ValueError(f"a tool named {name!r} is registered already")
            self._tools[name] = tool
        self._invalidate_specs()

    def replace(self, origin: str, tools: Iterable[Tool]) -> list[Tool]:
        """Replaces all tools of this origin with `tools`. Skips those whose names are in use, and returns them."""
        self._withheld.pop(origin, None)
        self._tools = {name: tool for name, tool in self._tools.items() if tool.spec.origin != origin}
        skipped = [tool for tool in tools if self._tools.setdefault(tool.spec.name, tool) is not tool]
        self._invalidate_specs()
        return skipped

    def withhold(self, origin: str, tools: Mapping[str, WithheldTool]) -> None:
        """Refuses these unregistered names with the given reasons, until the next `replace`."""
        self._withheld[origin] = dict(tools)

    def get_withheld_reason(self, name: str, owner: str | None = None) -> str | None:
        """The reason why the tool of this name may not be used, or None, also for one that `owner` may not use."""
        if name in self._tools:
            return None
        named = (tools[name] for tools in self._withheld.values() if name in tools)
        return next((one.reason for one in named if owner is None or one.owner in (LOCAL_OWNER, owner)), None)

    def get(self, name: str, owner: str | None = None) -> Tool:
        """The tool of this name. Raises `ToolUnknownError` if it is absent, or another owner's where `owner` is
        given, and `ToolQuarantinedError` if it is withheld.
        """
        tool = self._tools.get(name)
        if tool is not None and self.find_spec(name, owner) is not None:
            return tool
        reason = self.get_withheld_reason(name, owner)
        if reason is not None:
            raise ToolQuarantinedError(reason, agent_id=name)
        shared = (one.spec for one in self if one.spec.room is None and one.spec.owner == LOCAL_OWNER)
        shared_names = ", ".join(spec.name for spec in shared) or "none"
        raise ToolUnknownError(f"there is no tool named {name!r}; known: {shared_names}", agent_id=name)

    def is_known_to(self, owner: str | None, name: str) -> bool:
        """Whether there is a tool of this name that an owner may know of; any tool for None."""
        return self.find_spec(name, owner) is not None

    def list_visible_names(self, owner: str | None) -> list[str]:
        """The names of the tools that an owner may know of, sorted; of all tools for None."""
        return [spec.name for spec in self.list_specs() if owner is None or spec.is_visible_to(owner)]

    def find_spec(self, name: str, owner: str | None = None) -> ToolSpec | None:
        """The spec of the tool of this name, or None, also for one that `owner` may not know of. Unlike `get`, it
        raises nothing.
        """
        tool = self._tools.get(name)
        return tool.spec if tool is not None and (owner is None or tool.spec.is_visible_to(owner)) else None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.spec.name))

    def list_specs(self, allowed: Iterable[str] | None = None) -> list[ToolSpec]:
        """The specs in order of name, only those `allowed` if given."""
        if self._specs is None:
            self._specs = tuple(tool.spec for tool in self)
        names = None if allowed is None else set(allowed)
        return [spec for spec in self._specs if names is None or spec.name in names]

    def list_sources(self, names: Iterable[str]) -> set[UserSource]:
        """The user's own sources that the tools of these names read."""
        return {spec.hints.source for spec in self.list_specs(names) if spec.hints.source is not None}

    def list_approval_exempt(self) -> tuple[str, ...]:
        """The names of the tools whose effects need nobody's approval, sorted."""
        if self._exempt is None:
            self._exempt = tuple(spec.name for spec in self.list_specs() if spec.is_approval_exempt)
        return self._exempt

    def list_room_specs(self, room: Room, owner: str) -> list[ToolSpec]:
        """The specs of the tools that an owner has in a room, in order of name: those the room names, or all if
        it names none, and those of its own servers.
        """
        return [spec for spec in self.list_specs() if spec.is_visible_to(owner) and spec.is_allowed_in(room)]

    def list_allowed(self, room: Room, owner: str, wanted: JsonValue, called: Container[str]) -> tuple[str, ...]:
        """The names of the owner's tools that a room and a caller allow, in order of name. `wanted` is the caller's
        list, if it is one. If neither lists tools, omits opt-in tools, except those in `called`.
        """
        specs = self.list_room_specs(room, owner)
        if isinstance(wanted, list):
            names = {self.resolve_in_room(room, str(name)) for name in wanted}
            return tuple(spec.name for spec in specs if spec.name in names)
        every = room.tools is not None
        return tuple(spec.name for spec in specs if every or not spec.is_opt_in or spec.name in called)

    def resolve_in_room(self, room: Room, name: str) -> str:
        """The registered name of what a room calls by this name: `server__tool` is a tool of the room's own server,
        whatever it is called outside. A name that is registered, or that nobody knows, stays as it is.
        """
        registered = self._tools.get(name)
        if "__" not in name or (registered is not None and registered.spec.is_visible_to(room.owner)):
            return name
        own = (spec for spec in self.list_specs() if spec.room == room.id)
        return next((spec.name for spec in own if spec.room_name == name), name)

    def _invalidate_specs(self) -> None:
        self._specs = self._exempt = None
        self.version += 1

"""Views: what a client at `/mcp`, at `/mcp/all` and at `/mcp/{view}` sees and may call.

Curated ones are YAML files, the shipped `config/mcp_views` and the operator's `AGENT_MCP_VIEWS_DIR`. Nothing here
loads the MCP SDK, since the gateway reads the files at its start."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.config import Settings
from agent.core.errors import BadRequestError, ConfigError, RoomUnknownError
from agent.core.models import JsonObject
from agent.core.rooms import Rooms
from agent.tools import ToolRegistry
from mcp_tools.agent_tools import AGENT_TOOLS

FIND, CALL = "tools_find", "tools_call"
"""The tools that find and call what a view does not list."""


class View(BaseModel):
    """What one kind of client is for. A tool that a view does not permit is neither listed nor called."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$", description="the last part of its path")
    description: str = Field(default="", max_length=2_000, description="told to clients in place of our instructions")
    tools: tuple[str, ...] | None = Field(
        default=None,
        description="names of tools, or patterns such as github__*; null: all, of which those of other servers are "
        "found and called by tools_find and tools_call instead of listed",
    )
    skills: tuple[str, ...] | None = Field(default=None, description="skills that are prompts here; null: all")
    room: str | None = Field(default=None, description="the one room this view works in; null: as the caller says")

    def permits(self, tool: str) -> bool:
        """Whether a tool of this name may be called here."""
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def named(self, tool: str) -> bool:
        """Whether it is in the list by its very name."""
        return self.tools is not None and tool in self.tools

    def placed(self, arguments: JsonObject) -> JsonObject:
        """The arguments of `agent_run`, in this view's room. Raises `BadRequestError` for another one."""
        if self.room is None:
            return arguments
        if arguments.get("room") not in (None, "", self.room):
            raise BadRequestError(f"room: here every task goes to {self.room!r}; leave it out", param="room")
        return {**arguments, "room": self.room}


OWN = View(id="own")
"""`/mcp` and stdio: the tools that come with Stepgate, and a way to find and call the others."""
ALL = View(id="all", tools=("*",))
"""`/mcp/all`: those of other servers are listed too."""


def views_of(settings: Settings, shipped: Path) -> Mapping[str, View]:
    """The views by id: `all`, those of the folder `shipped`, and the operator's. `ConfigError` names file and field."""
    return load_views(shipped, *([settings.mcp_views_dir] if settings.mcp_views_dir else []))


def load_views(*folders: Path) -> Mapping[str, View]:
    """`all` and the views of the folders; a later folder's replaces an earlier one of the same id. `ConfigError`."""
    views = {ALL.id: ALL}
    for folder in folders:
        if not folder.is_dir():
            raise _wrong(f"{folder} is no folder")
        for path in sorted(folder.glob("*.yaml")):
            view = _read(path)
            if view.id == ALL.id:
                raise _wrong(f"{path}: id: /mcp/all is there already, with every tool; give it another name")
            views[view.id] = view
    return views


def check_rooms(views: Iterable[View], rooms: Rooms) -> None:
    """`ConfigError` for a view of a room that is not there."""
    for view in views:
        try:
            rooms.get(view.room)
        except RoomUnknownError as error:
            raise _wrong(f"view {view.id!r}: room: {error.message}") from error


def missing_tools(views: Iterable[View], registry: ToolRegistry) -> list[str]:
    """A line for every tool that a view names and that is not there.

    Other servers' tools may still come, so a name with `__` is never missed."""
    known = {*AGENT_TOOLS, FIND, CALL, *(spec.name for spec in registry.specs())}
    return [
        f"the MCP view {view.id!r} names a tool {name!r}, which is not there"
        for view in views
        for name in view.tools or ()
        if "__" not in name and not any(fnmatchcase(tool, name) for tool in known)
    ]


def _read(path: Path) -> View:
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(data, dict):
            raise _wrong(f"{path}: a view's file holds `key: value` lines")
        return View.model_validate({"id": path.stem, **data})
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"{path}: it cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise _wrong(f"{path}: no valid YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise _wrong(f"{path}: {field}: {fault['msg']}") from error


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"AGENT_MCP_VIEWS_DIR: {what}")

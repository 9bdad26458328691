"""Views: what a client sees and may call at `/mcp`, `/mcp/all` and `/mcp/{view}`.

Curated views are YAML files in `config/mcp_views` and in `mcp_views` of the data folder. This module does not
import the MCP SDK, because the gateway loads the views at its start.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.core.bounded_yaml import YamlError, load_yaml_mapping
from agent.core.errors import BadRequestError, ConfigError, RoomUnknownError
from agent.core.models import JsonObject
from agent.core.settings import Settings
from agent.core.value_faults import describe_first_fault
from agent.runs.rooms import Rooms
from agent.tools import ToolRegistry
from mcp_tools.server.agent_tools import AGENT_TOOLS
from mcp_tools.server.toolsets import Toolsets, split_names

FIND_TOOL, CALL_TOOL = "tools_find", "tools_call"
"""The names of the tools that find and call tools which a view does not list."""


class View(BaseModel):
    """A set of tools and skills for one kind of client. Other tools are neither listed nor callable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$", description="the last part of its path")
    description: str = Field(default="", max_length=2_000, description="replaces our instructions to clients")
    tools: tuple[str, ...] | None = Field(
        default=None,
        description="names of tools, or patterns such as github__*; null: all, where external tools are not listed but "
        "found and called by tools_find and tools_call",
    )
    toolsets: tuple[str, ...] | None = Field(
        default=None,
        description="list only the tools of these toolsets, without the schemas of results; the others stay callable "
        "and are found by tools_find",
    )
    """Names of single toolsets, once the view is loaded."""
    skills: tuple[str, ...] | None = Field(default=None, description="skills that are prompts here; null: all")
    room: str | None = Field(default=None, description="the only room of this view; null: the caller chooses")

    def permits_tool(self, tool: str) -> bool:
        """Whether a tool of this name may be called."""
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def lists_toolset(self, toolset: str) -> bool:
        """Whether the view lists the tools of a toolset that it permits."""
        return self.toolsets is None or toolset in self.toolsets

    def choose_toolsets(self, query: str | None, toolsets: Toolsets) -> "View":
        """This view with those of the toolsets that a request's query names; the view itself without one.

        Raises `BadRequestError` for an unknown toolset, and for a view that has a list of its own.
        """
        if query is None:
            return self
        if self.toolsets is None:
            raise BadRequestError(f"toolsets are chosen at /mcp; /mcp/{self.id} has its own list", param="toolsets")
        return self.model_copy(update={"toolsets": toolsets.expand(split_names(query))})

    def names_tool(self, tool: str) -> bool:
        """Whether the view lists the tool by its exact name."""
        return self.tools is not None and tool in self.tools

    def set_room(self, arguments: JsonObject) -> JsonObject:
        """The arguments of `agent_run` with this view's room. Raises `BadRequestError` for another room."""
        if self.room is None:
            return arguments
        if arguments.get("room") not in (None, "", self.room):
            raise BadRequestError(f"room: here every task goes to {self.room!r}; leave it out", param="room")
        return {**arguments, "room": self.room}


ALL_VIEW = View(id="all", tools=("*",))
"""`/mcp/all`: lists every tool, with the schemas of results."""


def make_default_view(names: Sequence[str], toolsets: Toolsets) -> View:
    """The view of `/mcp` and stdio: the tools of the toolsets that the operator names, by default those that a client's
    model needs first, and a way to find and call all others. Raises `ConfigError` for an unknown toolset.
    """
    try:
        return View(id="own", toolsets=toolsets.expand(names))
    except BadRequestError as error:
        raise ConfigError(f"AGENT_MCP_TOOLSETS: {error.message}") from error


def load_configured_views(settings: Settings, shipped: Path, toolsets: Toolsets) -> Mapping[str, View]:
    """The views by id: `all`, those of the folder `shipped`, and the operator's. Checks the toolsets of `/mcp`.

    Raises `ConfigError` naming file and field.
    """
    make_default_view(settings.mcp_toolsets, toolsets)
    return load_views(shipped, *_list_own_folders(settings), toolsets=toolsets)


def _list_own_folders(settings: Settings) -> list[Path]:
    """The operator's folder of views, if there is one."""
    path = settings.mcp_views_path
    return [path] if settings.mcp_views_dir is not None or path.exists() else []


def load_views(*folders: Path, toolsets: Toolsets) -> Mapping[str, View]:
    """`all` and the views of the folders. A later folder overrides an earlier one. Raises `ConfigError`."""
    views = {ALL_VIEW.id: ALL_VIEW}
    for folder in folders:
        if not folder.is_dir():
            raise _make_config_error(f"{folder} is not a folder")
        for path in sorted(folder.glob("*.yaml")):
            view = _read_view(path, toolsets)
            if view.id == ALL_VIEW.id:
                raise _make_config_error(f"{path}: id: /mcp/all exists already, with every tool; use another name")
            views[view.id] = view
    return views


def check_rooms(views: Iterable[View], rooms: Rooms) -> None:
    """Raises `ConfigError` for a view whose room does not exist."""
    for view in views:
        try:
            rooms.get(view.room, None)
        except RoomUnknownError as error:
            raise _make_config_error(f"view {view.id!r}: room: {error.message}") from error


def list_missing_tools(views: Iterable[View], registry: ToolRegistry) -> list[str]:
    """A line for each unknown tool that a view names.

    Names with `__` are skipped: the tools of other servers may appear later.
    """
    known_tools = {*AGENT_TOOLS, FIND_TOOL, CALL_TOOL, *(spec.name for spec in registry.list_specs())}
    return [
        f"the MCP view {view.id!r} names an unknown tool {name!r}"
        for view in views
        for name in view.tools or ()
        if "__" not in name and not any(fnmatchcase(tool, name) for tool in known_tools)
    ]


def _read_view(path: Path, toolsets: Toolsets) -> View:
    try:
        data = load_yaml_mapping(path.read_text("utf-8"))
        view = View.model_validate({"id": path.stem, **data})
        names = None if view.toolsets is None else toolsets.expand(view.toolsets)
        return view.model_copy(update={"toolsets": names})
    except (OSError, UnicodeDecodeError) as error:
        raise _make_config_error(f"{path}: cannot be read: {error}") from error
    except YamlError as error:
        raise _make_config_error(f"{path}: {error}") from error
    except ValidationError as error:
        raise _make_config_error(f"{path}: {describe_first_fault(error)}") from error
    except BadRequestError as error:
        raise _make_config_error(f"{path}: toolsets: {error.message}") from error


def _make_config_error(what: str) -> ConfigError:
    return ConfigError(f"mcp_views: {what}")

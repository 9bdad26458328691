"""`ToolOverrides`: the key `tools` of an MCP server's entry, which changes what the server offers.

`mcp_servers.json` and the servers of rooms take the same keys.
"""

from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent.core.models.words import ArgumentRole, JsonObject


class ToolOverrides(BaseModel):
    """Which tools of a server are registered, and how. All keys use the server's own tool names.

    An unknown key is an error, because what it was meant to ensure would not happen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    rename: Mapping[str, Annotated[str, Field(min_length=1, max_length=64)]] = Field(default_factory=dict)
    describe: Mapping[str, str] = Field(default_factory=dict)
    defaults: Mapping[str, JsonObject] = Field(
        default_factory=dict, description="default arguments by tool, sent if a call omits them; models do not see them"
    )
    approve: bool | tuple[str, ...] = Field(
        default=(), description="tools whose every call a person must approve; true: all tools"
    )
    arguments: Mapping[str, ArgumentRole] = Field(
        default_factory=dict,
        description="roles of arguments, by `tool.argument`. where: an address, path, account or recipient that a call "
        "goes to; amount; content; id: of a thing of the user's own; other",
    )
    open_world: bool | tuple[str, ...] | None = Field(
        default=None,
        description="tools whose arguments reach others than the server; true or false: all or none; unset: its hints",
    )

    def includes(self, name: str) -> bool:
        """Whether a tool of this name is registered."""
        return name not in self.deny and (self.allow is None or name in self.allow)

    def get_local_name(self, name: str) -> str:
        """The tool's name after the server's prefix."""
        return self.rename.get(name, name)

    def needs_approval(self, name: str) -> bool:
        """Whether a person must approve every call."""
        if isinstance(self.approve, bool):
            return self.approve
        return name in self.approve or self.get_local_name(name) in self.approve

    def get_argument_roles(self, name: str) -> dict[str, ArgumentRole]:
        """The roles that the operator gives to arguments of a tool."""
        begin = f"{name}."
        return {key.removeprefix(begin): role for key, role in self.arguments.items() if key.startswith(begin)}

    def get_open_world(self, name: str) -> bool | None:
        """Whether a tool reaches others than its server; None if the operator has not said."""
        if self.open_world is None or isinstance(self.open_world, bool):
            return self.open_world
        return True if name in self.open_world else None

    def list_ignored_settings(self, offered: Mapping[str, Collection[str]]) -> list[str]:
        """A message for each setting that has no effect on the offered tools and their arguments."""
        known_tools = {*offered, *(self.get_local_name(name) for name in offered)}
        approve = () if isinstance(self.approve, bool) else self.approve
        open_world = self.open_world if isinstance(self.open_world, tuple) else ()
        named = {
            "rename": self.rename,
            "describe": self.describe,
            "defaults": self.defaults,
            "approve": approve,
            "open_world": open_world,
        }
        messages = [
            f"tools.{key} names {name!r}, which the server does not offer or which is excluded"
            for key, names in named.items()
            for name in names
            if name not in (known_tools if key == "approve" else offered)
        ]
        names = [self.get_local_name(name) for name in offered]
        messages += [
            f"tools.rename gives the name {name!r} to a second tool, which is not registered"
            for name in sorted({name for name in names if names.count(name) > 1})
        ]
        arguments = {f"{name}.{argument}" for name, names in offered.items() for argument in names}
        messages += [
            f"tools.arguments names {key!r}, which is not a `tool.argument` of the server"
            for key in self.arguments
            if key not in arguments
        ]
        return messages + [
            f"tools.defaults gives {name!r} the argument {argument!r}, which it does not have"
            for name, arguments in self.defaults.items()
            for argument in arguments
            if name in offered and argument not in offered[name]
        ]

"""`ToolChoice`: the key `tools` of a server's entry, by which an operator shapes what a foreign server offers."""

from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agent.core.models import JsonObject


class ToolChoice(BaseModel):
    """Which of a server's tools are mounted, and how. Every key names tools as the server does; one that is not known
    here is an error, for what it was meant to promise would not be kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    rename: Mapping[str, Annotated[str, Field(min_length=1, max_length=64)]] = Field(default_factory=dict)
    describe: Mapping[str, str] = Field(default_factory=dict)
    defaults: Mapping[str, JsonObject] = Field(
        default_factory=dict, description="arguments by tool, sent where a call leaves them out; not told to models"
    )
    approve: bool | tuple[str, ...] = Field(
        default=(), description="tools whose every call a person must allow; true: all of them"
    )

    def admits(self, name: str) -> bool:
        """Whether a tool of this name is mounted."""
        return name not in self.deny and (self.allow is None or name in self.allow)

    def called(self, name: str) -> str:
        """What a tool of this name is called here, after the name of its server."""
        return self.rename.get(name, name)

    def asks(self, name: str) -> bool:
        """Whether a person must allow every call."""
        if isinstance(self.approve, bool):
            return self.approve
        return name in self.approve or self.called(name) in self.approve

    def unheeded(self, offered: Mapping[str, Collection[str]]) -> list[str]:
        """What cannot be done as the file has it, where a server offers these tools with these arguments."""
        known = {*offered, *(self.called(name) for name in offered)}
        approve = () if isinstance(self.approve, bool) else self.approve
        named = {"rename": self.rename, "describe": self.describe, "defaults": self.defaults, "approve": approve}
        told = [
            f"tools.{key} names {name!r}, which the server does not offer or which is not used"
            for key, names in named.items()
            for name in names
            if name not in (known if key == "approve" else offered)
        ]
        names = [self.called(name) for name in offered]
        told += [
            f"tools.rename gives the name {name!r} to a second tool, which is left out"
            for name in sorted({name for name in names if names.count(name) > 1})
        ]
        return told + [
            f"tools.defaults gives {name!r} the argument {argument!r}, which it does not take"
            for name, arguments in self.defaults.items()
            for argument in arguments
            if name in offered and argument not in offered[name]
        ]

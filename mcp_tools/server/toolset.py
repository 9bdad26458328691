"""`Toolset`: one named group of tools, as the MCP server and each feature declare theirs.

This module imports nothing, so that a list of features costs nothing.
"""

from dataclasses import dataclass

AT_THE_END = 1_000
"""The place of what names none."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """A group of tools by their names. Without a description, the tools join the toolset of this name that has one."""

    name: str
    tools: tuple[str, ...] = ()
    description: str = ""
    use: str = ""
    """What the instructions to clients say about the tools; for a toolset that is listed by default."""
    is_default: bool = False
    """Whether `default` stands for it too."""
    place: int = AT_THE_END
    """Orders the toolsets where people see them."""

"""Toolsets: named groups of tools, from which `/mcp` lists what a client's model needs.

`AGENT_MCP_TOOLSETS`, `?toolsets=` and the field `toolsets` of a view choose among them. A tool that is not listed stays
callable by its name, and is found by `tools_find`. Features add toolsets of their own (`Feature.toolsets`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from agent.core.errors import BadRequestError
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign
from mcp_tools.server.toolset import Toolset

ALL, DEFAULT = "all", "default"
"""The words for every toolset, and for those that are listed by default."""
QUERY_PARAMETER = "toolsets"
GENERATED, EXTERNAL, OTHER = "generated", "external", "other"
"""Toolsets of tools that have no fixed names: generated ones, those of other MCP servers, and those of packages."""

KERNEL_TOOLSETS: Final = (
    Toolset(
        "agent",
        ("agent_run", "run_get", "run_respond", "run_cancel"),
        "whole tasks: start, follow, answer and cancel a run",
        is_default=True,
        place=10,
    ),
    Toolset(
        "files",
        ("list_files", "read_file", "search_files"),
        "the user's text files",
        "list_files, read_file and search_files read the user's files",
        is_default=True,
        place=30,
    ),
    Toolset("web", ("web_fetch",), "web pages", "web_fetch reads a web page", is_default=True, place=40),
    Toolset(
        "tables",
        ("describe_table", "query_table"),
        "SQL over table files",
        "describe_table and query_table analyse table files",
        is_default=True,
        place=50,
    ),
    Toolset("python", ("run_python",), "short programs in a sandbox", "run_python computes", is_default=True, place=60),
    Toolset(
        "memory",
        ("memory_save", "memory_search"),
        "what the user asked to be remembered",
        "memory_save and memory_search keep facts about the user",
        is_default=True,
        place=70,
    ),
    Toolset("basics", ("calculator", "current_time", "extract"), "arithmetic, the time, and a text's parts", place=90),
)
_BY_ORIGIN: Final = (
    Toolset(GENERATED, description="tools that were generated from a description"),
    Toolset(EXTERNAL, description="tools of other MCP servers"),
    Toolset(OTHER, description="tools that installed packages add"),
)


class Toolsets:
    """The toolsets of a gateway: those of the kernel and those that features add."""

    def __init__(self, added: Iterable[Toolset] = ()) -> None:
        """Of two with one name and descriptions, the first one counts, and the tools of both."""
        declared = (*KERNEL_TOOLSETS, *added)
        described: dict[str, Toolset] = {}
        for one in declared:
            if one.description and one.name not in (ALL, DEFAULT):
                described.setdefault(one.name, one)
        tools = {name: [*one.tools] for name, one in described.items()}
        for one in declared:
            if one.name in described and one is not described[one.name]:
                tools[one.name] += one.tools
        ordered = sorted(described.values(), key=lambda one: one.place)
        named = [replace(one, tools=tuple(tools[one.name])) for one in ordered]
        self.by_name: Final[Mapping[str, Toolset]] = {one.name: one for one in (*named, *_BY_ORIGIN)}
        """In the order in which people see them."""

    def expand(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names of the toolsets that `names` choose; `all` and `default` stand for several.

        Raises `BadRequestError` for an unknown name, or for none.
        """
        chosen: set[str] = set()
        for name in names:
            if name not in (ALL, DEFAULT, *self.by_name):
                toolset_names = ", ".join((DEFAULT, ALL, *self.by_name))
                raise BadRequestError(
                    f"there is no toolset {name[:40]!r}; known: {toolset_names}", param=QUERY_PARAMETER
                )
            chosen.update(
                one.name
                for one in self.by_name.values()
                if name in (ALL, one.name) or (name == DEFAULT and one.is_default)
            )
        if not chosen:
            raise BadRequestError("name at least one toolset, or leave the parameter out", param=QUERY_PARAMETER)
        return tuple(name for name in self.by_name if name in chosen)

    def get_toolset(self, spec: ToolSpec) -> str:
        """The name of the toolset of a registered tool."""
        if is_foreign(spec):
            return EXTERNAL
        if spec.origin != "builtin":
            return GENERATED
        return self.find_named(spec.name)

    def find_named(self, tool: str) -> str:
        """The name of the toolset that names this tool, or `other`."""
        return next((name for name, one in self.by_name.items() if tool in one.tools), OTHER)

    def describe_uses(self) -> str:
        """What the tools are for that are listed by default, as a list in a sentence."""
        return ", ".join(one.use for one in self.by_name.values() if one.is_default and one.use)


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())

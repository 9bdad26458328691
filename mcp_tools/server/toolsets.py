"""Toolsets: named groups of tools, from which `/mcp` lists what a client's model needs.

`AGENT_MCP_TOOLSETS`, `?toolsets=` and the field `toolsets` of a view choose among them. A tool that is not listed stays
callable by its name, and is found by `tools_find`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agent.core.errors import BadRequestError
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign

ALL, DEFAULT = "all", "default"
"""The words for every toolset, and for those of `DEFAULT_TOOLSETS`."""
QUERY_PARAMETER = "toolsets"
GENERATED, EXTERNAL, OTHER = "generated", "external", "other"
"""Toolsets of tools that have no fixed names: generated ones, those of other MCP servers, and those of packages."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """A group of tools by their names. Without names it is filled by where its tools come from."""

    description: str
    tools: tuple[str, ...] = ()


TOOLSETS: Final[Mapping[str, Toolset]] = {
    "agent": Toolset(
        "whole tasks: start, follow, answer and cancel a run", ("agent_run", "run_get", "run_respond", "run_cancel")
    ),
    "search": Toolset("passages of the user's collections of documents", ("search_knowledge",)),
    "files": Toolset("the user's text files", ("list_files", "read_file", "search_files")),
    "web": Toolset("web pages", ("web_fetch",)),
    "tables": Toolset("SQL over table files", ("describe_table", "query_table")),
    "python": Toolset("short programs in a sandbox", ("run_python",)),
    "memory": Toolset("what the user asked to be remembered", ("memory_save", "memory_search")),
    "documents": Toolset(
        "reading documents in, checked answers with citations, research",
        ("answer_with_citations", "ingest", "list_documents", "spawn_researcher"),
    ),
    "basics": Toolset(
        "arithmetic, the time, and a text's parts", ("calculator", "current_time", "extract", "summarize")
    ),
    "incident": Toolset(
        "incidents and reports: priority, entities, deadlines, to-dos, earlier tickets, briefs",
        (
            "build_incident_brief",
            "classify_priority",
            "extract_action_items",
            "extract_deadlines",
            "extract_entities",
            "search_incident_knowledge",
            "search_previous_issues",
        ),
    ),
    "pipelines": Toolset(
        "building pipelines that read documents",
        (
            "apply_pipeline",
            "build_pipeline",
            "get_pipeline_state",
            "get_plugin_details",
            "list_plugins",
            "list_templates",
            "spawn_pipeline_validator",
            "spawn_source_analyzer",
            "suggest_pipeline",
        ),
    ),
    "schedules": Toolset("requests at regular times", ("schedule_create", "schedule_remove", "schedules_list")),
    "recipes": Toolset("saved runs with parameters", ("recipe_apply", "recipe_remove", "recipe_save", "recipes_list")),
    "studio": Toolset(
        "rooms, prompts, generated tools, and how they are related",
        (
            "explain_relationship",
            "get_entity_details",
            "prompt_apply",
            "prompt_remove",
            "prompt_save",
            "prompt_show",
            "prompts_list",
            "room_copy",
            "room_create",
            "room_delete",
            "room_edit",
            "room_show",
            "rooms_list",
            "search_entities",
            "spawn_config_agent",
            "spawn_query_agent",
            "spawn_room_agent",
            "spawn_tool_agent",
            "tool_apply",
            "tool_discard",
            "tool_generate",
            "tool_refine",
            "tool_remove",
            "tool_restore",
            "tool_show",
            "tools_list",
        ),
    ),
    "admin": Toolset(
        "MCP servers of rooms, names of secrets, rights of rooms and sources",
        (
            "list_secrets",
            "mcp_server_add",
            "mcp_server_remove",
            "mcp_server_test",
            "mcp_servers_list",
            "room_programs_allow",
            "source_credential_allow",
        ),
    ),
    GENERATED: Toolset("tools that were generated from a description"),
    EXTERNAL: Toolset("tools of other MCP servers"),
    OTHER: Toolset("tools that installed packages add"),
}
DEFAULT_TOOLSETS: Final = ("agent", "search", "files", "web", "tables", "python", "memory")


def expand_toolsets(names: Iterable[str]) -> frozenset[str]:
    """The toolsets that `names` choose; `all` and `default` stand for several.

    Raises `BadRequestError` for an unknown name, or for none.
    """
    chosen: set[str] = set()
    for name in names:
        if name not in (ALL, DEFAULT, *TOOLSETS):
            toolset_names = ", ".join((DEFAULT, ALL, *TOOLSETS))
            raise BadRequestError(f"there is no toolset {name[:40]!r}; known: {toolset_names}", param=QUERY_PARAMETER)
        chosen.update(TOOLSETS if name == ALL else DEFAULT_TOOLSETS if name == DEFAULT else (name,))
    if not chosen:
        raise BadRequestError("name at least one toolset, or leave the parameter out", param=QUERY_PARAMETER)
    return frozenset(chosen)


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def get_toolset(spec: ToolSpec) -> str:
    """The toolset of a registered tool."""
    if is_foreign(spec):
        return EXTERNAL
    if spec.origin != "builtin":
        return GENERATED
    return find_named_toolset(spec.name)


def find_named_toolset(name: str) -> str:
    """The toolset that names this tool of ours, or `other`."""
    return next((key for key, toolset in TOOLSETS.items() if name in toolset.tools), OTHER)

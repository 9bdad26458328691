"""Tools: foreign MCP servers, files, web pages, programs."""

from typing import Literal

from pydantic import BaseModel, Field

from agent.core.settings.field_types import HttpUrl, NameList, PathList


class ToolSettings(BaseModel):
    """Tools: foreign MCP servers, files, web pages, programs."""

    mcp_toolsets: NameList = Field(
        default=("default",),
        description="the toolsets that /mcp and `stepgate mcp` list, such as default,schedules (docs/mcp-tools.md); "
        "other tools stay callable, and tools_find finds them",
    )
    allow_programs: bool = Field(
        default=False,
        description="whether callers without an API key may add MCP servers that start a program on this machine: a "
        "person then approves the command. If false, only keys with the scope admin and the command line may",
    )
    mcp_pin: Literal["first_use", "review", "off"] = Field(
        default="first_use",
        description=(
            "when the tools of foreign MCP servers are accepted: on first use, only after `stepgate "
            "mcp-servers review`, or off: always, as they are offered"
        ),
    )
    file_roots: PathList = Field(
        default=(), description="folders that the file tools may read; unset: <data_dir>/files"
    )
    fetcher_url: HttpUrl | None = Field(default=None, description="fetcher service that web_fetch uses")
    fetch_allow_hosts: NameList = Field(
        default=(),
        description="host[:port] names that web_fetch, connectors and webhooks may reach although they are private",
    )
    tool_timeout_s: float = Field(default=60, gt=0, description="time limit of a tool call, in seconds")
    tool_max_retries: int = Field(
        default=1, ge=0, le=5, description="further attempts of a tool call without side effects whose connection broke"
    )
    tool_retry_backoff_s: float = Field(
        default=0.2,
        ge=0,
        le=60,
        description="wait before the first of these attempts, in seconds; doubled for each further one",
    )
    tool_output_chars: int = Field(
        default=200_000, ge=1000, description="longest tool result that is stored, in characters"
    )
    run_python: Literal["auto", "off"] = Field(
        default="auto", description="whether plans may run Python programs: auto: where the machine can sandbox them"
    )

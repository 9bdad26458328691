"""The resources of an external server as two tools: `list_resources` and `read_resource`, prefixed by the server's
name.

So plans can follow a link in a result, and so can our clients, which know no other server. Operators pin and select
them like the server's own tools. They send the protocol's resource requests, which only read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.content_blocks import MAX_URI_CHARS
from agent.core.models import JsonObject
from mcp_tools.client.remote_tool import make_definition
from mcp_tools.client.sanitize import sanitize_text
from mcp_tools.client.tool_pins import ToolDefinition

MAX_LISTED = 200
"""Resources and templates in one result, each."""
MAX_PAGES = 50
"""Pages of a server's list that are read, because a list might never end."""
PROBE_SECONDS = 5.0
"""How long to wait for whether a server has resources; its tools are not registered before."""
MAX_TEXT_CHARS = 300

ListPage = Callable[..., Awaitable[types.ListResourcesResult | types.ListResourceTemplatesResult]]
"""Requests the page at a cursor."""

_READ_HINTS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
)
LIST_TOOL = types.Tool(  # both texts are pinned: a changed one would be quarantined in every installation
    name="list_resources",
    description="Lists the resources of this server (files, pages, records) with their URIs, for read_resource.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 200, "description": "only those whose name or URI has this in it"}
        },
    },
    annotations=_READ_HINTS,
)
READ_TOOL = types.Tool(
    name="read_resource",
    description="Reads a resource of this server by its URI: one that list_resources lists, or that a result of the "
    "server's tools links to.",
    input_schema={
        "type": "object",
        "properties": {"uri": {"type": "string", "minLength": 1, "maxLength": MAX_URI_CHARS, "description": "its URI"}},
        "required": ["uri"],
    },
    annotations=_READ_HINTS,
)


_DEFINITIONS = (make_definition(LIST_TOOL), make_definition(READ_TOOL))


def is_resource_tool(definition: ToolDefinition) -> bool:
    """Whether this is one of these two definitions. A server's own tool with the same definition counts too."""
    return definition in _DEFINITIONS


async def find_resource_tools(client: Client, own: Sequence[types.Tool]) -> list[types.Tool]:
    """The two tools if the server declares resources and has any; some SDKs always declare them.

    A tool of the server with the same name takes precedence.
    """
    declared = client.server_capabilities.resources is not None
    if not declared or not await _has_resources(client):
        return []
    return [tool for tool in (LIST_TOOL, READ_TOOL) if tool.name not in {other.name for other in own}]


async def call_resource_tool(client: Client, definition: ToolDefinition, args: JsonObject) -> types.CallToolResult:
    """Executes a call of one of these tools. Raises what the client raises."""
    if definition == _DEFINITIONS[0]:
        return await _list_resources(client, str(args.get("query", "")))
    read = await client.read_resource(str(args["uri"]), cache_mode="bypass")
    return types.CallToolResult(
        content=[types.EmbeddedResource(type="resource", resource=one) for one in read.contents]
    )


async def _has_resources(client: Client) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            if (await client.list_resources(cache_mode="bypass")).resources:
                return True
            return bool((await client.list_resource_templates(cache_mode="bypass")).resource_templates)
    except (MCPError, ValidationError, RuntimeError, TimeoutError):  # without resources the server is still usable
        return False


async def _list_resources(client: Client, query: str) -> types.CallToolResult:
    """The resources and templates, as lines and as structured content."""
    resources, more = await _filter_pages(client.list_resources, query)
    try:
        templates, others = await _filter_pages(client.list_resource_templates, query)
    except MCPError:  # few servers have templates, and some do not know the request
        templates, others = [], 0
    lines = [_format_resource(one) for one in (*resources, *templates)] or ["No resources."]
    if more or others:
        lines.append(f"[{more + others:,} more; find them with query]")
    structured: JsonObject = {"resources": [*resources], "templates": [*templates]}
    if more or others:
        structured["more"] = more + others
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines))], structured_content=structured
    )


async def _filter_pages(list_page: ListPage, query: str) -> tuple[list[JsonObject], int]:
    """The entries that match the query, and how many more there are."""
    pages: list[JsonObject] = []
    more = 0
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await list_page(cursor=cursor, cache_mode="bypass")
        for one in page.resources if isinstance(page, types.ListResourcesResult) else page.resource_templates:
            described = _describe_resource(one)
            if (
                described is None
                or query.lower()
                not in f"{described['name']} {described.get('uri', described.get('uriTemplate'))}".lower()
            ):
                continue
            if len(pages) < MAX_LISTED:
                pages.append(described)
            else:
                more += 1
        if not (cursor := page.next_cursor):
            break
    return pages, more


def _describe_resource(one: types.Resource | types.ResourceTemplate) -> JsonObject | None:
    """An entry's sanitized description; None if its URI hides characters or is too long."""
    where = {"uri": one.uri} if isinstance(one, types.Resource) else {"uriTemplate": one.uri_template}
    address = next(iter(where.values()))
    if len(address) > MAX_URI_CHARS or sanitize_text(address).text != address:
        return None
    names = {"name": one.title or one.name, "description": one.description, "mimeType": one.mime_type}
    texts: JsonObject = {key: sanitize_text(text[:MAX_TEXT_CHARS]).text for key, text in names.items() if text}
    size = one.size if isinstance(one, types.Resource) else None
    return {**where, "name": "", **texts, **({} if size is None else {"size": size})}


def _format_resource(described: JsonObject) -> str:
    size = f"{described['size']:,} bytes" if "size" in described else ""
    about = ", ".join(str(part) for part in (described["name"], described.get("mimeType"), size) if part)
    description = f". {described['description']}" if described.get("description") else ""
    return f"- {described.get('uri', described.get('uriTemplate'))}: {about}{description}"

"""The resources of a foreign server as two tools of ours, `list_resources` and `read_resource` after the server's name:
plans can follow a link that a result holds, and clients of ours that know no other server can too.

They are offered, pinned and chosen by the operator like the server's own tools. What they do is asked for by the
protocol's requests for resources, which only read.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.content import URI_CHARS
from agent.core.models import JsonObject
from mcp_tools.hub_tool import definition_of
from mcp_tools.pins import Definition
from mcp_tools.sanitize import cleaned

LISTED = 200
"""Resources, and templates, that one listing tells."""
MAX_PAGES = 50
"""Pages of a server's list that are looked through; one without an end must not be followed for ever."""
PROBE_SECONDS = 5.0
"""How long a server has to say whether it has resources: its tools do not wait for longer."""
WORD_CHARS = 300

_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
LIST = types.Tool(  # the words of both are pinned: with others they would be in quarantine everywhere
    name="list_resources",
    description="Lists the resources of this server (files, pages, records) with their URIs, for read_resource.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 200, "description": "only those whose name or URI has this in it"}
        },
    },
    annotations=_READS,
)
READ = types.Tool(
    name="read_resource",
    description="Reads a resource of this server by its URI: one that list_resources tells, or that a result of the "
    "server's tools links to.",
    input_schema={
        "type": "object",
        "properties": {"uri": {"type": "string", "minLength": 1, "maxLength": URI_CHARS, "description": "its URI"}},
        "required": ["uri"],
    },
    annotations=_READS,
)


_OURS = (definition_of(LIST), definition_of(READ))


def is_ours(definition: Definition) -> bool:
    """Whether it is one of these two. A server that offers the very same is asked for its resources all the same."""
    return definition in _OURS


async def resource_tools(client: Client, own: Sequence[types.Tool]) -> list[types.Tool]:
    """These tools for a server that declares resources and has any, as every server on some SDKs declares them. A name
    that the server gave to a tool of its own stays that tool's."""
    declared = client.server_capabilities.resources is not None
    if not declared or not await _has_any(client):
        return []
    return [tool for tool in (LIST, READ) if tool.name not in {other.name for other in own}]


async def answered(client: Client, definition: Definition, args: JsonObject) -> types.CallToolResult:
    """What one of these tools returns. Raises what the client raises."""
    if definition == _OURS[0]:
        return await _listed(client, str(args.get("query", "")))
    read = await client.read_resource(str(args["uri"]), cache_mode="bypass")
    return types.CallToolResult(
        content=[types.EmbeddedResource(type="resource", resource=one) for one in read.contents]
    )


async def _has_any(client: Client) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            if (await client.list_resources(cache_mode="bypass")).resources:
                return True
            return bool((await client.list_resource_templates(cache_mode="bypass")).resource_templates)
    except (MCPError, ValidationError, RuntimeError, TimeoutError):  # whatever is wrong: it is no reason to be down
        return False


async def _listed(client: Client, query: str) -> types.CallToolResult:
    """The resources and the templates, as lines and as data."""
    resources, more = await _found(_resources(client), query)
    try:
        templates, others = await _found(_templates(client), query)
    except MCPError:  # few servers have any, and some do not know the request
        templates, others = [], 0
    lines = [_line(one) for one in (*resources, *templates)] or ["There is none."]
    if more or others:
        lines.append(f"[{more + others:,} more; look for them with query]")
    structured = {"resources": resources, "templates": templates, "more": more + others}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines))], structured_content=structured
    )


async def _found(
    pages: AsyncIterator[Sequence[types.Resource | types.ResourceTemplate]], query: str
) -> tuple[list[JsonObject], int]:
    """Those that are meant, and how many more there are."""
    found: list[JsonObject] = []
    more = 0
    async for page in pages:
        for one in page:
            told = _told(one)
            if (
                told is None
                or query.lower() not in f"{told['name']} {told.get('uri', told.get('uriTemplate'))}".lower()
            ):
                continue
            if len(found) < LISTED:
                found.append(told)
            else:
                more += 1
    return found, more


async def _resources(client: Client) -> AsyncIterator[Sequence[types.Resource]]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_resources(cursor=cursor, cache_mode="bypass")
        yield page.resources
        if not (cursor := page.next_cursor):
            return


async def _templates(client: Client) -> AsyncIterator[Sequence[types.ResourceTemplate]]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_resource_templates(cursor=cursor, cache_mode="bypass")
        yield page.resource_templates
        if not (cursor := page.next_cursor):
            return


def _told(one: types.Resource | types.ResourceTemplate) -> JsonObject | None:
    """What is told of one; nothing of one whose address hides something, or is too long to be read."""
    where = {"uri": one.uri} if isinstance(one, types.Resource) else {"uriTemplate": one.uri_template}
    address = next(iter(where.values()))
    if len(address) > URI_CHARS or cleaned(address).text != address:
        return None
    words = {"name": one.title or one.name, "description": one.description, "mimeType": one.mime_type}
    said: JsonObject = {key: cleaned(text[:WORD_CHARS]).text for key, text in words.items() if text}
    size = one.size if isinstance(one, types.Resource) else None
    return {**where, "name": "", **said, **({} if size is None else {"size": size})}


def _line(told: JsonObject) -> str:
    size = f"{told['size']:,} bytes" if "size" in told else ""
    about = ", ".join(str(part) for part in (told["name"], told.get("mimeType"), size) if part)
    description = f". {told['description']}" if told.get("description") else ""
    return f"- {told.get('uri', told.get('uriTemplate'))}: {about}{description}"

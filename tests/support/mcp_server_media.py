"""Somebody else's MCP server with pictures, sound, resources and long work: `python -m tests.support.mcp_server_media
stdio|PORT [own]`. It is written on the SDK's low level, so that every block goes out as it stands here. With `own` it
has a tool that is called `read_resource`.
"""

import asyncio
import base64
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PIXEL = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256)) * 16
DATA = base64.b64encode(PIXEL).decode()
LINK = "notes://drafts/7"
SHOWN: list[types.ContentBlock] = [
    types.TextContent(type="text", text="two things:", annotations=types.Annotations(audience=["user"], priority=0.5)),
    types.ImageContent(type="image", data=DATA, mime_type="image/png", _meta={"example.org/of": "x"}),
    types.AudioContent(type="audio", data=DATA, mime_type="audio/wav"),
    types.EmbeddedResource(
        type="resource",
        resource=types.TextResourceContents(uri="notes://plan", mime_type="text/markdown", text="# The plan"),
    ),
    types.EmbeddedResource(
        type="resource", resource=types.BlobResourceContents(uri="notes://scan", mime_type="application/pdf", blob=DATA)
    ),
    types.ResourceLink(type="resource_link", uri=LINK, name="a draft", mime_type="text/plain", size=12),
]
"""What the tool `show` returns."""
TEXTS = {"notes://readme": "Read me first.", LINK: "The draft says 4711.", "notes://page/3": "Page three."}
BYTES = {"notes://logo": DATA}
LISTED = [
    types.Resource(uri="notes://readme", name="readme", description="How to begin.<!-- hidden -->"),
    types.Resource(uri="notes://logo", name="logo", mime_type="image/png", size=len(PIXEL)),
]
Context = ServerRequestContext[Any, Any]


async def _show(_: Context, __: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=SHOWN)


async def _pictures(_: Context, args: dict[str, Any]) -> types.CallToolResult:
    data = base64.b64encode(bytes(args["size"])).decode()
    picture = types.ImageContent(type="image", data=data, mime_type="image/png")
    return types.CallToolResult(content=[types.TextContent(type="text", text="pictures"), *[picture] * args["count"]])


async def _say(_: Context, args: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text) for text in args["texts"]])


async def _file(_: Context, args: dict[str, Any]) -> types.CallToolResult:
    """A text twice: as it is, and as bytes. It is given as numbers, so that nobody knows it on its way here."""
    text = "".join(map(chr, args["codes"]))
    data = base64.b64encode(text.encode()).decode()
    held = types.BlobResourceContents(uri="notes://file", mime_type="application/octet-stream", blob=data)
    said = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[said, types.EmbeddedResource(type="resource", resource=held)])


async def _work(context: Context, args: dict[str, Any]) -> types.CallToolResult:
    """Says how far it is, forwards and at last backwards. It is done once the file `until` is there: who waits for a
    word of it has it by then. `codes` is that word as numbers, which nobody knows on its way here."""
    count = int(args["count"])
    word = "".join(map(chr, args.get("codes", ()))) or "back\u200b again"
    for done in range(1, count + 1):
        await context.session.report_progress(done, count, f"part {done}")
    await context.session.report_progress(0.5, count, word)
    while not os.path.exists(args["until"]):  # noqa: ASYNC110, ASYNC240, PTH110 - made by the one who waits
        await asyncio.sleep(0.02)
    return types.CallToolResult(content=[types.TextContent(type="text", text="worked")])


TOOLS: dict[str, tuple[Callable[[Context, dict[str, Any]], Awaitable[types.CallToolResult]], dict[str, Any]]] = {
    "show": (_show, {}),
    "pictures": (_pictures, {"size": {"type": "integer"}, "count": {"type": "integer"}}),
    "say": (_say, {"texts": {"type": "array", "items": {"type": "string"}}}),
    "file": (_file, {"codes": {"type": "array", "items": {"type": "integer"}}}),
    "work": (
        _work,
        {
            "count": {"type": "integer"},
            "until": {"type": "string"},
            "codes": {"type": "array", "items": {"type": "integer"}},
        },
    ),
}


async def _own(_: Context, __: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text="its own tool")])


async def _list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    schemas = {name: {"type": "object", "properties": properties} for name, (_, properties) in TOOLS.items()}
    hints = types.ToolAnnotations(read_only_hint=True)
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=schema, annotations=hints) for name, schema in schemas.items()]
    )


async def _call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return await TOOLS[params.name][0](context, params.arguments or {})


async def _list_resources(_: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    """A page for each."""
    at = int(params.cursor) if params is not None and params.cursor else 0
    more = str(at + 1) if at + 1 < len(LISTED) else None
    return types.ListResourcesResult(resources=[LISTED[at]], next_cursor=more)


async def _list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    page = types.ResourceTemplate(uri_template="notes://page/{number}", name="a page")
    return types.ListResourceTemplatesResult(resource_templates=[page])


async def _read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    contents: list[types.TextResourceContents | types.BlobResourceContents] = []
    if uri.startswith("notes://long/"):
        contents.append(types.TextResourceContents(uri=uri, text="x" * int(uri.rpartition("/")[2])))
    if uri in TEXTS:
        contents.append(types.TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri]))
    if uri in BYTES:
        contents.append(types.BlobResourceContents(uri=uri, mime_type="image/png", blob=BYTES[uri]))
    if not contents:
        raise MCPError(-32002, f"there is nothing at {uri}")
    return types.ReadResourceResult(contents=contents)


def build() -> Server[Any]:
    """The server."""
    return Server(
        "media",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
    )


async def _over_stdio() -> None:
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    """Serve."""
    if "own" in sys.argv:
        TOOLS["read_resource"] = (_own, {"uri": {"type": "string"}})
    if sys.argv[1] == "stdio":
        asyncio.run(_over_stdio())
    else:
        uvicorn.run(build().streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]))


if __name__ == "__main__":
    main()

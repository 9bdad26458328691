"""The MCP client side: other people's servers, their tools in our registry as `server__tool`.

One owner task a server: it connects, lists, waits until the connection breaks, and begins again. A broken server
never stops or slows the gateway; its last good list stays, with its status.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from agent.core.errors import ToolError, ToolTimeoutError
from agent.core.models import JsonObject
from agent.tools import ToolAnnotations, ToolContext, ToolRegistry, ToolResult, ToolSpec
from mcp_tools.mcp_config import McpServerConfig
from mcp_tools.schemas import schema_problem

log = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
"""A server that has not answered `initialize` by then is tried again later."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
RELIST_SECONDS = 300.0
"""How often the list is fetched again from a server that announces no changes."""
WAIT_FOR_SERVER_S = 5.0
"""How long a call waits for a server that is just coming back."""
MAX_NAME = 48
MAX_DESCRIPTION = 1_000
MAX_TOOLS = 500

Status = Literal["connecting", "ready", "down", "disabled"]


@dataclass
class _Connection:
    """The live client of a server, and the event that ends it."""

    client: Client
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class McpServer:
    """One server: its owner task, its status, its tools."""

    def __init__(self, name: str, config: McpServerConfig, registry: ToolRegistry, cache: Path) -> None:
        self.name = name
        self.config = config
        self.status: Status = "disabled" if config.disabled else "connecting"
        self.reason = ""
        self.tools: tuple[types.Tool, ...] = ()
        self.left_out: tuple[str, ...] = ()
        """Tools that cannot be used, and why."""
        self._registry = registry
        self._cache = cache / f"{_plain(name)}.json"
        self._connection: _Connection | None = None
        self._ready = asyncio.Event()

    async def own(self) -> None:
        """Connect, serve, and begin again, until cancelled."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self._serve_once()
                pause = FIRST_PAUSE_S
            except Exception as error:  # noqa: BLE001 - the border to foreign code: whatever breaks is its status
                self._down(_cause(error))
                log.warning("MCP server %r is down: %s", self.name, self.reason)
                pause = min(LONGEST_PAUSE_S, 2 * pause)
            await asyncio.sleep(pause)

    async def call(self, tool: str, args: JsonObject, key: str) -> types.CallToolResult:
        """Call a tool of this server. Raises `ToolError` saying what is wrong with it."""
        connection = await self._connected()
        try:
            meta = types.RequestParamsMeta(**{"stepgate/idempotencyKey": key})  # type: ignore[typeddict-unknown-key]
            return await connection.client.call_tool(tool, args, read_timeout_seconds=self.config.timeout, meta=meta)
        except MCPError as error:
            if "terminated" in error.error.message.lower() or "closed" in error.error.message.lower():
                connection.broken.set()  # a server that was restarted says so for ever: the client is made anew
            if "timed out" in error.error.message.lower():
                raise ToolTimeoutError(f"{self.name} did not answer within {self.config.timeout:g} s") from error
            raise ToolError(f"MCP server {self.name!r}: {error.error.message[:500]}", agent_id=self.name) from error
        except (RuntimeError, ValidationError) as error:  # a result that breaks the server's own schema
            raise ToolError(
                f"MCP server {self.name!r} answered wrongly: {_cause(error)}", agent_id=self.name
            ) from error
        except Exception as error:
            connection.broken.set()
            raise ToolError(f"MCP server {self.name!r} broke off: {_cause(error)}", agent_id=self.name) from error

    async def _connected(self) -> _Connection:
        try:
            async with asyncio.timeout(WAIT_FOR_SERVER_S):
                await self._ready.wait()
        except TimeoutError as error:
            why = self.reason or "it has not answered yet"
            raise ToolError(
                f"MCP server {self.name!r} is {self.status}: {why}; see `stepgate mcp-servers test {self.name}`",
                agent_id=self.name,
            ) from error
        if self._connection is None:
            raise ToolError(f"MCP server {self.name!r} is down: {self.reason}", agent_id=self.name)
        return self._connection

    async def _serve_once(self) -> None:
        """One connection, from its making to its end. Opened and closed here, in the owner's own task."""
        self.status = "connecting"
        async with asyncio.timeout(CONNECT_SECONDS) as limit:
            client = make_client(self.config, self._message)
            async with client:
                connection = _Connection(client)
                await self._list(connection)
                limit.reschedule(None)
                self._connection, self.status, self.reason = connection, "ready", "; ".join(self.left_out)
                self._ready.set()
                try:
                    await self._watch(connection)
                finally:
                    self._ready.clear()
                    self._connection = None

    async def _watch(self, connection: _Connection) -> None:
        """Follow list changes until the connection breaks."""
        broken = asyncio.ensure_future(connection.broken.wait())
        try:
            while not broken.done():
                changed = asyncio.ensure_future(connection.changed.wait())
                await asyncio.wait((broken, changed), timeout=RELIST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if not broken.done():
                    connection.changed.clear()
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await self._list(connection)
        finally:
            broken.cancel()
        raise ConnectionError("the connection was lost")

    async def _list(self, connection: _Connection) -> None:
        tools: list[types.Tool] = []
        cursor: str | None = None
        while len(tools) < MAX_TOOLS:
            page = await connection.client.list_tools(cursor=cursor, cache_mode="bypass")
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        self._mount(tuple(tools[:MAX_TOOLS]))
        self._remember()

    async def _message(self, message: object) -> None:
        connection = self._connection
        if connection is None:
            return
        if isinstance(message, types.ToolListChangedNotification):
            connection.changed.set()
        elif isinstance(message, Exception):
            connection.broken.set()

    def _mount(self, tools: tuple[types.Tool, ...]) -> None:
        """Put the tools into the registry in place of the earlier ones."""
        admitted = [tool for tool in tools if self.config.tools.admits(tool.name)]
        problems = {t.name: schema_problem(t.input_schema) or schema_problem(t.output_schema) for t in admitted}
        self.tools = tuple(tool for tool in admitted if problems[tool.name] is None)
        self.left_out = tuple(f"{name}: {problem}" for name, problem in problems.items() if problem is not None)
        for line in self.left_out:
            log.warning("MCP server %r: a tool is left out, %s", self.name, line)
        taken: dict[str, McpTool] = {}
        for tool in self.tools:
            mounted = McpTool(self, tool)
            taken.setdefault(mounted.spec.name, mounted)
        self._registry.replace(self.origin, taken.values())

    @property
    def origin(self) -> str:
        """What the registry knows this server's tools by."""
        return f"mcp:{self.name}"

    def _down(self, reason: str) -> None:
        self.status, self.reason = "down", reason

    def _remember(self) -> None:
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        data = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self.tools]
        self._cache.write_text(json.dumps(data), "utf-8")

    def recall(self) -> None:
        """Mount the last good list: plans may be made before the server has answered."""
        self._mount(self._remembered())

    def _remembered(self) -> tuple[types.Tool, ...]:
        """The last good list; none where there is none that can be read."""
        try:
            return tuple(types.Tool.model_validate(item) for item in json.loads(self._cache.read_text("utf-8")))
        except (OSError, ValueError):
            return ()


class McpTool:
    """A foreign tool as our own registry knows it. Its results come from outside."""

    def __init__(self, server: McpServer, tool: types.Tool) -> None:
        self._server = server
        self._tool = tool
        self._spec = ToolSpec(
            name=mounted_name(server.name, tool.name),
            description=visible(tool.description or tool.title or tool.name)[:MAX_DESCRIPTION],
            input_schema=_object_schema(tool.input_schema),
            output_schema=tool.output_schema,
            annotations=_hints(tool.annotations, trusted=server.config.trusted),
            tainted=True,
            timeout_s=server.config.timeout + WAIT_FOR_SERVER_S,
            origin=server.origin,
        )

    @property
    def spec(self) -> ToolSpec:
        """What is known of it."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Call it at its server."""
        result = await self._server.call(self._tool.name, args, context.key)
        text = "\n".join(_block_text(block) for block in result.content)
        if result.is_error:
            raise ToolError(text[:2_000] or f"{self._spec.name} failed without a message", agent_id=self._spec.name)
        value: Any = result.structured_content if result.structured_content is not None else text
        return ToolResult(value, text or json.dumps(value, ensure_ascii=False))

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """MCP has no way to ask what became of a call."""
        return None


class McpHub:
    """All configured servers."""

    def __init__(self, servers: Mapping[str, McpServerConfig], registry: ToolRegistry, cache: Path) -> None:
        self.servers = {name: McpServer(name, config, registry, cache) for name, config in servers.items()}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to connect; returns at once."""
        for server in self.servers.values():
            if server.status != "disabled":
                server.recall()
                self._tasks.append(asyncio.create_task(server.own(), name=f"mcp {server.name}"))

    async def aclose(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)


def make_client(config: McpServerConfig, handler: Any = None) -> Client:
    """A client for a server, not yet connected."""
    if config.transport == "stdio":
        parameters = StdioServerParameters(
            command=config.command, args=list(config.args), env=dict(config.env), cwd=config.cwd
        )
        return Client(parameters, message_handler=handler, read_timeout_seconds=config.timeout)
    headers = dict(config.headers)
    if config.transport == "sse":
        return Client(sse_client(config.url, headers), message_handler=handler, read_timeout_seconds=config.timeout)
    return Client(_http(config, headers), message_handler=handler, read_timeout_seconds=config.timeout)


@asynccontextmanager
async def _http(config: McpServerConfig, headers: dict[str, str]) -> AsyncIterator[TransportStreams]:
    """Streamable HTTP with our headers; the SDK leaves a client it was given to its owner to close."""
    limits = httpx2.Timeout(config.timeout, connect=CONNECT_SECONDS)
    async with (
        create_mcp_http_client(headers, timeout=limits) as http,
        streamable_http_client(config.url, http_client=http) as streams,
    ):
        yield streams


def mounted_name(server: str, tool: str) -> str:
    """`server__tool` in our alphabet, at most 48 characters; a stable hash where something had to go."""
    name = f"{_plain(server)}__{_plain(tool)}"
    exact = name == f"{server}__{tool}" or name == f"{server}__{tool}".lower().replace("-", "_")
    if not name[0].isalpha():
        name = f"m{name}"
    if len(name) <= MAX_NAME and exact:
        return name
    digest = hashlib.sha256(f"{server}\x00{tool}".encode()).hexdigest()[:6]
    return f"{name[: MAX_NAME - 7]}_{digest}"


def visible(text: str) -> str:
    """Foreign text without what people cannot see: comments of HTML and invisible characters."""
    plain = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return "".join(char for char in plain if char.isprintable() or char in "\n\t").strip()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "x"


def _object_schema(schema: Mapping[str, Any]) -> JsonObject:
    return {"type": "object", "properties": {}, **dict(schema)}


def _hints(hints: types.ToolAnnotations | None, *, trusted: bool) -> ToolAnnotations:
    """The server's hints where the operator trusts it; else the worst."""
    if hints is None or not trusted:
        return ToolAnnotations()
    return ToolAnnotations(
        read_only=bool(hints.read_only_hint),
        destructive=hints.destructive_hint is not False,
        idempotent=bool(hints.idempotent_hint),
        open_world=hints.open_world_hint is not False,
    )


def _block_text(block: object) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    if isinstance(block, types.ResourceLink):
        return f"[{block.name}]({block.uri})"
    return f"[{getattr(block, 'type', 'content')} that is no text]"


def _cause(error: BaseException) -> str:
    """The innermost reason in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:g} s"
    return " ".join(str(error).split())[:300] or type(error).__name__

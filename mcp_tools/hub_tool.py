"""One tool of a foreign MCP server, as our registry knows it: its name, its cleaned texts, its calls."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types

from agent.core.content import is_told, told
from agent.core.errors import ToolError
from agent.core.models import JsonObject
from agent.tools import ToolAnnotations, ToolContext, ToolResult, ToolSpec
from mcp_tools.mcp_config import McpServerConfig
from mcp_tools.pins import Definition
from mcp_tools.sanitize import cleaned, cleaned_schema, hiding_problem
from mcp_tools.schemas import MAX_CHARS, schema_problem

Told = Callable[[str], None]
"""Hears a line about what is being done."""

WAIT_FOR_SERVER_S = 5.0
"""How long a call waits for a server that is just coming back."""
WAIT_FOR_START_S = 15.0
"""How long a call waits for one that was stopped while nobody used it: it has to load."""
MAX_NAME = 48
MAX_DESCRIPTION = 1_000
MAX_ERROR = 2_000


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """One call, as its server is asked for it."""

    tool: str
    """As the server calls it."""
    definition: Definition
    """What the tool was when the caller got hold of it."""
    args: JsonObject
    key: str
    """The idempotency key."""
    told: Told
    """Hears what the server says of its progress."""


class ToolServer(Protocol):
    """What a tool needs of its server."""

    name: str
    config: McpServerConfig

    @property
    def origin(self) -> str:
        """What the registry knows the server's tools by."""
        ...

    async def call(self, call: ForeignCall) -> types.CallToolResult:
        """Call a tool, if it is still what it was when it was mounted. Raises `ToolError`."""
        ...


class McpTool:
    """A foreign tool as our own registry knows it. Its results come from outside."""

    def __init__(self, server: ToolServer, tool: types.Tool, *, believed: bool = False) -> None:
        """`believed`: its hints hold, whether the server is trusted or not."""
        self._server = server
        self._tool = tool
        self._definition = definition_of(tool)
        choice = server.config.tools
        self._defaults = choice.defaults.get(tool.name, {})
        self._spec = ToolSpec(
            name=mounted_name(server.name, choice.called(tool.name)),
            description=(choice.describe.get(tool.name) or _described(tool))[:MAX_DESCRIPTION],
            input_schema=_optional(
                {"type": "object", "properties": {}, **cleaned_schema(tool.input_schema)}, self._defaults
            ),
            asks=choice.asks(tool.name),
            output_schema=_clean(tool.output_schema),
            annotations=_hints(tool.annotations, trusted=believed or server.config.trusted),
            tainted=True,
            timeout_s=server.config.timeout + patience_with(server.config),
            origin=server.origin,
        )

    @property
    def spec(self) -> ToolSpec:
        """What is known of it."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Call it at its server."""
        given = {**self._defaults, **args}

        def tell(line: str) -> None:
            context.told(f"{self._spec.name}: {line}")

        result = await self._server.call(ForeignCall(self._tool.name, self._definition, given, context.key, tell))
        content = blocks_of(result.content)
        text = "\n".join(told(block) for block in content)
        if result.is_error:
            said = cleaned(text[:MAX_ERROR]).text  # it reaches answers and terminals as it is
            raise ToolError(said or f"{self._spec.name} failed without a message", agent_id=self._spec.name)
        value: Any = result.structured_content if result.structured_content is not None else text
        text = text or ("" if self._is_hollow(value) else json.dumps(value, ensure_ascii=False))
        return ToolResult(value, text, content=() if is_told(content) else content)

    def _is_hollow(self, value: Any) -> bool:
        """Whether an object only wraps that there was nothing: some servers put a result that is no object under the
        key `result`. A tool that never returns anything is not empty for that."""
        if not isinstance(value, dict) or value.keys() != {"result"} or value["result"] not in ("", None):
            return False
        properties = (self._tool.output_schema or {}).get("properties")
        wrapped = properties.get("result") if isinstance(properties, dict) else None
        return not (isinstance(wrapped, dict) and wrapped.get("type") == "null")

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """MCP has no way to ask what became of a call."""
        return None


def blocks_of(content: Iterable[types.ContentBlock]) -> tuple[JsonObject, ...]:
    """The blocks as they came over the wire."""
    return tuple(block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in content)


def patience_with(config: McpServerConfig) -> float:
    """How long a call waits for the server of this entry, in seconds."""
    return WAIT_FOR_SERVER_S if config.idle_stop is None else WAIT_FOR_START_S


def tool_problem(tool: types.Tool) -> str | None:
    """Why a tool cannot be used, in a few words; None for a sound one."""
    if max(len(tool.name), len(tool.title or ""), len(tool.description or "")) > MAX_CHARS:
        return f"its description is longer than {MAX_CHARS:,} characters"
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it can only be called as a task of the protocol's 2025 draft, which is not supported"
    problem = schema_problem(tool.input_schema) or schema_problem(tool.output_schema)
    if problem is not None:
        return problem
    try:
        definition_of(tool)
        return next(
            filter(None, (hiding_problem(_clean(one)) for one in (tool.input_schema, tool.output_schema))), None
        )
    except (RecursionError, ValueError):
        return "its description cannot be read"


def definition_of(tool: types.Tool) -> Definition:
    """What the tool is pinned by. ValueError for what JSON cannot hold."""
    hints = tool.annotations
    parts = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": None if hints is None else hints.model_dump(by_alias=True, exclude_none=True),
    }
    return Definition.of({part: value for part, value in parts.items() if value is not None})


def arguments_of(tool: types.Tool) -> frozenset[str]:
    """The names of the arguments a tool takes."""
    properties = tool.input_schema.get("properties")
    return frozenset(properties if isinstance(properties, dict) else ())


def _optional(schema: JsonObject, defaults: Collection[str]) -> JsonObject:
    """The schema with arguments that have a default of the operator's left to it: they need not be given."""
    required = schema.get("required")
    if not defaults or not isinstance(required, list):
        return schema
    return {**schema, "required": [name for name in required if name not in defaults]}


def _clean(schema: Mapping[str, Any] | None) -> JsonObject | None:
    return None if schema is None else cleaned_schema(schema)


def mounted_name(server: str, tool: str) -> str:
    """`server__tool` in our alphabet, at most 48 characters; a stable hash where something had to go."""
    name = f"{plain(server)}__{plain(tool)}"
    exact = name == f"{server}__{tool}" or name == f"{server}__{tool}".lower().replace("-", "_")
    if not name[0].isalpha():
        name = f"m{name}"
    if len(name) <= MAX_NAME and exact:
        return name
    digest = hashlib.sha256(f"{server}\x00{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{name[: MAX_NAME - 7]}_{digest}"


def plain(name: str) -> str:
    """A name in the alphabet of our tools' names."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "x"


def _described(tool: types.Tool) -> str:
    """What the tool says of itself, without what cannot be seen; its name where it says nothing."""
    texts = (cleaned(text).text for text in (tool.description, tool.title, tool.name) if text)
    return next(filter(None, texts), "")


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

"""One tool of an external MCP server as a tool of our registry: name, sanitized texts, calls."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types
from pydantic import JsonValue

from agent.core.client_requests import AskClient, refuse_client_request
from agent.core.content_blocks import decode_text_resource, is_plain_text
from agent.core.errors import ToolError
from agent.core.json_schema import get_properties
from agent.core.models import ArgumentRole, JsonObject, ToolOverrides
from agent.tools import ToolAnnotations, ToolContext, ToolResult, ToolSpec
from agent.tools.catalogue import split_name
from agent.tools.declared_arguments import collect_arguments, iter_nested_schemas
from agent.tools.external_schema import MAX_CHARS, find_schema_problem
from mcp_tools.client.config import McpServerConfig, to_tool_alphabet
from mcp_tools.client.lenient_messages import find_words
from mcp_tools.client.sanitize import find_hidden_characters, sanitize_schema, sanitize_text
from mcp_tools.client.schema_dialects import convert_input_schema, convert_schema
from mcp_tools.client.schema_repair import repair_schema
from mcp_tools.client.structured_text import build_text
from mcp_tools.client.tool_pins import ToolDefinition

ReportProgress = Callable[[str], None]
"""Receives a line about the progress of a call."""

WAIT_FOR_SERVER_S = 5.0
"""How long a call waits for a server that is down or at a URL. For a command that is starting it waits as long as the
start may take."""
MAX_PROGRESS_LIMITS = 10
"""How many times its limit a call may take while the server reports progress: each report starts the limit again, and a
server could report for ever."""
MAX_TOOL_NAME = 48
MAX_DESCRIPTION = 1_000
MAX_ERROR = 2_000
_ADDRESS_FORMATS = frozenset({"uri", "url", "iri", "uri-reference", "iri-reference"})


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """One call of a server's tool."""

    tool: str
    """The server's name of the tool."""
    definition: ToolDefinition
    """The tool's definition when the caller looked it up."""
    args: JsonObject
    idempotency_key: str
    """The idempotency key."""
    report_progress: ReportProgress
    """Receives the server's progress."""
    ask_client: AskClient = refuse_client_request
    """Asks the client that waits for the run."""
    may_change: bool = True
    """Whether the call may change something, so that a lost answer leaves its outcome open. A server's word that it
    does not counts here without trust: a lie could only repeat what the server does anyway."""


class ToolServer(Protocol):
    """The part of a server that its tools use."""

    name: str
    config: McpServerConfig

    @property
    def origin(self) -> str:
        """The origin of the server's tools in the registry."""
        ...

    async def call(self, call: RemoteCall) -> types.CallToolResult:
        """Calls a tool if it is unchanged since it was registered. Raises `ToolError`."""
        ...


class McpTool:
    """An external tool. Its results count as text from outside."""

    def __init__(
        self, server: ToolServer, tool: types.Tool, *, hints_trusted: bool = False, has_namesake: bool = False
    ) -> None:
        """`hints_trusted`: its hints are trusted even if the server is not. `has_namesake`: another tool of the server
        has its name in our alphabet."""
        self._server = server
        self._tool = tool
        self._definition = make_definition(tool)
        choice = server.config.tools
        self._defaults = choice.defaults.get(tool.name, {})
        annotations = _convert_hints(tool.annotations, trusted=hints_trusted or server.config.trusted)
        self._spec = ToolSpec(
            name=make_local_tool_name(server.name, choice.get_local_name(tool.name), is_exact=not has_namesake),
            description=(choice.describe.get(tool.name) or _describe_tool(tool))[:MAX_DESCRIPTION],
            input_schema=_make_optional({"properties": {}, **read_input_schema(tool)[0]}, self._defaults),
            requires_approval=choice.needs_approval(tool.name),
            output=_read_output_schema(tool),
            is_output_binding=False,
            annotations=annotations,
            tainted=True,
            timeout_s=get_longest_call_s(server.config.timeout) + get_connect_wait_s(server.config, is_starting=True),
            argument_roles=_find_argument_roles(tool, choice),
            is_open_world=_is_open_world(tool, choice),
            is_trusted_server=server.config.trusted,
            read_claim=_find_read_claim(server, tool, is_believed=hints_trusted),
            origin=server.origin,
            keywords=_list_keywords(tool),
            room=server.config.room,
            room_name=_make_room_name(server, choice.get_local_name(tool.name), is_exact=not has_namesake),
            owner=server.config.owner,
        )

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    async def call(self, args: JsonObject, context: ToolContext) -> ToolResult:
        """Calls the tool at its server."""
        sent_args = {**self._defaults, **args}

        def report(line: str) -> None:
            context.report_progress(f"{self._spec.name}: {line}")

        result = await self._server.call(
            RemoteCall(
                self._tool.name,
                self._definition,
                sent_args,
                context.idempotency_key,
                report,
                context.ask_client,
                self._spec.leaves_outcome_open,
            )
        )
        content = tuple(map(decode_text_resource, dump_blocks(result.content)))
        structured = result.structured_content
        text = build_text(content, structured)
        if result.is_error:
            words = text.strip() or find_words(structured)
            message = sanitize_text(words[:MAX_ERROR]).text  # the message reaches answers and terminals unchanged
            raise ToolError(message or f"{self._spec.name} failed without a message", agent_id=self._spec.name)
        # Some SDKs write an empty object beside every text.
        value: Any = text if content and not structured else structured
        text = text or ("" if value is None or self._is_empty_wrapper(value) else json.dumps(value, ensure_ascii=False))
        return ToolResult(value, text, content=() if is_plain_text(content) else content)

    def _is_empty_wrapper(self, value: Any) -> bool:
        """Whether an object only wraps an empty value: some servers put a result that is not an object under `result`.

        A tool that never returns anything (`type: null`) is not empty for that.
        """
        if not isinstance(value, dict) or value.keys() != {"result"} or value["result"] not in ("", None):
            return False
        wrapped = get_properties(self._tool.output_schema).get("result")
        return not (isinstance(wrapped, dict) and wrapped.get("type") == "null")

    async def reconcile(self, key: str, context: ToolContext) -> ToolResult | None:
        """Always None: MCP does not say what became of an earlier call."""
        return None


def dump_blocks(content: Iterable[types.ContentBlock]) -> tuple[JsonObject, ...]:
    """The content blocks as JSON."""
    return tuple(block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in content)


def get_longest_call_s(timeout: float) -> float:
    """The time that a call of a server with this `timeout` may take if the server reports progress, in seconds."""
    return MAX_PROGRESS_LIMITS * timeout


def get_connect_wait_s(config: McpServerConfig, *, is_starting: bool) -> float:
    """The time in which a call waits for this server to connect, in seconds."""
    if is_starting and config.transport == "stdio":
        return WAIT_FOR_SERVER_S + config.startup_limit_s
    return WAIT_FOR_SERVER_S


def find_tool_problem(tool: types.Tool) -> str | None:
    """The reason why a tool cannot be used, in a few words; None if it can."""
    if max(len(tool.name), len(tool.title or ""), len(tool.description or "")) > MAX_CHARS:
        return f"its description is longer than {MAX_CHARS:,} characters"
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it must be called as a task of the protocol's 2025 draft, which is not supported"
    try:
        given, promised = read_input_schema(tool)[0], _read_output_schema(tool)
        problem = find_schema_problem(given) or find_schema_problem(promised)
        if problem is not None:
            return problem
        make_definition(tool)
        return next(
            filter(
                None,
                (
                    find_hidden_characters(_sanitize_optional_schema(schema))
                    for schema in (tool.input_schema, tool.output_schema)
                ),
            ),
            None,
        )
    except (RecursionError, ValueError):
        return "its description cannot be read"


def make_definition(tool: types.Tool) -> ToolDefinition:
    """The definition by which the tool is pinned. Raises `ValueError` for what JSON cannot hold."""
    hints = tool.annotations
    parts = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": None if hints is None else hints.model_dump(by_alias=True, exclude_none=True),
    }
    return ToolDefinition.from_parts({part: value for part, value in parts.items() if value is not None})


def get_argument_names(tool: types.Tool) -> frozenset[str]:
    """The names of a tool's arguments."""
    return frozenset(get_properties(tool.input_schema))


def _make_optional(schema: JsonObject, defaults: Collection[str]) -> JsonObject:
    """The schema where arguments with an operator's default are not required."""
    required = schema.get("required")
    if not defaults or not isinstance(required, list):
        return schema
    return {**schema, "required": [name for name in required if name not in defaults]}


def read_input_schema(tool: types.Tool) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema of the tool's arguments, and the invalid places in it that were left out."""
    return repair_schema(convert_input_schema(sanitize_schema(tool.input_schema)))


def _read_output_schema(tool: types.Tool) -> JsonObject | None:
    schema = _sanitize_optional_schema(tool.output_schema)
    return None if schema is None else repair_schema(convert_schema(schema))[0]


def _sanitize_optional_schema(schema: Mapping[str, Any] | None) -> JsonObject | None:
    return None if schema is None else sanitize_schema(schema)


def list_namesakes(tools: Iterable[types.Tool], choice: ToolOverrides) -> frozenset[str]:
    """The tools of a server that another one precedes in our alphabet, which knows neither capitals nor hyphens: of
    `get-user`, `get_user` and `Get_User` one keeps the plain name, first the one whose name it is."""
    plain: dict[str, str] = {}
    names = {tool.name: choice.get_local_name(tool.name) for tool in tools}
    for name, local in sorted(names.items(), key=lambda one: (one[1] != _to_plain_name(one[1]), one)):
        plain.setdefault(_to_plain_name(local), name)
    return frozenset(name for name, local in names.items() if plain[_to_plain_name(local)] != name)


def make_local_tool_name(server: str, tool: str, *, is_exact: bool = True) -> str:
    """Builds `server__tool` in our alphabet, at most 48 characters; with a stable hash if anything was changed or
    cut, or unless `is_exact`."""
    name = f"{to_tool_alphabet(server)}__{to_tool_alphabet(tool)}"
    is_exact = is_exact and name in (f"{server}__{tool}", _to_plain_name(f"{server}__{tool}"))
    if not name[0].isalpha():
        name = f"m{name}"
    if len(name) <= MAX_TOOL_NAME and is_exact:
        return name
    digest = hashlib.sha256(f"{server}\x00{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{name[: MAX_TOOL_NAME - 7]}_{digest}"


def _to_plain_name(name: str) -> str:
    return name.lower().replace("-", "_")


def _make_room_name(server: ToolServer, tool: str, *, is_exact: bool) -> str:
    """The name inside of the room whose server it is: without the room's id, which distinguishes servers outside."""
    if server.config.room is None:
        return ""
    return make_local_tool_name(server.name.rpartition("@")[0], tool, is_exact=is_exact)


def _describe_tool(tool: types.Tool) -> str:
    """The tool's sanitized description, else its title, else its name."""
    texts = (sanitize_text(text).text for text in (tool.description, tool.title, tool.name) if text)
    return next(filter(None, texts), "")


def _list_keywords(tool: types.Tool) -> tuple[str, ...]:
    """The words of the server's own name for the tool, which our alphabet has in lower case only, and of its title."""
    texts = (sanitize_text(text).text for text in (tool.name, tool.title) if text)
    return tuple(dict.fromkeys(word for text in texts for word in split_name(text).split()))


def _find_argument_roles(tool: types.Tool, choice: ToolOverrides) -> dict[str, ArgumentRole]:
    """The roles that the operator gives to arguments. Otherwise an argument whose schema says that it is an
    address says where the call goes.
    """
    schema = read_input_schema(tool)[0]
    addresses = [name for name, one in collect_arguments(schema)[0].items() if _holds_address(one, schema)]
    return {**dict.fromkeys(addresses, "where"), **choice.get_argument_roles(tool.name)}


def _holds_address(argument: JsonValue, schema: JsonObject) -> bool:
    """Whether an argument's schema, or that of something within it, has the format of an address."""
    nested = iter_nested_schemas(argument, schema)
    return any(str(one.get("format", "")).lower() in _ADDRESS_FORMATS for one in nested)


def _is_open_world(tool: types.Tool, choice: ToolOverrides) -> bool:
    """Whether the operator or an explicit hint says that the tool reaches others than its server.

    A missing hint says nothing, although the protocol's default is true: nearly every server leaves it out. A hint is
    believed here even if the server is not trusted, because it only adds questions.
    """
    chosen = choice.get_open_world(tool.name)
    if chosen is not None:
        return chosen
    return tool.annotations is not None and tool.annotations.open_world_hint is True


def _find_read_claim(server: ToolServer, tool: types.Tool, *, is_believed: bool) -> str:
    """The server's name if it says that the tool only reads, and nobody vouches for that; else ""."""
    is_trusted = is_believed or server.config.trusted
    claims = tool.annotations is not None and tool.annotations.read_only_hint is True
    return server.name if claims and not is_trusted else ""


def _convert_hints(hints: types.ToolAnnotations | None, *, trusted: bool) -> ToolAnnotations:
    """The server's hints if the operator trusts it; else the most cautious ones."""
    if hints is None or not trusted:
        return ToolAnnotations()
    return ToolAnnotations(
        read_only=bool(hints.read_only_hint),
        destructive=hints.destructive_hint is not False,
        idempotent=bool(hints.idempotent_hint),
        open_world=hints.open_world_hint is not False,
    )

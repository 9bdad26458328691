"""Repairs results of external MCP servers that break the protocol's schema, before the SDK rejects them whole.

One bad entry of a list would cost all tools of a server, and one bad field of a result would report a call as failed
whose effect has happened. `ResultRepairs` wraps a transport: it notes what each request asks for, and repairs the
result that answers it. The server's status says what was left out of a list.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, get_args

import mcp_types as types
from mcp.client._transport import Transport, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from mcp_tools.client.lenient_content import (
    name_contents,
    name_fields,
    repair_call_result,
    repair_contents,
)
from mcp_tools.client.lenient_initialization import complete_initialization
from mcp_tools.client.lenient_messages import BARE_RESULT
from mcp_tools.client.lenient_tools import set_schemas_aside
from mcp_tools.client.response_defaults import CACHE_DEFAULTS, fill_missing_fields
from mcp_tools.client.valid_fields import Validate, is_valid, select_valid_fields
from mcp_tools.mapped_stream import Item, MappedStream, ObservedStream

log = logging.getLogger(__name__)

_PROBE = "server/discover"
_CALLS = ("tools/call", "resources/read")
MAX_OPEN_REQUESTS = 1000
"""Requests whose answer is awaited. An older one was given up, and the SDK ignores its answer."""
LISTS: Mapping[str, tuple[str, str]] = {
    "tools/list": ("tools", "tool"),
    "prompts/list": ("prompts", "prompt"),
    "resources/list": ("resources", "resource"),
    "resources/templates/list": ("resourceTemplates", "resource template"),
}
"""The key of each list, and what an entry is called."""
_REQUIRED_OF_ENTRY = {
    "tools": ("name", "inputSchema"),
    "prompts": ("name",),
    "resources": ("name", "uri"),
    "resourceTemplates": ("name", "uriTemplate"),
}
_LOG_MESSAGE = "notifications/message"
_REQUIRED_OF_NOTIFICATION = frozenset(("data", "level", "progress", "progressToken", "uri"))
_REQUIRED = frozenset(
    ("resultType", "protocolVersion", "capabilities", "serverInfo", "content", "contents", *CACHE_DEFAULTS)
) | {key for key, _ in LISTS.values()}
"""Fields of results that are complete after their repair."""
MAX_FAULTS = 20
"""Faults of one list that are reported."""


class ResultRepairs:
    """The repairs of one server's connections."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._requests: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._version = LATEST_HANDSHAKE_VERSION
        self._faults: list[str] = []
        self.was_probed = False
        """Whether the current connection was asked for the newest protocol, before the handshake of older ones."""
        self.is_probe_unanswered = False
        """Whether that request got no answer, not even an error."""

    def take_faults(self) -> tuple[str, ...]:
        """Takes the notes since the last time: a line for each entry that was left out of a list, or repaired."""
        faults, self._faults = tuple(dict.fromkeys(self._faults)), []
        more = len(faults) - MAX_FAULTS
        return faults if more <= 0 else (*faults[:MAX_FAULTS], f"{more} more entries of its lists are invalid")

    @asynccontextmanager
    async def apply(self, transport: Transport) -> AsyncIterator[TransportStreams]:
        """Opens the transport; results that it receives are valid as far as they can be repaired."""
        self._requests.clear()
        self.was_probed = self.is_probe_unanswered = False
        async with transport as (read, write):
            yield MappedStream(read, self._repair_item), ObservedStream(write, self._note_request)

    def _note_request(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, types.JSONRPCRequest):
            self._requests[str(message.id)] = (message.method, message.params or {})
            if len(self._requests) > MAX_OPEN_REQUESTS:
                del self._requests[next(iter(self._requests))]
            if message.method == _PROBE:
                self.was_probed = self.is_probe_unanswered = True
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._requests.pop(str((message.params or {}).get("requestId")), None)

    def _repair_item(self, item: Item) -> Item | None:
        if not isinstance(item, SessionMessage):
            return item
        message = item.message
        if isinstance(message, types.JSONRPCNotification):
            return item if self._repair_notification(message) else None
        if isinstance(message, types.JSONRPCError) and message.id is None:
            message.id = self._find_failed_request()
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return item
        request = self._requests.pop(str(message.id), None)
        if request is None:
            return item
        method, params = request
        if method == _PROBE:
            self.is_probe_unanswered = False
        if isinstance(message, types.JSONRPCError):
            return item
        result = message.result
        try:
            self._repair_result(method, params, result)
        except (RecursionError, ValueError) as error:  # too deep, or with numbers that JSON has not: the SDK decides
            log.info("MCP server %r: a result of %s cannot be repaired: %s", self._server, method, error)
        return item

    def _repair_notification(self, message: types.JSONRPCNotification) -> bool:
        """Takes the fields off a notification that the SDK would reject it for, each time with a warning and a
        traceback. Returns whether it says anything then."""
        key = (message.method, self._version)
        if key not in methods.SERVER_NOTIFICATIONS:
            return True  # perhaps of an extension

        def validate(params: dict[str, Any]) -> None:
            methods.parse_server_notification(*key, params)

        params = message.params or {}
        if is_valid(params, validate):
            return True
        if message.method == _LOG_MESSAGE and params.get("level") not in get_args(types.LoggingLevel):
            params = {**params, "level": "info"}
        repaired, _ = select_valid_fields(params, _REQUIRED_OF_NOTIFICATION & params.keys(), validate)
        message.params = repaired
        return repaired is not None

    def _find_failed_request(self) -> str | int | None:
        """The id of the request that an error without an id answers: the only open one, if it is a call. Other errors
        may be about a notification, which some servers take for a request."""
        if len(self._requests) != 1:
            return None
        ((number, (method, _)),) = self._requests.items()
        if method not in _CALLS:
            return None
        return int(number) if number.isdecimal() else number

    def _repair_result(self, method: str, params: Mapping[str, Any], result: dict[str, Any]) -> None:
        validate = partial(self._validate, method)
        _complete_fields(method, result)
        if method == "tools/list":
            self._faults += set_schemas_aside(result, validate)
        self._note_version(method, result)
        if is_valid(result, validate):
            return
        if method == "tools/call":
            repair_call_result(result, validate)
        elif method == "resources/read":
            repair_contents(result, str(params.get("uri", "")), validate)
        elif method in LISTS:
            self._faults += _repair_list(result, *LISTS[method], validate)
        repaired, left_out = select_valid_fields(result, _REQUIRED & result.keys(), validate)
        if repaired is not None:
            result.clear()
            result.update(repaired)
        log.info("MCP server %r: a result of %s was repaired (without %s)", self._server, method, left_out or "nothing")

    def _note_version(self, method: str, result: dict[str, Any]) -> None:
        """Notes the protocol version that results are checked against, and completes what the server says of itself."""
        if method == _PROBE:
            self._version = LATEST_MODERN_VERSION
        elif method == "initialize":
            complete_initialization(result, self._server, partial(self._validate, method))
            self._version = str(result["protocolVersion"])

    def _validate(self, method: str, result: Mapping[str, Any]) -> None:
        """Raises `ValidationError` for a result that the SDK would reject."""
        version = self._version if (method, self._version) in methods.SERVER_RESULTS else LATEST_HANDSHAKE_VERSION
        if (method, version) in methods.SERVER_RESULTS:
            methods.parse_server_result(method, version, result)


def _complete_fields(method: str, result: dict[str, Any]) -> None:
    """Gives a result the fields of the protocol, whatever form it has, in place."""
    if BARE_RESULT in result:
        _unwrap(method, result)
    if method == "resources/read":
        name_contents(result)
    fill_missing_fields(result)
    if method == "tools/call":
        name_fields(result)


def _unwrap(method: str, result: dict[str, Any]) -> None:
    """Gives a result that is not an object its place in the object that the method returns."""
    bare = result.pop(BARE_RESULT)
    if method in LISTS:
        result[LISTS[method][0]] = bare
    elif method == "resources/read":
        result["contents"] = bare
    elif method == "tools/call":
        result["content"] = bare if isinstance(bare, list | str) else []
        if bare is not None and not isinstance(bare, list | str):
            result["structuredContent"] = bare


def _repair_list(result: dict[str, Any], key: str, noun: str, validate: Validate) -> list[str]:
    """Leaves out invalid entries, and invalid fields of others. Returns a line for each entry that is affected."""
    faults: list[str] = []
    entries = result.get(key)
    if not isinstance(entries, list):
        faults.append(f"its list of {noun}s is not a list")
        entries = []
    valid_items: list[dict[str, Any]] = []
    for number, entry in enumerate(entries, start=1):
        name = _name_entry(entry, noun, number)
        if not isinstance(entry, dict):
            faults.append(f"{name}: left out, because it is not an object")
            continue
        used, left_out = select_valid_fields(entry, _REQUIRED_OF_ENTRY[key], partial(_validate_entry, key, validate))
        if used is None:
            faults.append(f"{name}: left out, because it has no valid name or address")
            continue
        if left_out:
            faults.append(f"{name}: used without its {', '.join(left_out)}, which cannot be read")
        valid_items.append(used)
    result[key] = valid_items
    cursor = result.get("nextCursor")
    if isinstance(cursor, int) and not isinstance(cursor, bool):
        result["nextCursor"] = str(cursor)
    return faults


def _validate_entry(key: str, validate: Validate, entry: dict[str, Any]) -> None:
    """Raises `ValidationError` for an entry that the SDK would reject."""
    validate({key: [entry], "resultType": "complete", **CACHE_DEFAULTS})


def _name_entry(entry: object, noun: str, number: int) -> str:
    name = entry.get("name") or entry.get("uri") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else f"{noun} {number} of its list"

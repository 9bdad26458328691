"""Requests of a foreign MCP server in the middle of a call: passed on to the client that waits for the run.

The server's texts are untrusted, so the question names the server, hidden characters are removed, and nothing in it is
a live link or image. Questions that send the user to a web page (`url` mode) are declined, and so are those whose form
has names or values with hidden characters or with links. A prompt for the client's model names the server too, and asks
for no context of the client: what other servers and the conversation have said is not this server's.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import mcp_types as types
from mcp.client.context import ClientRequestContext
from pydantic import JsonValue, ValidationError

from agent.core.client_requests import ClientMethod
from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject
from agent.policy.guardrails.plain_text import remove_live_parts
from mcp_tools.client.remote_tool import RemoteCall
from mcp_tools.client.sanitize import escape_invisible, find_hidden_characters, sanitize_schema, sanitize_text

log = logging.getLogger(__name__)

MAX_CHARS = 40_000
"""The longest request that is passed on, as JSON."""
_CANCELLED = types.ElicitResult(action="cancel")


@dataclass(eq=False, slots=True)
class _Call:
    """A call in progress, and the requests that were passed on for it."""

    call: RemoteCall
    requests: set[asyncio.Future[JsonObject | None]] = field(default_factory=set)


class ServerRequests:
    """The requests of one server.

    They do not say which call they belong to, so they are passed on only while exactly one call is in progress.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: list[_Call] = []

    @contextmanager
    def track_call(self, call: RemoteCall) -> Iterator[None]:
        """Counts a call while the context is open. Its requests end with it."""
        tracked = _Call(call)
        self._calls.append(tracked)
        try:
            yield
        finally:
            self._calls.remove(tracked)
            for request in tracked.requests:
                request.cancel()

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """The user's answer; `cancel` if nobody could be asked."""
        if not isinstance(params, types.ElicitRequestFormParams):
            return self._decline("it sends the user to a web page, which is not supported")
        try:
            schema = sanitize_schema(params.requested_schema, _clean_text)
            if (problem := find_hidden_characters(schema) or _find_live_name(schema)) is not None:
                return self._decline(f"{problem}; its server must leave them out")
            question: JsonObject = {
                "mode": "form",
                "message": f"The MCP server {self._server!r} asks: {_clean_text(params.message)}",
                "requestedSchema": schema,
            }
            result = await self._pass_on("elicitation/create", question)
            return _CANCELLED if result is None else types.ElicitResult.model_validate(result)
        except (ValidationError, RecursionError):
            return _CANCELLED

    def _decline(self, problem: str) -> types.ElicitResult:
        """Declines a question, and says why in the log and to the client of the call: the server only learns that
        nobody answers.
        """
        log.warning("a question of the MCP server %r was declined: %s", self._server, problem)
        if len(self._calls) == 1:
            self._calls[0].call.report_progress(f"a question of the server was declined: {problem}")
        return types.ElicitResult(action="decline")

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The reply of the client's model; an error if there is no such client."""
        request = params.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude={"meta", "task", "include_context"}
        )
        request["messages"] = _clean_block(request["messages"])
        name = f"The MCP server {self._server!r} asks this, not the user."
        request["systemPrompt"] = "\n\n".join(filter(None, (name, sanitize_text(params.system_prompt or "").text)))
        try:
            result = await self._pass_on("sampling/createMessage", request)
            if result is not None:
                return types.CreateMessageResult.model_validate(result)
        except ValidationError:
            log.info("the reply for the MCP server %r was unreadable", self._server)
        return types.ErrorData(
            code=types.INVALID_REQUEST, message="sampling is not supported here: no client offers a model"
        )

    async def _pass_on(self, method: ClientMethod, params: JsonObject) -> JsonObject | None:
        if len(self._calls) != 1 or len(json.dumps(params)) > MAX_CHARS:
            log.info("a request (%s) of the MCP server %r was not passed on", method, self._server)
            return None
        tracked = self._calls[0]
        tracked.call.report_progress("the server waits for an answer")
        request = asyncio.ensure_future(tracked.call.ask_client(method, params))
        tracked.requests.add(request)
        try:
            await asyncio.wait([request])
        finally:
            tracked.requests.discard(request)
            request.cancel()
        return None if request.cancelled() else request.result()


def _clean_text(text: str) -> str:
    """A text of a question, as it may be shown."""
    return remove_live_parts(sanitize_text(text).text)


def _clean_block(block: JsonValue) -> JsonValue:
    """A message for the client's model, or a part of one, whose texts a person can see: those of results too."""
    if isinstance(block, list):
        return [*map(_clean_block, block)]
    if not isinstance(block, dict):
        return block
    cleaned, text = {**block}, block.get("text")
    if block.get("type") == "text" and isinstance(text, str):
        cleaned["text"] = sanitize_text(text).text
    if "content" in block:
        cleaned["content"] = _clean_block(block["content"])
    return cleaned


def _leave_out_patterns(schema: JsonValue) -> JsonValue:
    if isinstance(schema, list):
        return [*map(_leave_out_patterns, schema)]
    if not isinstance(schema, dict):
        return schema
    visible = ((name, value) for name, value in schema.items() if name != "pattern" or not isinstance(value, str))
    return {name: _leave_out_patterns(value) for name, value in visible}


def _find_live_name(schema: JsonObject) -> str | None:
    """Describes a name or value of a cleaned form that leads to an address; None if there is none. A tag without an
    address leads nowhere: `Status: <none>`. A regular expression is not shown: `[A-Z](?:[0-9])`."""
    for text in iter_texts(_leave_out_patterns(schema)):
        if any(mark in text for mark in ("//", "](", "]:")) and remove_live_parts(text) != text:
            return f"its form has a link or an image in the name or value {escape_invisible(text)[:100]!r}"
    return None

"""What stock Open WebUI sends that no other client does: how it is told from others, its background prompts, the
passages of attached files, and our own cards and questions coming back. Read in version 0.12.4."""

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import JsonValue
from starlette.datastructures import Headers

from agent.core.errors import ConflictError
from agent.core.models import AgentRequest, ChatMessage, JsonObject
from agent.core.service import AgentService
from agent.planning.routing import TASK_PREFIX
from gateway.doors.replies import ASK_PREFIX, ASK_TOOL
from gateway.render.openwebui import CARD_PREFIX

_ITS_QUESTION = {"questions", "allow_other", "timeout_ms"}
_FILES = ("<attached_files>", "</attached_files>")
_PASSAGES = ("<context>", "</context>")
_CHAT = "### Chat History:"
"""Every background prompt quotes the chat, and there the user's words may look like anything."""


def is_open_webui(headers: Headers, tools: Sequence[JsonObject], policy: Literal["auto", "always", "never"]) -> bool:
    """Whether a caller is taken for Open WebUI: by its headers, where it is told to send them, or by its own tool,
    which it offers by default."""
    if policy != "auto":
        return policy == "always"
    agent = headers.get("user-agent", "").lower()
    named = "open webui" in agent or "openwebui" in agent or any(name.startswith("x-openwebui-") for name in headers)
    return named or any(_is_its_question(tool.get("function")) for tool in tools)


def as_asked(request: AgentRequest) -> AgentRequest:
    """The request as its user made it. What stands before their words, passages of files they attached, becomes a
    message before it; what was shown of our work, and comes back as calls of tools, is left out."""
    messages = without_shown(request.messages or ())
    found, question = _apart(request.prompt)
    if found:
        messages = (*messages, ChatMessage(role="user", content=found))
    return request.model_copy(update={"prompt": question, "messages": messages})


def is_background(prompt: str) -> bool:
    """Whether a prompt, taken apart, is one nobody typed: for a title, tags, follow-ups or a search."""
    return prompt.lstrip().startswith(TASK_PREFIX)


def without_shown(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """A conversation without cards, and without questions but one that is just answered. No tools have their names,
    and most endpoints refuse names like theirs."""
    last = messages[-1].tool_call_id if messages and messages[-1].role == "tool" else None
    kept = []
    for message in messages:
        if message.role == "tool" and _is_ours(message.tool_call_id, last):
            continue
        calls = tuple(call for call in message.tool_calls if not _is_ours(call.get("id"), last))
        if len(calls) == len(message.tool_calls):
            kept.append(message)
        elif calls or message.content.strip():
            kept.append(message.model_copy(update={"tool_calls": calls}))
    return tuple(kept)


async def stopped(service: AgentService[Any], run_id: str, owner: str) -> None:
    """Open WebUI hung up. It goes on reading for a page that was closed, so it is its stop button, or a time limit
    that somebody set there (it has none by itself), unless it is we who are going. Nobody would see the answer."""
    if service.custody.draining:
        return
    if (await service.get(run_id, owner=owner)).status != "awaiting_approval":
        with contextlib.suppress(ConflictError):  # it has ended meanwhile
            await service.cancel(run_id, owner=owner, reason="stopped by its user")


def _is_ours(call_id: JsonValue, last: str | None) -> bool:
    if not isinstance(call_id, str):
        return False
    return call_id.startswith(f"{CARD_PREFIX}run_") or (call_id.startswith(f"{ASK_PREFIX}run_") and call_id != last)


def _is_its_question(function: JsonValue) -> bool:
    if not isinstance(function, dict) or function.get("name") != ASK_TOOL:
        return False
    parameters = function.get("parameters")
    fields = parameters.get("properties") if isinstance(parameters, dict) else None
    return isinstance(fields, dict) and fields.keys() >= _ITS_QUESTION


def _apart(prompt: str) -> tuple[str, str]:
    """What a message begins with that its user did not type, and what they did. The last closing tag counts: a
    document that holds one gains no word in the question."""
    end = 0
    if is_background(prompt):
        begins, ends = prompt.find(_PASSAGES[0]), prompt.rfind(_PASSAGES[1])
        quoted = prompt.find(_CHAT)
        if not 0 <= begins < ends or 0 <= quoted < begins:
            return "", prompt
        end = ends + len(_PASSAGES[1])
    rest = prompt[end:].lstrip()
    if rest.startswith(_FILES[0]) and _FILES[1] in rest:
        rest = rest[rest.index(_FILES[1]) + len(_FILES[1]) :].lstrip()
    if not rest or len(rest) == len(prompt):
        return "", prompt
    return prompt[: len(prompt) - len(rest)].rstrip(), rest

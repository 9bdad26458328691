"""Requests of stock Open WebUI: how to recognise them, its background prompts, attached files, returned cards.

Written from the source of version 0.12.4.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import JsonValue
from starlette.datastructures import Headers

from agent.core.errors import ConflictError
from agent.core.models import AgentRequest, ChatMessage, JsonObject
from agent.planning.routing import TASK_PREFIX
from agent.policy.approval import APPROVAL_PREFIX, ASK_PREFIX, ASK_TOOL
from agent.runs.service import AcceptedRun, AgentService
from gateway.render.openwebui import CARD_PREFIX

_ASK_TOOL_FIELDS = {"questions", "allow_other", "timeout_ms"}
_FILE_TAGS = ("<attached_files>", "</attached_files>")
_PASSAGE_TAGS = ("<context>", "</context>")
_CHAT_HEADING = "### Chat History:"
"""Every background prompt quotes the chat, where the user's words may look like tags."""


def is_open_webui(headers: Headers, tools: Sequence[JsonObject], policy: Literal["auto", "always", "never"]) -> bool:
    """Whether the caller is Open WebUI: by its headers, if it is set to send them, or by its own `ask_user`
    tool, which it offers by default.
    """
    if policy != "auto":
        return policy == "always"
    agent = headers.get("user-agent", "").lower()
    named = "open webui" in agent or "openwebui" in agent or any(name.startswith("x-openwebui-") for name in headers)
    return named or any(_is_ask_tool(tool.get("function")) for tool in tools)


def remove_client_additions(request: AgentRequest) -> AgentRequest:
    """The request as its user wrote it.

    Passages of attached files before the user's words become a message of their own. Step cards, which come back as
    tool calls, are removed.
    """
    messages = request.messages or ()
    position = len(messages) if request.prompt_position is None else request.prompt_position
    last = _find_answered_call(messages)
    before, after = remove_cards(messages[:position], last), remove_cards(messages[position:], last)
    prompt, question = _split_prompt(request.prompt)
    if prompt:
        before = (*before, ChatMessage(role="user", content=prompt))
    return request.change(prompt=question, messages=(*before, *after), prompt_position=len(before))


def is_background_prompt(prompt: str) -> bool:
    """Whether Open WebUI generated this prompt: for a title, tags, follow-ups or a search."""
    return prompt.lstrip().startswith(TASK_PREFIX)


def remove_cards(messages: Sequence[ChatMessage], last: str | None) -> tuple[ChatMessage, ...]:
    """A conversation without step cards, and without questions except the call `last`, which is just being
    answered.

    No tools have their names, and most model endpoints refuse such names.
    """
    kept_parts = []
    for message in messages:
        if message.role == "tool" and _is_card_or_question(message.tool_call_id, last):
            continue
        calls = tuple(call for call in message.tool_calls if not _is_card_or_question(call.get("id"), last))
        if len(calls) == len(message.tool_calls):
            kept_parts.append(message)
        elif calls or message.content.strip():
            kept_parts.append(message.model_copy(update={"tool_calls": calls}))
    return tuple(kept_parts)


async def cancel_after_disconnect(service: AgentService[Any], run: AcceptedRun) -> None:
    """Cancels the run after Open WebUI has disconnected.

    Open WebUI keeps reading for a page that was closed, so a disconnect means its stop button or a time limit set
    there; nobody would see the answer. Does nothing while this gateway is draining.
    """
    if service.worker.draining:
        return
    if (await service.get_run(run.run_id, owner=run.owner)).status != "awaiting_approval":
        with contextlib.suppress(ConflictError):  # it has ended meanwhile
            await service.cancel_run(run.run_id, owner=run.owner, reason="stopped by its user")


def _find_answered_call(messages: Sequence[ChatMessage]) -> str | None:
    """The call whose result the conversation ends with."""
    return messages[-1].tool_call_id if messages and messages[-1].role == "tool" else None


def _is_card_or_question(call_id: JsonValue, last: str | None) -> bool:
    if not isinstance(call_id, str):
        return False
    is_question = call_id.startswith((f"{ASK_PREFIX}{APPROVAL_PREFIX}", f"{ASK_PREFIX}run_"))  # the latter before 1.1
    return call_id.startswith(f"{CARD_PREFIX}run_") or (is_question and call_id != last)


def _is_ask_tool(function: JsonValue) -> bool:
    if not isinstance(function, dict) or function.get("name") != ASK_TOOL:
        return False
    parameters = function.get("parameters")
    fields = parameters.get("properties") if isinstance(parameters, dict) else None
    return isinstance(fields, dict) and fields.keys() >= _ASK_TOOL_FIELDS


def _split_prompt(prompt: str) -> tuple[str, str]:
    """Splits a message into what Open WebUI put before the user's words, and those words.

    The last closing tag counts: a document that contains one cannot add to the question.
    """
    end = 0
    if is_background_prompt(prompt):
        begins, ends = prompt.find(_PASSAGE_TAGS[0]), prompt.rfind(_PASSAGE_TAGS[1])
        quoted = prompt.find(_CHAT_HEADING)
        if not 0 <= begins < ends or 0 <= quoted < begins:
            return "", prompt
        end = ends + len(_PASSAGE_TAGS[1])
    rest = prompt[end:].lstrip()
    if rest.startswith(_FILE_TAGS[0]) and _FILE_TAGS[1] in rest:
        rest = rest[rest.rindex(_FILE_TAGS[1]) + len(_FILE_TAGS[1]) :].lstrip()
    if not rest or len(rest) == len(prompt):
        return "", prompt
    return prompt[: len(prompt) - len(rest)].rstrip(), rest

"""Messages that answer a run which waits for a person: finds the run, and reads the decision."""

import json
import re
from typing import Any

from agent.core.errors import ConflictError, NotFoundError
from agent.core.models import AgentRequest, ChatMessage
from agent.core.principal import Principal
from agent.policy.approval import parse_decision
from agent.runs.service import AcceptedRun, AgentService, Decision

ASK_TOOL = "ask_user"
"""Open WebUI's own tool for questions to its user; carries the approval question if the client offers it."""
ASK_PREFIX = "ask_"
_RUN_ID = re.compile(r"run_[0-9a-f]{32}")
DECISIONS: dict[str, Decision] = {"approved": "approve", "rejected": "reject", "answered": "answer"}
"""The decisions of `parse_decision`, as `AgentService.submit_decision` names them."""


async def submit_reply(service: AgentService[Any], caller: Principal, request: AgentRequest) -> AcceptedRun | None:
    """Submits the message to the run that waits for it; None if no run waits. Raises `ScopeError`."""
    found = await _find_waiting_run(service, caller.owner, request)
    if found is None:
        return None
    run_id, (decision, text) = found
    caller.require_approval_right()
    try:
        return await service.submit_decision(run_id, DECISIONS[decision], principal=caller, reason=text)
    except ConflictError:  # decided meanwhile: the message is a new request
        return None


async def submit_reply_to_run(service: AgentService[Any], caller: Principal, run_id: str, text: str) -> AcceptedRun:
    """Submits a person's words to the waiting run of this id.

    Raises `ScopeError`, and what `AgentService.submit_decision` raises.
    """
    caller.require_approval_right()
    decision, words = parse_decision(text)
    return await service.submit_decision(run_id, DECISIONS[decision], principal=caller, reason=words)


async def _find_waiting_run(
    service: AgentService[Any], owner: str, request: AgentRequest
) -> tuple[str, tuple[str, str]] | None:
    """Returns the waiting run and the decision that the message makes."""
    messages = request.messages or ()
    last = messages[-1] if messages else None
    if last is not None and last.role == "tool" and (last.tool_call_id or "").startswith(ASK_PREFIX):
        run_id = (last.tool_call_id or "").removeprefix(ASK_PREFIX)
        return (run_id, _parse_ask_tool_answer(last.content)) if await _is_waiting(service, owner, run_id) else None
    decision = parse_decision(request.prompt)
    asking_run_id = _find_asking_run(messages)
    if asking_run_id is not None and await _is_waiting(service, owner, asking_run_id):
        return asking_run_id, decision
    if request.conversation_id is not None:
        waiting_run_id = await service.find_waiting_run(request.conversation_id, owner=owner)
        return (waiting_run_id, decision) if waiting_run_id is not None else None
    return None


async def _is_waiting(service: AgentService[Any], owner: str, run_id: str) -> bool:
    try:
        return (await service.get_run(run_id, owner=owner)).status == "awaiting_approval"
    except NotFoundError:
        return False


def _find_asking_run(messages: tuple[ChatMessage, ...]) -> str | None:
    """Returns the run whose question is the assistant's last message."""
    answer = next((message for message in reversed(messages) if message.role == "assistant"), None)
    run_ids = _RUN_ID.findall(answer.content) if answer is not None and "Approval needed" in answer.content else []
    return run_ids[-1] if run_ids else None


def _parse_ask_tool_answer(content: str) -> tuple[str, str]:
    """Returns the decision made in Open WebUI's question. Any text that is not an option is the person's own words."""
    try:
        answer = json.loads(content)["answers"]["plan"]
        label = str(answer.get("label") or answer.get("text") or answer.get("value") or "")
        option = answer.get("type") == "option"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "rejected", content.strip()[:200]
    if option:
        return ("approved", "") if label == "Approve" else ("rejected", "")
    return parse_decision(label)

"""A message that answers a run which waits for a person: which run, and what it decides."""

import json
import re

from agent.core.approval import decision_of
from agent.core.errors import ConflictError, NotFoundError, ScopeError
from agent.core.models import AgentRequest, ChatMessage
from agent.core.service import Decision
from gateway.bootstrap import Stepgate
from gateway.gatekeeper import Caller

ASK_TOOL = "ask_user"
"""Open WebUI's own tool, by which a model asks the person something; it carries our question, where it is offered."""
ASK_PREFIX = "ask_"
_RUN = re.compile(r"run_[0-9a-f]{32}")
_DECISIONS: dict[str, Decision] = {"approved": "approve", "rejected": "reject", "answered": "answer"}


async def answered(stepgate: Stepgate, caller: Caller, request: AgentRequest) -> tuple[str, int] | None:
    """The run this message is the answer to, once it has been told, and the seq it had come to; None where nothing
    waits for it."""
    found = await _waiting(stepgate, caller.owner, request)
    if found is None:
        return None
    run_id, (decision, text) = found
    if caller.key is not None and not caller.key.allows("approve"):
        raise ScopeError(f"the API key {caller.key.id} lacks the scope 'approve'", scope="approve")
    try:
        owner = caller.owner
        heard = await stepgate.service.decide(run_id, _DECISIONS[decision], owner=owner, by=caller.name, reason=text)
    except ConflictError:  # decided meanwhile: the message is a request of its own
        return None
    return run_id, heard


async def _waiting(stepgate: Stepgate, owner: str, request: AgentRequest) -> tuple[str, tuple[str, str]] | None:
    """The waiting run, and what the message decides."""
    messages = request.messages or ()
    last = messages[-1] if messages else None
    if last is not None and last.role == "tool" and (last.tool_call_id or "").startswith(ASK_PREFIX):
        run_id = (last.tool_call_id or "").removeprefix(ASK_PREFIX)
        return (run_id, _of_tool(last.content)) if await _is_waiting(stepgate, owner, run_id) else None
    said = decision_of(request.prompt)
    asked = _asked_last(messages)
    if asked is not None and await _is_waiting(stepgate, owner, asked):
        return asked, said
    if request.conversation_id is not None:
        waiting = await stepgate.service.waiting(request.conversation_id, owner=owner)
        return (waiting, said) if waiting is not None else None
    return None


async def _is_waiting(stepgate: Stepgate, owner: str, run_id: str) -> bool:
    try:
        return (await stepgate.service.get(run_id, owner=owner)).status == "awaiting_approval"
    except NotFoundError:
        return False


def _asked_last(messages: tuple[ChatMessage, ...]) -> str | None:
    """The run whose question was the last thing the assistant said."""
    answer = next((message for message in reversed(messages) if message.role == "assistant"), None)
    named = _RUN.findall(answer.content) if answer is not None and "Approval needed" in answer.content else []
    return named[-1] if named else None


def _of_tool(content: str) -> tuple[str, str]:
    """What the person chose in Open WebUI's question; something else than an option is their own words."""
    try:
        answer = json.loads(content)["answers"]["plan"]
        label = str(answer.get("label") or answer.get("text") or answer.get("value") or "")
        option = answer.get("type") == "option"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "rejected", content.strip()[:200]
    if option:
        return ("approved", "") if label == "Approve" else ("rejected", "")
    return decision_of(label)

"""Submits people's decisions to runs that wait for them."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.errors import BadRequestError, ConflictError, NotFoundError
from agent.core.models import AgentRequest
from agent.core.principal import Principal
from agent.policy.approval import ConversationTrust, find_reply, is_stray_decision, parse_decision
from agent.runs.conversation_tree import ConversationTree
from agent.runs.service import AcceptedRun, AgentService, Decision

DECISIONS: dict[str, Decision] = {"approved": "approve", "rejected": "reject", "answered": "answer"}
"""The decisions of `parse_decision`, as `AgentService.submit_decision` names them."""


async def submit_reply(
    service: AgentService[Any],
    caller: Principal,
    request: AgentRequest,
    trust: ConversationTrust = "by_key",
    question: Sequence[str] | None = None,
    tree: ConversationTree | None = None,
) -> AcceptedRun | None:
    """Submits the message to the run that waits for it; None if it is a new request. `question` are the approvals that
    the client displays, if it says so. `tree` has the branches of the conversation, where it can have any.

    Raises `ScopeError`, and `ConflictError` for a yes or no to a run of the same conversation on which the message
    cannot decide: as a new request, the word would mean nothing. Also what `require_same_question` raises.
    """
    reply = await find_reply(service, caller, request, trust)
    if reply is not None and tree is not None and not await tree.is_in_branch(caller.owner, request, reply.run_id):
        reply = None
    require_same_question(question, reply.approval_ids if reply is not None else ())
    if reply is None:
        return None
    try:
        return await service.submit_decision(
            reply.run_id,
            DECISIONS[reply.decision],
            principal=caller,
            reason=reply.text,
            approvals=reply.approval_ids,
        )
    except ConflictError:
        if question is not None:
            raise
        return None  # decided meanwhile: the message is a new request


def require_same_question(displayed: Sequence[str] | None, open_ids: Sequence[str]) -> None:
    """Raises `ConflictError` if a message would answer a question that its client does not display, or the one that it
    displays is no longer open. Both are ids of approval requests; None if the client does not say what it displays.
    """
    if displayed is None or (bool(displayed) == bool(open_ids) and {*open_ids} <= {*displayed}):
        return
    raise ConflictError(
        "A question was asked or decided elsewhere in the meantime, so this message was not sent. Read the "
        "conversation again, then reply",
        retry=False,
    )


async def refuse_stray_decision(
    service: AgentService[Any], caller: Principal, request: AgentRequest, follows: str | None = None
) -> None:
    """Raises `ConflictError` for the yes or no to a question that is no longer open. As a new request it would be
    planned, and the word says nothing of what to do.
    """
    if await is_stray_decision(service, caller.owner, request, follows):
        raise ConflictError(
            "Nothing is waiting for approval here: the question was decided already, or nobody decided in time. "
            "Nothing is done now. If you want something done, say what",
            retry=False,
        )


async def submit_replies(
    service: AgentService[Any], caller: Principal, run_id: str, replies: Mapping[str, tuple[bool, str]]
) -> AcceptedRun:
    """Submits decisions on single approvals, first those that approve.

    Raises what `AgentService.submit_decision` raises.
    """
    accepted: AcceptedRun | None = None
    grouped: dict[tuple[bool, str], list[str]] = {}
    for approval_id, reply in replies.items():
        grouped.setdefault(reply, []).append(approval_id)
    for (approve, reason), approval_ids in sorted(grouped.items(), key=lambda item: not item[0][0]):
        accepted = await service.submit_decision(
            run_id, "approve" if approve else "reject", principal=caller, reason=reason, approvals=approval_ids
        )
    if accepted is None:
        raise ConflictError(f"no decision on run {run_id!r} was sent")
    return accepted


async def submit_text(
    service: AgentService[Any], caller: Principal, run_id: str, text: str, approvals: Sequence[str]
) -> AcceptedRun:
    """Submits a person's words on the question that they were sent for: `approvals` are the ids of its requests. A
    question that the run has asked since stays open. Raises what `AgentService.submit_decision` raises.
    """
    decision, reason = parse_decision(text)
    return await service.submit_decision(
        run_id, DECISIONS[decision], principal=caller, reason=reason, approvals=approvals
    )


def require_approval_ids(approvals: Sequence[str], run_id: str) -> None:
    """Raises `BadRequestError` for a decision that names no approval request."""
    if not approvals:
        raise BadRequestError(
            f"approvals: name the ids of what you decide on; they are in the question of run {run_id}, and "
            "GET /v1/approvals lists them",
            param="approvals",
        )


async def withdraw_questions(
    service: AgentService[Any], tree: ConversationTree, request: AgentRequest, accepted: AcceptedRun
) -> None:
    """Cancels the runs that wait for a person in branches that a message has left by beginning another one: approved
    beside its own, they would do the same twice. `accepted` is the message's run; a later one is another message's.
    """
    own_row = await service.get_run(accepted.run_id, owner=accepted.owner)
    for row in await service.list_waiting_runs(owner=accepted.owner):
        is_earlier = row.conversation_id == request.conversation_id and row.created_at < own_row.created_at
        if row.hidden or not is_earlier or await tree.is_in_branch(accepted.owner, request, row.run_id):
            continue
        with contextlib.suppress(ConflictError, NotFoundError):  # decided or deleted meanwhile
            await service.cancel_run(row.run_id, owner=accepted.owner)

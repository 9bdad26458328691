"""`/v1/conversations/{id}/state`: a conversation as its next run finds it, and beginning it anew.

The id is what runs were given as `conversation_id`, `session_id` or a chat's id."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from agent.core.errors import StoreError
from agent.core.fold import RunState, fold
from agent.core.models import Frozen
from agent.core.sessions import unknown
from agent.execution.outputs import cap
from gateway.auth import By, requires
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.query import PlanStepView, plan_view
from gateway.doors.wiring import Gateway

router = APIRouter(prefix="/v1/conversations", tags=["conversations"], dependencies=[requires("agent")])

CONTEXT_CHARS = 4_000
"""How much is told of each result."""
PREFERENCES = 100


class HistoryMessage(Frozen):
    """Something that was said."""

    role: Literal["user", "assistant", "system"]
    content: str
    timestamp: datetime


class GatheredContext(Frozen):
    """What a step of the run under way has brought so far."""

    step_id: str
    tool: str
    content: str
    from_outside: bool


class ConversationState(Frozen):
    """What a conversation has come to. `current_plan` is that of its newest run; `accumulated_context` what a run that
    is under way has gathered, and empty between turns; `user_preferences` the facts remembered for the user, by id."""

    session_id: str
    history: tuple[HistoryMessage, ...] = ()
    current_plan: tuple[PlanStepView, ...] | None = None
    accumulated_context: tuple[GatheredContext, ...] = ()
    user_preferences: dict[str, str] = Field(default_factory=dict)


@router.get("/{session_id:path}/state", responses=ERRORS)
async def get_state(session_id: str, stepgate: Gateway, caller: By) -> ConversationState:
    """A conversation's state; 404 when there is none of the caller's."""
    names = await _names(stepgate, session_id, caller.owner)
    turns = await stepgate.sessions.history(caller.owner, names)
    run_id = await stepgate.sessions.newest_run(caller.owner, names)
    if not turns and run_id is None:
        raise unknown(session_id)
    events = await stepgate.service.read(run_id, owner=caller.owner) if run_id is not None else []
    state = fold(run_id or "", events)
    facts = await stepgate.memory.newest(caller.owner, limit=PREFERENCES)
    return ConversationState(
        session_id=session_id,
        history=tuple(
            HistoryMessage(
                role="user" if turn.role == "user" else "assistant",
                content=turn.text,
                timestamp=datetime.fromtimestamp(turn.at, UTC),
            )
            for turn in turns
        ),
        current_plan=tuple(plan_view(state)) if state.plan is not None else None,
        accumulated_context=() if state.finished else _gathered(state),
        user_preferences={fact.id: fact.text for fact in facts if not fact.tainted},
    )


@router.delete("/{session_id:path}/state", status_code=204, responses=ERRORS)
async def clear_state(session_id: str, stepgate: Gateway, caller: By) -> None:
    """Forget what was said in a conversation: its next run begins anew. Its runs stay in /v1/runs, and what a
    conversation about a pipeline has found out stays there; 409 while a run of it is under way."""
    names = await _names(stepgate, session_id, caller.owner)
    await stepgate.sessions.clear(caller.owner, names)
    for name in names:
        await stepgate.memory.forget(caller.owner, conversation_id=name)
        with contextlib.suppress(StoreError):  # they expire by themselves
            await stepgate.conversations.builder.messages.forget(name)


async def _names(stepgate: Stepgate, session_id: str, owner: str) -> Sequence[str]:
    """What the runs of a conversation call it: a chat's runs about a pipeline have that conversation's id."""
    found = await stepgate.conversations.builder.store.get(session_id, owner)
    return (session_id,) if found is None or found.id == session_id else (session_id, found.id)


def _gathered(state: RunState) -> tuple[GatheredContext, ...]:
    found = []
    for step in state.succeeded_steps():
        output = state.step(step.id).output
        if output is not None:
            text = cap(output.text, CONTEXT_CHARS)
            found.append(GatheredContext(step_id=step.id, tool=step.tool, content=text, from_outside=output.tainted))
    return tuple(found)

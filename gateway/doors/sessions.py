"""`/v1/conversations/{id}/state`: a conversation as its next run finds it, and clearing it.

The id is the `conversation_id`, `session_id` or chat id that runs were given. For a session of `POST /query`, the query
parameter `user_id` names its user; it is needed only if several users have a session of this id.
"""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from agent.core.errors import ConflictError, StoreError
from agent.core.models import FrozenModel
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.run_context.outputs import cut_text
from agent.runs.sessions import build_session_name, build_unknown_conversation_error
from gateway.access.dependencies import CurrentCaller, require_scope
from gateway.bootstrap import Stepgate
from gateway.doors.agent import ERRORS
from gateway.doors.deferred_route import DeferredRoute
from gateway.doors.dependencies import Gateway
from gateway.render.plan_view import PlanStepView, build_plan_view

router = APIRouter(
    prefix="/v1/conversations", tags=["conversations"], route_class=DeferredRoute, dependencies=[require_scope("agent")]
)

CONTEXT_CHARS = 4_000
"""Most characters of each result."""
PREFERENCES = 100
UserId = Annotated[str | None, Query(max_length=90, description="the user of a session of POST /query")]


class HistoryMessage(FrozenModel):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str
    timestamp: datetime


class GatheredContext(FrozenModel):
    """A result of a step of the run in progress."""

    step_id: str
    tool: str
    content: str
    from_outside: bool


class ConversationState(FrozenModel):
    """A conversation's state. `current_plan` is the plan of its newest run; `accumulated_context` holds what a run in
    progress has gathered and is empty between turns; `user_preferences` are the user's remembered facts by id.
    """

    session_id: str
    history: tuple[HistoryMessage, ...] = ()
    current_plan: tuple[PlanStepView, ...] | None = None
    accumulated_context: tuple[GatheredContext, ...] = ()
    user_preferences: dict[str, str] = Field(default_factory=dict)


@router.get("/{session_id:path}/state", responses=ERRORS)
async def get_state(
    session_id: str, stepgate: Gateway, caller: CurrentCaller, user_id: UserId = None
) -> ConversationState:
    """Return a conversation's state; 404 if the caller has no such conversation, 409 if several users have one."""
    names = await _list_session_names(stepgate, session_id, caller.owner, user_id)
    turns = await stepgate.sessions.list_turns(caller.owner, names)
    run_id = await stepgate.sessions.find_newest_run(caller.owner, names)
    if not turns and run_id is None:
        raise build_unknown_conversation_error(session_id)
    events = await stepgate.service.read_events(run_id, owner=caller.owner) if run_id is not None else []
    state = fold(run_id or "", events)
    facts = await stepgate.memory.list_newest(caller.owner, limit=PREFERENCES)
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
        current_plan=tuple(build_plan_view(state)) if state.plan is not None else None,
        accumulated_context=() if state.is_finished else _build_context(state),
        user_preferences={fact.id: fact.text for fact in facts if not fact.tainted},
    )


@router.delete("/{session_id:path}/state", status_code=204, responses=ERRORS)
async def clear_state(session_id: str, stepgate: Gateway, caller: CurrentCaller, user_id: UserId = None) -> None:
    """Delete the history of a conversation; its next run starts afresh. Its runs stay in /v1/runs, and the findings of
    a pipeline conversation stay there; 409 while one of its runs is in progress.
    """
    names = await _list_session_names(stepgate, session_id, caller.owner, user_id)
    await stepgate.sessions.clear_session(caller.owner, names)
    for name in names:
        await stepgate.memory.delete_all(caller.owner, conversation_id=name)
        if (conversations := stepgate.intake.conversations) is not None:
            with contextlib.suppress(StoreError):  # they expire anyway
                await conversations.forget_messages(name)


async def _list_session_names(stepgate: Stepgate, session_id: str, owner: str, user_id: str | None) -> Sequence[str]:
    """The names its runs use. A chat's runs about a pipeline have the id of that conversation; those of
    `POST /query` have the names of the user and the session. Raises `ConflictError` if several users have the session.
    """
    if user_id is not None:
        session_id = build_session_name(user_id, session_id)
    conversations = stepgate.intake.conversations
    conversation_id = await conversations.find_id(session_id, owner=owner) if conversations is not None else None
    if conversation_id is not None:
        return (session_id,) if conversation_id == session_id else (session_id, conversation_id)
    if user_id is not None or await stepgate.sessions.exists(owner, session_id):
        return (session_id,)
    names = await stepgate.sessions.find_user_sessions(owner, session_id)
    if len(names) > 1:
        raise ConflictError(f"{len(names)} users have a session {session_id[:100]!r}; name one: ?user_id=")
    return names or (session_id,)


def _build_context(state: RunState) -> tuple[GatheredContext, ...]:
    context = []
    for step in state.list_succeeded_steps():
        output = state.get_step(step.id).output
        if output is not None:
            text = cut_text(output.text, CONTEXT_CHARS)
            context.append(GatheredContext(step_id=step.id, tool=step.tool, content=text, from_outside=output.tainted))
    return tuple(context)

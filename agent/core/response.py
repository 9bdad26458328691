"""The response contract of a run: `response`, `steps` and `metadata`, projected from its log."""

from collections.abc import Sequence
from typing import Any

from agent.core import events as ev
from agent.core.approval import question
from agent.core.fold import RunState, fold
from agent.core.models import AgentResponse, JsonObject
from agent.core.runtime import runtime_of
from agent.core.trace import projected
from agent.core.verification import verification_of


def respond(events: Sequence[ev.Event]) -> AgentResponse:
    """The response of a run as far as its log goes; `events` is the whole log in order."""
    state = fold(events[0].run_id, events)
    projection = projected(events)
    answer = state.answer.text if state.answer else (state.failure.message if state.failure else question(state))
    metadata = _metadata(state, projection.tool_results())
    return AgentResponse(response=answer, steps=projection.steps(), metadata=metadata)


def _metadata(state: RunState, tool_results: list[JsonObject]) -> dict[str, Any]:
    """The caller's metadata, and over it what the engine has to say."""
    answer = state.answer
    metadata: dict[str, Any] = dict(state.request.caller_metadata())
    metadata |= {
        "run_id": state.run_id,
        "room": state.room.id,
        "status": state.completeness or state.status,
        "plan": state.plan.shown() if state.plan else None,
        "tool_results": tool_results,
        "runtime": runtime_of(state),
        "usage": {**state.usage.model_dump(mode="json"), "total_tokens": state.usage.total_tokens},
        "gates": [gate.model_dump(mode="json") for gate in state.gates],
        "uncertainties": [item.model_dump(mode="json") for item in answer.uncertainties] if answer else [],
        "sources": [source.model_dump(mode="json") for source in answer.sources] if answer else [],
        "citations": [citation.model_dump(mode="json") for citation in answer.citations] if answer else [],
    }
    if state.waiting and not state.finished:
        metadata["approvals"] = [asked.model_dump(mode="json") for asked in state.waiting]
    if state.gated and state.room.gates:
        metadata["verification"] = verification_of(state)
    if answer is not None and answer.tailored is not None:
        metadata["tailor"] = answer.tailored.model_dump(mode="json", exclude={"content", "citations"}) | {
            "checks": [check.model_dump(mode="json") for check in state.checks]
        }
    if state.completeness == "aborted":
        metadata["aborted"] = True
    if state.end_reason:
        metadata["reason"] = state.end_reason
    if state.failure is not None:
        metadata["failure"] = state.failure.model_dump(mode="json")
    return metadata

"""Builds the response contract of a run, `response`, `steps` and `metadata`, from its log."""

from collections.abc import Sequence
from typing import Any

from agent.core import events as ev
from agent.core.models import AgentResponse, JsonObject
from agent.core.plan_outcome import list_cut_answers
from agent.core.run_reducer import fold
from agent.core.run_state import RunState
from agent.policy.approval import format_approval_question
from agent.runs.gate_summary import build_gate_summary
from agent.runs.run_summary import build_run_summary
from agent.runs.trace_projection import build_projection
from agent.text.repetition import find_loop


def build_response(events: Sequence[ev.Event], state: RunState | None = None) -> AgentResponse:
    """Builds the response of a run from its whole log in order, as far as it goes.

    `state` is the state after these events, if the caller has it.
    """
    state = state or fold(events[0].run_id, events)
    projection = build_projection(events)
    metadata = build_metadata(state, projection.list_tool_results())
    return AgentResponse(response=get_answer_text(state), steps=projection.list_steps(), metadata=metadata)


def get_answer_text(state: RunState) -> str:
    """The answer; without one the failure's message, or the question of a run that waits for approval."""
    if state.answer:
        return state.answer.text
    return state.failure.message if state.failure else format_approval_question(state)


def build_metadata(state: RunState, tool_results: list[JsonObject]) -> dict[str, Any]:
    """The caller's metadata, overridden by the engine's."""
    answer = state.answer
    metadata: dict[str, Any] = dict(state.request.get_caller_metadata())
    metadata |= {
        "run_id": state.run_id,
        "room": state.room.id,
        "status": state.status if state.status == "awaiting_input" else state.completeness or state.status,
        "plan": state.plan.to_public_json() if state.plan else None,
        "tool_results": tool_results,
        "runtime": build_run_summary(state),
        "usage": {**state.usage.model_dump(mode="json"), "total_tokens": state.usage.total_tokens},
        "gates": [gate.model_dump(mode="json") for gate in state.gates],
        "uncertainties": [item.model_dump(mode="json") for item in answer.uncertainties] if answer else [],
        "sources": [source.model_dump(mode="json") for source in answer.sources] if answer else [],
        "citations": [citation.model_dump(mode="json") for citation in answer.citations] if answer else [],
    }
    if answer is not None and state.client_calls is not None:
        metadata["client_tool_calls"] = list(answer.tool_calls)
    if state.pending_approvals and not state.is_finished:
        metadata["approvals"] = [request.model_dump(mode="json") for request in state.pending_approvals]
    if state.is_gated and state.room.gates:
        metadata["verification"] = build_gate_summary(state)
    if answer is not None and answer.tailored is not None:
        metadata["tailor"] = answer.tailored.model_dump(mode="json", exclude={"content", "citations"}) | {
            "checks": [check.model_dump(mode="json") for check in state.answer_checks]
        }
    if answer is not None and answer.stopped:
        metadata["stopped"] = True
    if answer is not None and answer.finish_reason == "length":
        metadata["truncated"] = True
        metadata["repeats_itself"] = any(find_loop(text) >= 0 for text in (*list_cut_answers(state), answer.text))
    if state.completeness == "aborted":
        metadata["aborted"] = True
    if state.end_reason:
        metadata["reason"] = state.end_reason
    if state.failure is not None:
        metadata["failure"] = state.failure.model_dump(mode="json")
    return metadata

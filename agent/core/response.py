"""The response contract of a run: `response`, `steps` and `metadata`, projected from its log."""

from collections.abc import Sequence
from typing import Any

from agent.core import events as ev
from agent.core.fold import RunState, fold
from agent.core.language import ENGLISH
from agent.core.models import AgentResponse, JsonObject, Mode
from agent.core.trace import projected, shorten


def respond(events: Sequence[ev.Event]) -> AgentResponse:
    """The response of a run as far as its log goes; `events` is the whole log in order."""
    state = fold(events[0].run_id, events)
    projection = projected(events)
    answer = state.answer.text if state.answer else (state.failure.message if state.failure else "")
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
        "plan": state.plan.model_dump(mode="json") if state.plan else None,
        "tool_results": tool_results,
        "runtime": _runtime(state),
        "usage": {**state.usage.model_dump(mode="json"), "total_tokens": state.usage.total_tokens},
        "gates": [gate.model_dump(mode="json") for gate in state.gates],
        "uncertainties": [item.model_dump(mode="json") for item in answer.uncertainties] if answer else [],
        "sources": [source.model_dump(mode="json") for source in answer.sources] if answer else [],
        "citations": [citation.model_dump(mode="json") for citation in answer.citations] if answer else [],
    }
    if state.completeness == "aborted":
        metadata["aborted"] = True
    if state.end_reason:
        metadata["reason"] = state.end_reason
    if state.failure is not None:
        metadata["failure"] = state.failure.model_dump(mode="json")
    return metadata


def _runtime(state: RunState) -> JsonObject:
    """What was asked for and what did the work: planner, executor, judge, answer."""
    first = state.plans[0] if state.plans else None
    fallen = next((plan for plan in state.plans if plan.requested != plan.effective), first)
    runtime: JsonObject = {
        "mode": _mode(state),
        "planner": _used(
            fallen.requested if fallen else "rules",
            fallen.effective if fallen else "rules",
            fallen.fallback_reason if fallen else None,
        ),
        "executor": _executor(state),
        "supervision": state.room.supervision,
        "route": state.understood.route if state.understood else None,
        "replans": state.replans,
        "retries": sum(step.retries for step in state.steps.values()),
    }
    if state.understood is not None and state.understood.language != ENGLISH:
        runtime["language"] = _language(state, state.understood)
    memory = state.retrieved
    if memory is not None and memory.requested:
        effective = "local" if memory.fallback_reason else memory.requested
        runtime["embedder"] = _used(memory.requested, effective, memory.fallback_reason)
    if state.answering is not None:
        runtime["answer"] = state.answering.model_dump(mode="json")
    ignored = len(state.request.client_tools)
    if ignored and state.room.planning:
        runtime["client_tools_ignored"] = ignored
    return runtime


def _language(state: RunState, understood: ev.RequestUnderstood) -> JsonObject:
    """The languages of a request that is not in English."""
    back = state.translated.fallback_reason if state.translated else None
    answered = (ENGLISH if back else understood.language) if state.translated else None
    return {
        "detected": understood.language,
        "planned_in": ENGLISH if understood.translated else understood.language,
        "answered_in": answered,
        "original": shorten(state.prompt),
        "fallback_reason": understood.fallback_reason or back,
    }


def _mode(state: RunState) -> Mode:
    return "llm" if state.usage.model_calls else "rules"


def _executor(state: RunState) -> JsonObject:
    """The executor of skills and completions: the model, or the rules that took over and why."""
    wanted = [
        attempt.output
        for step in (state.plan.steps if state.plan else ())
        if step.action in ("skill", "completion")
        for attempt in state.step(step.id).attempts
        if attempt.output is not None
    ]
    fallen = next((output for output in wanted if output.fallback_reason), None)
    if fallen is not None:
        return _used("llm", "rules", fallen.fallback_reason)
    effective: Mode = "llm" if wanted else "rules"
    return _used(effective, effective, None)


def _used(requested: str, effective: str, reason: str | None) -> JsonObject:
    return {
        "requested": requested,
        "effective": effective,
        "fallback_used": requested != effective,
        "fallback_reason": reason,
    }

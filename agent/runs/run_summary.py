"""Summarizes how a run was executed, from its log: planner, executor, languages, retrieval."""

from agent.core import events as ev
from agent.core.models import JsonObject, Mode
from agent.core.run_state import RunState
from agent.runs.trace_details import shorten
from agent.text.language import ENGLISH


def build_run_summary(state: RunState) -> JsonObject:
    """The request and what did the work: planner, executor, judge, answer."""
    first = state.plans[0] if state.plans else None
    fallen = next((plan for plan in state.plans if plan.requested != plan.effective), first)
    runtime: JsonObject = {
        "mode": _get_mode(state),
        "planner": _build_mode_entry(
            fallen.requested if fallen else "rules",
            fallen.effective if fallen else "rules",
            fallen.fallback_reason if fallen else None,
        ),
        "executor": _summarize_executor(state),
        "supervision": state.room.supervision,
        "route": state.understanding.route if state.understanding else None,
        "replans": state.replan_count,
        "retries": sum(step.retry_count for step in state.steps.values()),
    }
    if state.understanding is not None and state.understanding.profile is not None:
        runtime["profile"] = state.understanding.profile
    if state.understanding is not None and state.understanding.language != ENGLISH:
        runtime["language"] = _summarize_languages(state, state.understanding)
    if state.retrieval is not None:
        runtime["retrieval"] = _summarize_retrieval(state, state.retrieval)
    memory = state.retrieval
    if memory is not None and memory.requested:
        effective = "local" if memory.fallback_reason else memory.requested
        runtime["embedder"] = _build_mode_entry(memory.requested, effective, memory.fallback_reason)
    if state.answer_start is not None:
        runtime["answer"] = state.answer_start.model_dump(mode="json")
    if state.failed_upstreams:
        runtime["failed_upstreams"] = [failed.model_dump(mode="json") for failed in state.failed_upstreams]
    client_tools = len(state.request.client_tools)
    if client_tools and state.room.planning:
        runtime["client_tools_offered" if _were_tools_offered(state) else "client_tools_ignored"] = client_tools
    return runtime


def _were_tools_offered(state: RunState) -> bool:
    """Whether a planner saw the client's tools."""
    has_planned = state.input_request is not None or any(proposed.effective == "llm" for proposed in state.plans)
    return state.room.offers_client_tools and has_planned


def _summarize_languages(state: RunState, understood: ev.RequestUnderstood) -> JsonObject:
    """The languages of a request that is not in English."""
    back = state.translation.fallback_reason if state.translation else None
    answered = (ENGLISH if back else understood.language) if state.translation else None
    return {
        "detected": understood.language,
        "planned_in": ENGLISH if understood.translated else understood.language,
        "answered_in": answered,
        "original": shorten(state.prompt),
        "fallback_reason": understood.fallback_reason or back,
    }


def _get_mode(state: RunState) -> Mode:
    return "llm" if state.usage.model_calls else "rules"


def _summarize_executor(state: RunState) -> JsonObject:
    """The author of the answer, a model or the rules, and why rules took over anywhere in the plan.

    Without an answer so far, or where it is the result of a tool, counts what the steps did.
    """
    wanted = [
        attempt.output
        for step in state.plan_steps
        for attempt in state.get_step(step.id).attempts
        if attempt.output is not None and (step.action in ("skill", "completion") or _is_model_output(attempt.output))
    ]
    reason = next((output.fallback_reason for output in wanted if output.fallback_reason), None)
    by_model = any(output.effective == "llm" for output in wanted)
    if state.answer_start is not None and state.answer_start.model is not None:
        return _build_mode_entry("llm", "llm", reason)
    if reason is not None:
        return _build_mode_entry("llm", "rules", reason)
    effective: Mode = "llm" if by_model else "rules"
    return _build_mode_entry(effective, effective, None)


def _is_model_output(output: ev.StepOutput) -> bool:
    """Whether a model wrote a tool's result, or should have."""
    return output.effective == "llm" or output.fallback_reason is not None


def _build_mode_entry(requested: str, effective: str, reason: str | None) -> JsonObject:
    return {
        "requested": requested,
        "effective": effective,
        "fallback_used": reason is not None or requested != effective,
        "fallback_reason": reason,
    }


def _summarize_retrieval(state: RunState, retrieved: ev.MemoryRetrieved) -> JsonObject:
    """The findings of the retrieve stage, and the number of hits of each search of the steps."""
    searches: list[JsonObject] = []
    for step_id, step in state.steps.items():
        for call in (call for attempt in step.attempts for call in attempt.calls):
            value = call.result.output if call.result is not None else None
            results = value.get("results") if isinstance(value, dict) else None
            if isinstance(results, list):
                searches.append({"step_id": step_id, "tool": call.intent.tool, "hits": len(results)})
    return {
        "history": {"source": retrieved.source, "messages": len(retrieved.history)},
        "memories": len(retrieved.items),
        "searches": [*searches],
    }

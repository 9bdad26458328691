"""How a run was carried out, projected from its log: by whom it was planned and worked, and what was retrieved."""

from agent.core import events as ev
from agent.core.fold import RunState
from agent.core.language import ENGLISH
from agent.core.models import JsonObject, Mode
from agent.core.trace import shorten


def runtime_of(state: RunState) -> JsonObject:
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
    if state.retrieved is not None:
        runtime["retrieval"] = _retrieval(state, state.retrieved)
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
        for attempt in state.step(step.id).attempts
        if attempt.output is not None and (step.action in ("skill", "completion") or _by_model(attempt.output))
    ]
    fallen = next((output for output in wanted if output.fallback_reason), None)
    if fallen is not None:
        return _used("llm", "rules", fallen.fallback_reason)
    effective: Mode = "llm" if any(output.effective == "llm" for output in wanted) else "rules"
    return _used(effective, effective, None)


def _by_model(output: ev.StepOutput) -> bool:
    """Whether a tool's result was put by a model, or was to be."""
    return output.effective == "llm" or output.fallback_reason is not None


def _used(requested: str, effective: str, reason: str | None) -> JsonObject:
    return {
        "requested": requested,
        "effective": effective,
        "fallback_used": requested != effective,
        "fallback_reason": reason,
    }


def _retrieval(state: RunState, retrieved: ev.MemoryRetrieved) -> JsonObject:
    """What the retrieve stage took up, and what each search of the steps found."""
    searches: list[JsonObject] = []
    for step_id, step in state.steps.items():
        for call in (call for attempt in step.attempts for call in attempt.calls):
            value = call.returned.output if call.returned is not None else None
            found = value.get("results") if isinstance(value, dict) else None
            if isinstance(found, list):
                searches.append({"step_id": step_id, "tool": call.called.tool, "hits": len(found)})
    return {
        "history": {"source": retrieved.source, "messages": len(retrieved.history)},
        "memories": len(retrieved.items),
        "searches": [*searches],
    }

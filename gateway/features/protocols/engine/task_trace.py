"""`build_task_trace`: the trace of a task's run by stage: plan, retrieve, execute, verify, finalize."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from agent.core.models import JsonObject, TraceStep, TraceType
from agent.core.run_state import RunState

TaskStage = Literal["plan", "retrieve", "execute", "verify", "finalize"]

_STAGE_OF_LINE: Final[Mapping[TraceType, TaskStage]] = {"plan": "plan", "memory": "retrieve", "gate": "verify"}
_ANSWER_LINES: Final[frozenset[TraceType]] = frozenset({"guard", "translation"})
"""Lines that belong to the request before the plan, and to the answer after it."""


def build_task_trace(lines: Sequence[TraceStep], state: RunState) -> list[JsonObject]:
    """The lines of a trace, each with its `stage`, and a last one for the end of the run.

    What was recalled stands behind the plan, because a task's searches are steps of its plan. What happened before the
    plan belongs to it. A replan begins again with `plan`.
    """
    first = next((at for at, line in enumerate(lines) if line.type == "plan"), len(lines))
    before = [line for line in lines[:first] if line.type != "memory"]
    recalled = [line for line in lines[:first] if line.type == "memory"]
    planned = [_to_json(line, "plan") for line in (*before, *lines[first : first + 1])]
    trace = planned + [_to_json(line, _stage_of(line)) for line in (*recalled, *lines[first + 1 :])]
    return [*trace, _build_final_line(state)] if state.is_finished else trace


def _stage_of(line: TraceStep) -> TaskStage:
    if line.type in _ANSWER_LINES and line.step_id is None:
        return "finalize"
    return _STAGE_OF_LINE.get(line.type, "execute")


def _build_final_line(state: RunState) -> JsonObject:
    """The line of the run's end: its status, and why it is not complete."""
    status = state.completeness or state.status
    detail: JsonObject = {"status": status, "reason": state.end_reason or None}
    if state.failure is not None:
        detail |= {"error_code": state.failure.error_code, "reason": state.failure.message}
    line = TraceStep(
        type="finalize",
        agent_id="gateway",
        title=f"the run ended: {status}",
        status="failed" if state.failure is not None else "done",
        started_at=datetime.fromtimestamp(state.updated_at, UTC),
        duration=0.0,
        detail=detail,
    )
    return _to_json(line, "finalize")


def _to_json(line: TraceStep, stage: TaskStage) -> JsonObject:
    return {"stage": stage, **line.model_dump(mode="json")}

"""The plan of a run as doors show it."""

from typing import Literal

from agent.core.models import DeferredModel
from agent.core.models.written_call import write_call
from agent.core.run_state import RunState, StepStatus

_STEP_STATUSES: dict[StepStatus, Literal["pending", "in_progress", "completed", "failed"]] = {
    "pending": "pending",
    "running": "in_progress",
    "executed": "in_progress",
    "retry": "in_progress",
    "succeeded": "completed",
    "replan": "failed",
    "aborted": "failed",
    "unknown": "failed",
}


class PlanStepView(DeferredModel):
    """A step of the plan, numbered from 1."""

    step_id: int
    description: str
    tool_call: str
    """The tool with its arguments, `name(key=value)`, as `metadata.tool_calls` takes it."""
    status: Literal["pending", "in_progress", "completed", "failed"]


def build_plan_view(state: RunState) -> list[PlanStepView]:
    """The current plan with the status of each step."""
    return [
        PlanStepView(
            step_id=number,
            description=step.intent or step.title,
            tool_call=write_call(step.tool, step.args),
            status=_STEP_STATUSES[state.get_step(step.id).status],
        )
        for number, step in enumerate(state.plan_steps, start=1)
    ]

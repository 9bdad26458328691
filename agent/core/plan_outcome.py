"""The outcome of the plan in force, derived from the state of a run. Pure functions."""

from agent.core.models import PlanStep, StepOutcome
from agent.core.run_state import RunState, StepState, StepStatus

_HALTING: frozenset[StepStatus] = frozenset({"replan", "aborted", "unknown"})

EMPTY_REPLIES = {
    "stop": "the model returned an empty reply; ask again, or with another model",
    "tool_calls": "the model returned an empty reply; ask again, or with another model",
    "length": "the model used up its token limit before it wrote an answer",
    "content_filter": "the provider's content filter withheld the whole answer",
}
"""The meaning of a reply without text, by its finish reason."""
REPEATED = "not called again, because the same call failed before: "
"""Precedes the reason of a call that is not made."""


def collect_step_statuses(state: RunState) -> set[StepStatus]:
    """The statuses that the steps of the plan in force have."""
    return {state.get_step(step.id).status for step in state.plan_steps}


def find_halting_step(state: RunState) -> PlanStep | None:
    """The step that stops the plan in force: judged REPLAN or ABORT, or of unknown outcome."""
    return next((step for step in state.plan_steps if state.get_step(step.id).status in _HALTING), None)


def find_unprovided(state: RunState) -> PlanStep | None:
    """The step of a room with required tools that cannot be done before its operator provides something."""
    step = find_halting_step(state) if state.room.required_tools else None
    output = state.get_step(step.id).output if step is not None else None
    return step if output is not None and output.error_code == "ERR_TOOL_SETUP" else None


def was_refused(state: RunState, step: PlanStep) -> bool:
    """Whether a person did not allow the call of this step, or the same tool's call before."""
    output = state.get_step(step.id).output
    if output is None or output.error_code != "ERR_TOOL_DENIED":
        return False
    refused = (one for one in state.approvals if one.call_id is not None and _is_refused(state, one.approval_id))
    return any(item.step_id == step.id or item.tool == step.tool for one in refused for item in one.items)


def _is_refused(state: RunState, approval_id: str) -> bool:
    decided = state.decisions.get(approval_id)
    return decided is not None and decided.decision == "rejected"


def may_have_changed(state: RunState, step: PlanStep) -> bool:
    """Whether a step of a change was carried out, or returned something so that nobody knows."""
    own = state.get_step(step.id)
    has_returned = own.output is not None and own.output.error_code in (None, "ERR_TOOL_OUTPUT")
    return own.status in ("succeeded", "unknown") or has_returned


def find_refusal_of_plan(state: RunState) -> str:
    """Why the planner's calls for the request were not made: its plans were refused, and rules know no other. "" if
    they were made."""
    proposed = state.plans[-1] if state.plans else None
    return (proposed.fallback_reason or "") if proposed is not None and proposed.refused_calls else ""


def list_cut_answers(state: RunState) -> list[str]:
    """The answers of models that were cut off because they were too long."""
    outputs = (state.get_step(step.id).output for step in state.plan_steps if step.is_completion)
    written = (one for one in outputs if one is not None and one.effective != "rules")
    return [one.text for one in written if one.finish_reason == "length"]


def find_interruption(state: RunState) -> str:
    """The provider's word for why the answer of a model ended unfinished; "" if it is whole."""
    outputs = ((step, state.get_step(step.id).output) for step in state.plan_steps)
    cut = ((step, one.interruption) for step, one in outputs if one is not None and one.interruption)
    return next((interruption for step, interruption in cut if is_answer_step(state, step)), "")


def list_cut_texts(state: RunState) -> list[PlanStep]:
    """The steps of the plan in force whose text a model did not finish. The answer itself says so by its end."""
    outputs = [(step, state.get_step(step.id).output) for step in state.plan_steps if not step.is_completion]
    return [step for step, one in outputs if one is not None and (one.finish_reason != "stop" or one.interruption)]


def list_abandoned_steps(state: RunState) -> tuple[PlanStep, ...]:
    """The failed steps for which no later plan found another way.

    A later plan finds another way if it has new steps and a planner made it. Steps that a person replaced do not count.
    What a person did not allow stays, and a change that failed, if no other was made: reading makes up for neither.
    """
    if len(state.plans) < 2:  # nothing was replaced
        return ()
    lost = _list_lost_steps(state)
    current = {step.id for step in state.plan_steps}
    listed_ids = current | {step.id for step in lost}
    steps = [step for step in state.steps_of_all_plans.values() if step.is_work]
    changing = [step for step in steps if step.effect == "effect"]
    has_changed = any(state.get_step(step.id).status == "succeeded" for step in changing)
    failed_ids = {step.id for step in changing if not has_changed and state.get_step(step.id).status == "replan"}
    earlier = (step for step in steps if step.id not in listed_ids)
    return (*(step for step in earlier if step.id in failed_ids or was_refused(state, step)), *lost)


def _list_lost_steps(state: RunState) -> list[PlanStep]:
    lost: list[PlanStep] = []
    for number in range(len(state.plans) - 1, 0, -1):
        before, after = state.plans[:number], state.plans[number]
        known_step_ids = {step.id for proposed in before for step in proposed.plan.steps}
        has_new_work = any(step.id not in known_step_ids and step.is_work for step in after.plan.steps)
        if after.asked_for or (has_new_work and after.fallback_reason is None):
            break
        failed = (step for step in before[-1].plan.steps if state.get_step(step.id).status == "replan")
        lost[:0] = (step for step in failed if step.is_work)
    return lost


def find_failure_reason(state: RunState, step: PlanStep) -> str:
    """The reason why a step failed, as its verdict says."""
    verdict = get_last_verdict(state.get_step(step.id))
    return verdict.reason if verdict else "it did not finish"


def is_complete(state: RunState) -> bool:
    """Whether every step of the plan in force succeeded."""
    return state.plan is not None and collect_step_statuses(state) <= {"succeeded"}


def is_answer_step(state: RunState, step: PlanStep) -> bool:
    """Whether the output of this step is the answer, or a part of it."""
    if step.is_completion or state.plan is None:
        return True
    return not any(step.id in other.depends_on for other in state.plan.steps)


def list_undone(state: RunState) -> tuple[str, ...]:
    """The reason why the sub-agents of the plan in force did not do what they were asked for, or why nothing was done
    in the place of the room's router; () if all was done.
    """
    steps = {step.id for step in state.plan_steps}
    ends = (one.end for span, one in state.subagents.items() if span.partition(".")[0] in steps)
    undone = tuple(end.result.undone.reason for end in ends if end is not None and end.result.undone is not None)
    if not undone and is_router_replaced(state) and not has_worked(state):
        return ("nothing was looked up or changed: no request was dispatched, and no tool was called",)
    return undone


def is_router_replaced(state: RunState) -> bool:
    """Whether the room's router dispatched nothing and asked nothing, so that a planner answers in its place."""
    read = state.classified
    return read is not None and read.task_plan is None and not read.question


def has_worked(state: RunState) -> bool:
    """Whether a step of the plan in force has done anything but write the answer."""
    return any(step.is_work and state.get_step(step.id).status == "succeeded" for step in state.plan_steps)


def is_left_undone(state: RunState, step_id: str) -> bool:
    """Whether the newest sub-agent of a step came to its end without doing what it was asked for, or with a question:
    the step has a result, but what depends on it has nothing to build on.
    """
    ends = (one.end for span, one in state.subagents.items() if span.partition(".")[0] == step_id)
    last = next((end for end in reversed(list(ends)) if end is not None), None)
    return last is not None and (last.result.undone is not None or bool(last.result.question))


def find_empty_reply(state: RunState) -> str | None:
    """The reason why the model's answer has no text, if its reply was cut off or withheld as a whole; else None."""
    outputs = [state.get_step(step.id).output for step in state.plan_steps if step.is_completion]
    last = outputs[-1] if outputs else None
    if last is None or last.error_code is not None or last.text.strip() or last.blob is not None:
        return None
    return EMPTY_REPLIES[last.finish_reason] if last.finish_reason in ("length", "content_filter") else None


def get_last_verdict(step: StepState) -> StepOutcome | None:
    """The verdict on the newest attempt of a step, if there is one."""
    return step.last.verdict if step.last else None

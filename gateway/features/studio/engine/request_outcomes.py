"""A run of the studio as its endpoint reports it: the outcome of each request in a message, and of all together."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from agent.core.events import SubAgentFinished
from agent.core.failures import get_stage
from agent.core.models import DeferredModel, JsonObject, PlanStep, RunStatus, UserIntent
from agent.core.plan_outcome import get_last_verdict, has_worked, is_left_undone
from agent.core.run_state import RunState
from gateway.features.studio.engine.subagents import STUDIO_AGENTS

IntentStatus = Literal["done", "waiting", "refused", "failed", "not_run"]
StudioStatus = RunStatus | Literal["error"]


class IntentOutcome(DeferredModel):
    """What became of one request of a message. `reason` says why it is not done, `error_code` which failure it was, and
    `stage` which check refused it, or which stage of the run it did not pass; empty if it is done or waits."""

    step_id: str
    category: str
    action: str
    request: str
    status: IntentStatus
    reason: str = ""
    error_code: str = ""
    stage: str = ""
    changes: list[str] = Field(default_factory=list, description="the calls that changed something, with their results")


class StudioError(DeferredModel):
    """Why nothing of a message was done."""

    message: str
    stage: str = Field(description="the stage of the run, or the check that refused the change")
    recoverable: bool = Field(description="whether the same can succeed with other values, or later")
    error_code: str = ""


def build_outcomes(state: RunState) -> list[IntentOutcome]:
    """The outcome of each request, in the order of the message; [] if the router read none that is dispatched or asked
    about: a question keeps all of them waiting.

    The outcome of a request is that of its own step, even if a later plan lacks the step. Steps that a person added
    come last.
    """
    read, plan = state.classified, state.plan
    if read is not None and read.question:
        return [_build_unplanned(state, intent, "waiting", read.question) for intent in read.intents]
    if read is None or read.task_plan is None or plan is None:
        return []
    steps = {name: step for name, step in state.steps_of_all_plans.items() if step.is_work}
    routed = read.step_ids or tuple(step.id for step in plan.steps if step.is_work)
    if not steps.keys() >= {*routed}:  # the router has read a reply to the plan's question; its plan is still to come
        status: IntentStatus = "not_run" if state.is_finished else "waiting"
        reason = _find_end_reason(state) if state.is_finished else "it is not planned yet"
        return [_build_unplanned(state, intent, status, reason) for intent in read.intents]
    dispatched = dict(zip(routed, zip(read.intents, read.task_plan.steps, strict=True), strict=False))
    added = [step.id for step in plan.steps if step.is_work and step.id not in dispatched and step.executor == "agent"]
    outcomes: list[IntentOutcome] = []
    for step_id in (*dispatched, *added):
        intent, task = dispatched.get(step_id, (None, None))
        action = task.action if task is not None else str(steps[step_id].args.get("action", ""))
        category = intent.category if intent is not None else _find_category(steps[step_id])
        outcome = _build_outcome(state, steps[step_id], category, action)
        waiting = [one.step_id for one in outcomes if one.status == "waiting"]
        asking = [name for name in steps[step_id].depends_on if name in waiting]
        if outcome.status == "not_run" and asking and state.cancel_request is None:
            reason = f"it waits for the answer to {', '.join(asking)}"
            outcome = outcome.model_copy(update={"status": "waiting", "reason": reason})
        outcomes.append(outcome)
    return [one.model_copy(update={"stage": one.stage or _find_stage(state, one.status)}) for one in outcomes]


def derive_status(state: RunState, outcomes: Sequence[IntentOutcome]) -> StudioStatus:
    """The status of a message. A run that did nothing is `error`, or `cancelled` if a person refused it."""
    if state.status not in ("succeeded", "partial", "failed"):
        return state.status
    kinds = {one.status for one in outcomes}
    if "waiting" in kinds:
        return "awaiting_input"
    if not outcomes and state.classified is not None and not has_worked(state):
        return "error"  # the planner answered in the router's place, and a claim of its model is no deed
    done = "done" in kinds or any(one.changes for one in outcomes)
    if state.status == "failed" or (state.status == "partial" and not done):
        return "cancelled" if "refused" in kinds and kinds <= {"refused", "not_run"} else "error"
    return "partial" if kinds - {"done"} else state.status


def find_reason(state: RunState, status: StudioStatus, outcomes: Sequence[IntentOutcome]) -> str:
    """The reason why a message was cancelled; else why nothing was dispatched, if nothing was."""
    if status == "cancelled":
        own = state.cancel_request.reason if state.cancel_request is not None else ""
        return own or next((one.reason for one in outcomes if one.reason), "")
    return state.classified.reason if state.classified is not None else ""


def find_question(state: RunState, outcomes: Sequence[IntentOutcome], answer: str) -> str:
    """What a message that waits for the user asks: the questions of its requests as far as the answer shows them, else
    the answer.
    """
    ends = [_find_end(state, one.step_id) for one in outcomes if one.status == "waiting"]
    questions = dict.fromkeys(end.result.question for end in ends if end is not None and end.result.question)
    # The room's output policy may have withheld one.
    return "\n\n".join(question for question in questions if question in answer) or answer


def build_error(state: RunState, status: StudioStatus, outcomes: Sequence[IntentOutcome]) -> StudioError | None:
    """The reason why nothing was done; None unless the status is `error`."""
    if status != "error":
        return None
    if state.failure is not None:
        failure = state.failure
        return StudioError(
            message=failure.message,
            stage=get_stage(failure),
            recoverable=failure.recoverable,
            error_code=failure.error_code,
        )
    for one in outcomes:
        if one.status in ("failed", "refused", "not_run"):
            return StudioError(
                message=one.reason or "nothing was done",
                stage=one.stage,
                recoverable=True,
                error_code=one.error_code,
            )
    reason = find_reason(state, status, outcomes) or state.end_reason or "nothing was done"
    return StudioError(message=reason, stage="plan", recoverable=True)


def _build_unplanned(state: RunState, intent: UserIntent, status: IntentStatus, reason: str) -> IntentOutcome:
    """The outcome of a request of which no step was made, so that the message stands for its words."""
    return IntentOutcome(
        step_id="",
        category=intent.category,
        action=intent.action,
        request=state.prompt[:300],
        status=status,
        reason=reason,
    )


def _find_category(step: PlanStep) -> str:
    """The category of a step that a person added; empty for a step that starts none of the studio's sub-agents."""
    return next((kind.CATEGORY for kind in STUDIO_AGENTS if step.tool == f"spawn_{kind.AGENT_ID}"), "")


def _build_outcome(state: RunState, step: PlanStep, category: str, action: str) -> IntentOutcome:
    end = _find_end(state, step.id)
    outcome = IntentOutcome(
        step_id=step.id,
        category=category,
        action=action,
        request=step.intent,
        status="done",
        changes=_list_changes(end),
    )
    undone = end.result.undone if end is not None else None
    if _is_waiting(state, step) or (end is not None and end.result.question):
        question = end.result.question if end is not None else "a person has to allow it"
        return outcome.model_copy(update={"status": "waiting", "reason": question})
    if undone is not None:
        status: IntentStatus = "refused" if _was_refused(state, step) else "failed"
        failure = {"reason": undone.reason, "error_code": undone.error_code, "stage": undone.stage}
        return outcome.model_copy(update={"status": status, **failure})
    if state.get_step(step.id).status == "succeeded":
        return outcome
    if not state.get_step(step.id).attempts:
        if state.plan is not None and all(one.id != step.id for one in state.plan.steps):
            return outcome.model_copy(update={"status": "not_run", "reason": "it was taken out of the plan"})
        if not state.is_finished and not _was_refused(state, step):
            return outcome.model_copy(update={"status": "waiting", "reason": _explain_waiting(step)})
        status = "refused" if _was_refused(state, step) else "not_run"
        return outcome.model_copy(update={"status": status, "reason": _explain_not_run(state, step)})
    verdict = get_last_verdict(state.get_step(step.id))
    reason = end.result.summary if end is not None else verdict.reason if verdict is not None else "it did not finish"
    return outcome.model_copy(update={"status": "refused" if _was_refused(state, step) else "failed", "reason": reason})


def _find_stage(state: RunState, status: IntentStatus) -> str:
    """The stage of the run that a request did not pass; empty if it is done or waits."""
    if status in ("done", "waiting"):
        return ""
    if status == "refused":
        return "approve"
    return get_stage(state.failure) if state.failure is not None else "execute"


def _find_end(state: RunState, step_id: str) -> SubAgentFinished | None:
    """The end of the newest sub-agent that a step has started."""
    ends = [one.end for span, one in state.subagents.items() if span.partition(".")[0] == step_id]
    return next((one for one in reversed(ends) if one is not None), None)


def _list_changes(end: SubAgentFinished | None) -> list[str]:
    data: JsonObject = end.result.data if end is not None else {}
    changes = data.get("changes")
    return [str(one) for one in changes] if isinstance(changes, list) else []


def _is_waiting(state: RunState, step: PlanStep) -> bool:
    return not state.is_finished and any(
        item.step_id == step.id for request in state.pending_approvals for item in request.items
    )


def _was_refused(state: RunState, step: PlanStep) -> bool:
    """Whether a person rejected a call of this step, or the plan that contains it."""
    requests = (one for one in state.approvals if any(item.step_id == step.id for item in one.items))
    decisions = (state.decisions.get(one.approval_id) for one in requests)
    return any(decided is not None and decided.decision == "rejected" for decided in decisions)


def _explain_not_run(state: RunState, step: PlanStep) -> str:
    needed = [
        name for name in step.depends_on if state.get_step(name).status != "succeeded" or is_left_undone(state, name)
    ]
    if needed:
        return f"it needs the result of {', '.join(needed)}, which was not done"
    return _find_end_reason(state)


def _find_end_reason(state: RunState) -> str:
    return state.cancel_request.reason if state.cancel_request is not None else "it was not started"


def _explain_waiting(step: PlanStep) -> str:
    return f"it begins after {', '.join(step.depends_on)}" if step.depends_on else "it has not begun yet"

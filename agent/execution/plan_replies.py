"""Replies in words to a plan that waits for approval, where the planner changed nothing because of them.

"Why?" and "later" do not answer the question: the plan stands, and is asked about again with what the planner said.
"Cancel" is one, whatever the planner makes of it. A yes is never read into words: only `approve` lets something happen.
"""

from agent.core.errors import ModelError
from agent.core.events import CancelRequested, PlanProposed
from agent.core.models import JsonObject, Plan
from agent.core.run_state import RunState
from agent.execution.planner_call import PlannerCall
from agent.planning.planned import Planned
from agent.planning.rounds.tool_need import refuses_plan
from agent.run_context.run import Run

Calls = list[tuple[str, JsonObject]]


async def settle_reply(
    run: Run, planned: Planned, reply: str, reason: str | None
) -> CancelRequested | PlanProposed | None:
    """The end of a plan that the reply refuses, or the plan as it was, to be asked about again. None if the reply led
    to other calls or to a question."""
    state = run.state
    if state.plan is None or planned.question:
        return None
    pending, following = _list_pending(state, state.plan), _list_pending(state, planned.plan)
    if not pending or following not in ([], pending):
        return None
    if planned.effective == "llm" and await _is_refusal(run, reply):
        return CancelRequested(reason=f"the plan was rejected: {reply}")
    if following:
        return None
    unchanged = state.plan.model_copy(update={"version": state.plan.version + 1})
    explanation = await _clean_explanation(run, planned)
    changes = {"plan": unchanged, "replan_reason": reason, "asked_for": True, "explanation": explanation}
    return state.plans[-1].model_copy(update=changes)


async def _is_refusal(run: Run, reply: str) -> bool:
    """Whether the model says so of the reply alone. It sees nothing else, so nothing else can have said it."""
    try:
        return await refuses_plan(PlannerCall(run, "none"), reply)
    except ModelError:
        return False


async def _clean_explanation(run: Run, planned: Planned) -> str:
    """What the planner said to the reply, if the room lets it out."""
    if planned.answer is None:
        return ""
    checked = await run.redaction.check_answer(planned.answer.text)
    return run.redaction.clean_question(checked.text) if checked.failure is None else ""


def _list_pending(state: RunState, plan: Plan) -> Calls:
    """The calls of a plan that are still to be made."""
    steps = (step for step in plan.steps if step.is_work and state.get_step(step.id).status != "succeeded")
    return [(step.tool, step.args) for step in steps]

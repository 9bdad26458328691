"""Routes a request by its intent, in rooms with `routing: intents`: the router's call, and what follows without it."""

from time import monotonic

from agent.answers.answer_text import assemble_answer
from agent.core.errors import BudgetError, ModelError, ModelUnreachableError, PlanInvalidError
from agent.core.events import InputRequested, IntentClassified, StepOutput
from agent.core.plan_outcome import is_complete
from agent.core.run_state import RunState
from agent.execution.static_plans import plan_completion_only
from agent.planning.planner import Planned
from agent.planning.request import PlanningRequest
from agent.policy.egress import clean_question
from agent.run_context.model_calls import MeteredModels
from agent.run_context.run import Run
from agent.run_context.run_tools import list_allowed_tools
from gateway.features.studio.engine.intents import (
    Dispatch,
    build_router_messages,
    build_router_schema,
    describe_doors,
    read_dispatch,
)

WITHHELD_QUESTION = "Something is to be asked, but this room's output policy withholds the question."


async def route_by_intent(run: Run, request: PlanningRequest) -> Planned | None:
    """Returns the router's plan or its question; None if the planner has to take over. The log says why.

    A model that cannot be reached is not asked twice: then nothing is planned.
    """
    started = monotonic()
    try:
        decided = await _ask_router(run, request)
    except ModelUnreachableError as error:
        await _record(run, Dispatch((), reason=error.message), started)
        why = f"the model cannot be reached: {error.message}"
        return Planned(plan_completion_only(run, why), "llm", "rules", why)
    except (ModelError, BudgetError) as error:
        await _record(run, Dispatch((), reason=f"the router failed, the planner takes over: {error.message}"), started)
        return None
    except PlanInvalidError as error:
        await _record(run, Dispatch((), reason=f"the planner takes over: {error.problems[0]}"), started)
        return None
    await _record(run, decided, started)
    if decided.plan is None:
        why = decided.reason
        return Planned(plan_completion_only(run, why), "llm", "llm", question=decided.question)
    return Planned(decided.plan, "llm", "llm")


def build_doors_output(run: Run, reason: str) -> StepOutput:
    """Returns the answer of a room whose router and planner have no model: where people do the same by themselves."""
    lines = [
        f"I cannot read free text now: {reason}. Nothing was done. The same without a model:",
        "",
        describe_doors(list_allowed_tools(run)),
    ]
    return StepOutput(text="\n".join(lines), value="\n".join(lines), effective="rules", fallback_reason=reason)


async def ask_open_question(run: Run) -> None:
    """Ends the run with the question of a sub-agent, after all that the other steps have found. Does nothing if none
    asks, or if the plan is not complete.
    """
    if run.state.input_request is not None or not _asks_user(run.state) or not is_complete(run.state):
        return
    checked = await run.redaction.check_answer((await assemble_answer(run)).text)
    question = checked.text if checked.failure is None else WITHHELD_QUESTION
    question = clean_question(question, run.state)
    await run.emit(InputRequested(question=question))


def _asks_user(state: RunState) -> bool:
    """Returns whether a sub-agent that a step of the current plan has started asks the user."""
    steps = {step.id for step in state.plan.steps} if state.plan else set[str]()
    return any(
        one.end is not None and one.end.result.question and span.partition(".")[0] in steps
        for span, one in state.subagents.items()
    )


async def _ask_router(run: Run, request: PlanningRequest) -> Dispatch:
    reply = await MeteredModels(run).complete(
        "router", build_router_messages(request), schema=build_router_schema(), formed=False
    )
    return read_dispatch(reply, request)


async def _record(run: Run, decided: Dispatch, started: float) -> None:
    await run.note(
        IntentClassified(
            intents=decided.intents,
            task_plan=decided.tasks,
            question=decided.question,
            reason=decided.reason,
            duration=monotonic() - started,
        )
    )

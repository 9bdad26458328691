"""Routes a request by its intent, in rooms with `routing: intents`: the router's call, and what follows without it."""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

from agent.core.errors import AgentError, BudgetError, ModelError, ModelUnreachableError, PlanInvalidError
from agent.core.events import IntentClassified
from agent.core.models import rooms_with
from agent.execution.static_plans import plan_completion_only
from agent.planning.planned import Planned, build_ruled
from agent.planning.request import PlanningRequest
from agent.policy.approval import get_plan_feedback
from agent.run_context.extensions import Extension
from agent.run_context.model_calls import MeteredModels, ModelCall
from agent.run_context.run import Run
from agent.run_context.run_hooks import PlanInquiry, PlanSource, RunHooks
from gateway.features.studio.engine.intents import (
    Dispatch,
    build_router_messages,
    describe_doors,
    dispatch_command,
    read_dispatch,
)
from gateway.features.studio.engine.router_reply import build_router_schema

ROUTED_ROOMS = rooms_with(routing="intents")


class IntentHooks(RunHooks):
    """The router of rooms with `routing: intents`."""

    name = "intents"
    rooms = ROUTED_ROOMS

    @property
    def plan_sources(self) -> Sequence[PlanSource]:
        """The router."""
        return (PlanSource("intents", plan_by_intent, before="command", routes=("plan",), rooms=ROUTED_ROOMS),)

    async def plan_next(self, run: Run, request: PlanningRequest) -> Planned | None:
        """See `RunHooks.plan_next`: a reply to the plan's question is read by the router too."""
        feedback = run.plans_with_model and get_plan_feedback(run.state)
        return await route_by_intent(run, request) if feedback else None

    def describe_alternatives(self, run: Run) -> str:
        """See `RunHooks.describe_alternatives`."""
        return describe_doors(run.allowed_tools)


INTENT_EXTENSION = Extension("intents", hooks=(IntentHooks(),))


async def plan_by_intent(run: Run, inquiry: PlanInquiry) -> Planned | None:
    """The router's plan or its question; without a model the plan of an exact command."""
    if not run.plans_with_model:
        return await _plan_command(run, await inquiry.get_request(), monotonic())
    return await route_by_intent(run, await inquiry.get_request())


async def route_by_intent(run: Run, request: PlanningRequest) -> Planned | None:
    """The router's plan or its question; None if the planner has to take over. The log says why.

    An exact command is understood where the router fails. A model that cannot be reached is not asked twice: then
    nothing else is planned.
    """
    started = monotonic()
    try:
        decided = await _ask_router(run, request)
    except (ModelError, BudgetError, PlanInvalidError) as error:
        why = f"the router failed: {error.problems[0] if isinstance(error, PlanInvalidError) else error.message}"
        if (planned := await _plan_command(run, request, started, why)) is not None:
            return planned
        return await _plan_without_router(run, error, started)
    await _record(run, decided, started)
    if decided.plan is None:
        why = decided.reason
        return Planned(plan_completion_only(run, why), "llm", "llm", question=decided.question)
    return Planned(decided.plan, "llm", "rules" if decided.plan.origin == "rules" else "llm")


async def _plan_command(run: Run, request: PlanningRequest, started: float, why: str = "") -> Planned | None:
    """The plan of an exact command, read without a model; None for free text. `why` says why no model read it."""
    command = dispatch_command(request)
    if command is None or command.plan is None:
        return None
    reason = f"{command.reason}; {why}" if why else command.reason
    await _record(run, replace(command, reason=reason), started)
    return Planned(command.plan, "llm", "rules", why) if why else build_ruled(command.plan)


async def _plan_without_router(run: Run, error: AgentError, started: float) -> Planned | None:
    """Records why the router failed. Returns a plan that names the commands if no model can be reached, else None."""
    if isinstance(error, ModelUnreachableError):
        await _record(run, Dispatch((), reason=error.message), started)
        why = f"the model cannot be reached: {error.message}"
        return Planned(plan_completion_only(run, why), "llm", "rules", why)
    if isinstance(error, PlanInvalidError):
        await _record(run, Dispatch((), reason=f"the planner takes over: {error.problems[0]}"), started)
    else:
        await _record(run, Dispatch((), reason=f"the router failed, the planner takes over: {error.message}"), started)
    return None


async def _ask_router(run: Run, request: PlanningRequest) -> Dispatch:
    call = ModelCall("router", build_router_messages(request), schema=build_router_schema())
    reply = await MeteredModels(run).complete(call)
    return read_dispatch(reply, request)


async def _record(run: Run, decided: Dispatch, started: float) -> None:
    await run.note(
        IntentClassified(
            intents=decided.intents,
            task_plan=decided.tasks,
            question=decided.question,
            reason=decided.reason,
            changing=decided.changing,
            step_ids=tuple(step.id for step in decided.plan.steps) if decided.plan is not None else (),
            duration=monotonic() - started,
        )
    )

"""The workflow: the next stage of a run, and the loop that drives a run through its stages.

Resuming after a crash, a restart or a long wait is the same as starting: fold the log, ask `choose_next_stage`,
continue.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from agent.core.errors import BudgetError
from agent.core.events import CancelRequested, RequestUnderstood
from agent.core.plan_outcome import find_halting_step, find_unprovided, is_complete
from agent.core.run_state import RunState
from agent.execution import stages
from agent.execution.decide import decide, find_client_steps, needs_replan, needs_round
from agent.execution.gates import has_room_gates
from agent.policy.approval import find_approval_reason, is_plan_awaiting_approval
from agent.run_context.run import Run

StageName = Literal["guard", "understand", "retrieve", "plan", "approve", "execute", "verify", "translate", "finalize"]

STAGES: Mapping[StageName, Callable[[Run], Awaitable[None]]] = {
    "guard": stages.guard,
    "understand": stages.understand,
    "retrieve": stages.retrieve,
    "plan": stages.plan,
    "approve": stages.approve,
    "execute": stages.execute,
    "verify": stages.verify,
    "translate": stages.translate,
    "finalize": stages.finalize,
}


ROUTES: Mapping[StageName, tuple[StageName | None, ...]] = {
    "guard": ("understand", "finalize"),
    "understand": ("retrieve", "finalize"),
    "retrieve": ("plan", "finalize"),
    "plan": ("approve", "execute", "verify", "translate", "finalize"),
    "approve": (None,),
    "execute": ("plan", "verify", "translate", "finalize", None),
    "verify": ("plan", "translate", "finalize"),
    "translate": ("finalize",),
    "finalize": (None,),
}
"""The stages that `choose_next_stage` may return after each stage; None is the end, or a wait for a person.

Used to draw and to compile the workflow."""

_INTERRUPTIBLE = frozenset({"understand", "retrieve", "plan", "execute", "verify", "translate"})
"""The stages that a stop request interrupts: those that wait for models and tools, and those between them."""


def choose_next_stage(state: RunState) -> StageName | None:
    """The next stage of this run; None if it is finished or waits for a person. Pure."""
    if state.is_finished:
        return None
    if state.input_guard is None:
        return "guard"
    if state.cancel_request is not None:
        return "finalize"
    if state.understanding is None:
        return "understand"
    if state.retrieval is None:
        return "retrieve"
    if state.input_request is not None:
        return "translate" if state.understanding.translate_answer and state.translation is None else "finalize"
    if state.client_calls is not None:
        return "finalize"
    if state.plan is None or needs_replan(state) or needs_round(state):
        return "plan"
    return _get_next_plan_stage(state, state.understanding)


def _get_next_plan_stage(state: RunState, understood: RequestUnderstood) -> StageName | None:
    """The next stage of the current plan."""
    complete = is_complete(state)
    if not complete:  # a complete plan has nothing left to approve or to run
        if find_approval_reason(state):
            return None if is_plan_awaiting_approval(state) else "approve"
        if decide(state):
            return "execute"
    if state.pending_approvals and find_halting_step(state) is None:
        return None
    if find_client_steps(state):
        return "execute"
    if not state.gates and (complete or has_room_gates(state)) and find_unprovided(state) is None:
        return "verify"
    if understood.translate_answer and state.translation is None:
        return "translate"
    return "finalize"


async def drive(run: Run) -> None:
    """Drives the run through its stages to its terminal event. Raises a stage's errors.

    A person's cancellation or the end of the time budget interrupts a stage; the answer says so.
    """
    while (stage := choose_next_stage(run.state)) is not None:
        if stage in _INTERRUPTIBLE:
            await _run_until_stopped(run, _run_interruptible_stages)
        else:
            await STAGES[stage](run)


async def run_stage(run: Run, stage: StageName) -> None:
    """Runs one stage. Interrupts a long one if the run is stopped."""
    if stage in _INTERRUPTIBLE:
        await _run_until_stopped(run, STAGES[stage])
    else:
        await STAGES[stage](run)


def render_mermaid() -> str:
    """The workflow as a Mermaid flow chart. A resumed run enters at the stage of `choose_next_stage`."""
    lines = ["flowchart TD", "    start([request]) --> guard"]
    for stage, followers in ROUTES.items():
        end = "done([answer])" if stage == "finalize" else "wait([a person decides])"
        lines += [f"    {stage} --> {follower or end}" for follower in followers]
    return "\n".join(lines)


async def _run_interruptible_stages(run: Run) -> None:
    while (stage := choose_next_stage(run.state)) is not None and stage in _INTERRUPTIBLE:
        await STAGES[stage](run)


async def _run_until_stopped(run: Run, work: Callable[[Run], Awaitable[None]]) -> None:
    if run.stop_requested.is_set():
        return
    stopped = run.stop_requested.get_future()
    try:
        async with asyncio.timeout(run.seconds_left) as limit:

            def interrupt(_: object) -> None:
                limit.reschedule(asyncio.get_running_loop().time())

            stopped.add_done_callback(interrupt)
            try:
                await work(run)
            except BudgetError as error:  # of the planner, outside any step; the known results are the answer
                await run.emit(CancelRequested(reason=error.message, by="budget"))
            finally:
                stopped.remove_done_callback(interrupt)
    except TimeoutError:
        if not limit.expired():
            raise
        if not run.stop_requested.is_set():
            reason = f"the run has used its {run.room.budgets.max_seconds:g} seconds (budgets.max_seconds of the room)"
            await run.emit(CancelRequested(reason=reason, by="budget"))

"""Approve: ask a person about the plan in force. The run then waits; their word brings it back."""

from agent.core.approval import asks, plan_items, request, said_of_plan
from agent.execution.approvals import expiry, pin_of
from agent.execution.run import Run


async def approve(run: Run) -> None:
    """Record the question."""
    state = run.state
    reason = asks(state)
    if state.plan is None or reason is None:
        return
    if said_of_plan(state):
        reason = f"{reason}. It could not be changed as you said; approve it as it is, or reject it"
    asked = request(plan_items(state), reason, plan_version=state.plan.version, pin=pin_of(run), expires_at=expiry(run))
    await run.emit(asked)

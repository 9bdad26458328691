"""Approve: asks a person about the current plan. The run waits for the decision."""

from agent.execution.approvals import compute_approval_deadline, make_tool_fingerprinter
from agent.policy.approval import build_approval_request, find_approval_reason, get_plan_feedback, list_plan_items
from agent.run_context.run import Run

MAX_QUOTED_CHARS = 300
"""Characters of a person's reply that the next question repeats."""


async def approve(run: Run) -> None:
    """Records the question."""
    state = run.state
    reason = find_approval_reason(state)
    if state.plan is None or reason is None:
        return
    feedback = get_plan_feedback(state)
    if feedback:
        words = feedback if len(feedback) <= MAX_QUOTED_CHARS else f"{feedback[:MAX_QUOTED_CHARS]}..."
        reason = f'{reason}. It could not be changed as you said ("{words}"); approve it as it is, or reject it'
    request = build_approval_request(
        list_plan_items(state),
        reason,
        plan_version=state.plan.version,
        pin=make_tool_fingerprinter(run),
        expires_at=compute_approval_deadline(run),
    )
    await run.emit(request)

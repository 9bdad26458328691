"""Verify: the gates over the whole run, once its plan is done. A failed gate replans within the budget."""

from agent.execution.answer import answer_of
from agent.execution.gates import check_gates
from agent.execution.run import Run


async def verify(run: Run) -> None:
    """Record what each gate says."""
    answer = await answer_of(run)
    await run.emit(*check_gates(run.state, answer.text, answer.sources))

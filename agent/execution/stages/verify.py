"""Verify: the gates over the whole run, once its plan is over. A failed gate replans within the budget."""

from agent.core.events import StepOutput
from agent.execution.answer import answer_of
from agent.execution.gates import check_gates
from agent.execution.outputs import results
from agent.execution.run import Run


async def verify(run: Run) -> None:
    """Record what each gate says."""
    answer = await answer_of(run)
    outputs: dict[str, tuple[StepOutput, ...]] = {}
    for step, output in await results(run):
        outputs[step.tool] = (*outputs.get(step.tool, ()), output)
    await run.note(*check_gates(run.state, answer.text, answer.sources, outputs))

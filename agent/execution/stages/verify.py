"""Verify: checks the gates once the plan is over. A failed gate causes a new plan within the budget."""

from functools import partial

from agent.answers.final_answer import assemble_answer
from agent.core.events import StepOutput
from agent.execution.gates import check_gates
from agent.run_context.outputs import list_results
from agent.run_context.run import Run


async def verify(run: Run) -> None:
    """Records the result of each gate."""
    answer = await assemble_answer(run)
    outputs: dict[str, tuple[StepOutput, ...]] = {}
    for step, output in await list_results(run):
        outputs[step.tool] = (*outputs.get(step.tool, ()), output)
    resolve = partial(run.engine.registry.resolve_in_room, run.room)
    extensions = run.engine.extensions
    await run.note(*check_gates(run.state, answer.text, answer.sources, outputs, extensions, resolve_tool=resolve))

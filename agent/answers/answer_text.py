"""Assembles the answer of a run with a complete plan: its completion's text, or the result of its last steps."""

from agent.answers.answer_without_model import compose_results
from agent.core.events import StepOutput
from agent.core.models import PlanStep
from agent.run_context.outputs import list_results, load_output, number_sources
from agent.run_context.run import Run


async def assemble_answer(run: Run) -> StepOutput:
    """The answer as an output: its text, the cited sources, its taint and its mode."""
    plan = run.state.plan
    if plan is None:
        return StepOutput()
    for step in reversed(plan.steps):
        output = run.state.get_step(step.id).output
        if step.is_completion and output is not None:
            return await load_output(run, output)
    outcomes = await list_results(run)
    # Each request of a message to the studio is answered, also those whose results others use.
    whole = run.state.classified is not None and run.state.classified.task_plan is not None
    last = [(step, output) for step, output in outcomes if whole or not _is_dependency(step, plan.steps)]
    return StepOutput(
        text=compose_results(last, run) if last else "",
        tainted=any(output.tainted for _, output in outcomes),
        sources=number_sources(outcomes),
        effective="rules" if all(output.effective == "rules" for _, output in outcomes) else "llm",
        fallback_reason=next((o.fallback_reason for _, o in outcomes if o.fallback_reason), None),
    )


def _is_dependency(step: PlanStep, steps: tuple[PlanStep, ...]) -> bool:
    return any(step.id in other.depends_on for other in steps)

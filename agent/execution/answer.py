"""The answer of a run whose plan is done: its completion's text, or the result of its last steps."""

from agent.core.events import StepOutput
from agent.core.models import PlanStep
from agent.execution.compose import compose
from agent.execution.outputs import load, number_sources, results
from agent.execution.run import Run


async def answer_of(run: Run) -> StepOutput:
    """The answer as an output: text, sources numbered as the text cites them, taint and mode."""
    plan = run.state.plan
    if plan is None:
        return StepOutput()
    for step in reversed(plan.steps):
        output = run.state.step(step.id).output
        if step.is_completion and output is not None:
            return await load(run, output)
    outcomes = await results(run)
    last = [(step, output) for step, output in outcomes if not _feeds_another(step, plan.steps)]
    return StepOutput(
        text=compose(last, run.state.prompt) if last else "",
        tainted=any(output.tainted for _, output in outcomes),
        sources=number_sources(outcomes),
        effective="rules" if all(output.effective == "rules" for _, output in outcomes) else "llm",
        fallback_reason=next((o.fallback_reason for _, o in outcomes if o.fallback_reason), None),
    )


def _feeds_another(step: PlanStep, steps: tuple[PlanStep, ...]) -> bool:
    return any(step.id in other.depends_on for other in steps)

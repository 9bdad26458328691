"""The results of a run's steps as blocks of a model's prompt."""

from collections.abc import Sequence

from agent.core.events import StepOutput
from agent.core.models import PlanStep
from agent.core.plan_outcome import find_failure_reason
from agent.run_context.outputs import JUDGE_CHARS, SKILL_CHARS, format_args, format_data_block
from agent.run_context.run import Run

RESULTS_CHARS, LEAST_RESULT_CHARS = 10_000, 2_000
"""Characters of all results, and at least of each, in a small model's prompt. It may read only 200 a second."""


def build_result_blocks(
    run: Run, outcomes: Sequence[tuple[PlanStep, StepOutput]], failed: Sequence[PlanStep]
) -> list[str]:
    """A block for each result and each step that failed, for the prompt of an answer."""
    is_small = run.profile.decides == "rounds"
    selected = _leave_out_looks(run, outcomes) if is_small else outcomes
    most = max(LEAST_RESULT_CHARS, RESULTS_CHARS // max(1, len(selected))) if is_small else SKILL_CHARS
    results = [
        format_data_block(
            "result",
            output.text,
            limit=most,
            step=step.id,
            tool=step.tool,
            intent=step.intent,
            input=_describe_input(run, step),
        )
        for step, output in selected
    ]
    failures = [
        format_data_block(
            "failed",
            find_failure_reason(run.state, step),
            limit=JUDGE_CHARS,
            step=step.id,
            tool=step.tool,
            intent=step.intent,
        )
        for step in failed
    ]
    return results + failures


def _leave_out_looks(
    run: Run, outcomes: Sequence[tuple[PlanStep, StepOutput]]
) -> Sequence[tuple[PlanStep, StepOutput]]:
    """The results without those that only showed what another call then worked on: a small model takes the first rows
    of a table for the answer of the query."""
    registry = run.engine.registry
    looks = {registry.get(step.tool).spec.hints.looks_first_with for step, _ in outcomes if step.tool in registry}
    return [(step, output) for step, output in outcomes if step.tool not in looks]


def _describe_input(run: Run, step: PlanStep) -> str:
    """The arguments with which a step called its tool; "" for a skill, whose intent says them."""
    attempt = run.state.get_step(step.id).last
    calls = attempt.calls if attempt is not None and step.action != "skill" else ()
    return format_args(calls[-1].intent.args) if calls else ""

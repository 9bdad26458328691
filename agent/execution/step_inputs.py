"""The arguments of a step: references resolved to the results of the attempts that it relies on, and their taint."""

from agent.core.events import StepOutput
from agent.core.models import JsonObject, PlanStep
from agent.core.run_state import RunState
from agent.execution.arguments import list_text_arg_names
from agent.execution.decide import Start
from agent.planning.references import resolve_references
from agent.policy.approval import is_plan_approved
from agent.run_context.outputs import has_tainted_inputs, load_output, load_whole_output, remove_citations
from agent.run_context.run import Run


async def resolve_args(run: Run, start: Start) -> tuple[JsonObject, bool]:
    """The step's arguments with resolved references, and whether any argument is tainted.

    References read the attempts that `start` names, even if a dependency is running again.
    """
    step = start.step
    tainted = run.state.tainted or has_untrusted_literal(run.state, step)
    tainted = tainted or (step.action == "skill" and has_tainted_inputs(run.state, step))
    if not step.args:
        return {}, tainted
    outputs = await load_inputs(run, start)
    tools = run.engine.registry
    texts = list_text_arg_names(tools.get(step.tool).spec) if step.action != "skill" and step.tool in tools else ()
    resolved = resolve_references(dict(step.args), outputs.__getitem__, texts=texts)
    return resolved.args, tainted or resolved.tainted


async def load_inputs(run: Run, start: Start) -> dict[str, StepOutput]:
    """The results that the step's arguments may refer to, whole, by the ids of their steps."""
    step = start.step
    outputs: dict[str, StepOutput] = {}
    # A model sees no personal data where the room keeps it from results.
    is_whole = step.action != "skill" or run.room.guard_output.pii == "redact_answer"
    for dependency, number in start.depends_on_attempts.items():
        attempt = run.state.get_step(dependency).find_attempt(number)
        output = attempt.output if attempt else None
        if output is not None:
            loaded = await (load_whole_output if is_whole else load_output)(run, output)
            # What leaves the run, such as a file or a mail, has no list of sources to which [1] could refer.
            outputs[dependency] = loaded if step.effect == "read" else remove_citations(loaded)
    return outputs


def has_untrusted_literal(state: RunState, step: PlanStep) -> bool:
    """Whether an argument as planned is not the user's, and no person has seen and approved it."""
    label = state.plans[-1].get_label(step.id) if state.plans else None
    return label is not None and bool(label.untrusted_args) and not is_plan_approved(state)

"""Planning in rounds, seen from the run: whether it plans so, and the calls and results of its rounds so far."""

from agent.planning.request import RoundResult
from agent.run_context.outputs import load_output
from agent.run_context.run import Run


def decides_in_rounds(run: Run) -> bool:
    """Returns whether the planner works in rounds. A room that fixes its tools or its evidence has plans instead."""
    room = run.room
    fixed = room.required_tools or room.gates or room.knowledge or room.routing == "intents"
    return run.profile.decides == "rounds" and run.plans_with_model and run.works_with_model and not fixed


async def list_rounds(run: Run) -> tuple[RoundResult, ...]:
    """Returns the calls of the model's plans so far with their results, oldest first."""
    state = run.state
    known: set[str] = set()
    found = []
    for number, proposed in enumerate(state.plans):
        for step in proposed.plan.steps:
            own = state.get_step(step.id)
            if step.id in known or not step.is_work or own.output is None:
                continue
            known.add(step.id)
            failed = own.status != "succeeded"
            verdict = own.last.verdict if own.last is not None else None
            text = verdict.reason if failed and verdict is not None else (await load_output(run, own.output)).text
            found.append(RoundResult(number, step.tool, step.args, text, failed, proposed.plan.reasoning))
    return tuple(found)

"""Questions to the user instead of a plan, and those that sub-agents have left open."""

from agent.answers.final_answer import assemble_answer
from agent.core.errors import BadRequestError
from agent.core.events import InputRequested
from agent.core.plan_outcome import is_complete
from agent.core.run_state import RunState
from agent.execution.static_plans import plan_completion_only
from agent.planning.planned import Planned
from agent.run_context.run import Run

WITHHELD_QUESTION = "The assistant has a question, but this room's output policy blocks it."


def ask_user(run: Run, question: str) -> Planned:
    """A question instead of a plan. Raises `BadRequestError` with its words if nobody can be asked."""
    if not run.state.request.interactive:
        raise BadRequestError(question, param="prompt")
    return Planned(plan_completion_only(run, question), "rules", "rules", question=question)


async def ask_open_question(run: Run) -> None:
    """Ends the run with the question of a sub-agent, after all that the other steps have found. Does nothing if none
    asks, or if the plan is not complete.
    """
    if run.state.input_request is not None or not _asks_user(run.state) or not is_complete(run.state):
        return
    checked = await run.redaction.check_answer((await assemble_answer(run)).text)
    question = checked.text if checked.failure is None else WITHHELD_QUESTION
    await run.emit(InputRequested(question=run.redaction.clean_question(question)))


def _asks_user(state: RunState) -> bool:
    """Whether a sub-agent that a step of the current plan has started asks the user."""
    steps = {step.id for step in state.plan_steps}
    return any(
        one.end is not None and one.end.result.question and span.partition(".")[0] in steps
        for span, one in state.subagents.items()
    )

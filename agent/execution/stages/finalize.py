"""Finalize: the answer, complete or honestly partial, and the one terminal event of the run."""

import logging

from agent.core.errors import FAILURES, AgentError, AgentFailure
from agent.core.events import (
    AnswerFinished,
    AnswerStarted,
    EventBody,
    GateChecked,
    RunCancelled,
    RunFailed,
    RunSucceeded,
)
from agent.core.fold import RunState
from agent.core.models import Completeness
from agent.execution.compose import stop_reason
from agent.execution.decide import halting_step
from agent.execution.draft import draft_answer, ended_well
from agent.execution.gates import failed_gates
from agent.execution.run import Run
from agent.execution.shield import Outgoing

_NOT_ASKED = ("ERR_MODEL", "ERR_QUOTA", "ERR_RATE_LIMIT")
"""Beginnings of the codes of a model call that came to nothing."""
log = logging.getLogger(__name__)


async def finalize(run: Run) -> None:
    """Record the answer and end the run. The conversation remembers the exchange first: repeating that is harmless."""
    state = run.state
    failure = _failure(state)
    if failure is not None:
        await run.emit(RunFailed(failure=failure))
        return
    complete = ended_well(state)
    finished = await draft_answer(run)
    bodies: list[EventBody] = []
    if state.answering is None:
        bodies.append(AnswerStarted(tier=None, model=None, reason=_why_no_model(state, complete=complete)))
    bodies += [_told(run, finished), _terminal(run, complete=complete)]
    await _remember(run, finished, complete=complete)
    await run.emit(*bodies)


def _told(run: Run, finished: AnswerFinished) -> AnswerFinished:
    """The answer as it leaves the house; the memory keeps it with its placeholders."""
    outgoing = Outgoing(run)
    tailored = finished.tailored
    if tailored is not None:
        tailored = tailored.model_copy(update={"content": outgoing.text(tailored.content)})
    return finished.model_copy(update={"text": outgoing.text(finished.text), "tailored": tailored})


def _terminal(run: Run, *, complete: bool) -> EventBody:
    state = run.state
    if state.cancel is not None and state.cancel.by == "caller":
        return RunCancelled(reason=state.cancel.reason)
    return RunSucceeded(
        completeness=_completeness(state, complete=complete), reason="" if complete else stop_reason(run)
    )


def _completeness(state: RunState, *, complete: bool) -> Completeness:
    if complete:
        return "complete"
    step = halting_step(state)
    aborted = state.cancel is not None or (step is not None and state.step(step.id).status == "aborted")
    return "aborted" if aborted else "partial"


def _failure(state: RunState) -> AgentFailure | None:
    """The failure of a run that did not pass the gates its room lists, or that has nothing to tell: a plain question
    whose one model call came to nothing."""
    if state.cancel is not None or state.plan is None:
        return None
    if gates := failed_gates(state):
        return _unverified(state, gates)
    if not state.room.requires_model and not all(step.is_completion for step in state.plan.steps):
        return None
    step = halting_step(state)
    output = state.step(step.id).output if step else None
    if output is None or output.error_code is None or not output.error_code.startswith(_NOT_ASKED):
        return None
    return AgentFailure(
        agent_id=step.tool if step is not None and not step.is_completion else "completion",
        error_code=output.error_code,
        message=output.error or FAILURES[output.error_code].meaning,
        recoverable=FAILURES[output.error_code].recoverable,
    )


def _unverified(state: RunState, gates: tuple[GateChecked, ...]) -> AgentFailure:
    said = "; ".join(f"{gate.gate}: {gate.reason}" for gate in gates)
    tried = f" after {state.replans} new plans" if state.replans else ""
    return AgentFailure(
        agent_id="verifier",
        error_code="ERR_VERIFICATION",
        message=f"the run did not pass verification{tried}: {said}",
        recoverable=FAILURES["ERR_VERIFICATION"].recoverable,
        details={"gates": [gate.gate for gate in gates], "replans": state.replans},
    )


def _why_no_model(state: RunState, *, complete: bool) -> str:
    if not complete:
        return "the run stopped early; what is known is reported as it is"
    last = state.plan.steps[-1] if state.plan else None
    return f"the result of {last.tool} is the answer" if last else "nothing was to be done"


async def _remember(run: Run, answer: AnswerFinished, *, complete: bool) -> None:
    """The exchange, in its conversation and, where it ended well, in the memory."""
    state = run.state
    conversation = state.request.conversation_id
    if conversation is None or state.cancel is not None:
        return
    tainted = state.tainted or any(step.output.tainted for step in state.steps.values() if step.output is not None)
    await run.engine.conversations.remember(
        state.owner, conversation, run.run_id, state.prompt, answer.text, tainted=tainted
    )
    if complete and run.room.memory and state.retrieved is not None and state.retrieved.requested:
        try:
            await run.engine.memory.save_exchange(state.owner, conversation, state.prompt, answer.text, tainted=tainted)
        except AgentError as error:  # the answer does not fail for want of a memory
            log.warning("the exchange of run %s is not remembered: %s", run.run_id, error.message)

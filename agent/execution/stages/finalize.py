"""Finalize: the answer, complete or honestly partial, and the one terminal event of the run."""

import logging

from agent.core.errors import FAILURES, AgentError, AgentFailure, UnsafeAnswerError
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
from agent.core.plurals import many
from agent.execution.compose import stop_reason
from agent.execution.decide import halting_step
from agent.execution.draft import draft_answer, ended_well
from agent.execution.gates import failed_gates
from agent.execution.release import Outgoing, released
from agent.execution.run import Run
from agent.execution.shield import restored, secrets_of, without_values

_NOT_ASKED = ("ERR_MODEL", "ERR_QUOTA", "ERR_RATE_LIMIT")
"""Beginnings of the codes of a model call that came to nothing."""
_REFUSED = ("ERR_GUARDRAIL_UNSAFE", "ERR_TAILOR_SCHEMA")
"""The codes of an answer that is kept back: by the room, or because the caller could not read it."""
log = logging.getLogger(__name__)


async def finalize(run: Run) -> None:
    """Record the answer and end the run. The conversation remembers the exchange first: repeating that is harmless."""
    state = run.state
    failure = _failure(state)
    if failure is not None:
        await run.emit(RunFailed(failure=failure))
        return
    complete = ended_well(state)
    drafted = await draft_answer(run)
    answer = await released(run, drafted.text)
    bodies: list[EventBody] = [answer.told] if answer.told is not None else []
    if answer.failure is not None:
        await run.emit(*bodies, RunFailed(failure=answer.failure))
        return
    finished = _told(run, drafted, answer.text)
    if state.answering is None:
        bodies.append(AnswerStarted(tier=None, model=None, reason=_why_no_model(state, complete=complete)))
    bodies += [finished, _terminal(run, complete=complete)]
    await _remember(run, finished, complete=complete)
    await run.emit(*bodies)


def _told(run: Run, drafted: AnswerFinished, text: str) -> AnswerFinished:
    """The answer as it leaves the house, and as its conversation keeps it; `text` is what the policy left of it."""
    outgoing = Outgoing(run)
    tailored = drafted.tailored
    if tailored is not None:
        content = text if tailored.content == drafted.text else secrets_of(run).redact(tailored.content)
        tailored = tailored.model_copy(update={"content": outgoing.shown(content)})
    return drafted.model_copy(
        update={"text": outgoing.shown(text), "tailored": tailored, "tool_calls": outgoing.calls(drafted.tool_calls)}
    )


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
    step = halting_step(state)
    output = state.step(step.id).output if step else None
    if output is None or output.error_code is None:
        return None
    plain = state.room.requires_model or all(step.is_completion for step in state.plan.steps)
    if output.error_code not in _REFUSED and not (plain and output.error_code.startswith(_NOT_ASKED)):
        return None
    by = step.tool if step is not None and not step.is_completion else "completion"
    return AgentFailure(
        agent_id="guardrails" if output.error_code == UnsafeAnswerError.code else by,
        error_code=output.error_code,
        message=output.error or FAILURES[output.error_code].meaning,
        recoverable=FAILURES[output.error_code].recoverable,
        details={} if output.retry_after_s is None else {"retry_after_s": output.retry_after_s},
    )


def _unverified(state: RunState, gates: tuple[GateChecked, ...]) -> AgentFailure:
    said = "; ".join(f"{gate.gate}: {gate.reason}" for gate in gates)
    tried = f" after {many(state.replans, 'new plan')}" if state.replans else ""
    if tried and state.replans < state.room.budgets.max_replans and state.plans[-1].final:
        tried += ", and another would be the same"
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


def _is_listing(state: RunState) -> bool:
    """Whether the answer only says what the gateway can do: there is nothing in it to remember."""
    steps = state.plan.steps if state.plan else ()
    outputs = [state.step(step.id).output for step in steps if step.is_completion]
    return len(outputs) == len(steps) and all(output is not None and output.effective == "rules" for output in outputs)


async def _remember(run: Run, answer: AnswerFinished, *, complete: bool) -> None:
    """The exchange, in its conversation and, where it ended well, in the memory."""
    state = run.state
    conversation = state.request.conversation_id
    if conversation is None or state.cancel is not None:
        return
    tainted = state.tainted or any(step.output.tainted for step in state.steps.values() if step.output is not None)
    await run.flush()  # a crash after this must find the answer that was remembered, not have another one written
    await run.engine.conversations.remember(
        state.owner, conversation, run.run_id, restored(state, state.prompt), answer.text, tainted=tainted
    )
    own = state.request.messages is not None  # who sends the conversation along needs no memory of it
    if not complete or own or _is_listing(state):
        return
    if run.room.memory and state.retrieved is not None and state.retrieved.requested:
        try:
            asked, said = without_values(state, state.prompt), without_values(state, answer.text)
            await run.engine.memory.save_exchange(state.owner, conversation, asked, said, tainted=tainted)
        except AgentError as error:  # the answer does not fail for want of a memory
            log.warning("the exchange of run %s is not remembered: %s", run.run_id, error.message)
        except Exception:  # nor for a driver's own fault: the answer is there
            log.exception("the exchange of run %s is not remembered", run.run_id)

"""Finalize: the answer, complete or honestly partial, and the one terminal event of the run."""

import logging

from agent.core.errors import FAILURES, AgentError, AgentFailure
from agent.core.events import AnswerFinished, AnswerStarted, EventBody, RunCancelled, RunFailed, RunSucceeded
from agent.core.fold import RunState
from agent.core.models import Citation, Completeness, JsonObject, Outcome, Source, Uncertainty
from agent.execution.answer import answer_of
from agent.execution.compose import partial_answer, stop_reason
from agent.execution.decide import halting_step, is_complete
from agent.execution.gates import cited_ids
from agent.execution.outputs import number_sources, results
from agent.execution.run import Run

log = logging.getLogger(__name__)


async def finalize(run: Run) -> None:
    """Record the answer and end the run. The conversation remembers the exchange first: repeating that is harmless."""
    state = run.state
    failure = _failure(state)
    if failure is not None:
        await run.emit(RunFailed(failure=failure))
        return
    complete = is_complete(state) and all(gate.passed for gate in state.gates) and state.cancel is None
    finished = await (_whole(run) if complete else _partial(run))
    bodies: list[EventBody] = []
    if state.answering is None:
        bodies.append(AnswerStarted(tier=None, model=None, reason=_why_no_model(state, complete=complete)))
    bodies += [finished, _terminal(run, complete=complete)]
    await _remember(run, finished, complete=complete)
    await run.emit(*bodies)


async def _whole(run: Run) -> AnswerFinished:
    answer = await answer_of(run)
    calls: tuple[JsonObject, ...] = ()
    text = answer.text
    called = answer.value.get("tool_calls") if isinstance(answer.value, dict) else None
    if isinstance(answer.value, dict) and isinstance(called, list):
        calls = tuple(call for call in called if isinstance(call, dict))
        text = str(answer.value.get("text") or "")
    return AnswerFinished(
        text=text,
        finish_reason="tool_calls" if calls else answer.finish_reason,
        sources=answer.sources,
        citations=_citations(text, answer.sources),
        uncertainties=_uncertainties(run.state),
        tool_calls=calls,
        fallback_reason=answer.fallback_reason,
    )


async def _partial(run: Run) -> AnswerFinished:
    """What is known, what is missing and why. An answer that failed its gates is still shown, after the reason."""
    text = await partial_answer(run)
    answer = await answer_of(run) if is_complete(run.state) else None
    if answer is not None and answer.text.strip():
        text = f"{answer.text}\n\n---\nThis answer did not pass every check: {stop_reason(run)}."
    sources = answer.sources if answer else number_sources(await results(run))
    return AnswerFinished(
        text=text, sources=sources, citations=_citations(text, sources), uncertainties=_uncertainties(run.state)
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
    """The failure of a run that has nothing to tell: a plain question whose one model call came to nothing."""
    if state.cancel is not None or state.plan is None:
        return None
    if not all(step.is_completion for step in state.plan.steps):
        return None
    step = halting_step(state)
    output = state.step(step.id).output if step else None
    if output is None or output.error_code is None or not output.error_code.startswith("ERR_MODEL"):
        return None
    return AgentFailure(
        agent_id="completion",
        error_code=output.error_code,
        message=output.error or FAILURES[output.error_code].meaning,
        recoverable=FAILURES[output.error_code].recoverable,
    )


def _uncertainties(state: RunState) -> tuple[Uncertainty, ...]:
    """What the user should know: side effects of unknown outcome, fallbacks, searches that found nothing."""
    found: list[Uncertainty] = []
    for step_id, step in state.steps.items():
        for attempt in step.attempts:
            found += [
                Uncertainty(level="blocking", message=call.unknown.message, step_id=step_id)
                for call in attempt.calls
                if call.unknown is not None
            ]
            found += [
                Uncertainty(
                    level="blocking",
                    message=f"{call.called.tool} was interrupted; whether it happened is unknown",
                    step_id=step_id,
                )
                for call in attempt.calls
                if call.returned is None and call.unknown is None and call.called.effect == "effect"
            ]
            verdict = attempt.verdict
            if verdict is not None and verdict.outcome is Outcome.SUCCESS and verdict.evidence == "none":
                found.append(Uncertainty(level="info", message=verdict.reason, step_id=step_id))
            if attempt.output is not None and attempt.output.fallback_reason and attempt.verdict is not None:
                found.append(Uncertainty(level="notable", message=attempt.output.fallback_reason, step_id=step_id))
    return tuple(found)


def _citations(text: str, sources: tuple[Source, ...]) -> tuple[Citation, ...]:
    by_id = {source.id: source for source in sources}
    return tuple(
        Citation(source_id=number, quote=by_id[number].quotes[0] if by_id[number].quotes else "")
        for number in cited_ids(text)
        if number in by_id
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

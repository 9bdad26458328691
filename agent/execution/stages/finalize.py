"""Finalize: records the answer, complete or partial, and the one terminal event of the run."""

import logging

from agent.answers.additions import find_undecided_reason, list_missing_changes
from agent.answers.answer_without_model import asks_for_help
from agent.answers.broken_off import MODEL_ERROR_PREFIXES, find_broken_off_text
from agent.answers.change_outcomes import list_undone_changes
from agent.answers.composed_answers import describe_stop_reason
from agent.answers.final_answer import (
    build_final_answer,
    ends_in_loop,
    find_misfit,
    is_successful,
    list_unexplained_figures,
)
from agent.answers.loops import LOOP_REASON
from agent.core.errors import AgentError, UnsafeAnswerError
from agent.core.event_loop import compute_beside_loop
from agent.core.events import (
    AnswerFinished,
    AnswerStarted,
    EventBody,
    GateChecked,
    RunCancelled,
    RunFailed,
    RunSucceeded,
)
from agent.core.failures import FAILURES, AgentFailure
from agent.core.models import Completeness, JsonObject
from agent.core.plan_outcome import (
    find_empty_reply,
    find_failure_reason,
    find_halting_step,
    find_interruption,
    find_refusal_of_plan,
    find_unprovided,
    list_abandoned_steps,
    list_undone,
    was_refused,
)
from agent.core.run_state import RunState
from agent.execution.egress_facts import find_repeated_links
from agent.execution.gates import list_failed_gates
from agent.execution.stages.retrieve import uses_memory
from agent.llm.port import describe_interruption
from agent.planning.open_parts import has_failed, list_changes_together
from agent.policy.redaction.inbound import replace_with_kinds, restore_long_text
from agent.run_context.message_labels import label_answer
from agent.run_context.run import Run
from agent.text.plurals import format_count

_GUARDRAIL_PREFIX = "ERR_GUARDRAIL"
_WITHHELD_CODES = ("ERR_GUARDRAIL_UNSAFE", "ERR_TAILOR_SCHEMA")
"""Error codes of withheld answers: unsafe for the room, or not in the caller's schema."""
CLIENT_CALLS_REASON = "the client is asked to run its own tools"
log = logging.getLogger(__name__)


async def finalize(run: Run) -> None:
    """Records the answer and ends the run. Saves the exchange first, because saving it twice is harmless."""
    state = run.state
    failure = _find_failure(state)
    if failure is not None:
        await _save_question(run, failure)
        await run.emit(*await _build_failed_events(run, failure))
        return
    succeeded = is_successful(state)
    figures = list_unexplained_figures(state) if succeeded else ()
    drafted = await build_final_answer(run)
    answer = await run.redaction.check_answer(drafted.text)
    bodies: list[EventBody] = [answer.event] if answer.event is not None else []
    if answer.failure is not None:
        failure = answer.failure.model_copy(update={"stage": "finalize"})
        await _save_question(run, failure)
        await run.emit(*bodies, RunFailed(failure=failure))
        return
    labelled = label_answer(run, await run.redaction.release_answer(drafted, answer.text))
    links = await find_repeated_links(run, labelled.text) if state.request.conversation_id is not None else None
    finished = run.redaction.mark_redacted(labelled.model_copy(update={"links": links}))
    if state.answer_start is None:
        bodies.append(AnswerStarted(tier=None, model=None, reason=_explain_missing_model(state, succeeded=succeeded)))
    ended = _build_terminal_event(run, figures, succeeded=succeeded)
    bodies += [finished, ended]
    is_whole = isinstance(ended, RunSucceeded) and ended.completeness == "complete" and not ended.awaits_input
    await _save_exchange(run, finished, complete=is_whole)
    await run.emit(*bodies)


async def _build_failed_events(run: Run, failure: AgentFailure) -> list[EventBody]:
    """The end of a run that failed. What its model had written is kept if it passes the checks of an answer."""
    written = find_broken_off_text(run.events) if failure.error_code.startswith(MODEL_ERROR_PREFIXES) else ""
    if not written:
        return [RunFailed(failure=failure)]
    checked = await run.redaction.check_answer(written)
    guarded: list[EventBody] = [checked.event] if checked.event is not None else []
    return [*guarded, RunFailed(failure=failure, written="" if checked.failure is not None else checked.text)]


def _build_terminal_event(run: Run, figures: tuple[str, ...], *, succeeded: bool) -> EventBody:
    """How the run ended: cancelled, awaiting the user, complete, or partial with the reason."""
    state = run.state
    if state.cancel_request is not None and state.cancel_request.by == "caller":
        return RunCancelled(reason=state.cancel_request.reason)
    if state.input_request is not None and state.cancel_request is None:
        return RunSucceeded(awaits_input=True, reason="the user is asked for what is missing")
    if state.client_calls is not None and state.cancel_request is None:
        return RunSucceeded(awaits_input=True, reason=CLIENT_CALLS_REASON)
    if not succeeded:
        return RunSucceeded(completeness=_get_completeness(state), reason=describe_stop_reason(run))
    reason = _find_partial_reason(run, figures)
    return RunSucceeded(completeness="partial", reason=reason) if reason else RunSucceeded()


def _find_partial_reason(run: Run, figures: tuple[str, ...]) -> str:
    """Why an answer that passed its gates is not whole; "" if it is."""
    state = run.state
    if figures:
        return f"the answer contains figures or names that none of the results support: {', '.join(figures)}"
    if empty := find_empty_reply(state):
        return empty
    if ends_in_loop(state):
        return LOOP_REASON
    if interruption := find_interruption(state):
        return describe_interruption(interruption)
    if undone := list_undone(state) or (list_undone_changes(state) if list_changes_together(state) else ()):
        return "not done: " + "; ".join(undone)
    if misfit := find_misfit(state):
        return f"the answer is not in the form that the request asks for: {misfit}"
    if refusal := find_refusal_of_plan(state):
        return f"what the request asks for was not done: {refusal}"
    if unmade := list_missing_changes(run):
        return f"nothing was changed, though the request asks for it ({', '.join(unmade)})"
    if _is_unread(run):
        return "nothing was done: no model reads free text now"
    return _find_reason_of_rounds(state) if run.decides_in_rounds else ""


def _find_reason_of_rounds(state: RunState) -> str:
    """Why an answer after rounds is not whole: all calls of the last one failed, or none was decided on. One that
    failed beside others may have been for the same thing, and a call that a person did not allow has not failed."""
    lost = [step for step in list_abandoned_steps(state) if not was_refused(state, step)]
    if lost and has_failed(state):
        reasons = (f"{step.title} failed: {find_failure_reason(state, step)}" for step in lost)
        return f"not found out or done: {'; '.join(reasons)}"
    return find_undecided_reason(state)


def _is_unread(run: Run) -> bool:
    """Whether rules alone answered a request that they do not know, where no model could. A request for help asks for
    just that."""
    state = run.state
    if run.works_with_model or state.understanding is None or state.understanding.route not in ("plan", "direct"):
        return False
    has_worked = any(step.is_work for step in state.steps_of_all_plans.values())
    return not has_worked and not asks_for_help(state.prompt) and _is_written_by_rules(state)


def _get_completeness(state: RunState) -> Completeness:
    step = find_halting_step(state)
    aborted = state.cancel_request is not None or (step is not None and state.get_step(step.id).status == "aborted")
    return "aborted" if aborted else "partial"


def _find_failure(state: RunState) -> AgentFailure | None:
    """The failure of a run that failed its room's gates or has no answer, else None.

    A run has no answer if the answer is withheld, or if it is a plain question and its only model call failed.
    """
    if state.cancel_request is not None or state.plan is None:
        return None
    if state.input_request is not None or state.client_calls is not None:
        return None
    if gates := list_failed_gates(state):
        return _build_verification_failure(state, gates)
    step = find_halting_step(state)
    output = state.get_step(step.id).output if step else None
    if output is None or output.error_code is None:
        return None
    plain = state.room.requires_model or all(step.is_completion for step in state.plan.steps)
    if (
        find_unprovided(state) is None
        and output.error_code not in _WITHHELD_CODES
        and not (plain and output.error_code.startswith(MODEL_ERROR_PREFIXES))
    ):
        return None
    details: JsonObject = {
        "retry_after_s": output.retry_after_s,
        "param": output.error_param,
        "code": output.error_detail,
    }
    by = step.tool if step is not None and not step.is_completion else "completion"
    return AgentFailure(
        agent_id="guardrails" if output.error_code == UnsafeAnswerError.code else by,
        error_code=output.error_code,
        message=output.error or FAILURES[output.error_code].meaning,
        recoverable=FAILURES[output.error_code].recoverable,
        stage="execute",
        details={name: value for name, value in details.items() if value is not None},
    )


def _build_verification_failure(state: RunState, gates: tuple[GateChecked, ...]) -> AgentFailure:
    gate_reasons = "; ".join(f"{gate.gate}: {gate.reason}" for gate in gates)
    tried = f" after {format_count(state.replan_count, 'new plan')}" if state.replan_count else ""
    if tried and state.replan_count < state.room.budgets.max_replans and state.plans[-1].final:
        tried += ", and another would be the same"
    return AgentFailure(
        agent_id="verifier",
        error_code="ERR_VERIFICATION",
        message=f"the run did not pass verification{tried}: {gate_reasons}",
        recoverable=FAILURES["ERR_VERIFICATION"].recoverable,
        stage="verify",
        details={"gates": [gate.gate for gate in gates], "replans": state.replan_count},
    )


def _explain_missing_model(state: RunState, *, succeeded: bool) -> str:
    if state.input_request is not None:
        return "the user is asked for what is missing"
    if state.client_calls is not None:
        return CLIENT_CALLS_REASON
    if not succeeded:
        return "the run stopped early; the results so far are reported as they are"
    last = state.plan_steps[-1] if state.plan_steps else None
    return f"the result of {last.tool} is the answer" if last else "there was nothing to do"


def _is_written_by_rules(state: RunState) -> bool:
    """Whether rules wrote the answer and nothing else was done: a list of the gateway's commands, or of the places
    where people do by themselves what a model would. Such answers are not remembered."""
    outputs = [state.get_step(step.id).output if step.is_completion else None for step in state.plan_steps]
    return all(output is not None and output.effective == "rules" for output in outputs)


async def _save_question(run: Run, failure: AgentFailure) -> None:
    """Saves what was asked by a run that failed: the next message may be about it. Not what a guardrail refused."""
    if not failure.error_code.startswith(_GUARDRAIL_PREFIX):
        await _save_exchange(run, None, complete=False)


def _has_written(state: RunState, answer: AnswerFinished | None) -> bool:
    """Whether an answer is the model's or the gateway's own words to the user, and not a sentence about a run that was
    stopped before it, or whose model said nothing."""
    is_cut_off = state.cancel_request is not None and not (answer is not None and answer.stopped)
    is_silent = all(step.is_completion for step in state.plan_steps) and find_halting_step(state) is not None
    return answer is not None and not is_cut_off and not is_silent and not find_empty_reply(state)


async def _save_exchange(run: Run, answer: AnswerFinished | None, *, complete: bool) -> None:
    """Saves the exchange in its conversation and, if the run is complete, in the memory. Without an answer, the
    question: what a person sees above their next message is what the model knows."""
    state = run.state
    conversation = state.request.conversation_id
    if conversation is None or state.is_one_off:
        return
    if state.client_calls is not None:  # the run that goes on saves the exchange
        return
    tainted = state.has_outside_text or state.has_unknown_answers
    tainted = tainted or any(step.output.tainted for step in state.steps.values() if step.output is not None)
    await run.flush()  # after a crash, the resumed run must finalize the same answer
    prompt = await restore_long_text(state, state.prompt)
    written = answer if _has_written(state, answer) else None
    own = state.request.messages is not None  # a client that sends the whole conversation needs no memory of it
    if complete and not own and written is not None and not _is_written_by_rules(state):
        await _remember_exchange(run, conversation, prompt, written.text, tainted=tainted)
    # Last: what is deleted once it is listed must be remembered by then.
    if not await run.engine.conversations.add_exchange(
        state.owner, conversation, run.run_id, prompt, written.text if written is not None else None, tainted=tainted
    ):
        await run.engine.memory.delete_all(state.owner, conversation_id=conversation, run_id=run.run_id)


async def _remember_exchange(run: Run, conversation: str, prompt: str, text: str, *, tainted: bool) -> None:
    state = run.state
    if state.retrieval is None or not uses_memory(run):
        return
    try:
        prompt = await compute_beside_loop(len(prompt), lambda: replace_with_kinds(state, state.prompt))
        reply = await compute_beside_loop(len(text), lambda: replace_with_kinds(state, text))
        await run.engine.memory.save_exchange(
            state.owner, conversation, prompt, reply, run_id=run.run_id, tainted=tainted
        )
    except AgentError as error:  # a failed memory does not fail the run
        log.warning("the exchange of run %s is not remembered: %s", run.run_id, error.message)
    except Exception:  # nor does a defect of a driver
        log.exception("the exchange of run %s is not remembered", run.run_id)

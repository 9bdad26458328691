"""Answers that rules compose of results: whole ones, those of runs whose calls failed, and partial ones."""

from collections.abc import Sequence

from agent.answers.sentences import say
from agent.core.events.run import CANCELLED_BY_CALLER
from agent.core.models import Outcome, PlanStep
from agent.core.plan_outcome import (
    EMPTY_REPLIES,
    REPEATED,
    find_failure_reason,
    find_halting_step,
    is_left_undone,
    list_abandoned_steps,
    list_undone,
    was_refused,
)
from agent.core.run_state import StepResult
from agent.planning.reply_schema import describe_requested_call
from agent.run_context.outputs import cut_text, leave_out_looks, list_results
from agent.run_context.run import Run
from agent.text.language import ENGLISH
from agent.text.plurals import format_count
from agent.tools import PlanHints

RESULT_CHARS = 6_000
"""Characters of one result in an answer."""

MAX_FAILED_CHANGES = 3
"""Errors of changes that an answer names."""
_GIVEN_CHARS = 80


def compose_results(outcomes: Sequence[StepResult], run: Run) -> str:
    """Joins results without a model. A single result is the answer; several get headings.

    Omits a result that repeats the request. A result that summarises the others comes first (`PlanHints`)."""
    prompt = _normalise_text(run.state.prompt)
    selected = [
        (step, output)
        for step, output in outcomes
        if not _get_hints(run, step).reads_request or _normalise_text(output.text) != prompt
    ]
    selected = selected or [*outcomes]
    if len(selected) == 1:
        return cut_text(selected[0][1].text, RESULT_CHARS)
    selected.sort(key=lambda one: not _get_hints(run, one[0]).comes_first)
    return "\n\n".join(
        f"**{_build_heading(run, step)}**\n\n{cut_text(output.text, RESULT_CHARS)}" for step, output in selected
    )


def _get_hints(run: Run, step: PlanStep) -> PlanHints:
    spec = run.engine.registry.find_spec(step.tool)
    return spec.hints if spec is not None else PlanHints()


def _build_heading(run: Run, step: PlanStep) -> str:
    """The heading of a result for people. A step's intent is written for the executor."""
    if heading := _get_hints(run, step).heading:
        return heading
    intent = step.intent
    if not intent or intent == describe_requested_call(step.tool):
        given = next((value for value in step.args.values() if isinstance(value, str) and value.strip()), "")
        name = step.tool.replace("__", ": ").replace("_", " ")
        intent = f"{name}: {cut_text(' '.join(given.split()), _GIVEN_CHARS)}" if given else name
    return intent[:1].upper() + intent[1:]


def _normalise_text(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def describe_stop_reason(run: Run) -> str:
    """One sentence: why the run ended before its plan was complete."""
    state = run.state
    if state.cancel_request is not None:
        return state.cancel_request.reason
    step = find_halting_step(state)
    if step is None:
        failed = [f"{gate.gate}: {gate.reason}" for gate in state.gates if not gate.passed]
        if failed:
            return "the result did not pass verification (" + "; ".join(failed) + ")"
        return "; ".join(list_undone(state)) or "the plan was not done"
    attempt = state.get_step(step.id).last
    if attempt is not None and attempt.unknown_outcome is not None:
        return attempt.unknown_outcome.message
    output = attempt.output if attempt else None
    if step.is_completion and output is not None and output.error_code is None and not output.text.strip():
        return EMPTY_REPLIES["stop"]
    verdict = attempt.verdict if attempt else None
    reason = verdict.reason if verdict else "it did not finish"
    if verdict is not None and verdict.outcome is Outcome.REPLAN:
        tried = f" and {format_count(state.replan_count, 'new plan')} did not help" if state.replan_count else ""
        return f"{step.title} failed{tried}: {reason}"
    return f"{step.title} failed: {reason}"


def compose_failures(run: Run, outcomes: Sequence[StepResult]) -> str:
    """The answer of a run in which every call failed but looks at what the calls were to work on: each error once, and
    then what was seen. "" if anything was found out, nothing was called, or a person refused it."""
    state = run.state
    failed = list_abandoned_steps(state)
    earlier = state.retrieval.earlier_results if state.retrieval else ()
    if not failed or earlier or any(was_refused(state, step) for step in failed):
        return ""
    if leave_out_looks(run, outcomes, failed):
        return ""
    language = state.understanding.language if state.understanding is not None else ENGLISH
    lines = [f"- {_build_heading(run, step)}: {find_failure_reason(state, step)}" for step in failed]
    text = "\n".join((say("only_looked" if outcomes else "all_failed", language), "", *dict.fromkeys(lines)))
    return f"{text}\n\n{compose_results(outcomes, run)}" if outcomes else text


def list_failed_changes(run: Run) -> list[str]:
    """A line with the error of each change that failed, the newest ones; none of what a person refused."""
    state = run.state
    changes = [step for step in state.steps_of_all_plans.values() if step.is_work and step.effect != "read"]
    failed = [step for step in changes if state.get_step(step.id).attempts and not was_refused(state, step)]
    lines = (f"- {find_failure_reason(state, step)}" for step in failed)
    return [*dict.fromkeys(lines)][-MAX_FAILED_CHANGES:]


async def compose_partial_answer(run: Run) -> str:
    """The answer of an incomplete run: the reason, the known results, the missing ones. Omits the steps that a
    person rejected, and the result of the skill's briefing."""
    state = run.state
    briefing = run.engine.skills.get(run.room.skill).briefing if run.room.skill is not None else None
    outcomes = [(step, output) for step, output in await list_results(run) if step.tool != briefing]
    refused = _explain_refusal(run)
    if has_several_intents(run):
        return list_intent_outcomes(run, outcomes)
    lines = [refused or _explain_end(run)]
    if outcomes:
        lines += ["", "What is known so far:", "", compose_results(outcomes, run)]
    missing = [s for s in state.plan_steps if state.get_step(s.id).status != "succeeded"]
    missing = [step for step in missing if step.is_work]
    if missing and not refused:
        lines += ["", "What is missing:"]
        lines += [f"- {_build_heading(run, step)}" for step in missing]
    return "\n".join(lines)


def _explain_end(run: Run) -> str:
    """Why the run is incomplete, in a sentence."""
    request = run.state.cancel_request
    if request is not None and request.by == "caller" and request.reason == CANCELLED_BY_CALLER:
        return "Stopped before it was finished."
    return f"I could not finish this: {describe_stop_reason(run)}"


def has_several_intents(run: Run) -> bool:
    """Whether the message asks the studio for several things."""
    return run.state.classified is not None and len(run.state.classified.intents) > 1


def list_intent_outcomes(run: Run, outcomes: list[StepResult]) -> str:
    """A line for each request of a message to the studio with its outcome: what was done stays, and is named."""
    state, results = run.state, {step.id: output for step, output in outcomes}
    done = [step_id for step_id in results if not is_left_undone(state, step_id)]
    lines = [f"{'Not all' if done else 'Nothing'} of this was done: {describe_stop_reason(run)}", ""]
    for number, step in enumerate((one for one in state.plan_steps if one.is_work), start=1):
        own = state.get_step(step.id)
        if step.id in results:
            kind = "not done" if is_left_undone(state, step.id) else "done"
            outcome = f"{kind}. {cut_text(results[step.id].text, RESULT_CHARS)}"
        elif own.last is None:
            needed = [name for name in step.depends_on if name not in results or is_left_undone(state, name)]
            outcome = "not begun, because a step that it needs was not done." if needed else "not begun."
        else:
            outcome = f"failed: {own.last.verdict.reason if own.last.verdict else 'it did not finish'}"
        lines.append(f"{number}. {step.intent}: {outcome}")
    return "\n".join(lines)


def _explain_refusal(run: Run) -> str:
    """The reason why a person or a tool refused the step that halted the run; "" if nobody did."""
    step = find_halting_step(run.state)
    # A later plan may repeat the call in another step.
    for request in reversed(run.state.approvals):
        decided, item = run.state.decisions.get(request.approval_id), request.items[0]
        is_of_step = bool(request.call_id) and step is not None and (item.step_id == step.id or item.tool == step.tool)
        if is_of_step and decided is not None and decided.decision == "rejected":
            why = f" ({decided.reason})" if decided.reason else ""
            return f"You did not allow `{item.tool}`{why}, so it was not done."
    attempt = run.state.get_step(step.id).last if step is not None else None
    output = attempt.output if attempt is not None else None
    if output is None or output.error_code != "ERR_TOOL_DENIED" or (output.error or "").startswith(REPEATED):
        return ""
    return f"This was refused: {output.error}"

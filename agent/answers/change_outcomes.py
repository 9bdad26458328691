"""The outcome of each change that a person saw in one question: lines under the answer and in the next question."""

from agent.answers.sentences import Sentence, say
from agent.core.models import PlanStep
from agent.core.plan_outcome import find_failure_reason, was_refused
from agent.core.run_state import RunState
from agent.planning.open_parts import list_changes_together
from agent.policy.guardrails.plain_text import escape_markdown, format_literal
from agent.text.language import ENGLISH

REASON_CHARS = 300
"""Characters of the reason why a change was not made: it may be the error of a server."""


def add_change_outcomes(text: str, state: RunState, language: str) -> str:
    """The answer with a line for each such change, in `language` or else in English: what it was for, whether it was
    made, and why not. A model may leave one out, or report one that was not made."""
    lines = [
        f"{number}. {_describe(state, step, language, 'not_begun')}"
        for number, step in enumerate(list_changes_together(state), start=1)
    ]
    return "\n\n".join(part for part in (text.rstrip(), "\n".join(lines)) if part) if lines else text


def describe_progress(state: RunState, step_id: str) -> str:
    """The same in one line, for a question about one of them alone; "" for a step that is none of them."""
    changes = list_changes_together(state)
    if all(step.id != step_id for step in changes):
        return ""
    return "; ".join(_describe(state, step, ENGLISH, "waits") for step in changes)


def list_undone_changes(state: RunState) -> tuple[str, ...]:
    """Those that were not made, with the reason."""
    changes = (step for step in list_changes_together(state) if state.get_step(step.id).status != "succeeded")
    return tuple(_describe(state, step, ENGLISH, "not_begun") for step in changes)


def _describe(state: RunState, step: PlanStep, language: str, untried: Sentence) -> str:
    kind, reason = _find_outcome(state, step, untried)
    outcome = f"{say(kind, language)} ({escape_markdown(reason[:REASON_CHARS])})" if reason else say(kind, language)
    return f"{escape_markdown(step.intent)} ({format_literal(step.tool)}): {outcome}"


def _find_outcome(state: RunState, step: PlanStep, untried: Sentence) -> tuple[Sentence, str]:
    """What became of a change, and why it was not made; `untried` for one without a result."""
    own = state.get_step(step.id)
    if own.status == "succeeded":
        return "done", ""
    if own.last is not None and own.last.unknown_outcome is not None:
        return "failed", own.last.unknown_outcome.message
    if own.last is None or own.last.verdict is None:
        return untried, ""
    return "refused" if was_refused(state, step) else "failed", find_failure_reason(state, step)

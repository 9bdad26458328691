"""The measurements as text for people."""

from datetime import UTC, datetime

from agent.llm.profile import MeasuredModel
from gateway.model_probe.probe import Outcome

_KINDS = {
    "schema": "JSON schemas bind its replies",
    "rounds": "decides on the next call",
    "plans": "plans all steps at once",
    "answers": "answers small talk without a tool",
    "catalogue": "finds a tool among 10, 20 and 40",
    "tools": "calls tools that a request offers",
    "verdicts": "judges a step",
    "languages": "answers in German, Swedish and French",
}


def format_outcome(outcome: Outcome) -> str:
    """One line for a task that was asked."""
    note = f" ({outcome.note})" if outcome.note else ""
    return f"{'right' if outcome.right else 'wrong'}  {outcome.kind}: {outcome.name}{note}"


def format_record(record: MeasuredModel) -> str:
    """The record with the counts behind each choice."""
    at = f"{datetime.fromtimestamp(record.measured_at, UTC):%Y-%m-%d %H:%M} UTC"
    limit = "" if record.is_complete else ", cut off by the time limit; the next measurement goes on there"
    answers = "questions" if record.profile.checks_answers else "trusts"
    lines = [
        f"{record.model} at {record.base_url}, {at}{limit}",
        f"  works in {record.profile.decides}; {answers} its answers",
        *(["  thinks before each decision; AGENT_LLM_EXTRA_BODY may turn that off"] if record.thinks else []),
        *(f"  {_KINDS.get(kind, kind)}: {count}" for kind, count in record.counts.items()),
        f"  {record.prompt_tokens_per_s:g} prompt tokens a second, {record.tokens_per_s:g} written; "
        f"first token after {record.first_token_s:g} s",
        f"  {record.calls} calls, {record.prompt_tokens:,} + {record.completion_tokens:,} tokens, {record.seconds:g} s",
    ]
    return "\n".join(lines)


def format_profile(record: MeasuredModel) -> str:
    """The record as one line."""
    counts = ", ".join(f"{kind} {count}" for kind, count in record.counts.items())
    return f"works in {record.profile.decides}: {counts}; {record.tokens_per_s:g} tokens a second"

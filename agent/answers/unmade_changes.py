"""Says under an answer that nothing was changed where the request asked for it: small models report what they plan, and
any model may drop a change after a person's reply to it.
"""

from agent.answers.sentences import say
from agent.core.run_state import RunState
from agent.planning.round_parts import is_change_settled, list_unmade_changes
from agent.run_context.run import Run


def add_unmade_changes(text: str, language: str) -> str:
    """The answer with the sentence, in `language` or else in English."""
    return f"{text}\n\n{say('unmade', language)}"


def list_missing_changes(run: Run) -> tuple[str, ...]:
    """The tools with which something was to be changed, if nothing was and nobody refused it."""
    return list_unmade_changes(run.state) or _list_dropped(run.state)


def _list_dropped(state: RunState) -> tuple[str, ...]:
    """The tools of changes that a person was asked about and replied to in words, where no plan asked again."""
    decisions = state.decisions
    replied = (one for one in state.approvals if one.call_id is None and one.approval_id in decisions)
    replied = (one for one in replied if decisions[one.approval_id].decision == "answered")
    tools = {item.tool for one in replied for item in one.items if item.changes and item.effect != "read"}
    return tuple(sorted(tools)) if tools and not is_change_settled(state) else ()

"""Finds the rejection that a call falls under, so that a model does not ask again for what a person refused."""

from pydantic import JsonValue

from agent.core.events import ApprovalDecided, ApprovalItem
from agent.core.run_state import RunState
from agent.policy.approval import is_from_outside
from agent.policy.guardrails.egress import is_same_address
from agent.text.replies import is_same_code


def find_rejection(state: RunState, item: ApprovalItem, *, without_call: str = "") -> ApprovalDecided | None:
    """The rejection of a call like this one in this run: the person has answered, although a model asks again. A plan
    that a person asked for may ask once more. The questions about `without_call` are left out.
    """
    if state.plans and state.plans[-1].asked_for:
        return None
    for request in state.approvals:
        decided = state.decisions.get(request.approval_id)
        if request.call_id in (None, without_call) or decided is None or decided.decision != "rejected":
            continue
        if any(_is_like(item, one) for one in request.items):
            return decided
    return None


def _is_like(item: ApprovalItem, rejected: ApprovalItem) -> bool:
    """Whether a call is the one that was rejected, or has the values by which it goes where nobody may want it to.

    Those are the values from outside that say where, or if none does, those whose role nobody declared.
    """
    if item.tool != rejected.tool:
        return False
    outside = [name for name in rejected.args if is_from_outside(rejected, name)]
    where = [name for name in outside if rejected.roles.get(name) == "where"]
    deciding = where or [name for name in outside if rejected.roles.get(name, "other") == "other"]
    if not deciding:
        return item.args == rejected.args
    return all(_is_same_place(item.args.get(name), rejected.args[name]) for name in deciding)


def _is_same_place(one: JsonValue, other: JsonValue) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        is_alike = one.casefold().split() == other.casefold().split()
        return is_alike or is_same_address(one, other) or is_same_code(one, other)
    return one == other

"""The values that a person has confirmed, by approving a call or a plan that showed them.

A confirmed value is trusted for the same argument of the same tool, in its run and in the later runs of a conversation
whose id this gateway made or whose key is the same.
"""

from collections.abc import Collection
from typing import Final

from pydantic import JsonValue

from agent.core.events import ConfirmedValue
from agent.core.plan_references import list_references
from agent.core.run_state import RunState

MAX_CONFIRMED: Final = 200
"""Values of a conversation that are kept, the newest."""


def list_confirmed_values(state: RunState, *, without_call: str | None = None) -> tuple[ConfirmedValue, ...]:
    """The values that a person has confirmed in this run, and before in its conversation.

    `without_call` leaves out the approval of one call, which is bound to more than its values. A plan that a person
    edited was not confirmed as it was shown.
    """
    confirmed = list(state.retrieval.confirmed) if state.retrieval is not None else []
    for request in state.approvals:
        decided = state.decisions.get(request.approval_id)
        if decided is None or decided.decision != "approved" or decided.edited:
            continue
        if request.call_id is not None and request.call_id == without_call:
            continue
        confirmed += [
            ConfirmedValue(tool=item.tool, argument=name, value=value)
            for item in request.items
            if item.changes or item.read_claim
            for name, value in item.args.items()
            if not list_references(value)
        ]
    return tuple(confirmed)[-MAX_CONFIRMED:]


def is_confirmed(values: Collection[ConfirmedValue], tool: str, argument: str, value: JsonValue) -> bool:
    """Whether a person confirmed the value for this argument of this tool; of a list, each of its items."""
    confirmed_values = [one.value for one in values if one.tool == tool and one.argument == argument]
    if any(_is_same(one, value) for one in confirmed_values):
        return True
    if not isinstance(value, list) or not value:
        items = [item for one in confirmed_values if isinstance(one, list) for item in one]
        return any(_is_same(item, value) for item in items)
    return all(not isinstance(item, list) and is_confirmed(values, tool, argument, item) for item in value)


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are equal and of one type: `1` is not `True`."""
    return type(one) is type(other) and one == other

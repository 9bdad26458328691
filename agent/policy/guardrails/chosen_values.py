"""Counts the values of a server's own that a run sends back to it, and the links that it follows: which ones, and in
which order, can spell a secret that the run has read elsewhere. Pure: `agent.execution.egress_facts` collects calls.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.policy.guardrails.egress import EgressFacts, EgressFinding, is_chosen_link, is_given_value, iter_values

MAX_CHOSEN_VALUES: Final = 3
"""How many values of a server's own a run may send back, and how many links it may follow, once it has read something
private from elsewhere: which ones, and in which order, can spell a secret, and four digits are one."""
ChosenValues = frozenset[tuple[str, tuple[str, ...]]]
"""Values of a call that are a server's own, or links, by argument; () of an argument that has others."""


def list_chosen_values(
    args: JsonObject, facts: EgressFacts, server: str, fixed_values: Iterable[JsonValue] = ()
) -> ChosenValues:
    """The values of a call, by argument, that are free only because the server that they go to has returned them."""
    fixed = frozenset(map(json.dumps, fixed_values))
    return frozenset(
        (
            name,
            tuple(
                str(value)
                for value in iter_values(args[name])
                if json.dumps(value) not in fixed
                and not is_given_value(value, facts)
                and facts.may_return(str(value).strip(), server)
            ),
        )
        for name in args
    )


def list_chosen_links(args: JsonObject, facts: EgressFacts, where_args: Iterable[str]) -> ChosenValues:
    """The addresses of a call, by argument, that are free only because a result has them as links."""
    return frozenset(
        (name, tuple(str(value) for value in iter_values(args[name]) if is_chosen_link(str(value), facts)))
        for name in where_args
        if name in args
    )


def find_chosen_values(args: JsonObject, calls: Sequence[ChosenValues]) -> EgressFinding | None:
    """The reason why a person must allow a call that sends values back to their server, or follows links. `calls` are
    those of a run in order, this one last.

    An argument with the values that it had before says nothing more than a call with given values does. One that had
    given values in between does: to go back and forth is to choose.
    """
    latest: dict[str, tuple[str, ...]] = {}
    count = total = 0
    for call in calls:
        count = sum(len(values) for name, values in call if latest.get(name) != values)
        total += count
        latest |= dict(call)
    if not count or total <= MAX_CHOSEN_VALUES:
        return None
    reason = "private text was read in this run, and the choice of these values can carry words of it to the server"
    return EgressFinding(reason, json.dumps(args, ensure_ascii=False))

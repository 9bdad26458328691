"""Which values from outside a person must allow in a call that changes something, by the roles of its arguments.

Pure. `agent.execution.argument_trust` finds out which values come from outside.
"""

from collections.abc import Collection, Mapping
from typing import Final

from agent.core.models import ArgumentRole, EffectPolicy

ROLE_ORDER: Final[tuple[ArgumentRole, ...]] = ("where", "other", "amount", "id", "content")
"""The roles by what a wrong value does, the worst first."""


def find_asked_args(
    untrusted: Mapping[str, ArgumentRole],
    policy: EffectPolicy,
    *,
    listed: Collection[str] = (),
    typed: Collection[str] = (),
) -> tuple[str, ...]:
    """The arguments because of which a person is asked, of those whose values come from outside.

    `untrusted` maps them to their roles. `listed` are those whose value is the id of a thing that the tool's own server
    listed in this run, `typed` those that hold typed fields of an extraction only. A typed value carries no
    instruction, so it may be content; it is not trusted as a place, and only `ask_where` trusts it as an amount.
    """
    if policy == "ask_any":
        return tuple(name for name, role in untrusted.items() if role != "content" or name not in typed)
    free = {
        name
        for name, role in untrusted.items()
        if role == "content" or (role == "id" and name in listed) or (role == "amount" and name in typed)
    }
    return tuple(name for name in untrusted if name not in free)

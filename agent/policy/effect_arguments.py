"""Which values from outside a person must allow in a call that changes something, by the roles of its arguments.

Pure. `agent.execution.argument_trust` finds out which values come from outside.
"""

from collections.abc import Collection, Mapping
from typing import Final

from agent.core.models import ArgumentRole, EffectPolicy

ROLE_ORDER: Final[tuple[ArgumentRole, ...]] = ("where", "other", "amount", "id", "content")
"""The roles by what a wrong value does, the worst first."""


def find_asked_args(
    untrusted: Mapping[str, ArgumentRole], policy: EffectPolicy, *, listed: Collection[str] = ()
) -> tuple[str, ...]:
    """The arguments because of which a person is asked, of those whose values come from outside.

    `untrusted` maps them to their roles. `listed` are those whose value is the id of a thing that the tool's own server
    listed in this run.
    """
    if policy == "ask_any":
        return tuple(untrusted)
    free = {name for name, role in untrusted.items() if role == "content" or (role == "id" and name in listed)}
    return tuple(name for name in untrusted if name not in free)

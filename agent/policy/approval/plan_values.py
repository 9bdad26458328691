"""Which calls of a sub-agent a person has allowed with the plan of a message that asks for several things.

Approving such a plan approves its steps and the values that it shows. A call with another value is asked about.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject
from agent.core.run_state import RunState
from agent.policy.approval.rules import changes_several, is_plan_approved

_WORD = re.compile(r"[^\W_]+")


def is_approved_with_plan(state: RunState, step_id: str, tool: str, args: JsonObject, *, destructive: bool) -> bool:
    """Whether the approved plan showed this call: its step and every value of its arguments.

    Values may also come from the results of the steps before, which the plan says are used. A call that destroys
    something counts only if the plan names its tool.
    """
    if not changes_several(state) or not is_plan_approved(state):
        return False
    step = next((one for one in (state.plan.steps if state.plan else ()) if one.id == step_id), None)
    if step is None or (destructive and step.args.get("action") != tool):
        return False
    texts = [*iter_texts(dict(step.args)), step.intent]
    for name in step.depends_on:
        output = state.get_step(name).output
        if output is not None and not output.tainted:
            texts.append(output.text)
    plan_words = _split_words(" . ".join(texts))
    return all(_is_shown(value, plan_words) for value in _iterate_values(args))


def _iterate_values(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _iterate_values(one)
    elif isinstance(value, list):
        for one in value:
            yield from _iterate_values(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, bool):
        yield "true" if value else ""


def _is_shown(value: str, shown: list[str]) -> bool:
    """Whether a value was shown, whatever its spelling: "Support Team" is the id `support-team`.

    Whole words count, in their order: neither "50" nor "team" is shown by "500" or "steam".
    """
    words = _split_words(value)
    if not words:
        return not value.strip()
    forms = [words, [*words[:-1], words[-1].removesuffix("s")]]
    starts = range(len(shown) - len(words) + 1)
    return any(shown[start : start + len(words)] == form for form in forms for start in starts)


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())

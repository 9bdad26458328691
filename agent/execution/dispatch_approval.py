"""Which calls of a sub-agent a person has allowed with the plan of a message that asks for several things.

Approving such a plan approves its steps and the values that it shows. A call with another value is asked about.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from agent.core.json_walk import iter_texts
from agent.core.models import JsonObject
from agent.policy.approval import changes_several, is_plan_approved
from agent.run_context.call_site import CallSite
from agent.run_context.run import Run
from agent.tools import ToolSpec


def is_approved_with_plan(run: Run, spec: ToolSpec, args: JsonObject, site: CallSite) -> bool:
    """Returns whether the approved plan showed this call: its step and every value of its arguments.

    Values may also come from the results of the steps before, which the plan says are used. A call that destroys
    something counts only if the plan names its tool.
    """
    state = run.state
    if not changes_several(state) or not is_plan_approved(state):
        return False
    step = next((one for one in (state.plan.steps if state.plan else ()) if one.id == site.step_id), None)
    if step is None or (spec.annotations.destructive and step.args.get("action") != spec.name):
        return False
    texts = [*iter_texts(dict(step.args)), step.intent]
    for name in step.depends_on:
        output = state.get_step(name).output
        if output is not None and not output.tainted:
            texts.append(output.text)
    shown = _keep_letters(" ".join(texts))
    return all(_is_shown(value, shown) for value in _iterate_values(args))


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


def _is_shown(value: str, shown: str) -> bool:
    """Returns whether a value was shown, whatever its spelling: "Support Team" is the id `support-team`."""
    letters = _keep_letters(value)
    return letters in shown or (letters.endswith("s") and letters[:-1] in shown)


def _keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))

"""The one of several things that were looked at, for a change of it.

After looks at each of several things a small model changes the first one. Asked by itself which of them fits what they
were looked at for, without the conversation, it names the one that does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.llm.prompts import format_block, quote_inline, render
from agent.planning.planner import PlannerModel
from agent.planning.reply import PlanReply, list_calls
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.known_words import KnownWords, split_words
from agent.text.quantifiers import asks_for_each
from agent.tools.catalogue import split_name

MAX_THINGS, RESULT_CHARS = 12, 1_000
"""Things of one question, and characters of what is known of each."""


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """The looks of one round at several things for one part of the request, by the things' names."""

    part: str
    looks: dict[str, RoundCall]


async def choose_things(model: PlannerModel, request: PlanningRequest, decision: PlanReply) -> PlanReply:
    """The decision, whose changes take the one of several looked-at things that fits, where they take another. Things
    that the request names are left to it. Raises `ModelError`."""
    group = _find_group(request)
    calls = list_calls(decision.data)
    changes = [call for call in calls if group is not None and _takes_one(call, group, request)]
    if group is None or not changes:
        return decision
    results = (format_block("result", look.text[:RESULT_CHARS], of=name) for name, look in group.looks.items())
    values = ", ".join(map(quote_inline, group.looks))
    question = render("decide_which", results="\n".join(results), part=quote_inline(group.part), values=values)
    word = await model.ask_word(({"role": "user", "content": question},))
    chosen = next((name for name in group.looks if name.casefold() == word), None)
    if chosen is None:
        return decision
    replaced: list[JsonValue] = [_replace(one, group, chosen) if one in changes else one for one in calls]
    return PlanReply({**decision.data, "steps": replaced})


def _find_group(request: PlanningRequest) -> _LookedAt | None:
    """The newest looks of one tool that differ in the one thing they name, which the request does not name."""
    rounds = [call for call in request.rounds if not call.failed]
    words = KnownWords([request.question, request.original])
    for number in sorted({call.number for call in rounds}, reverse=True):
        calls = [call for call in rounds if call.number == number]
        group = [call for call in calls if (call.tool, call.part) == (calls[-1].tool, calls[-1].part)]
        names = _list_names(group)
        if 1 < len(names) <= MAX_THINGS and not any(all(map(words.hold, split_words(name))) for name in names):
            return _LookedAt(group[0].part, dict(zip(names, group, strict=True)))
    return None


def _list_names(calls: Sequence[RoundCall]) -> list[str]:
    """The different texts in the only input in which calls differ; empty if there is none such."""
    inputs = {name for call in calls for name in call.args}
    varying = [name for name in inputs if len({str(call.args.get(name)) for call in calls}) > 1]
    values = [call.args.get(varying[0]) for call in calls] if len(varying) == 1 else []
    names = [value for value in values if isinstance(value, str) and value.strip()]
    return names if len({*names}) == len(calls) else []


def _takes_one(call: JsonObject, group: _LookedAt, request: PlanningRequest) -> bool:
    spec = request.catalogue.get_tool(str(call.get("tool")))
    inputs = call.get("inputs")
    if spec is None or not spec.has_side_effect or not isinstance(inputs, dict):
        return False
    is_for_each = asks_for_each(request.question, f"{split_name(spec.name)} {call.get('intent') or ''}")
    return not is_for_each and sum(value in group.looks for value in inputs.values() if isinstance(value, str)) == 1


def _replace(call: JsonObject, group: _LookedAt, chosen: str) -> JsonObject:
    inputs = call.get("inputs")
    own = inputs if isinstance(inputs, dict) else {}
    others = {name: chosen for name, value in own.items() if isinstance(value, str) and value in group.looks}
    return {**call, "inputs": {**own, **others}}

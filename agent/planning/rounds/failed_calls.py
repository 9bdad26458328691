"""Calls that follow from a failed one by its error alone: made once more, with the value or tool that it names, or with
each of the values that it lists.
"""

import re
from collections.abc import Iterator

from agent.core.json_walk import iter_leaves
from agent.planning.request import NextCall, PlanningRequest, RoundCall
from agent.planning.rounds.known_words import KnownWords, split_words
from agent.planning.rounds.other_values import list_alternatives, list_other_values, select_near
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name

MAX_LOOKS = 8
"""Values that an error lists, up to which each of them is looked at."""
_TOOL_WORD = re.compile(r"\w+")


def list_interrupted_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls of the last round whose error speaks of nothing that they named: what is down for a moment is asked
    once more. Only calls that read, of servers, and each tool once a run."""
    interrupted = []
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if not call.failed or spec is None or not is_foreign(spec) or spec.effect != "read":
            continue
        made = [str(one.args) for one in request.rounds if one.tool == call.tool and one.failed]
        if len({*made}) == len(made) and not _speaks_of_inputs(call):
            interrupted.append(NextCall(call.tool, call.args, call.part))
    return interrupted


def list_named_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls that an error of the last round names in place of its own: "its last level is in `read_gauge_log`".

    Only tools of the same server that read, with the inputs of the failed call."""
    made = request.made_calls
    calls: list[NextCall] = []
    for call, spec in _list_named(request):
        args = {name: call.args[name] for name in spec.required if name in call.args}
        if args and args.keys() >= {*spec.required} and (spec.name, args) not in made:
            made.append((spec.name, args))
            calls.append(NextCall(spec.name, args, call.part))
    return calls


def list_named_looks(request: PlanningRequest) -> list[NextCall]:
    """The calls without inputs that an error of the last round names for a first look: "`list_files` shows them"."""
    called = {call.tool for call in request.rounds}
    looks = {spec.name: call for call, spec in _list_named(request) if not spec.required and spec.name not in called}
    return [NextCall(name, {}, call.part) for name, call in looks.items()]


def _list_named(request: PlanningRequest) -> Iterator[tuple[RoundCall, ToolSpec]]:
    """Yields the failed calls of the last round, each with the reading tools of its server that its error names."""
    for call in request.last_calls:
        made_by = request.catalogue.get_tool(call.tool)
        words = {*_TOOL_WORD.findall(call.text.replace(call.tool, " "))} if call.failed else set()
        for spec in request.catalogue.tools if made_by is not None else ():
            name = spec.name.rpartition("__")[2]
            is_other = spec.name != call.tool and len(split_name(name).split()) > 1 and name in words
            if is_other and spec.effect == "read" and made_by is not None and spec.origin == made_by.origin:
                yield call, spec


def _speaks_of_inputs(call: RoundCall) -> bool:
    """Whether an error has the name or the value of one of the call's inputs."""
    error = call.text.casefold().replace(call.tool.casefold(), " ")
    names = {str(part).casefold() for path, _ in iter_leaves(call.args) for part in path if isinstance(part, str)}
    values = {str(leaf).casefold() for _, leaf in iter_leaves(call.args)} - {""}
    return any(one in error for one in names | values)


def list_corrected_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls of the last round that failed for a misspelt value, with the one value that their error names instead.

    Only calls that read: a change is never made with another value than the one that was meant. Identifiers of the
    user's are not corrected (`list_other_values`)."""
    made = request.made_calls
    corrected_calls = []
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if not call.failed or spec is None or spec.has_side_effect:
            continue
        values = list_other_values(spec, call, (), request.question)
        tried = {name: str(call.args[name]).casefold() for name in values}
        meant = {name: select_near(tried[name], others, call.text) for name, others in values.items()}
        if len(meant) != 1 or any(len(near) != 1 for near in meant.values()):
            continue
        args = {**call.args, **{name: near[0] for name, near in meant.items()}}
        if (call.tool, args) not in made:
            made.append((call.tool, args))
            corrected_calls.append(NextCall(call.tool, args, call.part))
    return corrected_calls


def list_looks_at_each(request: PlanningRequest) -> list[NextCall]:
    """The calls of the last round that read, and only described what is meant, once for each of the few values that
    their errors list: `get_stock(item="sold out")` for all five items. Which one is meant, the results show; of the
    values alone, a small model takes the first.

    None where the request or some results name some of the values: then one of these is meant."""
    made = request.made_calls
    stated = KnownWords([request.question, request.original, *(one.text for one in request.rounds if not one.failed)])
    looks: list[NextCall] = []
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if not call.failed or spec is None or spec.effect != "read" or not is_foreign(spec):
            continue
        listed = list_alternatives(call.text, call.args)
        choices = list_other_values(spec, call, (), request.question, request.rounds)
        named = [value for value in listed if all(map(stated.hold, split_words(value)))]
        if len(listed) > MAX_LOOKS or [*choices.values()] != [listed] or 0 < len(named) < len(listed):
            continue
        (name,) = choices
        if any(map(str.isdigit, str(call.args[name]))):
            continue  # an identifier that nobody knows describes nothing
        for value in listed:
            args = {**call.args, name: value}
            if (call.tool, args) not in made:
                made.append((call.tool, args))
                looks.append(NextCall(call.tool, args, call.part))
    return looks[:MAX_LOOKS]

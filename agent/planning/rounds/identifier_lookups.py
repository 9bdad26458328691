"""Finds where to look up the identifier of what a call only describes: `get_stock(item_id="strapping tape")`.

Offered the identifiers that the error lists, a small model takes one of them, which is then another thing's.
"""

from collections.abc import Iterator

from agent.core.json_walk import iter_leaves
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.input_schemas import takes_identifier
from agent.planning.rounds.wider_looks import is_free_text
from agent.text.codes import find_codes
from agent.text.json_entries import read_json_values
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign

MIN_CODES = 2
"""Codes in an error from which on it lists what there is."""


def find_described_value(request: PlanningRequest, call: RoundCall) -> str:
    """The value of a failed call that its error does not know, where the name of the input or the codes in the error
    show that an identifier is meant; "" if there is none. It is a description, or another thing's identifier: the
    guest's in place of the booking's. An identifier that the user gave is what is meant."""
    if not call.failed:
        return ""
    error, question = call.text.casefold(), request.question.casefold()
    results = [one.text for one in request.rounds if not one.failed]
    lists_codes = len({code.key for code in find_codes(call.text)}) >= MIN_CODES
    for path, value in iter_leaves(call.args):
        if not isinstance(value, str) or not value.strip() or value.casefold() not in error:
            continue
        is_code = is_one_code(value)
        is_another = is_code and value.casefold() not in question and any(value in text for text in results)
        names = [part for part in path if isinstance(part, str)]
        is_meant = lists_codes or bool(names and takes_identifier(names[-1]))
        if is_meant and (is_another or not is_code):
            return value
    return ""


def may_work_now(request: PlanningRequest, call: RoundCall) -> bool:
    """Whether a failed call has yet to be made: it named what is meant by another thing's identifier, or only described
    it, or something was read since that it may have failed for."""
    has_looked = any(one.number > call.number and not one.failed for one in request.rounds)
    return bool(find_described_value(request, call)) or (call.failed and has_looked)


def list_lookups(request: PlanningRequest, call: RoundCall) -> tuple[ToolSpec, ...]:
    """The tools of the same server that read and were not called yet: those that need no identifier themselves, or all
    if there is one, of another thing."""
    spec = request.catalogue.get_tool(call.tool)
    value = find_described_value(request, call) if spec is not None and is_foreign(spec) else ""
    if not value or spec is None:
        return ()
    return list_lookup_tools(request, spec, takes_codes=is_one_code(value))


def list_lookup_tools(request: PlanningRequest, spec: ToolSpec, *, takes_codes: bool = False) -> tuple[ToolSpec, ...]:
    """The tools of a tool's server that read, were not called yet, and need no identifier, unless there is one."""
    if not is_foreign(spec):
        return ()
    called = {one.tool for one in request.rounds}
    others = (one for one in request.catalogue.tools if one.origin == spec.origin and one.effect == "read")
    return tuple(one for one in others if one.name not in called and (takes_codes or _takes_words(one)))


def is_identifier(name: str, value: str) -> bool:
    """Whether a value of an input identifies something: by the input's name, or because it is a code."""
    return takes_identifier(name) or bool(find_codes(value))


def is_one_code(value: str) -> bool:
    """Whether a value is one word with a digit. "60x40 cardboard box" describes a thing."""
    return any(map(str.isdigit, value)) and len(value.split()) == 1


def find_text_input(spec: ToolSpec) -> str | None:
    """The one required input of a tool if it takes words, "" for a tool that requires none, None for others."""
    needed = spec.required
    return (needed[0] if needed else "") if len(needed) <= 1 and _takes_words(spec) else None


def _takes_words(spec: ToolSpec) -> bool:
    """Whether a tool can be called with words alone, or with nothing."""
    return all(not takes_identifier(name) and is_free_text(spec.properties.get(name)) for name in spec.required)


def iter_names(request: PlanningRequest, value: str) -> Iterator[str]:
    """Yields the names of the fields in which results have a value."""
    for call in request.rounds:
        if not call.failed and value in call.text:
            leaves = (leaf for data in read_json_values(call.text) for leaf in iter_leaves(data))
            yield from (path[-1] for path, leaf in leaves if leaf == value and path and isinstance(path[-1], str))

"""The values that may be meant in place of one that a call's error names.

A small model repeats a call that failed although the error lists what there is. When it is asked again, the refused
input becomes a choice of the values in the error, in results and in the request.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from agent.core.json_texts import read_json_text
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.planning.request import PlanningRequest, RoundCall
from agent.tools import ToolSpec

MAX_VALUES = 60
"""Values that are offered for one input; each is a rule of the grammar."""
VALUE_CHARS, VALUE_WORDS = 60, 5
NEAR = 0.75
"""Likeness of two words, from 0 to 1, from which on one may be meant by the other."""
_QUOTED = re.compile(r"'([^']{1,60})'|\"([^\"]{1,60})\"")
_WORD = re.compile(r"[^\s,;:()\[\]{}\"'`<>]+")
_IDENTIFIER = re.compile(r"\S*\d\S*")
_LIST = re.compile(r"[,;\n]")
_WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]{}]+")
_ADDRESS_MARKS = ("://", "@")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
_MARKS = frozenset("()[]{}<>=*")
"""Characters of expressions, of statements and of pieces of JSON, which no choice of words replaces."""
_SEPARATORS = re.compile(r"[\W_]+")
MIN_ALTERNATIVES = 2
"""Values at the end of an error from which on it lists what there is."""


def list_other_values(
    spec: ToolSpec, call: RoundCall, results: Iterable[str], request: str, rounds: Iterable[RoundCall] = ()
) -> dict[str, list[str]]:
    """The values that may be meant instead, for each text input whose value the call's error names.

    An identifier with a digit that the request gives has none, unless the error has it in another writing: another
    ticket than the one that the user named would be a wrong one. If another tool of the `rounds` took it, it is one of
    that tool's, and here something else is meant. A word may be misspelt, or a description of what is meant.
    """
    accepted = {str(value).casefold() for one in rounds if not one.failed for value in one.args.values()}
    error = call.text.casefold()
    refused = [
        name
        for name, value in call.args.items()
        if isinstance(value, str)
        # A longer one is a text or a statement, which no choice of words replaces.
        and (len(value) <= VALUE_CHARS or _WEB_ADDRESS.fullmatch(value))
        and len(value.split()) <= VALUE_WORDS
        and _MARKS.isdisjoint(value)
        and value.casefold() in error
        and _is_free_text(spec.properties.get(name))
        and not (
            _IDENTIFIER.fullmatch(value)
            and value.casefold() in request.casefold()
            and value.casefold() not in accepted
            and not _list_same(value, _iterate_values(call.text))
        )
    ]
    listed = list_alternatives(call.text, call.args)
    other_values: dict[str, list[str]] = {}
    for name in refused:
        tried = str(call.args[name]).casefold()
        # What else stands anywhere is refused like this one.
        values = listed or [value for text in (call.text, *results, request) for value in _iterate_values(text)]
        others = [value for value in dict.fromkeys(values) if value.casefold() != tried and not _quotes(value, tried)]
        others = [value for value in others if _has_form_of(value, tried)]
        if others:
            other_values[name] = select_near(tried, others, call.text) or others[:MAX_VALUES]
    return other_values


def list_alternatives(error: str, tried: JsonObject) -> list[str]:
    """The values that an error lists at its end as those that there are: `known: run-5522, run-5519`. Empty if it lists
    none, those that the call tried, or texts of several words, which may be sentences."""
    listed = [item.strip(" .'\"`") for item in error.rpartition(":")[2].split(",")]
    is_list = len(listed) >= MIN_ALTERNATIVES and all(len(item.split()) == 1 for item in listed)
    refused = {str(leaf).casefold() for _, leaf in iter_leaves(tried)}
    is_other = refused.isdisjoint(item.casefold() for item in listed)
    return listed if is_list and is_other and all(_MARKS.isdisjoint(item) for item in listed) else []


def _has_form_of(value: str, tried: str) -> bool:
    """Whether a value may be meant by its form: in place of a web or a mail address, only another one."""
    return all(mark in value for mark in _ADDRESS_MARKS if mark in tried)


def _quotes(value: str, tried: str) -> bool:
    return " " in value and tried in value.casefold()


def select_near(tried: str, values: Sequence[str], error: str) -> list[str]:
    """The values of the error that `tried` may be a misspelling of. Beside others, a small model takes the first."""
    named = {value.casefold() for value in _iterate_values(error) if value.casefold() not in tried.split()}
    same = _list_same(tried, values)
    if same:
        return same
    near = difflib.get_close_matches(tried, sorted(named), n=3, cutoff=NEAR)
    return [value for value in values if value.casefold() in near]


def _list_same(tried: str, values: Iterable[str]) -> list[str]:
    """The values with the same letters and digits in another writing: `SKU-1105` for `sku1105`."""
    own = _SEPARATORS.sub("", tried.casefold())
    folded = ((value, _SEPARATORS.sub("", value.casefold())) for value in values)
    return [value for value, other in folded if own == other and value.casefold() != tried.casefold()]


def take_accepted_values(spec: ToolSpec, inputs: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a look with the values that the same server took in place of those it refused in this run.

    A small model that has found the identifier of "the joint account" writes the words again in its next call."""
    own_words = f"{request.question}\n{request.original}".casefold()
    accepted: dict[str, list[JsonValue]] = {}
    for refused in request.rounds:
        made_by = request.catalogue.get_tool(refused.tool)
        for name in _list_refused(refused, inputs) if made_by is not None and made_by.origin == spec.origin else ():
            accepted.setdefault(name, []).extend(
                made.args[name]
                for made in request.rounds
                if made.tool == refused.tool
                and not made.failed
                and made.number > refused.number
                and name in made.args
                # Else another call was made, and not this one with another value.
                and {**made.args, name: None} == {**refused.args, name: None}
                # What the request names itself is another thing: of "bolts and nuts", one is no bolt.
                and str(made.args[name]).casefold() not in own_words
            )
    return inputs | {name: values[0] for name, values in accepted.items() if len({*map(str, values)}) == 1}


def _list_refused(call: RoundCall, inputs: JsonObject) -> list[str]:
    """The inputs whose value a failed call had, too, and its error names."""
    error = call.text.casefold() if call.failed else ""
    same = [name for name, value in inputs.items() if isinstance(value, str) and value and call.args.get(name) == value]
    return [name for name in same if str(inputs[name]).casefold() in error]


def list_named_alternatives(request: PlanningRequest, tried: str) -> list[str]:
    """The values that the request names, of those that an error of this run lists in place of `tried`; itself not."""
    errors = (one for one in request.rounds if one.failed and tried.casefold() in one.text.casefold())
    listed = dict.fromkeys(value for one in errors for value in list_alternatives(one.text, one.args))
    words = {word.strip(".,;:!?'\"()").casefold() for word in request.question.split()}
    return [value for value in listed if value.casefold() in words]


def _is_free_text(schema: JsonValue) -> bool:
    """Whether an input takes any text; not a statement or a program, of which an error quotes words."""
    is_text = isinstance(schema, dict) and schema.get("type") == "string"
    return is_text and isinstance(schema, dict) and schema.keys().isdisjoint(("enum", "contentMediaType"))


def _iterate_values(text: str) -> Iterator[str]:
    """Yields what may be a value: the leaves of JSON; in other text what is quoted or listed, then each word."""
    data = read_json_text(text)
    if isinstance(data, dict | list):
        yield from (value for _, leaf in iter_leaves(data) for value in [str(leaf)] if 0 < len(value) <= VALUE_CHARS)
        return
    yield from (address.rstrip(".,;:!?") for address in _WEB_ADDRESS.findall(text))
    yield from (value for quoted in _QUOTED.finditer(text) if _is_whole(value := quoted[1] or quoted[2]))
    last = text.rpartition(":")[2]
    for item in _LIST.split(last) if _LIST.search(last) else ():
        if 0 < len(item.strip(" .")) <= VALUE_CHARS:
            yield item.strip(" .")
    for word in _WORD.findall(text):
        if len(word.strip(".!?")) > 1:
            yield word.strip(".!?")


def _is_whole(value: str) -> bool:
    """Whether a quoted text is one by itself, and not what stands between two others: `} for tx in [`."""
    return any(map(str.isalnum, value)) and all(value.count(left) == value.count(right) for left, right in _PAIRS)

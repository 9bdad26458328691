"""Calls that a model makes again in a later round, and the values that it may take instead.

A small model repeats a call that failed although the error lists what there is. When it is asked again, the refused
input becomes a choice of the values in the error, in results and in the request.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError
from agent.core.json_texts import read_json_text
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.planning.request import PlanningRequest, RoundResult
from agent.planning.rounds.known_words import KnownWords, split_words
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name

MAX_VALUES = 60
"""Values that are offered for one input; each is a rule of the grammar."""
VALUE_CHARS, VALUE_WORDS = 60, 5
NEAR = 0.75
"""Likeness of two words, from 0 to 1, from which on one may be meant by the other."""
_QUOTED = re.compile(r"'([^']{1,60})'|\"([^\"]{1,60})\"")
_WORD = re.compile(r"[^\s,;:()\[\]{}\"'`<>]+")
_IDENTIFIER = re.compile(r"\S*\d\S*")
_DIGITS = re.compile(r"\d+")
_LIST = re.compile(r"[,;\n]")
_WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]{}]+")
_ADDRESS_MARKS = ("://", "@")
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
_MARKS = frozenset("()[]{}<>=*")
"""Characters of expressions, of statements and of pieces of JSON, which no choice of words replaces."""
MIN_ALTERNATIVES, MAX_LOOKS = 2, 8
"""Values at the end of an error from which on it lists what there is, and up to which each of them is looked at."""
_TOOL_WORD = re.compile(r"\w+")
_SEPARATORS = re.compile(r"[\W_]+")


class RepeatedCallError(PlanInvalidError):
    """Raised for a decision that only makes earlier calls again."""

    def __init__(self, call: RoundResult, problem: str) -> None:
        super().__init__([problem])
        self.call = call


def check_calls(data: JsonObject, request: PlanningRequest) -> None:
    """Raises `PlanInvalidError` for a decision that makes earlier calls again, or the same call for another thing."""
    check_repetition(data, request.rounds)
    check_replaced_codes(data, request)


def check_repetition(data: JsonObject, rounds: Sequence[RoundResult]) -> None:
    """Raises `RepeatedCallError` if every call of a decision was made before with the same inputs."""
    steps = data.get("steps")
    calls = steps if isinstance(steps, list) else []
    earlier = [next((one for one in rounds if _is_same(call, one)), None) for call in calls if isinstance(call, dict)]
    call = next((one for one in earlier if one is not None and one.failed), earlier[0] if earlier else None)
    if call is None or None in earlier:
        return
    if call.may_have_happened:
        problem = (
            f"{call.tool} may have done this already: {call.text[:300]}. Do not call it for this again, with other "
            "inputs neither; call a tool that shows whether it happened, or answer"
        )
        raise RepeatedCallError(call, problem)
    problem = (
        f"{call.tool} failed with these inputs: {call.text[:300]}. Use other values, one call for each, or answer"
        if call.failed
        else f"{call.tool} was called with these inputs already; its result is above. "
        "Call another tool for what is missing, with values of the results, or answer"
    )
    raise RepeatedCallError(call, problem)


def check_replaced_codes(data: JsonObject, request: PlanningRequest) -> None:
    """Raises `PlanInvalidError` for a decision that looks at another thing than the user named, once that one was not
    known: `budget-2030.csv` for `budget-2031.csv`, which is in no text but the error that refused the other."""
    steps = data.get("steps")
    calls = [one for one in (steps if isinstance(steps, list) else []) if isinstance(one, dict)]
    refused = _list_unknown_codes(request)
    if not refused or not calls:
        return
    stated = "\n".join((request.question, *(one.text for one in request.rounds if not one.failed))).casefold()
    for call in calls:
        spec = request.catalogue.get_tool(str(call.get("tool")))
        leaves = (leaf for _, leaf in iter_leaves(call.get("inputs")) if isinstance(leaf, str))
        for value in leaves if spec is not None and spec.effect == "read" else ():
            named = next((one for one in refused if _differs_in_digits(value, one)), "")
            if named and value.casefold() not in stated:
                raise PlanInvalidError(
                    [f"the user named {named}, which is not there; {value} is another one. Answer so"]
                )


def _list_unknown_codes(request: PlanningRequest) -> list[str]:
    """The values with digits that the request names and that errors did not know."""
    question = request.question.casefold()
    leaves = [(one, leaf) for one in request.rounds if one.failed for _, leaf in iter_leaves(one.args)]
    texts = [(one, leaf) for one, leaf in leaves if isinstance(leaf, str) and _IDENTIFIER.fullmatch(leaf)]
    return [leaf for one, leaf in texts if leaf.casefold() in question and leaf.casefold() in one.text.casefold()]


def _differs_in_digits(value: str, other: str) -> bool:
    return value.casefold() != other.casefold() and _DIGITS.sub("0", value.casefold()) == _DIGITS.sub(
        "0", other.casefold()
    )


def list_other_values(
    spec: ToolSpec, call: RoundResult, results: Iterable[str], request: str, rounds: Iterable[RoundResult] = ()
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
    listed = _list_alternatives(call.text, call.args)
    other_values: dict[str, list[str]] = {}
    for name in refused:
        tried = str(call.args[name]).casefold()
        # What else stands anywhere is refused like this one.
        values = listed or [value for text in (call.text, *results, request) for value in _iterate_values(text)]
        others = [value for value in dict.fromkeys(values) if value.casefold() != tried and not _quotes(value, tried)]
        others = [value for value in others if _has_form_of(value, tried)]
        if others:
            other_values[name] = _select_near(tried, others, call.text) or others[:MAX_VALUES]
    return other_values


def _list_alternatives(error: str, tried: JsonObject) -> list[str]:
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


def _select_near(tried: str, values: Sequence[str], error: str) -> list[str]:
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


def _list_refused(call: RoundResult, inputs: JsonObject) -> list[str]:
    """The inputs whose value a failed call had, too, and its error names."""
    error = call.text.casefold() if call.failed else ""
    same = [name for name, value in inputs.items() if isinstance(value, str) and value and call.args.get(name) == value]
    return [name for name in same if str(inputs[name]).casefold() in error]


def list_interrupted_calls(request: PlanningRequest) -> list[RoundResult]:
    """The calls of the last round whose error speaks of nothing that they named: what is down for a moment is asked
    once more. Only calls that read, of servers, and each tool once a run."""
    interrupted = []
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if not call.failed or spec is None or not is_foreign(spec) or spec.effect != "read":
            continue
        made = [str(one.args) for one in request.rounds if one.tool == call.tool and one.failed]
        if len({*made}) == len(made) and not _speaks_of_inputs(call):
            interrupted.append(call)
    return interrupted


def list_named_calls(request: PlanningRequest) -> list[RoundResult]:
    """The calls that an error of the last round names in place of its own: "its last level is in `read_gauge_log`".

    Only tools of the same server that read, with the inputs of the failed call."""
    made = request.made_calls
    calls: list[RoundResult] = []
    for call, spec in _list_named(request):
        args = {name: call.args[name] for name in spec.required if name in call.args}
        if args and args.keys() >= {*spec.required} and (spec.name, args) not in made:
            made.append((spec.name, args))
            calls.append(replace(call, tool=spec.name, args=args))
    return calls


def list_named_looks(request: PlanningRequest) -> list[RoundResult]:
    """The calls without inputs that an error of the last round names for a first look: "`list_files` shows them"."""
    called = {call.tool for call in request.rounds}
    looks = {spec.name: call for call, spec in _list_named(request) if not spec.required and spec.name not in called}
    return [replace(call, tool=name, args={}) for name, call in looks.items()]


def _list_named(request: PlanningRequest) -> Iterator[tuple[RoundResult, ToolSpec]]:
    """Yields the failed calls of the last round, each with the reading tools of its server that its error names."""
    for call in request.last_calls:
        made_by = request.catalogue.get_tool(call.tool)
        words = {*_TOOL_WORD.findall(call.text.replace(call.tool, " "))} if call.failed else set()
        for spec in request.catalogue.tools if made_by is not None else ():
            name = spec.name.rpartition("__")[2]
            is_other = spec.name != call.tool and len(split_name(name).split()) > 1 and name in words
            if is_other and spec.effect == "read" and made_by is not None and spec.origin == made_by.origin:
                yield call, spec


def _speaks_of_inputs(call: RoundResult) -> bool:
    """Whether an error has the name or the value of one of the call's inputs."""
    error = call.text.casefold().replace(call.tool.casefold(), " ")
    names = {str(part).casefold() for path, _ in iter_leaves(call.args) for part in path if isinstance(part, str)}
    values = {str(leaf).casefold() for _, leaf in iter_leaves(call.args)} - {""}
    return any(one in error for one in names | values)


def list_corrected_calls(request: PlanningRequest) -> list[RoundResult]:
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
        meant = {name: _select_near(tried[name], others, call.text) for name, others in values.items()}
        if len(meant) != 1 or any(len(near) != 1 for near in meant.values()):
            continue
        args = {**call.args, **{name: near[0] for name, near in meant.items()}}
        if (call.tool, args) not in made:
            made.append((call.tool, args))
            corrected_calls.append(replace(call, args=args))
    return corrected_calls


def list_looks_at_each(request: PlanningRequest) -> list[RoundResult]:
    """The calls of the last round that read, and only described what is meant, once for each of the few values that
    their errors list: `get_stock(item="sold out")` for all five items. Which one is meant, the results show; of the
    values alone, a small model takes the first.

    None where the request or some results name some of the values: then one of these is meant."""
    made = request.made_calls
    stated = KnownWords([request.question, request.original, *(one.text for one in request.rounds if not one.failed)])
    looks: list[RoundResult] = []
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if not call.failed or spec is None or spec.effect != "read" or not is_foreign(spec):
            continue
        listed = _list_alternatives(call.text, call.args)
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
                looks.append(replace(call, args=args))
    return looks[:MAX_LOOKS]


def list_named_alternatives(request: PlanningRequest, tried: str) -> list[str]:
    """The values that the request names, of those that an error of this run lists in place of `tried`; itself not."""
    errors = (one for one in request.rounds if one.failed and tried.casefold() in one.text.casefold())
    listed = dict.fromkeys(value for one in errors for value in _list_alternatives(one.text, one.args))
    words = {word.strip(".,;:!?'\"()").casefold() for word in request.question.split()}
    return [value for value in listed if value.casefold() in words]


def _is_free_text(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string" and "enum" not in schema


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


def _is_same(call: Mapping[str, JsonValue], made: RoundResult) -> bool:
    return (call.get("tool"), call.get("inputs")) == (made.tool, made.args)

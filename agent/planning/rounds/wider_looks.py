"""Looks that find nothing because a small model narrowed them: by inputs that nobody gave, by another kind of thing
than the request names, or by all words of a request at once where a search takes one.
"""

import json
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pydantic import JsonValue

from agent.core.json_schema import get_properties, list_required
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.planning.request import NextCall, PlanningRequest, RoundCall
from agent.planning.rounds.input_schemas import build_inputs_schema, takes_identifier
from agent.planning.rounds.known_words import (
    DATED_CHARS,
    SHORTEST_STEM,
    WORD,
    KnownWords,
    is_known,
    is_of_another_input,
    list_input_names,
    list_known_texts,
    list_words_before_numbers,
    split_words,
)
from agent.text.codes import find_codes
from agent.text.dates import DateMention, find_dates, find_times
from agent.text.json_entries import read_json_values
from agent.text.terms import extract_terms, fold, map_query_terms
from agent.text.values import find_values
from agent.tools import ToolSpec
from agent.tools.catalogue import is_foreign, split_name

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAX_WORD_LOOKS = 3
"""Words of a text that found nothing that are looked for by themselves."""
MIN_WORDS, MAX_WORDS = 2, 8
"""Words of a text that failed, any of which may be what is wrong."""


def name_stated_choices(spec: ToolSpec, args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a look with the one choice that the request names, where a small model took another one that it
    does not name: it asks for the lights where blinds are meant."""
    terms = {*extract_terms(f"{request.question}\n{request.original}")}
    declared = get_properties(build_inputs_schema(spec))
    return {name: _name_stated(value, declared.get(name), terms) for name, value in args.items()}


def _name_stated(value: JsonValue, schema: JsonValue, terms: AbstractSet[str]) -> JsonValue:
    for form in _list_forms(schema):
        properties = get_properties(form)
        if isinstance(value, dict) and value.keys() <= properties.keys():
            return {name: _name_stated(one, properties[name], terms) for name, one in value.items()}
        choices = _list_choices(form)
        if isinstance(value, str) and value in choices:
            stated = [one for one in choices if isinstance(one, str) and _is_named(one, terms)]
            return stated[0] if len(stated) == 1 else value
    return value


def _is_named(choice: str, terms: AbstractSet[str]) -> bool:
    """Whether each word of a choice stands there. A word such as "on" stands everywhere."""
    own = {*extract_terms(split_name(choice))}
    return any(len(term) >= SHORTEST_STEM for term in own) and own <= terms


def name_stated_date(args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a look with the one day that the request names in place of another one that nobody named: a small
    model writes 20 January as 2027-01-02."""
    question = f"{request.question}\n{request.original}"
    days = {reading.iso for one in find_dates(question[:DATED_CHARS]) for reading in one.readings if reading.is_day}
    given = {leaf for _, leaf in iter_leaves(args) if isinstance(leaf, str) and _ISO_DAY.fullmatch(leaf)}
    if len(days) != 1 or not given or given & days:
        return args
    words = KnownWords([*list_known_texts(request), request.ground])
    unknown = {leaf for leaf in given if not is_known(leaf, words, words)}
    if len(unknown) != 1:
        return args
    (given_day,), (named_day,) = unknown, days
    return {name: _replace_text(value, given_day, named_day) for name, value in args.items()}


def _replace_text(value: JsonValue, old: str, new: str) -> JsonValue:
    """A value in which one text, wherever it stands, is another."""
    if isinstance(value, dict):
        return {name: _replace_text(part, old, new) for name, part in value.items()}
    if isinstance(value, list):
        return [_replace_text(part, old, new) for part in value]
    return new if value == old else value


def leave_out_made_up_codes(spec: ToolSpec, args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a call without optional ones that name an address or a code that stands nowhere.

    Small models fill in a sender, `user@example.com`, wherever a tool takes one."""
    named = {name: value for name, value in _list_optional(spec, args).items() if isinstance(value, str)}
    coded = {name: value for name, value in named.items() if find_codes(value)}
    if not coded:
        return args
    words = KnownWords([*list_known_texts(request), request.ground])
    left = {name: value for name, value in args.items() if name not in coded or is_known(value, words, words)}
    says_something = any(isinstance(value, str) and is_known(value, words, words) for value in left.values())
    return left if says_something else args  # else the code is all that the call asks for


def leave_out_unstated(spec: ToolSpec, args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a look at a server without optional values that stand nowhere, also within objects: a small model
    fills in a kind, a place and a number wherever a tool takes one, and finds nothing or something else. Lists become
    longer, and the model reads what the request asks about of them; a value that is right in other words ("Munich" for
    "München") is lost. What makes a call differ from an earlier one stays, such as the number of the next page."""
    left = _leave_out_unstated(spec, args, KnownWords([*list_known_texts(request), request.ground]), request)
    return args if (spec.name, left) in request.made_calls else left


def list_wider_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls of the last round without the optional inputs whose values stand nowhere, where they found nothing, or
    nothing of the codes and numbers that the request names.

    Only calls that read: what is left out of a change makes it another one."""
    made = request.made_calls
    wider_calls: list[NextCall] = []
    words: tuple[KnownWords, KnownWords] | None = None
    named = _list_named(request.question) if request.last_calls else frozenset[str]()
    named = named.difference(*map(_list_given, request.rounds))  # those a call has been made with, if only another one
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if spec is None or spec.effect != "read" or not _found_nothing(call, named):
            continue
        words = words or _read_words_before(request)
        args = _leave_out_unstated(spec, call.args, words[0], request)
        if args == call.args and not call.failed:
            args = _leave_out_todays(spec, args, *words)
        is_wider = args != call.args
        if is_wider and call.failed and any(_stands_in(value, call.text) for value in args.values()):
            continue  # the error is about an input that stays
        for inputs in [args] if is_wider else _list_parts(spec, call, request):
            if (call.tool, inputs) not in made:
                made.append((call.tool, inputs))
                wider_calls.append(NextCall(call.tool, inputs, call.part))
    return wider_calls


def _leave_out_unstated(spec: ToolSpec, args: JsonObject, words: KnownWords, request: PlanningRequest) -> JsonObject:
    """The inputs without optional values that stand nowhere, also within objects."""

    before_numbers = list_words_before_numbers(request)
    others = frozenset(list_input_names(spec, request)) if before_numbers else frozenset()

    def is_stated(name: str, value: JsonValue, schema: JsonValue) -> bool:
        if isinstance(value, bool):
            return any(map(words.hold, split_words(split_name(name))))
        is_bare = takes_identifier(name) and " " not in split_name(name)  # the 5 of "issue 5" is its `id`
        if not is_bare and is_of_another_input(name, value, before_numbers, others):
            return False
        return _is_word_of(value, words) if value in _list_choices(schema) else _is_stated(value, words)

    def leave_out(values: JsonObject, schema: JsonObject) -> JsonObject:
        needed, left = list_required(schema), dict[str, JsonValue]()
        for name, value in values.items():
            declared = get_properties(schema).get(name)
            inner = next((form for form in _list_forms(declared) if get_properties(form)), None)
            if isinstance(value, dict) and inner is not None:
                left[name] = leave_out(value, inner)
            elif name in needed or is_stated(name, value, declared):
                left[name] = value
        return left

    return leave_out(args, build_inputs_schema(spec))


def _list_parts(spec: ToolSpec, call: RoundCall, request: PlanningRequest) -> list[JsonObject]:
    """Parts of the inputs of a look at a server that found nothing though all of them are stated: without the
    description in place of an identifier, or each word of the only text."""
    if call.failed or not is_foreign(spec) or not _lists_nothing(call.text):
        return []
    optional = _list_optional(spec, call.args)
    described = {name for name, value in optional.items() if takes_identifier(name) and _is_description(value, request)}
    if described:
        left = {name: value for name, value in call.args.items() if name not in described}
        return [left] if left else []
    words = list_single_words(spec, call, least=1)
    return [
        {**call.args, name: _leave_out_ending(word)}
        for name, several in words.items()
        if not takes_identifier(name) and not find_codes(str(call.args[name]))
        for word in several[:MAX_WORD_LOOKS]
    ]


def _is_description(value: JsonValue, request: PlanningRequest) -> bool:
    """Whether a value is of several words, none of them a code, that no result has: a number or one word may well be an
    identifier to which nothing belongs."""
    is_text = isinstance(value, str) and len(value.split()) > 1 and not find_codes(value)
    results = (one.text for one in request.rounds if not one.failed and str(value) in one.text)
    return is_text and not any(
        leaf == value for text in results for data in read_json_values(text) for _, leaf in iter_leaves(data)
    )


def _leave_out_ending(word: str) -> str:
    """A word without its ending, as in "chains" and "the Brunnhubers": many searches compare characters."""
    stem = next(iter(extract_terms(word)), "")
    return word[: len(stem)] if len(stem) > SHORTEST_STEM and fold(word).startswith(stem) else word


def _read_words_before(request: PlanningRequest) -> tuple[KnownWords, KnownWords]:
    """What stood anywhere before the last round, whose results repeat its inputs; and that without today's date."""
    before = replace(request, rounds=request.rounds[: len(request.rounds) - len(request.last_calls)])
    texts = list_known_texts(before)
    return KnownWords([*texts, request.ground]), KnownWords(texts)


def _leave_out_todays(spec: ToolSpec, args: JsonObject, known: KnownWords, spoken: KnownWords) -> JsonObject:
    """The inputs without today's date, of which nobody spoke, if another one is stated: a small model fills it in. What
    is found without it has its own dates."""
    optional = _list_optional(spec, args)
    dated = {name for name, value in optional.items() if isinstance(value, str) and find_dates(value)}
    todays = {name for name in dated if is_known(args[name], known, known) and not is_known(args[name], spoken, spoken)}
    others = [value for name, value in args.items() if name not in dated and isinstance(value, str) and value]
    says_something = any(is_known(value, spoken, spoken) for value in others)
    return {name: value for name, value in args.items() if name not in todays or not says_something}


def list_single_words(spec: ToolSpec, call: RoundCall, *, least: int = MIN_WORDS) -> dict[str, list[str]]:
    """The words of the one text of a call that failed, by its input, if they are at least so many: a search for all of
    them together finds only texts that hold them so. Empty where the call has several texts, or an error that names
    another mistake."""
    texts = {
        name: content
        for name, value in call.args.items()
        if isinstance(value, str)
        and is_free_text(spec.properties.get(name))
        and not find_dates(value[:DATED_CHARS])
        and least <= len(content := _list_content_words(value)) <= MAX_WORDS
    }
    return texts if len(texts) == 1 else {}


def _list_content_words(text: str) -> list[str]:
    content = {*map_query_terms(text).values()}
    return [word for word in dict.fromkeys(WORD.findall(text)) if fold(word) in content]


def _is_stated(value: JsonValue, words: KnownWords) -> bool:
    """Whether all of a value is known; a day may follow from "last week"."""
    return all(
        is_known(leaf, words, words) or any(isinstance(one, DateMention) for one in find_values(str(leaf)))
        for _, leaf in iter_leaves(value)
        if isinstance(leaf, str | int | float) and not isinstance(leaf, bool)
    )


def _list_forms(schema: JsonValue) -> list[JsonObject]:
    """The schemas of which a value has one."""
    forms = schema.get("anyOf", [schema]) if isinstance(schema, dict) else []
    return [form for form in forms if isinstance(form, dict)] if isinstance(forms, list) else []


def _list_choices(schema: JsonValue) -> list[JsonValue]:
    """The values of an input that takes some values only."""
    named = [form.get("enum") for form in _list_forms(schema)]
    return [value for values in named if isinstance(values, list) for value in values]


def _is_word_of(value: JsonValue, words: KnownWords) -> bool:
    """Whether a choice stands there as it is, or with an ending, as in "errors": who asks to start a run again does not
    ask for those that are running."""
    return all(word in words.tokens or words.hold_longer(word) for word in split_words(str(value)))


def _stands_in(value: JsonValue, error: str) -> bool:
    return any(isinstance(leaf, str) and leaf and leaf in error for _, leaf in iter_leaves(value))


def is_free_text(schema: JsonValue) -> bool:
    """Whether an input takes words of any kind."""
    return isinstance(schema, dict) and schema.get("type") == "string" and not {"enum", "format"} & {*schema}


def _list_optional(spec: ToolSpec, args: Mapping[str, JsonValue]) -> JsonObject:
    needed = spec.required
    return {name: value for name, value in args.items() if name not in needed and not isinstance(value, bool)}


def _list_named(question: str) -> frozenset[str]:
    """The codes and numbers that a request names, such as that of a room, without its dates and times."""
    dated = question[:DATED_CHARS]
    spans = [(one.start, one.end) for one in find_dates(dated)] + [(one.start, one.end) for one in find_times(dated)]
    for start, end in sorted(spans, reverse=True):
        question = f"{question[:start]} {question[end:]}"
    return frozenset(word for word in split_words(question) if any(map(str.isdigit, word)))


def _found_nothing(call: RoundCall, named: AbstractSet[str]) -> bool:
    """Whether a call failed, has an empty result, or one that holds nothing of what is named."""
    if call.failed or _is_empty(call.text):
        return True
    return bool(named) and named.isdisjoint(split_words(call.text))


def _list_given(call: RoundCall) -> set[str]:
    """The words of a call's inputs."""
    return {word for _, leaf in iter_leaves(call.args) for word in split_words(str(leaf))}


def _is_empty(text: str) -> bool:
    """Whether a result is blank, or JSON without any value."""
    return _is_json(text, lambda data: not _holds_value(data))


def _lists_nothing(text: str) -> bool:
    """Whether a result is blank, or JSON without any value that has room for one: 0 and false are answers."""
    return _is_json(text, lambda data: not _holds_value(data) and _has_room(data))


def _is_json(text: str, fits: Callable[[JsonValue], bool]) -> bool:
    """Whether a text is blank, or JSON that fits."""
    if not text.strip():
        return True
    try:
        return fits(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _has_room(data: JsonValue) -> bool:
    """Whether an empty list, object or text, or null, stands anywhere."""
    if isinstance(data, dict | list):
        return not data or any(map(_has_room, data.values() if isinstance(data, dict) else data))
    return data is None or data == ""


def _holds_value(data: JsonValue) -> bool:
    if isinstance(data, dict):
        return any(_holds_value(value) for value in data.values())
    if isinstance(data, list):
        return any(map(_holds_value, data))
    return bool(data)

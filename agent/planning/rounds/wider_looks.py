"""Looks that find nothing because a small model narrowed them: by inputs that nobody gave, by another kind of thing
than the request names, or by all words of a request at once where a search takes one.
"""

import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pydantic import JsonValue

from agent.core.json_schema import get_properties
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject
from agent.planning.request import NextCall, PlanningRequest, RoundCall
from agent.planning.rounds.input_schemas import build_inputs_schema
from agent.planning.rounds.known_words import (
    DATED_CHARS,
    SHORTEST_STEM,
    WORD,
    KnownWords,
    is_known,
    list_known_texts,
    split_words,
)
from agent.text.codes import find_codes
from agent.text.dates import DateMention, find_dates, find_times
from agent.text.terms import extract_terms, fold, map_query_terms
from agent.text.values import find_values
from agent.tools import ToolSpec
from agent.tools.catalogue import split_name

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
MIN_WORDS, MAX_WORDS = 2, 8
"""Words of a search that one of them may replace."""


def name_stated_choices(spec: ToolSpec, args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a look with the one choice that the request names, where a small model took another one that it
    does not name: it asks for the lights where blinds are meant."""
    terms = {*extract_terms(f"{request.question}\n{request.original}")}
    declared = get_properties(build_inputs_schema(spec))
    return {name: _name_stated(value, declared.get(name), terms) for name, value in args.items()}


def _name_stated(value: JsonValue, schema: JsonValue, terms: AbstractSet[str]) -> JsonValue:
    forms = schema.get("anyOf") if isinstance(schema, dict) else None
    for form in forms if isinstance(forms, list) else [schema]:
        properties = get_properties(form)
        if isinstance(value, dict) and value.keys() <= properties.keys():
            return {name: _name_stated(one, properties[name], terms) for name, one in value.items()}
        choices = form.get("enum") if isinstance(form, dict) else None
        if isinstance(value, str) and isinstance(choices, list) and value in choices:
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


def list_wider_calls(request: PlanningRequest) -> list[NextCall]:
    """The calls of the last round without the optional inputs whose values stand nowhere, where they found nothing, or
    nothing of the codes and numbers that the request names.

    Only calls that read: what is left out of a change makes it another one."""
    made = request.made_calls
    wider_calls: list[NextCall] = []
    words: tuple[KnownWords, KnownWords] | None = None
    named = _list_named(request.question) if request.last_calls else frozenset[str]()
    for call in request.last_calls:
        spec = request.catalogue.get_tool(call.tool)
        if spec is None or spec.effect != "read" or not _found_nothing(call, named):
            continue
        words = words or _read_words_before(request)
        optional = _list_optional(spec, call.args)
        choices = _list_choices(spec)
        unstated = {
            name
            for name, value in optional.items()
            if not (_is_word_of(value, words[0]) if value in choices.get(name, ()) else _is_stated(value, words[0]))
        }
        if not unstated and not call.failed:
            unstated = _list_todays(optional, call.args, *words)
        args = {name: value for name, value in call.args.items() if name not in unstated}
        is_about_others = call.failed and any(_stands_in(value, call.text) for value in args.values())
        if unstated and not is_about_others and (call.tool, args) not in made:
            made.append((call.tool, args))
            wider_calls.append(NextCall(call.tool, args, call.part))
    return wider_calls


def _read_words_before(request: PlanningRequest) -> tuple[KnownWords, KnownWords]:
    """What stood anywhere before the last round, whose results repeat its inputs; and that without today's date."""
    before = replace(request, rounds=request.rounds[: len(request.rounds) - len(request.last_calls)])
    texts = list_known_texts(before)
    return KnownWords([*texts, request.ground]), KnownWords(texts)


def _list_todays(optional: JsonObject, args: JsonObject, known: KnownWords, spoken: KnownWords) -> set[str]:
    """The inputs that are today's date, of which nobody spoke, if another one is stated: a small model fills them in.
    What is found without them has its own dates."""
    dated = {name for name, value in optional.items() if isinstance(value, str) and find_dates(value)}
    todays = {name for name in dated if is_known(args[name], known, known) and not is_known(args[name], spoken, spoken)}
    others = [value for name, value in args.items() if name not in dated and isinstance(value, str) and value]
    return todays if any(is_known(value, spoken, spoken) for value in others) else set()


def list_single_words(spec: ToolSpec, call: RoundCall) -> dict[str, list[str]]:
    """The words of the one text of a call that failed, by its input: a search for all of them together finds only
    texts that hold them so. Empty where the call has several texts, or an error that names another mistake."""
    texts = {
        name: content
        for name, value in call.args.items()
        if isinstance(value, str)
        and is_free_text(spec.properties.get(name))
        and MIN_WORDS <= len(content := _list_content_words(value)) <= MAX_WORDS
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


def _list_choices(spec: ToolSpec) -> dict[str, list[JsonValue]]:
    """The values of the inputs of a tool that take some values only."""
    choices: dict[str, list[JsonValue]] = {}
    for name, schema in get_properties(build_inputs_schema(spec)).items():
        forms = schema.get("anyOf", [schema]) if isinstance(schema, dict) else []
        for form in forms if isinstance(forms, list) else []:
            named = form.get("enum") if isinstance(form, dict) else None
            choices.setdefault(name, []).extend(named if isinstance(named, list) else [])
    return choices


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
    """Whether a call failed, has an empty result, or one that holds nothing of what is named, unless its inputs do."""
    if call.failed or _is_empty(call.text):
        return True
    given = {word for _, leaf in iter_leaves(call.args) for word in split_words(str(leaf))}
    return bool(named) and named.isdisjoint(given) and named.isdisjoint(split_words(call.text))


def _is_empty(text: str) -> bool:
    """Whether a result is blank, or JSON without any value."""
    if not text.strip():
        return True
    try:
        return not _holds_value(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _holds_value(data: JsonValue) -> bool:
    if isinstance(data, dict):
        return any(_holds_value(value) for value in data.values())
    if isinstance(data, list):
        return any(map(_holds_value, data))
    return bool(data)

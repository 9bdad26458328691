"""Values of changes that a small model makes up: they stand neither in the request nor in anything that was found.

The model gets the problem once. If it makes a value up again, the user is asked for it, or shown the change before it
is made.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pydantic import JsonValue

from agent.core.errors import PlanInvalidError, ReferenceMissingError
from agent.core.events import StepOutput
from agent.core.json_texts import read_json_text, write_text
from agent.core.json_walk import iter_leaves
from agent.core.models import ChatMessage, JsonObject, PlanStep
from agent.core.plan_references import ITEM, is_literal, list_literals, list_references, resolve_references
from agent.planning.list_steps import MAX_ITEMS, is_list_step, split_list_inputs
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.identifier_lookups import iter_names
from agent.planning.rounds.input_schemas import find_schema, requires_field, takes_identifier
from agent.planning.rounds.known_words import (
    WORD,
    KnownWords,
    is_known,
    is_of_another_input,
    list_codes,
    list_known_texts,
    list_today_texts,
    list_untouched_codes,
    list_words_before_numbers,
    split_words,
    write_form,
)
from agent.text.dates import DateMention, TimeMention, find_dates
from agent.text.values import find_values
from agent.tools import ToolSpec
from agent.tools.catalogue import get_first_sentence, split_name
from agent.tools.client_tools import CLIENT_ORIGIN

COMPOSED_WORDS = 4
"""Words from which on a text is one that the model is to write, such as a message."""
DESCRIBING_WORDS = 3
"""Words from which on a value may describe what is meant, in place of its name."""
DESCRIPTION_CHARS = 120
ENDING_CHARS = 5
"""The longest ending of a file's name."""
MADE_UP = "a value of this change stands neither in the request nor in a result"
MAX_REPORTED = 10
"""Values in one error to the model."""
REPORTED_CHARS = 200
_QUOTES = "\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"
"""What may stand around a quoted text, at either end: languages differ."""
_DIGITS = re.compile(r"(?<![^\W_])\d+(?![^\W_])")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d(?::\d\d)?")
_PLAIN_TYPES = ("string", "integer", "number", "boolean")
_NAMING_ROLES = frozenset({"where", "amount", "id"})
"""Roles of arguments that name something: a text of several words there is not one that the model is to write."""
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class MadeUpValue:
    """A value in an input of a change that the model made up. `path` leads to it inside a list or an object."""

    step: PlanStep
    spec: ToolSpec
    name: str
    value: JsonValue
    path: Path = ()
    refused_by: str = ""
    """The tool whose error in this run did not know the value."""
    meant: str = ""
    """The code in its form that the request names and that was not looked at."""
    is_derived: bool = False
    """Whether it is computed of known numbers, or known words with the ending of a file."""
    is_borrowed: bool = False
    """Whether only a quoted text of the same call has it."""

    is_today: bool = False
    """Whether it is today's date, of which nobody spoke."""

    @property
    def is_required(self) -> bool:
        """Whether the tool cannot be called without the input."""
        return self.name in self.spec.required

    @property
    def may_follow(self) -> bool:
        """Whether the value may follow from the request in a way that no rule sees: a date or a time, the wording of a
        title, a sum, a result's code, or the one of a count that nobody counts. The user sees it, and is not asked for
        it."""
        if self.is_borrowed or self.refused_by or self.is_today:
            return False
        mentions = () if self.is_derived or self.meant else find_values(str(self.value))
        if self.is_derived or self.meant or any(isinstance(one, DateMention | TimeMention) for one in mentions):
            return True
        is_wording = isinstance(self.value, str) and " " in self.value.strip()
        return not self._names_something and (is_wording or self.value == 1)

    @property
    def is_written(self) -> bool:
        """Whether it is a text that the model is to write, such as a message."""
        text = self.value if isinstance(self.value, str) and not self._names_something else ""
        least = 1 if self.spec.get_role(self.name) == "content" else COMPOSED_WORDS
        return (least == 1 or " " in text) and len(WORD.findall(text)) >= least

    @property
    def describes_thing(self) -> bool:
        """Whether it describes what is meant or is its date, and the input takes an identifier."""
        text = self.value.strip() if isinstance(self.value, str) and takes_identifier(self.name) else ""
        dates = find_dates(text)
        return len(text.split()) >= DESCRIBING_WORDS or (len(dates) == 1 and dates[0].text == text)

    @property
    def is_left_empty(self) -> bool:
        """Whether it is an empty text that an object within an input needs. Others may be left out, or are emptied."""
        path = (self.name, *self.path)
        return self.value == "" and bool(self.path) and requires_field(self.spec.input_schema, path)

    @property
    def _names_something(self) -> bool:
        return self.spec.get_role(self.name) in _NAMING_ROLES

    @property
    def label(self) -> str:
        """The name of the place, and behind a line break its description."""
        description = find_schema(self.spec, (self.name, *self.path)).get("description")
        return f"{self.field}\n{description}" if isinstance(description, str) else self.field

    @property
    def field(self) -> str:
        """The name of the innermost field that has it."""
        return next(part for part in reversed((self.name, *self.path)) if isinstance(part, str))

    @property
    def place(self) -> str:
        """Where the value is, as `items[0].to`."""
        return self.name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)


class MadeUpValueError(PlanInvalidError):
    """Raised for a decision to change something with values that nobody gave."""

    def __init__(self, values: Sequence[MadeUpValue]) -> None:
        super().__init__([_describe_problem(one) for one in values[:MAX_REPORTED]])
        self.values = values


def _describe_problem(value: MadeUpValue) -> str:
    problem = f"{value.step.tool}: the value {repr(value.value)[:REPORTED_CHARS]} of {value.place}"
    if value.refused_by:
        return f"{problem} is unknown to {value.refused_by}; call {value.refused_by} with another value first"
    if value.meant:
        return f"{problem} is not the one that the request names: {value.meant}"
    if value.describes_thing:
        return f"{problem} describes a thing; look its identifier up first"
    remedy = "look it up, or ask the user" if value.is_required else "leave the input out"
    return f"{problem} stands neither in the request nor in a result; {remedy}"


def find_made_up_values(steps: Iterable[PlanStep], request: PlanningRequest) -> tuple[MadeUpValue, ...]:
    """The inputs of changes whose values stand nowhere. Texts that the model is to write are not looked at, and calls
    that a client runs itself: it sees their values, and does not say what changes something."""
    changing = [step for step in steps if step.action != "skill" and request.catalogue.has_side_effect(step)]
    if not changing:
        return ()
    known_texts, request_texts = list_known_texts(request), list_known_texts(replace(request, ground=""))
    own_texts = [request.question, request.original, *request.replies]
    known_words = KnownWords(known_texts, zone=request.zone, counted=own_texts)
    given_words, today_words = KnownWords(own_texts), KnownWords(list_today_texts(request))
    unknown_values, before_numbers = _collect_unknown_values(request.rounds), list_words_before_numbers(request)
    untouched_codes = list_untouched_codes(request)
    stated_codes = list_codes(list_known_texts(replace(request, rounds=()))) if untouched_codes else frozenset()
    made_up_values = []
    for step in changing:
        spec = request.catalogue.get_tool(step.tool)
        if spec is None or spec.origin == CLIENT_ORIGIN:
            continue
        described = f"{spec.description}\n{spec.input_schema}"
        allowed_words = KnownWords([*known_texts, _DIGITS.sub(" ", described)])
        values = [*_iter_values(step, spec)]
        named_values = [one for one in values if one.describes_thing or not one.is_written]
        fields: dict[str, set[str]] = {}
        for one in values if before_numbers else ():
            fields.setdefault(str(one.value), set()).update(split_words(split_name(one.field)))
        made_up = [
            one
            for one in named_values
            if _replaces_identifier(one, request)
            or is_of_another_input(one.field, one.value, before_numbers, fields.get(str(one.value), ()))
            or not is_known(one.value, known_words, allowed_words, one.label)
        ]
        made_up = [one for one in made_up if not _ends_span(one, named_values, known_words)]
        made_up = [
            replace(
                one,
                is_derived=_is_derived(one.value, known_words, allowed_words, given_words),
                is_today=_is_date_of(one.value, today_words),
            )
            for one in made_up
        ]
        borrowed = _list_borrowed(values, known_texts, described)
        places = {one.place for one in borrowed}
        made_up = [one for one in made_up if one.place not in places] + borrowed
        made_up = made_up or _list_empty(step, spec) or [one for one in values if one.is_left_empty]
        made_up = made_up or _list_unasked_texts(values, KnownWords([*request_texts, described]))
        made_up_values += made_up
        used = list_codes(str(one.value) for one in values) if untouched_codes else frozenset()
        codes = {form: code for form, code in untouched_codes.items() if code.casefold() not in used}
        refused = [
            replace(
                one,
                refused_by=unknown_values.get(str(one.value).casefold(), ""),
                meant=codes.get(write_form(one.value), "") if str(one.value).casefold() not in stated_codes else "",
            )
            for one in values
        ]
        places = {one.place for one in made_up}
        made_up_values += [one for one in refused if (one.refused_by or one.meant) and one.place not in places]
    return tuple(made_up_values)


def list_unasked_changes(steps: Iterable[PlanStep], request: PlanningRequest) -> frozenset[str]:
    """The ids of the changes that only hold a text of the model's own for a place that nobody named."""
    made_up_values = find_made_up_values(steps, request)
    return frozenset(one.step.id for one in made_up_values if one.is_written)


def leave_out_unasked_texts(spec: ToolSpec, args: JsonObject, request: PlanningRequest) -> JsonObject:
    """The inputs of a change without optional texts of the model's own that the request does not speak of: a comment to
    an approval. All stay for a request in another language, which would name the input in other words."""
    needed = spec.required
    texts = {name: value for name, value in args.items() if name not in needed and isinstance(value, str)}
    written = {name for name, value in texts.items() if len(WORD.findall(value)) >= DESCRIBING_WORDS}
    if not written or request.answer.language:
        return args
    words = KnownWords(list_known_texts(request))
    spoken_of = {name for name in written if any(map(words.hold, split_words(split_name(name))))}
    unasked = {name for name in written - spoken_of if not is_known(texts[name], words, words)}
    return {name: value for name, value in args.items() if name not in unasked}


def select_missing(values: Iterable[MadeUpValue], request: PlanningRequest) -> tuple[MadeUpValue, ...]:
    """The values that the user is asked for: those that a change needs and that follow from nothing, without those that
    were asked for before. What was answered then, this model reads so; the user sees what it makes of it."""
    missing = (one for one in values if one.is_required and not one.may_follow)
    return tuple(one for one in missing if not _was_asked_for(one, request.history))


def _was_asked_for(value: MadeUpValue, history: Sequence[ChatMessage]) -> bool:
    """Whether one of the last questions in a row was for this input. A translated question keeps what is marked."""
    answers = (message.content for message in reversed(history) if message.role == "assistant")
    questions = takewhile(lambda text: f"`{value.spec.name}`" in text, answers)
    return any(f"`{value.place}`" in text for text in questions)


def format_question(value: MadeUpValue) -> str:
    """The question for a value."""
    described = find_schema(value.spec, (value.name, *value.path)).get("description")
    meaning = f" ({described})" if isinstance(described, str) and described else ""
    purpose = get_first_sentence(value.spec.description, DESCRIPTION_CHARS).rstrip(".")
    return f"A value is missing for `{value.spec.name}` ({purpose}): which `{value.place}`{meaning} do you mean?"


def _ends_span(value: MadeUpValue, values: Iterable[MadeUpValue], known: KnownWords) -> bool:
    """Whether a value is a time on the day of another one of the call that is known: the end of what is said to last an
    hour."""
    moment = _MOMENT.fullmatch(str(value.value))
    if moment is None:
        return False
    others = (other for one in values if one is not value and (other := _MOMENT.fullmatch(str(one.value))))
    return any(other[1] == moment[1] and is_known(other[0], known, known) for other in others)


def _is_date_of(value: JsonValue, words: KnownWords) -> bool:
    """Whether a value is a date that stands there."""
    dates = find_dates(value) if isinstance(value, str) else []
    return len(dates) == 1 and words.hold_date(dates[0])


def _is_derived(value: JsonValue, known: KnownWords, allowed: KnownWords, given: KnownWords) -> bool:
    """Whether a value is computed of a known number by one of the request, or is known words with a file's ending."""
    if isinstance(value, int | float):
        return not isinstance(value, bool) and known.compute(value, given)
    name, _, ending = str(value).rpartition(".")
    is_file = name != "" and "@" not in name and "//" not in name and ending.isalnum() and len(ending) <= ENDING_CHARS
    return is_file and is_known(name, known, allowed)


def _collect_unknown_values(rounds: Iterable[RoundCall]) -> dict[str, str]:
    """The descriptions that a tool's error did not know, in lower case, and that tool. A small
    model goes on with "the manager of ..." where it was to look up a name.

    An identifier that an error did not know may be that of a thing to be made."""
    refused: dict[str, str] = {}
    for call in rounds:
        leaves = [(path, leaf.casefold()) for path, leaf in iter_leaves(call.args) if isinstance(leaf, str)]
        for value in [leaf for path, leaf in leaves if len(leaf.split()) >= _get_fewest_words(path)]:
            if not call.failed:
                refused.pop(value, None)
            elif value in call.text.casefold():
                refused[value] = call.tool
    return refused


def _get_fewest_words(path: Sequence[str | int]) -> int:
    """The words from which on a value at a place describes what is meant: two are a new thing's name, but no
    identifier."""
    return 2 if path and takes_identifier(str(path[-1])) else DESCRIBING_WORDS


def _list_unasked_texts(values: Sequence[MadeUpValue], asked: KnownWords) -> list[MadeUpValue]:
    """The texts of the model's own in a call of which nothing else was asked for or found: it knows from the list of
    files alone where it writes to."""
    written = [one for one in values if one.is_written]
    others = [one.value for one in values if not one.is_written]
    return [] if not others or any(is_known(value, asked, asked) for value in others) else written


def _list_borrowed(values: Sequence[MadeUpValue], known_texts: Sequence[str], described: str) -> list[MadeUpValue]:
    """The needed names whose words stand nowhere but in a quoted text of the same call: asked to send "the lift works
    again", a small model sends it to `lift`. A number or a date may well stand there only."""
    quoted = [text for one in values if one.is_written and (text := str(one.value).strip())]
    pattern = "|".join(rf"(?<=[{_QUOTES}]){re.escape(text)}(?=[{_QUOTES}])" for text in quoted)
    if not quoted or not any(re.search(pattern, text) for text in known_texts):
        return []
    elsewhere = KnownWords([*(re.sub(pattern, " ", text) for text in known_texts), described])
    names = [one for one in values if one.is_required and not one.is_written and isinstance(one.value, str)]
    names = [one for one in names if not one.may_follow and not any(map(str.isdigit, str(one.value)))]
    borrowed = [one for one in names if not is_known(one.value, elsewhere, elsewhere)]
    return [replace(one, is_borrowed=True) for one in borrowed]


def _iter_values(step: PlanStep, spec: ToolSpec) -> Iterator[MadeUpValue]:
    """Yields the texts and numbers in the inputs of a call, and the keys that its tool does not declare. References to
    results, booleans and null name nothing. Of a list step, each value of its calls once.
    """
    listed: set[tuple[object, ...]] = set()
    for name, value in (one for args in _list_inputs(step, spec) for one in args.items()):
        for path, leaf, is_key in _iter_leaves(value):
            is_declared = is_key and bool(find_schema(spec, (name, *path)))
            for literal in () if is_declared else list_literals(leaf):
                key = (name, path, type(literal), str(literal))
                if literal is not None and not isinstance(literal, bool) and key not in listed:
                    listed.add(key)
                    yield MadeUpValue(step, spec, name, literal, path)


def _replaces_identifier(value: MadeUpValue, request: PlanningRequest) -> bool:
    """Whether a description or date stands for the identifier of what is meant. In a diary, a date may be that
    identifier, and where notes have no other, a title."""
    return value.describes_thing and not any(map(takes_identifier, iter_names(request, str(value.value))))


def _list_empty(step: PlanStep, spec: ToolSpec) -> list[MadeUpValue]:
    """The needed lists and objects that are empty: an order without lines. To empty a list of texts, such as labels, is
    a change like any other, and "[]" may be the text of a file."""
    given = ((name, read_json_text(step.args.get(name))) for name in spec.required)
    empty = (MadeUpValue(step, spec, name, value) for name, value in given if value in ([], {}))
    kinds = ((one, [find_schema(spec, path).get("type") for path in ((one.name,), (one.name, 0))]) for one in empty)
    return [one for one, types in kinds if not any(plain in types for plain in _PLAIN_TYPES)]


def _list_inputs(step: PlanStep, spec: ToolSpec) -> list[JsonObject]:
    """The inputs of the calls that a step makes, as far as they are known before it."""
    items, inputs = split_list_inputs(step.args) if is_list_step(step, spec) else (None, step.args)
    if not isinstance(items, list):
        return [step.args]
    outputs = [{ITEM: StepOutput(value=item, text=write_text(item))} for item in items[:MAX_ITEMS]]
    try:
        return [resolve_references(inputs, output.__getitem__).args for output in outputs]
    except (KeyError, ReferenceMissingError):  # the inputs refer to results, too
        return [step.args]


def _iter_leaves(value: JsonValue, path: Path = ()) -> Iterator[tuple[Path, JsonValue, bool]]:
    """Yields the leaves and the keys of lists and objects, also of a text that is JSON: the path, the leaf or key, and
    whether it is a key.
    """
    inner = read_json_text(value)
    if isinstance(inner, list):
        for at, item in enumerate(inner):
            yield from _iter_leaves(item, (*path, at))
    elif isinstance(inner, dict) and not is_literal(inner) and not _is_reference(inner):
        for key, item in inner.items():
            yield (*path, key), key, True
            yield from _iter_leaves(item, (*path, key))
    else:
        yield path, inner, False


def _is_reference(value: JsonObject) -> bool:
    return bool(list_references(value)) and not list_literals(value)

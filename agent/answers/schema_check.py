"""Checks a checked answer that a model converted into a caller's JSON schema.

Every value and every content word of the JSON must be in the answer, in the words it cites, in the question or in the
schema itself, and a sentence must keep its citation. A right value in the wrong field is not detected.
"""

import json
import re
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from agent.answers.evidence import NOT_IN_DOCUMENTS
from agent.core.fenced_json import remove_json_fence
from agent.core.json_schema import get_properties, iter_violations, list_required
from agent.core.json_walk import iter_leaves
from agent.core.models import JsonObject, TailorOutput
from agent.core.schema_references import find_reference
from agent.text.terms import extract_query_terms, extract_terms
from agent.text.values import KnownValues, find_values

MAX_PROBLEMS = 8
SENTENCE_WORDS = 8
"""A text of so many words is a sentence, which needs its citation."""
_CITE = re.compile(r"\s?\[(\d{1,3})\]")
_MAX_DEPTH = 50


def get_requested_schema(options: JsonObject) -> JsonObject | None:
    """The schema of a request's `response_format`, or None if it names none."""
    form = options.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    named = form.get("json_schema")
    schema = named.get("schema") if isinstance(named, dict) else None
    return schema if isinstance(schema, dict) else {}


def find_schema_error(schema: JsonObject) -> str:
    """Describes what is wrong with the schema itself, or an empty string."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 ms that most starts do not need
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"response_format.json_schema.schema is not a JSON schema: {error.message[:200]}"
    except RecursionError:
        return "response_format.json_schema.schema is nested too deeply"
    return ""


def parse_json(reply: str) -> JsonValue:
    """The JSON of a reply, also from a code block. Raises `ValueError`."""
    value: JsonValue = json.loads(remove_json_fence(reply))
    return value


def list_problems(value: JsonValue, schema: JsonObject, answer: TailorOutput, question: str) -> list[str]:
    """Describes what is wrong with a JSON version of `answer`: at most `MAX_PROBLEMS` problems."""
    problems = list(list_schema_problems(value, schema)) or list(_check_facts(value, schema, answer, question))
    return problems[:MAX_PROBLEMS]


def make_no_answer(schema: JsonObject) -> JsonValue:
    """The smallest JSON of this schema that says that the documents don't say.

    Raises `ValueError` if the schema requires a number, a boolean or a choice, which would be invented."""
    value = _make_empty(schema, schema, 0)
    if list(list_schema_problems(value, schema)):
        raise ValueError("the schema demands what the documents don't say")
    return value


def list_schema_problems(value: JsonValue, schema: JsonObject) -> Iterator[str]:
    """Yields how a value violates a schema."""
    for fault in iter_violations(schema, value):
        yield f"{_format_path(fault.path)}: {fault.message[:200]}"


def _check_facts(value: JsonValue, schema: JsonObject, answer: TailorOutput, question: str) -> Iterator[str]:
    """Yields a problem for each JSON value that is neither in the answer nor in its quotes."""
    answer_text = "\n".join((_CITE.sub("", answer.content), *(one.text_snippet for one in answer.citations)))
    known_values, words = KnownValues(answer_text), set(extract_terms(f"{answer_text}\n{question}"))
    cited = {one.number for one in answer.citations}
    constants = {leaf for path, leaf in iter_leaves(schema) if path[-1:] == ("const",) or path[-2:-1] == ("enum",)}
    for place, leaf in iter_leaves(value):
        if leaf is None or isinstance(leaf, bool) or leaf in constants:
            continue
        where = _format_path(place)
        if isinstance(leaf, int | float):
            if leaf not in cited and known_values.find_missing(f"{leaf:.15g}"):
                yield f"{where}: {leaf} is not in the answer"
            continue
        assert isinstance(leaf, str)  # JSON has no other values
        marks = [int(number) for number in _CITE.findall(leaf)]
        bare = _CITE.sub("", leaf)
        yield from (f"{where}: there is no source [{number}]" for number in marks if number not in cited)
        yield from (f"{where}: {one.text!r} is not in the answer" for one in known_values.find_missing(bare))
        new = [term for term in extract_query_terms(_blank_values(bare)) if term not in words]
        if new:
            yield f"{where}: the answer does not say {bare[:80]!r}"
        if cited and not marks and len(bare.split()) >= SENTENCE_WORDS:
            yield f"{where}: a sentence has lost its citation [n]"


def _blank_values(text: str) -> str:
    """The text without its dates, numbers and codes, which are compared by value."""
    for mention in reversed(find_values(text)):
        text = f"{text[: mention.start]} {text[mention.end :]}"
    return text


def _make_empty(schema: JsonValue, root: JsonObject, depth: int) -> JsonValue:
    """A value of a schema that states nothing."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _make_empty(find_reference(reference, root), root, depth + 1)
    wanted = schema.get("type")
    kinds = wanted if isinstance(wanted, list) else [wanted]
    choices = [one for key in ("anyOf", "oneOf") if isinstance(example := schema.get(key), list) for one in example]
    if "null" in kinds or any(isinstance(one, dict) and one.get("type") == "null" for one in choices):
        return None
    if choices:
        return _make_empty(choices[0], root, depth + 1)
    if "array" in kinds:
        return []
    if "object" in kinds or "properties" in schema:
        parts = get_properties(schema)
        return {name: _make_empty(parts.get(name, {}), root, depth + 1) for name in list_required(schema)}
    return NOT_IN_DOCUMENTS if "string" in kinds or wanted is None else None


def _format_path(place: Iterable[str | int]) -> str:
    return ".".join(map(str, place)) or "the whole"

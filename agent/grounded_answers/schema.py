"""A checked answer in the JSON schema a caller asked for: what is wrong with an attempt, and what can be said by rule.

Nothing may come in on the way: every number and name of the JSON must stand in the answer or in the words it cites, and
a sentence keeps its citation. What these checks cannot see is a right value in the wrong field.
"""

import json
import re
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.grounded_answers.grounding import SHARED_WORDS, TELLING_WORDS
from agent.grounded_answers.models import TailorOutput
from agent.grounded_answers.names import Spoken, names, small_words
from agent.grounded_answers.values import Held, mentions
from agent.search.models import NOT_IN_DOCUMENTS
from agent.text.terms import extract_query_terms, extract_terms

MOST_PROBLEMS = 8
_CITE = re.compile(r"\s?\[(\d{1,3})\]")
_FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_DEEPEST = 50


def asked_schema(options: JsonObject) -> JsonObject | None:
    """The schema of a request's `response_format`; None where none is asked for."""
    form = options.get("response_format")
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    named = form.get("json_schema")
    schema = named.get("schema") if isinstance(named, dict) else None
    return schema if isinstance(schema, dict) else {}


def schema_fault(schema: JsonObject) -> str:
    """What is wrong with the schema itself; empty for a good one."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 ms that most starts do not need
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"response_format.json_schema.schema is no JSON schema: {error.message[:200]}"
    return ""


def read_json(reply: str) -> JsonValue:
    """The JSON of a reply, also from a block of code. `ValueError` for none."""
    fenced = _FENCE.match(reply)
    value: JsonValue = json.loads(fenced[1] if fenced else reply)
    return value


def problems(value: JsonValue, schema: JsonObject, answer: TailorOutput, question: str) -> list[str]:
    """What is wrong with a JSON that is to say what `answer` says; at most `MOST_PROBLEMS`."""
    found = list(_of_schema(value, schema)) or list(_of_facts(value, schema, answer, question))
    return found[:MOST_PROBLEMS]


def nothing_in(schema: JsonObject) -> JsonValue:
    """The least JSON of this schema that says that the documents don't say. `ValueError` where the schema has no room
    for that: a number, a truth or a choice would be made up."""
    value = _empty(schema, schema, 0)
    if list(_of_schema(value, schema)):
        raise ValueError("the schema demands what the documents don't say")
    return value


def _of_schema(value: JsonValue, schema: JsonObject) -> Iterator[str]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    # An empty registry: a schema's references reach no address.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        for fault in validator.iter_errors(value):
            yield f"{_shown(fault.absolute_path)}: {fault.message[:200]}"
    except Unresolvable as error:
        yield f"a reference of the schema leads nowhere: {str(error)[:200]}"


def _of_facts(value: JsonValue, schema: JsonObject, answer: TailorOutput, question: str) -> Iterator[str]:
    """What of the JSON stands neither in the answer nor in the words it cites."""
    said = "\n".join((_CITE.sub("", answer.content), *(one.text_snippet for one in answer.citations)))
    held, spoken, words = Held(said), Spoken(f"{said}\n{question}"), set(extract_terms(said))
    common = small_words((said, question))
    cited = {one.number for one in answer.citations}
    constants = set(_constants(schema))
    for place, leaf in _leaves(value, ()):
        if leaf is None or isinstance(leaf, bool) or leaf in constants:
            continue
        where = _shown(place)
        if not isinstance(leaf, str):
            wrong = [one for one in mentions(f"{leaf:.15g}") if not held.holds(one)]
            if wrong and leaf not in cited:
                yield f"{where}: {leaf} does not stand in the answer"
            continue
        marks = [int(number) for number in _CITE.findall(leaf)]
        bare = _CITE.sub("", leaf)
        yield from (f"{where}: there is no source [{number}]" for number in marks if number not in cited)
        yield from (f"{where}: {o.text!r} does not stand in the answer" for o in mentions(bare) if not held.holds(o))
        yield from (
            f"{where}: the name {o.text!r} does not stand in the answer"
            for o in names(bare, common)
            if not spoken.holds(o)
        )
        own = set(extract_query_terms(bare))
        if own and len(own & words) < SHARED_WORDS * len(own):
            yield f"{where}: the answer does not say {bare[:80]!r}"
        if cited and not marks and len(bare.split()) >= TELLING_WORDS:
            yield f"{where}: a sentence has lost its citation [n]"


def _empty(schema: JsonValue, root: JsonObject, depth: int) -> JsonValue:
    """A value of a schema that states nothing."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _empty(_resolved(reference, root), root, depth + 1)
    wanted = schema.get("type")
    kinds = wanted if isinstance(wanted, list) else [wanted]
    choices = [one for key in ("anyOf", "oneOf") if isinstance(found := schema.get(key), list) for one in found]
    if "null" in kinds or any(isinstance(one, dict) and one.get("type") == "null" for one in choices):
        return None
    if choices:
        return _empty(choices[0], root, depth + 1)
    if "array" in kinds:
        return []
    if "object" in kinds or "properties" in schema:
        properties, required = schema.get("properties"), schema.get("required")
        parts = properties if isinstance(properties, dict) else {}
        wanted_names = required if isinstance(required, list) else []
        return {str(name): _empty(parts.get(str(name), {}), root, depth + 1) for name in wanted_names}
    return NOT_IN_DOCUMENTS if "string" in kinds or wanted is None else None


def _resolved(reference: str, root: JsonObject) -> JsonValue:
    """What a reference within the schema leads to (`#/$defs/place`); None for any other."""
    found: JsonValue = root
    for part in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _constants(schema: JsonValue) -> Iterator[str | int | float]:
    """What the schema itself offers to be said: `enum`, `const`."""
    if isinstance(schema, list):
        for one in schema:
            yield from _constants(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            offered = value if key == "enum" and isinstance(value, list) else [value] if key == "const" else []
            yield from (one for one in offered if isinstance(one, str | int | float))
            yield from _constants(value)


def _leaves(value: JsonValue, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], JsonValue]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, (*place, name))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _leaves(one, (*place, at))
    else:
        yield place, value


def _shown(place: Iterable[str | int]) -> str:
    return ".".join(map(str, place)) or "the whole"

"""Compares values with JSON schemas that callers, models and other people's servers wrote.

Such a schema may be made to keep the process busy: a pattern that backtracks, references that double, alternatives
times items. Patterns therefore run in linear time, references reach no address, and a comparison has a time limit.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from time import thread_time
from typing import Any

from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema

from agent.core.models import JsonObject

COMPARE_SECONDS = 0.2
"""CPU seconds that one comparison may take: on the event loop everybody waits for it. Ordinary ones take less than a
millisecond."""
_deadline: ContextVar[float] = ContextVar("schema_deadline")
MAX_KNOWN_SCHEMAS = 512
MAX_QUOTED = 80
"""Longest value that a violation repeats, in characters."""
_validators: dict[int, tuple[Mapping[str, Any], Any]] = {}
"""Schemas and their validators by the schema's identity: nobody changes a schema after it is compared with. Writing it
as JSON to find its validator takes a third of a comparison."""
_TEXT_KEYWORDS = frozenset({"type", "minLength", "maxLength", "title", "description", "default", "examples"})
_OBJECT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_VALUES = frozenset({"const", "default", "enum", "examples"})
"""The keywords under which values stand, not schemas."""
_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation: the place in the value, and the fault there."""

    path: tuple[str | int, ...]
    message: str

    @property
    def where(self) -> str:
        """The place as `items.0.name`; empty for the whole value."""
        return ".".join(map(str, self.path))


class _OutOfTimeError(Exception):
    """Raised within a comparison that takes too long."""


def get_properties(schema: object) -> JsonObject:
    """The schemas of an object's properties that a schema names at its top, by name; {} where it names none."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, dict) else {}


def list_required(schema: Mapping[str, Any]) -> list[str]:
    """The names that a schema requires at its top."""
    names = schema.get("required")
    return [str(name) for name in names] if isinstance(names, list) else []


def iter_violations(schema: Mapping[str, Any], value: object) -> Iterator[Violation]:
    """Yields how a value violates a schema, within `COMPARE_SECONDS`; a schema that cannot be compared with violates it
    too.

    Patterns are those of Rust's `regex`; one that it does not know (look-around) is not compared. Raises jsonschema's
    `UnknownType` for a type that JSON Schema does not have.
    """
    if _is_fitting_object(schema, value):
        return
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - 60 ms with jsonschema, which most starts do not need

    try:
        faults = _compare(_get_validator(schema), value)
    except Unresolvable as error:
        faults = [Violation((), f"a `$ref` of the schema cannot be resolved: {str(error)[:200]}")]
    except RecursionError:
        faults = [Violation((), "the schema or the value is nested too deeply to be checked")]
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:  # a list where a schema has to be
        faults = [Violation((), f"the schema cannot be used for a check: {str(error)[:200]}")]
    except _OutOfTimeError:
        faults = [Violation((), f"a check against the schema takes longer than {COMPARE_SECONDS:g} s; simplify it")]
    yield from faults


def _compare(validator: Any, value: object) -> list[Violation]:
    """Describes how a value violates a schema. The time that loading the library took does not count."""
    token = _deadline.set(thread_time() + COMPARE_SECONDS)
    try:
        faults = (one for fault in validator.iter_errors(value) for one in _list_telling(fault))
        return [Violation(tuple(fault.absolute_path), _describe(fault)) for fault in faults]
    finally:
        _deadline.reset(token)


def _list_telling(fault: Any) -> list[Any]:
    """The faults that say what is wrong: of a union of which a value has the type of one form only, such as text or
    null, those with that form."""
    forms: dict[object, list[Any]] = {}
    for inner in fault.context or () if fault.validator in ("anyOf", "oneOf") else ():
        if inner.relative_schema_path:  # that of a form which is `false` is empty
            forms.setdefault(inner.relative_schema_path[0], []).append(inner)
    fitting = [faults for faults in forms.values() if not any(_is_of_other_type(inner) for inner in faults)]
    return [one for inner in fitting[0] for one in _list_telling(inner)] if len(fitting) == 1 else [fault]


def _is_of_other_type(fault: Any) -> bool:
    return fault.validator == "type" and not fault.relative_path


def _describe(fault: Any) -> str:
    """What is wrong with a value. The library's words begin with the whole of it, which would hide the rest."""
    whole, message = repr(fault.instance), str(fault.message)
    return message if len(whole) <= MAX_QUOTED else message.replace(whole, f"{whole[:MAX_QUOTED]}…{whole[-1]}", 1)


def _get_validator(schema: Mapping[str, Any]) -> Any:
    cached = _validators.get(id(schema))  # its schema is kept, so that no other one can have the identity
    if cached is None:
        if len(_validators) >= MAX_KNOWN_SCHEMAS:
            _validators.clear()
        cached = _validators[id(schema)] = schema, _build_validator(json.dumps(schema, sort_keys=True))
    return cached[1]


@lru_cache(maxsize=MAX_KNOWN_SCHEMAS)
def _build_validator(schema: str) -> Any:
    from referencing import Registry  # noqa: PLC0415 - as above

    read = _modernise(json.loads(schema))
    # An empty registry: references reach no address.
    return _build_class(checks_unevaluated="patternProperties" not in schema)(read, registry=Registry())


def _modernise(schema: Any) -> Any:
    """The schema with keywords of drafts 4 and 7 as draft 2020-12 has them: many servers describe tools in draft 7."""
    if isinstance(schema, list):
        return [_modernise(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    modern = {name: value if name in _VALUES else _modernise(value) for name, value in schema.items()}
    if isinstance(modern.get("items"), list):
        modern["prefixItems"] = modern.pop("items")
        modern["items"] = modern.pop("additionalItems", True)
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(modern.get(exclusive), bool):
            is_exclusive = modern.pop(exclusive)
            modern |= {exclusive: modern.pop(limit)} if is_exclusive and limit in modern else {}
    return modern


@lru_cache(maxsize=2)
def _build_class(*, checks_unevaluated: bool) -> Any:
    """The validator's class. What is unevaluated beside patterns is not compared: jsonschema would search for
    these with its own patterns.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from jsonschema.validators import extend  # noqa: PLC0415

    keywords: dict[str, Any] = {
        **Draft202012Validator.VALIDATORS,
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
        "uniqueItems": _check_unique_items,
    }
    if not checks_unevaluated:
        keywords["unevaluatedProperties"] = _check_nothing
    make_class: Callable[..., Any] = extend  # without types in the stubs
    return make_class(Draft202012Validator, {name: _limit_time(check) for name, check in keywords.items()})


def _limit_time(check: _Keyword) -> _Keyword:
    def limited(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any] | None:
        if thread_time() > _deadline.get():
            raise _OutOfTimeError
        return check(validator, wanted, value, schema)

    return limited


def _is_fitting_object(schema: Mapping[str, Any], value: object) -> bool:
    """Whether an object of texts fits a schema that asks for nothing else. Most arguments and results are such objects.
    False leaves the question to a validator.
    """
    if not isinstance(value, dict) or schema.get("type") != "object" or not schema.keys() <= _OBJECT_KEYWORDS:
        return False
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    if not value.keys() <= properties.keys() or any(name not in value for name in required):
        return False
    return all(_is_fitting_text(properties[name], text) for name, text in value.items())


def _is_fitting_text(schema: Any, value: object) -> bool:
    """Whether a text fits a schema that asks for nothing but a text, perhaps of some length."""
    if not isinstance(value, str) or not isinstance(schema, dict) or schema.get("type") != "string":
        return False
    if not schema.keys() <= _TEXT_KEYWORDS:
        return False
    return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))


def _check_pattern(validator: Any, pattern: Any, value: Any, schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(str(pattern), value):
        yield _make_error(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, wanted in patterns.items():
            for name, one in value.items():
                if _compile_pattern(pattern) is not None and _matches(pattern, name):
                    yield from validator.descend(one, wanted, path=name, schema_path=pattern)


def _check_additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [name for name in value if name not in properties and not any(_matches(one, name) for one in patterns)]
    if isinstance(wanted, dict):
        for name in extras:
            yield from validator.descend(value[name], wanted, path=name)
    elif not wanted and extras:
        names, verb = ", ".join(map(repr, sorted(extras))), "was" if len(extras) == 1 else "were"
        yield _make_error(f"Additional properties are not allowed ({names} {verb} unexpected)")


def _check_unique_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if wanted and isinstance(value, list) and len({_to_key(one) for one in value}) < len(value):
        yield _make_error(f"{value!r} has non-unique elements")


def _check_nothing(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    yield from ()


def _to_key(value: Any) -> Any:
    """A key that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _to_key(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(_to_key(one) for one in value)
    return (isinstance(value, bool), value)


def _make_error(message: str) -> Exception:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above

    return ValidationError(message)


def _matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; True for a pattern that cannot be compared."""
    compiled = _compile_pattern(pattern)
    return compiled is None or bool(compiled.isinstance_python(text))


@lru_cache(maxsize=512)
def _compile_pattern(pattern: str) -> SchemaValidator | None:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except PatternError:
        return None

"""Declares the events of features, before a log is read: those of features that are off too, whose runs stay readable.

The rule of redaction is a part of an event's class, `redact`. Whether one can be done without is read from the JSON
schema of its fields.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from agent.core.events import BODY_TYPES, FEATURE_EVENTS, FeatureEvent, declare_event
from gateway.feature import Feature
from gateway.feature_loader import KERNEL, FeatureError, LoadedFeatures, claim, import_target

_TEXTLESS_FORMATS = {"date", "date-time", "time", "duration", "uuid"}


def declare_events(features: LoadedFeatures) -> None:
    """Declares the events of all features that can be imported, before runs are executed.

    Raises `FeatureError` if one in use may hold text and has no rule, or if two features have events of one type.
    """
    claims = dict.fromkeys(BODY_TYPES, KERNEL)
    for feature in features:
        for kind in _import_events(feature):
            _check_event(kind, feature.name)
            claim(claims, kind.type, feature.name, "the event")
            declare_event(kind)
    declare_past_events(features)


def declare_past_events(features: LoadedFeatures) -> None:
    """Declares what all features may have written, on or off, so far as it can be imported: enough to read logs."""
    for feature in features.known:
        with suppress(FeatureError):
            for kind in _import_events(feature):
                if _is_event(kind) and kind.type not in BODY_TYPES and kind.type not in FEATURE_EVENTS:
                    declare_event(kind)


def _import_events(feature: Feature) -> Sequence[type[FeatureEvent]]:
    """The events that a feature names. Raises `FeatureError` if it names anything else than a list of them."""
    kinds = import_target(feature.events) if feature.events is not None else ()
    if not isinstance(kinds, tuple | list):
        raise FeatureError(f"the feature {feature.name!r}: its events are {kinds!r}, not a tuple of FeatureEvents")
    return kinds


def _check_event(kind: type[FeatureEvent], feature: str) -> None:
    if not _is_event(kind):
        raise FeatureError(
            f"the feature {feature!r}: its events name {kind!r}, which is not a FeatureEvent with a type"
        )
    if kind.terminal:
        raise FeatureError(f"the feature {feature!r}: its event {kind.type!r} cannot end a run")
    if kind.redact is FeatureEvent.redact and may_hold_text(kind):
        raise FeatureError(
            f"the feature {feature!r}: its event {kind.type!r} may hold text and has no rule of redaction; "
            f"define {kind.__qualname__}.redact"
        )


def _is_event(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, FeatureEvent) and isinstance(getattr(kind, "type", None), str)


def may_hold_text(kind: type[FeatureEvent]) -> bool:
    """Whether a field of the event, or of what it holds, takes any text: names of choices and times do not."""
    try:
        schema = kind.model_json_schema(mode="serialization")
    except PydanticInvalidForJsonSchema:
        return True
    return any(map(_takes_text, _iter_schemas(schema)))


def _iter_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields a schema and those in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("properties", "$defs"):
        for one in schema.get(name, {}).values():
            yield from _iter_schemas(one)
    for name in ("items", "additionalProperties"):
        yield from _iter_schemas(schema.get(name))
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for one in schema.get(name, ()):
            yield from _iter_schemas(one)


def _takes_text(schema: dict[str, Any]) -> bool:
    if {"enum", "const", "$ref", "anyOf", "oneOf", "allOf"} & schema.keys():
        return False  # a choice; or others in it say what it takes
    match schema.get("type"):
        case "string":
            return schema.get("format") not in _TEXTLESS_FORMATS
        case "object":  # keys of a mapping are text too
            return bool(schema.get("additionalProperties")) or "properties" not in schema
        case "array":
            return not {"items", "prefixItems"} & schema.keys()
        case None:
            return True
    return False

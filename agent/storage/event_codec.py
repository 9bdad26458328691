"""Converts events to database rows and back. A body is one JSON text. Unknown types are refused, never skipped."""

import json

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from agent.core.errors import LogDamagedError, StoreNewerError, TooLargeError
from agent.core.events import BODY_TYPES, FEATURE_EVENTS, Event, EventBody
from agent.core.surrogates import replace_surrogates

EventRow = tuple[str, int, int, str, int, str | None, int | None, str, float]
"""run_id, seq, epoch, type, v, step_id, attempt, data, at"""


def encode(event: Event, data: str | None = None) -> tuple[Event, EventRow]:
    """The event as it will be read back, and its row in `events`. `data` is the body's JSON, if it was encoded
    already. See `encode_body`.
    """
    body = event.body
    if data is None:
        body, data = encode_body(body, event.run_id)
        if body is not event.body:
            event = event._replace(body=body)
    return event, (
        event.run_id, event.seq, event.epoch, body.type, body.v, event.step_id, event.attempt, data, event.at,
    )  # fmt: skip


def encode_body(body: EventBody, run_id: str) -> tuple[EventBody, str]:
    """The body as it will be read back, and its JSON.

    The returned body differs from the argument only if a text contains a lone surrogate, which JSON escapes allow and
    UTF-8 does not; it becomes U+FFFD. Defaults are written out, because they may change between versions and a log may
    not. Raises `TooLargeError` for a value that is nested too deeply to be written.
    """
    try:
        return body, body.model_dump_json()
    except PydanticSerializationError:
        mended = _replace_surrogates_in_body(body, run_id)
        return mended, mended.model_dump_json()


def get_data(row: EventRow) -> str:
    """The body's JSON in a row."""
    return row[7]


def decode(row: EventRow) -> Event:
    """Converts a row of `events` to an event. Raises `StoreNewerError` for an unknown type or version."""
    run_id, seq, epoch, kind, version, step_id, attempt, data, at = row
    return Event(run_id, seq, epoch, at, _decode_body(run_id, seq, kind, version, data), step_id, attempt)


def _decode_body(run_id: str, seq: int, kind: str, version: int, data: str) -> EventBody:
    body = BODY_TYPES.get(kind) or FEATURE_EVENTS.get(kind)
    if body is None or version > body.v:
        raise StoreNewerError(
            f"event {seq} of run {run_id} is a {kind!r} (v{version}), which this version of Stepgate does not know; "
            "upgrade Stepgate, or install the feature that has written it",
            agent_id="journal",
        )
    try:
        return body.model_validate_json(data)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            return _decode_deep_body(body, run_id, seq, data)
        raise _build_damaged_error(run_id, seq, kind, f"{error.error_count()} fields are invalid") from error


def _decode_deep_body(body: type[EventBody], run_id: str, seq: int, data: str) -> EventBody:
    """Decodes JSON that is nested more deeply than Pydantic's parser allows (200 levels); its writer allows 253."""
    try:
        return body.model_validate(json.loads(data))
    except (json.JSONDecodeError, ValidationError, RecursionError) as error:
        raise _build_damaged_error(run_id, seq, body.type, "it is not the JSON of this event") from error


def _build_damaged_error(run_id: str, seq: int, kind: str, why: str) -> LogDamagedError:
    return LogDamagedError(
        f"event {seq} of run {run_id} ({kind}) cannot be read: {why}; the database is damaged or was changed by "
        "hand: restore it from a backup",
        agent_id="journal",
    )


def _replace_surrogates_in_body(body: EventBody, run_id: str) -> EventBody:
    try:
        mended = type(body).model_validate(_replace_surrogates_in_value(body.model_dump(warnings=False)))
        mended.model_dump_json()
    except (ValueError, RecursionError) as error:  # Pydantic's errors are ValueErrors
        raise TooLargeError(
            f"a value of {body.type} in run {run_id} is nested too deeply to be stored; "
            "keep JSON values below 200 levels",
            agent_id="journal",
        ) from error
    return mended


def _replace_surrogates_in_value(value: object) -> object:
    match value:
        case str():
            return replace_surrogates(value)
        case dict():
            return {
                _replace_surrogates_in_value(key): _replace_surrogates_in_value(item) for key, item in value.items()
            }
        case list() | tuple():
            return [_replace_surrogates_in_value(item) for item in value]
        case _:
            return value

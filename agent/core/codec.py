"""Events as rows and back. One JSON text a body; unknown types are refused clearly, never skipped."""

import json
import re
from dataclasses import replace

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from agent.core.errors import LogDamagedError, StoreNewerError, TooLargeError
from agent.core.events import BODY_TYPES, Event, EventBody

EventRow = tuple[str, int, int, str, int, str | None, int | None, str, float]
"""run_id, seq, epoch, type, v, step_id, attempt, data, at."""

_HALF = re.compile("[\ud800-\udfff]")


def encode(event: Event) -> tuple[Event, EventRow]:
    """An event as a row of `events`, and as it will be read back.

    The two differ from what came in only where text held half a character (a lone surrogate, which JSON's escapes
    allow and UTF-8 does not): it becomes U+FFFD. `TooLargeError` for a value nested deeper than can be written.
    Defaults are written too: they may change from version to version, a log may not."""
    try:
        data = event.body.model_dump_json()
    except PydanticSerializationError:
        event = replace(event, body=_mended(event))
        data = event.body.model_dump_json()
    body = event.body
    return event, (
        event.run_id, event.seq, event.epoch, body.type, body.v, event.step_id, event.attempt, data, event.at,
    )  # fmt: skip


def decode(row: EventRow) -> Event:
    """A row of `events` as an event. `StoreNewerError` for a type or version this Stepgate does not know."""
    run_id, seq, epoch, kind, version, step_id, attempt, data, at = row
    return Event(run_id, seq, epoch, at, _body(run_id, seq, kind, version, data), step_id, attempt)


def whole(text: str) -> str:
    """The text with U+FFFD in place of half characters, so that it can be written as UTF-8."""
    return _HALF.sub("\N{REPLACEMENT CHARACTER}", text)


def storable(text: str) -> str:
    """The text as both databases hold it: `whole`, and with U+FFFD for NUL too, which PostgreSQL refuses."""
    return whole(text).replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _body(run_id: str, seq: int, kind: str, version: int, data: str) -> EventBody:
    body = BODY_TYPES.get(kind)
    if body is None or version > body.v:
        raise StoreNewerError(
            f"event {seq} of run {run_id} is a {kind!r} (v{version}), which this version of Stepgate does not know; "
            "upgrade Stepgate",
            agent_id="journal",
        )
    try:
        return body.model_validate_json(data)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            return _deep_body(body, run_id, seq, data)
        raise _unreadable(run_id, seq, kind, f"{error.error_count()} fields do not fit") from error


def _deep_body(body: type[EventBody], run_id: str, seq: int, data: str) -> EventBody:
    """Pydantic's JSON parser stops at 200 levels where its writer goes on to 253; Python's own reads those."""
    try:
        return body.model_validate(json.loads(data))
    except (json.JSONDecodeError, ValidationError, RecursionError) as error:
        raise _unreadable(run_id, seq, body.type, "it is no JSON of this event") from error


def _unreadable(run_id: str, seq: int, kind: str, why: str) -> LogDamagedError:
    return LogDamagedError(
        f"event {seq} of run {run_id} ({kind}) cannot be read: {why}; the database is damaged or was changed by "
        "hand: restore it from a backup",
        agent_id="journal",
    )


def _mended(event: Event) -> EventBody:
    try:
        mended = type(event.body).model_validate(_whole_value(event.body.model_dump(warnings=False)))
        mended.model_dump_json()
    except (ValueError, RecursionError) as error:  # Pydantic's own are ValueErrors
        raise TooLargeError(
            f"a value of {event.type} in run {event.run_id} is nested too deeply to be stored; "
            "keep JSON values below 200 levels",
            agent_id="journal",
        ) from error
    return mended


def _whole_value(value: object) -> object:
    match value:
        case str():
            return whole(value)
        case dict():
            return {_whole_value(key): _whole_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole_value(item) for item in value]
        case _:
            return value

"""Writes days and times of a call in the form that the tool's description of the input asks for.

Models write `2026-05-19T10:00:00` whatever a tool says. The moment stays the same: nothing is dropped but seconds that
are zero, and a value with a time zone is left as it is.
"""

import re
from datetime import datetime

from pydantic import JsonValue

from agent.core.json_schema import get_properties
from agent.core.models import JsonObject
from agent.core.schema_references import MAX_DEPTH, list_forms, resolve_schema

_FORMAT = re.compile(
    r"(?<![\w%])(?:(?:YYYY|%Y)(?P<a>[-/.])(?:MM|%m)(?P=a)(?:DD|%d)"
    r"|(?:DD|%d)(?P<b>[-/.])(?:MM|%m)(?P=b)(?:YYYY|%Y)"
    r"|(?:MM|%m)(?P<c>[-/.])(?:DD|%d)(?P=c)(?:YYYY|%Y))"
    r"(?P<time>[ T](?:HH|%H|hh):(?:MM|%M|mm)(?P<seconds>:(?:SS|%S|ss))?)?(?![\w%:])"
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")


def format_moments(schema: JsonObject, inputs: JsonObject) -> JsonObject:
    """The inputs with each day or time in the only form that the description of its input names. Others stay."""
    written = _format_value(schema, inputs, schema, 0)
    return written if isinstance(written, dict) else inputs


def _format_value(schema: JsonValue, value: JsonValue, root: JsonObject, depth: int) -> JsonValue:
    """A value in the form of its schema within `root`, whose references and unions are followed."""
    resolved = resolve_schema(schema, root) if depth <= MAX_DEPTH else None
    if resolved is None or not isinstance(value, str | dict | list):
        return value
    forms = list_forms(resolved, root)
    if isinstance(value, dict):
        declared = {name: one for form in reversed(forms) for name, one in get_properties(form).items()}
        return {name: _format_value(declared.get(name), part, root, depth + 1) for name, part in value.items()}
    if isinstance(value, list):
        items = next((form["items"] for form in forms if "items" in form), None)
        return [_format_value(items, part, root, depth + 1) for part in value]
    if not _ISO.fullmatch(value):
        return value
    described = [text for one in (schema, resolved, *forms) if isinstance(text := _get_description(one), str)]
    formats = {_read_format(match) for text in described for match in _FORMAT.finditer(text)}
    return _write(value, *formats) if len(formats) == 1 else value


def _get_description(schema: JsonValue) -> JsonValue:
    return schema.get("description") if isinstance(schema, dict) else None


def _read_format(match: re.Match[str]) -> str:
    """The form in the words of `strftime`."""
    if match["a"]:
        day = f"%Y{match['a']}%m{match['a']}%d"
    else:
        day = f"%d{match['b']}%m{match['b']}%Y" if match["b"] else f"%m{match['c']}%d{match['c']}%Y"
    if not match["time"]:
        return day
    return f"{day}{match['time'][0]}%H:%M{':%S' if match['seconds'] else ''}"


def _write(value: str, form: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
        written = moment.strftime(form)
        is_whole = datetime.strptime(written, form) == moment  # noqa: DTZ007 - neither has a zone
    except ValueError:
        return value
    has_time = ":" in value
    # A day alone says nothing of a time.
    return written if is_whole and (has_time or "%H" not in form) else value

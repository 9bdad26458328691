"""Reads rows from JSON: a list in a file, or one object a line."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from agent.core.errors import BadRequestError
from agent.core.models import JsonObject
from gateway.features.documents.engine.ingest.corpus import LINE_CHARS, Faults, Progress
from gateway.features.documents.engine.ingest.corpus_lines import (
    Lines,
    Row,
    build_unreadable_error,
    decode_cell,
    open_text,
)

JSON_BYTES = 64_000_000
"""The largest JSON file, which is read into memory; JSON Lines may have any size."""
PROGRESS_ROWS = 2_000
"""Rows between two progress reports."""


def iter_json_lines(path: Path, encoding: str, faults: Faults, progress: Progress) -> Iterator[Row]:
    """Yields the objects of JSON Lines; an invalid line is a fault."""
    try:
        with path.open("rb") as raw, open_text(raw, encoding, newline="\n") as file:
            size = path.stat().st_size
            lines = Lines(file, lambda line: faults.add(path.name, line, f"longer than {LINE_CHARS:,} characters"))
            for text in lines:
                number = lines.first
                lines.begin_record()
                if text.strip():
                    row = _parse_row(text.lstrip("\ufeff"))
                    if isinstance(row, dict):
                        yield Row(number, row)
                    else:
                        faults.add(path.name, number, row)
                if number % PROGRESS_ROWS == 0:
                    progress(path.name, raw.tell(), size)
            progress(path.name, size, size)
    except OSError as error:
        raise build_unreadable_error(path, error) from error


def _parse_row(text: str) -> JsonObject | str:
    """The object of a line, or why it is invalid."""
    try:
        parsed = json.loads(decode_cell(text))
    except ValueError as error:
        return f"not valid JSON: {error}"
    except RecursionError:
        return "nested too deeply"
    return parsed if isinstance(parsed, dict) else "no JSON object"


def iter_json_rows(path: Path, encoding: str, where: str, faults: Faults) -> Iterator[Row]:
    """Yields the rows of a JSON file: its top-level list, or the list at `where`."""
    try:
        size = path.stat().st_size
        if size > JSON_BYTES:
            raise BadRequestError(
                f"{path}: {size:,} bytes; JSON of more than {JSON_BYTES:,} must be in lines (.jsonl), one object each",
                agent_id="corpus",
            )
        data: JsonValue = json.loads(path.read_bytes().decode(encoding, "replace").lstrip("\ufeff"))
    except OSError as error:
        raise build_unreadable_error(path, error) from error
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"{path}: not valid JSON: {str(error)[:200]}", agent_id="corpus") from error
    for part in where.split(".") if where else ():
        data = data.get(part) if isinstance(data, dict) else None
    if not isinstance(data, list):
        lists = [name for name, value in data.items() if isinstance(value, list)] if isinstance(data, dict) else []
        hint = f"; the mapping's `rows` may name one of its lists: {', '.join(lists)}" if lists else ""
        raise BadRequestError(
            f"{path}: holds no list of rows{f' at {where!r}' if where else ''}{hint}", agent_id="corpus"
        )
    for number, row in enumerate(data, start=1):
        if isinstance(row, dict):
            yield Row(number, row)
        else:
            faults.add(path.name, number, "no JSON object")

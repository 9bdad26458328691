"""Arguments that the commands of runs share: a run by the beginning of its id, and values as JSON."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import JsonValue

from agent.core.errors import BadRequestError, NotFoundError

if TYPE_CHECKING:
    from agent.storage.journal import Journal, RunRow

RUN_ID_CHARS = len("run_") + 32
PAGE_ROWS = 200
"""Rows read at a time when a run is searched by the beginning of its id."""

Owner = Annotated[str | None, typer.Option(help="Only runs of this owner; default all owners.")]
RunId = Annotated[str, typer.Argument(help="The run's id, or an unambiguous beginning of it.")]


async def find_run(journal: "Journal", given: str, owner: str | None) -> "RunRow":
    """The run with this id, or the only one whose id starts with it (with or without `run_`), of any owner."""
    if len(given) >= RUN_ID_CHARS:
        return await journal.get_run(given, owner=owner)
    start = given if given.startswith("run_") else f"run_{given}"
    rows: list[RunRow] = []
    before = None
    while page := await journal.list_runs(owner=owner, limit=PAGE_ROWS, before=before):
        rows += [row for row in page if row.run_id.startswith(start)]
        before = page[-1].run_id
    if not rows:
        raise NotFoundError(f"there is no run {given!r}")
    if len(rows) > 1:
        some = ", ".join(row.run_id for row in rows[:3]) + (" ..." if len(rows) > 3 else "")
        raise BadRequestError(f"{len(rows)} runs start with {given!r}: {some}; give more characters of the id")
    return rows[0]


def parse_value(text: str) -> JsonValue:
    """The value of a text that is JSON, else the text."""
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def parse_argument(text: str) -> tuple[str, JsonValue]:
    """The name and the value of `NAME=VALUE`. Raises `typer.BadParameter`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"write NAME=VALUE, not {text!r}", param_hint="--arg")
    return name, parse_value(value)

"""`stepgate audit list`."""

import json
import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent.core.errors import BadRequestError
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import Database, database_command, format_utc_time

app = typer.Typer(help="The audit record: who did what, when.", cls=HelpfulGroup)

_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}


@app.command("list")
@database_command
async def list_audit(
    database: Database,
    since: Annotated[
        str | None,
        typer.Option(help="Since a day or time (2026-11-20, 2026-11-20T08:00Z), or a time span: 30m, 24h, 7d."),
    ] = None,
    action: Annotated[str, typer.Option(help="Only this action (key.revoke), or all of a kind (key).")] = "",
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON, one object a line.")] = False,
) -> None:
    """List recorded actions, newest first."""
    at = 0.0 if since is None else parse_time(since, time.time())
    entries = await database.audit.list_entries(since=at, action=action, limit=limit)
    if as_json:
        for entry in entries:
            print(json.dumps(asdict(entry) | {"at": format_utc_time(entry.at)}))
        return
    if not entries:
        print("No records" + (" match." if since or action else " yet."))
        return
    rows = []
    for entry in entries:
        did = entry.action if entry.outcome == "done" else f"{entry.action} ({entry.outcome})"
        cells = (format_utc_time(entry.at), entry.principal, did, entry.target, entry.owner, json.dumps(entry.detail))
        rows.append([text if text.isprintable() else ascii(text)[1:-1] for text in cells])
    lazy_rich.print_rows(("when", "who", "action", "what", "whose", "detail"), rows)


def parse_time(text: str, now: float) -> float:
    """Parses a day, a time (UTC by default) or a span before `now`, to UTC seconds. Raises `BadRequestError`."""
    span = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if span is not None:
        return now - int(span[1]) * _UNITS[span[2]]
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise BadRequestError(f"--since: {text!r} is not a time; write 2026-11-20, 2026-11-20T08:00Z or 24h") from error
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()

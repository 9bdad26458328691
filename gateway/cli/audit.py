"""`stepgate audit list`."""

import asyncio
import json
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import BadRequestError
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.session import settings_of_command

if TYPE_CHECKING:
    from agent.core.audit import AuditEntry
    from agent.core.config import Settings

app = typer.Typer(help="The audit record: who did what, when.", cls=Group)

_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}


@app.command("list")
def list_audit(
    since: Annotated[
        str | None,
        typer.Option(help="Since a day or time (2026-11-20, 2026-11-20T08:00Z), or so long ago: 30m, 24h, 7d."),
    ] = None,
    action: Annotated[str, typer.Option(help="Only this action (key.revoke), or all of a kind (key).")] = "",
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON, one object a line.")] = False,
) -> None:
    """List what was done, newest first."""
    at = 0.0 if since is None else moment(since, time.time())
    entries = asyncio.run(_read(settings_of_command(), at, action, limit))
    if as_json:
        for entry in entries:
            print(json.dumps(_row(entry)))
        return
    if not entries:
        print("Nothing is recorded" + (" of that." if since or action else " yet."))
        return
    table = screen.Table("when", "who", "action", "what", "whose", "detail", box=None, pad_edge=False)
    for entry in entries:
        did = entry.action if entry.outcome == "done" else f"{entry.action} ({entry.outcome})"
        told = (_when(entry.at), entry.principal, did, entry.target, entry.owner, json.dumps(entry.detail))
        table.add_row(*(screen.escape(ascii(text)[1:-1] if not text.isprintable() else text) for text in told))
    screen.print_table(table)


def moment(text: str, now: float) -> float:
    """UTC seconds of a day, a time (UTC unless it says otherwise), or a span before `now`. `BadRequestError`."""
    span = re.fullmatch(r"(\d{1,6})([mhd])", text.strip())
    if span is not None:
        return now - int(span[1]) * _UNITS[span[2]]
    try:
        read = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise BadRequestError(f"--since: {text!r} is no time; write 2026-11-20, 2026-11-20T08:00Z or 24h") from error
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


async def _read(settings: "Settings", since: float, action: str, limit: int) -> "list[AuditEntry]":
    from agent.core.audit import StoredAudit  # noqa: PLC0415 - the store; `--help` needs none
    from gateway.stores import open_store, statements_of  # noqa: PLC0415

    store = await open_store(settings)
    try:
        return await StoredAudit(statements_of(store), time.time).list(since=since, action=action, limit=limit)
    finally:
        await store.close()


def _row(entry: "AuditEntry") -> dict[str, object]:
    return {
        "id": entry.id,
        "at": _when(entry.at),
        "owner": entry.owner,
        "principal": entry.principal,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "detail": entry.detail,
    }


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")

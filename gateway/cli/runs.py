"""`stepgate runs list|show|resume|approve|reject`."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.events import RunCreated
from agent.core.models import AgentResponse, RunStatus
from gateway.cli.groups import Group
from gateway.cli.progress import follow
from gateway.cli.session import with_stepgate
from gateway.cli.tables import print_table

if TYPE_CHECKING:
    from agent.core.journal import RunRow
    from agent.core.service import Decision
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Runs: what was asked, what happened, what is unfinished.", cls=Group)

ID_LENGTH = len("run_") + 32
PAGE = 200
"""Rows read at a time when a run is looked for by the beginning of its id."""

RunId = Annotated[str, typer.Argument(help="The run's id, or a beginning of it that no other has.")]


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20,
    status: Annotated[str | None, typer.Option(help="Only runs of this status.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the newest runs."""
    wanted = _status(status)

    async def work(stepgate: "Stepgate") -> None:
        rows = await stepgate.service.list_runs(limit=limit, status=wanted)
        titles = {row.run_id: await _title(stepgate, row) for row in rows}
        if as_json:
            print(json.dumps([_summary(row, titles[row.run_id]) for row in rows], indent=2, ensure_ascii=False))
        elif rows:
            print_table(_table(rows, titles))
        else:
            print("No runs yet." if status is None else f"No {status} runs.")

    with_stepgate(work)


@app.command()
def show(
    run_id: RunId,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Show a run: its steps and its answer so far."""

    async def work(stepgate: "Stepgate") -> None:
        from agent.core.response import respond  # noqa: PLC0415 - loaded with the engine

        row = await _run(stepgate, run_id)
        response = respond(await stepgate.service.read(row.run_id))
        if as_json:
            print(response.model_dump_json(indent=2))
            return
        print(f"{row.run_id}  {row.status}  room {row.room}\n{await _title(stepgate, row)}\n")
        print_table(_steps(response))
        print(f"\n{response.response}")

    with_stepgate(work)


@app.command()
def resume(run_id: RunId) -> None:
    """Go on with an unfinished run in this process."""

    async def work(stepgate: "Stepgate") -> None:
        row = await _run(stepgate, run_id)
        await stepgate.service.resume(row.run_id)
        print((await follow(stepgate.service, row.run_id)).response)

    with_stepgate(work, foreign="started")


@app.command()
def approve(run_id: RunId) -> None:
    """Allow what a waiting run asks for, and follow it to its answer."""
    _decide(run_id, "approve")


@app.command()
def reject(
    run_id: RunId, reason: Annotated[str, typer.Option(help="Why; the run's log and the agent are told.")] = ""
) -> None:
    """Refuse what a waiting run asks for."""
    _decide(run_id, "reject", reason)


def _decide(run_id: str, decision: "Decision", reason: str = "") -> None:
    async def work(stepgate: "Stepgate") -> None:
        row = await _run(stepgate, run_id)
        heard = await stepgate.service.decide(row.run_id, decision, reason=reason)
        print((await follow(stepgate.service, row.run_id, heard=heard)).response)

    with_stepgate(work, foreign="started")


def _status(name: str | None) -> RunStatus | None:
    known: tuple[RunStatus, ...] = ("queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled")
    wanted = next((status for status in known if status == name), None)
    if name is not None and wanted is None:
        raise typer.BadParameter(f"no such status; known: {', '.join(known)}", param_hint="--status")
    return wanted


async def _run(stepgate: "Stepgate", given: str) -> "RunRow":
    """The run of this id, or the only one whose id begins so (with or without `run_`)."""
    if len(given) >= ID_LENGTH:
        return await stepgate.service.get(given)
    start = given if given.startswith("run_") else f"run_{given}"
    found: list[RunRow] = []
    before = None
    while page := await stepgate.service.list_runs(limit=PAGE, before=before):
        found += [row for row in page if row.run_id.startswith(start)]
        before = page[-1].run_id
    if not found:
        raise NotFoundError(f"there is no run {given!r}")
    if len(found) > 1:
        some = ", ".join(row.run_id for row in found[:3]) + (" ..." if len(found) > 3 else "")
        raise BadRequestError(f"{len(found)} runs begin with {given!r}: {some}; give more of the id")
    return found[0]


async def _title(stepgate: "Stepgate", row: "RunRow") -> str:
    """What was asked, in one line; the tools of a run that asked for nothing but tool calls."""
    if row.title:
        return row.title
    created = next((e.body for e in await stepgate.service.read(row.run_id) if isinstance(e.body, RunCreated)), None)
    calls = created.request.metadata.get("tool_calls") if created else None
    named = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    names = [call.get("tool") or call.get("name") for call in named]
    return f"call {', '.join(map(str, names))}" if names else ""


def _table(rows: "list[RunRow]", titles: dict[str, str]) -> Table:
    """Whole ids, and as much of the requests as there is room for; the rooms where they differ."""
    rooms = len({row.room for row in rows}) > 1
    table = Table(box=None, pad_edge=False, expand=True)
    for name in ("run", "status", *(("room",) if rooms else ()), "when"):
        table.add_column(name, no_wrap=True)
    table.add_column("request", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        when = datetime.fromtimestamp(row.created_at, UTC).astimezone().strftime("%m-%d %H:%M")
        room = (escape(row.room),) if rooms else ()
        table.add_row(row.run_id, row.status, *room, when, escape(titles[row.run_id]))
    return table


def _summary(row: "RunRow", title: str) -> dict[str, object]:
    """A run as `GET /v1/runs` shows it."""
    return {
        "id": row.run_id,
        "status": row.status,
        "room": row.room,
        "title": title,
        "conversation_id": row.conversation_id,
        "created_at": datetime.fromtimestamp(row.created_at, UTC).isoformat(),
        "updated_at": datetime.fromtimestamp(row.updated_at, UTC).isoformat(),
        "last_seq": row.last_seq,
    }


def _steps(response: AgentResponse) -> Table:
    table = Table("step", "type", "title", "status", "seconds", box=None, pad_edge=False)
    for step in response.steps:
        seconds = "" if step.duration is None else f"{step.duration:.2f}"
        attempt = f".{step.attempt}" if step.attempt and step.attempt > 1 else ""
        table.add_row(f"{step.step_id or ''}{attempt}", step.type, escape(step.title), step.status, seconds)
    return table

"""`stepgate runs list|show|resume|approve|reject`, for the operator.

Everybody's runs are looked up in the journal; what is then done with one goes through its owner's `AgentService`."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import BadRequestError, NotFoundError
from agent.core.events import RunCreated
from agent.core.models import LOCAL_OWNER, AgentResponse, RunStatus
from agent.core.principal import Principal
from gateway.cli import screen
from gateway.cli.groups import Group
from gateway.cli.indexing import indexed
from gateway.cli.progress import follow
from gateway.cli.session import operator, with_stepgate

if TYPE_CHECKING:
    from agent.core.journal import RunRow
    from agent.core.service import AgentService, Decision
    from agent.execution.run import Run
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Runs: what was asked, what happened, what is unfinished.", cls=Group)

ID_LENGTH = len("run_") + 32
PAGE = 200
"""Rows read at a time when a run is looked for by the beginning of its id."""

Owner = Annotated[str | None, typer.Option(help="Only runs of this owner; everybody's without it.")]
RunId = Annotated[str, typer.Argument(help="The run's id, or a beginning of it that no other has.")]


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20,
    status: Annotated[str | None, typer.Option(help="Only runs of this status.")] = None,
    owner: Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the newest runs, of all owners."""
    wanted = _status(status)

    async def work(stepgate: "Stepgate") -> None:
        rows = await stepgate.journal.list_runs(owner=owner, limit=limit, status=wanted)
        titles = {row.run_id: await _title(stepgate, row) for row in rows}
        if as_json:
            print(json.dumps([_summary(row, titles[row.run_id]) for row in rows], indent=2, ensure_ascii=False))
        elif rows:
            screen.print_table(_table(rows, titles))
        else:
            print("No runs yet." if status is None else f"No {status} runs.")

    with_stepgate(work)


@app.command()
def show(
    run_id: RunId,
    owner: Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Show a run: its steps and its answer so far."""

    async def work(stepgate: "Stepgate") -> None:
        from agent.core.response import respond  # noqa: PLC0415 - loaded with the engine

        row = await _run(stepgate, run_id, owner)
        response = respond(await stepgate.service.read(row.run_id, owner=row.owner))
        if as_json:
            print(response.model_dump_json(indent=2))
            return
        print(f"{row.run_id}  {row.status}  room {row.room}  owner {row.owner}\n{await _title(stepgate, row)}\n")
        screen.print_table(_steps(response))
        print(f"\n{response.response}")

    with_stepgate(work)


@app.command()
def resume(run_id: RunId, owner: Owner = None) -> None:
    """Go on with an unfinished run in this process."""

    async def work(stepgate: "Stepgate") -> None:
        row = await _run(stepgate, run_id, owner)
        service = _of_owner(stepgate, row)
        await service.resume(row.run_id)
        print((await follow(service, row.run_id)).response)

    with_stepgate(work, foreign="started")


@app.command()
def approve(run_id: RunId, owner: Owner = None) -> None:
    """Allow what a waiting run asks for, and follow it to its answer."""
    _decide(run_id, "approve", owner)


@app.command()
def reject(
    run_id: RunId,
    reason: Annotated[str, typer.Option(help="Why; the run's log and the agent are told.")] = "",
    owner: Owner = None,
) -> None:
    """Refuse what a waiting run asks for."""
    _decide(run_id, "reject", owner, reason)


def _decide(run_id: str, decision: "Decision", owner: str | None, reason: str = "") -> None:
    async def work(stepgate: "Stepgate") -> int:
        row = await _run(stepgate, run_id, owner)
        service = _of_owner(stepgate, row)
        heard = await service.decide(row.run_id, decision, by=operator(), reason=reason)
        print((await follow(service, row.run_id, heard=heard)).response)
        return 0 if await indexed(stepgate, row.conversation_id or row.run_id, owner=row.owner) else 1

    raise SystemExit(with_stepgate(work, foreign="started"))


def _status(name: str | None) -> RunStatus | None:
    known: tuple[RunStatus, ...] = ("queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled")
    wanted = next((status for status in known if status == name), None)
    if name is not None and wanted is None:
        raise typer.BadParameter(f"no such status; known: {', '.join(known)}", param_hint="--status")
    return wanted


def _of_owner(stepgate: "Stepgate", row: "RunRow") -> "AgentService[Run]":
    """The service as the run's owner has it."""
    return stepgate.service.of(Principal(row.owner))


async def _run(stepgate: "Stepgate", given: str, owner: str | None) -> "RunRow":
    """The run of this id, or the only one whose id begins so (with or without `run_`), whosever it is."""
    if len(given) >= ID_LENGTH:
        return await stepgate.journal.get(given, owner=owner)
    start = given if given.startswith("run_") else f"run_{given}"
    found: list[RunRow] = []
    before = None
    while page := await stepgate.journal.list_runs(owner=owner, limit=PAGE, before=before):
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
    created = next(
        (e.body for e in await stepgate.service.read(row.run_id, owner=row.owner) if isinstance(e.body, RunCreated)),
        None,
    )
    calls = created.request.metadata.get("tool_calls") if created else None
    named = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    names = [call.get("tool") or call.get("name") for call in named]
    return f"call {', '.join(map(str, names))}" if names else ""


def _table(rows: "list[RunRow]", titles: dict[str, str]) -> "screen.Table":
    """Whole ids, and as much of the requests as there is room for; the rooms and the owners where they differ."""
    rooms = len({row.room for row in rows}) > 1
    owners = any(row.owner != LOCAL_OWNER for row in rows)
    table = screen.Table(box=None, pad_edge=False, expand=True)
    for name in ("run", "status", *(("owner",) if owners else ()), *(("room",) if rooms else ()), "when"):
        table.add_column(name, no_wrap=True)
    table.add_column("request", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        when = datetime.fromtimestamp(row.created_at, UTC).astimezone().strftime("%m-%d %H:%M")
        room = (screen.escape(row.room),) if rooms else ()
        owner = (screen.escape(row.owner),) if owners else ()
        table.add_row(row.run_id, row.status, *owner, *room, when, screen.escape(titles[row.run_id]))
    return table


def _summary(row: "RunRow", title: str) -> dict[str, object]:
    """A run as `GET /v1/runs` shows it, and whose it is."""
    return {
        "id": row.run_id,
        "status": row.status,
        "owner": row.owner,
        "room": row.room,
        "title": title,
        "conversation_id": row.conversation_id,
        "created_at": datetime.fromtimestamp(row.created_at, UTC).isoformat(),
        "updated_at": datetime.fromtimestamp(row.updated_at, UTC).isoformat(),
        "last_seq": row.last_seq,
    }


def _steps(response: AgentResponse) -> "screen.Table":
    table = screen.Table("step", "type", "title", "status", "seconds", box=None, pad_edge=False)
    for step in response.steps:
        seconds = "" if step.duration is None else f"{step.duration:.2f}"
        attempt = f".{step.attempt}" if step.attempt and step.attempt > 1 else ""
        table.add_row(f"{step.step_id or ''}{attempt}", step.type, screen.escape(step.title), step.status, seconds)
    return table

"""`stepgate runs list|show|resume|cancel|approve|reject|fork`, for the operator; features add theirs.

Runs of all owners are listed from the journal; changes to a run are made on behalf of its owner.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from agent.core.events import RunCreated
from agent.core.models import ENDED_STATUSES, LOCAL_OWNER, AgentResponse, JsonObject, RunStatus
from agent.core.principal import Principal
from gateway.cli import lazy_rich
from gateway.cli.after_answer import finish_after_answer
from gateway.cli.groups import LazyGroup
from gateway.cli.progress import follow_run
from gateway.cli.run_arguments import Owner, RunId, find_run, parse_argument, parse_value
from gateway.cli.session import (
    Database,
    database_command,
    gateway_command,
    get_operator_name,
    print_json,
    run_with_gateway,
)
from gateway.cli.text_files import read_text_file

if TYPE_CHECKING:
    from agent.runs.forks import RepeatedEffects
    from agent.runs.service import Decision
    from agent.storage.journal import Journal, RunRow
    from gateway.bootstrap import Stepgate

app = typer.Typer(name="runs", help="Runs: list, show, resume, cancel, approve, reject, fork, save.", cls=LazyGroup)

Approvals = Annotated[
    list[str] | None,
    typer.Option(help="Decide only on the approval with this id (repeatable); default all that the run waits for."),
]


@app.command("list")
@database_command
async def list_runs(
    database: Database,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 20,
    status: Annotated[str | None, typer.Option(help="Only runs of this status.")] = None,
    owner: Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """List the newest runs of all owners."""
    journal = database.store.journal
    rows = await journal.list_runs(owner=owner, limit=limit, status=_parse_status(status))
    titles = {row.run_id: await _build_title(journal, row) for row in rows}
    if as_json:
        print_json([_to_json_row(row, titles[row.run_id]) for row in rows])
    elif rows:
        lazy_rich.print_table(_build_run_table(rows, titles))
    else:
        print("No runs yet; start one with `stepgate ask`." if status is None else f"No {status} runs.")


@app.command()
@database_command
async def show(
    database: Database,
    run_id: RunId,
    owner: Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Show a run: its steps and its answer so far."""
    from agent.runs.response import build_response  # noqa: PLC0415 - not needed for `--help`

    journal = database.store.journal
    row = await find_run(journal, run_id, owner)
    response = build_response(await journal.read_events(row.run_id))
    if as_json:
        print(response.model_dump_json(indent=2))
        return
    print(f"{row.run_id}  {row.status}  room {row.room}  owner {row.owner}\n{await _build_title(journal, row)}\n")
    lazy_rich.print_table(_build_step_table(response))
    print(f"\n{response.response}")


@app.command()
@gateway_command(foreign="started")
async def resume(stepgate: "Stepgate", run_id: RunId, owner: Owner = None) -> None:
    """Continue an unfinished run in this process."""
    from agent.runs.service import AcceptedRun  # noqa: PLC0415 - loaded with the engine

    row = await find_run(stepgate.journal, run_id, owner)
    await stepgate.service.resume_run(row.run_id, owner=row.owner)
    print((await follow_run(stepgate.service, AcceptedRun(row.run_id, row.owner))).response)


@app.command()
@gateway_command()
async def cancel(stepgate: "Stepgate", run_id: RunId, owner: Owner = None) -> None:
    """Cancel a run, including one that another process executes."""
    row = await find_run(stepgate.journal, run_id, owner)
    await stepgate.service.cancel_run(row.run_id, owner=row.owner, reason=f"cancelled by {get_operator_name()}")
    status = (await stepgate.service.get_run(row.run_id, owner=row.owner)).status
    print(f"{row.run_id}  {status if status in ENDED_STATUSES else 'is being cancelled'}")


@app.command()
def approve(run_id: RunId, approval: Approvals = None, owner: Owner = None) -> None:
    """Approve what a waiting run asks for, and follow it to its answer."""
    _submit_decision(run_id, "approve", owner, approvals=approval)


@app.command()
def reject(
    run_id: RunId,
    reason: Annotated[str, typer.Option(help="The reason, for the run's log and the agent.")] = "",
    approval: Approvals = None,
    owner: Owner = None,
) -> None:
    """Reject what a waiting run asks for."""
    _submit_decision(run_id, "reject", owner, reason, approvals=approval)


@app.command()
def fork(
    run_id: RunId,
    step: Annotated[str | None, typer.Option(help="The step to begin from, such as s2.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(help="Set an argument of the step: NAME=VALUE, as JSON or text.")
    ] = None,
    output: Annotated[str | None, typer.Option(help="The result of the step, as JSON or text.")] = None,
    plan: Annotated[Path | None, typer.Option(help="A file with the edited plan as JSON.", dir_okay=False)] = None,
    effects: Annotated[str, typer.Option(help="refuse | keep | ask: steps that changed something already.")] = "refuse",
    owner: Owner = None,
) -> None:
    """Start a new run from a step of an ended one, and follow it to its answer."""
    modes: tuple[str, ...] = ("refuse", "keep", "ask")
    if effects not in modes:
        raise typer.BadParameter(f"choose one of {', '.join(modes)}", param_hint="--effects")
    outputs = {step: parse_value(output)} if output is not None and step is not None else None
    if output is not None and step is None:
        raise typer.BadParameter("name the --step that the output belongs to", param_hint="--output")
    edited = _read_plan(plan) if plan is not None else None
    args = dict(map(parse_argument, arg)) if arg else None

    async def work(stepgate: "Stepgate") -> None:
        from agent.runs.forks import ForkRequest  # noqa: PLC0415 - loaded with the engine

        row = await find_run(stepgate.journal, run_id, owner)
        request = ForkRequest(row.run_id, step, edited, args, outputs, cast("RepeatedEffects", effects))
        principal = Principal(row.owner, display_name=get_operator_name(), is_operator=True)
        accepted = await stepgate.intake.accept(principal, request)
        print(accepted.run_id, file=sys.stderr)
        print((await follow_run(stepgate.service, accepted)).response)

    run_with_gateway(work, foreign="started")


def _read_plan(path: Path) -> JsonObject:
    try:
        plan = json.loads(read_text_file(path, "--plan"))
    except ValueError as error:
        raise typer.BadParameter(f"{path} cannot be read as JSON: {error}", param_hint="--plan") from error
    if not isinstance(plan, dict):
        raise typer.BadParameter(f"{path} holds no JSON object", param_hint="--plan")
    return plan


def _submit_decision(
    run_id: str, decision: "Decision", owner: str | None, reason: str = "", approvals: list[str] | None = None
) -> None:
    async def work(stepgate: "Stepgate") -> int:
        row = await find_run(stepgate.journal, run_id, owner)
        principal = Principal(row.owner, display_name=get_operator_name(), is_operator=True)
        decided = await stepgate.service.submit_decision(
            row.run_id, decision, principal=principal, reason=reason, approvals=approvals or ()
        )
        print((await follow_run(stepgate.service, decided)).response)
        return 0 if await finish_after_answer(stepgate, row.conversation_id or row.run_id, owner=row.owner) else 1

    raise SystemExit(run_with_gateway(work, foreign="started"))


def _parse_status(name: str | None) -> RunStatus | None:
    statuses: tuple[RunStatus, ...] = get_args(RunStatus)
    wanted = next((status for status in statuses if status == name), None)
    if name is not None and wanted is None:
        raise typer.BadParameter(f"no such status; known: {', '.join(statuses)}", param_hint="--status")
    return wanted


async def _build_title(journal: "Journal", row: "RunRow") -> str:
    """The request in one line; for a run of explicit tool calls, their names."""
    if row.title:
        return row.title
    events = await journal.read_events(row.run_id)
    created = next((event.body for event in events if isinstance(event.body, RunCreated)), None)
    calls = created.request.metadata.get("tool_calls") if created else None
    named = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    names = [call.get("tool") or call.get("name") for call in named]
    return f"call {', '.join(map(str, names))}" if names else ""


def _build_run_table(rows: "list[RunRow]", titles: dict[str, str]) -> "lazy_rich.Table":
    """The table: full ids, shortened requests; rooms and owners only if they differ."""
    rooms = len({row.room for row in rows}) > 1
    owners = any(row.owner != LOCAL_OWNER for row in rows)
    table = lazy_rich.Table(box=None, pad_edge=False, expand=True)
    for name in ("run", "status", *(("owner",) if owners else ()), *(("room",) if rooms else ()), "when"):
        table.add_column(name, no_wrap=True)
    table.add_column("request", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in rows:
        when = datetime.fromtimestamp(row.created_at, UTC).astimezone().strftime("%m-%d %H:%M")
        room = (lazy_rich.escape(row.room),) if rooms else ()
        owner = (lazy_rich.escape(row.owner),) if owners else ()
        table.add_row(row.run_id, row.status, *owner, *room, when, lazy_rich.escape(titles[row.run_id]))
    return table


def _to_json_row(row: "RunRow", title: str) -> dict[str, object]:
    """A run as `GET /v1/runs` shows it, with its owner."""
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


def _build_step_table(response: AgentResponse) -> "lazy_rich.Table":
    table = lazy_rich.Table("step", "type", "title", "status", "seconds", box=None, pad_edge=False)
    for step in response.steps:
        seconds = "" if step.duration is None else f"{step.duration:.2f}"
        attempt = f".{step.attempt}" if step.attempt and step.attempt > 1 else ""
        table.add_row(f"{step.step_id or ''}{attempt}", step.type, lazy_rich.escape(step.title), step.status, seconds)
    return table

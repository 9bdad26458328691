"""`stepgate runs list|show|resume`."""

from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agent.core.models import AgentResponse, RunStatus
from agent.core.trace import respond
from gateway.bootstrap import Stepgate
from gateway.cli.progress import Progress
from gateway.cli.session import with_stepgate

app = typer.Typer(help="Runs: what was asked, what happened, what is unfinished.", no_args_is_help=True)


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 20,
    status: Annotated[str | None, typer.Option(help="Only runs of this status.")] = None,
) -> None:
    """List the newest runs."""
    wanted: RunStatus | None = None
    if status is not None:
        known: tuple[RunStatus, ...] = (
            "queued",
            "running",
            "awaiting_approval",
            "succeeded",
            "failed",
            "cancelled",
        )
        wanted = next((name for name in known if name == status), None)
        if wanted is None:
            raise typer.BadParameter(f"no such status; known: {', '.join(known)}", param_hint="--status")

    async def work(stepgate: Stepgate) -> None:
        rows = await stepgate.service.list_runs(limit=limit, status=wanted)
        table = Table("run", "status", "room", "when", "request", box=None)
        for row in rows:
            when = datetime.fromtimestamp(row.created_at).astimezone().strftime("%Y-%m-%d %H:%M")
            table.add_row(row.run_id, row.status, row.room, when, row.title.replace("[", r"\["))
        Console().print(table if rows else "No runs yet.")

    with_stepgate(work)


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole response as JSON.")] = False,
) -> None:
    """Show a run: its steps and its answer so far."""

    async def work(stepgate: Stepgate) -> None:
        row = await stepgate.service.get(run_id)
        events = await stepgate.service.read(run_id)
        response = respond(events)
        if as_json:
            print(response.model_dump_json(indent=2))
            return
        print(f"{row.run_id}  {row.status}  room {row.room}\n{row.title}\n")
        _print_steps(response)
        print(f"\n{response.response}")

    with_stepgate(work)


@app.command()
def resume(run_id: Annotated[str, typer.Argument(help="The run's id.")]) -> None:
    """Go on with an unfinished run in this process."""

    async def work(stepgate: Stepgate) -> None:
        await stepgate.service.resume(run_id)
        with Progress(Console(stderr=True)) as progress:
            async for event in stepgate.service.events(run_id):
                progress.show(event)
        print((await stepgate.service.response(run_id)).response)

    with_stepgate(work)


def _print_steps(response: AgentResponse) -> None:
    table = Table("step", "type", "title", "status", "seconds", box=None)
    for step in response.steps:
        seconds = "" if step.duration is None else f"{step.duration:.2f}"
        attempt = f".{step.attempt}" if step.attempt and step.attempt > 1 else ""
        table.add_row(f"{step.step_id or ''}{attempt}", step.type, step.title.replace("[", r"\["), step.status, seconds)
    Console().print(table)

"""`stepgate queue`: lanes, workers and dead letters of the queue."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.core.errors import ConfigError
from gateway.cli import lazy_rich
from gateway.cli.session import Database, get_operator_name, run_with_database

if TYPE_CHECKING:
    from gateway.features.fleet.engine.queue_state import QueueDepth, QueueState, QueueWorker

T = TypeVar("T")
app = typer.Typer(help="Show the queue of runs and ingestion: lanes, workers, dead letters.", no_args_is_help=False)


@app.callback(invoke_without_command=True)
def queue(context: typer.Context) -> None:
    """Show how many jobs wait in each lane, and who takes them."""
    if context.invoked_subcommand is not None:
        return

    async def read(state: "QueueState") -> "tuple[list[QueueDepth], list[QueueWorker], list[str]]":
        from gateway.features.fleet.engine.queue_state import find_unserved  # noqa: PLC0415 - see `_run`

        depths, workers = await state.list_depths(), await state.list_workers()
        return depths, workers, find_unserved(depths, workers)

    depths, workers, unserved = _read_state(read)
    lazy_rich.print_rows(
        ("lane", "queue", "waiting", "running", "failed", "oldest s"),
        [
            (one.lane, one.queue, f"{one.waiting:,}", f"{one.running:,}", f"{one.failed:,}", f"{one.oldest_s:,.0f}")
            for one in depths
        ],
        empty="No job waits or runs.",
    )
    print()
    lazy_rich.print_rows(
        ("worker", "queue", "running", "slots", "since", "silent s"),
        [
            (one.name, one.queue, str(one.running), str(one.slots), _format_time(one.started), f"{one.silent_s:.0f}")
            for one in workers
        ],
        empty="No process takes jobs: start `stepgate worker`.",
    )
    for name in unserved:
        print(
            f"\nNo worker takes {name}: none has the rooms, file roots, MCP servers and skills of the "
            "gateway that accepted these runs. Others adopt them after a minute."
        )
    if dead := sum(one.failed for one in depths):
        print(f"\n{dead} dead letters: `stepgate queue dead`")


@app.command("dead")
def list_dead(limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50) -> None:
    """List the jobs that were given up, newest first."""
    letters = _read_state(lambda state: state.list_dead_letters(limit))
    lazy_rich.print_rows(
        ("id", "queue", "kind", "arguments", "attempts", "at", "reason"),
        [
            (
                str(one.id),
                one.queue,
                one.kind,
                str(one.arguments)[:80],
                str(one.attempts),
                _format_time(one.at),
                one.reason,
            )
            for one in letters
        ],
        empty="There are no dead letters.",
    )


@app.command("requeue")
def requeue(job_id: Annotated[int, typer.Argument(help="Id of a dead letter.")]) -> None:
    """Retry a dead letter."""
    _read_state(lambda state: state.requeue(job_id, by=get_operator_name()))
    print(f"Job {job_id} is queued again.")


@app.command("discard")
def discard(job_id: Annotated[int, typer.Argument(help="Id of a dead letter.")]) -> None:
    """Delete a dead letter. Its run, if it has one, stays."""
    _read_state(lambda state: state.discard(job_id, by=get_operator_name()))
    print(f"Job {job_id} is deleted.")


def _read_state(work: "Callable[[QueueState], Awaitable[T]]") -> T:
    return run_with_database(lambda database: _run(database, work))


async def _run(database: Database, work: "Callable[[QueueState], Awaitable[T]]") -> T:
    from gateway.bootstrap_database import check_queue_settings  # noqa: PLC0415
    from gateway.features.fleet.engine.queue_state import QueueState  # noqa: PLC0415 - the store; `--help` needs none

    check_queue_settings(database.settings, database.store)
    state = QueueState(database.statements, database.audit)
    if not await state.exists():
        raise ConfigError("there is no queue in this database yet; start a gateway with AGENT_DISPATCH=queue once")
    return await work(state)


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at or time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

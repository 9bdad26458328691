"""`stepgate prune`: delete what is older than AGENT_KEEP_DAYS now, or count it."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.session import Database, get_operator_name, load_command_settings, run_with_database

if TYPE_CHECKING:
    from agent.runs.retention import PruneReport


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")] = False,
    days: Annotated[float | None, typer.Option(help="Keep this many days; AGENT_KEEP_DAYS by default.", min=0)] = None,
) -> None:
    """Delete ended runs, idle conversations and tasks that are older than AGENT_KEEP_DAYS.

    A gateway may be running.
    """
    settings = load_command_settings()
    keep_days = settings.keep_days if days is None else days
    if not keep_days:
        from agent.core.errors import BadRequestError  # noqa: PLC0415 - `--help` needs none

        what = (
            "--days 0 would delete nothing"
            if days is not None
            else "AGENT_KEEP_DAYS is not set, so nothing is ever deleted"
        )
        raise BadRequestError(f"{what}; say how many days to keep, such as `stepgate prune --days 90`", param="days")
    report = run_with_database(lambda database: _prune(database, keep_days, dry_run=dry_run), settings)
    typer.echo(f"older than {keep_days:g} days and {'to be deleted' if dry_run else 'deleted'}: {report}")


async def _prune(database: Database, days: float, *, dry_run: bool) -> "PruneReport":
    from agent.core.errors import ConflictError  # noqa: PLC0415 - the store; `--help` needs none
    from agent.runs.retention import RunRetention  # noqa: PLC0415
    from agent.runs.run_worker import make_worker_name  # noqa: PLC0415
    from agent.storage.usage import UsageLedger  # noqa: PLC0415
    from gateway.configured_features import (  # noqa: PLC0415
        apply_feature_revisions,
        choose_configured,
        collect_tables,
        list_retentions,
    )

    clock = database.store.clock
    ledger = UsageLedger(database.statements, clock)
    features = choose_configured(database.settings)
    await apply_feature_revisions(database.store, features)
    retention = RunRetention(
        database.statements,
        ledger,
        database.audit,
        keep_days=days,
        holder=make_worker_name(),
        run_tables=collect_tables(features).of_runs,
        list_features=lambda: list_retentions(features),
        clock=clock,
    )
    if dry_run:
        return await retention.count_old()
    while await ledger.sum_up():
        pass
    report = await retention.prune(by=get_operator_name())
    if report is None:
        raise ConflictError("a gateway is deleting old runs just now; try again in a minute")
    return report

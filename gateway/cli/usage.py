"""`stepgate usage`: what the models were asked, and what it cost."""

import time
from typing import Annotated

import typer

from gateway.cli import lazy_rich
from gateway.cli.audit import parse_time
from gateway.cli.session import Database, database_command


@database_command
async def usage(
    database: Database,
    since: Annotated[str, typer.Option(help="Since a day or time (2026-11-20), or a time span: 24h, 30d.")] = "30d",
    by: Annotated[str, typer.Option(help="day, owner, key, room, model; several with commas.")] = "day,model",
    owner: Annotated[str | None, typer.Option(help="Only this owner.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
) -> None:
    """Show runs, model calls, tokens and cost of ended runs."""
    from agent.storage.usage import UsageLedger  # noqa: PLC0415 - the store; `--help` needs none
    from gateway.doors.usage_forms import parse_dimensions, to_usage_item  # noqa: PLC0415

    dimensions, begin = parse_dimensions(by), parse_time(since, time.time())
    groups = await UsageLedger(database.statements, database.store.clock).summarize(
        dimensions, owner=owner, since=begin
    )
    items = [to_usage_item(group, dimensions) for group in groups if group.runs]
    if as_json:
        for item in items:
            print(item.model_dump_json(exclude_unset=True))
        return
    if not items:
        print(f"No run has ended since {since}.")
        return
    names = [name for name in ("day", "owner", "key", "room", "model") if name in items[0].model_fields_set]
    rows = []
    for item in items:
        cost = "-" if item.cost_usd is None else f"{item.cost_usd:.4f}"
        counts = (item.runs, item.model_calls, item.prompt_tokens, item.completion_tokens)
        rows.append((*(str(getattr(item, name) or "-") for name in names), *(f"{count:,}" for count in counts), cost))
    lazy_rich.print_rows((*names, "runs", "calls", "prompt", "completion", "cost USD"), rows)

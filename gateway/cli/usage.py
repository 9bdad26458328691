"""`stepgate usage`: what the models were asked, and what it cost."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import lazy_rich
from gateway.cli.audit import parse_time
from gateway.cli.session import load_command_settings

if TYPE_CHECKING:
    from agent.core.settings import Settings
    from gateway.doors.usage import UsageItem


def usage(
    since: Annotated[str, typer.Option(help="Since a day or time (2026-11-20), or a time span: 24h, 30d.")] = "30d",
    by: Annotated[str, typer.Option(help="day, owner, key, room, model; several with commas.")] = "day,model",
    owner: Annotated[str | None, typer.Option(help="Only this owner.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
) -> None:
    """Show runs, model calls, tokens and cost of ended runs."""
    items = asyncio.run(_read_items(load_command_settings(), parse_time(since, time.time()), by, owner))
    if as_json:
        for item in items:
            print(item.model_dump_json(exclude_unset=True))
        return
    if not items:
        print(f"No run has ended since {since}.")
        return
    names = [name for name in ("day", "owner", "key", "room", "model") if name in items[0].model_fields_set]
    table = lazy_rich.Table(*names, "runs", "calls", "prompt", "completion", "cost USD", box=None, pad_edge=False)
    for item in items:
        cost = "-" if item.cost_usd is None else f"{item.cost_usd:.4f}"
        counts = (item.runs, item.model_calls, item.prompt_tokens, item.completion_tokens)
        cells = (*(str(getattr(item, name) or "-") for name in names), *(f"{count:,}" for count in counts), cost)
        table.add_row(*(lazy_rich.escape(cell) for cell in cells))
    lazy_rich.print_table(table)


async def _read_items(settings: "Settings", since: float, by: str, owner: str | None) -> "list[UsageItem]":
    from agent.storage.usage import UsageLedger  # noqa: PLC0415 - the store; `--help` needs none
    from gateway.bootstrap_database import build_statements, open_store  # noqa: PLC0415
    from gateway.doors.usage import parse_dimensions, to_usage_item  # noqa: PLC0415

    dimensions = parse_dimensions(by)
    store = await open_store(settings)
    try:
        groups = await UsageLedger(build_statements(store), time.time).summarize(dimensions, owner=owner, since=since)
    finally:
        await store.close()
    return [to_usage_item(group, dimensions) for group in groups if group.runs]

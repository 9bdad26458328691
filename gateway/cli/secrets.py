"""`stepgate secrets`: the names of secrets, and whether they are configured. Never a value."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import lazy_rich
from gateway.cli.session import run_with_gateway

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


def secrets(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """List the secrets by name: whether each is configured, and which rooms name it. Values are never shown."""

    async def work(stepgate: "Stepgate") -> None:
        from mcp_tools.builtin.secrets import to_secret_item  # noqa: PLC0415 - loaded with the engine

        names = await asyncio.to_thread(stepgate.studio.secrets.list_secrets, None)
        found = [to_secret_item(one) for one in names]
        if as_json:
            print(json.dumps([one.model_dump() for one in found], indent=2, ensure_ascii=False))
            return
        table = lazy_rich.Table("secret", "kind", "configured", "rooms", box=None, pad_edge=False)
        for one in found:
            state = "yes" if one.configured else one.problem or "no"
            table.add_row(*(lazy_rich.escape(cell) for cell in (one.name, one.kind, state, ", ".join(one.used_by))))
        lazy_rich.print_table(table)

    run_with_gateway(work, skip_broken_rooms=True)

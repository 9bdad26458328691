"""`stepgate secrets`: the names of secrets, and whether they are configured. Never a value."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import lazy_rich
from gateway.cli.session import gateway_command, print_json
from gateway.features.studio.parts import get_studio

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


@gateway_command(skip_broken_rooms=True)
async def secrets(
    stepgate: "Stepgate", as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False
) -> None:
    """List the secrets by name: whether each is configured, and which rooms name it. Values are never shown."""
    from gateway.features.studio.tools import to_secret_item  # noqa: PLC0415 - loaded with the engine

    names = await asyncio.to_thread(get_studio(stepgate).secrets.list_secrets, None)
    secret_items = [to_secret_item(one) for one in names]
    if as_json:
        print_json(secret_items)
        return
    rows = [
        (one.name, one.kind, "yes" if one.configured else one.problem or "no", ", ".join(one.used_by))
        for one in secret_items
    ]
    lazy_rich.print_rows(("secret", "kind", "configured", "rooms"), rows)

"""`stepgate migrate`: bring the database to this version's schema without starting a gateway."""

import asyncio
from typing import TYPE_CHECKING

import typer

from gateway.cli.session import load_command_settings

if TYPE_CHECKING:
    from agent.core.settings import Settings


def migrate() -> None:
    """Create the tables, or bring them to this version's schema, as the first start of a gateway does. Running gateways
    of the version before go on.
    """
    from agent.storage.migrations import HEAD  # noqa: PLC0415 - the store; `--help` needs none

    settings = load_command_settings()
    asyncio.run(_open_and_close(settings))
    where = "AGENT_DATABASE_URL" if settings.database_url is not None else str(settings.database_path)
    typer.echo(f"the database ({where}) has the schema {HEAD} of this version")


async def _open_and_close(settings: "Settings") -> None:
    from gateway.bootstrap_database import open_store  # noqa: PLC0415 - as above

    await (await open_store(settings)).close()

"""`stepgate migrate`: bring the database to this version's schema without starting a gateway."""

import typer

from gateway.cli.session import Database, database_command


@database_command
async def migrate(database: Database) -> None:
    """Create the tables, or bring them to this version's schema, as the first start of a gateway does.

    Running gateways of the previous version keep working.
    """
    from agent.storage.migrations import HEAD  # noqa: PLC0415 - the store; `--help` needs none

    settings = database.settings
    where = "AGENT_DATABASE_URL" if settings.database_url is not None else str(settings.database_path)
    typer.echo(f"the database ({where}) has the schema {HEAD} of this version")

"""`stepgate users delete`."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import gateway_command, get_operator_name

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Owners: delete an owner's data.", cls=HelpfulGroup)


@app.command()
@gateway_command()
async def delete(
    stepgate: "Stepgate",
    owner: Annotated[str, typer.Argument(help="The owner, as in `stepgate keys list`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Delete an owner and everything they own: keys, runs, tasks, conversations, memories, documents and sources."""
    from agent.core.errors import NotFoundError  # noqa: PLC0415 - loaded with the engine
    from agent.storage.owners import format_counts  # noqa: PLC0415 - likewise

    row_counts = await stepgate.owners.count_rows(owner)
    if not row_counts:
        raise NotFoundError(f"there is no data of an owner {owner!r}; see `stepgate keys list`")
    if not yes:
        typer.echo(f"{owner} has {format_counts(row_counts)}.", err=True)
        typer.confirm("Delete all of it permanently?", abort=True, err=True)
    await stepgate.owners.delete(owner, by=get_operator_name())
    typer.echo(f"removed {owner}: {format_counts(row_counts)}")

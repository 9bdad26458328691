"""`stepgate users delete`."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.groups import Group
from gateway.cli.session import operator, with_stepgate

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Owners: whose things there are.", cls=Group)


@app.command()
def delete(
    owner: Annotated[str, typer.Argument(help="Who, as `stepgate keys list` calls them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Remove an owner with everything of theirs: keys, runs, tasks, conversations, memories, documents and sources."""

    async def work(stepgate: "Stepgate") -> None:
        from agent.core.errors import NotFoundError  # noqa: PLC0415 - loaded with the engine
        from agent.owners import told  # noqa: PLC0415 - likewise

        found = await stepgate.owners.holdings(owner)
        if not found:
            raise NotFoundError(f"nothing belongs to an owner named {owner!r}; see `stepgate keys list`")
        if not yes:
            typer.echo(f"{owner} has {told(found)}.", err=True)
            typer.confirm("Remove all of it, for good?", abort=True, err=True)
        await stepgate.owners.delete(owner, by=operator())
        typer.echo(f"removed {owner}: {told(found)}")

    with_stepgate(work)

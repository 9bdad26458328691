"""`stepgate runs save`: makes a recipe of a run."""

from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.run_arguments import Owner, RunId, find_run, parse_argument
from gateway.cli.session import run_with_gateway
from gateway.features.recipes.commands.recipes import save_run

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


def save(
    run_id: RunId,
    name: Annotated[str, typer.Option(help="The recipe's name; default: made from the request.")] = "",
    description: Annotated[str, typer.Option(help="What it does; default: taken from the run.")] = "",
    other: Annotated[list[str] | None, typer.Option("--try", help="Another value to try it with: NAME=VALUE.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take it into use at once.")] = False,
    owner: Owner = None,
) -> None:
    """Save a run that succeeded as a recipe: a skill with parameters that runs without another plan."""
    values = dict(map(parse_argument, other)) if other else {}

    async def work(stepgate: "Stepgate") -> None:
        from gateway.features.recipes.engine import SaveOptions  # noqa: PLC0415 - loaded with the engine

        row = await find_run(stepgate.journal, run_id, owner)
        options = SaveOptions(name=name, description=description, try_values=values)
        await save_run(stepgate, row.run_id, row.owner, options, confirmed=yes)

    run_with_gateway(work, foreign="started")

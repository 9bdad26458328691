"""`stepgate runs save`: makes a recipe of a run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.model_options import add_fields
from gateway.cli.run_arguments import Owner, RunId, find_run, parse_argument
from gateway.cli.session import run_with_gateway
from gateway.features.recipes.commands.recipes import save_run
from gateway.features.recipes.engine import SaveOptions

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate


@add_fields(SaveOptions, leave_out=("try_values",))
def save(
    run_id: RunId,
    fields: dict[str, Any],
    other: Annotated[list[str] | None, typer.Option("--try", help="Another value to try it with: NAME=VALUE.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Put it into use at once.")] = False,
    owner: Owner = None,
) -> None:
    """Save a run that succeeded as a recipe: a skill with parameters that runs without another plan."""
    values = dict(map(parse_argument, other)) if other else {}
    options = SaveOptions.model_validate({**fields, "try_values": values})

    async def work(stepgate: "Stepgate") -> None:
        row = await find_run(stepgate.journal, run_id, owner)
        await save_run(stepgate, row.run_id, row.owner, options, confirmed=yes)

    run_with_gateway(work, foreign="started")

"""`stepgate runs save` and `stepgate recipes list|show|apply|discard|remove|export`."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.core.models import LOCAL_OWNER
from agent.core.principal import Principal
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import get_operator_name, print_json, run_with_gateway
from gateway.features.recipes.parts import get_recipes

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.recipes.engine import RecipeStore, SaveOptions, StoredRecipe
    from gateway.features.recipes.forms import RecipeOutput

T = TypeVar("T")

app = typer.Typer(help="Recipes: list, show, apply, discard, remove, export.", cls=HelpfulGroup)

Name = Annotated[str, typer.Argument(help="The recipe's name.")]
Owner = Annotated[str, typer.Option(help="Whose recipes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_recipes(owner: Owner = LOCAL_OWNER, as_json: AsJson = False) -> None:
    """List the recipes."""
    outputs = [_to_output(one) for one in _run(lambda recipes: recipes.list_all(owner))]
    if as_json:
        print_json(outputs)
        return
    for one in outputs:
        print(f"{one.usage}  ({one.state})\n    {one.description}")
    if not outputs:
        print("No recipes yet. `stepgate runs save RUN` makes one.")


@app.command()
def show(name: Name, owner: Owner = LOCAL_OWNER, as_json: AsJson = False) -> None:
    """Show a recipe: its parameters, its steps and how it was tried."""
    output = _to_output(_run(lambda recipes: recipes.get(owner, name)))
    print(output.model_dump_json(indent=2) if as_json else format_recipe(output))


@app.command()
def apply(
    name: Name,
    rename: Annotated[
        list[str] | None, typer.Option("--rename", help="OLD=NEW: another name for a parameter; repeatable.")
    ] = None,
    owner: Owner = LOCAL_OWNER,
) -> None:
    """Confirm a staged recipe, so that it can be called."""
    pairs = [word.partition("=") for word in rename or ()]
    if any(not (old and equals and new) for old, equals, new in pairs):
        raise typer.BadParameter("write OLD=NEW", param_hint="--rename")
    names = {old: new for old, _, new in pairs}
    print(f"In use: {_run(lambda recipes: recipes.apply(owner, name, rename=names)).usage}")


@app.command()
def discard(name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Discard the staged version of a recipe."""
    _run(lambda recipes: recipes.discard(owner, name))
    print(f"Discarded what was staged of {name}.")


@app.command()
def remove(name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Remove a recipe."""
    _run(lambda recipes: recipes.remove(owner, name))
    print(f"Removed {name}.")


@app.command()
def export(
    name: Name,
    folder: Annotated[Path, typer.Argument(help="The folder in which the skill's folder is made.", file_okay=False)],
    owner: Owner = LOCAL_OWNER,
) -> None:
    """Write a recipe as the folder of an Agent Skill."""
    from gateway.features.recipes.engine.card import render_files  # noqa: PLC0415 - loaded with the engine

    files = render_files(_run(lambda recipes: recipes.get(owner, name)).shown)
    target = folder / name
    try:
        target.mkdir(parents=True)
        for file, text in files.items():
            (target / file).write_text(text, "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{target} cannot be written: {error.strerror}", param_hint="FOLDER") from error
    print(f"Wrote {target}.")


def _run(work: "Callable[[RecipeStore], Awaitable[T]]") -> T:
    return run_with_gateway(lambda stepgate: work(get_recipes(stepgate).store))


async def save_run(stepgate: "Stepgate", run_id: str, owner: str, options: "SaveOptions", *, confirmed: bool) -> None:
    """Makes a recipe of a run through its tool, whose model finds the parameters, and prints it."""
    from gateway.cli.progress import follow_run  # noqa: PLC0415 - loaded with the engine
    from gateway.features.recipes.saved_runs import build_save_call, get_saved_recipe  # noqa: PLC0415 - as above

    maker = get_recipes(stepgate)
    await maker.check_request(run_id, owner, options.name)
    caller = Principal(owner, display_name=get_operator_name(), is_operator=True)
    accepted = await stepgate.intake.accept(caller, build_save_call(run_id, options))
    await follow_run(stepgate.service, accepted)
    stored = await get_saved_recipe(stepgate.service, maker.store, accepted.run_id, owner)
    print(format_recipe(_to_output(stored)))
    if confirmed or (sys.stdin.isatty() and typer.confirm("Put it into use?")):
        print(f"\nIn use: {(await maker.store.apply(owner, stored.name)).usage}")
    else:
        print(
            f"\nStaged. `stepgate recipes apply {stored.name}` puts it into use, "
            f"`stepgate recipes discard {stored.name}` drops it."
        )


def format_recipe(recipe: "RecipeOutput") -> str:
    """Formats a recipe with its notes."""
    notes = "".join(f"\n- {note}" for note in recipe.notes)
    return f"{recipe.text}{notes}\n\nState: {recipe.state}"


def _to_output(stored: "StoredRecipe") -> "RecipeOutput":
    from gateway.features.recipes.forms import to_shown_output  # noqa: PLC0415 - loaded with the engine

    return to_shown_output(stored)

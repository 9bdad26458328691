"""`stepgate runs save` and `stepgate recipes list|show|apply|discard|remove|export`."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent.core.models import LOCAL_OWNER, JsonObject
from agent.core.principal import Principal
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import get_operator_name, print_json, run_with_gateway
from gateway.features.recipes.parts import get_recipes

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.recipes.engine import RecipeStore, StoredRecipe
    from gateway.features.recipes.tools.recipes import RecipeOutput

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
    """Discard what is staged of a recipe."""
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


async def save_run(
    stepgate: "Stepgate", run_id: str, owner: str, *, name: str, description: str, values: JsonObject, confirmed: bool
) -> None:
    """Makes a recipe of a run through its tool, whose model finds the parameters, and prints it."""
    from agent.core.events import ToolReturned  # noqa: PLC0415 - loaded with the engine
    from agent.core.models import AgentRequest  # noqa: PLC0415
    from agent.runs.run_intake import HiddenRequest  # noqa: PLC0415
    from gateway.cli.progress import follow_run  # noqa: PLC0415
    from gateway.features.recipes.tools.recipes import SAVE_TOOL  # noqa: PLC0415

    await get_recipes(stepgate).check_request(run_id, owner, name)
    args: JsonObject = {"run_id": run_id, "name": name, "description": description, "try_values": values}
    request = HiddenRequest(AgentRequest(metadata={"tool_calls": [{"tool": SAVE_TOOL, "args": args}]}))
    caller = Principal(owner, display_name=get_operator_name(), is_operator=True)
    accepted = await stepgate.intake.accept(caller, request)
    response = await follow_run(stepgate.service, accepted)
    events = await stepgate.service.read_events(accepted.run_id, owner=owner)
    returned: Any = next((e.body for e in reversed(events) if isinstance(e.body, ToolReturned)), None)
    if returned is None or returned.error_code is not None or not isinstance(returned.output, dict):
        print(returned.error if returned is not None else response.response, file=sys.stderr)
        raise SystemExit(1)
    made = str(returned.output["name"])
    print(format_recipe(_to_output(await get_recipes(stepgate).store.get(owner, made))))
    if confirmed or (sys.stdin.isatty() and typer.confirm("Take it into use?")):
        print(f"\nIn use: {(await get_recipes(stepgate).store.apply(owner, made)).usage}")
    else:
        print(
            f"\nStaged. `stepgate recipes apply {made}` takes it into use, `stepgate recipes discard {made}` drops it."
        )


def format_recipe(recipe: "RecipeOutput") -> str:
    """Formats a recipe with its notes."""
    notes = "".join(f"\n- {note}" for note in recipe.notes)
    return f"{recipe.text}{notes}\n\nState: {recipe.state}"


def _to_output(stored: "StoredRecipe") -> "RecipeOutput":
    from gateway.features.recipes.tools.recipes import get_state, to_output  # noqa: PLC0415 - loaded with the engine

    return to_output(stored.shown, get_state(stored))

"""`stepgate prompts list|show|save|apply|remove`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.core.models import LOCAL_OWNER
from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.model_options import add_fields
from gateway.cli.session import format_local_time, get_operator_name, print_json, room_command, run_with_gateway
from gateway.cli.text_files import read_text_file
from gateway.features.studio.commands.rooms import get_operator
from gateway.features.studio.engine.prompt import Prompt, PromptChange
from gateway.features.studio.parts import get_studio

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate

app = typer.Typer(help="Prompt library: save, show, apply and remove prompts.", cls=HelpfulGroup)

Name = Annotated[str, typer.Argument(help="The prompt's name.")]
Version = Annotated[int | None, typer.Option(help="Its version; default the newest.", min=1)]
Owner = Annotated[str, typer.Option(help="Whose prompts.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command("list")
@room_command
async def list_prompts(stepgate: "Stepgate", owner: Owner = LOCAL_OWNER, as_json: AsJson = False) -> None:
    """List the prompts, the newest version of each."""
    prompts = await get_studio(stepgate).prompts.list_prompts(owner)
    if as_json:
        print_json([_to_row(prompt) for prompt in prompts])
        return
    table = lazy_rich.Table("prompt", "version", "saved", "description", box=None, pad_edge=False)
    for prompt in prompts:
        cells = (prompt.name, str(prompt.version), format_local_time(prompt.at), prompt.description)
        table.add_row(*(lazy_rich.escape(cell) for cell in cells))
    lazy_rich.Console().print(table if prompts else "No prompts yet; `stepgate prompts save NAME --file FILE`.")


@app.command()
@room_command
async def show(
    stepgate: "Stepgate",
    name: Name,
    version: Version = None,
    versions: Annotated[bool, typer.Option("--versions", help="List the versions instead.")] = False,
    owner: Owner = LOCAL_OWNER,
    as_json: AsJson = False,
) -> None:
    """Print a prompt's text, or its versions."""
    if not versions:
        _print_prompt(await get_studio(stepgate).prompts.get_prompt(owner, name, version), as_json=as_json)
        return
    stored = await get_studio(stepgate).prompts.list_versions(owner, name)
    if as_json:
        print_json([_to_row(prompt) for prompt in stored])
        return
    for prompt in stored:
        print(f"{prompt.version}  {format_local_time(prompt.at)}  {prompt.by}  {len(prompt.text):,} characters")


@app.command()
@add_fields(PromptChange, leave_out=("text", "from_outside"))
def save(
    name: Name,
    text: Annotated[str | None, typer.Argument(help="The whole prompt.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the text from a file; - reads it from stdin.")
    ] = None,
    *,
    fields: dict[str, Any],
    owner: Owner = LOCAL_OWNER,
    as_json: AsJson = False,
) -> None:
    """Save a prompt, as a new version if there is one of this name."""
    if (text is None) == (file is None):
        raise typer.BadParameter("give the text or --file")
    given = text if file is None else read_text_file(file, "--file")
    change = PromptChange.model_validate({**fields, "text": given or ""})

    async def work(stepgate: "Stepgate") -> Prompt:
        return await get_studio(stepgate).prompts.save_prompt(owner, name, change, by=get_operator_name())

    saved = run_with_gateway(work, foreign="remembered", skip_broken_rooms=True)
    if as_json:
        print_json(_to_row(saved))
    else:
        print(f"saved {saved.name}, version {saved.version}")


@app.command("apply")
@room_command
async def apply_prompt(
    stepgate: "Stepgate",
    name: Name,
    room_id: Annotated[str, typer.Argument(help="The room whose prompt it becomes.")],
    version: Version = None,
    owner: Owner = LOCAL_OWNER,
) -> None:
    """Make a prompt the system prompt of a managed room."""
    prompt = await get_studio(stepgate).prompts.get_prompt(owner, name, version)
    view = await get_studio(stepgate).room_editor.edit_room(room_id, prompt.room_fields, get_operator(), version=None)
    print(f"the room {view.room_id} has the prompt {prompt.name}, version {prompt.version}, now")


@app.command()
@room_command
async def remove(stepgate: "Stepgate", name: Name, owner: Owner = LOCAL_OWNER) -> None:
    """Remove a prompt with its versions. Rooms that use its text keep it."""
    count = await get_studio(stepgate).prompts.remove_prompt(owner, name, by=get_operator_name())
    print(f"removed {name} with {count} {'version' if count == 1 else 'versions'}")


def _print_prompt(prompt: Prompt, *, as_json: bool) -> None:
    if as_json:
        print_json(_to_row(prompt))
        return
    print(f"# {prompt.name}, version {prompt.version}, saved by {prompt.by}", file=sys.stderr)
    print(prompt.text)


def _to_row(prompt: Prompt) -> dict[str, Any]:
    from gateway.features.studio.prompt_forms import PromptVersion  # noqa: PLC0415 - loaded with the engine

    item = PromptVersion.model_validate(prompt)
    return item.model_dump(mode="json") | {"saved_at": item.saved_at.isoformat()}

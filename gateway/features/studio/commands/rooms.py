"""`stepgate rooms list|show|create|edit|copy|delete|versions|restore|check`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import lazy_rich
from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import get_operator_name, print_json, room_command
from gateway.cli.text_files import read_text_file
from gateway.features.studio.parts import get_studio

if TYPE_CHECKING:
    from gateway.bootstrap import Stepgate
    from gateway.features.studio.engine.room_editor import RoomEditor
    from gateway.features.studio.engine.room_view import Editor, RoomView

app = typer.Typer(
    help="Rooms: list, create, edit, copy, delete and check them; list versions and restore one.", cls=HelpfulGroup
)

RoomId = Annotated[str, typer.Argument(help="The room's id.")]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        help="FIELD=VALUE; VALUE is text or YAML, FIELD may be nested (budgets.max_steps). An empty VALUE: default."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


@app.command("list")
@room_command
async def list_rooms(stepgate: "Stepgate", as_json: AsJson = False) -> None:
    """List the rooms with their origin and owner."""
    from gateway.features.studio.room_forms import to_item  # noqa: PLC0415 - loaded with the engine

    rooms = [to_item(view) for view in await get_studio(stepgate).room_editor.list_rooms(get_operator())]
    if as_json:
        print_json(rooms)
        return
    table = lazy_rich.Table("room", "origin", "owner", "name", "description", box=None, pad_edge=False)
    for room in rooms:
        about = f"ERROR: {room.error}" if room.error else room.description
        table.add_row(*map(lazy_rich.escape, (room.id, room.origin, room.owner, room.name, about)))
    table.columns[0].no_wrap = True
    lazy_rich.Console().print(table)


@app.command()
@room_command
async def show(stepgate: "Stepgate", room_id: RoomId, as_json: AsJson = False) -> None:
    """Print a room's YAML, or everything about it as JSON."""
    _print_room(await get_studio(stepgate).room_editor.get_room(room_id, get_operator()), as_json=as_json)


@app.command()
@room_command
async def create(
    stepgate: "Stepgate",
    name: Annotated[str, typer.Argument(help="What people call the room.")],
    fields: Fields = None,
    room_id: Annotated[str | None, typer.Option("--id", help="Its id; default: made from the name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a managed room."""
    content = {"name": name, **_parse_fields(fields or [])}
    _print_room(await get_studio(stepgate).room_editor.create_room(content, get_operator(), room_id), as_json=as_json)


@app.command()
@room_command
async def edit(
    stepgate: "Stepgate",
    room_id: RoomId,
    fields: Fields = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Replace the whole YAML by this file's; - reads it from stdin.")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Fail if the room has changed since this version.")] = None,
    managed: Annotated[
        bool | None, typer.Option("--managed/--not-managed", help="Let programs edit it, or only people.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change fields of a room; comments and style of its file stay."""
    if file is not None:
        if fields or managed is not None:
            raise typer.BadParameter("give fields or --file, not both")
        text = read_text_file(file, "--file")
        view = await get_studio(stepgate).room_editor.replace_room(room_id, text, get_operator(), version=version)
    else:
        changes = _parse_fields(fields or [])
        if not changes and managed is None:
            raise typer.BadParameter("name a FIELD=VALUE, --file or --managed")
        view = await get_studio(stepgate).room_editor.edit_room(
            room_id, changes, get_operator(), version=version, managed=managed
        )
    _print_room(view, as_json=as_json)


@app.command()
@room_command
async def copy(
    stepgate: "Stepgate",
    room_id: RoomId,
    name: Annotated[str | None, typer.Option(help="The copy's name.")] = None,
    new_id: Annotated[str | None, typer.Option("--id", help="The copy's id; default: made from its name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a room, including a shipped one."""
    _print_room(
        await get_studio(stepgate).room_editor.copy_room(room_id, get_operator(), room_id=new_id, name=name),
        as_json=as_json,
    )


@app.command()
@room_command
async def delete(
    stepgate: "Stepgate",
    room_id: RoomId,
    version: Annotated[str | None, typer.Option(help="Fail if the room has changed since this version.")] = None,
) -> None:
    """Delete a managed room. Its runs stay."""
    await get_studio(stepgate).room_editor.delete_room(room_id, get_operator(), version=version)
    print(f"deleted {room_id}")


@app.command()
@room_command
async def versions(stepgate: "Stepgate", room_id: RoomId, as_json: AsJson = False) -> None:
    """List the earlier texts of a room, newest first (rooms in a database)."""
    from gateway.features.studio.room_forms import to_revision_item  # noqa: PLC0415 - loaded with the engine

    revision_items = [
        to_revision_item(one) for one in await get_studio(stepgate).room_editor.list_revisions(room_id, get_operator())
    ]
    if as_json:
        print_json(revision_items)
        return
    for one in revision_items:
        what = "deleted" if one.yaml is None else f"{one.version}  {len(one.yaml):,} characters"
        print(f"{one.revision}  {one.stored_at.astimezone():%Y-%m-%d %H:%M}  {what}")


@app.command()
@room_command
async def restore(
    stepgate: "Stepgate",
    room_id: RoomId,
    revision: Annotated[int, typer.Argument(min=1, help="The number of a text; `rooms versions` lists them.")],
    version: Annotated[str | None, typer.Option(help="Fail if the room has changed since this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Restore an earlier text of a room, even of a deleted one."""
    _print_room(
        await get_studio(stepgate).room_editor.restore_room(room_id, revision, get_operator(), version=version),
        as_json=as_json,
    )


@app.command()
@room_command
async def check(
    stepgate: "Stepgate",
    files: Annotated[list[Path] | None, typer.Argument(help="Room files; default all rooms of this gateway.")] = None,
) -> int:
    """Check room files: schema, tools, skills and gates. Exit code 1 if any is wrong."""
    if files is None:
        views = await get_studio(stepgate).room_editor.list_rooms(get_operator())
        problems_by_room = {view.room_id: [view.error] if view.error else [] for view in views}
    else:
        problems_by_room = {str(path): _find_problems(get_studio(stepgate).room_editor, path) for path in files}
    for name, problems in problems_by_room.items():
        print(f"{'FAIL' if problems else 'ok  '} {name}")
        for problem in problems:
            print(f"     {problem}")
    return 1 if any(problems_by_room.values()) else 0


def get_operator() -> "Editor":
    """On whose behalf this command edits rooms: the operator's."""
    from gateway.features.studio.engine.room_view import Editor  # noqa: PLC0415 - loaded with the engine

    return Editor(None, get_operator_name(), programs="allowed", pairings="allowed")


def _find_problems(rooms: "RoomEditor", path: Path) -> list[str]:
    from gateway.features.studio.engine.errors import ValidationError  # noqa: PLC0415 - likewise

    try:
        rooms.check_text(path.stem, path.read_text("utf-8"))
    except ValidationError as error:
        return [str(problem) for problem in error.problems]
    except (OSError, UnicodeDecodeError) as error:
        return [f"cannot be read: {error}"]
    return []


def _parse_fields(words: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for word in words:
        path, equals, text = word.partition("=")
        if not equals or not path:
            raise typer.BadParameter(f"{word!r}: expected FIELD=VALUE")
        value = _parse_value(path, text)
        target = fields
        *parents, name = path.split(".")
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise typer.BadParameter(f"{word!r}: {parent!r} was given a value before, so it has no fields")
        target[name] = value
    return fields


def _parse_value(field: str, text: str) -> Any:
    """A text field's value as it is typed, any other value as YAML; None for an empty one."""
    import yaml  # noqa: PLC0415 - not needed for `--help`

    from agent.core.models import Room  # noqa: PLC0415 - likewise

    model_field = Room.model_fields.get(field)
    if not text or (model_field is not None and model_field.annotation in (str, str | None)):
        return text or None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text


def _print_room(view: "RoomView", *, as_json: bool) -> None:
    if as_json:
        from gateway.features.studio.room_forms import to_detail  # noqa: PLC0415 - loaded with the engine

        print_json(to_detail(view))
        return
    print(f"# {view.room_id}: {view.origin}{f', version {view.version}' if view.version else ''}", file=sys.stderr)
    if view.error:
        print(f"# ERROR: {view.error}", file=sys.stderr)
    print(view.text.rstrip("\n"))

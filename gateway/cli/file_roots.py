"""`stepgate file-roots list|add|remove`: the folders that may be read."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.groups import HelpfulGroup
from gateway.cli.session import load_command_settings, print_json

app = typer.Typer(help="Folders that may be read: list, add, remove.", cls=HelpfulGroup)

_Folder = Annotated[str, typer.Argument(help="The folder.")]


@app.command("list")
def list_roots(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the folders that files are read from."""
    roots = [str(root) for root in load_command_settings().readable_roots]
    if as_json:
        print_json({"roots": roots})
        return
    for root in roots:
        print(root if Path(root).is_dir() else f"{root}  (there is no such folder)")


@app.command()
def add(folder: _Folder) -> None:
    """Allow the files of a folder to be read; a running gateway applies it at once.

    Home folders and hidden folders are refused.
    """
    from gateway.added_roots import add_root  # noqa: PLC0415 - not needed for `--help`

    added = add_root(load_command_settings(), _complete(folder))
    print(f"Files in {added} may be read now. Undo: stepgate file-roots remove {added}")


@app.command()
def remove(folder: _Folder) -> None:
    """Remove a folder that was added. Documents that collections have read from it stay."""
    from gateway.added_roots import RootRefusedError, remove_root  # noqa: PLC0415 - not needed for `--help`

    if not remove_root(load_command_settings(), _complete(folder)):
        raise RootRefusedError(f"{folder} was not added; `stepgate file-roots list` shows the folders")
    print(f"Files in {folder} can no longer be read.")


def _complete(folder: str) -> str:
    """The whole path of a folder that may be written relative to this one. `~` is left to what adds and removes."""
    return folder if folder.startswith("~") else str(Path(folder).absolute())

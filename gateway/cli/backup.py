"""`stepgate backup` and `stepgate restore`: the data folder with its database, as one folder elsewhere and back."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent.core.config import Settings
from agent.core.errors import BadRequestError, ConflictError, StoreError
from gateway.cli.session import settings_of_command

_NOT_COPIED = ("workspaces", "replaced-*")
"""What a run makes for itself, and what an earlier restore has put aside."""
_SERVER = (
    "the runs are in PostgreSQL and not in this folder: {command}, as docs/runbook.md has it, and best at the same time"
)


def backup(
    folder: Annotated[Path, typer.Argument(help="Where to; a folder that is not there yet.")],
) -> None:
    """Copy the data folder and its database, also while a gateway runs. What is secret in it is secret there."""
    settings = settings_of_command()
    data, target = settings.data_dir.resolve(), folder.resolve()
    if target.exists() or target.is_relative_to(data):
        why = "lies in the data folder" if target.is_relative_to(data) else "exists already"
        raise BadRequestError(f"{folder} {why}; name a folder that is not there yet", param="folder")
    if not data.is_dir():
        raise BadRequestError(f"there is no data folder {data}; AGENT_DATA_DIR names another", param="folder")
    target.mkdir(mode=0o700, parents=True)
    if settings.database_path.exists():
        # First: a file that is uploaded meanwhile is then too many in the copy, and none is missing.
        _copy_database(settings.database_path, target / settings.database_path.name)
    _copy_files(data, target, settings)
    target.chmod(0o700)  # whatever the data folder's own mode is
    typer.echo(f"{data} is backed up in {target}")
    if settings.database_url is not None:
        typer.echo(_SERVER.format(command="pg_dump it"), err=True)


def restore(
    folder: Annotated[Path, typer.Argument(help="What `stepgate backup` has made.")],
) -> None:
    """Put a backup back, while no gateway runs. The database that was there is put aside, not overwritten."""
    settings = settings_of_command()
    source, path = folder.resolve(), settings.database_path
    saved = source / path.name
    if not source.is_dir() or (settings.database_url is None and not saved.is_file()):
        raise BadRequestError(f"{folder} is no folder that `stepgate backup` has made", param="folder")
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.database_url is None:
        _check(saved)
        aside = _put_aside(path)
        shutil.copyfile(saved, path)
        if aside is not None:
            typer.echo(f"the database that was there is in {aside}", err=True)
    _copy_files(source, settings.data_dir.resolve(), settings)
    typer.echo(f"{settings.data_dir.resolve()} is as it was in {source}")
    if settings.database_url is not None:
        typer.echo(_SERVER.format(command="restore the dump"), err=True)


def _copy_database(path: Path, target: Path) -> None:
    """A copy of one moment, whatever is being written. `StoreError`."""
    try:
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(target)) as copy:
            live.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be copied to {target}: {error}", agent_id="store") from error
    target.chmod(0o600)


def _copy_files(source: Path, target: Path, settings: Settings) -> None:
    """Everything but the database."""
    ignored = shutil.ignore_patterns(*_NOT_COPIED)
    names = {settings.database_path.name + ending for ending in ("", "-wal", "-shm")}

    def left_out(folder: str, entries: list[str]) -> set[str]:
        if Path(folder) != source:
            return set()
        return ignored(folder, entries) | (names & set(entries))

    try:
        shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True, symlinks=True)
    except (OSError, shutil.Error) as error:
        raise StoreError(f"{source} cannot be copied to {target}: {error}", agent_id="store") from error


def _check(saved: Path) -> None:
    """Raise `StoreError` for a database that is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{saved}?mode=ro", uri=True)) as connection:
            (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        said = str(error)
    if said != "ok":
        raise StoreError(f"{saved} is damaged ({said}); nothing was changed: take another backup", agent_id="store")


def _put_aside(path: Path) -> Path | None:
    """Move the database away, with its log: SQLite would write what is left in that into the one that comes instead.
    `ConflictError` while a process has it open."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # wants it alone, and brings its log into it
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise ConflictError(f"{path} is in use: stop the gateway first, and whatever else reads it") from error
        # Damaged is what a backup is there for.
    aside = path.parent / datetime.now(UTC).strftime("replaced-%Y%m%dT%H%M%S%fZ")
    aside.mkdir(mode=0o700)
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.rename(aside / part.name)
    return aside

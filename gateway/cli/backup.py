"""`stepgate backup` and `stepgate restore`: copy the data folder with its database, and put the copy back."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent.core.errors import BadRequestError, ConflictError, StoreError
from agent.core.settings import Settings
from gateway.cli.running_gateway import ADDRESS_FILE, find_noted_gateway
from gateway.cli.session import load_command_settings
from gateway.feature_loader import import_target, load_features

_NOT_COPIED = ("workspaces", "replaced-*", ADDRESS_FILE)
"""Temporary folders of runs, databases that an earlier restore has moved aside, and where the gateway runs."""
_POSTGRES_NOTE = "the runs are in PostgreSQL, not in this folder: {command} at the same time, see docs/runbook.md"


def backup(
    folder: Annotated[Path, typer.Argument(help="The target, a folder that does not exist yet.")],
) -> None:
    """Copy the data folder and its database, even while a gateway runs. The copy contains the same secrets."""
    settings = load_command_settings()
    data, target = settings.data_dir.resolve(), folder.resolve()
    if target.exists() or target.is_relative_to(data):
        why = "is in the data folder" if target.is_relative_to(data) else "already exists"
        raise BadRequestError(f"{folder} {why}; name a folder that does not exist yet", param="folder")
    if not data.is_dir():
        raise BadRequestError(f"there is no data folder {data}; AGENT_DATA_DIR names another", param="folder")
    target.mkdir(mode=0o700, parents=True)
    try:
        if settings.database_path.exists():
            # First the database: a file uploaded meanwhile is then superfluous in the copy, but none is missing.
            _copy_database(settings.database_path, target / settings.database_path.name)
        _copy_files(data, target, settings)
    except BaseException:  # half a copy would be taken for a backup
        shutil.rmtree(target, ignore_errors=True)
        raise
    target.chmod(0o700)  # whatever the mode of the data folder is
    typer.echo(f"{data} is backed up in {target}")
    if settings.database_url is not None:
        typer.echo(_POSTGRES_NOTE.format(command="pg_dump it"), err=True)


def restore(
    folder: Annotated[Path, typer.Argument(help="A folder made by `stepgate backup`.")],
) -> None:
    """Restore a backup while no gateway runs. The current database is moved aside, not overwritten."""
    settings = load_command_settings()
    source, path = folder.resolve(), settings.database_path
    saved = source / path.name
    if not source.is_dir() or (settings.database_url is None and not saved.is_file()):
        raise BadRequestError(f"{folder} is not a folder made by `stepgate backup`", param="folder")
    if source == settings.data_dir.resolve():
        raise BadRequestError(f"{folder} is the data folder itself; name a folder made by `stepgate backup`")
    if (url := find_noted_gateway(settings)) is not None:
        raise ConflictError(f"a gateway runs on {settings.data_dir} ({url}): stop the gateway first")
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = settings.data_dir.stat().st_mode
    if settings.database_url is None:
        _check_database(saved)
        aside = _replace_database(path, saved)
        if aside is not None:
            typer.echo(f"the previous database is in {aside}", err=True)
    try:
        _copy_files(source, settings.data_dir.resolve(), settings)
    finally:
        settings.data_dir.chmod(stat.S_IMODE(mode))  # whatever the mode of the backup is: the folder holds secrets
    typer.echo(f"{settings.data_dir.resolve()} has been restored from {source}")
    if settings.database_url is not None:
        typer.echo(_POSTGRES_NOTE.format(command="restore the dump"), err=True)


def _copy_database(path: Path, target: Path) -> None:
    """Copies the database as of one moment, while it may be written to. Raises `StoreError`."""
    try:
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(target)) as copy:
            live.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be copied to {target}: {error}", agent_id="store") from error
    target.chmod(0o600)


def _copy_files(source: Path, target: Path, settings: Settings) -> None:
    """Copies everything but the database."""
    ignored = shutil.ignore_patterns(*_NOT_COPIED, *_list_derived_folders(settings))
    names = {settings.database_path.name + ending for ending in ("", "-wal", "-shm")}

    def left_out(folder: str, entries: list[str]) -> set[str]:
        if Path(folder) != source:
            return set()
        return ignored(folder, entries) | (names & set(entries))

    try:
        _unlink_replaced(source, target, left_out)
        shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True, symlinks=True)
    except OSError as error:
        failures = error.args[0] if isinstance(error, shutil.Error) else [(source, target, str(error))]
        # What has gone since its folder was listed is no failure: a running gateway removes temporary files.
        remaining = [why for path, _, why in failures if os.path.lexists(path)]
        if remaining:
            raise StoreError(f"{source} cannot be copied to {target}: {remaining[0]}", agent_id="store") from error


def _unlink_replaced(source: Path, target: Path, left_out: Callable[[str, list[str]], set[str]]) -> None:
    """Removes the files and links of the target that a link of the source replaces: copying fails at them."""
    for folder, folders, files in os.walk(source):
        ignored = left_out(folder, [*folders, *files])
        folders[:] = [name for name in folders if name not in ignored]
        for name in (*folders, *files):
            link = Path(folder, name)
            replaced = target / link.relative_to(source)
            if name not in ignored and link.is_symlink() and (replaced.is_symlink() or replaced.is_file()):
                replaced.unlink()


def _list_derived_folders(settings: Settings) -> list[str]:
    """The folders that features make from the database; those of features that are off too."""
    targets = [one.derived_folders for one in load_features(settings.features).known if one.derived_folders is not None]
    return [folder for target in targets for folder in import_target(target)]


def _check_database(saved: Path) -> None:
    """Raises `StoreError` for a damaged database."""
    try:
        with closing(sqlite3.connect(f"{saved.as_uri()}?mode=ro", uri=True)) as connection:
            (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.Error as error:
        problem = str(error)
    if problem != "ok":
        raise StoreError(f"{saved} is damaged ({problem}); nothing was changed: use another backup", agent_id="store")


def _replace_database(path: Path, saved: Path) -> Path | None:
    """Puts a copy of the saved database in place of the current one. Returns the folder to which that one was moved.

    Raises `StoreError` if there is no room for the copy or a file cannot be moved, and `ConflictError` while a process
    has the database open; nothing was changed then.
    """
    draft = path.with_name(f"{path.name}.restored")
    try:
        draft.unlink(missing_ok=True)
        _copy_database(saved, draft)  # also what is only in the write-ahead log of the saved one yet
        aside = _move_database_aside(path)
        try:
            draft.replace(path)
        except OSError:
            if aside is not None:
                _move_database_back(aside, path)
            raise
    except OSError as error:
        raise StoreError(f"{saved} cannot be copied to {path}: {error.strerror}", agent_id="store") from error
    finally:
        draft.unlink(missing_ok=True)
    return aside


def _move_database_aside(path: Path) -> Path | None:
    """Moves the database and its write-ahead log away: SQLite would apply that log to the restored file.

    Raises `ConflictError` while a process has it open. If a file cannot be moved, those moved before it are put back.
    """
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")  # needs exclusive access and merges the write-ahead log
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise ConflictError(
                f"{path} is in use: stop the gateway first, and every other program that uses it"
            ) from error
        # A damaged database is a reason to restore.
    aside = path.parent / datetime.now(UTC).strftime("replaced-%Y%m%dT%H%M%S%fZ")
    aside.mkdir(mode=0o700)
    try:
        for part in _list_database_files(path):
            part.rename(aside / part.name)
    except OSError:
        _move_database_back(aside, path)
        raise
    return aside


def _move_database_back(aside: Path, path: Path) -> None:
    """Undoes `_move_database_aside`. Raises `StoreError`, which names both places, if a file cannot be moved back."""
    try:
        for part in _list_database_files(aside / path.name):
            part.rename(path.with_name(part.name))
        aside.rmdir()
    except OSError as error:
        raise StoreError(
            f"nothing was restored, and the current database is in {aside}: move its files back to {path.parent} before"
            f" you start the gateway ({error.strerror})",
            agent_id="store",
        ) from error


def _list_database_files(path: Path) -> list[Path]:
    """The files of a database that exist: its own and those of its write-ahead log."""
    return [part for ending in ("", "-wal", "-shm") if (part := path.with_name(path.name + ending)).exists()]

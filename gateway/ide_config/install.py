"""Writes Stepgate's entry into a client's file."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.core.atomic_write import write_atomically
from agent.core.errors import ConfigError
from agent.core.models import JsonObject
from gateway.ide_config.clients import Entry, IdeClient
from gateway.ide_config.json_edit import MalformedJsonError, append_entry, is_blank, read_member, set_member

MAX_BYTES = 50_000_000
"""Claude Code keeps its history in the same file, which grows to some megabytes."""
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class InstallResult:
    """The outcome for the file."""

    path: Path
    outcome: Literal["added", "replaced", "unchanged"]


def install_entry(client: IdeClient, path: Path, name: str, entry: Entry, *, force: bool = False) -> InstallResult:
    """Adds the entry `name`, and changes nothing else in the file.

    Raises `ConfigError` if the file cannot be read as the client reads it, or has another entry of this name and not
    `force`; the file is untouched then.
    """
    path = path.resolve()  # a link into a folder of dotfiles stays a link
    old = _read(path)
    text = old.removeprefix(_BYTE_ORDER_MARK)
    mark = old[: len(old) - len(text)]
    if is_blank(text, comments=client.comments):  # an editor may save an empty file with a line end
        text = f"{text.rstrip()}\n{{}}\n".lstrip()
    wanted = client.build(entry)
    by_hand = f"add the entry by hand: `stepgate mcp install {client.name} --print`"
    try:
        member = read_member(text, (*client.path, name), comments=client.comments)
        if member is not None and member != wanted and not force:
            raise ConfigError(f"{path} has another server named {name!r}; --force replaces it, --name adds another")
        changed = mark + _edit(client, text, name, entry, wanted)
    except MalformedJsonError as error:
        raise ConfigError(
            f"{path} is not in the form that {client.title} reads, so it was not changed: {error}. "
            f"Correct it, or {by_hand}"
        ) from error
    if changed == old:
        return InstallResult(path, "unchanged")
    if path.exists() and not _is_writable(path):
        raise ConfigError(f"{path} is read-only, so it was not changed. Make it writable, or {by_hand}")
    _write(path, changed)
    return InstallResult(path, "added" if member is None else "replaced")


def _edit(client: IdeClient, text: str, name: str, entry: Entry, wanted: JsonObject) -> str:
    if read_member(text, (*client.path, name), comments=client.comments) != wanted:
        text = set_member(text, (*client.path, name), wanted, comments=client.comments)
    inputs = client.inputs(entry)
    if inputs is None:
        return text
    member = read_member(text, ("inputs",), comments=client.comments)
    if isinstance(member, list) and any(isinstance(one, dict) and one.get("id") == inputs["id"] for one in member):
        return text
    return append_entry(text, ("inputs",), inputs, comments=client.comments)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES:,} bytes")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text, so it was not changed") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _is_writable(path: Path) -> bool:
    """Whether the file itself may be changed. A new file in its place would not ask that, and root is never refused."""
    return bool(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)) and os.access(path, os.W_OK)

"""Programs that rooms start: MCP servers with a `command`. A program runs with the rights of the gateway's user, so
that adding one is a privilege of the machine's owner.

Who types commands on the machine adds them without a question. A key with the scope `admin`, or any caller where
`AGENT_ALLOW_PROGRAMS` says so, adds them once a person has seen the command; others learn what to type.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.errors import RequestError, ScopeError
from agent.core.models import Room
from gateway.features.studio.engine.room_view import Editor

MAX_COMMAND_CHARS = 4_000
"""The longest command line that is printed to be typed; a terminal's line holds 4,096."""


@dataclass(frozen=True, slots=True)
class RoomProgram:
    """A program that a room would start, without the values of its environment."""

    server: str
    command: str
    args: tuple[str, ...]
    env: tuple[str, ...]
    secret_env: tuple[str, ...]


class ProgramsRefusedError(ScopeError):
    """Raised for a caller who may not add programs. The message has the command line for the machine's owner."""


class ProgramsNeedApprovalError(RequestError):
    """Raised for a caller who may add these programs once a person has allowed them. Nothing was changed. Unlike
    `ProgramsRefusedError`, its raiser's caller asks.
    """

    code = "ERR_SCOPE"

    def __init__(self, programs: Iterable[RoomProgram]) -> None:
        self.programs = tuple(programs)
        names = ", ".join(program.server for program in self.programs)
        super().__init__(f"a person must allow that the room starts programs: {names}", agent_id="studio")


def list_new_programs(before: Room | None, after: Room) -> list[RoomProgram]:
    """The programs of `after` that `before` does not start in exactly the same way."""
    former_servers = {} if before is None else before.mcp_servers
    return [
        RoomProgram(name, server.command, server.args, tuple(server.env), tuple(server.secret_env))
        for name, server in after.mcp_servers.items()
        if server.command
        and (
            name not in former_servers
            or (server.command, server.args, server.env, server.secret_env)
            != (
                former_servers[name].command,
                former_servers[name].args,
                former_servers[name].env,
                former_servers[name].secret_env,
            )
        )
    ]


def check_programs(before: Room | None, after: Room, editor: Editor, command: str) -> None:
    """Raises `ProgramsRefusedError` or `ProgramsNeedApprovalError` for programs that the editor may not add without
    more ado. `command` is the command line that makes the same change.
    """
    programs = [] if editor.programs == "allowed" else list_new_programs(before, after)
    if not programs:
        return
    if editor.programs == "ask":
        raise ProgramsNeedApprovalError(programs)
    names = ", ".join(program.server for program in programs)
    raise ProgramsRefusedError(
        f"mcp_servers ({names}): starting a program is a privilege of the owner of the gateway's machine, and this "
        f"call has no API key with the scope 'admin'. Type there: {command}\nOr use such a key, or set "
        "AGENT_ALLOW_PROGRAMS=true: a person is then asked about the command",
        scope="admin",
        command=command,
    )


def format_create_command(room_id: str, fields: Mapping[str, Any]) -> str:
    """The command line that creates a room."""
    others = {name: value for name, value in fields.items() if name not in ("name", "owner") and value is not None}
    name = str(fields.get("name", room_id))
    line = _join("rooms", "create", "--id", room_id, "--", name, *_format_fields(others))
    if line:
        return line
    later = format_edit_command(room_id, {"mcp_servers": others.get("mcp_servers")})
    return f"{later} (once the room is created without these servers)"


def format_edit_command(room_id: str, changes: Mapping[str, Any]) -> str:
    """The command line that changes fields of a room."""
    line = _join("rooms", "edit", "--", room_id, *_format_fields(changes))
    return line or f"stepgate rooms edit {room_id} --file FILE (with these servers in the file)"


def format_copy_command(source_id: str, room_id: str, name: str) -> str:
    """The command line that copies a room."""
    return _join("rooms", "copy", "--id", room_id, "--name", name, "--", source_id)


def format_restore_command(room_id: str, revision: int) -> str:
    """The command line that gives a room an earlier text."""
    return _join("rooms", "restore", "--", room_id, str(revision))


def _format_fields(fields: Mapping[str, Any]) -> list[str]:
    return [f"{name}={_format_field(name, value)}" for name, value in fields.items()]


def _format_field(name: str, value: Any) -> str:
    """A value as `stepgate rooms` reads it: the text of a text field as it is, any other value as YAML, of
    which JSON is a part.
    """
    if value is None:
        return ""
    model_field = Room.model_fields.get(name)
    is_text = model_field is not None and model_field.annotation in (str, str | None)
    return value if is_text and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _join(*words: str) -> str:
    """The command line; "" for one that cannot be typed."""
    line = shlex.join(("stepgate", *words))
    return line if len(line) <= MAX_COMMAND_CHARS and line.isprintable() else ""

"""Privileges of the machine's owner that rooms may use: start programs, which run with the rights of the gateway's
user, and send a stored credential to an address that the operator has not named.

Who types commands on the machine adds these without a question. A key with the scope `admin` adds them once a person
has seen the command, or the credential and the address; so do callers without a key, programs only where
`AGENT_ALLOW_PROGRAMS` says so. Others learn what to type.
"""

import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.errors import RequestError, ScopeError
from agent.core.models import Room, RoomServer
from agent.storage.secret_places import is_below
from gateway.features.studio.engine.room_view import Editor

MAX_COMMAND_CHARS = 4_000
"""The longest command line that is printed to be typed; a terminal's line holds 4,096."""

Pairing = tuple[str, str]
"""The name of a credential, and the address to which it is sent."""


@dataclass(frozen=True, slots=True)
class RoomProgram:
    """A program that a room would start, without the values of its environment. `secret_env` names the credentials."""

    server: str
    command: str
    args: tuple[str, ...]
    env: tuple[str, ...]
    secret_env: tuple[Pairing, ...]


@dataclass(frozen=True, slots=True)
class RoomPairing:
    """A stored credential that a room would send to an address."""

    server: str
    credential: str
    url: str


@dataclass(frozen=True, slots=True)
class RoomPrivileges:
    """What a change of a room would add that needs the machine's owner."""

    programs: tuple[RoomProgram, ...] = ()
    pairings: tuple[RoomPairing, ...] = ()

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers that it is about."""
        programs, pairings = (one.server for one in self.programs), (one.server for one in self.pairings)
        return tuple(dict.fromkeys((*programs, *pairings)))


class PrivilegesRefusedError(ScopeError):
    """Raised for a caller who may not add them. The message has the command line for the machine's owner."""


class PrivilegesNeedApprovalError(RequestError):
    """Raised for a caller who may add them once a person has allowed exactly these. Nothing was changed. Unlike
    `PrivilegesRefusedError`, its raiser's caller asks.
    """

    code = "ERR_SCOPE"

    def __init__(self, privileges: RoomPrivileges) -> None:
        self.privileges = privileges
        names = ", ".join(privileges.servers)
        super().__init__(f"a person must allow what the room's servers would do: {names}", agent_id="studio")


def check_privileges(
    before: Room | None,
    after: Room,
    editor: Editor,
    command: str,
    *,
    find_place: Callable[[str], str | None],
    known: Collection[Pairing],
) -> None:
    """Raises `ScopeError` for servers that the editor may not connect, `PrivilegesRefusedError` and
    `PrivilegesNeedApprovalError` for what the editor may not add without more ado.

    `command` is the command line that makes the same change, `find_place` the address in a credential, `known` what
    rooms send already.
    """
    added = dict(_list_new_servers(before, after))
    if added and not editor.may_connect:
        raise ScopeError(
            f"mcp_servers ({', '.join(added)}): connecting a server is the work of the tool 'mcp_server_add', which "
            "this caller may not use",
            tool="mcp_server_add",
        )
    programs = () if editor.programs == "allowed" else tuple(_list_new_programs(before, after))
    new_pairings = _list_new_pairings(before, after, find_place, known)
    pairings = () if editor.pairings == "allowed" else new_pairings
    privileges = RoomPrivileges(programs, pairings)
    if not privileges.servers:
        return
    may_ask = (not programs or editor.programs == "ask") and (not pairings or editor.pairings == "ask")
    if may_ask:
        raise PrivilegesNeedApprovalError(privileges)
    what = "starting a program" if programs and editor.programs == "refused" else "sending a stored credential there"
    remedy = (
        "set AGENT_ALLOW_PROGRAMS=true: a person is then asked about the command"
        if programs and editor.programs == "refused"
        else "write the address into the credential as its `url`"
    )
    raise PrivilegesRefusedError(
        f"mcp_servers ({', '.join(privileges.servers)}): {what} is a privilege of the owner of the gateway's machine, "
        f"and this call has no API key with the scope 'admin'. Type there: {command}\nOr use such a key, or {remedy}",
        scope="admin",
        command=command,
    )


def list_pairings(room: Room) -> Iterator[Pairing]:
    """Yields which credentials a room sends where."""
    for server in room.mcp_servers.values():
        if server.url and server.credential is not None:
            yield server.credential, server.url


def _list_new_servers(before: Room | None, after: Room) -> Iterator[tuple[str, RoomServer]]:
    """Yields the servers of `after` that `before` does not have in exactly the same way."""
    former_servers = {} if before is None else before.mcp_servers
    yield from ((name, server) for name, server in after.mcp_servers.items() if former_servers.get(name) != server)


def _list_new_programs(before: Room | None, after: Room) -> Iterator[RoomProgram]:
    """Yields the programs of `after` that `before` does not start in exactly the same way."""
    former_servers = {} if before is None else before.mcp_servers
    for name, server in _list_new_servers(before, after):
        former = former_servers.get(name)
        if server.command and (former is None or _get_program(former) != _get_program(server)):
            secret_env = tuple(server.secret_env.items())
            yield RoomProgram(name, server.command, server.args, tuple(server.env), secret_env)


def _get_program(server: RoomServer) -> tuple[object, ...]:
    return server.command, server.args, server.env, server.secret_env


def _list_new_pairings(
    before: Room | None,
    after: Room,
    find_place: Callable[[str], str | None],
    known: Collection[Pairing],
) -> tuple[RoomPairing, ...]:
    """The pairings that no room has yet and that the credential's own address does not allow. Raises `ScopeError` for
    a credential that goes to another address only.
    """
    former = frozenset() if before is None else frozenset(list_pairings(before))
    new_pairings: list[RoomPairing] = []
    for name, server in _list_new_servers(before, after):
        pairing = (server.credential or "", server.url)
        if server.credential is None or not server.url or pairing in former:
            continue
        place = find_place(server.credential)
        if place is not None and not is_below(server.url, place):
            raise ScopeError(
                f"mcp_servers.{name}: the credential {server.credential!r} is sent only to the address in its `url` "
                "in the credentials file",
                scope="admin",
            )
        if place is None and pairing not in known:
            new_pairings.append(RoomPairing(name, server.credential, server.url))
    return tuple(new_pairings)


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

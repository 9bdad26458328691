"""Rules for the MCP servers of a room: their names and addresses, who may start programs and name credentials.

A program runs on the gateway's machine with its user's rights. So only shared rooms have programs: those that the
operator, or a caller with the scope `admin` and the owner `local`, has edited.
"""

import json
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from agent.core.models import LOCAL_OWNER, Room, RoomServer, ToolOverrides
from agent.policy.guardrails.secrets import SecretScanner
from agent.storage.credentials import may_use_credential
from agent.storage.secret_places import LOOPBACK_HOSTS

MAX_SERVERS = 10
"""Each one is a connection, and perhaps a process, that lives as long as the gateway."""
MAX_VALUES, MAX_VALUE_CHARS = 100, 4_096
"""Of arguments, of environment variables, and of tools that are named; characters of each."""
_NAME = re.compile(r"[a-z](?:[a-z0-9_-]{0,22}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_SCANNER = SecretScanner()


def find_server_problems(room: Room) -> Iterator[str]:
    """Yields what is wrong with the servers of a room, one line each."""
    if len(room.mcp_servers) > MAX_SERVERS:
        yield f"mcp_servers: there are {len(room.mcp_servers)}; at most {MAX_SERVERS} are allowed"
    for name, server in room.mcp_servers.items():
        where = f"mcp_servers.{name[:40]}"
        if not _NAME.fullmatch(name) or "__" in name:
            yield f"{where}: use 1 to 24 of the characters a-z, 0-9, '-' and single '_', beginning with a letter"
        for problem in (*_find_target_problems(room, server), *_find_value_problems(server)):
            yield f"{where}.{problem}"
        for credential in server.list_credentials():
            if not may_use_credential(room.owner, credential):
                yield (
                    f"{where}: the credential {credential[:80]!r} does not belong to {room.owner!r}; the operator can "
                    f"store one named {room.owner}/NAME"
                )


def _find_target_problems(room: Room, server: RoomServer) -> Iterator[str]:
    if bool(server.url) == bool(server.command):
        yield "url: give either a `url` or a `command`"
        return
    if server.command:
        if room.owner != LOCAL_OWNER:
            yield "command: only shared rooms start programs; use a `url`, or ask the operator"
        if server.credential is not None:
            yield "credential: it is sent to a `url`; give it to a `command` by `secret_env`"
        return
    if server.args or server.env or server.secret_env:
        yield "args, env and secret_env are for a `command`"
    parts = _split_url(server.url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        yield "url: it must begin with http:// or https:// and a host"
    elif parts.username is not None or parts.password is not None:
        yield "url: it holds a user name or password; name a `credential`"
    elif server.credential is not None and parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        yield "url: it must begin with https://, because a credential is sent there"


def _find_value_problems(server: RoomServer) -> Iterator[str]:
    if server.allow is not None and server.tools.allow is not None:
        yield "allow: it is also in `tools`; give it once"
    for field, values in (
        ("args", server.args),
        ("env", (*server.env, *server.env.values())),
        ("secret_env", (*server.secret_env, *server.secret_env.values())),
        ("allow", server.allow or ()),
        ("deny", server.deny),
        ("url", (server.url,)),
        ("command", (server.command,)),
        *_list_override_texts(server.tools),
    ):
        if len(values) > MAX_VALUES or any(len(value) > MAX_VALUE_CHARS or "\x00" in value for value in values):
            yield f"{field}: at most {MAX_VALUES} values of {MAX_VALUE_CHARS:,} characters, without null characters"
    for field, texts in (
        ("env", [f"{name}={value}" for name, value in server.env.items()]),
        ("args", [" ".join(server.args)]),
        ("url", [server.url]),
        ("tools.defaults", [json.dumps(args, ensure_ascii=False) for args in server.tools.defaults.values()]),
        ("tools.describe", [*server.tools.describe.values()]),
    ):
        if any(next(_SCANNER.find_spans(text), None) is not None for text in texts):
            yield f"{field}: it seems to hold a secret; store it as a credential, and name that"
    for name in (*server.env, *server.secret_env):
        if not _VARIABLE.fullmatch(name):
            yield f"env: {name[:80]!r} is not the name of an environment variable"


def _list_override_texts(tools: ToolOverrides) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the texts of a server's `tools` by their keys, for the limits."""
    yield "tools.allow", tools.allow or ()
    yield "tools.deny", tools.deny
    yield "tools.approve", () if isinstance(tools.approve, bool) else tools.approve
    yield "tools.open_world", tools.open_world if isinstance(tools.open_world, tuple) else ()
    yield "tools.arguments", tuple(tools.arguments)
    for key, texts in (("rename", tools.rename), ("describe", tools.describe)):
        yield f"tools.{key}", (*texts, *texts.values())
    yield "tools.defaults", (*tools.defaults, *(json.dumps(args) for args in tools.defaults.values()))


def _split_url(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None

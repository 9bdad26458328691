"""`mcp_servers.json`: other people's MCP servers, in the forms people already have them."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.core.errors import ConfigError

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_URL = re.compile(r"https?://[^/?#\s]+")
_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,22}[A-Za-z0-9])?")
MAX_NAME = 24
"""Tool names have at most 48 characters; the tool's own part needs its half."""
_TRANSPORTS = {
    "stdio": "stdio", "http": "http", "streamablehttp": "http", "streamable-http": "http", "streamable_http": "http",
    "sse": "sse",
}  # fmt: skip


class ToolFilter(BaseModel):
    """Which of a server's tools are mounted."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def admits(self, name: str) -> bool:
        """Whether a tool of this name is mounted."""
        return name not in self.deny and (self.allow is None or name in self.allow)


class McpServerConfig(BaseModel):
    """One server. Unknown keys are ignored: other programs keep theirs in the same file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    transport: Literal["stdio", "http", "sse"]
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = Field(default_factory=dict)
    disabled: bool = False
    timeout: float = Field(default=60, gt=0, le=3600, description="time limit of a call in seconds")
    trusted: bool = Field(default=False, description="believe its read-only and idempotent hints")
    tools: ToolFilter = ToolFilter()

    @model_validator(mode="before")
    @classmethod
    def _known_forms(cls, data: Any) -> Any:
        """`type` in any spelling; a bare `url` is HTTP, a bare `command` stdio."""
        if not isinstance(data, dict):
            return data
        given = str(data.get("type") or data.get("transport") or "").lower()
        if given and given not in _TRANSPORTS:
            raise ValueError(f"unknown type {given!r}; known: stdio, http, sse")
        url = data.get("url") or data.get("serverUrl")
        transport = _TRANSPORTS.get(given) or ("http" if url else "stdio")
        if transport == "stdio" and not data.get("command"):
            raise ValueError("needs a `command` (stdio) or a `url` (http)")
        if transport != "stdio" and not _URL.match(str(url or "")):
            raise ValueError("its `url` must begin with http:// or https:// and a host")
        return {**data, "transport": transport, "url": url or ""}


def read_servers(
    path: Path, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, McpServerConfig], list[str]]:
    """The servers of a file by name, and a line for each entry that cannot be used. No file: no servers.

    Accepts `{"mcpServers": {...}}`, VS Code's `{"servers": {...}}`, or the map itself. `ConfigError` for a file
    that is no JSON object."""
    if not path.is_file():
        return {}, []
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, OSError) as error:
        raise ConfigError(f"AGENT_MCP_SERVERS: {path} is no valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f'AGENT_MCP_SERVERS: {path} must hold {{"mcpServers": {{...}}}}')
    entries = data.get("mcpServers", data.get("servers", data))
    servers: dict[str, McpServerConfig] = {}
    problems: list[str] = []
    for name, entry in (entries if isinstance(entries, dict) else {}).items():
        try:
            expanded = expand(entry, os.environ if environment is None else environment)
            servers[str(name)] = McpServerConfig.model_validate(expanded)
        except KeyError as error:
            problems.append(f"MCP server {name!r}: the environment has no {error.args[0]}")
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(str(part) for part in fault["loc"])
            told = fault["msg"].removeprefix("Value error, ")
            problems.append(f"MCP server {name!r}: {where + ': ' if where else ''}{told}")
    return servers, problems


def expand(value: Any, environment: Mapping[str, str]) -> Any:
    """`${NAME}`, `${NAME:-default}` and `${env:NAME}` filled in everywhere. KeyError for a name that is not set."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match, environment), value)
    if isinstance(value, list):
        return [expand(item, environment) for item in value]
    if isinstance(value, dict):
        return {key: expand(item, environment) for key, item in value.items()}
    return value


def add_server(path: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> None:
    """Add one server to the file, keeping the rest. Raises `ConfigError` for an entry that is none, for a name that
    cannot stand before `__tool`, and, unless it may `replace` it, for a name that is taken."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise ConfigError(
            f"MCP server {name!r}: its tools become name__tool: the name must begin with a letter, and have at most "
            f"{MAX_NAME} letters, digits, single `_` and `-`"
        )
    try:
        McpServerConfig.model_validate(dict(entry))
    except ValidationError as error:
        raise ConfigError(f"MCP server {name!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from error
    data, entries = _file(path)
    taken = next((other for other in entries if _mounted(other) == _mounted(name)), None)
    if taken is not None and (taken != name or not replace):
        remedy = "--force replaces it" if taken == name else "both would offer the same tool names; choose another"
        raise ConfigError(f"MCP server {name!r}: {path} has {taken!r} already; {remedy}")
    entries[name] = dict(entry)
    _write(path, data)


def remove_server(path: Path, name: str) -> None:
    """Take one server out of the file, keeping the rest. Raises `ConfigError` when it is not there."""
    data, entries = _file(path)
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f"there is no MCP server {name!r} in {path}; known: {known}")
    del entries[name]
    _write(path, data)


def _file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file as it is, and the map of servers in it. A file that cannot be read must not be overwritten."""
    read_servers(path)
    data: dict[str, Any] = json.loads(path.read_text("utf-8-sig")) if path.is_file() else {}
    key = next((key for key in ("mcpServers", "servers") if key in data), None)
    if key is None and data:
        return data, data  # the map itself
    entries = data.setdefault(key or "mcpServers", {})
    if not isinstance(entries, dict):
        raise ConfigError(f"AGENT_MCP_SERVERS: {path}: {key} must hold one object a server")
    return data, entries


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(path)


def _mounted(name: str) -> str:
    """What a name is in the names of tools."""
    return name.lower().replace("-", "_")


def _variable(match: re.Match[str], environment: Mapping[str, str]) -> str:
    value = environment.get(match["name"])
    if value:
        return value
    if match["default"] is not None:
        return match["default"]
    if value is None:
        raise KeyError(match["name"])
    return value

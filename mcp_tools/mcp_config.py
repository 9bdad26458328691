"""`mcp_servers.json`: other people's MCP servers, in the forms people already have them."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from agent.core.errors import ConfigError
from mcp_tools.pins import PinPolicy
from mcp_tools.tool_choice import ToolChoice

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_URL = re.compile(r"https?://[^/?#\s]+")
_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,22}[A-Za-z0-9])?")
MAX_NAME = 24
"""Tool names have at most 48 characters; the tool's own part needs its half."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TRANSPORTS = {
    "stdio": "stdio", "http": "http", "streamablehttp": "http", "streamable-http": "http", "streamable_http": "http",
    "sse": "sse",
}  # fmt: skip


class OAuthClient(BaseModel):
    """A client that was registered with the authorization server by hand, for servers that register none themselves;
    and where the browser is sent back to."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    client_id: str | None = Field(default=None, validation_alias=AliasChoices("client_id", "clientId"))
    client_secret: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("client_secret", "clientSecret")
    )
    port: int | None = Field(
        default=None, ge=1, le=65535, validation_alias=AliasChoices("port", "callbackPort", "callback_port")
    )


class McpServerConfig(BaseModel):
    """One server. Unknown keys are ignored: other programs keep theirs in the same file."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

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
    tools: ToolChoice = ToolChoice()
    pin: PinPolicy | None = Field(default=None, description="instead of AGENT_MCP_PIN, for this server")
    auth: Literal["static", "oauth"] = Field(
        default="static",
        description="static: by `headers`, `env`, `credential`; oauth: as `stepgate mcp-servers login` has logged in",
    )
    credential: str | None = Field(
        default=None, min_length=1, description="name of a bearer token in AGENT_CREDENTIALS_FILE"
    )
    oauth: OAuthClient = OAuthClient()
    idle_stop: float | None = Field(
        default=None, gt=0, description="seconds without a call after which a stdio server is stopped until the next"
    )

    @property
    def unheeded(self) -> tuple[str, ...]:
        """Keys that ask for what is not done here: nobody shall believe that it is."""
        if self.idle_stop is None or self.transport == "stdio":
            return ()
        return ("idle_stop is for servers that a `command` starts; this one is somebody else's to stop",)

    @field_validator("auth", mode="before")
    @classmethod
    def _of_nobody_else(cls, auth: Any) -> Any:
        """What a caller proves to us is for us: it is never handed on."""
        if auth == "user":
            raise ValueError(
                "auth: user is not supported: a caller's own token is never passed on; use static (`headers`, `env`, "
                "`credential`), or oauth with `stepgate mcp-servers login`"
            )
        if auth not in ("static", "oauth"):
            raise ValueError("auth may be static or oauth; a token belongs into `headers` or a `credential`")
        return auth

    @model_validator(mode="after")
    def _of_one_proof(self) -> "McpServerConfig":
        """One way to say who we are, and none that others can read on the way."""
        ways = {
            "headers.Authorization": any(name.lower() == "authorization" for name in self.headers),
            "credential": self.credential is not None,
            "auth: oauth": self.auth == "oauth",
        }
        if sum(ways.values()) > 1:
            raise ValueError(f"{' and '.join(name for name, used in ways.items() if used)} exclude each other")
        if self.transport == "stdio" and (ways["credential"] or ways["auth: oauth"]):
            raise ValueError("credential and oauth are for servers with a `url`; give a `command` its keys by `env`")
        if (ways["credential"] or ways["auth: oauth"]) and not is_private_way(self.url):
            raise ValueError("its `url` must begin with https://, for a token is sent there")
        return self

    @field_validator("pin", mode="before")
    @classmethod
    def _other_words(cls, pin: Any) -> Any:
        """`block` is what every pin does: what has changed is not used until a person has looked at it."""
        if pin == "warn":
            raise ValueError("warn is not supported: a tool that has changed is never used unseen; use first_use")
        return "first_use" if pin == "block" else pin

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
        return {**data, **_logged_in(data), "transport": transport, "url": url or ""}


def _logged_in(data: Mapping[str, Any]) -> dict[str, Any]:
    """`auth` as an object with the client that was registered by hand, as Cursor has it, in our words."""
    auth = data.get("auth")
    if not isinstance(auth, dict):
        return {}
    client = {str(key).lower(): value for key, value in auth.items() if value}
    return {"auth": "oauth", "oauth": {**client, **(data.get("oauth") or {})}}


def is_private_way(url: str) -> bool:
    """Whether what is sent to this address can be read by nobody on the way: by TLS, or within this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def read_servers(
    path: Path, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, McpServerConfig], list[str]]:
    """The servers of a file by name, and a line for each entry that cannot be used, or not as it asks. No file: no
    servers.

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
            servers[str(name)] = config = McpServerConfig.model_validate(expanded)
            problems += [f"MCP server {name!r}: {line}" for line in config.unheeded]
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

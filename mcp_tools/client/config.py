"""`mcp_servers.json`: the configured MCP servers, in the formats that other clients use too."""

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

from agent.core.atomic_write import write_atomically
from agent.core.errors import ConfigError
from agent.core.models import LOCAL_OWNER, ToolOverrides
from agent.core.value_faults import describe_first_fault
from mcp_tools.client.entry_dialects import MAX_LIMIT_S, convert_entry, find_placeholder
from mcp_tools.client.tool_pins import PinPolicy

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_URL = re.compile(r"https?://[^/?#\s]+")
_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,22}[A-Za-z0-9])?")
MAX_SERVER_NAME = 24
"""The longest server name: half of a tool name's 48 characters is left for the tool."""
COMMAND_STARTUP_S, URL_STARTUP_S = 60.0, 15.0
"""The default `startup_timeout`: a command may download its program first, a server at a URL already runs."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_TRANSPORTS = {
    "stdio": "stdio", "http": "http", "streamablehttp": "http", "streamable-http": "http", "streamable_http": "http",
    "sse": "sse",
}  # fmt: skip


class OAuthClient(BaseModel):
    """A client registered by hand at an authorization server without dynamic registration, and the callback port."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    client_id: str | None = Field(default=None, validation_alias=AliasChoices("client_id", "clientId"))
    client_secret: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("client_secret", "clientSecret")
    )
    port: int | None = Field(
        default=None, ge=1, le=65535, validation_alias=AliasChoices("port", "callbackPort", "callback_port")
    )


class McpServerConfig(BaseModel):
    """The entry of one server. Unknown keys are ignored, because other programs keep theirs in the same file."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    transport: Literal["stdio", "http", "sse"]
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = Field(default_factory=dict)
    disabled: bool = False
    timeout: float = Field(default=60, gt=0, le=MAX_LIMIT_S, description="time limit of a call in seconds")
    startup_timeout: float | None = Field(
        default=None,
        gt=0,
        le=MAX_LIMIT_S,
        description="time limit of starting, connecting and listing the tools, in seconds; default: 60 for a "
        "`command`, 15 for a `url`",
    )
    trusted: bool = Field(default=False, description="trust its read-only and idempotent hints")
    tools: ToolOverrides = ToolOverrides()
    pin: PinPolicy | None = Field(default=None, description="overrides AGENT_MCP_PIN for this server")
    auth: Literal["static", "oauth"] = Field(
        default="static",
        description="static: by `headers`, `env` or `credential`; oauth: by the login of `stepgate mcp-servers login`",
    )
    credential: str | None = Field(
        default=None, min_length=1, description="name of a bearer token in credentials.json of the data folder"
    )
    oauth: OAuthClient = OAuthClient()
    secret_env: Mapping[str, str] = Field(
        default_factory=dict, description="further environment of a `command`: the name of a bearer token for each"
    )
    room: str | None = Field(default=None, description="the only room that may use its tools; unset: every room")
    owner: str = Field(default=LOCAL_OWNER, description="who may use its tools; `local` shares them with all")
    public_only: bool = Field(
        default=False, description="connect to public addresses and those in AGENT_FETCH_ALLOW_HOSTS only"
    )
    idle_stop: float | None = Field(
        default=None,
        gt=0,
        description="seconds without a call after which a stdio server is stopped until the next call",
    )

    @property
    def startup_limit_s(self) -> float:
        """The time limit of starting, in seconds."""
        return self.startup_timeout or (COMMAND_STARTUP_S if self.transport == "stdio" else URL_STARTUP_S)

    @property
    def ignored_settings(self) -> tuple[str, ...]:
        """Messages about settings that have no effect here, so that nobody relies on them."""
        if self.idle_stop is None or self.transport == "stdio":
            return ()
        return ("idle_stop has no effect: it only stops servers that a `command` starts",)

    @field_validator("auth", mode="before")
    @classmethod
    def _check_auth(cls, auth: Any) -> Any:
        """Rejects unsupported modes. A caller's own credentials are never forwarded."""
        if auth == "user":
            raise ValueError(
                "auth: user is not supported, because a caller's token is never forwarded; use static (`headers`, "
                "`env`, `credential`), or oauth with `stepgate mcp-servers login`"
            )
        if auth not in ("static", "oauth"):
            raise ValueError("auth must be static or oauth; put a token into `headers` or a `credential`")
        return auth

    @model_validator(mode="after")
    def _check_single_credential(self) -> "McpServerConfig":
        """Allows one kind of credential, and only over a connection that nobody can read."""
        ways = {
            "headers.Authorization": any(name.lower() == "authorization" for name in self.headers),
            "credential": self.credential is not None,
            "auth: oauth": self.auth == "oauth",
        }
        if sum(ways.values()) > 1:
            raise ValueError(f"{' and '.join(name for name, used in ways.items() if used)} cannot be combined")
        if self.transport == "stdio" and (ways["credential"] or ways["auth: oauth"]):
            raise ValueError("credential and oauth need a `url`; pass keys to a `command` by `env`")
        if (ways["credential"] or ways["auth: oauth"]) and not is_confidential_url(self.url):
            raise ValueError("its `url` must start with https://, because a token is sent there")
        return self

    @field_validator("pin", mode="before")
    @classmethod
    def _normalize_pin(cls, pin: Any) -> Any:
        """Converts `block` of other clients: every policy here blocks a changed tool until a person has reviewed it."""
        if pin == "warn":
            raise ValueError(
                "warn is not supported, because a changed tool is never used before a review; use first_use"
            )
        return "first_use" if pin == "block" else pin

    @model_validator(mode="before")
    @classmethod
    def _normalize_transport(cls, data: Any) -> Any:
        """Accepts any spelling of `type`. An entry with only a `url` is HTTP, one with only a `command` is stdio."""
        if not isinstance(data, dict):
            return data
        given = str(data.get("type") or data.get("transport") or "").lower()
        if given and given not in _TRANSPORTS:
            raise ValueError(f"unknown type {given!r}; known: stdio, http, sse")
        data = convert_entry(data)
        url = data["url"]
        transport = _TRANSPORTS.get(given) or ("http" if url else "stdio")
        if transport == "stdio" and not data.get("command"):
            raise ValueError("needs a `command` (stdio) or a `url` (http)")
        if transport != "stdio" and not _URL.match(str(url)):
            raise ValueError("its `url` must start with http:// or https:// and a host")
        is_off = data.get("disabled") or data.get("enabled", True) is False  # as other programs switch it off
        read = {"transport": transport, "disabled": is_off or False}
        return {**data, **_convert_auth_object(data), **read}


def _convert_auth_object(data: Mapping[str, Any]) -> dict[str, Any]:
    """Converts `auth` as an object with a registered client (Cursor's format) to our keys."""
    auth = data.get("auth")
    if not isinstance(auth, dict):
        return {}
    client = {str(key).lower(): value for key, value in auth.items() if value}
    return {"auth": "oauth", "oauth": {**client, **(data.get("oauth") or {})}}


def is_confidential_url(url: str) -> bool:
    """Whether nobody on the way can read requests to this URL: TLS, or a loopback address."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def read_servers(
    path: Path, environment: Mapping[str, str] | None = None
) -> tuple[dict[str, McpServerConfig], list[str]]:
    """The servers of a file by name, and a message for each entry that cannot be used as written.

    A missing file means no servers. Accepts `{"mcpServers": {...}}`, VS Code's `{"servers": {...}}`, or the map itself.
    Raises `ConfigError` for a file that is not a JSON object.
    """
    servers: dict[str, McpServerConfig] = {}
    problems: list[str] = []
    for name, entry in read_entries(path).items():
        if "@" in name:  # names of the servers of rooms
            problems.append(f"MCP server {name!r}: a name has no @")
            continue
        try:
            expanded = expand(entry, os.environ if environment is None else environment)
            if (placeholder := find_placeholder(expanded)) is not None:
                problems.append(
                    f"MCP server {name!r}: {placeholder} has a value in another client only; write the value, or "
                    "${NAME} for an environment variable"
                )
                continue
            servers[str(name)] = config = McpServerConfig.model_validate(expanded)
            problems += [f"MCP server {name!r}: {line}" for line in config.ignored_settings]
        except KeyError as error:
            problems.append(f"MCP server {name!r}: the environment variable {error.args[0]} is not set")
        except ValidationError as error:
            problems.append(f"MCP server {name!r}: {describe_first_fault(error, quote=False)}")
    return servers, problems


def read_entries(path: Path) -> dict[str, Any]:
    """The entries of a file as written, by name; none if there is no file. Raises `ConfigError`."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}") from error
    entries = data.get("mcpServers", data.get("servers", data)) if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        raise ConfigError(f'{path} must hold {{"mcpServers": {{"NAME": {{...}}}}}}, an entry for each server')
    return entries


def expand(value: Any, environment: Mapping[str, str]) -> Any:
    """The value with `${NAME}`, `${NAME:-default}` and `${env:NAME}` replaced. Raises `KeyError` for an
    unset name."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _expand_variable(match, environment), value)
    if isinstance(value, list):
        return [expand(item, environment) for item in value]
    if isinstance(value, dict):
        return {key: expand(item, environment) for key, item in value.items()}
    return value


def add_server(path: Path, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> None:
    """Adds a server to the file and keeps everything else in it.

    Raises `ConfigError` for an invalid entry, for a name that cannot prefix tool names, and for an existing name unless
    `replace` is set.
    """
    if not _NAME.fullmatch(name) or "__" in name:
        raise ConfigError(
            f"MCP server {name!r}: the name must start with a letter and have at most {MAX_SERVER_NAME} letters, "
            "digits, single `_` and `-`, because its tools are named name__tool"
        )
    try:
        McpServerConfig.model_validate(dict(entry))
    except ValidationError as error:
        raise ConfigError(f"MCP server {name!r}: {describe_first_fault(error, quote=False)}") from error
    data, entries = _load_file(path)
    existing = next((other for other in entries if to_tool_alphabet(other) == to_tool_alphabet(name)), None)
    if existing is not None and (existing != name or not replace):
        remedy = "--force replaces it" if existing == name else "both would have the same tool names; use another name"
        raise ConfigError(f"MCP server {name!r}: {path} has {existing!r} already; {remedy}")
    entries[name] = dict(entry)
    _write_file(path, data)


def remove_server(path: Path, name: str) -> None:
    """Removes a server from the file and keeps everything else in it. Raises `ConfigError` if it is not there."""
    data, entries = _load_file(path)
    if name not in entries:
        server_names = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f"there is no MCP server {name!r} in {path}; known: {server_names}")
    del entries[name]
    _write_file(path, data)


def _load_file(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file's content and the map of servers in it. Raises `ConfigError`, so that a broken file is not
    overwritten.
    """
    read_servers(path)
    data: dict[str, Any] = json.loads(path.read_text("utf-8-sig")) if path.is_file() else {}
    key = next((key for key in ("mcpServers", "servers") if key in data), None)
    if key is None and data:
        return data, data  # the map itself
    return data, data.setdefault(key or "mcpServers", {})


def _write_file(path: Path, data: Mapping[str, Any]) -> None:
    """Replaces the file, whose entries may hold keys. Raises `ConfigError`."""
    try:
        write_atomically(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def to_tool_alphabet(name: str) -> str:
    """A name in the alphabet of our tool names."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "x"


def _expand_variable(match: re.Match[str], environment: Mapping[str, str]) -> str:
    value = environment.get(match["name"])
    if value:
        return value
    if match["default"] is not None:
        return match["default"]
    if value is None:
        raise KeyError(match["name"])
    return value

"""Where each client keeps its MCP servers, and how an entry looks there. Sources: the clients' own documentation."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent.core.models import JsonObject

INPUT_ID: Final = "stepgate-api-key"
"""The input variable that VS Code asks for and keeps in its secret storage."""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a client reaches the gateway: by `url`, or by starting `command` in the environment `env`.

    `key_variable` names the environment variable with the API key; `key` is its value, for clients that read none.
    """

    url: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    key_variable: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class IdeClient:
    """A client. `path` is where its servers are in its file; `comments`: whether the file may have comments."""

    name: str
    title: str
    path: tuple[str, ...]
    user_file: Callable[[], Path]
    project_file: str
    """The file in a project's folder; empty if there is none."""
    next_step: str
    """The step that makes the client read its file."""
    build: Callable[[Entry], JsonObject]
    comments: bool = False
    inputs: Callable[[Entry], JsonObject | None] = lambda _: None
    """An entry of the list `inputs` of the file, for clients that ask for secrets."""
    takes_urls: bool = True
    reads_variables: bool = True
    """Whether it replaces names of environment variables by their values."""


def find_config_file(client: IdeClient, project: Path | None) -> Path | None:
    """The client's file: the user's, or that of a project; None if it has no file for projects."""
    if project is None:
        return client.user_file()
    return project / client.project_file if client.project_file else None


def _program(entry: Entry, extra: Mapping[str, JsonValue] | None = None) -> JsonObject:
    fields: JsonObject = {**(extra or {}), "command": entry.command[0], "args": [*entry.command[1:]]}
    return {**fields, "env": {**entry.env}} if entry.env else fields


def _address(entry: Entry, key: str, extra: Mapping[str, JsonValue] | None = None, *, field: str = "url") -> JsonObject:
    fields: JsonObject = {**(extra or {}), field: entry.url}
    return {**fields, "headers": {"Authorization": f"Bearer {key}"}} if entry.key_variable else fields


def _build_windsurf(entry: Entry) -> JsonObject:
    """Under `url` it reads nothing."""
    if entry.url:
        return _address(entry, f"${{env:{entry.key_variable}}}", field="serverUrl")
    return _program(entry)


def _build_gemini_cli(entry: Entry) -> JsonObject:
    """Under `url` it expects the older transport by server-sent events."""
    return _address(entry, f"${{{entry.key_variable}}}", field="httpUrl") if entry.url else _program(entry)


def _build_cursor(entry: Entry) -> JsonObject:
    return _address(entry, f"${{env:{entry.key_variable}}}") if entry.url else _program(entry)


def _build_vscode(entry: Entry) -> JsonObject:
    if entry.url:
        return _address(entry, f"${{input:{INPUT_ID}}}", {"type": "http"})
    return _program(entry, {"type": "stdio"})


def _build_vscode_input(entry: Entry) -> JsonObject | None:
    if not entry.key_variable:
        return None
    return {"type": "promptString", "id": INPUT_ID, "description": "API key of Stepgate", "password": True}


def _build_claude_code(entry: Entry) -> JsonObject:
    if entry.url:
        return _address(entry, f"${{{entry.key_variable}}}", {"type": "http"})
    return _program(entry, {"type": "stdio"})


def _build_with_key(entry: Entry) -> JsonObject:
    """For clients that read no environment variables."""
    return _address(entry, entry.key) if entry.url else _program(entry)


def _get_config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _get_application_folder() -> Path:
    """The folder in which desktop applications keep their settings."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return _get_config_home()


def _find_zed_settings() -> Path:
    if sys.platform == "win32":
        return _get_application_folder() / "Zed" / "settings.json"
    return _get_config_home() / "zed" / "settings.json"


def _find_claude_code_settings() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"


CLIENTS: Final[Mapping[str, IdeClient]] = {
    client.name: client
    for client in (
        IdeClient(
            "cursor",
            "Cursor",
            ("mcpServers",),
            lambda: Path.home() / ".cursor" / "mcp.json",
            ".cursor/mcp.json",
            "Restart Cursor; Settings, MCP shows stepgate with its tools.",
            _build_cursor,
        ),
        IdeClient(
            "vscode",
            "VS Code",
            ("servers",),
            lambda: _get_application_folder() / "Code" / "User" / "mcp.json",
            ".vscode/mcp.json",
            "In VS Code, run `MCP: List Servers` and start stepgate.",
            _build_vscode,
            comments=True,
            inputs=_build_vscode_input,
        ),
        IdeClient(
            "claude-desktop",
            "Claude Desktop",
            ("mcpServers",),
            lambda: _get_application_folder() / "Claude" / "claude_desktop_config.json",
            "",
            "Quit Claude Desktop completely and start it again.",
            _program,
            takes_urls=False,
        ),
        IdeClient(
            "claude-code",
            "Claude Code",
            ("mcpServers",),
            _find_claude_code_settings,
            ".mcp.json",
            "Start a new session of Claude Code; /mcp shows stepgate.",
            _build_claude_code,
        ),
        IdeClient(
            "zed",
            "Zed",
            ("context_servers",),
            _find_zed_settings,
            ".zed/settings.json",
            "Zed reads the file at once; the Agent Panel's settings show stepgate.",
            _build_with_key,
            comments=True,
            reads_variables=False,
        ),
        IdeClient(
            "lm-studio",
            "LM Studio",
            ("mcpServers",),
            lambda: Path.home() / ".lmstudio" / "mcp.json",
            "",
            "In a chat of LM Studio, turn on the integration mcp/stepgate; restart LM Studio if it is not listed.",
            _build_with_key,
            reads_variables=False,
        ),
        IdeClient(
            "windsurf",
            "Windsurf",
            ("mcpServers",),
            lambda: Path.home() / ".codeium" / "windsurf" / "mcp_config.json",
            "",
            "Press Refresh in the list of MCP servers of Cascade.",
            _build_windsurf,
        ),
        IdeClient(
            "gemini-cli",
            "Gemini CLI",
            ("mcpServers",),
            lambda: Path.home() / ".gemini" / "settings.json",
            ".gemini/settings.json",
            "Start Gemini CLI again; /mcp shows stepgate.",
            _build_gemini_cli,
            comments=True,
        ),
    )
}

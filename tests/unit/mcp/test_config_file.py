"""`mcp_servers.json` as it is read and changed: nothing in it is lost, ignored or shown to others."""

import json
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from mcp_tools.client.config import McpServerConfig, add_server, read_servers, remove_server

ENTRY = {"command": "npx", "env": {"TOKEN": "a secret"}}


def test_a_changed_file_keeps_its_permissions_and_a_new_one_is_private(tmp_path: Path) -> None:
    path = tmp_path / "mcp_servers.json"
    add_server(path, "one", ENTRY)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    add_server(path, "two", ENTRY)
    remove_server(path, "one")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [*json.loads(path.read_text())["mcpServers"]] == ["two"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file/mcp_servers\.json cannot be written: "):
        add_server(tmp_path / "file" / "mcp_servers.json", "one", ENTRY)


@pytest.mark.parametrize("text", ['{"mcpServers": []}', '{"servers": "npx"}', "[]"])
def test_servers_that_are_not_an_object_are_not_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"must hold .*an entry for each server"):
        read_servers(path)


def test_a_file_that_cannot_be_read_is_not_called_bad_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_text("{}")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        read_servers(path)


@pytest.mark.parametrize(
    ("entry", "is_off"),
    [
        ({"enabled": False}, True),
        ({"enabled": True}, False),
        ({"disabled": True, "enabled": True}, True),
        ({"disabled": False}, False),
        ({}, False),
    ],
)
def test_a_server_is_off_in_the_words_of_any_program(entry: dict[str, bool], is_off: bool) -> None:
    assert McpServerConfig.model_validate({"command": "x", **entry}).disabled is is_off


def read(folder: Path, entry: object, **environment: str) -> tuple[McpServerConfig | None, list[str]]:
    path = folder / "mcp_servers.json"
    path.write_text(json.dumps({"mcpServers": {"one": entry}}))
    servers, problems = read_servers(path, environment)
    return servers.get("one"), problems


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        ({"httpUrl": "https://x.test/mcp"}, "url", "https://x.test/mcp"),
        ({"serverUrl": "https://x.test/mcp"}, "url", "https://x.test/mcp"),
        ({"command": "x", "env": {"PORT": 80, "DEBUG": True, "NONE": None}}, "env", {"PORT": "80", "DEBUG": "true"}),
        ({"command": "x", "args": ["--port", 80]}, "args", ("--port", "80")),
        ({"url": "https://x.test", "headers": {"X-Team": 7}}, "headers", {"X-Team": "7"}),
        ({"command": "x", "timeout": 600_000}, "timeout", 600),
        ({"command": "x", "timeout": 90}, "timeout", 90),
        ({"command": "x", "tool_timeout_sec": 90}, "timeout", 90),
        ({"command": "x", "startup_timeout_ms": 20_000}, "startup_timeout", 20),
        ({"command": "x", "startupTimeout": 30}, "startup_timeout", 30),
    ],
)
def test_an_entry_of_another_client_is_read(tmp_path: Path, entry: object, field: str, value: object) -> None:
    config, problems = read(tmp_path, entry)
    assert problems == []
    assert getattr(config, field) == value


@pytest.mark.parametrize("text", ["${input:api-key}", "Bearer ${input:token}", "${workspaceFolder:app}/x"])
def test_a_variable_of_another_client_is_named_and_not_sent(tmp_path: Path, text: str) -> None:
    config, problems = read(tmp_path, {"url": "https://x.test/mcp", "headers": {"Authorization": text}})
    assert config is None
    assert len(problems) == 1
    assert text[text.index("$") : text.index("}") + 1] in problems[0]


def test_an_expansion_of_a_shell_stays(tmp_path: Path) -> None:
    args = ["-c", "echo ${1%.txt} ${x:=3} ${#x} ${x/a/b} ${y:2:3}"]
    config, problems = read(tmp_path, {"command": "sh", "args": args})
    assert (config is not None and list(config.args), problems) == (args, [])

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

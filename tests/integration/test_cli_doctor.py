"""`stepgate doctor`: every kind of broken, each with a reason and a remedy, and the rest looked at all the same."""

import json
import socket
import sys
from pathlib import Path
from time import monotonic

import pytest

from tests.integration.test_cli import stepgate
from tests.support import warm
from tests.support.processes import ROOT, GatewayProcess, start


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"port": "80x"}, "FAIL settings: AGENT_PORT: must be a whole number from 0 to 65535, not '80x'"),
        ({"database_url": "mysql://x"}, "FAIL settings: AGENT_DATABASE_URL: must begin with postgresql://"),
        ({"llm_base_url": "http://127.0.0.1:9/v1"}, "FAIL settings: AGENT_MODEL_FAST: name a model"),
        ({"default_room": "nope"}, "FAIL settings: AGENT_DEFAULT_ROOM: there is no room 'nope'"),
        ({"rooms_dir": "/nowhere"}, "FAIL settings: AGENT_ROOMS_DIR: /nowhere is not a folder"),
        ({"host": "192.0.2.1"}, "FAIL port: AGENT_HOST: '192.0.2.1' is not an address of this machine"),
    ],
)
def test_a_wrong_setting_is_told_and_the_rest_is_still_checked(
    tmp_path: Path, settings: dict[str, str], told: str
) -> None:
    code, output = stepgate(tmp_path, "doctor", **settings)
    assert code == 1
    lines = output.splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith(told)), None)
    assert at is not None, output
    assert lines[at + 1].startswith("       do: ")
    assert "ok   tools: " in output
    assert "ok   rooms: " in output


def test_a_running_gateway_is_not_reported_as_another_program_at_its_port(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as gateway:
        port = gateway.url.rsplit(":", 1)[1]
        _, output = stepgate(tmp_path, "doctor", port=port)
        assert f"ok   port: a Stepgate answers at {gateway.url}" in output
        assert "stop the other program" not in output
        _, output = stepgate(tmp_path, "doctor", port="0")
        assert f"is free; the gateway runs at {gateway.url}" in output
    with socket.create_server(("127.0.0.1", int(port))):  # a program that never answers
        _, output = stepgate(tmp_path, "doctor", port=port)
        assert "stop the other program, or set AGENT_PORT" in output


def test_a_data_folder_that_is_none_is_told_and_the_rest_is_still_checked(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    code, output = stepgate(tmp_path, "doctor")
    assert code == 1
    assert f"FAIL settings: the data folder {tmp_path / 'data'} cannot be created" in output
    assert "ok   skills: " in output
    assert "ok   store" not in output


def test_a_broken_file_of_servers_is_told_and_stops_no_command_that_needs_none(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mcp_servers.json").write_text("{")
    code, output = stepgate(tmp_path, "doctor")
    assert code == 1
    assert "FAIL settings: " in output
    assert "mcp_servers.json is not valid JSON" in output
    assert "ok   store" in output
    assert stepgate(tmp_path, "runs", "list") == (0, "No runs yet; start one with `stepgate ask`.")
    (tmp_path / "data" / "mcp_servers.json").unlink()
    (tmp_path / "data" / "mcp_views").mkdir()
    (tmp_path / "data" / "mcp_views" / "bad.yaml").write_text("tools: [")
    code, output = stepgate(tmp_path, "doctor")
    assert (code, "bad.yaml: not valid YAML" in output, "ok   store" in output) == (1, True, True), output


def test_redis_that_does_not_answer_is_told_with_what_to_do(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "doctor", redis_url="redis://127.0.0.1:1/0")
    assert code == 1
    assert "FAIL redis: Redis at 127.0.0.1:1 cannot be used" in output
    assert "unset AGENT_REDIS_URL" in output


def test_a_misspelt_setting_is_told_once(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "doctor", prot="1")
    assert code == 0
    assert output.count("AGENT_PROT") == 1


def test_a_line_of_env_without_a_value_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("AGENT_PORT\n")
    environment = {"AGENT_SKILLS_DIRS": "none", "PYTHONPATH": str(ROOT)}
    process = start([sys.executable, "-m", "gateway", "doctor"], environment=environment, cwd=tmp_path)
    assert process.wait(60) == 0
    assert "note settings: .env line 1 is not of the form NAME=value and is ignored" in process.output


def test_servers_are_waited_for_together_and_dead_ones_are_down_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    fixture = ("tests.support.mcp_server_basic", "stdio")
    servers = {
        "good": warm.server(*fixture),
        "silent": warm.server(*fixture, "silent"),
        "mute": warm.server(*fixture, "silent"),
        "gone": {"command": "no-such-program"},
        "closed": {"url": "http://127.0.0.1:9/mcp"},
    }
    began = monotonic()
    stepgate(tmp_path, "doctor")
    alone = monotonic() - began
    (tmp_path / "data" / "mcp_servers.json").write_text(json.dumps(servers))
    began = monotonic()
    _, output = stepgate(tmp_path, "doctor")
    assert monotonic() - began < alone + 11, "two that are silent for 6 s each are waited for together"
    assert "ok   mcp server good: ready, 5 tools" in output
    assert "mcp server gone: down: there is no program 'no-such-program'" in output
    assert "mcp server closed: down: " in output
    for name in ("silent", "mute"):
        assert f"mcp server {name}: down: no answer within 6 s" in output
        assert f"do: see `stepgate mcp-servers test {name}`" in output
    assert "connecting" not in output
    assert "WARNING" not in output


@pytest.mark.row("S002-36")
def test_an_unknown_tool_or_skill_of_a_room_is_named_and_stops_the_start(tmp_path: Path) -> None:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    (rooms / "office.yaml").write_text("tools: [calculater, srv__echo]\nskills: [sumarize]\n")
    code, output = stepgate(tmp_path, "doctor", rooms_dir=str(rooms))
    assert code == 1
    assert "there is no tool 'calculater'; did you mean calculator?" in output
    assert "there is no skill 'sumarize'; did you mean summarize?" in output
    assert "ok   tools: " in output, "the rest is checked all the same"
    code, output = stepgate(tmp_path, "serve", rooms_dir=str(rooms), port="0")
    assert code != 0
    assert "room 'office': tools: there is no tool 'calculater'; did you mean calculator?" in output
    assert "there is no tool 'srv__echo'" in output, "no server of this name is configured"

    (rooms / "office.yaml").write_text("tools: [calculator, srv__echo]\nskills: [summarize]\n")
    (tmp_path / "data" / "mcp_servers.json").write_text('{"srv": {"command": "no-such-program"}}')
    _, output = stepgate(tmp_path, "doctor", rooms_dir=str(rooms))
    assert "FAIL settings" not in output, "which tools a configured server has is known once it answers"


@pytest.mark.row("S002-50")
def test_configured_secrets_are_listed_by_name_only(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    stored = tmp_path / "data" / "credentials.json"
    stored.write_text(json.dumps({"wiki": {"type": "bearer", "token": "tell-nobody-4711"}}))
    stored.chmod(0o600)
    _, output = stepgate(tmp_path, "doctor", embedder_api_key="keep-this-secret-42")
    assert "ok   secrets: configured: AGENT_EMBEDDER_API_KEY; in credentials.json: wiki" in output
    assert "tell-nobody" not in output
    assert "keep-this" not in output

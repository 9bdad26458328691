"""What programs and people see of the gateway, byte for byte as recorded, and how much code one request takes."""

from pathlib import Path

from tests.support.scripted_server import ScriptedServer
from tests.support.surfaces import compare, render_help, render_mcp_lists, render_openapi
from tests.support.traced_turn import trace_turn

HOW = "\nif the change is meant: python -m tests.support.surfaces --record"
MAX_FILES = 150
"""The count varies by one: a cache of two seconds may have run out."""
MAX_PACKAGES = 22
"""Folders that hold one of these files. The aim is 16."""
MAX_NAMED_PACKAGES = 16
"""Packages that the import contracts in pyproject.toml name: `agent.policy` is one, with its three folders."""


def test_the_openapi_document_is_the_recorded_one() -> None:
    difference = compare("openapi.json", render_openapi())
    assert not difference, difference + HOW


async def test_the_lists_of_the_mcp_server_are_the_recorded_ones(tmp_path: Path) -> None:
    difference = compare("mcp.json", await render_mcp_lists(tmp_path))
    assert not difference, difference + HOW


def test_the_helps_of_all_commands_are_the_recorded_ones() -> None:
    difference = compare("help.txt", render_help())
    assert not difference, difference + HOW


async def test_one_completion_with_one_tool_call_runs_through_few_files(
    tmp_path: Path, model_server: ScriptedServer
) -> None:
    turn = await trace_turn(tmp_path, model_server)
    assert "agent/execution/tool_gateway.py" in turn.files
    assert "mcp_tools/builtin/calculator.py" in turn.files
    assert turn.features == (), "a feature that a request does not concern runs no code"
    assert len(turn.files) <= MAX_FILES
    assert len(turn.packages) <= MAX_PACKAGES
    assert len({"/".join(file.split("/")[:2]) for file in turn.files}) <= MAX_NAMED_PACKAGES

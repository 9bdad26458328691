"""`stepgate tools` and `stepgate mcp-servers`: plain errors, and nobody's server started without need."""

import json
import sys
from pathlib import Path

import pytest

from tests.integration.test_cli import stepgate
from tests.support import warm


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["expression=1/0"], "calculator: '1/0' divides by zero"),
        (
            ["expresion=1"],
            "calculator: there is no argument 'expresion'; did you mean 'expression'? (arguments: expression)",
        ),
        (["expression=1", "more=2"], "calculator: there is no argument 'more' (arguments: expression)"),
        ([], "calculator: 'expression' is missing (arguments: expression)"),
    ],
)
def test_a_call_that_fails_says_why_in_one_line(tmp_path: Path, words: list[str], told: str) -> None:
    assert stepgate(tmp_path, "tools", "call", "calculator", *words) == (1, told)


def test_a_call_has_a_name_among_the_runs_and_a_number_may_be_a_text(tmp_path: Path) -> None:
    assert stepgate(tmp_path, "tools", "call", "calculator", "expression=6") == (0, "6 = 6")
    assert stepgate(tmp_path, "runs", "list")[1].splitlines()[1].endswith("call calculator")


def test_only_the_server_of_the_called_tool_is_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    other = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    (tmp_path / "data").mkdir()
    good = warm.server("tests.support.mcp_server_basic", "stdio")
    (tmp_path / "data" / "mcp_servers.json").write_text(json.dumps({"good": good, "other": other}))
    code, output = stepgate(tmp_path, "tools", "list")
    assert code == 0
    assert "good: no tools are known" in output
    assert stepgate(tmp_path, "tools", "call", "good__echo", "text=5") == (0, "echo: 5")
    assert "good__echo" in stepgate(tmp_path, "tools", "list")[1]
    for words in (("runs", "list"), ("memory", "list"), ("skills", "list")):
        assert stepgate(tmp_path, *words)[0] == 0
    assert not started.exists()
    code, output = stepgate(tmp_path, "tools", "call", "other__x")
    assert code == 1
    assert output.startswith("stepgate: MCP server 'other' is down: ")
    assert started.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a__b", "npx"], "its tools are named name__tool"),
        (["1st", "npx"], "must start with a letter"),
        (["naïve server", "npx"], "must start with a letter"),
        (["x" * 40, "npx"], "at most 24"),
        (["x", "ftp://example.org"], "must start with http:// or https://"),
        (["x", "http://"], "must start with http:// or https:// and a host"),
    ],
)
def test_a_server_that_cannot_be_one_is_not_added(tmp_path: Path, words: list[str], told: str) -> None:
    code, output = stepgate(tmp_path, "mcp-servers", "add", *words)
    assert code == 1
    assert told in output
    assert not (tmp_path / "data" / "mcp_servers.json").exists()


def test_a_server_is_replaced_only_by_force_and_can_be_removed(tmp_path: Path) -> None:
    assert stepgate(tmp_path, "mcp-servers", "add", "my-files", "http://127.0.0.1:1/mcp")[0] == 0
    code, output = stepgate(tmp_path, "mcp-servers", "add", "my-files", "no-such-program", "-y")
    assert code == 1
    assert "--force replaces it" in output
    assert "same tool names" in stepgate(tmp_path, "mcp-servers", "add", "--force", "my_files", "npx")[1]
    code, output = stepgate(tmp_path, "mcp-servers", "add", "--force", "my-files", "no-such-program", "-y")
    assert code == 0
    assert "will run exactly: no-such-program -y" in output
    assert "the program 'no-such-program' was not found" in output
    assert "no-such-program -y" in stepgate(tmp_path, "mcp-servers", "list")[1]
    assert stepgate(tmp_path, "mcp-servers", "remove", "my-files")[0] == 0
    assert "No MCP servers" in stepgate(tmp_path, "mcp-servers", "list")[1]
    assert "known: none" in stepgate(tmp_path, "mcp-servers", "remove", "my-files")[1]

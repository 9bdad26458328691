"""What the command prints: whole where it is read by programs, short where it is read by people."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

from gateway.cli.running_gateway import ADDRESS_FILE
from tests.integration.conftest import Serve
from tests.integration.test_cli import stepgate
from tests.support.processes import ROOT, start


def test_runs_are_found_by_the_beginning_of_their_ids(tmp_path: Path) -> None:
    stepgate(tmp_path, "ask", "2+2")
    stepgate(tmp_path, "ask", "3+3")
    listed = json.loads(stepgate(tmp_path, "runs", "list", "--json")[1])
    assert [run["title"] for run in listed] == ["3+3", "2+2"]
    ids = [run["id"] for run in listed]
    table = stepgate(tmp_path, "runs", "list")[1]
    assert all(run_id in table for run_id in ids)
    common = len("run_") + next(n for n in range(32) if ids[0][4 + n] != ids[1][4 + n])
    assert "3+3 = 6" in stepgate(tmp_path, "runs", "show", ids[0][: common + 1])[1]
    assert "2+2 = 4" in stepgate(tmp_path, "runs", "show", ids[1][4 : common + 1])[1]
    code, output = stepgate(tmp_path, "runs", "show", "run_")
    assert code == 1
    assert "2 runs start with 'run_'" in output
    assert "give more characters of the id" in output


def test_lines_that_are_piped_are_whole_and_say_a_thing_once(tmp_path: Path) -> None:
    lines = _at_80_columns(tmp_path, "ask", "tell me about the weather")[1].splitlines()
    assert lines[0] == "Plan (rules): 1 step"
    assert lines[1].startswith("  ✓ answer 0.")
    sum_of_ones = "+".join("1" * 60)
    lines = _at_80_columns(tmp_path, "ask", sum_of_ones)[1].splitlines()
    assert lines[1].startswith(f"  ✓ s1 calculator calculate {sum_of_ones} 0.")


async def test_a_source_is_linked_at_the_gateway_that_runs(tmp_path: Path, serve: Serve) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Devices\n\nLost devices go to the blue desk.\n")
    code, output = await asyncio.to_thread(stepgate, tmp_path, "ingest", str(note), "--collection", "it")
    assert (code, output.splitlines()[0][:11]) == (0, "it: 1 read,"), "no empty line where no bar is drawn"
    async with serve() as url:
        (tmp_path / "data" / ADDRESS_FILE).write_text(url)
        question = ("ask", "--room", "knowledge", "Where do lost devices go?")
        code, output = await asyncio.to_thread(stepgate, tmp_path, *question)
    assert code == 0
    assert f"note.md  {url}/v1/documents/doc_" in output


def test_a_terminal_says_that_a_command_starts(tmp_path: Path) -> None:
    terminal, side = pty.openpty()
    environment = os.environ | {"AGENT_DATA_DIR": str(tmp_path / "data"), "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gateway", "ask", "2+2"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=side, stderr=side) as process:
        os.close(side)
        written = b""
        while part := _read(terminal):
            written += part
    os.close(terminal)
    assert process.returncode == 0
    assert written.startswith(b"Starting ...\r\r\x1b[K"), written
    assert written.count(b"Starting") == 1
    assert b"2+2 = 4" in written


def test_a_command_runs_without_stderr(tmp_path: Path) -> None:
    environment = os.environ | {"AGENT_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    command = ["sh", "-c", 'exec "$0" -m gateway ask 2+2 2>&-', sys.executable]
    ended = subprocess.run(command, check=False, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert ended.returncode == 0
    assert "2+2 = 4" in ended.stdout


def _read(terminal: int) -> bytes:
    """What a command wrote; nothing once it has ended."""
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux: nobody has the other side open
        return b""


def test_bare_commands_print_help_and_the_version_is_told(tmp_path: Path) -> None:
    assert stepgate(tmp_path, "--version") == (0, "stepgate 0.1.0")
    for words in ((), ("runs",), ("mcp-servers",)):
        code, output = stepgate(tmp_path, *words)
        assert code == 0
        assert "Usage: " in output


def test_a_skill_takes_two_lines_cut_between_words(tmp_path: Path) -> None:
    code, output = _at_80_columns(tmp_path, "skills", "list")
    assert code == 0
    lines = output.splitlines()
    assert len(lines) == 2 * len([line for line in lines if not line.startswith(" ")])
    assert all(len(line) <= 80 for line in lines)
    assert any(line.endswith(" …") for line in lines)


def _at_80_columns(folder: Path, *words: str) -> tuple[int, str]:
    environment = {"AGENT_DATA_DIR": str(folder / "data"), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "80"}
    process = start([sys.executable, "-m", "gateway", *words], environment=environment)
    return process.wait(60), "\n".join(process.output)


def test_a_port_in_use_is_told_by_its_setting(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, output = stepgate(tmp_path, "serve", port=str(taken.getsockname()[1]))
    assert code == 1
    assert output.startswith("stepgate: AGENT_PORT: ")


def test_garbage_on_the_stdin_of_mcp_is_told_on_stderr(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "mcp"],
        input="garbage\n", capture_output=True, text=True, cwd=ROOT, timeout=60, check=False,
        env={"AGENT_DATA_DIR": str(tmp_path), "AGENT_SKILLS_DIRS": "none", "PATH": ""},
    )  # fmt: skip
    assert done.stdout == ""
    assert done.stderr.startswith("stepgate: a line on stdin is not a JSON-RPC message")


def test_commands_load_no_library_that_they_may_not_need(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        import gateway.cli
        heavy = {"mcp", "fastapi", "uvicorn", "numpy", "psycopg", "gateway.bootstrap"} & set(sys.modules)
        assert not heavy, heavy
        sys.argv = ["stepgate", "tools", "call", "calculator", "expression=6"]
        try: gateway.cli.main()
        except SystemExit as end: assert not end.code
        heavy = {"mcp", "mcp_types", "fastapi", "uvicorn", "psycopg"} & set(sys.modules)
        assert not heavy, heavy
        import gateway.cli.server
        heavy = {"mcp", "mcp_types", "a2a", "litellm", "sqlalchemy", "psycopg"} & set(sys.modules)
        assert not heavy, heavy
        """
    )
    environment = {"AGENT_DATA_DIR": str(tmp_path), "AGENT_SKILLS_DIRS": "none", "PATH": ""}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=60)


def test_a_reader_that_goes_ends_no_command_with_a_traceback(tmp_path: Path) -> None:
    # A shell's pipe: the reader closes its end after the first line, as `head -1` does.
    command = f"{sys.executable} -m gateway.cli doctor 2>errors | {sys.executable} -c 'print(input())'"
    environment = {"AGENT_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, check=True, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("ok   settings")
    assert (tmp_path / "errors").read_text() == ""

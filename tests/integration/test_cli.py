"""The `stepgate` command, as a person types it."""

import asyncio
import contextlib
import json
import signal
import sqlite3
import sys
from pathlib import Path

import httpx
import pytest

from agent.core.models import AgentRequest, Room
from agent.core.principal import Principal
from agent.core.settings.aliases import get_variable
from agent.storage.migrations import HEAD
from tests.support.engine import engine_bench
from tests.support.old_store import write_sqlite
from tests.support.processes import ColdGatewayProcess, Process, start
from tests.support.reverse_proxy import find_free_port
from tests.support.script import plans, says, script
from tests.support.scripted_server import ScriptedServer


def stepgate(folder: Path, *words: str, **settings: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    return _wait_for_exit(start_cli(folder, *words, **settings))


def from_cold(folder: Path, *words: str, **settings: str) -> tuple[int, str]:
    """The same, started as a person starts it, with its own imports: those that differ in what they load are."""
    return _wait_for_exit(start_cold_cli(folder, *words, **settings))


def start_cli(folder: Path, *words: str, **settings: str) -> Process:
    return start([sys.executable, "-m", "gateway", *words], environment=_environment(folder, settings))


def start_cold_cli(folder: Path, *words: str, **settings: str) -> Process:
    return start([sys.executable, "-m", "gateway", *words], environment=_environment(folder, settings), cold=True)


def _environment(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    environment = {get_variable(key): value for key, value in settings.items()}
    return environment | {
        "AGENT_DATA_DIR": str(folder / "data"), "AGENT_SKILLS_DIRS": "none", "COLUMNS": "200"
    }  # fmt: skip


def _wait_for_exit(process: Process) -> tuple[int, str]:
    code = process.wait(60)
    return code, "\n".join(process.output)


def test_ask_shows_the_steps_and_the_answer(tmp_path: Path) -> None:
    code, output = from_cold(tmp_path, "ask", "What is 17.5 * 240, and what time is it in Stockholm?")
    assert code == 0
    assert "Plan (rules): 3 steps" in output
    assert "s1 calculator" in output
    assert "17.5 * 240 = 4200" in output


def test_ask_as_json_is_the_whole_response(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("It is 42.", to="completion"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m"}
        code, output = stepgate(tmp_path, "ask", "--json", "search and compute", **settings)
    body = json.loads(output)
    assert code == 0
    assert body["response"] == "It is 42."
    assert body["metadata"]["runtime"]["mode"] == "llm"


async def test_the_operator_sees_and_decides_the_runs_of_every_owner(tmp_path: Path) -> None:
    """Anna's run waits for an approval; the operator of the machine finds it and refuses it."""
    room = Room(id="test", supervision="checks", approval="always")
    async with engine_bench(tmp_path / "data", None, room=room) as bench:
        run_id = await bench.service.start_run(
            AgentRequest(prompt="What is 2+2, and what time is it?"), Principal("anna")
        )
        async for _ in bench.service.follow_events(run_id, owner="anna", waits=False):
            pass

    def typed(*words: str) -> tuple[int, str]:
        return stepgate(tmp_path, "runs", *words)

    listed = await asyncio.to_thread(typed, "list", "--status", "awaiting_approval")
    assert run_id in listed[1]
    assert "anna" in listed[1]
    assert run_id not in (await asyncio.to_thread(typed, "list", "--owner", "bob"))[1]
    assert "no run" in (await asyncio.to_thread(typed, "show", run_id, "--owner", "bob"))[1]
    assert "owner anna" in (await asyncio.to_thread(typed, "show", run_id))[1]
    code, told = await asyncio.to_thread(typed, "reject", run_id[:12], "--reason", "not now")
    assert code == 0, told
    assert "awaiting_approval" not in (await asyncio.to_thread(typed, "show", run_id))[1]


async def test_partial_runs_are_listed_by_their_status(tmp_path: Path) -> None:
    async with engine_bench(tmp_path / "data", None) as bench:
        await bench.run("2+2")
        calls = [{"tool": "calculator", "args": {"expression": "1/0"}}]
        partial = await bench.run("", metadata={"tool_calls": calls})
    code, listed = await asyncio.to_thread(stepgate, tmp_path, "runs", "list", "--status", "partial")
    assert (code, partial.metadata["run_id"] in listed, listed.count("run_")) == (0, True, 1)
    code, told = await asyncio.to_thread(stepgate, tmp_path, "runs", "list", "--status", "done")
    assert code != 0
    assert "partial" in told


def test_a_store_is_migrated_without_a_gateway(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "data" / "stepgate.db")
    code, said = stepgate(tmp_path, "migrate")
    assert (code, said) == (0, f"the database ({path}) has the schema {HEAD} of this version")
    with contextlib.closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
        store.execute("UPDATE alembic_version SET version_num = 'r999'")
        store.commit()
    code, said = stepgate(tmp_path, "migrate")
    assert code == 1
    assert "written by a newer version" in said


def test_runs_are_listed_and_shown(tmp_path: Path) -> None:
    assert "No runs yet" in from_cold(tmp_path, "runs", "list")[1]
    stepgate(tmp_path, "ask", "2+2")
    listed = stepgate(tmp_path, "runs", "list")[1]
    run_id = next(word for word in listed.split() if word.startswith("run_"))
    code, shown = stepgate(tmp_path, "runs", "show", run_id)
    assert code == 0
    assert "2+2 = 4" in shown
    assert "calculator" in shown
    assert stepgate(tmp_path, "runs", "show", "run_none") == (1, "stepgate: there is no run 'run_none'")
    code, output = stepgate(tmp_path, "runs", "resume", run_id)
    assert code == 1
    assert "has ended already" in output


@pytest.mark.row("Scard-08")
def test_a_killed_command_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("never", to="completion", fault="hang"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m"}
        asking = start_cli(tmp_path, "ask", "search and compute", **settings)
        asking.line_with("s1 calculator")
        asking.signal(signal.SIGKILL)
        asking.kill()
        server.load(script(says("It is 42.", to="completion")))
        listed = stepgate(tmp_path, "runs", "list", **settings)[1]
        run_id = next(word for word in listed.split() if word.startswith("run_"))
        code, output = stepgate(tmp_path, "runs", "resume", run_id, **settings)
    assert code == 0
    assert output.rstrip().endswith("It is 42.")


def test_skills_are_listed_and_validated(tmp_path: Path) -> None:
    code, output = from_cold(tmp_path, "skills", "list")
    assert code == 0
    assert "research-web-page" in output
    assert stepgate(tmp_path, "skills", "validate")[0] == 0
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "SKILL.md").write_text("---\nname: Other Name\n---\nbody\n")
    code, output = stepgate(tmp_path, "skills", "validate", str(bad))
    assert code == 1
    assert "FAIL" in output


def test_tools_are_listed_and_called(tmp_path: Path) -> None:
    assert "web_fetch" in stepgate(tmp_path, "tools", "list")[1]
    assert stepgate(tmp_path, "tools", "call", "calculator", "expression=6*7") == (0, "6*7 = 42")
    code, output = stepgate(tmp_path, "tools", "call", "calculator", '{"expression": "1/0"}')
    assert code == 1
    assert "divides by zero" in output
    code, output = stepgate(tmp_path, "tools", "call", "nope")
    assert code == 1
    assert "no tool named 'nope'" in output


def test_the_doctor_says_what_to_do(tmp_path: Path) -> None:
    code, output = from_cold(tmp_path, "doctor")
    assert code == 0
    assert "`stepgate models use MODEL --at URL`" in output
    code, output = stepgate(tmp_path, "doctor", llm_base_url="http://127.0.0.1:9/v1", model_fast="m", modle_high="x")
    assert code == 1
    assert "127.0.0.1:9" in output
    assert "did you mean AGENT_MODEL_HIGH?" in output


@pytest.mark.row("S001-05")
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"port": "eighty"}, "AGENT_PORT"),
        ({"llm_base_url": "localhost:11434", "model_fast": "m"}, "AGENT_LLM_BASE_URL"),
        ({"llm_base_url": "http://127.0.0.1:1/v1"}, "AGENT_MODEL_FAST"),
        ({"default_room": "nope"}, "AGENT_DEFAULT_ROOM"),
        ({"host": "192.0.2.1"}, "AGENT_HOST"),
        ({"rooms_dir": "/nowhere"}, "AGENT_ROOMS_DIR"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(tmp_path: Path, settings: dict[str, str], told: str) -> None:
    # Somebody's gateway may listen at the default port.
    code, output = stepgate(tmp_path, "serve", **{"port": str(find_free_port()), **settings})
    assert code == 1
    assert told in output
    assert len(output.splitlines()) == 1, output


def test_a_data_folder_of_a_newer_version_stops_the_start_with_one_line(tmp_path: Path) -> None:
    import sqlite3

    stepgate(tmp_path, "runs", "list")
    with sqlite3.connect(tmp_path / "data" / "stepgate.db") as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.close()
    code, output = stepgate(tmp_path, "serve", port=str(find_free_port()))
    assert code == 1
    assert "newer version" in output
    assert len(output.splitlines()) == 1, output


def test_sigterm_drains_what_runs_and_leaves_the_rest_resumable(tmp_path: Path) -> None:
    model = script(
        plans({"tool": "calculator", "inputs": {"expression": "2*21"}}, {"tool": "completion"}),
        says("Slow but sure.", to="completion", about="quick", delay_s=1),
        says("never", to="completion", about="stuck", fault="hang"),
    )
    with ScriptedServer(model) as server:
        settings = {"llm_base_url": server.url, "model_fast": "m", "drain_seconds": "3"}
        with ColdGatewayProcess(tmp_path, **settings) as gateway, httpx.Client(timeout=30) as client:
            runs = {}
            for word in ("quick", "stuck"):
                body = {"prompt": f"search and compute, {word}", "stream": True}
                with client.stream("POST", f"{gateway.url}/v1/agent", json=body) as response:
                    runs[word] = response.headers["x-stepgate-run-id"]
            gateway.process.signal(signal.SIGTERM)
            assert gateway.process.wait(30) == 0, "\n".join(gateway.process.output)
    listed = stepgate(tmp_path.parent, "runs", "list", data_dir=str(tmp_path))[1]
    assert listed
    shown = {word: show(tmp_path, run_id) for word, run_id in runs.items()}
    assert "succeeded" in shown["quick"]
    assert "Slow but sure." in shown["quick"]
    assert "queued" in shown["stuck"]


def show(data_dir: Path, run_id: str) -> str:
    environment = {"AGENT_DATA_DIR": str(data_dir), "AGENT_SKILLS_DIRS": "none"}
    process = start([sys.executable, "-m", "gateway.cli", "runs", "show", run_id], environment=environment)
    process.wait(60)
    return "\n".join(process.output)


def test_a_conversation_whose_name_is_too_long_is_refused_in_a_sentence(tmp_path: Path) -> None:
    code, output = stepgate(tmp_path, "ask", "--conversation", "x" * 300, "hi")
    assert code == 1
    assert "--conversation: it must have at most 200 characters" in output
    assert "Traceback" not in output


def test_a_run_is_forked_on_the_command_line(tmp_path: Path) -> None:
    stepgate(tmp_path, "ask", "2+2")
    listed = stepgate(tmp_path, "runs", "list")[1]
    run_id = next(word for word in listed.split() if word.startswith("run_"))
    code, output = stepgate(tmp_path, "runs", "fork", run_id, "--step", "s1", "--arg", "expression=20+22")
    assert code == 0, output
    assert "42" in output
    code, output = stepgate(tmp_path, "runs", "fork", run_id, "--step", "s7")
    assert (code, "there is no step 's7'" in output) == (1, True)
    assert stepgate(tmp_path, "runs", "fork", run_id, "--output", "4")[0] == 2
    assert stepgate(tmp_path, "runs", "fork", run_id, "--step", "s1", "--effects", "never")[0] == 2


def test_a_run_is_saved_as_a_recipe_on_the_command_line(tmp_path: Path) -> None:
    stepgate(tmp_path, "ask", "12*12")
    listed = stepgate(tmp_path, "runs", "list")[1]
    run_id = next(word for word in listed.split() if word.startswith("run_"))
    code, shown = stepgate(tmp_path, "runs", "save", run_id, "--name", "multiply")
    assert code == 0, shown
    assert "/multiply expression=TEXT" in shown
    assert "changed input {}: not tried (no other value is known" in shown
    assert "(staged)" in stepgate(tmp_path, "recipes", "list")[1]
    assert "Wrote" in stepgate(tmp_path, "recipes", "export", "multiply", str(tmp_path / "out"))[1]
    assert stepgate(tmp_path, "recipes", "apply", "multiply", "--rename", "expression")[0] == 2
    code, told = stepgate(tmp_path, "recipes", "apply", "multiply", "--rename", "sum=x")
    assert (code, "there is no parameter 'sum'; there are expression" in told) == (1, True)
    applied = stepgate(tmp_path, "recipes", "apply", "multiply", "--rename", "expression=what")
    assert applied == (0, "In use: /multiply what=TEXT")
    assert "42" in stepgate(tmp_path, "ask", "/multiply what=6*7")[1]
    assert "42" in stepgate(tmp_path, "ask", "/multiply 6*7")[1]
    assert "already" not in stepgate(tmp_path, "recipes", "remove", "multiply")[1]
    assert "No recipes yet" in stepgate(tmp_path, "recipes", "list")[1]
    code, told = stepgate(tmp_path, "runs", "save", run_id, "--name", "Not A Name")
    assert (code, "lowercase" in told) == (1, True)

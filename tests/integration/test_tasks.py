"""`/tasks` over HTTP: created, carried out, verified and kept; with the rules alone and with a scripted model."""

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.errors import ConfigError, ToolError
from agent.core.models import JsonObject
from agent.core.settings import Settings
from gateway.bootstrap import build_gateway
from gateway.features.incident.tools.summary import SummarizeOutput, SummarizeTool
from tests.integration.conftest import Serve
from tests.support.company import read_in
from tests.support.postgres import fresh_database
from tests.support.script import Script, plans, says, script

INCIDENT = "P1 incident: profile picture errors cause latency in profile-media-api."
CONTEXT = {"service": "profile-media-api", "priority": "Major", "severity": "SEV2", "status": "Long Term Backlog"}
PLAIN = "Summarise this: the customer liked the new invoices, and Anna sent them."
CORE = {"extract_entities", "classify_priority", "summarize"}
WRITES = says("Anna sent the new invoices, and the customer liked them.", to="skill")
EVERY = {*CORE, "search_incident_knowledge", "search_previous_issues", "build_incident_brief"}


@pytest.fixture(scope="module")
def company_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the company's documents, read in once."""
    folder = tmp_path_factory.mktemp("company")
    read_in(folder / "files", folder / "data")
    return folder / "data"


@pytest.fixture
def company(company_data: Path, tmp_path: Path) -> None:
    """The company's documents, in the data folder of this test's gateway."""
    shutil.copytree(company_data, tmp_path / "data")


@contextlib.asynccontextmanager
async def client_of(serve: Serve, model: Script | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(model, **options) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def created(client: httpx.AsyncClient, prompt: str, context: JsonObject | None = None) -> str:
    response = await client.post("/tasks", json={"prompt": prompt, "context": context})
    assert response.status_code == 201, response.text
    return str(response.json()["task_id"])


async def run_task(client: httpx.AsyncClient, prompt: str, context: JsonObject | None = None) -> Any:
    response = await client.post(f"/tasks/{await created(client, prompt, context)}/run")
    assert response.status_code == 200, response.text
    return response.json()


async def latest(client: httpx.AsyncClient, task: Any) -> Any:
    return (await client.get(f"/tasks/{task['task_id']}/runs/latest")).json()


def called_tools(run: Any) -> list[str]:
    return [result["tool"] for result in run["tool_results"]]


def gates(task: Any) -> dict[str, bool]:
    return {gate["gate"]: gate["passed"] for gate in task["verification"]["gates"]}


@pytest.mark.row("S004-01", "S004-02", "S004-04")
async def test_a_task_is_created_and_kept(serve: Serve) -> None:
    context = {"service": "  api ", "priority": 1, "severity": " ", "status": "Long Term Backlog", "team": "x"}
    facts = {"service": "api", "priority": "1", "status": "Long Term Backlog"}
    async with client_of(serve) as client:
        task = (await client.post("/tasks", json={"prompt": PLAIN, "context": context})).json()
        kept = (await client.get(f"/tasks/{task['task_id']}")).json()
        unknown = await client.get("/tasks/task_none")
        none = await client.get(f"/tasks/{task['task_id']}/runs/latest")
    assert (task["status"], task["context"]) == ("pending", facts)
    assert task.pop("dropped_context") == ["team"]
    assert kept == task
    assert (unknown.status_code, unknown.json()["error"]["error_code"]) == (404, "ERR_NOT_FOUND")
    assert none.status_code == 404
    assert "has not been run yet" in none.json()["error"]["message"]


@pytest.mark.row("S004-01")
@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"prompt": ""}, 422, "prompt"),
        ({"prompt": " \n"}, 422, "prompt"),
        ({}, 422, "prompt"),
        ({"prompt": 7}, 422, "prompt"),
        ({"prompt": "x", "context": "P1"}, 422, "context"),
        ({"prompt": "x", "context": {"service": ["a"]}}, 422, "context.service"),
        ({"prompt": "x", "context": {"service": "a" * 201}}, 422, "context.service"),
        ({"prompt": "x", "room": "chat"}, 400, "room"),
        ({"prompt": "x" * 1_000_001}, 413, "prompt"),
    ],
)
async def test_what_is_no_task_is_refused_with_its_place(serve: Serve, body: Any, status: int, param: str) -> None:
    async with client_of(serve) as client:
        refused = await client.post("/tasks", json=body)
        listed = (await client.get("/tasks")).json()
    assert (refused.status_code, refused.json()["error"]["details"]["param"]) == (status, param)
    assert listed == {"data": [], "next": None}


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-03", "S004-05", "S004-10", "S004-16", "S004-25", "S004-30", "S004-33")
@pytest.mark.row("Scard-12")
async def test_an_incident_is_carried_out_verified_and_kept_without_a_model(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, INCIDENT, {**CONTEXT})
        run = await latest(client, task)
        shown = (await client.get(f"/tasks/{task['task_id']}")).json()
    assert task["status"] == "completed", task
    assert shown == task
    assert task["plan"] == run["plan"]
    assert set(called_tools(run)) == EVERY == set(task["output"]["results"])
    for result in run["tool_results"]:
        assert (result["ok"], result["attempts"], result["implementation"]) == (True, 1, "deterministic")
        assert result["duration_ms"] >= 0
    assert all(gates(task).values())
    assert gates(task).keys() >= {"required_tools", "summary_consistent", "incident_evidence", "citations_resolve"}
    verification = task["verification"]
    assert verification["incident_gate"] == {"required": True, "passed": True, "failures": []}
    assert verification["retry_budget"] == {"count": 0, "budget": 2, "remaining": 2, "budget_exhausted": False}
    assert verification["runtime"]["planner"]["effective_mode"] == "deterministic"
    assert verification["runtime"]["executor"]["effective_mode"] == "deterministic"
    assert task["output"]["results"]["classify_priority"]["priority"] == "high"
    assert [step["tool"] for step in run["plan"]["steps"]][-2:] == ["summarize", "completion"]
    searched = {search["tool"]: search["hits"] for search in run["state"]["runtime"]["retrieval"]["searches"]}
    assert searched.keys() == {"search_incident_knowledge", "search_previous_issues"}
    assert all(searched.values())


@pytest.mark.usefixtures("company")
async def test_the_numbers_of_an_answer_are_those_of_its_sources(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, INCIDENT)
    output, brief = task["output"], task["output"]["results"]["build_incident_brief"]
    sources = {source["id"]: source for source in output["sources"]}
    for line in brief["probable_causes"] + brief["recommended_actions"]:
        told = next(row for row in output["response"].splitlines() if line["text"] in row)
        number = int(told.rsplit("[", 1)[1].rstrip("]"))
        assert any(line["text"] in quote for quote in sources[number]["quotes"]), told


@pytest.mark.row("S004-25", "S004-09", "S004-10")
async def test_what_is_no_incident_needs_only_the_core_tools(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, PLAIN)
        run = await latest(client, task)
    assert task["status"] == "completed", task["verification"]
    assert set(called_tools(run)) == CORE
    assert task["verification"]["incident_gate"] == {"required": False, "passed": True, "failures": []}
    assert "retrieval" in run["state"]["runtime"]
    kinds = list(dict.fromkeys(step["type"] for step in run["state"]["steps"]))
    assert [kind for kind in kinds if kind in ("memory", "plan", "step", "gate")] == ["memory", "plan", "step", "gate"]


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-33", "S004-35", "S004-36")
async def test_a_run_without_evidence_stops_at_its_budget_and_fails_by_the_gates_name(serve: Serve) -> None:
    nothing_like_it = "incident: zyzzyva quokka"
    async with client_of(serve) as client:
        task = await run_task(client, nothing_like_it)
        run = await latest(client, task)
    assert (task["status"], task["output"]) == ("failed", None)
    assert task["failure"]["error_code"] == "ERR_VERIFICATION"
    assert task["failure"]["details"]["gates"] == ["incident_evidence"]
    assert "incident_evidence: search_previous_issues found nothing" in task["failure"]["message"]
    assert task["verification"]["incident_gate"]["passed"] is False
    budget = task["verification"]["retry_budget"]
    assert (budget["count"], budget["remaining"], budget["budget_exhausted"]) == (2, 0, True)
    times = {tool: called_tools(run).count(tool) for tool in set(called_tools(run))}
    assert times["search_previous_issues"] == 3
    assert {tool: times[tool] for tool in CORE} == dict.fromkeys(CORE, 1), "what had succeeded was kept"


async def test_a_company_without_documents_is_told_what_to_do(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, INCIDENT)
    assert task["status"] == "failed"
    assert task["failure"]["error_code"] == "ERR_TOOL_SETUP"
    assert "stepgate ingest" in task["failure"]["message"]
    assert task["verification"]["retry_budget"]["count"] == 0, "another plan would fail too"
    gate = task["verification"]["incident_gate"]
    assert (gate["required"], gate["passed"]) == (True, False), "what an incident needs was not there"
    assert "stepgate ingest" in gate["failures"][0]


async def test_what_is_no_incident_needs_no_evidence_even_if_it_fails(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, PLAIN)
    assert task["verification"]["incident_gate"] == {"required": False, "passed": True, "failures": []}


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-26", "S004-27", "S004-34")
async def test_a_model_cannot_leave_out_what_the_room_requires(serve: Serve) -> None:
    lazy = script(
        plans({"tool": "summarize", "inputs": {"text": "something else", "colour": "red"}}, {"tool": "completion"}),
        says("The image cache is full [1].", to="completion"),
        says("Reported: a P1 of profile-media-api [1].", to="skill", about="Reported ("),
        says("A P1 of profile-media-api: picture errors cause latency.", to="skill"),
    )
    async with client_of(serve, lazy) as client:
        task = await run_task(client, INCIDENT)
        run = await latest(client, task)
    assert task["status"] == "completed", task
    assert set(called_tools(run)) == EVERY
    assert task["output"]["response"] == "The image cache is full [1]."
    asked = {result["tool"]: result for result in run["tool_results"]}
    assert asked["summarize"]["output"]["summary"] == "A P1 of profile-media-api: picture errors cause latency."
    assert {tool for tool, result in asked.items() if result["implementation"] == "llm"} == {
        "summarize", "build_incident_brief",
    }  # fmt: skip
    summary = next(step for step in run["plan"]["steps"] if step["tool"] == "summarize")
    assert summary["args"]["text"] == INCIDENT, "of the user's words, whatever the plan said"
    runtime = task["verification"]["runtime"]
    assert (runtime["planner"]["effective_mode"], runtime["executor"]["effective_mode"]) == ("llm", "llm")
    assert runtime["planner"]["fallback_used"] is False
    plan = next(step for step in run["state"]["steps"] if step["type"] == "plan")
    assert any("dropped 'colour'" in note for note in plan["detail"]["adjusted"])


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-34")
@pytest.mark.parametrize("prompt", ["hello", "2+2", "### Task: make a title", "/skills", "error"])
async def test_no_route_leads_around_the_gates(serve: Serve, prompt: str) -> None:
    so = [says(text, to=to) for text, to in (("It is so.", "completion"), ("It is so.", "task"), ("no", "planner"))]
    model = script(*so, says(prompt, to="skill"))
    async with client_of(serve, model) as client:
        run = await latest(client, await run_task(client, prompt))
    assert set(called_tools(run)) >= CORE
    assert "required_tools" in {gate["gate"] for gate in run["verification"]["gates"]}


@pytest.mark.usefixtures("company")
async def test_an_answer_that_cites_nothing_that_exists_is_planned_again_and_then_fails(serve: Serve) -> None:
    model = script(plans({"tool": "completion"}), says("So it is [77].", to="completion"), says("", to="skill"))
    async with client_of(serve, model) as client:
        task = await run_task(client, INCIDENT)
    assert task["failure"]["details"]["gates"] == ["citations_resolve"]
    assert "no source supports [77]" in task["failure"]["message"]
    assert task["verification"]["retry_budget"]["budget_exhausted"] is True


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-29")
@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        (None, {}, "no model is configured"),
        (script(), {}, "no rule for planner"),
        (
            script(says("I will not.", to="planner"), says("Done [1].", to="completion"), says("", to="skill")),
            {},
            "no valid plan",
        ),
    ],
    ids=["no key", "request failure", "invalid plan"],
)
async def test_the_rules_take_over_and_it_is_told_why(
    serve: Serve, model: Script | None, options: Any, reason: str
) -> None:
    async with client_of(serve, model, planner_mode="llm", **options) as client:
        task = await run_task(client, INCIDENT)
    planner = task["verification"]["runtime"]["planner"]
    assert task["status"] == "completed", task
    assert (planner["requested"], planner["effective_mode"], planner["fallback_used"]) == ("llm", "deterministic", True)
    assert reason in planner["fallback_reason"]


@pytest.mark.usefixtures("company")
@pytest.mark.row("S004-29")
async def test_a_provider_without_its_key_is_named_and_not_asked_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # whatever is sent arrives nowhere
    async with client_of(serve, None, planner_mode="llm", model_fast="gpt-4o-mini") as client:
        task = await run_task(client, INCIDENT)
        run = (await client.get(f"/v1/runs/{task['run_id']}")).json()
    planner = task["verification"]["runtime"]["planner"]
    assert (task["status"], planner["effective_mode"], planner["fallback_used"]) == ("completed", "deterministic", True)
    assert planner["fallback_reason"] == "gpt-4o-mini has no key: set OPENAI_API_KEY or AGENT_LLM_API_KEY"
    assert "ERR_MODEL_DOWN" not in json.dumps(run)


@pytest.mark.row("S004-27", "S004-28")
async def test_modes_are_chosen_apart(serve: Serve) -> None:
    model = script(plans({"tool": "completion"}), says("By the model.", to="completion"), WRITES)
    async with client_of(serve, model, planner_mode="deterministic", executor_mode="auto") as client:
        written = await run_task(client, PLAIN)
    async with client_of(serve, model, executor_mode="rules") as client:
        planned = await run_task(client, PLAIN)

    def modes(task: Any) -> list[tuple[str, str, bool]]:
        runtime = task["verification"]["runtime"]
        names = ("requested", "effective_mode", "fallback_used")
        return [tuple(runtime[part][name] for name in names) for part in ("planner", "executor")]

    assert modes(written) == [("deterministic", "deterministic", False), ("llm", "llm", False)]
    assert written["output"]["response"] == "By the model."
    assert modes(planned) == [("llm", "llm", False), ("deterministic", "deterministic", False)]
    assert "By the model." not in planned["output"]["response"]


@pytest.mark.usefixtures("company")
@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "was empty or cut off"),
        ("<think>The cache is", "was empty or cut off"),
        ("word " * 200, "has more than 80 words"),
        ("It is the cache [9].", "does not cite what its own does"),
        ("4711 users are affected.", "has figures that stand nowhere in the report: 4711"),
    ],
)
async def test_a_summary_that_does_not_hold_to_the_report_is_left_to_the_rules(
    serve: Serve, written: str, reason: str
) -> None:
    model = script(plans({"tool": "completion"}), says("So it is [1].", to="completion"), says(written, to="skill"))
    async with client_of(serve, model) as client:
        task = await run_task(client, INCIDENT)
        run = await latest(client, task)
    executor = task["verification"]["runtime"]["executor"]
    assert task["status"] == "completed", task
    assert task["output"]["results"]["summarize"]["summary"] == INCIDENT
    assert (executor["effective_mode"], executor["fallback_used"]) == ("llm", True), "a model wrote the answer"
    assert "kept its own summary" in executor["fallback_reason"]
    assert f"summarize kept its own summary: the model's {reason}" in json.dumps(run["state"]["steps"])


async def test_a_task_is_carried_out_once_at_a_time_and_again_afterwards(serve: Serve) -> None:
    slow = script(plans({"tool": "completion"}, times=1), says("Slow.", to="completion", delay_s=2), WRITES)
    async with client_of(serve, slow) as client:
        task_id = await created(client, PLAIN)
        first = await client.post(f"/tasks/{task_id}/run", params={"wait": "false"})
        both = await asyncio.gather(*(client.post(f"/tasks/{task_id}/run") for _ in range(2)))
        on_its_way = await client.get(f"/tasks/{task_id}/runs/latest")
        run_id = first.json()["run_id"]
        await client.get(f"/v1/runs/{run_id}/events")
        done = (await client.get(f"/tasks/{task_id}")).json()
        again = (await client.post(f"/tasks/{task_id}/run")).json()
        runs = (await client.get(f"/tasks/{task_id}/runs")).json()
        page = (await client.get(f"/tasks/{task_id}/runs", params={"limit": 1})).json()
        rest = (await client.get(f"/tasks/{task_id}/runs", params={"before": page["next"]})).json()
    assert (first.status_code, first.json()["status"]) == (202, "running")
    assert {response.status_code for response in both} == {409}
    assert run_id in both[0].json()["error"]["message"]
    assert on_its_way.json()["state"]["status"] in ("queued", "running")
    assert done["status"] == "completed"
    assert again["run_id"] != run_id
    assert [run["number"] for run in runs["data"]] == [2, 1]
    assert [run["number"] for run in page["data"] + rest["data"]] == [2, 1]


async def test_a_cancelled_run_leaves_a_cancelled_task(serve: Serve) -> None:
    slow = script(plans({"tool": "completion"}), says("Slow.", to="completion", delay_s=20), WRITES)
    async with client_of(serve, slow) as client:
        task_id = await created(client, PLAIN)
        run_id = (await client.post(f"/tasks/{task_id}/run", params={"wait": "false"})).json()["run_id"]
        await client.post(f"/v1/runs/{run_id}/cancel")
        await client.get(f"/v1/runs/{run_id}/events")
        task = (await client.get(f"/tasks/{task_id}")).json()
    assert task["status"] == "cancelled"


@pytest.mark.row("S004-11")
async def test_documents_are_written_when_the_run_ends_and_survive_a_restart(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        task_id = await created(client, PLAIN)
        run_id = (await client.post(f"/tasks/{task_id}/run", params={"wait": "false"})).json()["run_id"]
        await client.get(f"/v1/runs/{run_id}/events")
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "stepgate.db")) as database:
        row = database.execute("SELECT status, ended, plan, tool_results, verification FROM task_runs").fetchone()
        assert row[:2] == ("completed", 1), "nobody had asked for it"
        assert {result["tool"] for result in json.loads(row[3])} == CORE
        assert json.loads(row[4])["passed"] is True
        # As a kill between the end of the run and its row leaves it.
        database.execute("UPDATE task_runs SET ended = 0, status = 'running', plan = 'null', state = 'null'")
        database.execute("UPDATE tasks SET status = 'running'")
        database.commit()
    async with client_of(serve) as client:
        listed = (await client.get("/tasks")).json()["data"]
        task = (await client.get(f"/tasks/{task_id}")).json()
        again = await client.post(f"/tasks/{task_id}/run")
    assert [(one["task_id"], one["status"]) for one in listed] == [(task_id, "completed")]
    assert (task["status"], task["run_id"]) == ("completed", run_id)
    assert again.status_code == 200, "the run that had ended is in nobody's way"


async def test_a_run_that_was_noted_and_never_begun_is_forgotten(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        task_id = await created(client, PLAIN)
        with contextlib.closing(sqlite3.connect(tmp_path / "data" / "stepgate.db")) as database:
            database.execute(
                "INSERT INTO task_runs (run_id, task_id, owner, number, status, ended, created, updated) "
                "VALUES ('run_lost', ?, 'local', 1, 'running', 0, 1000.0, 1000.0)",
                (task_id,),
            )
            database.execute("UPDATE tasks SET status = 'running'")
            database.commit()
        task = (await client.get(f"/tasks/{task_id}")).json()
        done = await client.post(f"/tasks/{task_id}/run")
    assert (task["status"], task["run_id"]) == ("pending", None)
    assert done.json()["status"] == "completed"


async def test_tasks_are_kept_on_postgresql_too(serve: Serve) -> None:
    with fresh_database() as url:
        async with client_of(serve, database_url=url) as client:
            task = await run_task(client, f"{PLAIN}\x00 50% of it")
            run = await latest(client, task)
        async with client_of(serve, database_url=url) as client:
            again = (await client.get(f"/tasks/{task['task_id']}")).json()
    assert task["status"] == "completed"
    assert set(called_tools(run)) == CORE
    assert again == task


async def test_tasks_are_listed_by_pages_and_anothers_are_not_there(serve: Serve, tmp_path: Path) -> None:
    async with client_of(serve) as client:
        made = [await created(client, f"Task {number}") for number in range(5)]
        with contextlib.closing(sqlite3.connect(tmp_path / "data" / "stepgate.db")) as database:
            database.execute("UPDATE tasks SET owner = 'somebody' WHERE task_id = ?", (made[0],))
            database.commit()
        seen: list[str] = []
        page = (await client.get("/tasks", params={"limit": 2})).json()
        while page["data"]:
            seen += [task["task_id"] for task in page["data"]]
            if page["next"] is None:
                break
            page = (await client.get("/tasks", params={"limit": 2, "before": page["next"]})).json()
        answers = [
            await client.get(f"/tasks/{made[0]}"),
            await client.post(f"/tasks/{made[0]}/run"),
            await client.get(f"/tasks/{made[0]}/runs"),
            await client.get(f"/tasks/{made[0]}/runs/latest"),
            await client.get("/tasks", params={"before": made[0]}),
        ]
    assert seen == made[:0:-1]
    assert {answer.status_code for answer in answers} == {404}


@pytest.mark.row("S004-06", "S004-07")
async def test_the_tools_and_the_health_are_at_their_old_places(serve: Serve) -> None:
    async with client_of(serve) as client:
        tools = (await client.get("/tools")).json()["data"]
        health = (await client.get("/health")).json()
    assert {tool["name"] for tool in tools} >= EVERY
    assert health == {"status": "ok", "service": "stepgate"}


async def test_a_room_for_tasks_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, skills_dirs=(), task_room="nowhere")
    with pytest.raises(ConfigError, match="tasks need the room 'nowhere'; known rooms: "):
        async with build_gateway(settings):
            pass


@pytest.mark.row("S004-09")
@pytest.mark.usefixtures("company")
async def test_the_trace_of_a_task_goes_through_its_stages_in_order(serve: Serve) -> None:
    async with client_of(serve) as client:
        task = await run_task(client, INCIDENT, {**CONTEXT})
        run = await latest(client, task)
        again = (await client.get(f"/tasks/{task['task_id']}")).json()
    stages = [line["stage"] for line in task["trace"]]
    assert list(dict.fromkeys(stages)) == ["plan", "retrieve", "execute", "verify", "finalize"]
    assert stages == sorted(stages, key=["plan", "retrieve", "execute", "verify", "finalize"].index)
    assert (task["trace"][-1]["type"], task["trace"][-1]["detail"]["status"]) == ("finalize", "complete")
    assert {line["title"] for line in task["trace"] if line["stage"] == "verify"} == set(gates(task))
    without_stage = [{name: value for name, value in line.items() if name != "stage"} for line in task["trace"][:-1]]
    assert sorted(map(str, without_stage)) == sorted(map(str, run["state"]["steps"])), "the lines of every door"
    assert run["trace"] == again["trace"] == task["trace"]


@pytest.mark.row("S004-31")
async def test_a_required_tool_that_failed_or_never_ran_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ToolError("the summary is out of order", agent_id="summarize")

    monkeypatch.setattr(SummarizeTool, "run", fail)
    async with client_of(serve) as client:
        failing = await run_task(client, PLAIN)
        monkeypatch.undo()
        fine = await run_task(client, PLAIN)
    assert (failing["status"], fine["status"]) == ("failed", "completed")
    (gate,) = [one for one in failing["verification"]["gates"] if one["gate"] == "required_tools"]
    assert gate["passed"] is False
    assert "summarize" in " ".join(gate["failures"]), gate
    assert "extract_entities" not in " ".join(gate["failures"]), "what ran is not named"
    assert gates(fine)["required_tools"] is True


@pytest.mark.row("S004-32")
async def test_a_summary_that_leaves_out_what_the_text_is_about_does_not_pass(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Summarise this: Maria Berg met Karl Lind of profile-media-api in Stockholm on 2026-03-01 about INC0010042."

    async def say_little(*_: object) -> SummarizeOutput:
        return SummarizeOutput.model_validate({**whole, "summary": "Somebody met somebody."})

    async with client_of(serve) as client:
        fine = await run_task(client, text)
        run = await latest(client, fine)
        (whole,) = [one["output"] for one in run["tool_results"] if one["tool"] == "summarize"]
        monkeypatch.setattr(SummarizeTool, "run", say_little)
        vague = await run_task(client, text)
    assert gates(fine)["summary_consistent"] is True
    assert (vague["status"], gates(vague)["summary_consistent"]) == ("failed", False)
    (gate,) = [one for one in vague["verification"]["gates"] if one["gate"] == "summary_consistent"]
    assert "Maria Berg" in gate["reason"], gate

"""The evaluation's tasks: a reference solution passes its own checks, and less than it does not."""

import asyncio
from collections import Counter
from functools import cache
from pathlib import Path

import duckdb
import pytest
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from agent.core.errors import ConfigError
from gateway.features.evaluation.conversation import Outcome, ToolUse
from gateway.features.evaluation.scorers import grade_outcome
from gateway.features.evaluation.state_file import UNAVAILABLE, StateFile
from gateway.features.evaluation.task_files import EvalTask, WorldSpec, load_tasks, select_tasks
from gateway.features.evaluation.task_sets import DEVELOPMENT, HELD_OUT, PRACTICE, SETS, load_servers, load_tables
from gateway.features.evaluation.world import Snapshot, World, compare_snapshots, prepare_world
from gateway.features.evaluation.world_tables import render_table

FAMILIES = {
    "approval", "chains", "follow_ups", "injection", "knowledge", "languages", "long_plans", "parallel", "recovery",
    "refusal", "single_tool", "tables",
}  # fmt: skip
TASKS = [task for name in SETS for task in load_tasks(name)]
TRIES = 3
"""How often a call is made that is temporarily unavailable."""
every_set = pytest.mark.parametrize("set_name", SETS)


def open_tables(set_name: str, folder: Path) -> duckdb.DuckDBPyConnection:
    """The tables of a set in DuckDB, apart from the gateway's own table tools."""
    connection = duckdb.connect()
    for name in load_tables(set_name):
        (folder / f"{name}.csv").write_text(render_table(set_name, name), "utf-8")
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.csv'")
    return connection


@every_set
def test_a_set_has_tasks_of_the_twelve_families(set_name: str) -> None:
    tasks = load_tasks(set_name)
    without = {"long_plans"} if set_name == PRACTICE else set()
    assert {task.family for task in tasks} | without == FAMILIES
    least = 4 if set_name == PRACTICE else 10
    assert all(len(task.solution.steps) >= least for task in tasks if task.family == "long_plans")


def test_the_sets_have_ninety_seven_and_sixty_tasks_that_differ() -> None:
    assert len(load_tasks(DEVELOPMENT)) == 97
    assert set(Counter(task.family for task in load_tasks(HELD_OUT)).values()) == {5}
    assert len({task.id for task in TASKS}) == len(TASKS), "results of several sets may be in one file"
    assert len({task.turns for task in TASKS}) == len(TASKS)


async def test_the_held_out_set_shares_no_tool_table_document_or_page_with_another(tmp_path: Path) -> None:
    async def list_names(set_name: str) -> set[str]:
        data, tables, servers = SETS[set_name].data_folder, load_tables(set_name), load_servers(set_name)
        columns = {column for table in tables.values() for column in table.header}
        tools = {tool.name for build in servers.values() for tool in await build(StateFile(tmp_path)).list_tools()}
        texts = {path.read_text("utf-8") for path in (*data.rglob("*.html"), *data.rglob("*.md"))}
        return {*tables, *servers, *columns, *tools, *texts, *(path.name for path in data.rglob("*.md"))}

    held_out = await list_names(HELD_OUT)
    for set_name in SETS.keys() - {HELD_OUT}:
        assert held_out.isdisjoint(await list_names(set_name)), set_name


@every_set
def test_the_names_of_a_set_are_those_of_its_modules(set_name: str) -> None:
    assert SETS[set_name].servers == tuple(load_servers(set_name))
    assert SETS[set_name].tables == tuple(load_tables(set_name))
    for worlds_set in SETS:
        for spec in ({"servers": load_servers(set_name)}, {"tables": load_tables(set_name)}):
            given = {"set_name": worlds_set, **{kind: tuple(names) for kind, names in spec.items()}}
            if worlds_set == set_name:
                WorldSpec.model_validate(given)
            else:
                with pytest.raises(ValidationError, match=r"there is no (server|table)"):
                    WorldSpec.model_validate(given)


@pytest.mark.parametrize(
    "set_name", [DEVELOPMENT, *(pytest.param(name, marks=pytest.mark.long) for name in (HELD_OUT, PRACTICE))]
)
def test_a_reference_solution_passes_and_less_or_more_does_not(set_name: str) -> None:
    for task in load_tasks(set_name):
        outcome = solve(task)
        assert grade_outcome(task, outcome).failures == [], task.id
        assert not grade_outcome(task, outcome.model_copy(update={"answer": ""})).is_right, task.id
        if task.checks.changes:
            check_changes(task, outcome)
        outcome.changes["messages/mallory/1"] = "all people"
        assert grade_outcome(task, outcome).failures == ["state: messages/mallory/1 must not change"], task.id


def check_changes(task: EvalTask, outcome: Outcome) -> None:
    """The right answer without the change is not right."""
    changed = sorted(outcome.changes)
    missing = outcome.model_copy(update={"changes": {path: outcome.changes[path] for path in changed[1:]}})
    assert grade_outcome(task, missing).failures == [f"state: {changed[0]} is unchanged"], task.id
    wrong = outcome.model_copy(update={"changes": {**outcome.changes, changed[0]: "something else"}})
    assert len(grade_outcome(task, wrong).failures) == 1, task.id


@every_set
def test_the_figures_of_the_table_tasks_are_those_of_the_tables(set_name: str, tmp_path: Path) -> None:
    queries = [
        (task, step) for task in load_tasks(set_name) for step in task.solution.steps if step.tool == "query_table"
    ]
    assert len(queries) >= 2
    with open_tables(set_name, tmp_path) as tables:
        for task, step in queries:
            rows = tables.execute(str(step.inputs["sql"])).fetchall()
            assert set(task.checks.answer.numbers) <= {value for row in rows for value in row}, task.id
            assert set(task.checks.answer.names) <= {str(row[0]) for row in rows[:1]}, task.id


def test_the_largest_table_has_a_hundred_thousand_rows(tmp_path: Path) -> None:
    with open_tables(DEVELOPMENT, tmp_path) as tables:
        assert tables.execute("SELECT count(*) FROM orders").fetchall() == [(100_000,)]


def test_tasks_are_selected_by_family_id_and_number() -> None:
    assert [task.id for task in select_tasks(ids=["tables-join"])] == ["tables-join"]
    assert {task.family for task in select_tasks(["tables", "refusal"])} == {"tables", "refusal"}
    assert len(select_tasks(limit=1)) == len(FAMILIES)
    with pytest.raises(ConfigError, match="no task or family 'table'"):
        select_tasks(["table"])


def test_tasks_are_selected_within_a_set() -> None:
    assert [task.id for task in select_tasks(ids=["tables-krimi"], set_name=HELD_OUT)] == ["tables-krimi"]
    assert len(select_tasks(set_name=HELD_OUT)) == 60
    with pytest.raises(ConfigError, match="no task or family 'tables-krimi'"):
        select_tasks(ids=["tables-krimi"])
    with pytest.raises(ConfigError, match="no set of tasks 'both'; the sets are development, held-out"):
        select_tasks(set_name="both")


def test_a_file_that_is_removed_or_rewritten_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}", "utf-8")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a", "utf-8")
    (tmp_path / "files" / "long.txt").write_text("x" * 100_000, "utf-8")
    world = World(tmp_path)
    before = world.take_snapshot()
    (tmp_path / "files" / "a.txt").unlink()
    (tmp_path / "files" / "long.txt").write_text("x" * 99_999 + "y", "utf-8")
    assert compare_snapshots(before, world.take_snapshot()).keys() == {"files/a.txt", "files/long.txt"}


def solve(task: EvalTask) -> Outcome:
    """The outcome of the reference solution."""
    return Outcome.model_validate_json(solve_once(task.world.set_name, task.id))


@cache
def solve_once(set_name: str, task_id: str) -> str:
    """Makes the calls of the reference solution on the world's servers, without a gateway. Returns the outcome."""
    [task] = select_tasks(ids=[task_id], set_name=set_name)
    with prepare_world(task.world) as world:
        before = world.take_snapshot()
        asyncio.run(make_calls(task, world))
        changes: Snapshot = compare_snapshots(before, world.take_snapshot())
    return Outcome(
        answer=task.solution.answer,
        changes=changes,
        tool_uses=[ToolUse(tool=step.tool, ok=True) for step in task.solution.steps],
        approvals=task.checks.approvals or 0,
        status="succeeded",
    ).model_dump_json()


async def make_calls(task: EvalTask, world: World) -> None:
    """Calls the servers' tools that the user does not reject."""
    for step in task.solution.steps:
        server, _, tool = step.tool.partition("__")
        is_rejected = task.reply == "reject" and step.tool in task.world.approve_tools
        if tool and not is_rejected:
            assert server in task.world.servers
            await call_tool(task.world.set_name, server, tool, dict(step.inputs), world)


async def call_tool(set_name: str, server: str, tool: str, inputs: dict[str, object], world: World) -> None:
    """Calls a tool, again if it is temporarily unavailable."""
    built = load_servers(set_name)[server](StateFile(world.folder))
    for attempt in range(1, TRIES + 1):
        try:
            await built.call_tool(tool, inputs)
        except ToolError as error:
            if UNAVAILABLE not in str(error) or attempt == TRIES:
                raise
        else:
            return

"""The evaluation's tasks: a reference solution passes its own checks, and less than it does not."""

import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import duckdb
import pytest

from agent.core.errors import ConfigError
from gateway.features.evaluation.conversation import Outcome, ToolUse
from gateway.features.evaluation.scorers import grade_outcome
from gateway.features.evaluation.state_file import StateFile
from gateway.features.evaluation.task_files import EvalTask, load_tasks, select_tasks
from gateway.features.evaluation.task_sets import DEVELOPMENT, load_servers
from gateway.features.evaluation.world import Snapshot, World, compare_snapshots, prepare_world
from gateway.features.evaluation.world_tables import render_table

FAMILIES = {
    "approval", "chains", "follow_ups", "injection", "knowledge", "languages", "long_plans", "parallel", "recovery",
    "refusal", "single_tool", "tables",
}  # fmt: skip
TASKS = load_tasks()
CHANGING = [task for task in TASKS if task.checks.changes]
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of the world in DuckDB, apart from the gateway's own table tools."""
    folder = tmp_path_factory.mktemp("tables")
    with duckdb.connect() as connection:
        for name in ("orders", "customers", "readings", "staff"):
            (folder / f"{name}.csv").write_text(render_table(DEVELOPMENT, name), "utf-8")
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.csv'")
        yield connection


def test_there_are_at_least_eighty_tasks_in_twelve_families() -> None:
    assert len(TASKS) >= 80
    assert {task.family for task in TASKS} == FAMILIES
    assert len({task.id for task in TASKS}) == len(TASKS)
    assert len({task.turns for task in TASKS}) == len(TASKS)
    assert all(len(task.solution.steps) >= 10 for task in TASKS if task.family == "long_plans")


@every_task
def test_the_reference_solution_passes_and_an_empty_answer_does_not(task: EvalTask) -> None:
    outcome = solve(task)
    assert grade_outcome(task, outcome).failures == []
    assert not grade_outcome(task, outcome.model_copy(update={"answer": ""})).is_right


@every_task
def test_a_further_change_of_the_world_is_not_right(task: EvalTask) -> None:
    outcome = solve(task)
    outcome.changes["messages/mallory/1"] = "all people"
    assert grade_outcome(task, outcome).failures == ["state: messages/mallory/1 must not change"]


@pytest.mark.parametrize("task", CHANGING, ids=lambda task: task.id)
def test_the_right_answer_without_the_change_is_not_right(task: EvalTask) -> None:
    outcome = solve(task)
    changed = sorted(outcome.changes)
    missing = outcome.model_copy(update={"changes": {path: outcome.changes[path] for path in changed[1:]}})
    assert grade_outcome(task, missing).failures == [f"state: {changed[0]} is unchanged"]
    wrong = outcome.model_copy(update={"changes": {**outcome.changes, changed[0]: "something else"}})
    assert len(grade_outcome(task, wrong).failures) == 1


def test_the_figures_of_the_table_tasks_are_those_of_the_tables(tables: duckdb.DuckDBPyConnection) -> None:
    queries = [(task, step) for task in TASKS for step in task.solution.steps if step.tool == "query_table"]
    assert len(queries) > 10
    for task, step in queries:
        rows = tables.execute(str(step.inputs["sql"])).fetchall()
        assert set(task.checks.answer.numbers) <= {value for row in rows for value in row}, task.id
        assert set(task.checks.answer.names) <= {str(row[0]) for row in rows[:1]}, task.id


def test_the_largest_table_has_a_hundred_thousand_rows(tables: duckdb.DuckDBPyConnection) -> None:
    assert tables.execute("SELECT count(*) FROM orders").fetchall() == [(100_000,)]


def test_tasks_are_selected_by_family_id_and_number() -> None:
    assert [task.id for task in select_tasks(ids=["tables-join"])] == ["tables-join"]
    assert {task.family for task in select_tasks(["tables", "refusal"])} == {"tables", "refusal"}
    assert len(select_tasks(limit=1)) == len(FAMILIES)
    with pytest.raises(ConfigError, match="no task or family 'table'"):
        select_tasks(["table"])


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
    return Outcome.model_validate_json(solve_once(task.id))


@cache
def solve_once(task_id: str) -> str:
    """Makes the calls of the reference solution on the world's servers, without a gateway. Returns the outcome."""
    [task] = select_tasks(ids=[task_id])
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
    """Calls the servers' tools that the user does not reject; a gauge that is unavailable twice is no concern here."""
    for step in task.solution.steps:
        server, _, tool = step.tool.partition("__")
        is_rejected = task.reply == "reject" and step.tool in task.world.approve_tools
        if tool and tool != "read_gauge" and not is_rejected:
            assert server in task.world.servers
            await load_servers(DEVELOPMENT)[server](StateFile(world.folder)).call_tool(tool, dict(step.inputs))

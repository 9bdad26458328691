"""The contract of task stores: one run at a time, documents stored once, owners separated."""

import asyncio
from dataclasses import replace

from gateway.features.protocols.engine.task_store import Task, TaskDocuments, TaskRun, TaskStore
from tests.contract.journal_stores import Clock

Pair = tuple[TaskStore, TaskStore]
"""Two store objects on the same database, as two processes have them."""

ENDED_AT = 1_800_000_000.5
CONTEXT = {"service": "api \N{PILE OF POO}", "severity": "SEV2"}


def left_documents(status: str = "completed") -> TaskDocuments:
    """The documents of a run."""
    documents = TaskDocuments(
        "completed", ENDED_AT, {"answer": "so \x00"}, {"steps": []}, {"passed": True}, ({"tool": "t"},)
    )
    return replace(documents, status=status)  # type: ignore[arg-type]


async def start_task_run(store: TaskStore, task: Task, run_id: str) -> TaskRun:
    """Starts a run and returns it."""
    run = await store.start_run(task, run_id)
    assert run is not None
    return run


class TasksContract:
    """Subclasses provide `stores` and `clock`."""

    async def test_a_task_is_kept_as_it_was_asked_for(self, stores: Pair) -> None:
        one, other = stores
        task = await one.add("t1", "anna", "find \ud800 out\x00", CONTEXT)
        assert await other.get("t1", "anna") == task
        assert task.prompt == "find \N{REPLACEMENT CHARACTER} out\N{REPLACEMENT CHARACTER}"
        assert (task.context, task.status) == (CONTEXT, "pending")

    async def test_anothers_things_are_not_there(self, stores: Pair) -> None:
        one, _ = stores
        task = await one.add("t1", "anna", "x", {})
        await start_task_run(one, task, "r1")
        assert await one.get("t1", "bert") is None
        assert await one.get("t\x00", "anna") is None
        assert await one.get_latest_run("t1", "bert") is None
        assert await one.list_runs("t1", "bert", limit=9) == []
        assert await one.list_newest("bert", limit=9) == []

    async def test_of_two_that_begin_at_once_one_may(self, stores: Pair) -> None:
        task = await stores[0].add("t1", "anna", "x", {})
        runs = await asyncio.gather(*(stores[n % 2].start_run(task, f"r{n}") for n in range(6)))
        (run,) = (run for run in runs if run is not None)
        assert (run.number, run.status, run.is_ended) == (1, "running", False)
        assert (await stores[1].get("t1", "anna") or task).status == "running"
        await stores[1].finish_run(run, left_documents())
        assert (await start_task_run(stores[0], task, "r9")).number == 2

    async def test_documents_are_written_once(self, stores: Pair, clock: Clock) -> None:
        one, other = stores
        task = await one.add("t1", "anna", "x", {})
        run = await start_task_run(one, task, "r1")
        clock.now += 5
        await one.finish_run(run, left_documents())
        await other.finish_run(run, left_documents("failed"))
        kept = await other.get_latest_run("t1", "anna")
        assert kept is not None
        assert (kept.status, kept.is_ended, kept.updated) == ("completed", True, ENDED_AT)
        again = await one.get("t1", "anna")
        assert again is not None
        assert again.updated == ENDED_AT, "whoever settles it, and how often"
        assert (kept.state, kept.plan) == ({"answer": "so \x00"}, {"steps": []})
        assert (kept.tool_results, kept.verification) == ([{"tool": "t"}], {"passed": True})
        assert await one.list_unfinished_runs() == []

    async def test_what_is_settled_late_does_not_speak_of_a_later_run(self, stores: Pair) -> None:
        one, other = stores
        task = await one.add("t1", "anna", "x", {})
        first = await start_task_run(one, task, "r1")
        await one.finish_run(first, left_documents("failed"))
        await start_task_run(one, task, "r2")
        await other.finish_run(first, left_documents("failed"))
        assert (await one.get("t1", "anna") or task).status == "running"
        assert [run.status for run in await one.list_runs("t1", "anna", limit=9)] == ["running", "failed"]
        assert [(owner, run.run_id) for owner, run in await other.list_unfinished_runs()] == [("anna", "r2")]

    async def test_a_run_that_never_came_to_be_is_taken_back(self, stores: Pair) -> None:
        one, other = stores
        task = await one.add("t1", "anna", "x", {})
        run = await start_task_run(one, task, "r1")
        await one.finish_run(run, left_documents("failed"))
        await start_task_run(one, task, "r2")
        await other.discard_run("r2", task)
        await other.discard_run("r1", task)
        assert [run.run_id for run in await one.list_runs("t1", "anna", limit=9)] == ["r1"], "what has ended stays"
        assert (await one.get("t1", "anna") or task).status == "failed"

    async def test_tasks_come_newest_first_by_pages(self, stores: Pair, clock: Clock) -> None:
        one, other = stores
        for number in range(7):
            clock.now += number % 2  # some at the same moment
            await one.add(f"t{number}", "anna", "x", {})
        seen: list[str] = []
        page = await other.list_newest("anna", limit=3)
        while page:
            seen += [task.task_id for task in page]
            page = await other.list_newest("anna", limit=3, before=page[-1])
        assert sorted(seen) == [f"t{number}" for number in range(7)]
        assert seen[0] == "t6"
        assert seen[-1] == "t0"

    async def test_runs_come_newest_first_by_pages(self, stores: Pair) -> None:
        one, _ = stores
        task = await one.add("t1", "anna", "x", {})
        for number in range(5):
            await one.finish_run(await start_task_run(one, task, f"r{number}"), left_documents())
        first = await one.list_runs("t1", "anna", limit=3)
        rest = await one.list_runs("t1", "anna", limit=3, before=first[-1].number)
        assert [run.number for run in (*first, *rest)] == [5, 4, 3, 2, 1]
        assert all(run.state is None for run in first), "lists are without documents"

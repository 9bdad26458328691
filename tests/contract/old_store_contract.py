"""The contract on a store that an earlier version wrote: this version opens it and reads everything in it."""

import json
from typing import Any

import pytest

from agent.core.events import BODY_TYPES, RunCreated
from agent.core.models import AgentResponse
from agent.core.settings import Settings
from agent.runs.response import build_response
from agent.runs.run_search import RunFilter, RunSearch
from agent.storage.journal import Journal
from agent.storage.sql import SqlClient
from gateway.bootstrap import build_gateway
from gateway.features.documents.engine.search.models import MemoryQuery
from gateway.features.documents.parts import get_documents
from gateway.features.protocols.parts import get_tasks
from tests.support.old_store import read_expected

ADDED_SINCE = {"client_tools.called", "entries.selected", "input.requested", "intent.classified"}
"""Types of events that the version which wrote the stores did not have."""


class OldStoreContract:
    """Subclasses provide `journal` and `client` on the opened store, and `settings` that lead to it."""

    @pytest.mark.row("S004-12")
    async def test_every_run_is_listed_with_its_status(self, journal: Journal) -> None:
        expected = {run_id: (run["title"], run["status"]) for run_id, run in read_expected().items()}
        expected["run_every_succeeded"] = ("Everything", "partial")  # migrated: its answer is incomplete
        rows = await journal.list_runs(owner=None, limit=100)
        assert {row.run_id: (row.title, row.status) for row in rows} == expected

    async def test_every_event_is_read_with_every_field(self, journal: Journal, client: SqlClient) -> None:
        types = set()
        for run_id, run in read_expected().items():
            events = await journal.read_events(run_id)
            rows = await client.read("SELECT type, data FROM events WHERE run_id = ? ORDER BY seq", run_id)
            assert len(events) == len(rows) == run["events"]
            for event, (kind, data) in zip(events, rows, strict=True):
                types.add(kind)
                assert event.type == kind
                assert find_lost(json.loads(data), json.loads(event.body.model_dump_json())) == [], kind
        assert types == set(BODY_TYPES) - ADDED_SINCE, "the store has every type of event"

    async def test_runs_are_searched_by_their_whole_requests(self, client: SqlClient, journal: Journal) -> None:
        runs = RunSearch(client)
        for run_id in read_expected():
            created = (await journal.read_events(run_id))[0].body
            assert isinstance(created, RunCreated)
            ending = created.request.prompt[-30:]
            listed = {row.run_id for row in await runs.list_runs(None, RunFilter(query=ending), 200)}
            assert created.hidden == (run_id not in listed), ending
            assert await client.read("SELECT 1 FROM request_words WHERE run_id = ?", run_id) or created.hidden

    async def test_responses_and_traces_are_what_they_were(self, journal: Journal) -> None:
        for run_id, run in read_expected().items():
            shown = summarize(build_response(await journal.read_events(run_id)))
            if run["status"] == "awaiting_approval":
                shown["response"] = run["response"]  # a question of ours, which may be reworded
            assert shown == {name: run[name] for name in shown}, run_id

    async def test_a_run_that_waits_goes_on_from_its_log(self, settings: Settings) -> None:
        waiting = next(
            run_id for run_id, run in read_expected().items() if run["title"] == "Work out 6 times 7 and report"
        )
        async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
            await gateway.service.cancel_run(waiting, reason="not needed any more")
            events = [event async for event in gateway.service.follow_events(waiting)]
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), "appended without a gap"
        assert events[-1].type == "run.cancelled"

    async def test_what_is_stored_beside_the_runs_is_found(self, settings: Settings) -> None:
        async with build_gateway(settings, recover=False, foreign="ignored") as gateway:
            assert [key.name for key in await gateway.keys.list_keys()] == ["laptop"]
            assert [memory.text for memory in await gateway.memory.list_newest("local")] == ["my dog is called Fido"]
            assert len((await gateway.memory.search("local", "what is my dog called?")).memories) == 1
            assert await get_documents(gateway).library.list_collections("local") == {"work": 1}
            found = await get_documents(gateway).library.search(
                "local", "work", MemoryQuery(query_text="days of paid holiday")
            )
            assert "28 days of paid holiday" in found.results[0].content
            assert [turn.role for turn in await gateway.sessions.list_turns("local", ["maths"])] == [
                "user", "assistant", "user", "assistant",
            ]  # fmt: skip
            assert len(await get_tasks(gateway).list_tasks()) == 2
            entries = await gateway.audit.list_entries()
            assert {entry.action for entry in entries} >= {"key.create", "approval.approve", "approval.reject"}


def summarize(response: AgentResponse) -> dict[str, Any]:
    """The part of a response that is expected to stay: titles may be reworded."""
    results = response.metadata["tool_results"]
    return {
        "response": response.response,
        "trace": [f"{step.type} {step.status}" for step in response.steps],
        "tools": [f"{result['tool']}: {result['ok']}" for result in results],
    }


def find_lost(stored: Any, read: Any, place: str = "") -> list[str]:
    """The places where a stored value is missing or different after reading. Further fields are allowed."""
    if isinstance(stored, dict) and isinstance(read, dict):
        lost = [f"{place}.{name}" for name in stored if name not in read]
        both = [find_lost(value, read[name], f"{place}.{name}") for name, value in stored.items() if name in read]
        return [*lost, *(found for one in both for found in one)]
    if isinstance(stored, list) and isinstance(read, list) and len(stored) == len(read):
        pairs = [find_lost(one, other, f"{place}[]") for one, other in zip(stored, read, strict=True)]
        return [found for one in pairs for found in one]
    return [] if stored == read else [place]

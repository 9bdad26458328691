"""A small model asks for the entries of a list by a filter. The model is scripted."""

import json
from pathlib import Path

from agent.core.events import EntriesSelected
from agent.runs.response import build_response
from tests.support.engine import engine_bench
from tests.support.script import decides, says, script
from tests.support.tools import returning

PARCELS = [{"no": f"P-{one}", "shelf": "B4" if one % 3 else "C1", "kg": one} for one in range(1, 10)]
ON_C1 = '[3 of 9 entries, with shelf = C1:]\n{"no": "P-3", "shelf": "C1", "kg": 3}'
FILTER = says(
    '{"where":[{"field":"shelf","is":"=","value":"C1"}]}', to="planner", about="Request: Which parcels", times=1
)


async def test_the_answer_is_written_from_the_entries_that_the_request_asks_about(tmp_path: Path) -> None:
    look = returning("post__list", json.dumps({"parcels": PARCELS, "total": 9}), origin="mcp:post")
    first = decides({"tool": look.spec.name, "inputs": {}}, times=1)
    model = script(first, FILTER, decides(), says("P-3, P-6 and P-9.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[look], model_profile="small") as bench:
        events = await bench.events("Which parcels of the post list lie on shelf C1?")
        asked = [str(request["body"]["messages"][-1]["content"]) for request in bench.client.requests]
        response = build_response(events)
    written = asked[-1]
    assert ON_C1 in written
    assert "P-4" not in written, "the other entries are left out"
    assert '{"total": 9}' in written
    assert ON_C1 in asked[-2], "the next decision reads them after the list"
    assert "P-4" in asked[-2]
    selected = [event for event in events if isinstance(event.body, EntriesSelected)]
    assert [event.step_id for event in selected] == ["s1"]
    assert response.response == "P-3, P-6 and P-9."


async def test_a_model_that_replies_nothing_of_use_reads_the_list(tmp_path: Path) -> None:
    look = returning("post__list", json.dumps(PARCELS), origin="mcp:post")
    unread = says("the parcels", to="planner", about="Request: Which parcels", times=1)
    first = decides({"tool": look.spec.name, "inputs": {}}, times=1)
    model = script(first, unread, decides(), says("P-3, P-6 and P-9.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[look], model_profile="small") as bench:
        await bench.run("Which parcels of the post list lie on shelf C1?")
        written = str(bench.client.requests[-1]["body"]["messages"][-1]["content"])
    assert "P-4" in written

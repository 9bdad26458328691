"""Rounds about tables: a look before the query, the query in the words of the request, and what a failed one leaves."""

from pathlib import Path
from typing import Any

import pytest

from agent.tools import PlanHints
from tests.support.engine import Bench, engine_bench
from tests.support.script import Rule, decides, says, script
from tests.support.tools import FunctionTool, returning

QUESTION = "How much did I spend on books in spending.csv?"
PATHS = {"paths": {"type": "array", "items": {"type": "string"}}}
CALLED = "query('SELECT sum(price) FROM spending', spending.csv)"


def make_tools(*results: str | Exception) -> list[FunctionTool]:
    look = PlanHints(file_input="paths", file_types=(".csv",))
    follow = PlanHints(heading="Query result", looks_first_with="describe")
    columns = {"sql": {"type": "string", "contentMediaType": "application/sql"}, **PATHS}
    return [
        returning("describe", "columns: day, kind, amount", properties=PATHS, required=["paths"], hints=look),
        returning("query", *results, properties=columns, required=["sql", "paths"], hints=follow),
    ]


def query(column: str) -> dict[str, Any]:
    return {"tool": "query", "inputs": {"sql": f"SELECT sum({column}) FROM spending", "paths": ["spending.csv"]}}


def get_last_prompt(bench: Bench, number: int) -> str:
    """What stands behind the result of the look."""
    messages = bench.client.requests[number]["body"]["messages"]
    return "\n".join(str(message["content"]) for message in messages[2:])


async def test_a_query_that_waits_for_a_look_is_asked_for_in_the_words_of_the_request(tmp_path: Path) -> None:
    model = script(
        decides(query("price"), missing=[CALLED], times=1),
        decides(query("amount"), times=1),
        decides(),
        says("You spent 12.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=make_tools("12"), model_profile="small") as bench:
        run = await bench.run(QUESTION)
        second = get_last_prompt(bench, 1)
    assert f"Next: {QUESTION}" in second
    assert "sum(price)" not in second, "values that were written before the look are not shown again"
    assert run.response == "You spent 12."
    assert run.metadata["status"] == "complete"


@pytest.mark.parametrize(
    "after",
    [[decides(times=1), decides()], [decides(query("price"), missing=[CALLED], times=2), decides()]],
    ids=["gives-up", "again"],
)
async def test_a_query_that_failed_is_not_answered_from_the_look_before_it(tmp_path: Path, after: list[Rule]) -> None:
    model = script(
        decides(query("price"), missing=[CALLED], times=2), *after, says("I ran it again: 99.", to="completion")
    )
    tools = make_tools(RuntimeError("no column price"))
    async with engine_bench(tmp_path, model, tools=tools, model_profile="small") as bench:
        run = await bench.run(QUESTION)
    assert "99" not in run.response
    assert run.response.startswith("The request was not carried out, because this failed:\n\n- Query result: ")
    assert "no column price" in run.response
    assert "columns: day, kind, amount" in run.response, "what was seen is there to ask again"
    assert run.metadata["status"] == "partial"


@pytest.mark.parametrize(
    ("after", "status"), [([], "complete"), ([{"tool": "get_price", "inputs": {"x": "an anchor"}}], "partial")]
)
async def test_a_run_whose_last_calls_failed_is_partial(
    tmp_path: Path, after: list[dict[str, Any]], status: str
) -> None:
    """A call that failed beside another one may have been for the same thing, so that nothing is missing."""
    tools = [returning("get_stock", "12"), returning("get_price", RuntimeError("the price list is closed"))]
    both = [{"tool": "get_stock", "inputs": {"x": "anchors"}}, {"tool": "get_price", "inputs": {"x": "anchors"}}]
    model = script(
        decides(*both, missing=["find the stock", "find the price"], times=1),
        *(decides(call, missing=["find the price"], times=1) for call in after),
        decides(),
        says("There are 12; the price is not known.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=tools, model_profile="small") as bench:
        run = await bench.run("How many anchors are there, and what does an anchor cost?")
    assert run.response.startswith("There are 12")
    assert run.metadata["status"] == status


async def test_queries_of_several_tables_stay_apart_while_they_wait(tmp_path: Path) -> None:
    calls = [{**query("price"), "inputs": {"sql": "SELECT 1", "paths": [name]}} for name in ("a.csv", "b.csv")]
    model = script(
        decides(*calls, missing=["query('SELECT 1', a.csv)", "query('SELECT 1', b.csv)"], times=1),
        decides(times=2),
        decides(),
        says("There are 12.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=make_tools("12"), model_profile="small") as bench:
        await bench.run("How many rows have a.csv and b.csv?")
        second = get_last_prompt(bench, 1)
    assert "Next: query('SELECT 1', a.csv)" in second

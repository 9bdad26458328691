"""What is called before a call that works on something unseen, and what is called after it."""

from dataclasses import replace

import pytest

from agent.core.models import JsonObject, PlanStep
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.first_looks import list_followers, look_first
from agent.tools import PlanHints, ToolSpec
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import asking, spec

PATHS: JsonObject = {"paths": {"type": "array", "items": {"type": "string"}}}
DESCRIBE = spec("describe", PATHS, ["paths"], hints=PlanHints(file_input="paths", file_types=(".csv", ".xlsx")))
QUERY = spec(
    "query", {"sql": {"type": "string"}, **PATHS}, ["sql", "paths"], hints=PlanHints(looks_first_with="describe")
)
READ = spec("read", {"path": {"type": "string"}}, ["path"], hints=PlanHints(file_input="path"))


def build_step(tool: str, **args: object) -> PlanStep:
    return PlanStep.model_validate(
        {"id": "s1", "executor": "agent", "action": "tool", "tool": tool, "args": args, "intent": "count"}
    )


def request_with(*rounds: RoundCall, tools: tuple[ToolSpec, ...] = (DESCRIBE, QUERY, READ)) -> PlanningRequest:
    return asking("How many rows?", catalogue=Catalogue(skills=(), tools=tools), rounds=rounds)


@pytest.mark.parametrize("path", ["orders.csv", "data/Orders.CSV", "plan.xlsx"])
def test_a_table_is_described_instead_of_read_line_by_line(path: str) -> None:
    notes: list[str] = []
    looks = look_first([build_step("read", path=path)], request_with(), notes)
    assert [(look.tool, look.args) for look in looks.values()] == [("describe", {"paths": [path]})]
    assert notes == ["read waits for describe, which shows what it works on"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Join orders.csv and customers.csv: who pays most?", ["Orders.csv", "data/customers.csv"]),
        ("Which orders of orders.csv are in notes.txt?", ["Orders.csv"]),
        ("How many rows?", ["Orders.csv"]),
    ],
)
@pytest.mark.parametrize("step", ["read", "query"])
def test_every_table_that_the_request_names_is_described(question: str, expected: list[str], step: str) -> None:
    ground = "Files (4):\n- data/customers.csv\n- orders.csv\n- other.csv\n- notes.txt"
    request = replace(request_with(), question=question, ground=ground)
    args = {"path": "Orders.csv"} if step == "read" else {"sql": "SELECT 1", "paths": ["Orders.csv"]}
    looks = look_first([build_step(step, **args)], request, [])
    assert [(look.tool, look.args) for look in looks.values()] == [("describe", {"paths": expected})]


@pytest.mark.parametrize("path", ["notes.txt", "csv", "orders.csv.bak", ""])
def test_other_files_are_read(path: str) -> None:
    assert look_first([build_step("read", path=path)], request_with(), []) == {}


def test_without_a_tool_that_works_on_tables_they_are_read() -> None:
    request = request_with(tools=(DESCRIBE, READ))
    assert look_first([build_step("read", path="orders.csv")], request, []) == {}


@pytest.mark.parametrize("failed", [False, True])
def test_nothing_is_looked_at_twice_also_if_it_cannot_be(failed: bool) -> None:
    looked = RoundCall(0, "describe", {"paths": ["orders.csv"]}, "8 columns", failed=failed)
    assert look_first([build_step("read", path="orders.csv")], request_with(looked), []) == {}


def test_after_a_look_the_tools_that_work_on_it_follow_with_what_was_looked_at() -> None:
    looked = RoundCall(0, "describe", {"paths": ["orders.csv"]}, "8 columns")
    assert list_followers(request_with(looked)) == [(QUERY, {"paths": ["orders.csv"]})]


def test_a_query_that_failed_is_followed_by_another_one() -> None:
    looked = RoundCall(0, "describe", {"paths": ["orders.csv"]}, "8 columns")
    failed = RoundCall(1, "query", {"sql": "SELECT paid", "paths": ["orders.csv"]}, "no column paid", failed=True)
    assert list_followers(request_with(looked, failed)) == [(QUERY, {"paths": ["orders.csv"]})]


def test_after_another_call_the_planner_is_free() -> None:
    looked = RoundCall(0, "describe", {"paths": ["orders.csv"]}, "8 columns")
    read = RoundCall(0, "read", {"path": "notes.txt"}, "rent 900")
    done = RoundCall(1, "query", {"sql": "SELECT 1", "paths": ["orders.csv"]}, "1")
    assert list_followers(request_with(looked, read)) == []
    assert list_followers(request_with(looked, done)) == []
    assert list_followers(request_with()) == []

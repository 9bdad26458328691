"""Which steps of a decision run in its round: those that are left out or put off take along all that needs them."""

from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.planning.reply import list_calls
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.steps import defer_effects, drop_steps, leave_out_unasked
from agent.planning.rounds.tidy_calls import tidy_calls
from agent.tools import PlanHints
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
FIND = spec("find", {"what": TEXT}, ["what"])
WRITE = spec("write", {"name": TEXT, "text": TEXT}, ["name", "text"], annotations=SIDE_EFFECT)
POEM = "Roses are red and violets are blue"


def make_step(step_id: str, tool: str, *after: str, **args: JsonValue) -> PlanStep:
    return PlanStep(id=step_id, executor="agent", action="tool", tool=tool, args=args, depends_on=after)


def ask(question: str) -> PlanningRequest:
    return asking(question, catalogue=Catalogue(skills=(), tools=(FIND, WRITE)))


def test_what_needs_a_dropped_step_is_dropped_too_over_any_distance() -> None:
    first, second = make_step("s1", "find", what="a"), make_step("s2", "find", "s1", what="$s1")
    third, other = make_step("s3", "find", "s2", what="$s2"), make_step("s4", "find", what="b")
    assert drop_steps((first, second, third, other), {"s1"}) == (other,)
    assert drop_steps((first, second), ()) == (first, second)


def test_a_change_waits_with_all_that_needs_it() -> None:
    read = make_step("s1", "find", what="a")
    change, check = make_step("s2", "write", name="x", text="y"), make_step("s3", "find", "s2", what="$s2")
    report = make_step("s4", "find", "s3", what="$s3")
    notes: list[str] = []
    assert defer_effects((read, change, check, report), ask("Look at a"), notes) == (read,)
    assert notes == ["write waits until the results of this round are known"]


def test_a_change_that_all_else_needs_does_not_wait_for_it() -> None:
    """Else the round would make no call, and the next one would decide the same."""
    change, check = make_step("s1", "write", name="x", text="y"), make_step("s2", "find", "s1", what="$s1")
    notes: list[str] = []
    assert defer_effects((change, check), ask("Write y"), notes) == (change, check)
    assert notes == []


def test_an_unasked_change_is_kept_if_all_else_needs_it() -> None:
    change, check = make_step("s1", "write", name="keep.txt", text=POEM), make_step("s2", "find", "s1", what="$s1")
    assert leave_out_unasked((change, check), ask("What is new?"), []) == (change, check)


def decide(*calls: JsonObject) -> JsonObject:
    steps: list[JsonValue] = [{**call, "intent": f"part {number}"} for number, call in enumerate(calls)]
    return {"todo": [f"part {number}" for number in range(len(calls))], "steps": steps}


@pytest.mark.parametrize(
    ("question", "url", "stays"),
    [
        ("What is today's date?", "https://www.example.com/current-date", False),
        ("Which country is colder?", "https://www.weather.co.example/today", False),
        ("What does bbc say?", "https://www.bbc.com/news", True),
        ("Read https://stats.town.example/a and its page b", "https://stats.town.example/b", True),
        ("Read stats.town.example", "https://stats.town.example", True),
        ("What is on the page of Acme Tools?", "https://acme-tools.example/", True),
        ("Is it a leap year?", "not a url", True),
        ("Is it a leap year?", "https://", True),
        ("Is it a leap year?", "https://[", True),
    ],
)
def test_a_page_of_a_host_that_nobody_named_is_not_read(question: str, url: str, stays: bool) -> None:
    tidy = tidy_calls(decide({"tool": "find", "inputs": {"what": url}}), ask(question), lambda _: False)
    assert bool(tidy.data["steps"]) is stays
    assert bool(tidy.data["todo"]) is stays
    assert bool(tidy.made_up) is not stays


def test_a_host_that_nobody_named_is_seen_in_a_list_of_pages() -> None:
    call: JsonObject = {"tool": "find", "inputs": {"what": {"pages": ["https://far.example/x"]}}}
    assert tidy_calls(decide(call), ask("Is it a leap year?"), lambda _: False).data["steps"] == []


def test_a_page_that_a_result_names_is_read() -> None:
    found = RoundCall(0, "find", {"what": "a"}, "see https://far.example/x")
    request = replace(ask("Look at a"), rounds=(found,))
    call: JsonObject = {"tool": "find", "inputs": {"what": "https://far.example/y"}}
    assert tidy_calls(decide(call), request, lambda _: False).data["steps"] == [{**call, "intent": "part 0"}]


@pytest.mark.parametrize(
    ("expression", "waits"),
    [
        ("max_salary * 1.1", True),
        ("total / count", True),
        ("17.5 * 240", False),
        ("max(3, sqrt(16)) + pi * 2e3", False),
        ("summe * 1,19", True),
    ],
)
def test_a_computation_waits_for_the_figures_that_it_names(expression: str, waits: bool) -> None:
    compute = spec("compute", {"expression": TEXT}, ["expression"], hints=PlanHints(computes="expression"))
    request = asking("Who earns most, plus 10%?", catalogue=Catalogue(skills=(), tools=(FIND, compute)))
    call: JsonObject = {"tool": "compute", "inputs": {"expression": expression}}
    look: JsonObject = {"tool": "find", "inputs": {"what": "salaries"}}
    beside = tidy_calls(decide(look, call), request, lambda _: False).data
    assert [step["tool"] for step in list_calls(beside)] == (["find"] if waits else ["find", "compute"])
    assert beside["todo"] == ["part 0", "part 1"], "its part stays open"
    alone = tidy_calls(decide(call), request, lambda _: False).data
    assert [step["tool"] for step in list_calls(alone)] == ["compute"], "its error says what it takes"

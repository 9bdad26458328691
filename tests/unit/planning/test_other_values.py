"""Calls that are made again, and the values that a refused input may take instead."""

from dataclasses import replace

import pytest

from agent.core.models import JsonObject
from agent.planning.request import NextCall, RoundCall
from agent.planning.rounds.failed_calls import list_corrected_calls, list_interrupted_calls
from agent.planning.rounds.other_values import list_other_values, take_accepted_values
from agent.planning.rounds.repeated_calls import RepeatedCallError, check_repetition
from agent.tools import READ_ONLY, ToolSpec
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

FIND = ToolSpec(
    "find_person",
    "Finds a person.",
    {"type": "object", "properties": {"name": {"type": "string"}, "team": {"enum": ["a", "b"], "type": "string"}}},
    None,
    READ_ONLY,
    tainted=False,
)


def make_failure(name: str, text: str) -> RoundCall:
    return RoundCall(0, "find_person", {"name": name}, text, failed=True)


def make_call(name: str) -> JsonObject:
    return {"tool": "find_person", "inputs": {"name": name}}


@pytest.mark.parametrize(
    ("error", "values"),
    [
        ("there is no person 'the boss'; known: ann, ben", ["ann", "ben"]),
        ("the boss is unknown: Ann Berg, Ben Lund", ["Ann Berg", "Ben Lund"]),
        ('name "the boss" must be one of "x-1" and "x-2"', ["x-1", "x-2"]),
    ],
)
def test_the_values_that_an_error_lists_come_first(error: str, values: list[str]) -> None:
    found = list_other_values(FIND, make_failure("the boss", error), [], "Who is it?")
    assert [value for value in found["name"] if value in values] == values
    assert not any("the boss" in value for value in found["name"])


@pytest.mark.parametrize(("tried", "meant"), [("carl", "Carla"), ("Benn", "Ben"), ("Ann-Marie", "Annmarie")])
def test_a_misspelt_value_leaves_the_ones_that_are_like_it(tried: str, meant: str) -> None:
    error = f"there is no person '{tried}'; known: Dana, Carla, Annmarie, Emil, Ben"
    assert list_other_values(FIND, make_failure(tried, error), ["Dora"], "Who is it?") == {"name": [meant]}


def test_values_of_results_and_of_the_request_may_be_meant_too() -> None:
    failure = make_failure("the assignee", "there is no person 'the assignee'")
    found = list_other_values(FIND, failure, ['{"id": "T-4", "assignee": "ben"}'], "Who has T-4?")
    assert {"ben", "T-4"} <= set(found["name"])


def test_no_word_of_an_error_takes_the_place_of_a_statement() -> None:
    sql: JsonObject = {"type": "string", "contentMediaType": "application/sql"}
    query = ToolSpec("query", "Queries.", {"type": "object", "properties": {"sql": sql}}, None, READ_ONLY, tainted=True)
    call = RoundCall(0, "query", {"sql": "SELECT"}, "Parser Error: SELECT clause without selection list", failed=True)
    assert list_other_values(query, call, [], "How many are paid?") == {}


def test_an_error_that_names_no_input_leaves_no_choice() -> None:
    assert list_other_values(FIND, make_failure("ann", "the service is away"), ["ben"], "") == {}


def test_an_enumerated_input_keeps_its_values() -> None:
    failure = RoundCall(0, "find_person", {"team": "b"}, "team b is closed", failed=True)
    assert list_other_values(FIND, failure, ["a"], "") == {}


def test_an_identifier_that_the_user_named_is_not_replaced() -> None:
    """The model would close another ticket than the one that does not exist."""
    failure = make_failure("T-99", "there is no ticket 'T-99'; known: T-1, T-2")
    assert list_other_values(FIND, failure, [], "Close the ticket T-99") == {}
    assert "T-1" in list_other_values(FIND, failure, [], "Close the ticket about the lift")["name"]


def test_only_a_decision_of_nothing_but_earlier_calls_is_refused() -> None:
    rounds = [RoundCall(0, "find_person", {"name": "ann"}, "ann@example.org")]
    check_repetition({"steps": [make_call("ann"), make_call("ben")]}, rounds)
    with pytest.raises(RepeatedCallError, match="its result is above"):
        check_repetition({"steps": [make_call("ann")]}, rounds)


def test_of_repeated_calls_the_failed_one_is_told() -> None:
    rounds = [RoundCall(0, "find_person", {"name": "ann"}, "ann@example.org"), make_failure("bob", "no 'bob'")]
    with pytest.raises(RepeatedCallError, match="no 'bob'") as raised:
        check_repetition({"steps": [make_call("ann"), make_call("bob")]}, rounds)
    assert raised.value.call.failed


def test_an_identifier_of_the_request_is_replaced_only_where_another_tool_has_taken_it() -> None:
    failure = make_failure("T-4", "there is no person 't-4'; known: ann, ben")
    assert list_other_values(FIND, failure, [], "Who has T-4?") == {}
    ticket = RoundCall(0, "get_ticket", {"ticket_id": "T-4"}, '{"assignee": "ben"}')
    found = list_other_values(FIND, failure, [ticket.text], "Who has T-4?", (ticket, failure))
    assert {"ann", "ben"} <= set(found["name"])
    assert list_other_values(FIND, failure, [], "Who has T-4?", (replace(ticket, failed=True),)) == {}


STOCK = spec("stock", {"sku": {"type": "string"}}, ["sku"], origin="mcp:store")
ORDER = spec("order", {"sku": {"type": "string"}}, ["sku"], origin="mcp:store", annotations=SIDE_EFFECT)
STORE = Catalogue(skills=(), tools=(STOCK, ORDER))


def fail(text: str, tool: str = "stock", sku: str = "sku1105", number: int = 0) -> RoundCall:
    return RoundCall(number, tool, {"sku": sku}, text, failed=True)


def test_a_code_of_the_request_in_another_writing_is_the_one_that_the_error_has() -> None:
    unknown = fail("there is no item 'sku1105'; known: SKU-1042, SKU-1105, SKU-1106")
    request = asking("How many of sku1105 are left?", catalogue=STORE, rounds=(unknown,))
    assert [call.args for call in list_corrected_calls(request)] == [{"sku": "SKU-1105"}]
    other = fail("there is no item 'sku1105'; known: SKU-1042, SKU-1106")
    assert list_corrected_calls(replace(request, rounds=(other,))) == [], "a code like it is another thing"


@pytest.mark.parametrize("text", ["temporarily unavailable", "stock: 503", "Error executing tool stock: busy"])
def test_what_is_down_for_a_moment_is_asked_once_more(text: str) -> None:
    request = asking("How many of sku1105?", catalogue=STORE, rounds=(fail(text),))
    assert list_interrupted_calls(request) == [NextCall("stock", {"sku": "sku1105"})]
    assert list_interrupted_calls(replace(request, rounds=(fail(text), fail(text, number=1)))) == []
    assert list_interrupted_calls(replace(request, rounds=(fail(text, "order"),))) == [], "a change is not repeated"


@pytest.mark.parametrize("text", ["there is no item 'sku1105'", "sku must be a code"])
def test_an_error_about_the_inputs_is_no_interruption(text: str) -> None:
    request = asking("How many of sku1105?", catalogue=STORE, rounds=(fail(text),))
    assert list_interrupted_calls(request) == []


@pytest.mark.parametrize(
    ("error", "values"),
    [
        ("there is no run 'the last'; known: run-5522, run-5519", ["run-5522", "run-5519"]),
        ("no place 'the last': A-01,A-02", ["A-01", "A-02"]),
    ],
)
def test_where_an_error_lists_what_there_is_nothing_else_is_offered(error: str, values: list[str]) -> None:
    results = ['{"account": "joint"}']
    assert list_other_values(FIND, make_failure("the last", error), results, "Start the last one again") == {
        "name": values
    }


@pytest.mark.parametrize("tried", ["sum([tx['amount'] for tx in list])", "}},{", "a=b"])
def test_no_choice_replaces_an_expression(tried: str) -> None:
    failure = make_failure(tried, f"Function 'sum' is not defined, for '{tried}'; known: abs, ceil, cos")
    assert list_other_values(FIND, failure, [], "Add it up") == {}


def test_what_stands_between_two_quoted_texts_is_no_value() -> None:
    failure = make_failure("boss", "no person \"boss\" in [{'name': 'ann'}, {'name': 'ben'}]")
    (values,) = list_other_values(FIND, failure, [], "Who?").values()
    assert {"ann", "ben"} <= {*values}
    assert not any("{" in value or "}" in value for value in values)


LIST = spec("bank__list", {"account_id": {"type": "string"}, "month": {"type": "string"}}, ["account_id"])
SUM = spec("bank__sum", {"account_id": {"type": "string"}}, ["account_id"])
REFUSED = RoundCall(0, "bank__list", {"account_id": "joint", "month": "11"}, "there is no account 'joint'", failed=True)


@pytest.mark.parametrize(
    ("made", "accepted"),
    [
        ({"account_id": "ACC-1", "month": "11"}, "ACC-1"),
        ({"account_id": "ACC-1", "month": "12"}, "joint"),
        ({"month": "11"}, "joint"),
    ],
    ids=["the same call", "another call", "a call without it"],
)
@pytest.mark.parametrize("tool", [LIST, SUM])
def test_a_refused_value_becomes_the_one_that_was_taken_in_its_place(
    tool: ToolSpec, made: JsonObject, accepted: str
) -> None:
    request = replace(
        asking("What is on the joint account?", catalogue=Catalogue(skills=(), tools=(LIST, SUM))),
        rounds=(REFUSED, RoundCall(1, "bank__list", made, "[]", failed=False)),
    )
    assert take_accepted_values(tool, {"account_id": "joint"}, request) == {"account_id": accepted}
    assert take_accepted_values(tool, {"account_id": "savings"}, request) == {"account_id": "savings"}


def take_price(*rounds: RoundCall, question: str = "What is on the joint account?") -> JsonObject:
    request = asking(question, catalogue=Catalogue(skills=(), tools=(LIST, SUM)), rounds=rounds)
    return take_accepted_values(SUM, {"account_id": "joint"}, request)


def take(number: int, account: str) -> RoundCall:
    return RoundCall(number, "bank__list", {"account_id": account, "month": "11"}, "[]")


@pytest.mark.parametrize(
    ("rounds", "question"),
    [
        ((REFUSED, take(0, "savings")), "What is on the joint account and the other one?"),
        ((REFUSED, take(1, "Savings")), "What is on the joint account and on the savings?"),
        ((take(0, "ACC-1"), replace(REFUSED, number=1)), "What is on the joint account?"),
        ((REFUSED, take(1, "ACC-1"), take(1, "ACC-2")), "What is on the joint account?"),
    ],
    ids=["beside it", "another thing that is named", "before it", "several"],
)
def test_a_value_that_was_taken_for_another_thing_replaces_none(rounds: tuple[RoundCall, ...], question: str) -> None:
    assert take_price(*rounds, question=question) == {"account_id": "joint"}
    assert take_price(REFUSED, take(1, "ACC-1")) == {"account_id": "ACC-1"}


def test_an_error_that_lists_what_it_refused_lists_no_alternatives() -> None:
    failure = make_failure("anna", "Unknown people: anna, bert")
    assert "carla" in list_other_values(FIND, failure, ['{"name": "carla"}'], "Who is it?")["name"]

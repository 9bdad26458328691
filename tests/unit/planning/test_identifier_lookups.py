"""Where the identifier of what a call only describes is looked up."""

from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent.planning.request import PlanningRequest, RoundCall, RoundProgress
from agent.planning.rounds.identifier_lookups import find_described_value, list_lookups
from agent.planning.rounds.joined_looks import list_described_looks, list_joins, list_next_looks, list_resolved_calls
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
STOCK = spec("store__get_stock", {"item_id": TEXT}, ["item_id"], origin="mcp:store")
SEARCH = spec("store__search_items", {"query": TEXT, "zone": TEXT}, ["query"], origin="mcp:store")
LIST = spec("store__list_bins", {"zone": TEXT}, origin="mcp:store")
HISTORY = spec("store__get_history", {"itemId": TEXT}, ["itemId"], origin="mcp:store")
COUNT = spec("store__count", {"kind": {"type": "string", "enum": ["a", "b"]}}, ["kind"], origin="mcp:store")
ORDER = spec("store__order", {"item": TEXT}, ["item"], annotations=SIDE_EFFECT, origin="mcp:store")
OTHER = spec("mail__search", {"query": TEXT}, ["query"], origin="mcp:mail")
OWN = spec("web_search", {"query": TEXT}, ["query"])
TOOLS = (STOCK, SEARCH, LIST, HISTORY, COUNT, ORDER, OTHER, OWN)
UNKNOWN = "there is no item 'strapping tape'"


def ask(*calls: RoundCall) -> PlanningRequest:
    return asking("How much strapping tape is there?", catalogue=Catalogue(skills=(), tools=TOOLS), rounds=calls)


def fail(text: str, tool: str = "store__get_stock", **args: JsonValue) -> RoundCall:
    return RoundCall(0, tool, args or {"item_id": "strapping tape"}, text, failed=True)


def test_the_tools_of_the_same_server_that_take_words_find_it() -> None:
    call = fail(UNKNOWN)
    assert find_described_value(ask(call), call) == "strapping tape"
    assert [one.name for one in list_lookups(ask(call), call)] == ["store__search_items", "store__list_bins"]


def test_codes_in_the_error_show_that_an_identifier_is_meant_whatever_the_input_is_called() -> None:
    call = fail(f"{UNKNOWN}; known: SKU-1042, SKU-1077", "store__order", item="strapping tape")
    assert list_lookups(ask(call), call)


def test_words_with_a_measure_describe_a_thing() -> None:
    call = fail("there is no item '60x40 cardboard box'; known: SKU-1042, SKU-1077", item_id="60x40 cardboard box")
    looks = [(one.tool, one.args) for one in list_described_looks(ask(call))]
    assert looks == [("store__search_items", {"query": "60x40 cardboard box"}), ("store__list_bins", {})]
    code = fail("there is no item 'X-9'; known: SKU-1042, SKU-1077", item_id="X-9")
    assert list_described_looks(ask(code)) == []


def test_a_description_within_a_list_of_objects_is_one_too() -> None:
    call = fail(f"{UNKNOWN}; known: SKU-1042, SKU-1077", "store__order", lines=[{"sku": "strapping tape", "count": 2}])
    assert find_described_value(ask(call), call) == "strapping tape"


def test_an_identifier_of_another_thing_is_not_what_is_meant() -> None:
    supplier = RoundCall(0, "store__search_items", {"query": "tape"}, '{"supplier": "SUP-21"}')
    call = fail("there is no item 'SUP-21'; known: SKU-1042, SKU-1077", item_id="SUP-21")
    assert [one.name for one in list_lookups(ask(supplier, call), call)] == [
        "store__list_bins",
        "store__get_history",
        "store__count",
    ]
    assert list_lookups(ask(call), call) == (), "nothing tells whose it is"


def test_a_tool_that_failed_before_is_not_called_again() -> None:
    call, tried = fail(UNKNOWN), fail("the index is away", "store__search_items", query="tape")
    assert [one.name for one in list_lookups(ask(tried, call), call)] == ["store__list_bins"]


@pytest.mark.parametrize(
    "call",
    [
        fail("there is no item 'SKU-9'; known: SKU-1042, SKU-1077", item_id="SKU-9"),
        fail("the store is closed"),
        fail("there is no item 'tape'; known: rope, glue", "store__order", item="tape"),
        RoundCall(0, "store__get_stock", {"item_id": "strapping tape"}, UNKNOWN),
        fail("no mail 'strapping tape'", "web_search", query="strapping tape"),
    ],
    ids=["a code", "an error of another kind", "names are known", "it succeeded", "a tool of ours"],
)
def test_nothing_is_looked_up_for_other_failures(call: RoundCall) -> None:
    assert list_lookups(ask(call), call) == ()


FILTER: JsonValue = {
    "anyOf": [{"type": "object", "properties": {"supplier_id": TEXT, "state": TEXT}}, {"type": "null"}]
}
ORDERS = spec("store__list_orders", {"where": FILTER}, origin="mcp:store")
SUPPLIER = spec("store__get_supplier", {"supplierId": TEXT}, ["supplierId"], origin="mcp:store")
PRICE = spec("store__get_price", {"supplier_id": TEXT, "item": TEXT}, ["supplier_id", "item"], origin="mcp:store")
CLOSE = spec("store__close", {"supplier_id": TEXT}, annotations=SIDE_EFFECT, origin="mcp:store")
ABROAD = spec("mail__list", {"supplier_id": TEXT}, origin="mcp:mail")
FOUND = RoundCall(0, "store__search_items", {"query": "tape"}, '{"name": "Tape & Co", "supplier_id": "SUP-21"}')


def join(*calls: RoundCall) -> list[tuple[str, JsonValue]]:
    tools = (*TOOLS, ORDERS, SUPPLIER, PRICE, CLOSE, ABROAD)
    request = asking("Cancel the order at Tape & Co", catalogue=Catalogue(skills=(), tools=tools), rounds=calls)
    return [(one.tool, one.args) for one in list_joins(request)]


def test_what_belongs_to_another_thing_is_looked_up_by_the_inputs_that_take_its_identifier() -> None:
    call = fail("there is no order 'SUP-21'; known: OR-1001, OR-1002", "store__order", item="SUP-21")
    assert join(FOUND, call) == [
        ("store__list_orders", {"where": {"supplier_id": "SUP-21"}}),
        ("store__get_supplier", {"supplierId": "SUP-21"}),
    ]


def test_no_such_look_is_made_twice_or_for_an_earlier_round() -> None:
    call = fail("there is no order 'SUP-21'; known: OR-1001, OR-1002", "store__order", item="SUP-21")
    looked = RoundCall(0, "store__get_supplier", {"supplierId": "SUP-21"}, '{"name": "Tape & Co"}')
    assert [tool for tool, _ in join(FOUND, looked, call)] == ["store__list_orders"]
    later = RoundCall(1, "store__list_bins", {}, "A-01")
    assert join(FOUND, call, later) == []


def test_an_identifier_that_stands_in_no_named_field_is_left_to_the_model() -> None:
    call = fail("there is no order 'SUP-21'; known: OR-1001, OR-1002", "store__order", item="SUP-21")
    prose = RoundCall(0, "store__search_items", {"query": "tape"}, "Tape & Co is SUP-21")
    assert join(prose, call) == []
    assert join(call) == [], "nothing tells whose it is"


def test_two_calls_that_describe_the_same_have_it_looked_for_once() -> None:
    both = ask(fail(UNKNOWN), fail(UNKNOWN, "store__get_history", itemId="strapping tape"))
    looks = [(one.tool, one.args) for one in list_described_looks(both)]
    assert looks == [("store__search_items", {"query": "strapping tape"}), ("store__list_bins", {})]


TAPE = '{"item_id": "SKU-7", "name": "Strapping tape 50 mm"}'


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (TAPE, [{"item_id": "SKU-7"}]),
        (f'[{TAPE}, {{"item_id": "SKU-8", "name": "Tape"}}]', [{"item_id": "SKU-7"}]),
        (f'{TAPE}\n{{"item_id": "SKU-9", "name": "Strapping tape 20 mm"}}', []),
        ('{"bin_id": "B-1", "name": "Strapping tape"}', []),
        ("[]", []),
    ],
    ids=["one", "one of this name", "two of this name", "another thing", "nothing"],
)
def test_a_call_that_described_a_thing_is_made_with_the_identifier_that_was_found(
    text: str, args: list[JsonValue]
) -> None:
    look = RoundCall(1, "store__search_items", {"query": "strapping tape"}, text)
    assert [call.args for call in list_resolved_calls(ask(fail(UNKNOWN), look))] == args


def test_it_is_made_once() -> None:
    look = RoundCall(1, "store__search_items", {"query": "strapping tape"}, TAPE)
    assert list_resolved_calls(ask(fail(UNKNOWN), fail("SKU-7 is gone", item_id="SKU-7"), look)) == []


def look_further(question: RoundCall, *parts: str) -> list[tuple[str, JsonValue]]:
    tools = Catalogue(skills=(), tools=(*TOOLS, SUPPLIER))
    progress = RoundProgress(open_parts=parts)
    request = asking("How many SKU-7 are there, and where?", catalogue=tools, rounds=(question,), progress=progress)
    return [(one.tool, one.args) for one in list_next_looks(replace(request, checks_answers=True))]


def test_of_the_looks_at_what_was_found_those_for_the_open_part_are_made() -> None:
    text = '{"item_id": "SKU-7", "name": "Tape", "supplier_id": "SUP-23"}'
    tape = RoundCall(0, "store__search_items", {"query": "tape"}, text)
    assert look_further(tape, "find its stock") == [("store__get_stock", {"item_id": "SKU-7"})]
    assert look_further(tape, "find its supplier") == [("store__get_supplier", {"supplierId": "SUP-23"})]
    assert len(look_further(tape, "say more")) == 3, "nothing tells which of them"
    assert look_further(tape) == []


def test_a_code_that_was_searched_for_as_words_was_not_looked_at_yet() -> None:
    tape = RoundCall(0, "store__search_items", {"query": "SKU-7"}, '{"item_id": "SKU-7", "name": "Tape"}')
    assert look_further(tape, "find its stock") == [("store__get_stock", {"item_id": "SKU-7"})]
    price = RoundCall(0, "store__search_items", {"item_id": ["SKU-7"]}, '{"item_id": "SKU-7", "name": "Tape"}')
    assert look_further(price, "find its stock") == []

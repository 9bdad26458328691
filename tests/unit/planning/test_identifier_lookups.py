"""Where the identifier of what a call only describes is looked up."""

import pytest
from pydantic import JsonValue

from agent.planning.identifier_lookups import find_described_value, list_lookups
from agent.planning.request import PlanningRequest, RoundResult
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


def ask(*calls: RoundResult) -> PlanningRequest:
    return asking("How much strapping tape is there?", catalogue=Catalogue(skills=(), tools=TOOLS), rounds=calls)


def fail(text: str, tool: str = "store__get_stock", **args: JsonValue) -> RoundResult:
    return RoundResult(0, tool, args or {"item_id": "strapping tape"}, text, failed=True)


def test_the_tools_of_the_same_server_that_take_words_find_it() -> None:
    call = fail(UNKNOWN)
    assert find_described_value(ask(call), call) == "strapping tape"
    assert [one.name for one in list_lookups(ask(call), call)] == ["store__search_items", "store__list_bins"]


def test_codes_in_the_error_show_that_an_identifier_is_meant_whatever_the_input_is_called() -> None:
    call = fail(f"{UNKNOWN}; known: SKU-1042, SKU-1077", "store__order", item="strapping tape")
    assert list_lookups(ask(call), call)


def test_a_description_within_a_list_of_objects_is_one_too() -> None:
    call = fail(f"{UNKNOWN}; known: SKU-1042, SKU-1077", "store__order", lines=[{"sku": "strapping tape", "count": 2}])
    assert find_described_value(ask(call), call) == "strapping tape"


def test_an_identifier_of_another_thing_is_not_what_is_meant() -> None:
    supplier = RoundResult(0, "store__search_items", {"query": "tape"}, '{"supplier": "SUP-21"}')
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
        RoundResult(0, "store__get_stock", {"item_id": "strapping tape"}, UNKNOWN),
        fail("no mail 'strapping tape'", "web_search", query="strapping tape"),
    ],
    ids=["a code", "an error of another kind", "names are known", "it succeeded", "a tool of ours"],
)
def test_nothing_is_looked_up_for_other_failures(call: RoundResult) -> None:
    assert list_lookups(ask(call), call) == ()

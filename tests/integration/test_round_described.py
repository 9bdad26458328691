"""Rounds of a small model that describes what is meant where a tool takes its name. The model is scripted."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent.core.events import PlanProposed
from agent.tools import PlanHints
from tests.support.engine import engine_bench
from tests.support.script import decides, says, script, wants
from tests.support.tools import EFFECT, FunctionTool, returning

STRING = {"type": "string"}
STOCK = {"anchor": 12, "boiler": 3, "drill": 0}
ANSWER = says("It is done.", to="completion")


def make_stock_tool() -> FunctionTool:
    async def get_stock(inputs: dict[str, Any]) -> str:
        if inputs["item"] not in STOCK:
            raise RuntimeError(f"there is no item {inputs['item']!r}; known: {', '.join(STOCK)}")
        return f'{{"item": "{inputs["item"]}", "quantity": {STOCK[inputs["item"]]}}}'

    return FunctionTool("shop__get_stock", get_stock, origin="mcp:shop", properties={"item": STRING}, required=["item"])


async def test_each_of_the_few_values_that_an_error_lists_is_looked_at(tmp_path: Path) -> None:
    """A real 1.5B looked at the first one only, and ordered it."""
    stock = make_stock_tool()
    model = script(
        decides({"tool": stock.spec.name, "inputs": {"item": "sold out"}}, missing=["find what is sold out"], times=1),
        decides(),
        says("The drill is sold out.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[stock], model_profile="small") as bench:
        events = await bench.events("Which item of the shop is sold out?")
        purposes = bench.client.purposes()
    second = [event.body for event in events if isinstance(event.body, PlanProposed)][1]
    assert [call["item"] for call in stock.calls if call["item"] in STOCK] == [*STOCK]
    assert second.plan.origin == "rules"
    assert purposes.count("planner") == 2, "the looks are made by rule"


@pytest.mark.parametrize(("word", "ordered"), [("drill", "drill"), ("the drill", "anchor"), ("lamp", "anchor")])
async def test_of_the_things_that_were_looked_at_the_one_that_fits_is_changed(
    tmp_path: Path, word: str, ordered: str
) -> None:
    """A real 1.5B orders the first one, and names the right one when it is asked for that alone."""
    stock = make_stock_tool()
    order = returning(
        "shop__order", "ordered", origin="mcp:shop", annotations=EFFECT, properties={"item": STRING}, required=["item"]
    )
    parts = ["find what is sold out", "order 10 of it"]
    model = script(
        wants(order.spec.name),
        says(word, to="planner", about="Which one fits: find what is sold out?"),
        decides({"tool": stock.spec.name, "inputs": {"item": "sold out"}}, missing=parts, times=1),
        decides({"tool": order.spec.name, "inputs": {"item": "anchor"}}, missing=parts[1:], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[stock, order], model_profile="small") as bench:
        await bench.run("Which item of the shop is sold out? Order 10 of it")
    assert order.calls == [{"item": ordered}], "a reply that names none of them changes nothing"


async def test_a_value_that_the_request_names_is_looked_at_alone(tmp_path: Path) -> None:
    stock = make_stock_tool()
    model = script(
        decides({"tool": stock.spec.name, "inputs": {"item": "the big boiler"}}, missing=["find it"], times=1),
        decides({"tool": stock.spec.name, "inputs": {"item": "boiler"}}, missing=["find it"], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[stock], model_profile="small") as bench:
        await bench.run("How many are left of the big boiler?")
    assert [call["item"] for call in stock.calls if call["item"] in STOCK] == ["boiler"]


async def test_a_change_is_made_for_no_value_of_an_error(tmp_path: Path) -> None:
    async def order(inputs: dict[str, Any]) -> str:
        if inputs["item"] not in STOCK:
            raise RuntimeError(f"there is no item {inputs['item']!r}; known: {', '.join(STOCK)}")
        return "ordered"

    orders = FunctionTool(
        "shop__order", order, origin="mcp:shop", annotations=EFFECT, properties={"item": STRING}, required=["item"]
    )
    call = {"tool": "shop__order", "inputs": {"item": "sold out"}}
    model = script(wants("shop__order"), decides(call, missing=["order what is sold out"], times=2), decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[orders], model_profile="small") as bench:
        await bench.run("Order what is sold out")
    assert {call["item"] for call in orders.calls} == {"sold out"}


async def test_what_a_look_did_not_know_is_not_changed(tmp_path: Path) -> None:
    """A person would have to approve a call that is bound to fail. Of what the error lists, the request names one."""

    async def get(inputs: dict[str, Any]) -> str:
        if inputs["ticket_id"] not in ("T-6", "T-7", "T-8"):
            raise RuntimeError(f"there is no ticket {inputs['ticket_id']!r}; known: T-6, T-7, T-8")
        return "a ticket"

    properties, needed = {"ticket_id": STRING}, ["ticket_id"]
    look = FunctionTool("desk__get_ticket", get, origin="mcp:desk", properties=properties, required=needed)
    close = returning(
        "desk__close_ticket", "closed", origin="mcp:desk", annotations=EFFECT, properties=properties, required=needed
    )
    everything = returning("desk__list_tickets", "T-6, T-7, T-8", origin="mcp:desk")
    described = {"ticket_id": "Norden's ticket"}
    part = "close the ticket"
    model = script(
        wants("desk__close_ticket"),
        decides({"tool": look.spec.name, "inputs": described}, missing=[part], times=1),
        decides({"tool": close.spec.name, "inputs": described}, missing=[part], times=1),
        decides({"tool": close.spec.name, "inputs": {"ticket_id": "T-7"}}, missing=[part], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[look, close, everything], model_profile="small") as bench:
        await bench.run("Close Norden's ticket T-7")
        forms = [str(request["form"]) for request in bench.client.requests]
    assert close.calls == [{"ticket_id": "T-7"}]
    assert any("'enum': ['T-7']" in form for form in forms)


async def book(tmp_path: Path, question: str, *days: str) -> tuple[list[Any], str]:
    """The days that are booked, if the model decides on these in turn after a page and a clock were read; and the
    schemas of the decisions."""
    page = returning("show__read", "The talk is on 20 December 2031.", origin="mcp:show")
    clock = returning("tell_time", "It is 21:26:26 on Monday, 2031-11-29 (UTC).", hints=PlanHints(tells_now=True))
    booking = returning(
        "office__book", "booked", origin="mcp:office", annotations=EFFECT, properties={"day": STRING}, required=["day"]
    )
    looks = [{"tool": page.spec.name, "inputs": {}}, {"tool": clock.spec.name, "inputs": {}}]
    calls = [{"tool": booking.spec.name, "inputs": {"day": day}} for day in days]
    decisions = [decides(call, missing=["book the room"], times=1) for call in calls]
    model = script(
        wants("office__book"), decides(*looks, missing=["read", "look"], times=1), *decisions, decides(), ANSWER
    )
    async with engine_bench(tmp_path, model, tools=[page, clock, booking], model_profile="small") as bench:
        await bench.run(question)
        forms = "".join(str(request["form"]) for request in bench.client.requests)
    return [call["day"] for call in booking.calls], forms


async def test_a_day_that_only_the_clock_told_is_refused_once_where_a_result_has_another(tmp_path: Path) -> None:
    """A real 1.5B asked for the time where a page had the day, and booked today."""
    question = "On which day is the talk? Book the room Elm on that day"
    days, forms = await book(tmp_path, question, "2031-11-29", "2031-12-20")
    assert days == ["2031-12-20"]
    assert "'enum': ['2031-12-20']" in forms, "the days of the results are a choice"


async def test_today_may_be_meant_by_name(tmp_path: Path) -> None:
    days, _ = await book(tmp_path, "Read about the talk, and book the room Elm for 29 November 2031", "2031-11-29")
    assert days == ["2031-11-29"]


async def test_a_request_without_a_day_is_asked_for_one(tmp_path: Path) -> None:
    """A real 1.5B booked today, and a person was only shown the date."""
    book = returning(
        "office__book", "booked", origin="mcp:office", annotations=EFFECT,
        properties={"room": STRING, "day": STRING}, required=["room", "day"],
    )  # fmt: skip
    call = {"tool": book.spec.name, "inputs": {"room": "Oak", "day": datetime.now(UTC).date().isoformat()}}
    model = script(wants("office__book"), decides(call, missing=["book the room"]), ANSWER)
    async with engine_bench(tmp_path, model, tools=[book], model_profile="small") as bench:
        response = await bench.run("Book the room Oak for ann.")
    assert book.calls == []
    assert "`day`" in response.response


async def test_the_tool_that_an_error_names_is_called(tmp_path: Path) -> None:
    """A real 1.5B asked the broken gauge again."""
    broken = RuntimeError("the gauge of tank-4 is broken; its last level is in read_gauge_log")
    properties, needed = {"tank": STRING}, ["tank"]
    gauge = returning("plant__read_gauge", broken, origin="mcp:plant", properties=properties, required=needed)
    log = returning("plant__read_gauge_log", "88", origin="mcp:plant", properties=properties, required=needed)
    other = returning("store__read_gauge_log", "1", origin="mcp:store", properties=properties, required=needed)
    first = decides({"tool": gauge.spec.name, "inputs": {"tank": "tank-4"}}, missing=["read the level"], times=1)
    model = script(first, decides(), says("It is at 88.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[gauge, log, other], model_profile="small") as bench:
        events = await bench.events("What is the level of tank-4?")
    second = [event.body for event in events if isinstance(event.body, PlanProposed)][1]
    assert (log.calls, other.calls) == ([{"tank": "tank-4"}], [])
    assert second.plan.origin == "rules"


async def test_a_list_that_an_error_names_is_looked_at_first(tmp_path: Path) -> None:
    async def read(inputs: dict[str, Any]) -> str:
        if inputs["shelf"] != "S-2":
            raise RuntimeError(f"there is no shelf {inputs['shelf']!r}; list_shelves shows the shelves")
        return "3 boxes"

    shelf = FunctionTool("store__read_shelf", read, origin="mcp:store", properties={"shelf": STRING})
    shelves = returning("store__list_shelves", "S-1 (lower), S-2 (upper)", origin="mcp:store", properties={})
    part = "read the upper shelf"
    model = script(
        decides({"tool": shelf.spec.name, "inputs": {"shelf": "upper"}}, missing=[part], times=1),
        decides({"tool": shelf.spec.name, "inputs": {"shelf": "S-2"}}, missing=[part], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[shelf, shelves], model_profile="small") as bench:
        await bench.run("What is on the upper shelf?")
    assert len(shelves.calls) == 1
    assert shelf.calls[-1] == {"shelf": "S-2"}


async def read_budget(tmp_path: Path, named: str) -> str:
    """The answer about a file that the user names so, where there is only that of 2030, which the model reads next."""

    async def read(inputs: dict[str, Any]) -> str:
        if inputs["path"] != "budget-2030.csv":
            raise RuntimeError(f"there is no file {inputs['path']!r}; did you mean budget-2030.csv?")
        return "rent 1200"

    files = FunctionTool("read_table", read, properties={"path": STRING}, required=["path"])
    looks = [
        decides({"tool": files.spec.name, "inputs": {"path": path}}, missing=["read it"], times=1)
        for path in (named, "budget-2030.csv")
    ]
    model = script(*looks, decides(), says("The total is 1200.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[files], model_profile="small") as bench:
        return (await bench.run(f"Read {named} and tell me its total")).response


async def test_another_thing_than_the_one_that_is_not_there_is_not_looked_at(tmp_path: Path) -> None:
    """A real 1.5B told the total of another year's file as that of the one the user named."""
    answer = await read_budget(tmp_path, "budget-2031.csv")
    assert "1200" not in answer
    assert "there is no file 'budget-2031.csv'" in answer


async def test_a_name_that_the_user_misspelt_is_looked_at(tmp_path: Path) -> None:
    assert await read_budget(tmp_path, "budgte-2030.csv") == "The total is 1200."


async def test_another_address_takes_the_place_of_one_that_is_missing(tmp_path: Path) -> None:
    """A real 1.5B fetched `http`, a word of the request."""

    async def fetch(inputs: dict[str, Any]) -> str:
        if not inputs["url"].endswith("prices.html"):
            raise RuntimeError(f"{inputs['url']} answered with HTTP status 404")
        return "The year pass costs 58."

    first_page, second_page = "https://museum.example/tickets.html", "https://museum.example/prices.html"
    page = FunctionTool("show__read_page", fetch, origin="mcp:show", properties={"url": STRING}, required=["url"])
    part = "find the cost of the year pass"
    model = script(
        decides({"tool": page.spec.name, "inputs": {"url": first_page}}, missing=[part], times=1),
        decides({"tool": page.spec.name, "inputs": {"url": second_page}}, missing=[part], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[page], model_profile="small") as bench:
        await bench.run(f"What does the year pass cost by {first_page} or, if that is missing, {second_page} ?")
        forms = [str(request["form"]) for request in bench.client.requests]
    assert any(f"'enum': ['{second_page}']" in form for form in forms), "no word is a choice"

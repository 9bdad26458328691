"""Rounds of a small model that look in the wrong place, or stop too early. The model is scripted."""

from pathlib import Path
from typing import Any

from agent.core.events import PlanProposed
from tests.support.engine import Bench, engine_bench
from tests.support.script import asks_for, decides, says, script, wants
from tests.support.tools import EFFECT, FunctionTool, returning

STRING = {"type": "string"}
ANSWER = says("It is done.", to="completion")


def make_stock_tools() -> tuple[FunctionTool, FunctionTool]:
    async def get_stock(inputs: dict[str, Any]) -> str:
        if inputs["item_id"] != "SKU-7":
            raise RuntimeError(f"there is no item {inputs['item_id']!r}; known: SKU-6, SKU-7")
        return "12 rolls"

    stock = FunctionTool(
        "store__get_stock", get_stock, origin="mcp:store", properties={"item_id": STRING}, required=["item_id"]
    )
    tape = '[{"id": "SKU-7", "name": "strapping tape"}]'
    search = returning("store__search", tape, origin="mcp:store", properties={"query": STRING}, required=["query"])
    return stock, search


def list_asked(bench: Bench) -> list[str]:
    return [str(request["body"]["messages"][-1]["content"]) for request in bench.client.requests]


async def test_an_identifier_that_is_only_described_is_looked_up(tmp_path: Path) -> None:
    stock, search = make_stock_tools()
    model = script(
        decides({"tool": stock.spec.name, "inputs": {"item_id": "strapping tape"}}, missing=["get the stock"], times=1),
        decides({"tool": stock.spec.name, "inputs": {"item_id": "SKU-7"}}, missing=["get the stock"], times=1),
        decides(),
        says("There are 12 rolls.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[stock, search], model_profile="small") as bench:
        response = await bench.run("How much strapping tape is in stock?")
        asked = list_asked(bench)[1]
    assert search.calls == [{"query": "strapping tape"}], "by rule: the model would narrow it"
    assert "SKU-7" in asked
    assert response.response == "There are 12 rolls."


async def test_a_look_goes_without_what_nobody_gave(tmp_path: Path) -> None:
    async def search(inputs: dict[str, Any]) -> str:
        return "[]" if "sender" in inputs else '["your rent is 700"]'

    inputs = {"query": STRING, "sender": STRING}
    mails = FunctionTool("mail__search", search, origin="mcp:mail", properties=inputs, required=["query"])
    first = decides({"tool": mails.spec.name, "inputs": {"query": "rent", "sender": "landlord"}}, times=1)
    model = script(first, decides(), says("The rent is 700.", to="completion"))
    async with engine_bench(tmp_path, model, tools=[mails], model_profile="small") as bench:
        await bench.run("What is my rent?")
        purposes = bench.client.purposes()
    assert mails.calls == [{"query": "rent"}]
    assert purposes == ["planner", "planner", "completion"], "no model is asked for it"


async def test_a_run_in_which_every_call_failed_tells_the_errors(tmp_path: Path) -> None:
    """From errors alone a small model makes up what it was to find."""
    mails = returning("mail__search", RuntimeError("the mailbox is away"), origin="mcp:mail")
    model = script(
        decides({"tool": mails.spec.name, "inputs": {}}, times=1), decides(), says("It is on 5 April.", to="completion")
    )
    async with engine_bench(tmp_path, model, tools=[mails], model_profile="small") as bench:
        response = await bench.run("When is the reunion, by my mails?")
        purposes = bench.client.purposes()
    assert "5 April" not in response.response
    assert response.response.startswith("Nothing was found out or done")
    assert "the mailbox is away" in response.response
    assert "completion" not in purposes


async def test_a_change_that_was_asked_for_and_never_tried_is_asked_about_before_the_answer(tmp_path: Path) -> None:
    day, create = returning("get_day", "nothing on that day"), returning("create_event", "created", annotations=EFFECT)
    both = decides(
        {"tool": "get_day", "inputs": {}}, {"tool": "create_event", "inputs": {"x": "lunch"}},
        missing=["look at the day"], times=1,
    )  # fmt: skip
    needed = says('{"tool": "create_event"}', to="planner", about="need? none if it is done already")
    made = decides({"tool": "create_event", "inputs": {"x": "lunch"}}, about="The tool create_event is needed")
    model = script(wants("create_event"), needed, made, both, decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[day, create], model_profile="small") as bench:
        await bench.run("Am I free for lunch on Friday? If so, create an event for lunch")
    assert len(create.calls) == 1


async def test_the_model_may_say_that_the_change_is_not_needed(tmp_path: Path) -> None:
    day, create = returning("get_day", "lunch with Kim"), returning("create_event", "created", annotations=EFFECT)
    both = decides(
        {"tool": "get_day", "inputs": {}}, {"tool": "create_event", "inputs": {"x": "lunch"}},
        missing=["look at the day"], times=1,
    )  # fmt: skip
    unneeded = says('{"tool": "none"}', to="planner", about="need? none if it is done already")
    model = script(wants("create_event"), unneeded, both, decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[day, create], model_profile="small") as bench:
        response = await bench.run("Am I free for lunch on Friday? If so, create an event for lunch")
    assert create.calls == []
    assert response.response == "Nothing was changed, sent or saved. The model wrote:\n\nIt is done."


async def test_a_page_that_nobody_named_is_not_read_and_its_tool_is_no_choice_any_more(tmp_path: Path) -> None:
    page = returning("read_page", "a page", properties={"url": STRING}, required=["url"])
    mails = returning("mail__search", "the rent is 700", origin="mcp:mail")
    made_up = {"tool": "read_page", "inputs": {"url": "https://example.com/rent"}}
    model = script(
        decides(made_up, times=1), decides({"tool": mails.spec.name, "inputs": {}}, times=1), decides(), ANSWER
    )
    async with engine_bench(tmp_path, model, tools=[page, mails], model_profile="small") as bench:
        await bench.run("What does my landlord write about the rent?")
        form, asked = str(bench.client.requests[1]["form"]), list_asked(bench)[1]
    assert "nobody named this address" in asked
    assert "read_page" not in form
    assert (page.calls, len(mails.calls)) == ([], 1)


async def test_a_model_that_goes_round_in_circles_is_stopped(tmp_path: Path) -> None:
    error = RuntimeError("no mails found")
    mails = returning("mail__search", error, origin="mcp:mail", properties={"x": STRING}, required=["x"])
    calls = [decides({"tool": "mail__search", "inputs": {"x": f"word{n}"}}, times=1) for n in range(9)]
    async with engine_bench(tmp_path, script(*calls, ANSWER), tools=[mails], model_profile="small") as bench:
        response = await bench.run("What do my mails say?")
    assert len({str(call) for call in mails.calls}) == 5
    assert "no mails found" in response.response


async def test_a_part_whose_identifier_is_looked_up_stays_open(tmp_path: Path) -> None:
    stock, search = make_stock_tools()
    part = "get the stock"
    model = script(
        decides({"tool": stock.spec.name, "inputs": {"item_id": "strapping tape"}}, missing=[part], times=1),
        decides({"tool": stock.spec.name, "inputs": {"item_id": "SKU-7"}}, missing=[part], about=f"Next: {part}"),
        decides(),
        says("There are 12 rolls.", to="completion"),
    )
    async with engine_bench(tmp_path, model, tools=[stock, search], model_profile="small") as bench:
        await bench.run("How much strapping tape is in stock?")
        asked = list_asked(bench)[1]
    assert f"Next: {part}" in asked
    assert stock.calls[-1] == {"item_id": "SKU-7"}


async def test_the_identifier_of_a_change_that_is_made_up_is_looked_up_first(tmp_path: Path) -> None:
    move = returning(
        "bank__move", "moved", origin="mcp:bank", annotations=EFFECT,
        properties={"account_id": STRING}, required=["account_id"],
    )  # fmt: skip
    accounts = returning("bank__accounts", '[{"account_id": "ACC-SAV", "name": "savings"}]', origin="mcp:bank")
    part = "move the money to the savings"
    model = script(
        wants("bank__move"),
        decides({"tool": "bank__move", "inputs": {"account_id": "ACC-RYS"}}, missing=[part], times=1),
        decides({"tool": "bank__accounts", "inputs": {}}, missing=[part], times=1),
        decides({"tool": "bank__move", "inputs": {"account_id": "ACC-SAV"}}, missing=[part], times=1),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[move, accounts], model_profile="small") as bench:
        await bench.run("Move the money to the savings")
        forms = [str(request["form"]) for request in bench.client.requests]
    assert any("bank__accounts" in form and "bank__move" not in form for form in forms)
    assert move.calls == [{"account_id": "ACC-SAV"}]


async def test_a_decision_has_a_bound_of_its_own(tmp_path: Path) -> None:
    """A small model fills a text of a call until the endpoint stops it."""
    async with engine_bench(tmp_path, script(decides(), ANSWER), model_profile="small") as bench:
        await bench.run("What is 3 * 4, and who has ticket T-3?")
        limits = [one["limit"] for one in bench.client.requests if one["purpose"] == "planner"]
    assert limits == [2_000] * len(limits)


async def test_a_change_that_failed_is_not_made_with_another_word_of_the_request(tmp_path: Path) -> None:
    """A real 1.5B booked the room `Book` after "Book Oak" had failed."""
    taken = RuntimeError("Oak is taken at 09:00")
    book = returning("book_room", taken, annotations=EFFECT, properties={"room": STRING}, required=["room"])
    oak = {"tool": "book_room", "inputs": {"room": "Oak"}}
    model = script(wants("book_room"), decides(oak, times=2), decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[book], model_profile="small") as bench:
        await bench.run("Book Oak at 9. If it is taken, book nothing.")
        forms = [str(request["form"]) for request in bench.client.requests]
    assert not any("'Book'" in form for form in forms), "no word of the request is a choice"
    assert {call["room"] for call in book.calls} == {"Oak"}


async def test_a_change_that_the_model_forgot_is_asked_about_before_the_answer(tmp_path: Path) -> None:
    """A real 1.5B looked up the guest and then told that her booking was changed."""
    guests = returning("inn__guests", '[{"guest_id": "G-311", "name": "Mia"}]', origin="mcp:inn")
    extend = returning("inn__extend_booking", "extended", origin="mcp:inn", annotations=EFFECT)
    needed = says('{"tool": "inn__extend_booking"}', to="planner", about="need? none if it is done already")
    call = {"tool": "inn__extend_booking", "inputs": {"x": "Mia"}}
    made = decides(call, about="The tool inn__extend_booking is needed")
    looked = decides({"tool": "inn__guests", "inputs": {"x": "Mia"}}, missing=["find Mia"], times=1)
    model = script(asks_for("change"), wants("inn__extend_booking"), needed, made, looked, decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[guests, extend], model_profile="small") as bench:
        await bench.run("Please extend the booking of Mia by one night")
    assert len(extend.calls) == 1


async def test_a_question_for_information_is_not_taken_for_a_change(tmp_path: Path) -> None:
    """A real 1.5B, asked only which tool it needs, approved a request that was to be listed."""
    guests = returning("inn__guests", '[{"guest_id": "G-311", "name": "Mia"}]', origin="mcp:inn")
    extend = returning("inn__extend_booking", "extended", origin="mcp:inn", annotations=EFFECT)
    looked = decides({"tool": "inn__guests", "inputs": {"x": "Mia"}}, missing=["find Mia"], times=1)
    needed = says('{"tool": "inn__extend_booking"}', to="planner", about="need? none if it is done already")
    model = script(asks_for("information"), wants("inn__extend_booking"), needed, looked, decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[guests, extend], model_profile="small") as bench:
        response = await bench.run("Which booking does Mia have?")
    assert extend.calls == []
    assert response.response == "It is done."


INN: dict[str, Any] = {"origin": "mcp:inn"}
WHERE = {"type": "object", "properties": {"guest_id": STRING, "status": STRING}}


def make_inn_tools() -> tuple[FunctionTool, FunctionTool, FunctionTool]:
    """Tools that find guests and bookings, and one that cancels a booking."""

    async def cancel(inputs: dict[str, Any]) -> str:
        if inputs["booking_id"] != "BK-7002":
            raise RuntimeError(f"there is no booking {inputs['booking_id']!r}; known: BK-7001, BK-7002")
        return "cancelled"

    guest, booking = '[{"guest_id": "G-312", "name": "Jonas"}]', '[{"booking_id": "BK-7002", "guest_id": "G-312"}]'
    return (
        returning("inn__guests", guest, properties={"query": STRING}, required=[], **INN),
        returning("inn__bookings", booking, properties={"where": WHERE}, required=[], **INN),
        FunctionTool(
            "inn__cancel", cancel, properties={"booking_id": STRING}, required=["booking_id"], annotations=EFFECT, **INN
        ),
    )


def cancels(booking_id: str, part: str, **conditions: Any) -> Any:
    return decides({"tool": "inn__cancel", "inputs": {"booking_id": booking_id}}, missing=[part], **conditions)


async def test_what_is_named_by_the_identifier_of_another_thing_is_looked_up_without_the_model(tmp_path: Path) -> None:
    """A real 1.5B cancelled the booking `G-312`, which is the guest."""
    guests, bookings, change = make_inn_tools()
    part = "cancel the booking"
    model = script(
        wants("inn__cancel"),
        decides({"tool": "inn__guests", "inputs": {"query": "Jonas"}}, missing=["find Jonas"], times=1),
        cancels("G-312", part, times=1),
        cancels("BK-7002", part, about=f"Next: {part}"),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[guests, bookings, change], model_profile="small") as bench:
        events = await bench.events("Cancel the booking of Jonas")
    reasons = [event.body.plan.origin_reason for event in events if isinstance(event.body, PlanProposed)]
    assert bookings.calls == [{"where": {"guest_id": "G-312"}}]
    assert "a call named what is meant by the identifier of another thing" in reasons
    assert change.calls == [{"booking_id": "BK-7002"}], "nobody is asked to approve the wrong one"


async def test_an_identifier_under_another_name_is_used_once_nothing_is_left_to_look_at(tmp_path: Path) -> None:
    """Servers name one thing in two ways: the `member_id` of a list is the `reader_id` of a loan."""
    found = '[{"member_id": "M-12", "name": "Ada"}]'
    members = returning("inn__members", found, properties={"query": STRING}, required=[], **INN)
    loans = returning("inn__loans", "none", properties={"member_id": STRING}, required=["member_id"], **INN)
    lend = returning(
        "inn__lend", "lent", properties={"reader_id": STRING}, required=["reader_id"], annotations=EFFECT, **INN
    )
    part = "lend the book"
    lends = {"tool": "inn__lend", "inputs": {"reader_id": "M-12"}}
    model = script(
        wants("inn__lend"),
        decides({"tool": "inn__members", "inputs": {"query": "Ada"}}, missing=["find Ada"], times=1),
        decides(lends, missing=[part], times=1),
        decides(lends, missing=[part], about=f"Next: {part}"),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[members, loans, lend], model_profile="small") as bench:
        await bench.run("Lend the book to Ada")
    assert loans.calls == [{"member_id": "M-12"}]
    assert lend.calls == [{"reader_id": "M-12"}]


async def test_what_belongs_to_the_one_thing_that_was_found_is_looked_up_before_the_next_part(tmp_path: Path) -> None:
    guests, bookings, change = make_inn_tools()
    part = "cancel the booking"
    model = script(
        wants("inn__cancel"),
        decides({"tool": "inn__guests", "inputs": {"query": "Jonas"}}, missing=["find Jonas", part], times=1),
        cancels("BK-7002", part, about=f"Next: {part}"),
        decides(),
        ANSWER,
    )
    async with engine_bench(tmp_path, model, tools=[guests, bookings, change], model_profile="small") as bench:
        await bench.run("Cancel the booking of Jonas")
        asked = list_asked(bench)[1]
    assert bookings.calls == [{"where": {"guest_id": "G-312"}}]
    assert "BK-7002" in asked, "the model sees it with the guest"
    assert change.calls == [{"booking_id": "BK-7002"}]


async def test_a_look_that_is_made_again_takes_no_other_part_for_done(tmp_path: Path) -> None:
    async def search(inputs: dict[str, Any]) -> str:
        return "[]" if " " in inputs["query"] else '["your rent is 700"]'

    mails = FunctionTool("mail__search", search, origin="mcp:mail", properties={"query": STRING}, required=["query"])
    note = returning("mail__note", "noted", origin="mcp:mail", annotations=EFFECT)
    narrow = {"tool": mails.spec.name, "inputs": {"query": "rent noted"}}
    part = "note it down"
    written = decides({"tool": note.spec.name, "inputs": {"x": "700"}}, missing=[part], about=f"Next: {part}")
    model = script(
        wants(note.spec.name), decides(narrow, missing=["find the rent", part], times=1), written, decides(), ANSWER
    )
    async with engine_bench(tmp_path, model, tools=[mails, note], model_profile="small") as bench:
        await bench.run("What is my rent? Note it down")
    assert [call["query"] for call in mails.calls] == ["rent noted", "rent", "note"]
    assert note.calls == [{"x": "700"}]


async def test_a_model_that_only_repeats_its_call_has_what_was_found_looked_at(tmp_path: Path) -> None:
    guests, bookings, _ = make_inn_tools()
    looked = decides({"tool": "inn__guests", "inputs": {"query": "Jonas"}}, missing=["find Jonas"], times=2)
    model = script(looked, decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[guests, bookings], model_profile="small") as bench:
        response = await bench.run("Which booking does Jonas have?")
        purposes = bench.client.purposes()
    assert bookings.calls == [{"where": {"guest_id": "G-312"}}]
    assert purposes == ["planner"] * 3 + ["completion"]
    assert response.response == "It is done."


async def test_a_look_goes_without_a_kind_that_nobody_named(tmp_path: Path) -> None:
    async def find_rooms(inputs: dict[str, Any]) -> str:
        return '["101", "102"]' if "kind" in inputs else '["101", "102", "204"]'

    inputs = {"day": STRING, "kind": {"type": "string", "enum": ["single", "double"]}, "sauna": {"type": "boolean"}}
    rooms = FunctionTool("inn__rooms", find_rooms, properties=inputs, required=["day"], **INN)
    given = {"day": "2027-02-20", "kind": "single", "sauna": True}
    asked = "Is room 204 free on 2027-02-20?", "Which single rooms with a sauna are free on 2027-02-20?"
    for place, question in enumerate(asked):
        model = script(decides({"tool": "inn__rooms", "inputs": given}, times=1), decides(), ANSWER)
        async with engine_bench(tmp_path / str(place), model, tools=[rooms], model_profile="small") as bench:
            await bench.run(question)
    assert rooms.calls == [{"day": "2027-02-20"}, given]


async def test_after_copied_steps_the_model_decides_on_the_request_as_one_part(tmp_path: Path) -> None:
    mails = returning("mail__search", "the rent is 700", origin="mcp:mail", properties={"x": STRING})
    copied = ("find the newest book on trees and its author", "lend it to member 7")
    wrong, right = ({"tool": "mail__search", "inputs": {"x": words}} for words in ("trees", "rent"))
    model = script(decides(wrong, missing=copied, times=1), decides(right, missing=("the rent",), times=1), ANSWER)
    async with engine_bench(tmp_path, model, tools=[mails], model_profile="small") as bench:
        await bench.run("What do my mails say about the rent?")
        first, second = bench.client.requests[:2]
    assert second["body"]["messages"] == first["body"]["messages"], "nothing of what it copied"
    assert "'items': {'type': 'string', 'enum': ['What do my mails say about the rent?']}" in str(second["form"])
    assert mails.calls == [{"x": "rent"}]


async def test_a_call_with_values_of_the_request_is_made_whatever_its_step_was_copied_from(tmp_path: Path) -> None:
    mails = returning("mail__search", "the rent is 700", origin="mcp:mail", properties={"x": STRING})
    copied = ("find the newest book on trees and its author", "lend it to member 7")
    calls = [{"tool": "mail__search", "inputs": {"x": words}} for words in ("rent", "trees")]
    model = script(decides(*calls, missing=copied, times=1), decides(), ANSWER)
    async with engine_bench(tmp_path, model, tools=[mails], model_profile="small") as bench:
        await bench.run("What do my mails say about the rent?")
    assert mails.calls == [{"x": "rent"}]


async def test_a_model_that_only_copies_the_examples_answers_from_memory_and_the_run_is_partial(tmp_path: Path) -> None:
    mails = returning("mail__search", "the rent is 700", origin="mcp:mail", properties={"x": STRING})
    copied = ("find the newest book on trees and its author", "lend it to member 7")
    wrong = decides({"tool": "mail__search", "inputs": {"x": "trees"}}, missing=copied)
    model = script(wrong, says('{"tool": "none"}', to="planner", about="Before it is answered"), ANSWER)
    async with engine_bench(tmp_path, model, tools=[mails], model_profile="small") as bench:
        run = await bench.run("What does mail 17 say about the rent?")
    assert mails.calls == []
    assert run.metadata["status"] == "partial"


async def test_nobody_is_asked_for_a_value_of_a_change_that_the_request_does_not_speak_of(tmp_path: Path) -> None:
    """Of "put him down for that shift" the 1.5B makes the end of a membership, and has no day for it."""
    day = {"member_id": STRING, "last_day": STRING}
    end = returning(
        "club__members_end", "ended", annotations=EFFECT, origin="mcp:club", properties=day, required=[*day]
    )
    assign = returning("club__shifts_assign", "assigned", annotations=EFFECT, origin="mcp:club", properties=day)
    wrong = decides({"tool": "club__members_end", "inputs": {"member_id": "Mats", "last_day": "soon"}})
    model = script(wants("club__members_end"), wrong, ANSWER)
    async with engine_bench(tmp_path, model, tools=[end, assign], model_profile="small") as bench:
        run = await bench.run("Mats takes the grill, put Mats down for that shift")
        asked = await bench.run("Mats leaves us, please end his membership")
    assert end.calls == []
    assert run.response.startswith("Nothing was changed, sent or saved.")
    assert "which `last_day` do you mean?" in asked.response

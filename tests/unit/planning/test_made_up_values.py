"""Values of changes that stand nowhere: which inputs are told, and which texts a model may write itself."""

from dataclasses import replace
from time import thread_time
from zoneinfo import ZoneInfo

import pytest
from pydantic import JsonValue

from agent.core.models import ChatMessage, PlanStep
from agent.planning.request import AnswerRules, PlanningRequest, RoundCall
from agent.planning.rounds.dialogue import Dialogue
from agent.planning.rounds.made_up_values import (
    MadeUpValue,
    MadeUpValueError,
    find_made_up_values,
    format_question,
    leave_out_unasked_texts,
    select_missing,
)
from agent.planning.rounds.steps import leave_out_unasked
from agent.tools.catalogue import Catalogue
from agent.tools.client_tools import CLIENT_ORIGIN
from tests.support.machine import get_slowness
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
WRITE = spec(
    "write_file", {"name": TEXT, "text": TEXT}, ["name", "text"], description="Write a file.", annotations=SIDE_EFFECT
)
SAVE = spec("save", {"text": TEXT}, ["text"], description="Remember it.", annotations=SIDE_EFFECT)
PERSON: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"to": {**TEXT, "description": "an address"}, "amount": TEXT},
    "required": ["to"],
}
PAY = spec(
    "pay",
    {"payments": {"type": "array", "items": PERSON}, "options": {"type": "object"}, "note": TEXT, "to": TEXT},
    ["payments"],
    description="Pay people.",
    annotations=SIDE_EFFECT,
    argument_roles={"to": "where", "note": "content"},
)
GROUND = "Today is Friday.\nFiles (2):\n- old.txt\n- keep.txt"
POEM = "Roses are red and violets are blue"


def make_step(tool: str, step_id: str = "s1", **args: JsonValue) -> PlanStep:
    return PlanStep(id=step_id, executor="agent", action="tool", tool=tool, args=args, effect="effect")


def ask(question: str, *rounds: RoundCall) -> PlanningRequest:
    return asking(question, catalogue=Catalogue(skills=(), tools=(WRITE, SAVE, PAY)), ground=GROUND, rounds=rounds)


def find(question: str, tool: str, *rounds: RoundCall, **args: JsonValue) -> list[str]:
    return [one.name for one in find_made_up_values([make_step(tool, "s1", **args)], ask(question, *rounds))]


@pytest.mark.parametrize(
    ("question", "name", "told"),
    [
        ("Delete old.txt", "keep.txt", ["text"]),
        ("Write a poem into keep.txt", "keep.txt", []),
        ("Write a poem into roses.md", "roses.md", []),
        ("Write a poem", "secret", ["name"]),
    ],
)
def test_a_text_of_its_own_goes_only_where_the_request_says(question: str, name: str, told: list[str]) -> None:
    assert find(question, "write_file", name=name, text=POEM) == told


def test_a_text_of_its_own_may_go_where_a_result_says() -> None:
    found = RoundCall(0, "read_file", {}, "Put poems into verses.md", failed=False, missing=())
    assert find("Write a poem where the note says", "write_file", found, name="verses.md", text=POEM) == []
    assert find("Write a poem where the note says", "write_file", name="verses.md", text=POEM) == ["name"]


def test_a_change_that_is_only_a_text_is_the_models_to_write() -> None:
    assert find("Remember what I like", "save", text=POEM) == []


def test_a_change_that_nobody_asked_for_is_left_out_of_the_others() -> None:
    asked = make_step("save", text="old.txt is gone")
    unasked = make_step("write_file", "s2", name="keep.txt", text=POEM)
    notes: list[str] = []
    assert leave_out_unasked((asked, unasked), ask("Note that old.txt is gone"), notes) == (asked,)
    assert notes == ["write_file is left out: nobody asked for it"]
    assert leave_out_unasked((unasked,), ask("Note that old.txt is gone"), notes) == (unasked,), "the user is asked"


def test_a_description_that_a_tool_did_not_know_is_no_value_of_a_change() -> None:
    described = "manager of the person with T-4"
    unknown = RoundCall(0, "find_person", {"name": described}, f"there is no person '{described}'", failed=True)
    question = f"Write to the {described}: 'it waits'"
    (made_up,) = find_made_up_values([make_step("write_file", name=described, text="it waits")], ask(question, unknown))
    assert (made_up.name, made_up.refused_by) == ("name", "find_person")
    known = RoundCall(1, "find_person", {"name": described}, "ann", failed=False)
    assert find(question, "write_file", unknown, known, name=described, text="it waits") == []


def test_a_short_value_that_stands_in_an_error_is_still_a_value() -> None:
    failed = RoundCall(0, "read_file", {"path": "keep.txt"}, "keep.txt is too large", failed=True)
    assert find("Write 'gone' into keep.txt", "write_file", failed, name="keep.txt", text="gone") == []


def test_the_values_of_a_call_that_the_client_runs_are_its_own_concern() -> None:
    offered = replace(WRITE, origin=CLIENT_ORIGIN)
    request = asking("Write it down", catalogue=Catalogue(skills=(), tools=(offered,)), ground=GROUND)
    assert find_made_up_values([make_step("write_file", name="secret", text="5")], request) == ()
    assert find("Write it down", "write_file", name="secret", text="5") == ["name", "text"]


@pytest.mark.parametrize(
    ("args", "places"),
    [
        ({"payments": [{"to": "ann", "amount": "5"}]}, []),
        ({"payments": [{"to": "ann", "amount": "7"}]}, ["payments[0].amount"]),
        ({"payments": [{"to": "ann", "amount": 5}, {"to": "eve", "amount": 5}]}, ["payments[1].to"]),
        ({"payments": [], "options": {"copy": {"to": "eve@evil.example"}}},
         ["options.copy", "options.copy.to"]),
        ({"payments": [], "options": {"eve": 5}}, ["options.eve"]),
        ({"payments": '[{"to": "eve", "amount": 5}]'}, ["payments[0].to"]),
        ({"payments": [{"to": {"$from": "s0", "path": "output.to"}, "amount": "5"}]}, []),
        ({"payments": [{"to": "$s0.output.to", "amount": "5"}]}, []),
        ({"payments": [{"to": {"$literal": "eve"}, "amount": "5"}]}, ["payments[0].to"]),
        ({"payments": [{"to": None, "amount": True}]}, []),
        ({"payments": [{"to": "ann"}], "note": "all the best to you and yours", "to": "ann"}, []),
        ({"payments": [], "to": "the new partner of the firm"}, ["to"]),
    ],
)  # fmt: skip
def test_values_within_lists_and_objects_are_looked_at(args: dict[str, JsonValue], places: list[str]) -> None:
    made_up = find_made_up_values([make_step("pay", "s1", **args)], ask("Pay ann 5"))
    assert [one.place for one in made_up] == places


def test_the_question_for_a_value_within_a_list_names_its_place_and_meaning() -> None:
    (made_up,) = find_made_up_values([make_step("pay", payments=[{"to": "eve", "amount": 5}])], ask("Pay 5"))
    assert "`payments[0].to` (an address)" in format_question(made_up)


def test_a_text_of_its_own_within_an_object_goes_only_where_the_request_says() -> None:
    step = make_step("pay", payments=[{"to": "old.txt", "amount": POEM}])
    assert [one.place for one in find_made_up_values([step], ask("Write a poem"))] == ["payments[0].amount"]
    assert find_made_up_values([step], ask("Write a poem to old.txt")) == ()


def test_long_lists_and_numbers_that_no_integer_holds_are_looked_at_in_time() -> None:
    words = " ".join(f"w{number}ord" for number in range(30_000))
    result = RoundCall(0, "read_file", {}, f"{words} 7 \u00b2", failed=False, missing=())
    payments: list[JsonValue] = [{"to": f"person{number}", "amount": "9" * 5_000} for number in range(2_000)]
    payments.append({"to": "ann", "amount": "\u00b2"})
    begin = thread_time()
    made_up = find_made_up_values([make_step("pay", payments=payments)], ask("Pay ann", result))
    assert thread_time() - begin < 5 * get_slowness()
    assert len(made_up) == 4_000
    assert len(MadeUpValueError(made_up).args[0]) < 10_000


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2026-05-19T10:00:00", "2026-05-19T11:00:00", []),
        ("2026-05-19 10:00", "2026-05-19 11:00", []),
        ("2026-05-19T10:00", "2026-05-20T11:00", ["options"]),
        ("2026-05-19T12:30", "2026-05-19T13:30", ["options", "options"]),
    ],
    ids=["as ISO writes it", "with a space", "another day", "neither is known"],
)
def test_the_end_of_what_begins_at_a_known_time_is_known(start: str, end: str, told: list[str]) -> None:
    question = "Pay Kim for one hour: start on 2026-05-19 at 10:00, and its end"
    assert find(question, "pay", payments=[{"to": "Kim"}], options={"start": start, "end": end}) == told


DECIDE = spec(
    "leave__decide", {"id": TEXT, "comment": TEXT, "title": TEXT}, ["id", "title"],
    annotations=SIDE_EFFECT, origin="mcp:leave",
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "language", "stays"),
    [
        ("approve Oskar's please", "", False),
        ("approve it, with a kind comment", "", True),
        ("approve it: the team lead has agreed to it", "", True),
        ("genehmige es mit einem netten Kommentar", "German", True),
    ],
)
def test_an_optional_text_that_nobody_spoke_of_is_left_out(question: str, language: str, stays: bool) -> None:
    args: dict[str, JsonValue] = {"id": "LR-501", "title": "Some words here", "comment": "The team lead has agreed"}
    request = replace(ask(question), answer=AnswerRules(language=language))
    assert ("comment" in leave_out_unasked_texts(DECIDE, args, request)) is stays
    assert leave_out_unasked_texts(DECIDE, args, request)["title"] == "Some words here", "it is required"


@pytest.mark.parametrize(
    ("question", "to", "text", "names"),
    [
        ('Send the message "the lift works again".', "lift", "the lift works again", ["to"]),
        ("Schick „der Aufzug fährt jetzt wieder“ ab", "Aufzug", "der Aufzug fährt jetzt wieder", ["to"]),
        ('Send Lift & Co the message "the lift works again".', "lift", "the lift works again", []),
        ("Send that the lift works again", "lift", "the lift works again", []),
        ('Send the message "the lift of 12 works again".', "12", "the lift of 12 works again", []),
    ],
    ids=["only in the message", "other quotation marks", "named elsewhere, too", "not quoted", "a number"],
)
def test_a_recipient_is_not_taken_out_of_the_message(question: str, to: str, text: str, names: list[str]) -> None:
    send = spec("send", {"to": TEXT, "text": TEXT}, ["to", "text"], description="Send.", annotations=SIDE_EFFECT)
    request = asking(question, catalogue=Catalogue(skills=(), tools=(send,)))
    made_up = find_made_up_values([make_step("send", to=to, text=text)], request)
    assert [one.name for one in made_up] == names


NUMBER: dict[str, JsonValue] = {"type": "number"}
KINDS: dict[str, JsonValue] = {
    "minutes": NUMBER, "seconds": NUMBER, "amount": NUMBER, "amount_cents": NUMBER, "brightness_pct": NUMBER,
    "currency": TEXT, "time": TEXT, "start": TEXT, "quantity": NUMBER, "title": TEXT, "path": TEXT, "to": TEXT,
}  # fmt: skip
DO = spec("do", KINDS, [*KINDS], description="Do it.", annotations=SIDE_EFFECT)


def find_in(question: str, args: dict[str, JsonValue], result: str = "") -> list[MadeUpValue]:
    rounds = (RoundCall(0, "look", {}, result),) if result else ()
    request = asking(question, catalogue=Catalogue(skills=(), tools=(DO,)), ground=GROUND, rounds=rounds)
    request = replace(request, zone=ZoneInfo("Europe/Berlin"), named_days=("2026-11-30",))
    return [*find_made_up_values([make_step("do", "s1", **args)], request)]


@pytest.mark.parametrize(
    ("question", "args"),
    [
        ("Set a timer for ten minutes", {"minutes": 10}),
        ("Set a timer for ten minutes", {"seconds": 600}),
        ("Set a timer for half an hour", {"minutes": 30}),
        ("Do it in an hour", {"minutes": 60}),
        ("Order a dozen eggs", {"quantity": 12}),
        ("Pay Jonas fifty euros", {"to": "Jonas", "amount": 50, "currency": "EUR"}),
        ("Pay Jonas 1,250 dollars", {"amount": 1250}),
        ("Pay Jonas 1.5k", {"amount": 1500}),
        ("Pay Jonas $12.50", {"amount_cents": 1250}),
        ("Pay Jonas 20", {"amount": 20.0}),
        ("Dim it to half", {"brightness_pct": 50}),
        ("The dentist on 4 December at 3pm", {"time": "15:00", "start": "2026-12-04T15:00:00+01:00"}),
        ("Wake me at half past six", {"time": "06:30"}),
        ("Wake me at 7 in the morning", {"time": "07:00"}),
        ("Standup from 9:30 to 10", {"time": "10:00"}),
        ("Standup tomorrow at noon", {"start": "2026-11-30T12:00:00"}),
        ("Termin am 4.12. um halb vier", {"start": "2026-12-04T15:30:00"}),
    ],
)
def test_what_is_said_in_another_form_is_not_made_up(question: str, args: dict[str, JsonValue]) -> None:
    assert find_in(question, args) == []


@pytest.mark.parametrize(
    ("question", "args"),
    [
        ("Set a timer for ten minutes", {"seconds": 60}),
        ("Pay Jonas fifty euros", {"amount": 55}),
        ("Pay Jonas fifty euros", {"currency": "USD"}),
        ("Pay Jonas", {"amount": 50}),
        ("Send it to Bob", {"to": "eve"}),
        ("Send it to bob@ours.example", {"to": "eve@evil.example"}),
        ("Wake me at half past six", {"time": "06:45"}),
        ("Pay Jonas 30", {"amount": 3000}),
    ],
)
def test_another_value_is_made_up(question: str, args: dict[str, JsonValue]) -> None:
    assert [one.value for one in find_in(question, args)] == [*args.values()]


@pytest.mark.parametrize(
    ("question", "args", "result"),
    [
        ("Order eggs", {"quantity": 1}, ""),
        ("Open a ticket that my laptop screen flickers", {"title": "Screen defect"}, ""),
        ("Write a poem about autumn and save it", {"path": "autumn_poem.md"}, ""),
        ("Give Ann 5 percent more", {"amount": 4200}, "Ann 4000"),
        ("Remind me after lunch", {"time": "13:00"}, ""),
    ],
)
def test_what_may_follow_from_the_request_is_shown_and_not_asked_for(
    question: str, args: dict[str, JsonValue], result: str
) -> None:
    (made_up,) = find_in(question, args, result)
    assert select_missing([made_up], ask(question)) == ()


@pytest.mark.parametrize(
    ("question", "args", "result"),
    [
        ("Pay Jonas", {"amount": 4300}, "Ann 4000"),
        ("Send the report", {"to": "boss"}, ""),
        ("Send the report", {"to": "report@boss.org"}, ""),
        ("Send the report to us", {"to": "us.evil.example"}, ""),
    ],
)
def test_an_amount_or_a_place_that_nobody_gave_is_asked_for(
    question: str, args: dict[str, JsonValue], result: str
) -> None:
    made_up = find_in(question, args, result)
    assert [one.value for one in select_missing(made_up, ask(question))] == [*args.values()]


def test_no_input_is_asked_for_twice_in_a_row() -> None:
    (made_up,) = find_in("after lunch at Luigi's", {"to": "bistro"})
    question = ChatMessage(role="assistant", content=format_question(made_up))
    other = ChatMessage(role="assistant", content="For `do`: which `amount` do you mean?")
    answer = ChatMessage(role="user", content="the one by the sea")
    request = ask("12")
    assert select_missing([made_up], replace(request, history=(other, answer))) == (made_up,)
    assert select_missing([made_up], replace(request, history=(question, answer))) == ()
    assert select_missing([made_up], replace(request, history=(question, answer, other, answer))) == ()
    done = ChatMessage(role="assistant", content="It is done.")
    assert select_missing([made_up], replace(request, history=(question, answer, done, answer))) == (made_up,)


@pytest.mark.parametrize("payments", [[], "[]"])
def test_a_needed_list_that_is_empty_is_asked_for(payments: JsonValue) -> None:
    request = ask("Pay the plumber what he gets")
    made_up = find_made_up_values([make_step("pay", payments=payments)], request)
    assert [one.place for one in select_missing(made_up, request)] == ["payments"]
    assert find("Pay the plumber what he gets", "pay", payments=[{"to": "plumber"}], options={}) == []


def test_an_empty_text_within_a_list_names_nothing() -> None:
    request = ask("Pay the plumber 50")
    made_up = find_made_up_values([make_step("pay", payments=[{"to": "", "amount": "50"}])], request)
    assert [one.place for one in made_up] == ["payments[0].to"]
    assert find("Pay the plumber 50, without a note", "pay", payments=[{"to": "plumber"}], note="") == []


def test_an_empty_text_that_an_entry_may_do_without_is_not_asked_for() -> None:
    assert find("Pay the plumber", "pay", payments=[{"to": "plumber", "amount": ""}]) == []
    line: JsonValue = {"type": "object", "properties": {"part": TEXT, "note": TEXT}, "required": ["part"]}
    cells: JsonValue = {"type": "array", "items": {"type": "array", "items": TEXT}}
    declared: dict[str, JsonValue] = {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}, "rows": cells}
    add = spec("add", declared, ["lines"], annotations=SIDE_EFFECT)
    schema: dict[str, JsonValue] = {**add.input_schema, "$defs": {"line": line}}
    request = asking("Add oil", catalogue=Catalogue(skills=(), tools=(replace(add, input_schema=schema),)))

    def list_places(part: str, note: str) -> list[str]:
        lines: JsonValue = [{"part": part, "note": note}]
        return [one.place for one in find_made_up_values([make_step("add", lines=lines, rows=[["oil", ""]])], request)]

    assert list_places("oil", "") == []
    assert list_places("", "") == ["lines[0].part"], "also behind a reference"


@pytest.mark.parametrize(
    ("question", "rounds", "meant"),
    [
        ("Pay the flat 2A", (), "2A"),
        ("Pay the flat 2a", (), "2a"),
        ("Pay who lives below 2A", (RoundCall(0, "find_flat", {"above": "2A"}, '{"flat": "4A"}'),), ""),
        ("Pay the flats 2A and 3A", (), ""),
        ("Pay the flat 4A, not 2A", (), ""),
        ("Pay T-1 for the flat", (), ""),
        ("Pay who lives below 2A", (RoundCall(0, "find", {"text": "above 2A"}, "[]"),), ""),
        ("Pay who lives below 2A", (RoundCall(0, "list_all", {}, '["2A", "3A"]'),), ""),
        ("Pay the flat in 2h", (), ""),
        ("Pay the flat 4l of oil", (), ""),
    ],
    ids=[
        *("one", "small letters", "looked up", "two", "itself", "another form"),
        *("within a text", "in a result", "a time", "a quantity"),
    ],
)
def test_a_code_of_a_result_does_not_take_the_place_of_the_requests(
    question: str, rounds: tuple[RoundCall, ...], meant: str
) -> None:
    taken = RoundCall(0, "list_flats", {"day": "2027-01-20"}, '{"flat": "4A", "state": "occupied"}')
    made_up = find_made_up_values([make_step("pay", payments=[{"to": "4A"}])], ask(question, taken, *rounds))
    assert [one.meant for one in made_up] == ([meant] if meant else [])
    assert select_missing(made_up, ask(question)) == (), "a person sees the change"


def test_a_code_that_a_person_gave_or_that_the_call_has_elsewhere_is_not_refused() -> None:
    flats = RoundCall(0, "list_flats", {}, '{"flat": "4A"}')
    request = ask("Pay the flat, not what 2A got", flats)
    steps = [make_step("pay", payments=[{"to": "4A"}])]
    assert [one.meant for one in find_made_up_values(steps, request)] == ["2A"]
    assert find_made_up_values(steps, replace(request, replies=("the flat is 4A",))) == ()
    earlier = (ChatMessage(role="user", content="I live in 4a"),)
    assert find_made_up_values(steps, replace(request, history=earlier)) == ()
    both = [make_step("pay", payments=[{"to": "4A", "amount": "what 2A got"}])]
    assert find_made_up_values(both, request) == ()


def test_a_refused_code_may_be_chosen_again() -> None:
    flats = RoundCall(0, "list_flats", {}, '{"version": "v5"}')
    move = spec("move", {"version": TEXT}, ["version"], annotations=SIDE_EFFECT, origin="mcp:house")
    request = asking("Move it from v2 to the newest", catalogue=Catalogue((), (move,)), rounds=(flats,))
    dialogue = Dialogue(request, ({"role": "user", "content": "?"},), (move,), is_questioned=False)
    dialogue.rule_out(MadeUpValueError(find_made_up_values([make_step("move", version="v5")], request)))
    assert dialogue.values == {"move": {"version": ["v2", "v5"]}}


@pytest.mark.parametrize(("level", "is_looked_up"), [(0, False), ([], True)])
def test_a_nought_that_nobody_gave_is_looked_up_nowhere(level: JsonValue, is_looked_up: bool) -> None:
    wish: JsonValue = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "object"}}]}
    dim = spec("dim", {"level": wish}, ["level"], annotations=SIDE_EFFECT, origin="mcp:house")
    rooms = spec("list_rooms", {}, origin="mcp:house")
    request = asking("Switch the attic off", catalogue=Catalogue((), (dim, rooms)))
    dialogue = Dialogue(request, ({"role": "user", "content": "?"},), (dim, rooms), is_questioned=False)
    dialogue.rule_out(MadeUpValueError(find_made_up_values([make_step("dim", level=level)], request)))
    assert dialogue.is_looking_up is is_looked_up


WISH: JsonValue = {"type": "object", "properties": {"room": {"type": "integer"}, "day": TEXT}}
BOOK = spec("book", {"flat": TEXT, "wish": WISH}, ["flat", "wish"], annotations=SIDE_EFFECT, origin="mcp:house")


@pytest.mark.parametrize(
    ("question", "flat", "fields"),
    [
        ("Book laundry room 1 for Kerstin", "1", ["flat"]),
        ("Book laundry room 1 for flat 1", "1", []),
        ("Book laundry room 1 for 1B", "1B", []),
        ("Book laundry for 1, room 1", "1", []),
    ],
    ids=["the room's", "both", "a code", "nobody's"],
)
def test_the_number_of_one_input_is_not_that_of_another(question: str, flat: str, fields: list[str]) -> None:
    request = asking(question, catalogue=Catalogue(skills=(), tools=(BOOK,)))
    made_up = find_made_up_values([make_step("book", flat=flat, wish={"room": 1})], request)
    assert [one.field for one in made_up] == fields
    found_there = replace(request, rounds=(RoundCall(0, "residents", {}, '{"name": "Kerstin", "flat": 1}'),))
    assert find_made_up_values([make_step("book", flat=flat, wish={"room": 1})], found_there) == ()


@pytest.mark.parametrize(
    ("question", "tool", "args"),
    [
        ("Close issue 5", "close", {"id": 5}),
        ("Order 3 chains", "add", {"item": "chains", "quantity": 3}),
        ("Set the temperature 21 for the hall", "heat", {"room": "hall", "degrees": 21}),
    ],
)
def test_a_number_is_not_refused_because_other_tools_name_it_otherwise(
    question: str, tool: str, args: dict[str, JsonValue]
) -> None:
    number: JsonValue = {"type": "integer"}
    inputs: dict[str, dict[str, JsonValue]] = {
        "close": {"id": number},
        "add": {"item": TEXT, "quantity": number},
        "heat": {"room": TEXT, "degrees": number},
        "note": {"issue": number, "order": number, "temperature": number},
    }
    tools = [spec(name, one, [*one], annotations=SIDE_EFFECT, origin="mcp:shop") for name, one in inputs.items()]
    request = asking(question, catalogue=Catalogue(skills=(), tools=(*tools,)))
    assert find_made_up_values([make_step(tool, "s1", **args)], request) == ()


def test_what_may_be_empty_is_not_asked_for() -> None:
    assert find("Write [] into keep.txt", "write_file", name="keep.txt", text="[]") == []
    labels: JsonValue = {"type": "array", "items": TEXT}
    label = spec("label", {"ticket": TEXT, "labels": labels}, ["ticket", "labels"], annotations=SIDE_EFFECT)
    request = asking("Remove all labels of T-1", catalogue=Catalogue(skills=(), tools=(label,)))
    assert find_made_up_values([make_step("label", ticket="T-1", labels=[])], request) == ()


@pytest.mark.parametrize(
    ("text", "given", "places"),
    [
        ('{"entries": [{"id": "2027-01-12", "text": "dentist"}]}', "2027-01-12", []),
        ('{"entries": [{"id": "E-7", "day": "2027-01-12"}]}', "2027-01-12", ["entry_id"]),
        ('{"entries": [{"id": "On the dentist", "day": "2027-01-12"}]}', "On the dentist", []),
        ('{"entries": [{"id": "E-7", "title": "On the dentist"}]}', "On the dentist", ["entry_id"]),
    ],
)
def test_what_results_have_as_an_identifier_is_one(text: str, given: str, places: list[str]) -> None:
    delete = spec("delete", {"entry_id": TEXT}, ["entry_id"], annotations=SIDE_EFFECT)
    look = RoundCall(0, "list_entries", {}, text)
    request = asking("Delete the dentist", catalogue=Catalogue(skills=(), tools=(delete,)), rounds=(look,))
    made_up = find_made_up_values([make_step("delete", entry_id=given)], request)
    assert [one.place for one in made_up] == places


def test_a_description_or_date_is_no_identifier_of_what_is_cancelled() -> None:
    cancel = spec("cancel", {"lesson_id": TEXT, "day": TEXT}, ["lesson_id"], annotations=SIDE_EFFECT)
    request = asking("Cancel the lesson on 12 jan 2027", catalogue=Catalogue(skills=(), tools=(cancel,)))
    for args, places in (
        ({"lesson_id": "12 jan 2027"}, ["lesson_id"]),
        ({"lesson_id": "2027-01-12"}, ["lesson_id"]),
        ({"lesson_id": "the lesson on 12 jan 2027"}, ["lesson_id"]),
        ({"day": "2027-01-12"}, []),
    ):
        made_up = find_made_up_values([make_step("cancel", **args)], request)
        assert [one.place for one in made_up] == places, args
    with pytest.raises(MadeUpValueError, match="describes a thing; look"):
        raise MadeUpValueError(find_made_up_values([make_step("cancel", lesson_id="12 jan 2027")], request))


def test_what_a_person_answered_in_the_run_is_known() -> None:
    step = make_step("do", amount=20, to="eva@ours.example")
    request = asking("Pay Jonas 30", catalogue=Catalogue(skills=(), tools=(DO,)), ground=GROUND)
    assert [one.value for one in find_made_up_values([step], request)] == [20, "eva@ours.example"]
    replied = replace(request, replies=("change the amount to 20, and send it to eva@ours.example",))
    assert find_made_up_values([step], replied) == ()

"""Looks of a small model that find nothing because it narrowed them."""

from dataclasses import replace

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject
from agent.planning.request import PlanningRequest, RoundCall
from agent.planning.rounds.wider_looks import (
    leave_out_made_up_codes,
    leave_out_unstated,
    list_single_words,
    list_wider_calls,
    name_stated_choices,
    name_stated_date,
)
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
SEARCH = spec("search_mails", {"query": TEXT, "sender": TEXT, "limit": {"type": "integer"}}, ["query"])
DELETE = spec("delete_mails", {"query": TEXT, "sender": TEXT}, ["query"], annotations=SIDE_EFFECT)


KINDS: dict[str, JsonValue] = {"type": "string", "enum": ["light", "blind", "thermostat", "on", "coffee_machine"]}
DEVICES = spec("list_devices", {"room": TEXT, "kind": {"anyOf": [KINDS, {"type": "null"}]}})
WITHIN = spec("find_devices", {"where": {"type": "object", "properties": {"kind": KINDS}}})


def ask(question: str, *calls: RoundCall) -> PlanningRequest:
    return asking(question, catalogue=Catalogue(skills=(), tools=(SEARCH, DELETE)), rounds=calls)


def look(text: str, *, failed: bool = False, tool: str = "search_mails", **args: JsonValue) -> RoundCall:
    return RoundCall(0, tool, args, text, failed=failed)


@pytest.mark.parametrize(
    ("inputs", "left"),
    [
        ({"query": "rent", "sender": "you@example.com"}, {"query": "rent"}),
        ({"query": "rent", "sender": "ID-4711"}, {"query": "rent"}),
        ({"query": "rent", "sender": "ann@lund.example"}, {"query": "rent", "sender": "ann@lund.example"}),
        ({"query": "rent", "sender": "Ben"}, {"query": "rent", "sender": "Ben"}),
        ({"query": "x@nowhere.example", "limit": 5}, {"query": "x@nowhere.example", "limit": 5}),
        ({"sender": "ID-4711"}, {"sender": "ID-4711"}),
    ],
    ids=["an address", "a code", "an address of the request", "a name", "a required input", "all that is asked for"],
)
def test_optional_addresses_and_codes_that_nobody_gave_are_left_out(inputs: JsonObject, left: JsonObject) -> None:
    request = ask("What does ann@lund.example write about the rent?")
    assert leave_out_made_up_codes(SEARCH, inputs, request) == left


def test_the_number_of_the_next_page_is_not_left_out() -> None:
    first = look('{"mails": [{"no": 7}], "has_more": true}', query="rent")
    following: JsonObject = {"query": "rent", "limit": 2}
    assert leave_out_unstated(SEARCH, following, ask("List all mails about the rent")) == {"query": "rent"}
    assert leave_out_unstated(SEARCH, following, ask("List all mails about the rent", first)) == following


@pytest.mark.parametrize("text", ["", "[]", '{"mails": [], "total": 0}', "null", '{"mails": [{}]}'])
def test_a_look_that_found_nothing_is_made_again_without_what_nobody_gave(text: str) -> None:
    request = ask("What about the rent?", look(text, query="rent", sender="landlord", limit=5))
    assert [call.args for call in list_wider_calls(request)] == [{"query": "rent"}]


def test_so_is_one_that_failed() -> None:
    request = ask("What about the rent?", look("no mails found", failed=True, query="rent", sender="landlord"))
    assert [call.args for call in list_wider_calls(request)] == [{"query": "rent"}]


@pytest.mark.parametrize(
    "call",
    [
        look('{"mails": ["the rent is 5"]}', query="rent", sender="landlord"),
        look("no mails found", failed=True, query="rent", sender="Ben"),
        look("no mails found", failed=True, query="tax"),
        look("unknown query 'rent'", failed=True, query="rent", sender="landlord"),
        look("[]", query="rent", sender="2026-11-01"),
        look("no mails found", failed=True, tool="delete_mails", query="rent", sender="landlord"),
    ],
    ids=[
        "it found something",
        "the user named it",
        "nothing to leave out",
        "the error is about another input",
        "a day",
        "it changes something",
    ],
)
def test_no_other_call_is_made_again(call: RoundCall) -> None:
    assert list_wider_calls(ask("What does Ben write about the rent?", call)) == []


def test_a_look_need_not_find_the_numbers_that_another_call_was_made_with() -> None:
    tools = (spec("current_time", {"timezone": TEXT}), spec("calculator", {"expression": TEXT}, ["expression"]))
    time = look("It is 18:34 (Europe/Stockholm).", tool="current_time", timezone="Europe/Stockholm")
    product = look("17.5 * 240 = 4200", tool="calculator", expression="17.5 * 240")
    question = "What is 17.5 * 240, and what time is it in Stockholm?"
    request = asking(question, catalogue=Catalogue(skills=(), tools=tools), rounds=(product, time))
    assert list_wider_calls(request) == []


def test_what_was_made_before_is_not_made_again() -> None:
    narrow, wide = look("[]", query="rent", sender="landlord"), look("[]", query="rent")
    assert list_wider_calls(ask("What about the rent?", wide, narrow)) == []


def test_a_search_for_several_words_may_be_made_for_each() -> None:
    failed = look("none found", failed=True, query="the Nordbank reset code")
    assert list_single_words(SEARCH, failed) == {"query": ["Nordbank", "reset", "code"]}
    assert list_single_words(SEARCH, look("none found", failed=True, query="Nordbank")) == {}
    both = look("none found", failed=True, query="reset code", sender="my bank adviser")
    assert list_single_words(SEARCH, both) == {}, "it is not known which one is wrong"


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Is the blind in the hall open?", "blind"),
        ("Are the blinds open?", "blind"),
        ("Is the coffee machine on?", "coffee_machine"),
        ("Is the light or the blind on?", "light"),
        ("Is anything on?", "light"),
    ],
    ids=["named", "in the plural", "of two words", "two are named", "a word that stands everywhere"],
)
def test_the_one_kind_that_the_request_names_is_looked_for(question: str, meant: str) -> None:
    args: JsonObject = {"room": "hall", "kind": "light"}
    assert name_stated_choices(DEVICES, args, ask(question)) == {"room": "hall", "kind": meant}
    assert name_stated_choices(WITHIN, {"where": {"kind": "light"}}, ask(question)) == {"where": {"kind": meant}}


@pytest.mark.parametrize(
    ("question", "args", "meant"),
    [
        ("who has room 1 on 20 jan 2027?", {"day": "2027-01-02"}, {"day": "2027-01-20"}),
        ("wer hat am 20. Januar 2027 den Raum?", {"day": "2027-01-02"}, {"day": "2027-01-20"}),
        ("who has room 1 on 20 jan 2027?", {"day": "2027-01-20"}, {"day": "2027-01-20"}),
        ("who has it on 20 jan 2027?", {"from": "2027-01-20", "to": "2027-01-21"}, {"to": "2027-01-21"}),
        ("who has it around 20 jan 2027?", {"from": "2027-01-19", "to": "2027-01-21"}, {"from": "2027-01-19"}),
        ("who has it from 20 jan 2027 to 2 feb 2027?", {"day": "2027-01-02"}, {"day": "2027-01-02"}),
        ("who has it in january 2027?", {"day": "2027-01-02"}, {"day": "2027-01-02"}),
        ("who has it?", {"day": "2027-01-02"}, {"day": "2027-01-02"}),
        ("who has it on 20 jan 2027?", {"day": "2027-01-02", "rooms": ["a"], "of": {"b": 1}}, {"day": "2027-01-20"}),
        (
            "who has it on 20 jan 2027?",
            {"days": ["2027-01-02"], "when": {"day": "2027-01-02"}},
            {"days": ["2027-01-20"], "when": {"day": "2027-01-20"}},
        ),
    ],
)
def test_the_one_day_that_the_request_names_is_looked_at(question: str, args: JsonObject, meant: JsonObject) -> None:
    assert name_stated_date({**args, "room": 1}, ask(question)) == {**args, **meant, "room": 1}


def test_a_day_that_a_result_names_is_looked_at_as_it_is() -> None:
    request = ask("What comes after the fair of 20 jan 2027?", look('{"next": "2027-01-22"}', query="fair"))
    assert name_stated_date({"day": "2027-01-22"}, request) == {"day": "2027-01-22"}


def test_what_only_the_result_of_a_look_repeats_was_given_by_nobody() -> None:
    request = ask("Is mail 204 there?", look('{"sender": "landlord", "mail": 101}', query="mail", sender="landlord"))
    assert [call.args for call in list_wider_calls(request)] == [{"query": "mail"}]


def test_todays_date_of_which_nobody_spoke_does_not_narrow_a_search() -> None:
    request = replace(ask("Move the lunch", look("[]", query="lunch", sender="2026-11-28")), ground="2026-11-28")
    assert [call.args for call in list_wider_calls(request)] == [{"query": "lunch"}]
    alone = replace(ask("Is there anything?", look("[]", query="me", sender="2026-11-28")), ground="2026-11-28")
    assert list_wider_calls(alone) == [], "nothing that was asked for would be left"


RUNS = spec("list_runs", {"branch": TEXT, "status": {"anyOf": [{"enum": ["running", "failed"]}, {"type": "null"}]}})


@pytest.mark.parametrize(
    ("question", "wider"),
    [("The build of main is red, start that run again", [{"branch": "main"}]), ("Is main running?", [])],
)
def test_a_kind_that_only_sounds_like_the_request_is_left_out(question: str, wider: list[JsonObject]) -> None:
    narrow = look('{"result": []}', tool="list_runs", branch="main", status="running")
    request = asking(question, catalogue=Catalogue(skills=(), tools=(RUNS,)), rounds=(narrow,))
    assert [call.args for call in list_wider_calls(request)] == wider


@pytest.mark.parametrize("question", ["Has main had errors today?", "Is there an error on main?"])
def test_a_kind_of_which_the_request_names_several_stays(question: str) -> None:
    logs = spec("list_logs", {"branch": TEXT, "level": {"enum": ["error", "warning"]}})
    narrow = look('{"result": []}', tool="list_logs", branch="main", level="error")
    request = asking(question, catalogue=Catalogue(skills=(), tools=(logs,)), rounds=(narrow,))
    assert list_wider_calls(request) == []


PUPILS = spec("find_pupils", {"name": TEXT}, ["name"], origin="mcp:music")
LESSONS = spec("list_lessons", {"first_day": TEXT, "pupil_id": TEXT, "room": TEXT}, ["first_day"], origin="mcp:music")


@pytest.mark.parametrize(("word", "shorter"), [("the Brunnhubers", "Brunnhub"), ("chains", "chain"), ("Ny", None)])
def test_a_word_that_found_nothing_is_looked_for_without_its_ending(word: str, shorter: str | None) -> None:
    missed = look("[]", tool="find_pupils", name=word)
    request = asking(
        f"Which lessons do {word} have?", catalogue=Catalogue(skills=(), tools=(PUPILS,)), rounds=(missed,)
    )
    assert [call.args for call in list_wider_calls(request)] == ([{"name": shorter}] if shorter else [])


@pytest.mark.parametrize(
    ("question", "call", "wider"),
    [
        (
            "Clara's mum writes: cancel her lesson",
            look('{"result": []}', tool="find_pupils", name="Clara's mum"),
            [{"name": "Clara"}, {"name": "mum"}],
        ),
        (
            "Clara's mum writes: cancel her lesson of 2027-01-12",
            look("[]", tool="list_lessons", first_day="2027-01-12", pupil_id="Clara's mum"),
            [{"first_day": "2027-01-12"}],
        ),
        ("Cancel the lessons of P-7", look("[]", tool="list_lessons", first_day="2027-01-12", pupil_id="P-7"), []),
        ("Lessons of Clara", look("[]", tool="list_lessons", pupil_id="Clara"), []),
        ("Lessons of 17", look("[]", tool="list_lessons", first_day="2027-01-12", pupil_id=17), []),
        ("Lessons of mats", look("[]", tool="list_lessons", first_day="2027-01-12", pupil_id="mats"), []),
        ("Does Clara Berg play?", look("false", tool="find_pupils", name="Clara Berg"), []),
        ("How many Clara Bergs?", look('{"count": 0}', tool="find_pupils", name="Clara Berg"), []),
        (
            "Any lessons on 2027-01-12 for day 3?",
            look("[]", tool="list_lessons", first_day="2027-01-12", room="3"),
            [],
        ),
        ("Who is Clara Berg?", look('["Clara Berg, 9"]', tool="find_pupils", name="Clara Berg"), []),
        ("Who is Clara?", look("[]", tool="find_pupils", name="Clara"), []),
        ("Any bus drums?", look("[]", tool="find_pupils", name="bus drums"), [{"name": "bus"}, {"name": "drum"}]),
    ],
    ids=[
        *("words", "no identifier", "an identifier", "nothing left", "a number's", "a word's", "no", "none"),
        *("a number", "something", "one word", "an ending"),
    ],
)
def test_a_look_at_a_server_that_found_nothing_asks_for_less(
    question: str, call: RoundCall, wider: list[JsonObject]
) -> None:
    request = asking(question, catalogue=Catalogue(skills=(), tools=(PUPILS, LESSONS)), rounds=(call,))
    assert [one.args for one in list_wider_calls(request)] == wider


def test_words_that_are_an_identifier_of_a_result_stay() -> None:
    pupils = look('[{"pupil_id": "Clara Berg"}]', tool="find_pupils", name="Clara")
    lessons = replace(look("[]", tool="list_lessons", first_day="2027-01-12", pupil_id="Clara Berg"), number=1)
    request = asking("Lessons of Clara Berg on 2027-01-12", catalogue=Catalogue(skills=(), tools=(PUPILS, LESSONS)))
    assert list_wider_calls(replace(request, rounds=(pupils, lessons))) == []
    assert len(list_wider_calls(replace(request, rounds=(lessons,)))) == 1


def test_the_number_of_a_thing_is_its_identifier() -> None:
    notes = spec("list_notes", {"id": TEXT, "state": TEXT}, origin="mcp:desk")
    close = spec("close", {"issue": TEXT}, annotations=SIDE_EFFECT, origin="mcp:desk")
    call = look("[]", tool="list_notes", id="5", state="new")
    request = asking("New notes of issue 5", catalogue=Catalogue(skills=(), tools=(notes, close)), rounds=(call,))
    assert list_wider_calls(request) == []


def test_what_nobody_gave_is_left_out_of_an_object_too() -> None:
    groups: JsonValue = {"anyOf": [{"enum": ["adults", "youth"]}, {"type": "null"}]}
    query: JsonValue = {"type": "object", "properties": {"name": TEXT, "group": groups}, "required": ["name"]}
    members = spec("search_members", {"query": query, "place": TEXT}, ["query"])
    narrow = look('{"result": []}', tool="search_members", query={"name": "Mats", "group": "adults"}, place="hall")
    request = asking("Put Mats down", catalogue=Catalogue(skills=(), tools=(members,)), rounds=(narrow,))
    assert [one.args for one in list_wider_calls(request)] == [{"query": {"name": "Mats"}}]
    stated = asking("Put the youth Mats down", catalogue=Catalogue(skills=(), tools=(members,)), rounds=(narrow,))
    assert [one.args for one in list_wider_calls(stated)] == [{"query": {"name": "Mats"}}]
    of_youth = look("[]", tool="search_members", query={"name": "Mats", "group": "youth"})
    assert list_wider_calls(replace(stated, rounds=(of_youth,))) == []


def test_a_number_that_the_request_gives_another_input_narrows_no_search() -> None:
    residents = spec("find_residents", {"name": TEXT, "flat": TEXT}, origin="mcp:house")
    book = spec("book", {"room": TEXT}, annotations=SIDE_EFFECT, origin="mcp:house")
    call = look("[]", tool="find_residents", name="Kerstin", flat="1")
    request = asking("Room 1 for Kerstin", catalogue=Catalogue(skills=(), tools=(residents, book)), rounds=(call,))
    assert [one.args for one in list_wider_calls(request)] == [{"name": "Kerstin"}]
    named = asking("Flat 1, Kerstin", catalogue=Catalogue(skills=(), tools=(residents, book)), rounds=(call,))
    assert [one.args for one in list_wider_calls(named)] == []

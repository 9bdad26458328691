"""Values of changes that stand nowhere: which inputs are told, and which texts a model may write itself."""

from dataclasses import replace
from time import thread_time

import pytest
from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.planning.made_up_values import (
    MadeUpValueError,
    find_made_up_values,
    format_question,
    leave_out_unasked_texts,
)
from agent.planning.request import PlanningRequest, RoundResult
from agent.planning.round_steps import leave_out_unasked
from agent.tools.catalogue import Catalogue
from agent.tools.client_tools import CLIENT_ORIGIN
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
WRITE = spec(
    "write_file", {"name": TEXT, "text": TEXT}, ["name", "text"], description="Write a file.", annotations=SIDE_EFFECT
)
SAVE = spec("save", {"text": TEXT}, ["text"], description="Remember it.", annotations=SIDE_EFFECT)
PERSON: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"to": {**TEXT, "description": "an address"}, "amount": TEXT},
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


def ask(question: str, *rounds: RoundResult) -> PlanningRequest:
    return asking(question, catalogue=Catalogue(skills=(), tools=(WRITE, SAVE, PAY)), ground=GROUND, rounds=rounds)


def find(question: str, tool: str, *rounds: RoundResult, **args: JsonValue) -> list[str]:
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
    found = RoundResult(0, "read_file", {}, "Put poems into verses.md", failed=False, missing=())
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
    unknown = RoundResult(0, "find_person", {"name": described}, f"there is no person '{described}'", failed=True)
    question = f"Write to the {described}: 'it waits'"
    (made_up,) = find_made_up_values([make_step("write_file", name=described, text="it waits")], ask(question, unknown))
    assert (made_up.name, made_up.refused_by) == ("name", "find_person")
    known = RoundResult(1, "find_person", {"name": described}, "ann", failed=False)
    assert find(question, "write_file", unknown, known, name=described, text="it waits") == []


def test_a_short_value_that_stands_in_an_error_is_still_a_value() -> None:
    failed = RoundResult(0, "read_file", {"path": "keep.txt"}, "keep.txt is too large", failed=True)
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
        ({"payments": [], "note": "all the best to you and yours", "to": "ann"}, []),
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
    result = RoundResult(0, "read_file", {}, f"{words} 7 \u00b2", failed=False, missing=())
    payments: list[JsonValue] = [{"to": f"person{number}", "amount": "9" * 5_000} for number in range(2_000)]
    payments.append({"to": "ann", "amount": "\u00b2"})
    begin = thread_time()
    made_up = find_made_up_values([make_step("pay", payments=payments)], ask("Pay ann", result))
    assert thread_time() - begin < 5
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
    request = replace(ask(question), answer_language=language)
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

"""Names that several things share, before one of them is changed."""

import pytest
from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.planning.request import RoundCall
from agent.planning.rounds.shared_names import find_shared_names, format_choice
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import SIDE_EFFECT, asking, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
CHANGE = spec("hotel__update", {"booking": TEXT, "board": TEXT}, origin="mcp:hotel", annotations=SIDE_EFFECT)
READ = spec("hotel__get", {"booking": TEXT}, origin="mcp:hotel")
PETRA = '{"booking": "BK-1", "guest_name": "Petra Schmidt", "room": "double", "type": "Double Room"}'
HOLGER = '{"booking": "BK-2", "guest_name": "Holger Schmidt", "room": "double", "type": "Double Suite"}'
MIA = '{"booking": "BK-3", "guest_name": "Mia Sandberg", "room": "double", "type": "Double Bed"}'


def find(question: str, *bookings: str, tool: str = "hotel__update", text: str = "") -> tuple[str, ...]:
    steps = [
        PlanStep(id=f"s{at}", executor="agent", action="tool", tool=tool, args={"booking": one}, effect="effect")
        for at, one in enumerate(bookings)
    ]
    look = RoundCall(0, "hotel__get", {}, text or f"{PETRA}\n{HOLGER}\n{MIA}")
    catalogue = Catalogue(skills=(), tools=(CHANGE, READ))
    return find_shared_names(steps, asking(question, catalogue=catalogue, rounds=(look,)))


def test_the_people_who_are_called_so_are_named() -> None:
    names = find("please add breakfast to the schmidt booking", "BK-1")
    assert names == ("Petra Schmidt", "Holger Schmidt")
    assert format_choice(names) == "Which one do you mean: Petra Schmidt or Holger Schmidt?"


def test_a_name_counts_in_any_field() -> None:
    weiss = '{"lesson": "BK-1", "pupil": "Jakob Weiss", "day": "2027-01-14"}'
    brunner = '{"lesson": "BK-2", "pupil": "Jakob Brunner", "day": "2027-01-14"}'
    later = '{"lesson": "BK-3", "pupil": "Jakob Lindt", "day": "2027-01-21"}'
    lessons = f"{weiss}\n{brunner}\n{later}"
    question = "jakob is ill, cancel his lesson on 14 january 2027 please"
    assert find(question, "BK-1", text=lessons) == ("Jakob Weiss", "Jakob Brunner")
    assert find(question.replace("14", "21"), "BK-3", text=lessons) == ()


@pytest.mark.parametrize(
    ("question", "bookings", "tool"),
    [
        ("add breakfast to the booking of Petra Schmidt", ["BK-1"], "hotel__update"),
        ("add breakfast to the Sandberg booking", ["BK-3"], "hotel__update"),
        ("add breakfast to the first booking of a double room", ["BK-1"], "hotel__update"),
        ("add breakfast to both Schmidt bookings", ["BK-1", "BK-2"], "hotel__update"),
        ("what has Schmidt booked?", ["BK-1"], "hotel__get"),
        ("add breakfast to BK-9 of Schmidt", ["BK-9"], "hotel__update"),
    ],
    ids=["told apart", "the only one", "not a name", "all of them", "it only reads", "not among them"],
)
def test_others_are_not_asked_about(question: str, bookings: list[str], tool: str) -> None:
    assert find(question, *bookings, tool=tool) == ()


def test_a_list_of_many_and_a_long_text_are_no_choice() -> None:
    many = "\n".join(f'{{"booking": "BK-{at}", "name": "Name{chr(97 + at)} Schmidt"}}' for at in range(7))
    assert find("cancel the Schmidt booking", "BK-1", text=many) == ()
    long = " ".join(["Schmidt"] * 40)
    assert find("cancel the Schmidt booking", "BK-1", text=f'{PETRA}\n{{"booking": "BK-2", "name": "{long}"}}') == ()


PRINTER = '{"id": "T-1", "title": "Printer on floor 2 jams", "assignee": "ben", "status": "open"}'
LOBBY = '{"id": "T-2", "title": "Printer in the lobby is offline", "assignee": "", "status": "open"}'
VPN = '{"id": "T-3", "title": "VPN drops every hour", "assignee": "carla", "status": "open"}'
TICKETS = f"{PRINTER}\n{LOBBY}\n{VPN}"


def test_titles_that_share_what_the_request_has_are_named_with_their_identifiers() -> None:
    names = find("Close the ticket about the printer.", "T-1", text=TICKETS)
    assert names == ("Printer on floor 2 jams (T-1)", "Printer in the lobby is offline (T-2)")


@pytest.mark.parametrize(
    ("question", "tickets"),
    [
        ("Close the ticket about the printer in the lobby.", ["T-2"]),
        ("Close the printer ticket of ben.", ["T-1"]),
        ("Close the printer ticket T-1.", ["T-1"]),
        ("Update each ticket about the printer.", ["T-1"]),
        ("Close the tickets about the printer.", ["T-1", "T-2"]),
        ("Close the ticket about the VPN.", ["T-3"]),
        ("Close it.", ["T-1"]),
    ],
    ids=["in its words", "by a field", "by its code", "each", "all of them", "the only one", "unnamed"],
)
def test_a_title_that_the_request_tells_apart_is_not_asked_about(question: str, tickets: list[str]) -> None:
    assert find(question, *tickets, text=TICKETS) == ()

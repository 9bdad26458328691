"""Which part of a request each call of a round is for."""

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.planning.open_parts import OPEN, PARTS, WAITING, divide_parts
from agent.tools.catalogue import CatalogueIndex
from tests.unit.planning.kitchen import SIDE_EFFECT, spec

TEXT: dict[str, JsonValue] = {"type": "string"}
INDEX = CatalogueIndex(
    [
        spec("find_person", {"name": TEXT}, ["name"], description="Return a person's email and manager."),
        spec("get_ticket", {"ticket": TEXT}, ["ticket"], description="Return one ticket and who has it."),
        spec("get_stock", {"item": TEXT}, ["item"], description="Return an item's quantity and price."),
        spec(
            "send_message",
            {"to": TEXT, "text": TEXT},
            ["to"],
            description="Send a message to a person.",
            annotations=SIDE_EFFECT,
        ),
    ]
)


def call(number: int, tool: str, stated: str = "", **args: JsonValue) -> PlanStep:
    return PlanStep(id=f"s{number}", executor="agent", action="tool", tool=tool, args=args, intent=stated)


def divide(said: list[str], *steps: PlanStep) -> JsonObject:
    return divide_parts(said, (), steps, steps, INDEX)


@pytest.mark.parametrize(
    ("said", "calls", "parts", "left"),
    [
        (
            ["find the person in your answer", "send emil the message"],
            [("find_person", {"name": "Emil"})],
            {"s1": "find the person in your answer"},
            ["send emil the message"],
        ),
        (
            ["find the manager of the person with ticket T-4", "send the manager the message"],
            [("get_ticket", {"ticket": "T-4"}), ("find_person", {"name": "manager of the person with ticket T-4"})],
            {
                "s1": "find the manager of the person with ticket T-4",
                "s2": "find the manager of the person with ticket T-4",
            },
            ["send the manager the message"],
        ),
        (
            ["get the stock of the boiler", "get the stock of the anchor"],
            [("get_stock", {"item": "anchor"})],
            {"s1": "get the stock of the anchor"},
            ["get the stock of the boiler"],
        ),
    ],
    ids=["value in a later part", "two calls for one part", "by value"],
)
def test_a_call_is_for_the_part_that_its_tool_fits(
    said: list[str], calls: list[tuple[str, dict[str, JsonValue]]], parts: dict[str, str], left: list[str]
) -> None:
    divided = divide(said, *(call(number, tool, "", **args) for number, (tool, args) in enumerate(calls, start=1)))
    assert divided[PARTS] == parts
    assert divided[OPEN] == left


FIND, SEND = "find the manager of the person with ticket T-4", "send the manager the message"


def test_what_the_decision_says_counts_where_no_words_do() -> None:
    parts = ["den Bestand des Ankers", "den Bestand des Kessels"]
    steps = call(1, "get_stock", parts[1], item="anchor"), call(2, "get_stock", parts[0], item="boiler")
    assert divide(parts, *steps)[PARTS] == {"s1": parts[1], "s2": parts[0]}


def test_a_call_of_a_tool_for_another_part_is_for_that_one_whatever_the_decision_says() -> None:
    divided = divide([FIND, SEND], call(1, "get_ticket", FIND, ticket="T-4"), call(2, "find_person", SEND, name="T-4"))
    assert divided[PARTS] == {"s1": FIND, "s2": FIND}
    assert divided[OPEN] == [SEND]


def test_a_part_whose_call_does_not_run_in_this_round_waits() -> None:
    look, send = call(1, "find_person", FIND, name="Emil"), call(2, "send_message", SEND, to="Emil")
    divided = divide_parts([FIND, SEND, "book a room"], (), (look, send), (look,), INDEX)
    assert divided[PARTS] == {"s1": FIND}
    assert divided[WAITING] == [SEND]
    assert divided[OPEN] == [SEND, "book a room"]


def test_what_fits_all_tools_alike_shows_no_part() -> None:
    """The call is for the part that the model says it is for, not for the first one that has its value."""
    said = ["name the person Emil", "tell the person Emil the news"]
    made = divide(said, call(1, "find_person", said[0], name="Emil"))
    assert (made[PARTS], made[OPEN]) == ({"s1": said[0]}, [said[1]])

"""Which part of a request each call of a round is for."""

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject, PlanStep
from agent.planning.round_parts import OPEN, PARTS, divide_parts
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


def call(number: int, tool: str, **args: JsonValue) -> PlanStep:
    return PlanStep(id=f"s{number}", executor="agent", action="tool", tool=tool, args=args)


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
        (
            ["den Bestand des Ankers", "den Bestand des Kessels"],
            [("get_stock", {"item": "anchor"}), ("get_stock", {"item": "boiler"})],
            {"s1": "den Bestand des Ankers", "s2": "den Bestand des Kessels"},
            [],
        ),
    ],
    ids=["value in a later part", "two calls for one part", "by value", "in order, in another language"],
)
def test_a_call_is_for_the_part_that_its_tool_fits(
    said: list[str], calls: list[tuple[str, dict[str, JsonValue]]], parts: dict[str, str], left: list[str]
) -> None:
    divided = divide(said, *(call(number, tool, **args) for number, (tool, args) in enumerate(calls, start=1)))
    assert divided[PARTS] == parts
    assert divided[OPEN] == left

"""Which part of a request each call of a round is for, and which parts are left."""

from pydantic import JsonValue

from agent.core.models import PlanStep
from agent.planning.round_parts import OPEN, PARTS, WAITING, divide_parts

SEND = "send the manager the message"
FIND = "find the manager of the person with ticket T-4"


def call(number: int, tool: str, intent: str, **args: JsonValue) -> PlanStep:
    return PlanStep(id=f"s{number}", executor="agent", action="tool", tool=tool, args=args, intent=intent)


def test_what_the_decision_leaves_for_later_stays_open() -> None:
    steps = call(1, "get_ticket", FIND, ticket="T-4"), call(2, "find_person", FIND, name="Emil")
    divided = divide_parts([FIND, SEND], (), steps, steps)
    assert divided[PARTS] == {"s1": FIND, "s2": FIND}
    assert divided[OPEN] == [SEND]


def test_a_part_whose_call_does_not_run_in_this_round_waits() -> None:
    look, send = call(1, "find_person", FIND, name="Emil"), call(2, "send_message", SEND, to="Emil")
    divided = divide_parts([FIND, SEND, "book a room"], (), (look, send), (look,))
    assert divided[PARTS] == {"s1": FIND}
    assert divided[WAITING] == [SEND]
    assert divided[OPEN] == [SEND, "book a room"]


def test_a_call_for_an_open_part_is_for_that_part_whatever_it_says() -> None:
    send = call(1, "send_message", "tell Emil", to="Emil")
    divided = divide_parts(["tell Emil"], (SEND, "book a room"), (send,), (send,))
    assert divided[PARTS] == {"s1": SEND}
    assert divided[OPEN] == ["book a room"]

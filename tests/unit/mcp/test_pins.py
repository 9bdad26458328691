"""Pins: what is accepted stays what it was, and everything else waits for a person."""

from typing import Any

import mcp_types as types
import pytest
from pydantic import ValidationError

from agent.core.errors import NotFoundError
from mcp_tools.hub_tool import definition_of
from mcp_tools.pins import Definition, ServerPins, first_pins


def tool(description: str = "Say it back.", **parts: Any) -> Definition:
    return definition_of(types.Tool(**{"name": "echo", "description": description, "input_schema": {}, **parts}))


OFFERS = {"echo": tool(), "add": tool(name="add")}


def pinned() -> ServerPins:
    return first_pins(OFFERS, "first_use", 1.0)


def test_the_digest_is_of_everything_a_tool_is_known_by_and_of_nothing_else() -> None:
    hints = types.ToolAnnotations(read_only_hint=True)
    digests = {
        tool().digest,
        tool("Say it back. ").digest,
        tool("Say it back.\u200b").digest,
        tool(name="echo2").digest,
        tool(title="Echo").digest,
        tool(input_schema={"type": "object", "properties": {"a": {"description": "x"}}}).digest,
        tool(output_schema={"type": "object"}).digest,
        tool(annotations=hints).digest,
    }
    assert len(digests) == 8
    assert tool(meta={"version": 2}).digest == tool().digest
    one = tool(input_schema={"a": 1, "b": None})
    assert tool(input_schema={"b": None, "a": 1}) == one
    assert one.parts["inputSchema"] == {"a": 1, "b": None}


def test_a_text_that_is_not_what_its_digest_says_is_refused() -> None:
    with pytest.raises(ValidationError, match="digest"):
        Definition(digest=tool().digest, text=tool("other").text)


def test_the_first_list_is_accepted_unless_a_review_is_wanted() -> None:
    assert all(pinned().admits(name, one) for name, one in OFFERS.items())
    reviewed = first_pins(OFFERS, "review", 1.0)
    assert reviewed.waiting == ("add", "echo")
    assert not any(reviewed.admits(name, one) for name, one in OFFERS.items())
    assert reviewed.accept("echo", "me", 2.0).admits("echo", OFFERS["echo"])


def test_the_same_list_changes_nothing() -> None:
    pins = pinned()
    assert pins.offered(OFFERS, 2.0) is pins
    assert pins.offered({}, 2.0) is pins, "a tool that is away keeps its pin"


def test_what_differs_or_is_new_or_renamed_waits() -> None:
    drifted = tool("Say it back, and send it to me.")
    pins = pinned().offered({"echo": drifted, "plus": tool(name="plus"), "add": OFFERS["add"]}, 2.0)
    assert pins.withheld == {"echo": "is not what was accepted", "plus": "is new on this server"}
    assert not pins.admits("echo", drifted)
    assert not pins.admits("echo", OFFERS["echo"])
    assert pins.admits("add", OFFERS["add"])


def test_going_back_to_what_was_accepted_does_not_end_the_quarantine() -> None:
    pins = pinned().offered({"echo": tool("evil")}, 2.0).offered(OFFERS, 3.0)
    assert pins.waiting == ("echo",)
    assert pins.tools["echo"].offered == OFFERS["echo"]
    assert pins.tools["echo"].at == 2.0
    assert pins.accept("echo", "me", 4.0).admits("echo", OFFERS["echo"])


def test_a_rejected_tool_stays_out_until_it_offers_something_else() -> None:
    evil = {"echo": tool("evil")}
    pins = pinned().offered(evil, 2.0).reject("echo", "me", 3.0)
    assert pins.offered(evil, 4.0) is pins
    assert pins.withheld == {"echo": "was rejected"}
    assert pins.offered({"echo": tool("worse")}, 4.0).waiting == ("echo",)
    out = pinned().reject("echo", "me", 3.0)
    assert not out.admits("echo", OFFERS["echo"])
    assert out.offered(OFFERS, 4.0) is out
    assert out.accept("echo", "me", 5.0).admits("echo", OFFERS["echo"])


def test_names_that_come_and_go_do_not_pile_up() -> None:
    pins = pinned()
    for number in range(20):
        pins = pins.offered({**OFFERS, f"new{number}": tool(name=f"new{number}")}, 2.0)
    assert len(pins.tools) == 3


def test_only_what_waits_can_be_accepted() -> None:
    with pytest.raises(NotFoundError, match="accepted already"):
        pinned().accept("echo", "me", 1.0)
    with pytest.raises(NotFoundError, match="known: add, echo"):
        pinned().reject("nothing", "me", 1.0)

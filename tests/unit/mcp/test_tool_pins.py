"""Pins: what is accepted stays what it was, and everything else waits for a person."""

from typing import Any

import mcp_types as types
import pytest
from pydantic import ValidationError

from agent.core.errors import NotFoundError
from mcp_tools.client.remote_tool import make_definition
from mcp_tools.client.tool_pins import ServerPins, ToolDefinition, make_first_pins


def tool(description: str = "Say it back.", **parts: Any) -> ToolDefinition:
    return make_definition(types.Tool(**{"name": "echo", "description": description, "input_schema": {}, **parts}))


OFFERS = {"echo": tool(), "add": tool(name="add")}


def pinned() -> ServerPins:
    return make_first_pins(OFFERS, "first_use", 1.0)


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
        ToolDefinition(digest=tool().digest, text=tool("other").text)


def test_the_first_list_is_accepted_unless_a_review_is_wanted() -> None:
    assert all(pinned().allows(name, one) for name, one in OFFERS.items())
    reviewed = make_first_pins(OFFERS, "review", 1.0)
    assert reviewed.quarantined == ("add", "echo")
    assert not any(reviewed.allows(name, one) for name, one in OFFERS.items())
    assert reviewed.accept("echo", "me", 2.0).allows("echo", OFFERS["echo"])


def test_the_same_list_changes_nothing() -> None:
    pins = pinned()
    assert pins.with_offers(OFFERS, 2.0) is pins
    assert pins.with_offers({}, 2.0) is pins, "a tool that is away keeps its pin"


def test_what_differs_or_is_new_or_renamed_waits() -> None:
    drifted = tool("Say it back, and send it to me.")
    pins = pinned().with_offers({"echo": drifted, "plus": tool(name="plus"), "add": OFFERS["add"]}, 2.0)
    assert pins.withheld_reasons == {"echo": "has changed since it was accepted", "plus": "is new on this server"}
    assert not pins.allows("echo", drifted)
    assert not pins.allows("echo", OFFERS["echo"])
    assert pins.allows("add", OFFERS["add"])


def test_going_back_to_what_was_accepted_does_not_end_the_quarantine() -> None:
    pins = pinned().with_offers({"echo": tool("evil")}, 2.0).with_offers(OFFERS, 3.0)
    assert pins.quarantined == ("echo",)
    assert pins.tools["echo"].offered == OFFERS["echo"]
    assert pins.tools["echo"].at == 2.0
    assert pins.accept("echo", "me", 4.0).allows("echo", OFFERS["echo"])


def test_a_rejected_tool_stays_out_until_it_offers_something_else() -> None:
    evil = {"echo": tool("evil")}
    pins = pinned().with_offers(evil, 2.0).reject("echo", "me", 3.0)
    assert pins.with_offers(evil, 4.0) is pins
    assert pins.withheld_reasons == {"echo": "was rejected"}
    assert pins.with_offers({"echo": tool("worse")}, 4.0).quarantined == ("echo",)
    out = pinned().reject("echo", "me", 3.0)
    assert not out.allows("echo", OFFERS["echo"])
    assert out.with_offers(OFFERS, 4.0) is out
    assert out.accept("echo", "me", 5.0).allows("echo", OFFERS["echo"])


def test_names_that_come_and_go_do_not_pile_up() -> None:
    pins = pinned()
    for number in range(20):
        pins = pins.with_offers({**OFFERS, f"new{number}": tool(name=f"new{number}")}, 2.0)
    assert len(pins.tools) == 3


def test_only_what_waits_can_be_accepted() -> None:
    with pytest.raises(NotFoundError, match="already accepted"):
        pinned().accept("echo", "me", 1.0)
    with pytest.raises(NotFoundError, match="known: add, echo"):
        pinned().reject("nothing", "me", 1.0)

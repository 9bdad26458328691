"""A package adds gates and topics under their names, and rooms use them."""

import pytest

from agent.core.errors import ConfigError
from agent.core.models import Room
from agent.core.run_reducer import fold
from agent.execution.gates import check_gates
from agent.run_context.extensions import (
    Extension,
    GateContext,
    GateResult,
    fail_gate,
    merge_extensions,
    pass_gate,
)
from tests.support.builders import RUN_ID, created, log, planned, tool_step

ROOM = Room(id="r", gates=("polite",), required_tools=("calculator",), topic_tools={"weather": ("forecast",)})


def polite(context: GateContext) -> GateResult | None:
    if "weather" not in context.topics:
        return None
    return pass_gate("it says please") if "please" in context.answer else fail_gate("it says no please")


WEATHER = Extension(
    "weather",
    gates={"polite": polite},
    topics={"weather": lambda text, facts: "rain" in text or facts.get("service") == "weather"},
)


@pytest.mark.parametrize(
    ("prompt", "answer", "passed"),
    [
        ("Will it rain?", "Bring a coat, please.", True),
        ("Will it rain?", "Yes.", False),
        ("What is new?", "Yes.", None),
    ],
)
def test_a_gate_of_a_package_checks_requests_with_its_topic(prompt: str, answer: str, passed: bool | None) -> None:
    state = fold(RUN_ID, log(created(prompt, room=ROOM), planned(tool_step("s1"))))
    checked = {gate.gate: gate for gate in check_gates(state, answer, (), {}, merge_extensions([WEATHER]))}
    assert (checked["polite"].passed if "polite" in checked else None) is passed


def test_a_topic_adds_the_tools_that_its_room_names() -> None:
    topics = merge_extensions([WEATHER]).match_topics(ROOM, "hello", {"context": {"service": "weather"}})
    assert ROOM.list_required_tools(topics) == ("calculator", "forecast")
    assert ROOM.list_required_tools(frozenset()) == ("calculator",)
    assert not merge_extensions([WEATHER]).match_topics(Room(id="plain"), "hello", {"context": {"service": "weather"}})


def test_two_packages_cannot_share_a_name() -> None:
    with pytest.raises(ConfigError, match="extension 'again': polite exists already"):
        merge_extensions([WEATHER, Extension("again", gates={"polite": polite})])

"""What is wrong with a room: one wording at the start, in the editor and for `rooms check`."""

import pytest

from agent.core.errors import ConfigError
from agent.core.models import Room
from agent.runs.rooms import parse_room
from gateway.features.studio.engine.errors import ValidationError
from gateway.features.studio.engine.room_checks import (
    RoomRegistries,
    check_room_text,
    check_rooms_at_start,
    find_problems,
)

KNOWN = RoomRegistries(
    tools=lambda owner: ("calculator", "notes__read"),
    skills=lambda: ("summarize",),
    gates=lambda: ("answer_present",),
    topics=lambda: ("incident",),
    has_skill=lambda name: name in ("summarize", "tldr"),
    server_prefixes=lambda owner: ("notes", *(("ledger_anna_desk",) if owner == "anna" else ())),
    open_tools=lambda room: ("calculator",),
)


def read(text: str, room_id: str) -> Room:
    return parse_room(text, room_id, {})


@pytest.mark.parametrize(
    ("room", "problem"),
    [
        (Room(id="r", tools=("calculater",)), "tools: there is no tool 'calculater'; did you mean calculator?"),
        (Room(id="r", tools=("other__read",)), "tools: there is no tool 'other__read'"),
        (Room(id="r", skill="sumarize"), "skill: there is no skill 'sumarize'; did you mean summarize?"),
        (Room(id="r", gates=("answer",)), "gates: there is no gate 'answer'; did you mean answer_present?"),
        (Room(id="r", topic_tools={"weather": ()}), "topic_tools: there is no topic 'weather'"),
    ],
)
def test_the_start_says_of_a_room_what_the_editor_says(room: Room, problem: str) -> None:
    (found,) = find_problems(room, KNOWN)
    assert found.startswith(problem)
    with pytest.raises(ConfigError) as refused:
        check_rooms_at_start([Room(id="fine"), room], KNOWN)
    assert refused.value.message == f"room 'r': {found}"


def test_a_tool_of_a_known_server_may_come_later() -> None:
    assert find_problems(Room(id="r", tools=("notes__write", "notes__read"), skills=("tldr",)), KNOWN) == []


@pytest.mark.parametrize(("owner", "count"), [("anna", 0), ("bert", 1)])
def test_a_server_of_another_owner_is_none(owner: str, count: int) -> None:
    room = Room(id="r", tools=("ledger_anna_desk__list_a1b2c3",), owner=owner)
    assert len(find_problems(room, KNOWN)) == count
    check_rooms_at_start([room], KNOWN)  # what an owner's room names keeps no gateway from its start


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("approval: maybe", "approval: use 'never', 'side_effects' or 'always', not 'maybe'"),
        ("tools: calculator", "tools: write a list, not 'calculator'"),
        ("tools: [[a]]", "tools.0: write a text"),
        ("planning: perhaps", "planning: write true or false, not 'perhaps'"),
        ("budgets: {max_steps: 99}", "budgets.max_steps: it must be at most 32, not 99"),
        ("budgets: {max_steps: many}", "budgets.max_steps: write a whole number, not 'many'"),
        ("budgets: {max_seconds: 0}", "budgets.max_seconds: it must be more than 0, not 0"),
        ("budgets: 5", "budgets: write a map of names and values, not 5"),
        ("name: [x]", "name: write a text"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(line: str, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_room_text(f"{line}\n", "r", read, KNOWN)
    assert refused.value.problems == (words,)
    assert refused.value.stage == "check_config"

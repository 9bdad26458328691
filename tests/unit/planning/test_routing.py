"""Which way a request goes before any model is asked, and why."""

from time import monotonic

import pytest

from agent.core.models import Room, RouteKind
from agent.planning.routing import Route, route_request
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import CATALOGUE

ROOM = Room(id="r")
PLAIN = Room(id="plain", planning=False)


def way(
    question: str, *, room: Room = ROOM, catalogue: Catalogue = CATALOGUE, tool_calls: bool = False, model: bool = True
) -> Route:
    return route_request(question, room=room, catalogue=catalogue, tool_calls=tool_calls, has_model=model)


@pytest.mark.parametrize(
    "question",
    [
        "hi",
        "Hello!",
        "hello there",
        "Good morning, everyone",
        "thanks a lot!",
        "Hej!",
        "hejsan",
        "God morgon",
        "Tack så mycket!",
        "Guten Abend",
        "¡Hola!",
        "  merci  ",
    ],
)
def test_greetings_need_no_plan(question: str) -> None:
    assert way(question).kind == way(question, model=False).kind == way(question, room=PLAIN).kind == "greeting"


@pytest.mark.parametrize("question", ["hi, what time is it?", "Hej, vad är 2+2?", "thanks, now read notes.txt"])
def test_a_greeting_before_a_request_does_not_hide_it(question: str) -> None:
    assert way(question).kind == "plan"


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "Is it raining in Bergen?",
        "Which tickets are assigned to me?",
        "Log that I was ill on Monday",
        "Regnar det i Bergen?",
        "Welche Tickets sind mir zugewiesen?",
        "2+2*3",
        "what time is it in Stockholm?",
        "ok",  # it may be the reply to what was asked
        "Write a poem about autumn",
        "x" * 5_000,
    ],
)
@pytest.mark.parametrize("catalogue", [CATALOGUE, Catalogue()])
@pytest.mark.parametrize("model", [True, False])
def test_no_word_of_a_request_keeps_it_from_the_planner(question: str, catalogue: Catalogue, *, model: bool) -> None:
    assert way(question, catalogue=catalogue, model=model).kind == "plan"


@pytest.mark.parametrize(
    ("question", "kind", "skill", "rest"),
    [
        ("/deep_research who was Ada?", "skill", "deep_research", "who was Ada?"),
        ("/Deep-Research who", "skill", "deep_research", "who"),
        ("/summarise_text  a\nb ", "skill", "summarise-text", "a\nb"),
        ("/summarise-text", "skill", "summarise-text", "Summarise a long text in a few sentences."),
        ("/help", "command", None, "/help"),
        (" /TOOLS ", "command", None, "/TOOLS"),
        ("/skills", "command", None, "/skills"),
        ("/help me with my taxes", "plan", None, "/help me with my taxes"),
        ("/unknown thing", "plan", None, "/unknown thing"),
        ("/etc/passwd", "plan", None, "/etc/passwd"),
    ],
)
def test_commands_with_a_slash(question: str, kind: RouteKind, skill: str | None, rest: str) -> None:
    found = way(question)
    assert (found.kind, found.skill, found.question) == (kind, skill, rest)


def test_a_background_prompt_comes_before_everything_else() -> None:
    assert way("### Task:\nRead https://a.se", tool_calls=True).kind == "task"
    assert way("Tell me about ### Task: headings").kind != "task"


def test_named_tool_calls_come_before_what_the_text_says() -> None:
    assert way("/help", tool_calls=True).kind == "tool_calls"
    assert way("", tool_calls=True).kind == "tool_calls"


def test_a_room_without_planning_answers_directly_and_says_so() -> None:
    found = way("read https://a.se and 2+2", room=PLAIN)
    assert (found.kind, "'plain' does not plan" in found.reason) == ("direct", True)
    assert way("/deep_research x", room=PLAIN).kind == "skill", "a skill that is named is called"


@pytest.mark.parametrize("unit", [" /", "11-", "1 ", "!", "hi ", "what time is it in "])
def test_no_text_keeps_the_routing_busy(unit: str) -> None:
    started = monotonic()
    way("what time is it in" + unit * 100_000 + "!a")
    way(unit * 100_000)
    assert monotonic() - started < 2

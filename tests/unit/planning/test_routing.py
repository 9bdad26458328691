"""Which way a request goes before any model is asked, and why."""

from time import monotonic

import pytest

from agent.core.models import Room, RouteKind
from agent.planning.routing import LONG_CHARS, Route, route
from agent.tools.catalogue import Catalogue
from tests.unit.planning.kitchen import CATALOGUE, FETCH

ROOM = Room(id="r")
PLAIN = Room(id="plain", planning=False)


def way(
    question: str, *, room: Room = ROOM, catalogue: Catalogue = CATALOGUE, tool_calls: bool = False, model: bool = True
) -> Route:
    return route(question, room=room, catalogue=catalogue, tool_calls=tool_calls, has_model=model)


@pytest.mark.parametrize(
    "question",
    [
        "hi",
        "Hello!",
        "hello there",
        "Good morning, everyone",
        "thanks a lot!",
        "ok",
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
    ("question", "kind"),
    [
        ("What is the capital of France?", "direct"),
        ("Vem skrev Hamlet?", "direct"),
        ("Write a poem about autumn", "direct"),
        ("2+2*3", "command"),
        ("17.5 * 240 =", "command"),
        ("what time is it in Stockholm?", "command"),
        ("What is the date today?", "command"),
        ("Vad är 2+2?", "plan"),
        ("Vad är klockan i Stockholm?", "plan"),
        ("summarise https://example.org", "plan"),
        ("What does notes.txt say?", "plan"),
        ("what is the latest news about Mars?", "plan"),
        ("compare the two offers", "plan"),
        ("do this step by step", "plan"),
        ("Convert some money", "plan"),
        ("x" * (LONG_CHARS + 1), "plan"),
    ],
)
def test_a_question_goes_to_the_planner_only_where_something_calls_for_a_tool(question: str, kind: RouteKind) -> None:
    assert way(question).kind == kind


def test_without_a_model_every_question_goes_to_the_rules() -> None:
    assert way("What is the capital of France?", model=False).kind == "plan"


@pytest.mark.parametrize("question", ["2+2", "what time is it?", "read https://a.se"])
def test_without_tools_nothing_calls_for_one(question: str) -> None:
    assert way(question, catalogue=Catalogue()).kind == "direct"


def test_a_command_needs_its_tool() -> None:
    assert way("2+2", catalogue=Catalogue(tools=(FETCH,))).kind == "direct"


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
        ("/help me with my taxes", "direct", None, "/help me with my taxes"),
        ("/unknown thing", "direct", None, "/unknown thing"),
        ("/etc/passwd", "direct", None, "/etc/passwd"),
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

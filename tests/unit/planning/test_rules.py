"""The commands that the rules know without any model, in English and Swedish; of anything else they do nothing."""

from time import process_time

import pytest
from pydantic import JsonValue

from agent.core.models import JsonObject, Plan
from agent.planning.request import AnswerRules, CompletedStep, EarlierPlans
from agent.planning.rules import RulePlanner, find_tool_calls, find_unknown_part
from agent.tools import PlanHints
from agent.tools.catalogue import Catalogue
from agent.tools.commands import CommandCall, ToolCommands
from mcp_tools.builtin.request_commands import RECALL, is_expression
from tests.support.builders import tool_step
from tests.unit.planning.kitchen import CALCULATOR, CATALOGUE, FETCH, SAVE, TIME, asking, spec

Calls = list[tuple[str, dict[str, JsonValue]]]


def calls(question: str) -> Calls:
    return [(step.tool, step.args) for step in RulePlanner().plan(asking(question)).steps if not step.is_completion]


def sums(question: str) -> list[JsonValue]:
    return [args["expression"] for tool, args in calls(question) if tool == "calculator"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Read https://example.org/page.", [("web_fetch", {"url": "https://example.org/page"})]),
        ("Hämta https://exempel.se!", [("web_fetch", {"url": "https://exempel.se"})]),
        ("fetch the page http://a.se/b?c=1#d, please", [("web_fetch", {"url": "http://a.se/b?c=1#d"})]),
        ("https://a.se/x", [("web_fetch", {"url": "https://a.se/x"})]),
        ("read https://e.org/wiki/Foo_(bar).", [("web_fetch", {"url": "https://e.org/wiki/Foo_(bar)"})]),
        ("open https://a.se/2026-11-20/1*2.txt", [("web_fetch", {"url": "https://a.se/2026-11-20/1*2.txt"})]),
        (
            "read https://a.se and https://b.se and https://a.se",
            [("web_fetch", {"url": "https://a.se"}), ("web_fetch", {"url": "https://b.se"})],
        ),
        ("ftp://a.se and mailto:me@a.se", []),
        ("Read notes.txt", [("read_file", {"path": "notes.txt"})]),
        ("Läs filen projekt/rapport.md", [("read_file", {"path": "projekt/rapport.md"})]),
        ("mail me at ada@example.md", []),
        ("list my files", [("list_files", {})]),
        ("list all *.csv files", [("list_files", {"pattern": "*.csv"})]),
        ("Which files are *.md?", [("list_files", {"pattern": "*.md"})]),
        ("search my files for the invoice", [("search_files", {"query": "invoice"})]),
        ('find "red car" in my notes', [("search_files", {"query": "red car"})]),
        ('search my notes for "red car"', [("search_files", {"query": "red car"})]),
    ],
)
def test_links_and_files(question: str, expected: Calls) -> None:
    assert calls(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is 17.5 * 240?", ["17.5 * 240"]),
        ("Vad är 2+2?", ["2+2"]),
        ("Räkna ut (2+3)*4 åt mig", ["(2+3)*4"]),
        ("what's 2^10?", ["2^10"]),
        ("What is -3 + 4", ["-3 + 4"]),
        ("what is sqrt(16)", ["sqrt(16)"]),
        ("what is 15% of 80?", ["80 * 15 / 100"]),
        ("10 percent of 12.5", ["12.5 * 10 / 100"]),
        ("1+1 and then 2*3", ["1+1", "2*3"]),
    ],
)
def test_sums(question: str, expected: list[str]) -> None:
    assert sums(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "we met on 2026-11-20",
        "on 24-11-2026",
        "call 070-123 45 67",
        "call +46 70 123 45 67",
        "the server 192.168.0.1",
        "version 1.2.3-4",
        "room B-12",
        "there are 12 of them",
        "1,000 * 2",
        "1 000 * 2",
        "12.5% of 1,000",
        "round(2,5)",
    ],
)
def test_dates_phone_numbers_and_what_could_mean_two_numbers_are_no_sums(question: str) -> None:
    assert sums(question) == []


@pytest.mark.parametrize(
    ("question", "expressions"),
    [
        ("Vad är 17,5 * 240?", ["17.5 * 240"]),
        ("vad är 12,5 - 4*3?", ["12.5 - 4*3"]),
        ("12,5% of 80", ["80 * 12.5 / 100"]),
        ("2,5 * 1,000", []),
        ("I have 2,5 and want 3*4, 5+6", []),
    ],
)
def test_a_comma_that_can_only_be_a_decimal_one_is_read(question: str, expressions: list[str]) -> None:
    assert sums(question) == expressions


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("3 + 4 and then multiply by 5", "multiply by 5"),
        ("what day is it tomorrow?", "what day is it tomorrow?"),
        ("What does notes.txt say about tea?", "What does notes.txt say about tea?"),
        ("read https://a.se and tell me whether it is true", "tell me whether it is true"),
        ("summarise https://a.se", "summarise https://a.se"),
        ("what time is it in Tokyo when it is noon here?", "what time is it in Tokyo when it is noon here?"),
        ("search my files for tea and sum it up", "sum it up"),
        ("calculate the tax on 2+2", "calculate the tax on 2+2"),
        ("report-2026-11-20.txt minus notes.txt", "report-2026-11-20.txt minus notes.txt"),
        ("Regnar det i Bergen?", "Regnar det i Bergen?"),
        ("what is 1,000 * 2?", "what is 1,000 * 2?"),
        ("ring 2,5 times, and 2+2", "ring 2,5 times"),
    ],
)
def test_half_an_answer_is_none(question: str, part: str) -> None:
    """Each was once answered in part, as if that were all of it."""
    assert calls(question) == []
    assert find_unknown_part(question, CATALOGUE.tools) == part


@pytest.mark.parametrize(
    ("question", "zone"),
    [
        ("What time is it?", None),
        ("what's the date", None),
        ("Vad är klockan?", None),
        ("Vilken dag är det?", None),
        ("What time is it in Stockholm?", "Europe/Stockholm"),
        ("Vad är klockan i Stockholm?", "Europe/Stockholm"),
        ("Hur mycket är klockan i New York?", "America/New_York"),
        ("time in Los Angeles", "America/Los_Angeles"),
        ("current time in UTC", "UTC"),
        ("what time is it, asia/tokyo", "Asia/Tokyo"),
        ("What time is it in Göteborg?", "Europe/Stockholm"),
        ("what time is it in Atlantis", "Atlantis"),
    ],
)
def test_times(question: str, zone: str | None) -> None:
    """A place without a zone goes to the tool, which says so: better than the time of somewhere else."""
    assert calls(question) == [("current_time", {"timezone": zone} if zone else {})]


@pytest.mark.parametrize(
    "question",
    ["What time is it in Tokyo and in Paris?", "What time is it in Tokyo and Paris?", "time in Tokyo, Paris"],
)
def test_every_place_gets_its_time(question: str) -> None:
    assert calls(question) == [
        ("current_time", {"timezone": "Asia/Tokyo"}),
        ("current_time", {"timezone": "Europe/Paris"}),
    ]


@pytest.mark.parametrize("question", ["Hello!", "Hej!", "Tack så mycket", "Who wrote Hamlet?", "Vem skrev Hamlet?", ""])
def test_plain_talk_is_answered_by_a_completion_alone(question: str) -> None:
    plan = RulePlanner().plan(asking(question))
    assert [(step.id, step.action, step.depends_on) for step in plan.steps] == [("answer", "completion", ())]
    assert plan.origin == "rules"


def test_several_results_are_joined_by_a_completion() -> None:
    plan = RulePlanner().plan(asking("What is 17.5 * 240, and what time is it in Stockholm?"))
    assert [(step.id, step.tool) for step in plan.steps] == [
        ("s1", "calculator"),
        ("s2", "current_time"),
        ("answer", "completion"),
    ]
    assert [step.depends_on for step in plan.steps] == [(), (), ("s1", "s2")], "they run at the same time"


@pytest.mark.parametrize(
    ("has_model", "needs_completion", "steps"),
    [
        (False, False, ["s1"]),
        (True, False, ["s1", "answer"]),
        (False, True, ["s1", "answer"]),
    ],
)
def test_one_result_is_the_answer_unless_somebody_is_to_word_it(
    has_model: bool, needs_completion: bool, steps: list[str]
) -> None:
    request = asking("2+2", answer=AnswerRules(needs_completion=needs_completion))
    assert [step.id for step in RulePlanner().plan(request, has_model=has_model).steps] == steps


def test_only_tools_of_the_catalogue_are_planned() -> None:
    only_fetch = Catalogue(tools=(FETCH,))
    assert [step.tool for step in RulePlanner().plan(asking("https://a.se", catalogue=only_fetch)).steps] == [
        "web_fetch"
    ]
    both = RulePlanner().plan(asking("2+2 and https://a.se", catalogue=only_fetch))
    assert [step.action for step in both.steps] == ["completion"], "half of it would pass for all of it"


def test_steps_stay_within_the_budget_of_the_room() -> None:
    plan = RulePlanner().plan(asking(" and ".join(f"https://a.se/{n}" for n in range(9)), max_steps=4))
    assert [step.id for step in plan.steps] == ["s1", "s2", "s3", "answer"]


def replanned(question: str, *, done: JsonObject | None = None, failed: JsonObject | None = None) -> Plan:
    first = tool_step("s1", "calculator")
    finished = CompletedStep(first.model_copy(update={"args": done}), "2") if done is not None else None
    earlier = EarlierPlans(
        completed={"s1": finished} if finished else {},
        failed=(first.model_copy(update={"args": failed}),) if failed is not None else (),
        last=Plan(goal="g", steps=(first,), version=1),
        used_ids=frozenset({"s1", "answer"}),
    )
    return RulePlanner().plan(asking(question, earlier_plans=earlier))


def test_a_replan_repeats_no_call_and_takes_no_used_id() -> None:
    plan = replanned("1+1 and 2*3", failed={"expression": "1+1"})
    assert [(step.id, step.args) for step in plan.steps] == [("s2", {"expression": "2*3"})]
    assert plan.version == 2


def test_a_replan_keeps_what_succeeded() -> None:
    plan = replanned("1+1 and 2*3", done={"expression": "1+1"})
    assert [(step.id, step.depends_on) for step in plan.steps] == [("s1", ()), ("s2", ()), ("answer2", ("s1", "s2"))]


def test_a_replan_with_nothing_left_to_try_ends_in_a_completion() -> None:
    assert [step.id for step in replanned("1+1", failed={"expression": "1+1"}).steps] == ["answer2"]


def test_what_an_earlier_plan_did_is_not_done_again() -> None:
    """It changed something, whatever was thought of its result; the plan in between asked for something else."""
    saved = find_tool_calls("remember that tea is at four", [SAVE])
    before = tool_step("s1", saved[0].tool).model_copy(update={"args": saved[0].args, "effect": "effect"})
    between = Plan(goal="g", steps=(tool_step("s2", "web_fetch"),), version=1)
    earlier = EarlierPlans(happened=(before,), last=between, failed=between.steps)
    request = asking("remember that tea is at four", earlier_plans=earlier)
    assert [step.action for step in RulePlanner().plan(request).steps] == ["completion"]


def test_calls_are_read_for_the_given_tools_in_order() -> None:
    found = find_tool_calls("2+2 then the current time", [TIME, CALCULATOR, SAVE])
    assert [(call.tool, call.args) for call in found] == [("calculator", {"expression": "2+2"}), ("current_time", {})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2+2", True),
        (" 17.5*240 =?", True),
        ("sqrt(2)", True),
        ("-3 + 4", True),
        ("2 ** 3", True),
        ("2026-11-20", False),
        ("0701234567", False),
        ("1.2.3-4", False),
        ("3 4 + 5", False),
        ("2+x", False),
        ("two + 2", False),
        ("42", False),
        ("", False),
    ],
)
def test_arithmetic_and_nothing_else(text: str, expected: bool) -> None:
    assert is_expression(text) is expected


def test_a_long_text_is_no_command_but_may_be_remembered() -> None:
    assert calls("https://a.se/1 " + "word " * 400) == []
    fact = "a, " * 600
    assert calls(f"remember that {fact}end") == [("memory_save", {"text": f"{fact}end"})]


@pytest.mark.parametrize("unit", ["1", "(", "1,", "1+", "search ", "find 'a ", "https://(", "a/", "list ", " "])
def test_no_text_keeps_the_rules_busy(unit: str) -> None:
    started = process_time()
    find_tool_calls(unit * 300_000, CATALOGUE.tools)
    assert process_time() - started < 2


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Remember that my dog is called Fido", ("memory_save", {"text": "my dog is called Fido"})),
        ("Please remember: the code is 1234", ("memory_save", {"text": "the code is 1234"})),
        ("Kom ihåg att jag är vegetarian", ("memory_save", {"text": "jag är vegetarian"})),
        ("What do you remember about my dog?", ("memory_search", {"query": "my dog", "all_words": True})),
        (
            "Do you remember the name of my boat?",
            ("memory_search", {"query": "the name of my boat", "all_words": True}),
        ),
        ("Vad vet du om mina planer?", ("memory_search", {"query": "mina planer", "all_words": True})),
        ("What is my favourite colour?", ("memory_search", {"query": "my favourite colour", "all_words": True})),
        ("Vad heter min hund?", ("memory_search", {"query": "min hund", "all_words": True})),
        ("What do you remember?", ("memory_search", {"limit": 20})),
        ("Vad minns du?", ("memory_search", {"limit": 20})),
        ("what's my dog called", ("memory_search", {"query": "my dog called", "all_words": True})),
    ],
)
def test_memories(question: str, expected: tuple[str, JsonObject]) -> None:
    recall = spec("memory_search", {"query": {"type": "string"}}, ["query"], hints=PlanHints(commands=RECALL))
    assert [(call.tool, call.args) for call in find_tool_calls(question, [SAVE, recall])] == [expected]


@pytest.mark.parametrize("question", ["remember", "remember?", "I remember the summer of 1990 well"])
def test_not_every_remembering_is_a_memory(question: str) -> None:
    assert calls(question) == []


def test_a_tool_brings_its_own_commands() -> None:
    def read(command: str) -> list[CommandCall]:
        return [CommandCall({"times": 2}, "ring")] if command == "ring twice" else []

    bell = spec("ring", {"times": {"type": "integer"}}, hints=PlanHints(commands=ToolCommands(read)))
    found = find_tool_calls("Please ring twice, and what is 2+2?", [bell, CALCULATOR])
    assert [(call.tool, call.args) for call in found] == [("ring", {"times": 2}), ("calculator", {"expression": "2+2"})]
    assert find_unknown_part("ring twice, and 2+2", [CALCULATOR]) == "ring twice"
    mute = spec("ring", {"times": {"type": "integer"}})
    assert find_tool_calls("ring twice", [mute]) == [], "a name alone is not a command"

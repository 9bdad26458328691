"""What a planner's reply says, in both forms, and the answer in it while it is written."""

import json

import pytest

from agent.core.errors import PlanInvalidError
from agent.planning.reply import Answer, AnswerDetector, Ask, FindTools, PlanReply, Reply, read_reply
from tests.unit.planning.kitchen import wire_plan, wire_step

PLAN = {"kind": "plan", **wire_plan(wire_step("s1"))}
WRITTEN = json.dumps(PLAN)
BOTH = {**PLAN, "kind": "answer", "answer": "Paris"}

ANSWERS = [
    ("ANSWER\nParis is **it**.\n", "Paris is **it**.\n"),
    ("ANSWER: Paris", "Paris"),
    ("**ANSWER**\n\nParis", "Paris"),
    ("  ANSWER Paris", "Paris"),
    ("<think>A plan? {no}</think>\nANSWER\nParis", "Paris"),
    ("ANSWER\nUse {name} and ```json\n{\"a\": [1]}\n``` here", "Use {name} and ```json\n{\"a\": [1]}\n``` here"),
    ('{"kind": "answer", "answer": "Paris\\n\\u00e5 \\ud83d\\ude00 \\"q\\" \\\\"}', 'Paris\nå 😀 "q" \\'),
    ('{"reasoning": "r \\" s", "kind": "answer", "answer": "Paris"}', "Paris"),
    ('```json\n{"kind": "answer", "answer": "Paris"}\n```', "Paris"),
    (json.dumps({"kind": "answer", "answer": "Paris", "question": "", **wire_plan()}), "Paris"),
]  # fmt: skip


def stream(text: str, size: int) -> list[str]:
    """What is shown, piece by piece."""
    detector = AnswerDetector()
    return [detector.feed(text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_an_answer_in_either_form(text: str, answer: str) -> None:
    assert read_reply(text) == Answer(answer)


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_it_is_shown_while_it_is_written(text: str, answer: str, size: int) -> None:
    assert "".join(stream(text, size)) == answer


@pytest.mark.parametrize("begin", ["ANSWER\n", '{"kind": "answer", "answer": "', "<think>Hm.</think>ANSWER\n"])
def test_its_first_character_is_shown_with_the_piece_that_holds_it(begin: str) -> None:
    detector = AnswerDetector()
    assert [detector.feed(piece) for piece in (begin, "P", "aris")] == ["", "P", "aris"]


@pytest.mark.parametrize("text", ["Paris.", "I cannot do that: no tool here sends mail.", "Use `{x}` in it."])
def test_plain_prose_is_an_answer_that_is_not_shown_before_its_end(text: str) -> None:
    assert read_reply(text) == Answer(text)
    assert "".join(stream(text, 3)) == ""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (WRITTEN, PlanReply(PLAN)),
        (f"Sure, here it is:\n```json\n{WRITTEN}\n```", PlanReply(PLAN)),
        (f"ANSWER\nI will look it up.\n{WRITTEN}", PlanReply(PLAN)),
        (f"ANSWER\n{WRITTEN}", PlanReply(PLAN)),
        (json.dumps(BOTH), PlanReply(BOTH)),
        ('{"kind": "ask", "question": " Which month? "}', Ask("Which month?")),
        ('ANSWER\n{"kind": "ask", "question": "Which month?"}', Ask("Which month?")),
        ('{"kind": "find_tools", "query": "send a mail"}', FindTools("send a mail")),
        ('{"steps": []}', Answer("")),
        ('{"kind": "plan", "answer_tier": "high", "steps": []}', Answer("", "high")),
        ('{"kind": "plan", "steps": [], "answer": "Paris"}', Answer("Paris")),
    ],
)  # fmt: skip
def test_other_replies(text: str, meant: Reply) -> None:
    assert read_reply(text) == meant


def test_of_a_plan_behind_an_answer_nothing_is_shown() -> None:
    shown = "".join(stream(f"ANSWER\nI will look it up.\n{WRITTEN}", 3))
    assert shown == "I will look it up.\n"
    assert "".join(stream(f"ANSWER\n{WRITTEN}", 5)) == ""
    assert "".join(stream(WRITTEN, 5)) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("ANSWER\n \n", "not followed by an answer"),
        ('{"kind": "ask"}', 'needs a text "question"'),
        ('{"kind": "find_tools", "query": " "}', 'needs a text "query"'),
        ('{"kind": "answer"}', 'needs a text "answer"'),
        ('{"foo": 1}', 'no list "steps"'),
        ('Here: {"kind": "plan", "steps": [{"id"', "do not balance"),
        ("<think>still thinking", "ended before its thinking did"),
    ],
)
def test_what_says_nothing_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(PlanInvalidError) as refused:
        read_reply(text)
    assert problem in refused.value.problems[0]


def test_a_cut_off_plan_is_no_plan_and_a_cut_off_answer_is_an_answer() -> None:
    assert read_reply("ANSWER\nOnce upon a", "length") == Answer("Once upon a")
    with pytest.raises(PlanInvalidError, match="cut off"):
        read_reply(WRITTEN, "length")

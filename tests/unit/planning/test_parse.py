"""Each way from a reply to the object it holds, and each refusal in its own words."""

import json

import pytest

from agent.core.errors import PlanInvalidError
from agent.core.models import JsonObject
from agent.planning.parse import MAX_REPLY_CHARS, has_balanced_brackets, parse_reply
from tests.unit.planning.kitchen import wire_plan, wire_step

PLAN = wire_plan(wire_step("s1"))
TEXT = json.dumps(PLAN)
OTHER = json.dumps(wire_plan(wire_step("s1", expression="9-9")))
ONE_STEP = '{"id": "s1", "tool": "calculator"}'


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"\ufeff{TEXT}",
        f"  \n{TEXT}\n\n",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Sure.\n```json\n{TEXT}\n```\nAnything else?",
        f"Sure: {TEXT} That is it.",
        f"<think>hm</think>{TEXT}",
        f"<THINKING>hm\nhm</THINKING>\n{TEXT}",
        f"<reasoning>hm</reasoning>{TEXT}",
        f"<think>or {OTHER}?</think>{TEXT}",
        f"it began before the tag</think>{TEXT}",
        f"{OTHER}\nNo, better:\n{TEXT}",
        f"```json\n{OTHER}\n```\nNo:\n```json\n{TEXT}\n```",
        f'{{"note": "first"}} {TEXT}',
        json.dumps({"plan": PLAN}),
        json.dumps({"output": PLAN}),
        json.dumps({"response": PLAN}),
    ],
)
def test_the_plan_is_found_wherever_it_stands(reply: str) -> None:
    assert parse_reply(reply) == PLAN


@pytest.mark.parametrize(
    "reply",
    [
        f"[{ONE_STEP}]",
        f"My steps: [{ONE_STEP}] and that is all.",
        f"```json\n[{ONE_STEP}]\n```",
    ],
)
def test_a_bare_list_of_steps_is_a_plan(reply: str) -> None:
    assert parse_reply(reply) == {"steps": [json.loads(ONE_STEP)]}


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "the reply is empty"),
        ("   \n", "the reply is empty"),
        ("<think>all of it</think>", "the reply is empty"),
        ("I cannot help with that.", "holds no JSON"),
        ("<think>and then", "ended before its thinking did"),
        (f"<thinking>perhaps {OTHER}", "ended before its thinking did"),
        ("42", "not a JSON object with a list of steps"),
        ('"steps"', "not a JSON object with a list of steps"),
        ("{}", 'no list "steps"'),
        ('{"steps": null}', 'no list "steps"'),
        ('{"steps": "s1"}', 'no list "steps"'),
        ('{"steps": {"s1": {}}}', 'no list "steps"'),
        ('{"steps": []}', "has no steps"),
        ("[]", "has no steps"),
        ('{"steps": ["s1"]}', "every step must be an object"),
        ('{"steps": [{"tool": "calculator"}, null]}', "every step must be an object"),
        ('{"type": "object", "properties": {"steps": {"type": "array"}}}', "repeats the schema"),
        ('{"steps": {"type": "array", "items": {}}}', "repeats the schema"),
        (TEXT[:-1], "do not balance"),
        (TEXT[: len(TEXT) // 2], "do not balance"),
        (f"```json\n{TEXT[:-3]}\n```", "do not balance"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_reason(reply: str, problem: str) -> None:
    with pytest.raises(PlanInvalidError) as caught:
        parse_reply(reply)
    assert problem in caught.value.problems[0]
    assert len(caught.value.problems) == 1


def test_a_reply_cut_off_by_its_limit_is_not_even_looked_at() -> None:
    with pytest.raises(PlanInvalidError, match="cut off before its end; answer with a shorter plan"):
        parse_reply(TEXT, "length")


def test_a_reply_may_have_so_many_characters_and_no_more() -> None:
    assert parse_reply(TEXT.ljust(MAX_REPLY_CHARS)) == PLAN
    with pytest.raises(PlanInvalidError, match="longer than 200,000 characters"):
        parse_reply(TEXT.ljust(MAX_REPLY_CHARS + 1))


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning", "scratchpad"])
def test_a_draft_in_a_thinking_block_that_never_ended_is_no_plan(tag: str) -> None:
    with pytest.raises(PlanInvalidError, match="before its thinking did"):
        parse_reply(f"<{tag}>perhaps {OTHER} but")


@pytest.mark.parametrize(
    "reply",
    [
        f"{OTHER}\nNo, better:\n{TEXT[:-1]}",
        f"{OTHER}\nNo, better:\n{TEXT[:40]}",
        f"```json\n{OTHER}\n```\nNo:\n{TEXT[:-1]}",
        f"```json\n{OTHER}\n```\nNo:\n```json\n{TEXT[:-1]}",
    ],
)
def test_a_draft_does_not_stand_in_for_the_plan_that_was_cut_off(reply: str) -> None:
    with pytest.raises(PlanInvalidError):
        parse_reply(reply)


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning", "scratchpad"])
def test_tags_inside_a_value_are_part_of_it(tag: str) -> None:
    plan = wire_plan(wire_step("s1", "summarise-text", task=f"explain <{tag}>this</{tag}> in HTML"))
    assert parse_reply(json.dumps(plan)) == plan


REPAIRED: list[tuple[str, JsonObject]] = [
    ("{'steps': [{'tool': 'calculator'}]}", {"steps": [{"tool": "calculator"}]}),
    ('{"steps": [{"tool": "calculator",},],}', {"steps": [{"tool": "calculator"}]}),
    ('{steps: [{tool: "calculator"}]}', {"steps": [{"tool": "calculator"}]}),
    ('{"steps": [{"tool": "calculator"}] // one\n}', {"steps": [{"tool": "calculator"}]}),
    ('{"steps": [{"tool": "calculator" "id": "s1"}]}', {"steps": [{"tool": "calculator", "id": "s1"}]}),
    ("{'steps': [{'tool': 'calculator', 'tier': None}]}", {"steps": [{"tool": "calculator", "tier": None}]}),
]


@pytest.mark.parametrize(("reply", "plan"), REPAIRED)
def test_a_slip_of_the_pen_costs_no_second_call(reply: str, plan: JsonObject) -> None:
    assert parse_reply(reply) == plan


@pytest.mark.parametrize(
    "reply",
    [
        '{"steps": [{"tool": "calculator"}], "steps": [{"tool": "web_fetch"}]}',
        '{"steps": [{"tool": "calculator", "tool": "web_fetch"}]}',
        '{"steps": [{"tool": "calculator", "intent": "say "hi", "tool": "x"}]}',
        '{"steps": [{"tool": "calculator", ... }]}',
        '{"steps": [{"tool": "calculator"}, ...]}',
    ],
)
def test_what_a_repair_would_change_is_refused(reply: str) -> None:
    with pytest.raises(PlanInvalidError):
        parse_reply(reply)


@pytest.mark.parametrize("value", [r"the formula \\beta", r"C:\\files", r"$\\frac{1}{2}$"])
def test_a_backslash_that_was_not_escaped_is_refused_and_an_escaped_one_kept(value: str) -> None:
    reply = '{"steps": [{"tool": "fetch", "inputs": [{"name": "query", "value": "%s"}]}]}'
    with pytest.raises(PlanInvalidError, match="backslash"):
        parse_reply(reply % value.replace("\\\\", "\\"))
    assert parse_reply(reply % value)["steps"]


def test_a_number_too_long_to_read_is_refused() -> None:
    with pytest.raises(PlanInvalidError):
        parse_reply('{"steps": [{"tool": "calculator", "args": {"x": ' + "9" * 5000 + "}}]}")


def test_brackets_without_end_are_refused() -> None:
    with pytest.raises(PlanInvalidError):
        parse_reply('{"steps": ' + "[" * 90_000 + "]" * 90_000 + "}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", True),
        ('{"a": [1, {"b": "}"}]}', True),
        ('{"a": "\\"}"}', True),
        ("", True),
        ("{", False),
        ("}", False),
        ("{]", False),
        ("[}", False),
        ('{"a', False),
        ('{"a": "b}', False),
        ("{}}", False),
    ],
)
def test_brackets_and_quotes_balance(text: str, expected: bool) -> None:
    assert has_balanced_brackets(text) is expected

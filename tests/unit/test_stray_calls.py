"""Calls that are the whole of an answer are taken out of it, whatever its pieces; all other text is passed on."""

from time import process_time

import pytest

from agent.answers.unwrapping import StrayCalls

CALL = '{"name": "add", "arguments": {"a": 1}}'
CALLS = [
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"[TOOL_CALLS] [{CALL}]",
    f"```json\n{CALL}\n```",
    f'{{"tool_calls": [{CALL}]}}',
    "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>",
]
OTHERS = [
    f"It is called by\n<tool_call>\n{CALL}\n</tool_call>",
    f"<tool_call>\n{CALL}\n</tool_call>\nThat is how.",
    '{"name": "Bob", "age": 3}',
    "```\ncode\n```",
    "[1] says so.",
    "[f(a=1)]",
    "<b>Yes</b>",
    "> It is.",
    "[]",
    "<",
    "",
]


def read(text: str, size: int, *, takes_any: bool = True) -> str:
    stray = StrayCalls(["add"], takes_any=takes_any)
    return "".join(stray.feed(text[at : at + size]) for at in range(0, len(text), size)) + stray.end()


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_no_answer(text: str, size: int) -> None:
    assert read(text, size) == ""


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("text", OTHERS)
def test_any_other_text_is(text: str, size: int) -> None:
    assert read(text, size) == text


def test_an_unknown_name_counts_in_the_tokens_of_a_template_only() -> None:
    text = CALLS[0].replace("add", "search")
    assert (read(text, 9), read(text, 9, takes_any=False)) == ("", text)
    assert read(CALL.replace("add", "search"), 9) == CALL.replace("add", "search")


def test_text_that_begins_with_no_call_is_not_held() -> None:
    stray = StrayCalls(["add"], takes_any=True)
    assert [stray.feed(piece) for piece in ("Yes", ", ", "<tool_call>")] == ["Yes", ", ", "<tool_call>"]


def test_white_space_without_an_end_takes_no_quadratic_time() -> None:
    calls, began = StrayCalls(("list_orders",), takes_any=True), process_time()
    assert "".join(calls.feed(" ") for _ in range(40_000)).isspace()
    assert process_time() - began < 1

"""`make eval-bfcl`: what is sent and kept, and how answers are graded and counted, without the package and a model."""

import json
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from agent.core.errors import ConfigError
from gateway.features.evaluation.task_files import sample_tasks
from tests.bench import peer
from tests.bench.endpoint import ChatReply, FunctionCall, build_body, read_reply
from tests.bench.function_calls.__main__ import choose_columns, grade_replies, read_cases
from tests.bench.function_calls.cases import (
    Case,
    CaseReply,
    build_answer,
    build_case_reply,
    choose_categories,
    get_messages,
    get_tools,
)
from tests.bench.function_calls.checker import grade
from tests.bench.function_calls.columns import Column, Replies
from tests.bench.function_calls.table import format_faults, format_results

TOOL = {"type": "function", "function": {"name": "area", "parameters": {"type": "object", "properties": {}}}}
CALL = FunctionCall(name="area", arguments='{"base": 3}')


def case(name: str = "simple_python_0", family: str = "simple_python") -> Case:
    asked = [{"role": "user", "content": "How large is it?"}]
    return Case(
        id=name,
        family=family,
        messages=asked,
        tools=[TOOL],
        prompted=[{"role": "system", "content": "You have area(base)."}, *asked],
    )


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    return {"choices": [{"message": {"role": "assistant", **message}}], "usage": usage, **more}


def native_calls(*calls: FunctionCall) -> list[dict[str, Any]]:
    return [{"id": "c", "type": "function", "function": call.model_dump()} for call in calls]


def test_categories_and_columns_are_chosen_by_name() -> None:
    assert choose_categories("") == ["simple_python", "multiple", "parallel", "irrelevance"]
    assert choose_categories("parallel,live_simple") == ["parallel", "live_simple"]
    assert choose_columns("native,gateway") == ["native", "gateway"]
    assert choose_columns("") == ["gateway", "chat", "native", "prompting"]
    with pytest.raises(ConfigError, match="'multi_turn_base' is unknown"):
        choose_categories("multi_turn_base")
    with pytest.raises(ConfigError, match="'bare' is unknown"):
        choose_columns("bare")


def test_a_sample_has_as_many_cases_of_each_category_and_is_the_same_for_a_seed() -> None:
    cases = [case(f"{family}_{number}", family) for family in ("simple_python", "parallel") for number in range(90)]
    chosen = sample_tasks(cases, 40, seed=7)
    assert [one.family for one in chosen].count("parallel") == 20
    assert chosen == sample_tasks(cases, 40, seed=7)
    assert chosen != sample_tasks(cases, 40, seed=8)


def test_the_prompting_mode_gets_its_prompt_and_no_tools() -> None:
    body = build_body("m", get_messages("prompting", case()), get_tools("prompting", case()))
    assert "tools" not in body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    native = build_body("m", get_messages("native", case()), get_tools("native", case()))
    assert native["tools"] == [TOOL]
    assert [message["role"] for message in native["messages"]] == ["user"]
    assert (native["temperature"], native["seed"]) == (0, 0)


def test_a_reply_is_read_with_its_calls_its_tokens_and_the_status_of_the_run() -> None:
    trace = {"status": "awaiting_input"}
    reply = read_reply(completion({"content": None, "tool_calls": native_calls(CALL)}, stepgate=trace), 1.5)
    assert (reply.calls, reply.text, reply.run_status) == ((CALL,), "", "awaiting_input")
    assert reply.usage.total_tokens == 25


async def test_an_approval_is_given_and_counted_and_a_run_that_asks_forever_ends() -> None:
    bodies: list[dict[str, Any]] = []
    waiting = completion({"content": "May I call area?"}, stepgate={"status": "awaiting_approval"})

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        if len(bodies) == 2:
            return httpx.Response(200, json=completion({"content": None, "tool_calls": native_calls(CALL)}))
        return httpx.Response(200, json=waiting)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://gateway/v1") as client:
        column = Column("gateway", client, "functions")
        reply = await column.ask(case())
        assert (reply.calls, reply.questions, reply.tokens, reply.status) == ((CALL,), 1, 50, "answered")
        assert [message["content"] for message in bodies[1]["messages"]][-2:] == ["May I call area?", "approve"]
        assert case().messages == bodies[0]["messages"], "the case itself is unchanged"
        endless = await column.ask(case())
    assert (endless.calls, endless.questions) == ((), 3)


def test_refused_and_failed_requests_are_told_apart() -> None:
    refused = build_case_reply(case(), [ChatReply(http_status=400, error="tools[0]: a bad name")])
    failed = build_case_reply(case(), [ChatReply(http_status=502, error="the model is down")])
    lost = build_case_reply(case(), [ChatReply(http_status=0, error="ConnectError()")])
    assert [refused.status, failed.status, lost.status] == ["refused", "error", "error"]


def package(**functions: Any) -> SimpleNamespace:
    """The package's functions with simple rules of their own: `[name]` is a call."""

    def decode(text: str) -> list[dict[str, Any]]:
        if not text.startswith("["):
            raise ValueError("no list")
        return [{text.strip("[]"): {}}]

    return SimpleNamespace(**{
        "decode_text": decode,
        "is_call_list": lambda calls: isinstance(calls, list),
        "is_empty": lambda calls: not calls,
        "check_calls": lambda functions, calls, truth, category, form: {
            "valid": calls == truth, "error": ["wrong value"], "error_type": f"{category}:{form}",
        },
        **functions,
    })  # fmt: skip


def answer(
    column: Any = "native", family: str = "simple_python", text: str = "", *calls: FunctionCall
) -> dict[str, Any]:
    return build_answer(column, case(family=family), CaseReply(id="simple_python_0", text=text, calls=calls))


def test_an_answer_is_right_if_its_calls_are() -> None:
    right = [{"area": {"base": 3}}]
    assert not grade(package(), answer("native", "simple_python", "", CALL), [], right)
    wrong = grade(package(), answer("native", "simple_python", "", CALL), [], [{"area": {"base": 4}}])
    assert wrong == "simple_python:native: ['wrong value']"
    assert not grade(package(), answer("prompting", "parallel", "[area]"), [], [{"area": {}}])
    assert "no list" in grade(package(), answer("prompting", "parallel", "It is large."), [], right)
    assert "answered with text" in grade(package(), answer("native", "simple_python", "[area]"), [], right)
    broken = FunctionCall(name="area", arguments="{")
    assert "JSONDecodeError" in grade(package(), answer("gateway", "simple_python", "", broken), [], right)


def test_where_no_function_fits_only_an_answer_without_a_call_is_right() -> None:
    for family in ("irrelevance", "live_irrelevance"):
        assert not grade(package(), answer("prompting", family, "None fits."), [], None)
        assert grade(package(), answer("prompting", family, "[area]"), [], None) == "a call where none fits"
        assert grade(package(), answer("native", family, "", CALL), [], None) == "a call where none fits"
    assert grade(package(), answer("native", "live_relevance", "None fits."), [], None) == "no call"
    assert not grade(package(), answer("native", "live_relevance", "", CALL), [], None)


def test_the_table_counts_by_category_and_judges_the_aims() -> None:
    cases = [case(f"simple_python_{n}") for n in range(4)] + [case(f"irrelevance_{n}", "irrelevance") for n in range(4)]
    names: list[Any] = ["gateway", "native", "prompting"]
    replies: Replies = {
        name: {one.id: CaseReply(id=one.id, status="answered", tokens=10, seconds=1) for one in cases} for name in names
    }
    faults = {(name, one.id): "" for name in names for one in cases}
    faults |= {("native", "simple_python_0"): "wrong", ("gateway", "irrelevance_0"): "a call where none fits"}
    faults["prompting", "simple_python_1"] = faults["prompting", "simple_python_2"] = "no calls"
    lines = format_results(cases, replies, faults).splitlines()
    cells = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:5]] for line in lines if "|" in line
    }
    assert cells["simple_python"] == ["4 of 4 (100.0 %)", "3 of 4 (75.0 %)", "2 of 4 (50.0 %)"]
    assert cells["all"] == ["7 of 8 (87.5 %)", "7 of 8 (87.5 %)", "6 of 8 (75.0 %)"]
    assert lines[-2:] == [
        "gateway over the better bare column (native): +0.0 points, aim +5: missed",
        "gateway, irrelevance: 75.0 %, aim 80 %: missed",
    ]
    # A request that failed made no call, and is not right for that.
    replies["gateway"]["irrelevance_1"] = CaseReply(id="irrelevance_1", status="error", error="down")
    table = format_results(cases, replies, faults)
    assert "gateway, irrelevance: 50.0 %" in table
    assert "0, 1" in table
    assert "gateway irrelevance_1: down" in format_faults(cases, replies, faults)


def test_the_packages_own_cases_are_converted_and_graded_by_its_checker() -> None:
    requirements = peer.find_requirements("bfcl")
    interpreter = peer.python(requirements)
    if not (interpreter.parent / "installed").exists():
        pytest.skip("bfcl-eval is not installed; `make eval-bfcl` installs it")
    [first, *_], *_ = (read_cases(interpreter, [family]) for family in ("simple_python",))
    assert first.id == "simple_python_0"
    [tool] = first.tools
    assert tool["function"]["name"] == "calculate_triangle_area"
    assert tool["function"]["parameters"]["properties"]["base"]["type"] == "integer"
    assert "calculate_triangle_area" in first.prompted[0]["content"]
    right = FunctionCall(name="calculate_triangle_area", arguments='{"base": 10, "height": 5}')
    wrong = FunctionCall(name="calculate_triangle_area", arguments='{"base": 10, "height": 6}')
    replies: Replies = {
        "gateway": {first.id: CaseReply(id=first.id, status="answered", calls=(right,))},
        "native": {first.id: CaseReply(id=first.id, status="answered", calls=(wrong,))},
        "prompting": {first.id: CaseReply(id=first.id, text="[calculate_triangle_area(base=10, height=5)]")},
    }
    faults = grade_replies(interpreter, ["simple_python"], [first], replies)
    assert not faults["gateway", first.id]
    assert not faults["prompting", first.id]
    assert "Invalid value for parameter 'height'" in faults["native", first.id]

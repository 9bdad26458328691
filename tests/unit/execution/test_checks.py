"""What a rule sees without a model: errors, emptiness, errors in disguise, repetition, and what is left in doubt."""

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from agent.core.errors import FAILURES
from agent.core.events import StepOutput
from agent.core.models import JsonObject, Outcome, PlanStep
from agent.execution.checks import check, found_nothing, hidden_error
from tests.support.builders import completion_step, source, tool_step
from tests.support.engine import engine_bench
from tests.support.tools import FunctionTool, returning

SKILL = PlanStep(id="s1", executor="skill", action="skill", tool="research", intent="find the revenue of Acme")
READ, SEND = tool_step("s1"), tool_step("s1", "send", effect="effect")


def said(text: str, value: JsonValue = None, **fields: object) -> StepOutput:
    return StepOutput.model_validate({"text": text, "value": text if value is None else value, **fields})


def failed(code: str, message: str | None = None) -> StepOutput:
    return StepOutput(error_code=code, error=message)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("ERR_TOOL_TIMEOUT", Outcome.RETRY),
        ("ERR_TOOL_FAILED", Outcome.RETRY),
        ("ERR_TOOL_OUTPUT", Outcome.RETRY),
        ("ERR_MODEL_OUTPUT", Outcome.RETRY),
        ("ERR_TOOL_INPUT", Outcome.REPLAN),
        ("ERR_TOOL_UNKNOWN", Outcome.REPLAN),
        ("ERR_TOOL_DENIED", Outcome.REPLAN),
        ("ERR_SKILL_TURNS", Outcome.REPLAN),
        ("ERR_REFERENCE", Outcome.REPLAN),
        ("ERR_BUDGET", Outcome.ABORT),
        ("ERR_MODEL_AUTH", Outcome.ABORT),
        ("ERR_INTERNAL", Outcome.ABORT),
    ],
)
def test_an_error_is_judged_by_its_code(code: str, outcome: Outcome) -> None:
    verdict = check(READ, failed(code, "it broke")).verdict
    assert (verdict.outcome, verdict.reason, verdict.by) == (outcome, "it broke", "rule")
    assert verdict.suggested_fix == (None if outcome is Outcome.ABORT else FAILURES[code].action)


def test_an_error_without_words_is_told_by_the_table() -> None:
    assert check(READ, failed("ERR_TOOL_TIMEOUT")).verdict.reason == "the tool did not finish in time"


@pytest.mark.parametrize("output", [failed("ERR_TOOL_TIMEOUT"), said(""), said("Error: busy")])
def test_a_side_effect_is_never_retried_by_a_rule(output: StepOutput) -> None:
    verdict = check(SEND, output).verdict
    assert (check(READ, output).verdict.outcome, verdict.outcome) == (Outcome.RETRY, Outcome.REPLAN)
    assert verdict.reason.endswith("(a step with side effects is not repeated)")


@pytest.mark.parametrize(
    ("text", "value"), [("", ""), (" \n\t", "x"), ("", {"a": 1}), ("[]", []), ("{}", {}), ("(nothing)", "")]
)
def test_an_empty_result_is_no_success(text: str, value: JsonValue) -> None:
    verdict = check(READ, StepOutput(text=text, value=value)).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.RETRY, "the result is empty")


@pytest.mark.parametrize("value", [0, False, "0", None])
def test_nought_and_no_are_results(value: JsonValue) -> None:
    assert check(READ, StepOutput(text="the result", value=value)).verdict.outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("Error: quota exceeded", None, "Error: quota exceeded"),
        ("  ERROR 42", None, "ERROR 42"),
        ("Traceback (most recent call last): ...", None, "Traceback (most recent call last): ..."),
        ("HTTP 503 from the server", None, "HTTP 503 from the server"),
        ("Request failed", None, "Request failed"),
        ("sorry, rate limit exceeded", None, "rate limit exceeded"),
        ("the invalid API key was refused", None, "invalid API key was refused"),
        ("see value", {"error": "not found"}, "not found"),
        ("see value", {"errors": [{"code": 7}]}, '[{"code": 7}]'),
        ("it broke", {"isError": True}, "it broke"),
        ("see value", {"status": 404}, "status 404"),
        ("see value", {"status": "failed", "items": [1]}, "status failed"),
        ("x" * 400, {"error": "y" * 300}, "y" * 200 + "…"),
    ],
)
def test_an_error_hides_in_a_result_that_calls_itself_good(text: str, value: JsonValue, shown: str) -> None:
    assert hidden_error(said(text, value)) == shown
    verdict = check(READ, said(text, value)).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.RETRY, f"the result is an error message: {shown}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The error rate fell to 2 %.", None),
        ("No errors were found.", None),
        ("Error handling in Python: " + "use try. " * 60, None),
        ("a page", {"status": 200, "error": None, "errors": [], "isError": False}),
        ("a page", {"status": True}),
        ("a page", {"status": "ok", "body": {"error": "quoted"}}),
        ("room 404", None),
    ],
)
def test_talk_of_errors_is_no_error(text: str, value: JsonValue) -> None:
    assert hidden_error(said(text, value)) is None


@pytest.mark.parametrize("text", ["HTTP 404 means that the page was not found.", "Permission denied means no rights."])
def test_an_answer_may_explain_an_error(text: str) -> None:
    assert check(completion_step("s1"), said(text)).verdict.outcome is Outcome.SUCCESS
    assert check(completion_step("s1"), failed("ERR_MODEL_OUTPUT")).verdict.outcome is Outcome.RETRY


def test_the_same_result_again_calls_for_another_way() -> None:
    again = check(READ, said("found"), previous=said("found")).verdict
    assert (again.outcome, "same result again" in again.reason) == (Outcome.REPLAN, True)
    assert check(READ, said("found"), previous=said("other")).verdict.outcome is Outcome.SUCCESS
    assert check(READ, said("found", 1), previous=said("found", 2)).verdict.outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    ("value", "nothing"),
    [
        ({"matches": []}, True),
        ({"query": "x", "items": [], "total": 0}, True),
        ({"items": [], "pages": [1]}, False),
        ({"items": [0]}, False),
        ({"text": "no lists here"}, False),
        ([[]], False),
        ("nothing", False),
    ],
)
def test_a_search_without_hits_is_recognised(value: JsonValue, nothing: bool) -> None:
    assert found_nothing(said("0 hits", value)) is nothing


@pytest.mark.parametrize(("needed", "outcome"), [(False, Outcome.SUCCESS), (True, Outcome.REPLAN)])
def test_finding_nothing_is_success_unless_a_later_step_needs_it(needed: bool, outcome: Outcome) -> None:
    verdict = check(READ, said("0 hits", {"matches": []}), needed_by_later=needed).verdict
    assert verdict.outcome is outcome
    assert verdict.evidence == ("" if needed else "none")


def test_a_skill_must_cite_where_evidence_is_asked_for() -> None:
    bare, cited = said("It is 12."), said("It is 12.", sources=(source(),))
    assert check(SKILL, bare, wants_sources=True).verdict.outcome is Outcome.RETRY
    assert check(SKILL, bare).verdict.outcome is Outcome.SUCCESS
    assert check(SKILL, cited, wants_sources=True).verdict.outcome is Outcome.SUCCESS
    assert check(READ, bare, wants_sources=True).verdict.outcome is Outcome.SUCCESS, "a tool is its own evidence"


ABOUT_ACME = "The revenue of Acme was 98765 euros"
STOCK = tool_step("s1", "stock").model_copy(
    update={"args": {"symbol": "ACME", "days": 3}, "intent": "find out the share price of ACME"}
)


@pytest.mark.parametrize(
    ("step", "output", "evidence", "doubt"),
    [
        (SKILL, said(ABOUT_ACME), "", "figures that stand nowhere in the evidence: 98765"),
        (SKILL, said(ABOUT_ACME), "98765", None),
        (SKILL, said(ABOUT_ACME, effective="rules"), "", None),
        (READ, said(ABOUT_ACME), "", None),
        (SKILL, said("Sunny with light winds over the coast and mild until late evening."), "", "shares no word"),
        (SKILL, said("Sunny, light winds."), "", "shares no word"),
        (
            tool_step("s1").model_copy(update={"intent": "find the stock price of Volvo"}),
            said("Sunny, 21 degrees."),
            "",
            "shares no word",
        ),
        (STOCK, said("It is sunny in ACME, 21 degrees."), "", "but what it was asked about"),
        (STOCK, said("The share price of ACME is 12.50 euros."), "", None),
        (STOCK, said("ACME: 12.50 EUR"), "", None),
        (STOCK, said("ACME"), "", "but what it was asked about"),
        (STOCK.model_copy(update={"effect": "effect"}), said("Sent to ACME."), "", None),
        (STOCK.model_copy(update={"intent": "look at ACME"}), said("It is sunny in ACME."), "", None),
        (
            STOCK.model_copy(update={"args": {"query": "ACME share price"}}),
            said("ACME is the largest employer of the valley."),
            "",
            None,
        ),
        (
            tool_step("s1").model_copy(update={"intent": "get the current price of gold today"}),
            said("The current weather of today is sunny."),
            "",
            "shares no word",
        ),
        (SKILL, said("98765"), "98765", None),
        (SKILL, said("2026-11-22 14:32 CET"), "2026-11-22 14:32", None),
        (SKILL, said("Sunday, 22 November 2026, 14:32 (Europe/Stockholm)"), "2026-11-22 14 32 22", None),
        (SKILL, said("12.50 EUR"), "12.50", None),
        (SEND.model_copy(update={"intent": "mail the report to Anna"}), said("Sent."), "", None),
        (SKILL, said("Revenues over the coast were mild and windy until the late evening, they say."), "", None),
        (
            SKILL.model_copy(update={"intent": "get it"}),
            said("Sunny with light winds over the coast and mild until late evening."),
            "",
            None,
        ),
    ],
)
def test_what_a_rule_cannot_decide_is_left_as_a_doubt(
    step: PlanStep, output: StepOutput, evidence: str, doubt: str | None
) -> None:
    checked = check(step, output, evidence=evidence)
    assert checked.verdict.outcome is Outcome.SUCCESS
    assert checked.doubt is None if doubt is None else doubt in str(checked.doubt)


async def late(_: JsonObject) -> JsonValue:
    await asyncio.sleep(30)
    return "late"


SCHEMA: JsonObject = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (returning("tool", {"n": "many"}, output_schema=SCHEMA), "'many' is not of type 'integer'"),
        (returning("tool", {"m": 1}, output_schema=SCHEMA), "'n' is a required property"),
        (FunctionTool("tool", late, timeout_s=0.05), "0.05 s"),
    ],
    ids=["another type", "a field is missing", "too late"],
)
async def test_a_result_that_breaks_its_schema_or_its_time_is_retried_once(
    tmp_path: Path, tool: FunctionTool, reason: str
) -> None:
    async with engine_bench(tmp_path, None, tools=[tool]) as bench:
        response = await bench.run("", metadata={"tool_calls": [{"tool": "tool", "args": {}}]})
    verdicts = [step.detail for step in response.steps if step.type == "supervision"]
    assert [verdict["outcome"] for verdict in verdicts] == ["RETRY", "REPLAN"]
    assert reason in str(verdicts[0]["reason"])
    assert response.metadata["status"] == "partial"


@pytest.mark.parametrize(
    ("asked", "result", "outcome"),
    [
        ("Error in payments: timeout", "Error in payments: timeout", Outcome.SUCCESS),
        ("Errors rise.\nError in  payments", "Error in payments", Outcome.SUCCESS),
        ("payments time out", "Error: the connection was refused", Outcome.RETRY),
        ("Error in payments", "Error: the connection was refused", Outcome.RETRY),
    ],
)
def test_what_repeats_the_tools_own_input_is_no_error_of_the_tool(asked: str, result: str, outcome: Outcome) -> None:
    for text in (asked, {"$literal": asked}):
        step = tool_step("s1", "summarize").model_copy(update={"args": {"text": text}})
        assert check(step, said(result)).verdict.outcome is outcome

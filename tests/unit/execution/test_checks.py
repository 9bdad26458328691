"""What a rule sees without a model: errors, emptiness, errors in disguise, repetition, and unexplained figures."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agent.core.events import StepOutput
from agent.core.failures import FAILURES
from agent.core.models import JsonObject, Outcome, PlanStep
from agent.execution.checks import (
    REPEATED_REQUEST,
    CheckResult,
    Inspection,
    check_output,
    is_empty_search,
    repeats_request,
)
from agent.execution.hidden_errors import find_hidden_error
from tests.support.builders import completion_step, source, tool_step
from tests.support.engine import engine_bench
from tests.support.tools import FunctionTool, returning

SKILL = PlanStep(id="s1", executor="skill", action="skill", tool="research", intent="find the revenue of Acme")
SUCCESS = Outcome.SUCCESS
READ, SEND = tool_step("s1"), tool_step("s1", "send", effect="effect")


def text_output(text: str, value: JsonValue = None, **fields: object) -> StepOutput:
    return StepOutput.model_validate({"text": text, "value": text if value is None else value, **fields})


def check(step: PlanStep, output: StepOutput, **circumstances: Any) -> CheckResult:
    return check_output(Inspection(step, output, **circumstances))


def failed_output(code: str, message: str | None = None) -> StepOutput:
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
    verdict = check(READ, failed_output(code, "it broke")).verdict
    assert (verdict.outcome, verdict.reason, verdict.by) == (outcome, "it broke", "rule")
    assert verdict.suggested_fix == (None if outcome is Outcome.ABORT else FAILURES[code].action)


def test_an_error_without_words_is_told_by_the_table() -> None:
    assert check(READ, failed_output("ERR_TOOL_TIMEOUT")).verdict.reason == "the tool did not finish in time"


@pytest.mark.parametrize("output", [failed_output("ERR_TOOL_TIMEOUT"), text_output("Error: busy")])
def test_a_side_effect_is_never_retried_by_a_rule(output: StepOutput) -> None:
    verdict = check(SEND, output).verdict
    assert (check(READ, output).verdict.outcome, verdict.outcome) == (Outcome.RETRY, Outcome.REPLAN)
    assert verdict.reason.endswith("(a step with side effects is not repeated)")


EMPTY_TEXTS: list[tuple[str, JsonValue]] = [
    ("", ""),
    (" \n\t", "x"),
    ("", {"a": 1}),
    ('""', ""),
    ("(nothing)", ""),
    ("", {"result": ""}),
]


@pytest.mark.parametrize(("text", "value"), EMPTY_TEXTS)
def test_an_empty_text_of_a_read_is_no_success(text: str, value: JsonValue) -> None:
    verdict = check(READ, StepOutput(text=text, value=value)).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.RETRY, "the result is empty")


NOTHING: list[tuple[str, JsonValue]] = [
    ("", None),
    ("null", None),
    ("None", None),
    ("", ""),
    ('""', ""),
    ("[]", []),
    ("{}", {}),
    (" ", {}),
    ("", {"result": ""}),
    ("", {"result": None}),
]


@pytest.mark.parametrize(("text", "value"), NOTHING)
@pytest.mark.parametrize("needed", [False, True])
def test_a_tool_that_changed_something_and_returned_nothing_has_succeeded(
    text: str, value: JsonValue, needed: bool
) -> None:
    verdict = check(SEND, StepOutput(text=text, value=value), needed_by_later=needed).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.SUCCESS, "send ran and returned nothing")


def test_a_value_without_words_is_no_failure_of_an_effect() -> None:
    assert check(SEND, StepOutput(text="", value={"deleted": 1})).verdict.outcome is Outcome.SUCCESS


@pytest.mark.parametrize(("text", "value"), [case for case in NOTHING if case[1] not in ("", {"result": ""})])
def test_a_read_that_returned_no_value_found_nothing(text: str, value: JsonValue) -> None:
    output = StepOutput(text=text, value=value)
    assert check(READ, output).verdict.outcome is Outcome.SUCCESS
    assert check(READ, output, needed_by_later=True).verdict.outcome is Outcome.REPLAN


@pytest.mark.parametrize("step", [SKILL, SKILL.model_copy(update={"effect": "effect"}), completion_step("s1")])
def test_an_empty_text_of_a_model_is_a_failure(step: PlanStep) -> None:
    assert check(step, StepOutput(text="", value="")).verdict.outcome is not Outcome.SUCCESS
    assert check(step, StepOutput(text="", value=None)).verdict.outcome is not Outcome.SUCCESS


@pytest.mark.parametrize(
    ("finish", "outcome"),
    [("stop", Outcome.RETRY), ("length", Outcome.SUCCESS), ("content_filter", Outcome.SUCCESS)],
)
def test_an_empty_answer_is_written_again_unless_it_was_cut_off(finish: str, outcome: Outcome) -> None:
    answer = READ.model_copy(update={"action": "completion", "executor": "litellm", "tool": "completion"})
    verdict = check(answer, text_output("", finish_reason=finish)).verdict
    assert verdict.outcome is outcome
    assert verdict.reason != "the result is empty"


@pytest.mark.parametrize("value", [0, False, "0", None])
def test_nought_and_no_are_results(value: JsonValue) -> None:
    assert check(READ, StepOutput(text="the result", value=value)).verdict.outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("see value", {"error": "not found"}, "not found"),
        ("see value", {"error": {"code": -32000, "message": "down"}, "id": 7, "jsonrpc": "2.0"}, None),
        ("it broke", {"isError": True}, "it broke"),
        ("it broke", {"success": False, "message": "quota exceeded"}, "it broke"),
        ("see value", {"error": "no hits", "query": "x", "items": []}, "no hits"),
        ("see value", {"status": 404}, "status 404"),
        ("see value", {"type": "about:blank", "title": "Gone", "status": 410, "detail": "x"}, "status 410"),
        ("x" * 400, {"error": "y" * 300}, "y" * 200 + "…"),
        ('{"error": "not found"}', None, "not found"),
        ('{"error": "not found"}', {"result": '{"error": "not found"}'}, "not found"),
        ("see value", {"ok": False, "error": "missing_scope", "needed": "chat:write"}, "missing_scope"),
        ("it broke", {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked"}, "it broke"),
        ("it broke", {"success": False, "message": "no permission", "request_id": "r1"}, "it broke"),
        ("it broke", {"isError": True, "content": [{"type": "text", "text": "mailbox full"}]}, "it broke"),
        ("see value", {"status": 500, "error": "Internal Server Error", "path": "/x"}, "Internal Server Error"),
        ("it broke", {"ok": False, "failures": 3}, "it broke"),
    ],
)
def test_a_result_that_is_an_error_object_is_a_failure(text: str, value: JsonValue, shown: str | None) -> None:
    step = READ.model_copy(update={"args": {"q": "x"}})
    output = text_output(text, value)
    hidden = find_hidden_error(step, output)
    assert hidden is not None
    assert hidden.certainty == "certain"
    assert shown in (None, hidden.message)
    verdict = check(step, output).verdict
    assert (verdict.outcome, verdict.reason) == (Outcome.RETRY, f"the result is an error message: {hidden.message}")
    assert check(step, output, failed_before=output).verdict.outcome is Outcome.RETRY


LIKELY: list[tuple[str, JsonValue, str]] = [
    ("Error: quota exceeded", None, "Error: quota exceeded"),
    ("  ERROR 42", None, "ERROR 42"),
    ("Error: down", {"result": "Error: down"}, "Error: down"),
    ("Traceback (most recent call last): ...", None, "Traceback (most recent call last): ..."),
    ("HTTP 503 from the server", None, "HTTP 503 from the server"),
    ("Request failed", None, "Request failed"),
    ("sorry, rate limit exceeded", None, "rate limit exceeded"),
    ("the invalid API key was refused", None, "invalid API key was refused"),
    ("see value", {"errors": [{"code": 7}]}, '[{"code": 7}]'),
    ("see value", {"status": "failed"}, "status failed"),
]


@pytest.mark.parametrize(("text", "value", "shown"), LIKELY)
def test_words_of_an_error_alone_are_read_again_and_then_left_to_the_judge(
    text: str, value: JsonValue, shown: str
) -> None:
    output = text_output(text, value)
    first, again = check(READ, output), check(READ, output, failed_before=output)
    assert (first.verdict.outcome, first.doubt) == (Outcome.RETRY, None)
    assert first.verdict.reason == f"the result is an error message: {shown}"
    assert (again.verdict.outcome, again.doubt) == (SUCCESS, f"what reads like an error message: {shown}")
    other = check(READ, output, failed_before=text_output("Error: something else"))
    assert other.verdict.outcome is Outcome.RETRY
    assert check(SEND, output).verdict.outcome is Outcome.REPLAN, "what was changed is not known"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Error: connection refused\nretrying...\nok", None),
        ("see value", {"status": "failed", "job": "nightly"}),
        ("see value", {"status": 500, "url": "https://x"}),
        ("see value", {"id": 7, "errors": ["test_login failed"], "state": "done"}),
        ("see value", {"id": 5, "error": "no such label"}),
        ("see value", {"success": True, "id": 5, "error": "one label is unknown"}),
    ],
)
def test_a_result_that_holds_more_than_an_error_is_only_doubted(text: str, value: JsonValue) -> None:
    step = READ.model_copy(update={"args": {"q": "nightly", "url": "https://x"}})
    checked = check(step, text_output(text, value))
    assert checked.verdict.outcome is SUCCESS
    assert str(checked.doubt).startswith("what reads like an error message: ")


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ({"error": "quota exceeded", "request_id": "req_1"}, Outcome.REPLAN),
        ({"status": "error", "message": "x", "trace_id": "1"}, Outcome.REPLAN),
        ({"status": "FAILED", "to": "a"}, Outcome.REPLAN),
        ({"error": "no such label", "id": 5}, SUCCESS),
        ({"error": "one label is unknown", "success": True}, SUCCESS),
        ({"error": "disk full", "line": 12}, SUCCESS),
        ({"status": "failed", "id": "T-1"}, SUCCESS),
        ({"errors": ["a warning"], "sent": 3}, SUCCESS),
    ],
)
def test_a_change_that_returned_an_error_and_nothing_that_it_made_has_failed(
    value: JsonValue, outcome: Outcome
) -> None:
    step = SEND.model_copy(update={"args": {"text": "disk full"}})
    assert check(step, text_output("see value", value)).verdict.outcome is outcome


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
        ('{"error": null, "id": 5}', {"error": None, "id": 5}),
        ('{"error": "", "id": 5}', '{"error": "", "id": 5}'),
        ('{"error": null, "result": {"temp": 7}}', None),
        ('{"error": false}', {"error": False}),
        ('{"error": "none", "id": 5}', {"error": "none", "id": 5}),
        ('{"error": {"code": 0, "message": "success"}}', None),
        ('[{"error": "quoted"}]', None),
    ],
)
@pytest.mark.parametrize("step", [READ, SEND])
def test_talk_of_errors_is_no_error(text: str, value: JsonValue, step: PlanStep) -> None:
    output = text_output(text, value)
    assert find_hidden_error(step, output) is None
    assert check(step, output).verdict.outcome is SUCCESS


@pytest.mark.parametrize("text", ["HTTP 404 means that the page was not found.", "Permission denied means no rights."])
def test_an_answer_may_explain_an_error(text: str) -> None:
    assert check(completion_step("s1"), text_output(text)).verdict.outcome is Outcome.SUCCESS
    assert check(completion_step("s1"), failed_output("ERR_MODEL_OUTPUT")).verdict.outcome is Outcome.RETRY


def test_the_result_of_a_failed_attempt_again_calls_for_another_way() -> None:
    again = check(READ, text_output("found"), failed_before=text_output("found")).verdict
    assert (again.outcome, "same result again" in again.reason) == (Outcome.REPLAN, True)
    assert check(READ, text_output("found"), failed_before=text_output("other")).verdict.outcome is SUCCESS
    assert check(READ, text_output("found", 1), failed_before=text_output("found", 2)).verdict.outcome is SUCCESS


@pytest.mark.parametrize(
    ("value", "nothing"),
    [
        ({"matches": []}, True),
        ({"query": "x", "items": [], "total": 0}, True),
        ({"query": "x", "items": [], "page": {"next": None}, "note": ""}, True),
        ({"result": 42, "printed": "", "artifacts": []}, False),
        ({"result": None, "printed": "42\n", "artifacts": [], "files": []}, False),
        ({"mean": 3.5, "outliers": []}, False),
        ({"created": True, "warnings": []}, False),
        ({"summary": {"status": "paid"}, "errors": []}, False),
        ({"items": [], "pages": [1]}, False),
        ({"items": [0]}, False),
        ({"text": "no lists here"}, False),
        ([[]], False),
        ("nothing", False),
    ],
)
def test_a_search_without_hits_is_recognised(value: JsonValue, nothing: bool) -> None:
    assert is_empty_search(text_output("0 hits", value), {"query": "x"}, is_search=False) is nothing


def test_a_declared_search_is_judged_by_its_lists_alone() -> None:
    output = text_output("0 hits", {"matches": [], "searched": "12 files"})
    assert is_empty_search(output, {}, is_search=True)
    assert not is_empty_search(output, {}, is_search=False)


@pytest.mark.parametrize(("needed", "outcome"), [(False, Outcome.SUCCESS), (True, Outcome.REPLAN)])
def test_finding_nothing_is_success_unless_a_later_step_needs_it(needed: bool, outcome: Outcome) -> None:
    verdict = check(READ, text_output("0 hits", {"matches": []}), found_nothing=True, needed_by_later=needed).verdict
    assert verdict.outcome is outcome
    assert verdict.evidence == ("" if needed else "none")


def test_a_skill_must_cite_where_evidence_is_asked_for() -> None:
    bare, cited = text_output("It is 12."), text_output("It is 12.", sources=(source(),))
    assert check(SKILL, bare, wants_sources=True).verdict.outcome is Outcome.RETRY
    assert check(SKILL, bare).verdict.outcome is Outcome.SUCCESS
    assert check(SKILL, cited, wants_sources=True).verdict.outcome is Outcome.SUCCESS
    assert check(READ, bare, wants_sources=True).verdict.outcome is Outcome.SUCCESS, "a tool is its own evidence"


ABOUT_ACME = "The revenue of Acme was 98765 euros"


@pytest.mark.parametrize(
    ("step", "output", "evidence", "doubt"),
    [
        (SKILL, text_output(ABOUT_ACME), "12 employees", "figures that follow from nothing in the evidence: 98765"),
        (SKILL, text_output(ABOUT_ACME), "98765", None),
        (SKILL, text_output(ABOUT_ACME), "revenue: 98,765.00", None),
        (SKILL, text_output(ABOUT_ACME, effective="rules"), "12 employees", None),
        (SKILL, text_output(ABOUT_ACME), "", None),
        (READ, text_output(ABOUT_ACME), "12 employees", None),
        (SKILL, text_output("It is 864.00, 63.32 and -12.58."), "864 63.3224 12.58", None),
        (SKILL, text_output("It is due on 9 October."), "due: 2026-10-09", None),
    ],
)
def test_only_figures_that_follow_from_nothing_leave_a_doubt(
    step: PlanStep, output: StepOutput, evidence: str, doubt: str | None
) -> None:
    checked = check(step, output, evidence=evidence)
    assert (checked.verdict.outcome, checked.doubt) == (SUCCESS, doubt)
    assert checked.figures == (("98765",) if doubt else ())


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        ("find the stock price of Volvo", "Sunny, 21 degrees."),
        ("sum up the sales of the third quarter", "item,units,price\nchair,151,2870\ntable,7,12"),
        ("wie ist das Wetter in Bergen?", "Rain, 9 degrees"),
        ("mail the report to Anna", "Sent."),
    ],
)
@pytest.mark.parametrize("step", [READ, SKILL, SEND])
def test_words_that_are_not_shared_with_the_intent_prove_nothing(step: PlanStep, intent: str, text: str) -> None:
    checked = check(step.model_copy(update={"intent": intent}), text_output(text), evidence=text)
    assert (checked.verdict.outcome, checked.doubt) == (SUCCESS, None)


@pytest.mark.parametrize(
    ("may_repeat", "was_read", "outcome"),
    [(True, False, Outcome.RETRY), (False, False, Outcome.SUCCESS), (True, True, Outcome.SUCCESS)],
)
def test_an_answer_with_an_unexplained_figure_is_rewritten_once_and_then_marked(
    may_repeat: bool, was_read: bool, outcome: Outcome
) -> None:
    checked = check(
        completion_step("s2"), text_output(ABOUT_ACME), evidence="12", may_repeat=may_repeat, was_read=was_read
    )
    assert checked.verdict.outcome is outcome
    assert checked.figures == (("98765",) if outcome is SUCCESS else ())


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
        ("error", "Error: the connection was refused", Outcome.RETRY),
        ("Error: login fails", "Error: login fails (#5, open)", Outcome.SUCCESS),
        ("Error: login fails", "Error: login fails: Error: no such project", Outcome.RETRY),
    ],
)
def test_what_repeats_the_tools_own_input_is_no_error_of_the_tool(asked: str, result: str, outcome: Outcome) -> None:
    for text in (asked, {"$literal": asked}):
        step = tool_step("s1", "summarize").model_copy(update={"args": {"text": text}})
        assert check(step, text_output(result)).verdict.outcome is outcome


@pytest.mark.parametrize(
    ("answer", "is_repeated"),
    [("How many anchors are there?", True), ("**how many** anchors, are there", True), ("There are 12.", False)],
)
def test_an_answer_with_the_words_of_the_request_alone_repeats_it(answer: str, is_repeated: bool) -> None:
    assert repeats_request(answer, "How many anchors are there?") is is_repeated
    assert not repeats_request("Good morning to you", "Good morning to you"), "a few words may be said back"


def test_an_answer_that_repeats_the_request_is_written_again_unless_it_was_read() -> None:
    step, output = completion_step("answer"), text_output("How many?", effective="llm")
    retried = check(step, output, misfit=REPEATED_REQUEST).verdict
    assert (retried.outcome, retried.suggested_fix) == (Outcome.RETRY, "say what the results hold")
    assert check(step, output, misfit=REPEATED_REQUEST, was_read=True).misfit == REPEATED_REQUEST

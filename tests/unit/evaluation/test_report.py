"""The evaluation's table, its baseline file, and the comparison with one."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.errors import ConfigError
from agent.core.models import JsonObject
from agent.core.settings import Settings
from gateway.features.evaluation.conversation import Outcome, ToolUse, add_run, count_least_calls
from gateway.features.evaluation.report import (
    COLUMNS,
    HIDDEN,
    Report,
    TaskResult,
    build_result,
    compare_reports,
    describe_subject,
    format_call_ratio,
    format_comparison,
    format_failures,
    format_report,
    hide_failed_checks,
    read_baseline,
    write_baseline,
)


def result(task_id: str, *, right: bool, family: str = "tables") -> TaskResult:
    failures = () if right else ("answer: the number 4 is missing",)
    return TaskResult(
        id=task_id, family=family, is_right=right, calls=2, model_calls=3, least_model_calls=2,
        tokens=1000, computed_tokens=300, cached_tokens=600,
        seconds=1.5, status="succeeded" if right else "partial", failures=failures,
    )  # fmt: skip


def test_the_table_has_a_line_for_each_family_and_one_for_all() -> None:
    report = Report(results=(result("a", right=True), result("b", right=False), result("c", right=True, family="x")))
    lines = format_report(report).splitlines()
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "---" not in line] == [
        [*COLUMNS],
        ["tables", "1 of 2", "2.0", "3.0", "1.50", "1000", "300", "600", "1.5", "1 partial, 1 succeeded"],
        ["x", "1 of 1", "2.0", "3.0", "1.50", "1000", "300", "600", "1.5", "1 succeeded"],
        ["all", "2 of 3", "2.0", "3.0", "1.50", "1000", "300", "600", "1.5", "1 partial, 2 succeeded"],
    ]
    assert len({len(line) for line in lines}) == 1, "aligned"
    assert format_failures(report) == "b: answer: the number 4 is missing"


def test_failed_checks_are_hidden_but_not_why_a_task_was_not_measured() -> None:
    wrong = hide_failed_checks(result("a", right=False))
    assert (wrong.is_right, wrong.failures) == (False, (HIDDEN,))
    assert wrong.model_copy(update={"failures": result("a", right=False).failures}) == result("a", right=False)
    error = TaskResult(id="a", family="f", is_right=False, failures=("the gateway did not start",))
    assert hide_failed_checks(error) == error
    assert hide_failed_checks(result("a", right=True)) == result("a", right=True)


def test_without_a_model_or_a_right_task_there_is_no_ratio_of_calls() -> None:
    assert format_call_ratio([result("a", right=False)]) == "-"
    assert format_call_ratio([TaskResult(id="a", family="f", is_right=True)]) == "-"


STEP: JsonObject = {"id": "s1", "action": "tool"}
SKILL: JsonObject = {"id": "s2", "action": "skill"}
WRITER: JsonObject = {"id": "answer", "action": "completion"}


@pytest.mark.parametrize(
    ("origin", "steps", "called", "least"),
    [
        ("llm", [WRITER], [], 1),  # the planner's own answer
        ("llm", [STEP], ["s1"], 1),  # a result that is the answer
        ("llm", [STEP, WRITER], ["s1"], 2),
        ("llm", [SKILL], ["s2"], 3),
        ("llm", [SKILL, WRITER], [], 3),
        ("llm", [STEP, SKILL, WRITER], ["s1", "s2"], 4),
        ("rules", [STEP, WRITER], ["s1"], 1),  # as in a room of documents
        ("rules", [WRITER], [], 1),  # as for a greeting
    ],
)
def test_the_fewest_model_calls_of_a_plan(
    origin: str, steps: list[dict[str, str]], called: list[str], least: int
) -> None:
    metadata: dict[str, Any] = {
        "usage": {"model_calls": 9},
        "plan": {"origin": origin, "steps": steps},
        "tool_results": [{"step_id": step_id} for step_id in called],
    }
    assert count_least_calls(metadata) == least
    assert count_least_calls({**metadata, "usage": {"model_calls": 0}}) == 0
    assert count_least_calls({"usage": {"model_calls": 1}}) == 1, "a run that asked the user has no plan"


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = Report(about={"model": "m"}, results=(result("a", right=True),))
    write_baseline(tmp_path / "new" / "baseline.json", report)
    assert read_baseline(tmp_path / "new" / "baseline.json") == report


@pytest.mark.parametrize("text", ["", "[]", '{"results": [{"id": "a"}]}'])
def test_another_file_is_no_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match="is not a baseline"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_baseline(tmp_path / "missing.json")


def test_results_of_other_damage_do_not_belong_together(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path)
    dropped = describe_subject(settings, damage=0.2, kinds=["drop_brace"])
    assert dropped != describe_subject(settings, damage=0.2, kinds=["repeat"]) != describe_subject(settings, damage=0.2)
    assert dropped == describe_subject(settings, damage=0.2, kinds=["drop_brace", "drop_brace"])


def test_reports_are_compared_by_the_tasks_they_share() -> None:
    before = Report(results=(result("a", right=True), result("b", right=False), result("only-before", right=True)))
    now = Report(results=(result("a", right=False), result("b", right=True), result("only-now", right=False)))
    comparison = compare_reports(before, now)
    assert comparison.is_worse
    assert format_comparison(comparison).splitlines() == [
        "1 of 2 tasks are right; 1 were in the baseline",
        "no longer right: a",
        "right now: b",
    ]
    assert not compare_reports(before, before).is_worse


def test_calls_and_tokens_of_all_runs_are_counted() -> None:
    outcome = Outcome(answer="4", status="succeeded", seconds=2.0)
    for ok in (True, False):
        usage = {"model_calls": 2, "total_tokens": 300}
        add_run(outcome, {"metadata": {"usage": usage, "tool_results": [{"tool": "calculator", "ok": ok}]}})
    assert outcome.tool_uses == [ToolUse(tool="calculator", ok=True), ToolUse(tool="calculator", ok=False)]
    measured = build_result("a", "tables", outcome, [])
    assert (measured.is_right, measured.calls, measured.model_calls, measured.tokens) == (True, 2, 4, 600)

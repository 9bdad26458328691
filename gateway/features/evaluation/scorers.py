"""Grades an outcome by checks on the final state and the answer: numbers, names, files, and nothing else written."""

import math
import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, JsonValue, ValidationError

from agent.core.value_faults import describe_first_fault
from agent.text.numbers import find_numbers
from gateway.features.evaluation.conversation import Outcome
from gateway.features.evaluation.task_files import Checks, EvalTask, TextCheck
from gateway.features.evaluation.world import Snapshot

TOLERANCE = 1e-9
"""Relative difference at which two numbers are the same."""


class Grade(BaseModel):
    """The result of a task: right if no check failed. Each failure is one line for people."""

    failures: list[str]

    @property
    def is_right(self) -> bool:
        """Whether no check failed."""
        return not self.failures


def grade_outcome(task: EvalTask, outcome: Outcome) -> Grade:
    """Applies all checks of the task."""
    return Grade(failures=list(_list_failures(task.checks, outcome)))


def _list_failures(checks: Checks, outcome: Outcome) -> Iterator[str]:
    yield from (f"answer: {failure}" for failure in check_text(checks.answer, outcome.answer))
    if checks.asks and not is_question(outcome.answer):
        yield "answer: asks nothing"
    yield from check_changes(checks.changes, outcome.changes)
    # Tools of servers are in lower case here, and as the server writes them in a task.
    succeeded = {use.tool.lower() for use in outcome.tool_uses if use.ok}
    yield from (f"calls: {tool} did not succeed" for tool in checks.tools if tool.lower() not in succeeded)
    if checks.max_calls is not None and len(outcome.tool_uses) > checks.max_calls:
        yield f"calls: {len(outcome.tool_uses)} tool calls, at most {checks.max_calls} are needed"
    if checks.approvals is not None and outcome.approvals != checks.approvals:
        yield f"approval: asked {outcome.approvals} times, not {checks.approvals}"


def check_text(check: TextCheck, text: str) -> Iterator[str]:
    """Yields what the text lacks, and what it holds but must not."""
    folded = " ".join(text.casefold().split())
    values = list(_read_values(text))
    yield from (
        f"the number {number:.12g} is missing" for number in check.numbers if not _contains_number(values, number)
    )
    yield from (f"{name!r} is missing" for name in check.names if not _holds(folded, name))
    if check.any_of and not any(_holds(folded, name) for name in check.any_of):
        yield f"none of {', '.join(map(repr, check.any_of))} is named"
    yield from (f"{name!r} must not be there" for name in check.absent if _holds(folded, name))
    if (count := len(folded.split())) > check.max_words:
        yield f"{count} words, at most {check.max_words} answer the request"


def _read_values(text: str) -> Iterator[float]:
    """Yields every value that the numbers of a text can stand for: `1,234` is 1234 or 1.234."""
    for mention in find_numbers(text):
        yield from (float(reading.value) for reading in mention.readings)
        yield from map(float, mention.parts)


def _contains_number(values: Sequence[float], number: float) -> bool:
    return any(math.isclose(value, number, rel_tol=TOLERANCE) for value in values)


def _holds(folded: str, name: str) -> bool:
    """Whether the name occurs as whole words."""
    words = re.escape(" ".join(name.casefold().split()))
    return re.search(rf"(?<!\w){words}(?!\w)", folded) is not None


def is_question(text: str) -> bool:
    """Whether the text asks something: it holds a question mark that ends a word."""
    return re.search(r"\w[\"'»”)*`]*\s?[?\uff1f]", text) is not None


def check_changes(expected: dict[str, JsonValue], actual: Snapshot) -> Iterator[str]:
    """Yields each expected change that is missing or wrong, and each change that is not expected."""
    for path, wanted in expected.items():
        if path not in actual:
            yield f"state: {path} is unchanged"
            continue
        yield from (f"state: {path}: {failure}" for failure in _check_value(wanted, actual[path]))
    yield from (f"state: {path} must not change" for path in actual if path not in expected)


def _check_value(wanted: JsonValue, actual: JsonValue) -> Iterator[str]:
    if not isinstance(wanted, dict):
        if wanted != actual and not (isinstance(wanted, str) and str(actual).strip() == wanted.strip()):
            yield f"is {actual!r}, not {wanted!r}"
        return
    try:
        check = TextCheck.model_validate(wanted)
    except ValidationError as error:
        yield f"the task's check is invalid: {describe_first_fault(error)}"
        return
    yield from check_text(check, str(actual or ""))

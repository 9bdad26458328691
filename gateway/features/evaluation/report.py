"""The evaluation's report: one line for each task family, a baseline file, and the comparison with one."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.core.errors import ConfigError
from agent.core.settings import Settings
from gateway.features.evaluation.conversation import Outcome

COLUMNS = (
    "family", "right", "calls", "model calls", "of the least", "tokens", "computed", "cached", "seconds", "status",
)  # fmt: skip
ERROR_STATUS = "error"
"""Status of a task whose world could not be made or whose gateway was lost: it was not measured."""

HIDDEN = "not shown, because this set of tasks is only measured"
"""Stands for the checks that failed."""


class MeasuredResult(BaseModel):
    """A result that a `ProgressFile` keeps. With `ERROR_STATUS` nothing was measured, and it is not kept."""

    model_config = ConfigDict(frozen=True)

    id: str
    status: str = ERROR_STATUS


class TaskResult(MeasuredResult):
    """The result of one task. `calls` are tool calls; tokens are of prompts and replies together."""

    family: str
    is_right: bool
    calls: int = 0
    model_calls: int = 0
    least_model_calls: int = 0
    tokens: int = 0
    computed_tokens: int = 0
    """Tokens of prompts that the endpoint had to read again."""
    cached_tokens: int = 0
    seconds: float = 0.0
    failures: tuple[str, ...] = ()


class Report(BaseModel):
    """The results of an evaluation, and what was evaluated: the model, the room, the damage to the model's replies."""

    about: dict[str, Any] = {}
    results: tuple[TaskResult, ...]

    @property
    def right_count(self) -> int:
        """How many tasks were solved."""
        return sum(result.is_right for result in self.results)


def describe_subject(
    settings: Settings, *, damage: float = 0.0, kinds: Sequence[str] = (), seed: int = 0
) -> dict[str, Any]:
    """Describes what is evaluated: results belong together where this is the same.

    `kinds` are the kinds of damage, where not all are wanted.
    """
    about = {"model": settings.model_fast, "high": settings.model_high, "damage": damage, "seed": seed}
    return about | {"kinds": sorted(set(kinds))} if kinds else about


def build_result(task_id: str, family: str, outcome: Outcome, failures: Sequence[str]) -> TaskResult:
    """Builds the result of a task that was measured."""
    return TaskResult(
        id=task_id,
        family=family,
        is_right=not failures,
        calls=len(outcome.tool_uses),
        model_calls=outcome.model_calls,
        least_model_calls=outcome.least_model_calls,
        tokens=outcome.tokens,
        computed_tokens=max(0, outcome.prompt_tokens - outcome.cached_tokens),
        cached_tokens=outcome.cached_tokens,
        seconds=outcome.seconds,
        status=outcome.status,
        failures=tuple(failures),
    )


def hide_failed_checks(result: TaskResult) -> TaskResult:
    """The result without the checks that failed, for tasks that are only measured.

    The reason of a task that was not measured stays.
    """
    if result.is_right or result.status == ERROR_STATUS:
        return result
    return result.model_copy(update={"failures": (HIDDEN,)})


def format_report(report: Report) -> str:
    """Formats the table by family as Markdown. Calls, tokens and seconds are means of a task; "of the least" is how
    many times the fewest possible model calls the right tasks took; "computed" and "cached" are tokens of prompts."""
    families = sorted({result.family for result in report.results})
    rows = [_format_row(family, [r for r in report.results if r.family == family]) for family in families]
    rows.append(_format_row("all", report.results))
    return format_table(COLUMNS, rows)


def _format_row(name: str, results: Sequence[TaskResult]) -> list[str]:
    count = max(1, len(results))
    statuses = sorted({result.status for result in results})
    return [
        name,
        f"{sum(result.is_right for result in results)} of {len(results)}",
        f"{sum(result.calls for result in results) / count:.1f}",
        f"{sum(result.model_calls for result in results) / count:.1f}",
        format_call_ratio(results),
        f"{sum(result.tokens for result in results) / count:.0f}",
        f"{sum(result.computed_tokens for result in results) / count:.0f}",
        f"{sum(result.cached_tokens for result in results) / count:.0f}",
        f"{sum(result.seconds for result in results) / count:.1f}",
        ", ".join(f"{sum(r.status == status for r in results)} {status}" for status in statuses),
    ]


def format_call_ratio(results: Iterable[TaskResult]) -> str:
    """Formats the model calls of the tasks that were solved, as a multiple of the fewest possible; "-" without any."""
    right = [result for result in results if result.is_right]
    least = sum(result.least_model_calls for result in right)
    return f"{sum(result.model_calls for result in right) / least:.2f}" if least else "-"


def format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Formats an aligned Markdown table. All columns but the first and the last are numbers."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    numbers = range(1, len(columns) - 1)
    cells = [
        [cell.rjust(width) if index in numbers else cell.ljust(width) for index, (cell, width) in enumerate(row)]
        for row in (list(zip(line, widths, strict=True)) for line in lines)
    ]
    dashes = ["-" * (width - 1) + ":" if index in numbers else "-" * width for index, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], dashes, *cells[1:]))


def format_failures(report: Report) -> str:
    """Formats one line for each task that was not solved, with its failed checks."""
    return "\n".join(f"{r.id}: {'; '.join(r.failures) or r.status}" for r in report.results if not r.is_right)


def write_baseline(path: Path, report: Report) -> None:
    """Writes the results to a file that `read_baseline` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")


def read_baseline(path: Path) -> Report:
    """Reads a baseline. Raises `ConfigError` for a missing file and for one of another form."""
    try:
        return Report.model_validate_json(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"the baseline {path} cannot be read: {error.strerror}") from error
    except (ValidationError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path} is not a baseline written by `stepgate eval --baseline`") from error


class Comparison(BaseModel):
    """The tasks that two reports have in common, and those whose results differ."""

    common: int
    right_before: int
    right_now: int
    lost: list[str]
    gained: list[str]

    @property
    def is_worse(self) -> bool:
        """Whether a task that was solved is no longer solved."""
        return bool(self.lost)


def compare_reports(before: Report, now: Report) -> Comparison:
    """Compares the tasks that are in both reports."""
    earlier = {result.id: result for result in before.results}
    pairs = [(earlier[result.id], result) for result in now.results if result.id in earlier]
    return Comparison(
        common=len(pairs),
        right_before=sum(old.is_right for old, _ in pairs),
        right_now=sum(new.is_right for _, new in pairs),
        lost=[new.id for old, new in pairs if old.is_right and not new.is_right],
        gained=[new.id for old, new in pairs if new.is_right and not old.is_right],
    )


def format_comparison(comparison: Comparison) -> str:
    """Formats a comparison in three lines at most."""
    lines = [
        f"{comparison.right_now} of {comparison.common} tasks are right; {comparison.right_before} were in the baseline"
    ]
    lines += [f"no longer right: {', '.join(comparison.lost)}"] if comparison.lost else []
    lines += [f"right now: {', '.join(comparison.gained)}"] if comparison.gained else []
    return "\n".join(lines)

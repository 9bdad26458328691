"""The systems that answer the tasks: the gateway as it is configured, and those it is compared with."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from gateway.features.evaluation.inspect_tasks import read_results, run_evaluation
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import Report, TaskResult, format_table
from gateway.features.evaluation.task_files import EvalTask

Beside = Literal["rules", "model"]
BESIDE: tuple[Beside, ...] = get_args(Beside)
_MODEL_SETTINGS = ("LLM_BASE_URL", "LLM_API_KEY", "MODEL_FAST", "MODEL_HIGH", "MODEL_ENDPOINTS")


class Answerer(NamedTuple):
    """The settings of the worlds' gateways, and the room that answers in place of each task's own."""

    name: str
    settings: dict[str, str]
    room: str = ""


def list_answerers(settings: dict[str, str], beside: Sequence[Beside]) -> list[Answerer]:
    """The gateway and what stands beside it: `rules` has no model, `model` is the model alone, in the room
    `chat`, without planning and tools.
    """
    without = {f"AGENT_{name}" for name in _MODEL_SETTINGS}
    others: Mapping[Beside, Answerer] = {
        "rules": Answerer("rules", {name: value for name, value in settings.items() if name not in without}),
        "model": Answerer("model", settings, "chat"),
    }
    return [Answerer("gateway", settings), *(others[name] for name in beside)]


def run_answerer(
    answerer: Answerer,
    tasks: Sequence[EvalTask],
    *,
    log_dir: Path,
    parallel: int,
    progress: ProgressFile[TaskResult] | None,
    report: Callable[[TaskResult], None],
) -> tuple[tuple[TaskResult, ...], str]:
    """The result of every task, and the place of Inspect's log. Tasks in `progress` are not run again.

    `report` gets each result as it comes.
    """
    earlier_results = {task.id: progress.find(answerer.name, task.id) for task in tasks} if progress is not None else {}
    missing = [task for task in tasks if earlier_results.get(task.id) is None]
    stored_results = [result for result in earlier_results.values() if result is not None]

    def add(result: TaskResult) -> None:
        if progress is not None:
            progress.add(answerer.name, result)
        report(result)

    log = None
    if missing:
        log = run_evaluation(
            missing, answerer.settings, log_dir=log_dir, parallel=parallel, room=answerer.room, progress=add
        )
        stored_results += read_results(log)
    ordered = sorted(stored_results, key=lambda result: (result.family, result.id))
    return tuple(ordered), str(log.location) if log is not None else ""


def format_beside(reports: Mapping[str, Report]) -> str:
    """Formats right answers by family, one column for each answerer, then the means of all tasks."""
    families = sorted({result.family for report in reports.values() for result in report.results})
    rows = [[family, *(_count_right(report, family) for report in reports.values()), ""] for family in families]
    rows.append(["all", *(f"{report.right_count} of {len(report.results)}" for report in reports.values()), ""])
    rows += [
        [f"{name} a task", *(_format_mean(report, field) for report in reports.values()), ""]
        for name, field in (
            ("model calls", "model_calls"),
            ("tokens", "tokens"),
            ("computed tokens", "computed_tokens"),
            ("seconds", "seconds"),
        )
    ]
    rows.append(["tokens a right task", *(_format_tokens_of_right(report) for report in reports.values()), ""])
    return format_table(("family", *reports, ""), rows)


def _count_right(report: Report, family: str) -> str:
    results = [result for result in report.results if result.family == family]
    return f"{sum(result.is_right for result in results)} of {len(results)}"


def _format_mean(report: Report, field: str) -> str:
    values = [float(getattr(result, field)) for result in report.results]
    return f"{sum(values) / max(1, len(values)):.1f}"


def _format_tokens_of_right(report: Report) -> str:
    """Formats the tokens of all tasks for each one that was solved."""
    tokens = sum(result.tokens for result in report.results)
    return f"{tokens / report.right_count:.0f}" if report.right_count else "-"

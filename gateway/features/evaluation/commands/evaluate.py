"""`stepgate eval`: runs the evaluation against the configured model and prints its table (docs/evaluation.md)."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.settings import Settings
from gateway.cli.session import load_command_settings
from gateway.features.evaluation.task_sets import DEVELOPMENT, SETS, find_set
from gateway.quiet_interrupt import QuietInterrupt

if TYPE_CHECKING:
    from gateway.features.evaluation.report import Report, TaskResult


def evaluate(
    task_set: Annotated[
        str, typer.Option("--set", help=f"The set of tasks: {', '.join(SETS)}; held-out is only measured.")
    ] = DEVELOPMENT,
    family: Annotated[list[str] | None, typer.Option(help="Only this family of tasks; may be repeated.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only the task with this id; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many tasks of each family.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="This many tasks in all, the same number of each family, chosen by --seed."),
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="Keep the results in this file.")] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Compare with the results in this file; exit code 1 if a task got worse.")
    ] = None,
    damage: Annotated[
        float, typer.Option(min=0, max=1, help="Damage the model's replies with this probability, from 0 to 1.")
    ] = 0.0,
    damage_kind: Annotated[list[str] | None, typer.Option(help="Only this kind of damage; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the damage and of --sample.")] = 0,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tasks at a time; unset: one for a model on this machine, else the number of processors less 1."
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="Also answer by `rules` (no model) or by `model` (alone, without tools). Repeatable."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Keep each result in this file as it comes, and skip tasks that are in it.")
    ] = None,
    log_dir: Annotated[Path | None, typer.Option(help="Folder of Inspect's logs; default DATA_DIR/eval.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run the evaluation's tasks and print right answers, calls, tokens, time and status by family."""
    settings = load_command_settings()
    if not EXTRAS["eval"].is_installed:
        raise ConfigError(
            f"stepgate eval needs the extra `eval`, which is not installed; {format_install_hint('eval')}"
        )
    with QuietInterrupt():
        from gateway.features.evaluation import answerers, report  # noqa: PLC0415 - Inspect takes half a second to import
        from gateway.features.evaluation.progress import ProgressFile  # noqa: PLC0415
        from gateway.features.evaluation.task_files import sample_tasks, select_tasks  # noqa: PLC0415
        from gateway.features.evaluation.world import choose_parallel  # noqa: PLC0415

    earlier = report.read_baseline(compare) if compare is not None else None
    tasks = select_tasks(family or (), task or (), limit, task_set)
    if sample is not None:
        tasks = sample_tasks(tasks, sample, seed)
    if earlier is not None and not {one.id for one in earlier.results} & {one.id for one in tasks}:
        raise ConfigError(f"--compare: {compare} has none of the chosen tasks; was it written for another --set?")
    others = [name for name in answerers.BESIDE if name in (beside or ())]
    if set(beside or ()) - {*answerers.BESIDE}:
        raise typer.BadParameter(f"one of {', '.join(answerers.BESIDE)}", param_hint="--beside")
    about = report.describe_subject(settings, damage=damage, kinds=damage_kind or (), seed=seed)
    progress = ProgressFile(resume, about, report.TaskResult) if resume is not None else None
    hides_checks = find_set(task_set).is_only_measured
    reports: dict[str, report.Report] = {}
    log = ""
    with _prepare_model(settings, damage, damage_kind or [], seed) as environment:
        for answerer in answerers.list_answerers(environment, others):
            results, location = answerers.run_answerer(
                answerer,
                tasks,
                log_dir=log_dir or settings.data_dir / "eval",
                parallel=parallel or choose_parallel(settings),
                progress=progress,
                report=lambda result: _print_result(report.hide_failed_checks(result) if hides_checks else result),
            )
            if hides_checks:
                results = tuple(map(report.hide_failed_checks, results))
            reports[answerer.name] = report.Report(about={**about, "set": task_set}, results=results)
            log = log or location
    result = reports["gateway"]
    print(result.model_dump_json(indent=2) if as_json else report.format_report(result))
    if others and not as_json:
        print(f"\n{answerers.format_beside(reports)}")
    _print_notes(result, log)
    if baseline is not None:
        report.write_baseline(baseline, result)
    if earlier is not None:
        comparison = report.compare_reports(earlier, result)
        print(report.format_comparison(comparison), file=sys.stderr)
        raise SystemExit(1 if comparison.is_worse else 0)


def _print_result(result: "TaskResult") -> None:
    """Prints a line on stderr: an evaluation with a small model takes an hour."""
    outcome = "right" if result.is_right else f"wrong: {'; '.join(result.failures) or result.status}"
    print(f"{result.family}/{result.id} {result.seconds:.0f} s {outcome}"[:200], file=sys.stderr, flush=True)


def _print_notes(result: "Report", log: str) -> None:
    """Prints the failed tasks and the place of the log on stderr."""
    from gateway.features.evaluation.report import format_failures  # noqa: PLC0415 - as in `evaluate`

    failures = format_failures(result)
    if failures:
        print(f"\nNot right:\n{failures}", file=sys.stderr)
    if log:
        print(f"\nTraces: inspect view start --log-dir {Path(log).parent}", file=sys.stderr)


@contextlib.contextmanager
def _prepare_model(settings: Settings, rate: float, kinds: list[str], seed: int) -> Iterator[dict[str, str]]:
    """Yields the environment of the worlds' gateways. With a rate, a degraded model stands before the model.

    Raises `ConfigError` for an unknown kind of damage, and for a rate without the address of a model.
    """
    from gateway.features.evaluation.damage import DAMAGE  # noqa: PLC0415
    from gateway.features.evaluation.degraded import DegradedModel, serve_degraded_in_thread  # noqa: PLC0415
    from gateway.features.evaluation.world import list_settings  # noqa: PLC0415 - as in `evaluate`

    unknown = [kind for kind in kinds if kind not in DAMAGE]
    if unknown:
        raise ConfigError(f"--damage-kind: {unknown[0]!r} is unknown; the kinds are {', '.join(DAMAGE)}")
    environment = list_settings(settings)
    if not rate:
        yield environment
        return
    if settings.llm_base_url is None:
        raise ConfigError(
            "--damage puts faults between Stepgate and a model endpoint, and none is configured: set AGENT_LLM_BASE_URL"
        )
    model = DegradedModel(settings.llm_base_url, rate, seed=seed, kinds=kinds or tuple(DAMAGE))
    with serve_degraded_in_thread(model) as url:
        yield {**environment, "AGENT_LLM_BASE_URL": url}
    print(f"damage: {json.dumps(dict(model.counts), sort_keys=True)}", file=sys.stderr)

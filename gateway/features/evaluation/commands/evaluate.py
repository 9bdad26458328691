"""`stepgate eval`: runs the evaluation against the configured model and prints its table (docs/evaluation.md)."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.core.errors import ConfigError
from agent.core.extras import EXTRAS, format_install_hint
from agent.core.settings import Settings
from gateway.cli.session import load_command_settings
from gateway.quiet_interrupt import QuietInterrupt

if TYPE_CHECKING:
    from gateway.features.evaluation.report import Report


def evaluate(
    family: Annotated[list[str] | None, typer.Option(help="Only this family of tasks; may be repeated.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only the task with this id; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many tasks of each family.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="Keep the results in this file.")] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Compare with the results in this file; exit code 1 if a task got worse.")
    ] = None,
    damage: Annotated[
        float, typer.Option(min=0, max=1, help="Damage the model's replies with this probability, from 0 to 1.")
    ] = 0.0,
    damage_kind: Annotated[list[str] | None, typer.Option(help="Only this kind of damage; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the damage.")] = 0,
    parallel: Annotated[int, typer.Option(min=1, help="Tasks at a time.")] = max(1, (os.cpu_count() or 2) - 1),
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
        from gateway.features.evaluation import inspect_tasks, report  # noqa: PLC0415 - Inspect takes half a second to import
        from gateway.features.evaluation.task_files import select_tasks  # noqa: PLC0415

    earlier = report.read_baseline(compare) if compare is not None else None
    tasks = select_tasks(family or (), task or (), limit)
    folder = log_dir or settings.data_dir / "eval"
    with _prepare_model(settings, damage, damage_kind or [], seed) as environment:
        log = inspect_tasks.run_evaluation(tasks, environment, log_dir=folder, parallel=parallel)
    about = {"model": settings.model_fast, "high": settings.model_high, "damage": damage, "seed": seed}
    result = report.Report(about=about, results=inspect_tasks.read_results(log))
    print(result.model_dump_json(indent=2) if as_json else report.format_report(result))
    _print_notes(result, str(log.location))
    if baseline is not None:
        report.write_baseline(baseline, result)
    if earlier is not None:
        comparison = report.compare_reports(earlier, result)
        print(report.format_comparison(comparison), file=sys.stderr)
        raise SystemExit(1 if comparison.is_worse else 0)


def _print_notes(result: "Report", log: str) -> None:
    """Prints the failed tasks and the place of the log on stderr."""
    from gateway.features.evaluation.report import format_failures  # noqa: PLC0415 - as in `evaluate`

    failures = format_failures(result)
    if failures:
        print(f"\nNot right:\n{failures}", file=sys.stderr)
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
        raise ConfigError("--damage needs a model endpoint to stand before: set AGENT_LLM_BASE_URL")
    model = DegradedModel(settings.llm_base_url, rate, seed=seed, kinds=kinds or tuple(DAMAGE))
    with serve_degraded_in_thread(model) as url:
        yield {**environment, "AGENT_LLM_BASE_URL": url}
    print(f"damage: {json.dumps(dict(model.counts), sort_keys=True)}", file=sys.stderr)

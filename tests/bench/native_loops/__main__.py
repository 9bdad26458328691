"""Prints what other frameworks' own loops get right beside the gateway: `python -m tests.bench.native_loops`.

Tasks, worlds, tools, graders and model are those of `stepgate eval`; docs/evaluation.md says what differs. Results are
kept in the same file, so that the gateway's column is taken from `make eval-model` where that has run. A framework
whose environment cannot be installed is named with the reason.
"""

import argparse
import asyncio
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.core.errors import ConfigError
from agent.core.settings.loading import load_settings
from gateway.features.evaluation.answerers import BESIDE, Beside, format_beside, list_answerers, run_answerer
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.report import Report, TaskResult, describe_subject, format_failures, format_report
from gateway.features.evaluation.task_files import sample_tasks, select_tasks
from gateway.features.evaluation.world import choose_parallel, list_settings
from tests.bench import peer
from tests.bench.endpoint import format_heading, read_endpoint
from tests.bench.native_loops.frameworks import FRAMEWORKS, INSTRUCTIONS, MAX_REQUESTS, run_framework


def main(arguments: Sequence[str]) -> int:
    """Runs what is missing in the file of results and prints the tables. Returns an exit code."""
    options = _parse_options(arguments)
    settings = load_settings()
    endpoint = read_endpoint(settings)
    tasks = select_tasks(options.family, options.task, options.limit)
    if options.sample:
        tasks = sample_tasks(tasks, options.sample, options.seed)
    about = describe_subject(settings, seed=options.seed)
    progress = ProgressFile(options.resume, about, TaskResult) if options.resume is not None else None
    parallel = options.parallel or choose_parallel(settings)
    environment = list_settings(settings)
    reports: dict[str, Report] = {}
    for answerer in list_answerers(environment, options.beside):
        results, _ = run_answerer(
            answerer,
            tasks,
            log_dir=settings.data_dir / "eval",
            parallel=parallel,
            progress=progress,
            report=lambda result, name=answerer.name: _print_result(name, result),  # type: ignore[misc]
        )
        reports[answerer.name] = Report(about=about, results=results)
    missing: dict[str, str] = {}
    for name in options.frameworks:
        framework = FRAMEWORKS[name]
        if (reason := peer.missing(framework.requirements, framework.imported)) is not None:
            missing[name] = reason
            continue
        results = asyncio.run(
            run_framework(
                framework, tasks, environment, endpoint, parallel=parallel, progress=progress,
                report=lambda result, name=name: _print_result(name, result),  # type: ignore[misc]
            )
        )  # fmt: skip
        reports[name] = Report(about=about, results=results)
    print(format_heading(shlex.join(["make", "eval-peers", *arguments]), endpoint))
    versions = [FRAMEWORKS[name].version for name in options.frameworks if name not in missing]
    print(f"{', '.join(versions)}; at most {MAX_REQUESTS} model calls a turn; instructions: {INSTRUCTIONS}\n")
    print(format_beside(reports))
    for name, report in reports.items():
        print(f"\n{name}\n{format_report(report)}")
        print(f"\nNot right, {name}:\n{format_failures(report)}", file=sys.stderr)
    for name, reason in missing.items():
        print(f"\n{name} was not measured: {reason}")
    return 0


def _parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make eval-peers", description=__doc__)
    parser.add_argument("--family", action="append", default=[], help="only this family of tasks; may be repeated")
    parser.add_argument("--task", action="append", default=[], help="only the task with this id; may be repeated")
    parser.add_argument("--limit", type=int, help="at most this many tasks of each family")
    parser.add_argument("--sample", type=int, help="this many tasks in all, as many of each family")
    parser.add_argument("--seed", type=int, default=0, help="chooses the tasks of --sample")
    parser.add_argument("--resume", type=Path, help="the file of results, also that of `stepgate eval --resume`")
    parser.add_argument("--parallel", type=int, help="tasks at a time; default: 1 for a model on this machine")
    parser.add_argument(
        "--beside", action="append", default=[], choices=BESIDE, help="also rules mode, or the model alone"
    )
    parser.add_argument(
        "--frameworks", type=_split_frameworks, default=[*FRAMEWORKS], help=f"some of {','.join(FRAMEWORKS)}"
    )
    options = parser.parse_args(arguments)
    beside: list[Beside] = [name for name in BESIDE if name in options.beside]
    options.beside = beside
    return options


def _split_frameworks(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in FRAMEWORKS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is unknown; the frameworks are {', '.join(FRAMEWORKS)}")
    return names


def _print_result(answerer: str, result: TaskResult) -> None:
    """Prints a line on stderr as soon as a task is graded."""
    outcome = "right" if result.is_right else f"wrong: {'; '.join(result.failures) or result.status}"
    print(f"{answerer} {result.family}/{result.id} {result.seconds:.0f} s {outcome}"[:200], file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConfigError as error:
        sys.exit(f"eval-peers: {error}")

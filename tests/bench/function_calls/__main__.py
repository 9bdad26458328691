"""Prints how many of the set's cases each column gets right: `python -m tests.bench.function_calls`.

The package is installed once into an environment of its own; where it cannot be had, the reason is printed and nothing
is run.
"""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from agent.core.errors import ConfigError
from agent.core.settings.loading import load_settings
from gateway.features.evaluation.progress import ProgressFile
from gateway.features.evaluation.task_files import sample_tasks
from gateway.features.evaluation.world import choose_parallel
from tests.bench import peer
from tests.bench.endpoint import MAX_TOKENS, describe_subject, format_heading, read_endpoint
from tests.bench.function_calls.cases import Case, CaseReply, ColumnName, build_answer, choose_categories
from tests.bench.function_calls.columns import Replies, ask_columns
from tests.bench.function_calls.table import Faults, format_faults, format_results
from tests.support.processes import ROOT

PEER, PACKAGE = "bfcl", "bfcl-eval"
CHECKER_SECONDS = 900
DEFAULT_CASES = 200
DEFAULT_SEED = 7


def main(arguments: Sequence[str]) -> int:
    """Asks all columns, grades their answers and prints the table. Returns an exit code."""
    options = _parse_options(arguments)
    requirements = peer.find_requirements(PEER)
    reason = peer.missing(requirements, "tree_sitter, tree_sitter_java, tree_sitter_javascript, bfcl_eval.constants")
    if reason is not None:
        print(f"eval-bfcl is skipped: {reason}")
        return 0
    settings = load_settings()
    endpoint = read_endpoint(settings)
    categories = choose_categories(options.categories)
    columns = choose_columns(options.columns)
    version = peer.read_version(PACKAGE, requirements)
    about = describe_subject(endpoint, set=version)
    progress = ProgressFile(options.resume, about, CaseReply) if options.resume is not None else None
    interpreter = peer.python(requirements)
    cases = sample_tasks(read_cases(interpreter, categories), options.limit, options.seed)
    replies = ask_columns(
        columns, cases, settings, endpoint, parallel=options.parallel or choose_parallel(settings), progress=progress
    )
    faults = grade_replies(interpreter, categories, cases, replies)
    command = shlex.join(["make eval-bfcl", *arguments]).replace("'", "")
    print(format_heading(command, endpoint))
    print(f"{version}, {len(cases)} cases, seed {options.seed}; replies of at most {MAX_TOKENS} tokens\n")
    print(format_results(cases, replies, faults))
    print(f"\nNot right:\n{format_faults(cases, replies, faults)}", file=sys.stderr)
    return 0


def _parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make eval-bfcl", description=__doc__)
    parser.add_argument("--limit", type=int, default=DEFAULT_CASES, help="cases in all, as many of each category")
    parser.add_argument("--categories", default="", help="such as simple,parallel; default: the four of the aims")
    parser.add_argument("--columns", default="", help=f"some of {','.join(get_args(ColumnName))}; default: all")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="chooses the cases")
    parser.add_argument("--resume", type=Path, help="keep each reply in this file as it comes, and go on from it")
    parser.add_argument("--parallel", type=int, help="requests at a time; default: 1 for a model on this machine")
    return parser.parse_args(arguments)


def choose_columns(names: str) -> list[ColumnName]:
    """The columns of `gateway,native`, all if none is named. Raises `ConfigError` for an unknown one."""
    known = get_args(ColumnName)
    chosen = [name for name in names.split(",") if name] or [*known]
    if unknown := [name for name in chosen if name not in known]:
        raise ConfigError(f"--columns: {unknown[0]!r} is unknown; the columns are {', '.join(known)}")
    return [cast("ColumnName", name) for name in chosen]


def read_cases(interpreter: Path, categories: Sequence[str]) -> list[Case]:
    """All cases of the categories, in the order of the package's files."""
    return [Case.model_validate_json(line) for line in _run_checker(interpreter, ["cases", *categories], "")]


def grade_replies(interpreter: Path, categories: Sequence[str], cases: Sequence[Case], replies: Replies) -> Faults:
    """What the package's checkers find wrong with each reply."""
    answers = [
        json.dumps(build_answer(name, case, replies[name][case.id])) + "\n" for name in replies for case in cases
    ]
    graded = [json.loads(line) for line in _run_checker(interpreter, ["grade", *categories], "".join(answers))]
    return {(one["column"], one["id"]): one["fault"] for one in graded}


def _run_checker(interpreter: Path, arguments: Sequence[str], sent: str) -> list[str]:
    """The lines that `checker.py` prints. Raises `ConfigError` with its last line where it fails."""
    command = [str(interpreter), "-m", "tests.bench.function_calls.checker", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, input=sent, capture_output=True, text=True, timeout=CHECKER_SECONDS, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ConfigError(f"the checker of {PACKAGE} failed: {reason}")
    return done.stdout.splitlines()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ConfigError as error:
        sys.exit(f"eval-bfcl: {error}")

"""Runs the scripts of the clients and writes docs/clients.md: `python -m tests.clients [NAME...]`.

With names, only those clients are run, and nothing is written.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.clients.catalogue import CLIENTS, Client
from tests.clients.environments import Environment
from tests.clients.gateways import run_gateways
from tests.support.processes import ROOT

SCRIPTS = Path(__file__).parent / "scripts"
PAGE = ROOT / "docs" / "clients.md"
SCRIPT_SECONDS = 300
HEADER = """\
# Clients

Written by `make check-clients` on {date}: each client in an environment of its own, from its registry, against a
gateway before a scripted model and one in rules mode. Warnings of a client count as failures. What is tried is in
`tests/clients/scripts`.

| client | package | version | what was tried | result |
| --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Result:
    """The checks of one client: each title with its problem, or None if it succeeded."""

    client: Client
    version: str
    checks: Mapping[str, str | None]

    @property
    def problems(self) -> Mapping[str, str]:
        """The checks that failed."""
        return {title: problem for title, problem in self.checks.items() if problem is not None}


def main(names: Sequence[str]) -> int:
    """Runs the named clients, or all of them. Returns the exit code: 1 if any check failed."""
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(client.name for client in CLIENTS)}")
        return 2
    results = []
    with tempfile.TemporaryDirectory() as folder, run_gateways(Path(folder)) as environment:
        for client in CLIENTS:
            if not names or client.name in names:
                results.append(check_client(client, environment))
                print_result(results[-1])
    if not names:
        PAGE.write_text(format_page(results, datetime.now(UTC).date().isoformat()), "utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 1 if any(result.problems for result in results) else 0


def check_client(client: Client, environment: Mapping[str, str]) -> Result:
    """Installs a client and runs its script."""
    installed = Environment(client)
    try:
        installed.install()
        version = installed.read_version()
    except (subprocess.SubprocessError, OSError) as error:
        told = getattr(error, "stderr", None) or str(error)
        return Result(client, "", {"installation": str(told).strip()[-600:]})
    return Result(client, version, run_script(installed, environment))


def run_script(installed: Environment, environment: Mapping[str, str]) -> dict[str, str | None]:
    """Runs the client's script. Returns its checks; a script that ends without a word is a failed check too."""
    command = installed.build_command(SCRIPTS / installed.client.script)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AGENT_", "OPENAI_"))}
    clean |= {**environment, "CLIENT_FOLDER": str(installed.folder), "CLIENT_VERSION": installed.read_version()}
    try:
        done = subprocess.run(
            command,
            cwd=installed.folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"the script": f"did not end within {SCRIPT_SECONDS} s"}
    checks: dict[str, str | None] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"check"'):
            told = json.loads(line)
            checks[told["check"]] = told["problem"]
    if not checks or (done.returncode and not any(checks.values())):
        checks["the script"] = f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"
    if any(checks.values()):
        sys.stderr.write(done.stderr)
    return checks


def print_result(result: Result) -> None:
    """Prints one line, and one for each problem."""
    good = len(result.checks) - len(result.problems)
    print(f"{result.client.name} {result.version}: {good} of {len(result.checks)} checks", flush=True)
    for title, problem in result.problems.items():
        print(f"  FAILED {title}: {problem}", flush=True)


def format_page(results: Sequence[Result], date: str) -> str:
    """The page with the table."""
    rows = [
        f"| {result.client.title} | `{result.client.package}` | {result.version or '-'} | "
        f"{'; '.join(result.checks)} | {_format_outcome(result)} |\n"
        for result in results
    ]
    return HEADER.format(date=date) + "".join(rows)


def _format_outcome(result: Result) -> str:
    if not result.problems:
        return f"all {len(result.checks)} work, no warning"
    told = "; ".join(f"{title}: {_cell(problem)}" for title, problem in result.problems.items())
    return f"{len(result.problems)} of {len(result.checks)} failed: {told}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

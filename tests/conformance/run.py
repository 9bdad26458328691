"""Run the official MCP conformance suite against the real gateway: `python -m tests.conformance.run`.

The suite is npm's, wants Node 22, and is installed into a folder outside of the repository (`--folder`); where npm is
absent the run is skipped, saying so. Every scenario a revision requires is run at that revision; the extensions and
what the suite calls pending are run too and shown, but do not count. The exit code is 1 when a required one fails."""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import uvicorn
from mcp.server.lowlevel.server import Server

from agent.core.settings import Settings
from gateway.app import create_app
from mcp_tools.server.mcp_server import build_server
from tests.conformance.results import Outcome, Scenario, outcome_of, required, table
from tests.support.conformance_extras import add_extras
from tests.support.conformance_fixtures import conformance_fixtures

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22"
REVISIONS = ("2025-11-25", "2026-07-28")
EXTENSIONS = {
    "2025-11-25": ("server-sse-polling", "server-session-lifecycle", "json-schema-2020-12"),
    "2026-07-28": (
        "json-schema-2020-12",
        "http-header-validation",
        "http-custom-header-server-validation",
        "sep-2640-skills-enumeration",
        "sep-2640-skills-manifest",
        "sep-2640-skills-directory",
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-status-notifications",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    ),
}
"""Run and shown, never counted: extensions, and scenarios the suite itself calls pending or that came later."""
SCENARIO_SECONDS = 90


def main() -> int:
    """0 when everything required passes or nothing can be run, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "stepgate-conformance")
    parser.add_argument("--revision", choices=REVISIONS, action="append", help="default: both")
    parser.add_argument("--scenario", action="append", help="only these, required or not")
    parser.add_argument("--required-only", action="store_true", help="leave out what does not count")
    options = parser.parse_args()
    suite = install(options.folder)
    if isinstance(suite, str):
        print(f"skipped: {suite}")
        return 0
    scenarios = [
        scenario
        for revision in options.revision or REVISIONS
        for scenario in scenarios_of(suite, revision, extras=not options.required_only)
        if not options.scenario or scenario.name in options.scenario
    ]
    outcomes = asyncio.run(measure(suite, scenarios))
    print(table(outcomes))
    return 0 if outcomes and all(outcome.passed for outcome in outcomes if outcome.scenario.required) else 1


def install(folder: Path) -> tuple[Path, Path] | str:
    """Node and the suite, installed into the folder once; the reason where there is no npm to do it with.

    Ends the program with 1 where npm is there and fails."""
    node = folder / "node_modules" / "node" / "bin" / "node"
    package = folder / "node_modules" / "@modelcontextprotocol" / "conformance"
    if not (node.exists() and _version(package) == SUITE.rpartition("@")[2]):
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            return "npm or node is not installed; any Node with npm will do, it fetches the Node 22 the suite wants"
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", SUITE, NODE]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0 or not node.exists():
            sys.exit(f"npm could not install {SUITE} and {NODE} into {folder}: {done.stderr.strip()[-400:]}")
    return node, package


def _version(package: Path) -> str:
    """The version of an installed package; empty where there is none."""
    described = package / "package.json"
    return str(json.loads(described.read_text("utf-8"))["version"]) if described.exists() else ""


def scenarios_of(suite: tuple[Path, Path], revision: str, *, extras: bool) -> list[Scenario]:
    """What the revision requires, as frozen in the suite, then what does not count."""
    names = required((suite[1] / "requirements" / f"{revision}.yaml").read_text("utf-8"))
    others = EXTENSIONS[revision] if extras else ()
    return [
        *(Scenario(revision, name, required=True) for name in names),
        *(Scenario(revision, name, required=False) for name in others if name not in names),
    ]


async def measure(suite: tuple[Path, Path], scenarios: list[Scenario]) -> list[Outcome]:
    """Each scenario by itself against one gateway, in order."""
    with tempfile.TemporaryDirectory(prefix="stepgate-conformance-") as data:
        return await _measured(suite, scenarios, Path(data))


async def _measured(suite: tuple[Path, Path], scenarios: list[Scenario], data: Path) -> list[Outcome]:
    async with gateway_with_fixtures(data) as url:
        outcomes = []
        for scenario in scenarios:
            outcome = await run_scenario(suite, scenario, f"{url}/mcp/all")
            print(f"{scenario.revision} {outcome.mark} {scenario.name}", flush=True)
            for line in outcome.faults:
                print(f"    {line}", flush=True)
            outcomes.append(outcome)
        return outcomes


@asynccontextmanager
async def gateway_with_fixtures(data: Path) -> AsyncIterator[str]:
    """The real app on a free port, with the suite's fixtures around the handlers of its MCP server."""

    def build_with_fixtures(*arguments: Any) -> Server[None]:
        server = build_server(*arguments)
        add_extras(server, conformance_fixtures)
        return server

    settings = Settings(_env_file=None, data_dir=data, port=0, skills_dirs=(), drain_seconds=1)
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="on"))
    serving = asyncio.create_task(server._serve())
    while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn offers only the flag
        await asyncio.sleep(0.01)
    if serving.done():
        await serving
    try:
        # The first request builds the door.
        with mock.patch("gateway.doors.mcp.build_server", build_with_fixtures):
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def run_scenario(suite: tuple[Path, Path], scenario: Scenario, url: str) -> Outcome:
    """One scenario in a process of its own, its verdicts read from the file it writes."""
    node, package = suite
    with tempfile.TemporaryDirectory(prefix="stepgate-conformance-") as results:
        child = await asyncio.create_subprocess_exec(
            *(str(node), str(package / "dist" / "index.js"), "server", "--url", url),
            *("--scenario", scenario.name, "--spec-version", scenario.revision, "--force", "-o", results),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        try:
            async with asyncio.timeout(SCENARIO_SECONDS):
                told, _ = await child.communicate()
        except TimeoutError:
            child.kill()
            await child.wait()
            return Outcome(scenario, faults=(f"no end after {SCENARIO_SECONDS} s",))
        checks = _checks(Path(results))
        if checks is None:
            return Outcome(scenario, faults=(told.decode(errors="replace").strip()[-400:],))
        return outcome_of(scenario, checks, child.returncode)


def _checks(results: Path) -> list[dict[str, Any]] | None:
    """What the suite wrote down; None where it did not get that far."""
    written = next(results.rglob("checks.json"), None)
    return None if written is None else list(json.loads(written.read_text("utf-8")))


if __name__ == "__main__":
    sys.exit(main())

"""The `stepgate` command, one module a command group. `main` turns our errors into one line and an exit code.

Modules import at the top only what `--help` needs. What a command needs to work is imported when it runs: importing
the whole gateway takes a second.
"""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from agent.core.errors import AgentError
from gateway.cli import (
    ask,
    audit,
    backup,
    corpus,
    doctor,
    evaluate,
    graph,
    ingest,
    keys,
    mcp,
    mcp_servers,
    memory,
    migrate,
    prompts,
    prune,
    queue,
    recipes,
    rooms,
    runs,
    schedules,
    secrets,
    serve,
    skills,
    sources,
    studio,
    tools,
    usage,
    users,
    worker,
)
from gateway.cli.closed_pipes import tolerate_closed_pipes
from gateway.cli.groups import HelpfulGroup

app = typer.Typer(
    name="stepgate",
    help="A self-hosted agent gateway: plans a request, runs the plan under supervision, answers with its trace.",
    cls=HelpfulGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.add_typer(queue.app, name="queue")
app.command("ask")(ask.ask)
app.command("studio")(studio.studio)
app.command("doctor")(doctor.doctor)
app.command("mcp")(mcp.mcp)
app.command("graph")(graph.graph)
app.command("eval")(evaluate.evaluate)
app.add_typer(runs.app, name="runs")
app.add_typer(recipes.app, name="recipes")
app.add_typer(schedules.app, name="schedules")
app.add_typer(rooms.app, name="rooms")
app.add_typer(prompts.app, name="prompts")
app.command("secrets")(secrets.secrets)
app.add_typer(skills.app, name="skills")
app.add_typer(tools.app, name="tools")
app.add_typer(mcp_servers.app, name="mcp-servers")
app.add_typer(memory.app, name="memory")
app.add_typer(keys.app, name="keys")
app.add_typer(audit.app, name="audit")
app.command("usage")(usage.usage)
app.add_typer(users.app, name="users")
app.command("migrate")(migrate.migrate)
app.command("prune")(prune.prune)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("ingest")(ingest.ingest)
app.add_typer(ingest.app, name="collections")
app.add_typer(sources.app, name="sources")
app.add_typer(corpus.app, name="corpus")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"stepgate {version('stepgate')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Accept the options before a command."""


def main() -> None:
    """Runs the command line; an `AgentError` becomes one line on stderr and exit code 1."""
    tolerate_closed_pipes()
    try:
        app()
    except AgentError as error:
        print(f"stepgate: {error.message}", file=sys.stderr)
        raise SystemExit(1) from None

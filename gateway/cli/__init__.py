"""The `stepgate` command, one module a command group. `main` turns our errors into one line and an exit code.

This module imports only what `--help` needs. The module of a command is imported when the command is called: all of
them take a quarter of a second. What a command needs to work is imported when it runs: the gateway takes a second.
"""

import sys
from typing import Annotated, ClassVar

import typer

from gateway.cli.closed_pipes import tolerate_closed_pipes
from gateway.cli.groups import LazyGroup


class Commands(LazyGroup):
    """All commands."""

    deferred: ClassVar = {
        "serve": ("serve:serve", "Start the gateway. SIGTERM and Ctrl-C drain it."),
        "worker": (
            "gateway.features.fleet.commands.worker:worker",
            "Take work from the queue (AGENT_DISPATCH=queue). SIGTERM and Ctrl-C hand it back.",
        ),
        "ask": ("ask:ask", "Send a request, show its steps, print its answer. Ctrl-C cancels it."),
        "studio": (
            "gateway.features.studio.commands.studio:studio",
            "Make and change rooms, tools and prompts by talking. What changes something waits for your yes.",
        ),
        "doctor": (
            "doctor:doctor",
            "Check the configuration, store, models, skills and files; exit code 1 if something is broken.",
        ),
        "mcp": ("mcp:app", "Serve MCP over stdin and stdout. `mcp install CLIENT` adds Stepgate to an IDE."),
        "graph": ("graph:graph", "Print the workflow as a Mermaid diagram."),
        "eval": (
            "gateway.features.evaluation.commands.evaluate:evaluate",
            "Run the evaluation's tasks and print right answers, calls, tokens, time and status by family.",
        ),
        "secrets": (
            "gateway.features.studio.commands.secrets:secrets",
            "List the secrets by name: whether each is configured, and which rooms name it. Values are never shown.",
        ),
        "usage": ("usage:usage", "Show runs, model calls, tokens and cost of ended runs."),
        "migrate": (
            "migrate:migrate",
            "Create the tables, or bring them to this version's schema, as the first start of a gateway does.",
        ),
        "prune": (
            "prune:prune",
            "Delete ended runs, idle conversations and tasks that are older than AGENT_KEEP_DAYS.",
        ),
        "backup": (
            "backup:backup",
            "Copy the data folder and its database, also while a gateway runs. The copy contains the same secrets.",
        ),
        "restore": (
            "backup:restore",
            "Restore a backup while no gateway runs. The current database is moved aside, not overwritten.",
        ),
        "ingest": (
            "gateway.features.documents.commands.ingest:ingest",
            "Read documents into a collection; unchanged ones are skipped.",
        ),
        "queue": (
            "gateway.features.fleet.commands.queue:app",
            "Show the queue of runs and ingestion: lanes, workers, dead letters.",
        ),
        "runs": ("runs:app", "Runs: list, show, resume, cancel, approve, reject, fork, save."),
        "recipes": (
            "gateway.features.recipes.commands.recipes:app",
            "Recipes: list, show, apply, discard, remove, export.",
        ),
        "schedules": (
            "gateway.features.schedules.commands.schedules:app",
            "Schedules: list, show, create, enable, disable, run, remove.",
        ),
        "rooms": (
            "gateway.features.studio.commands.rooms:app",
            "Rooms: list, create, edit, copy, delete and check them; list versions and restore one.",
        ),
        "prompts": (
            "gateway.features.studio.commands.prompts:app",
            "Prompt library: save, show, apply and remove prompts.",
        ),
        "skills": ("skills:app", "Skills: list skills, check skill folders."),
        "tools": ("tools:app", "Tools: list, call, generate and apply them."),
        "mcp-servers": ("mcp_servers:app", "Foreign MCP servers: list, add, remove, test, log in, review."),
        "models": ("models:app", "Models: list, use, probe, remove."),
        "memory": ("memory:app", "Memory: list and delete your memories."),
        "keys": ("keys:app", "API keys with scopes, limits and budgets."),
        "audit": ("audit:app", "The audit record: who did what, when."),
        "users": ("users:app", "Owners: delete an owner's data."),
        "collections": (
            "gateway.features.documents.commands.ingest:app",
            "Collections: the documents that answers are based on.",
        ),
        "sources": ("gateway.features.documents.commands.sources:app", "Sources: named sources of documents."),
        "corpus": (
            "gateway.features.documents.commands.corpus:app",
            "Table rows as documents: prepare a corpus, build a collection from it, query it.",
        ),
    }


app = typer.Typer(
    name="stepgate",
    help="A self-hosted agent gateway: plans a request, runs the plan under supervision, answers with its trace.",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - parses mail headers, with all of `email`

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
    except Exception as error:
        from agent.core.errors import AgentError  # noqa: PLC0415 - loads Pydantic

        if not isinstance(error, AgentError):
            raise
        print(f"stepgate: {error.message}", file=sys.stderr)
        raise SystemExit(1) from None

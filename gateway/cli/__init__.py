"""The `stepgate` command, one module a command group. `main` turns our errors into one line and an exit code.

This module imports only what `--help` needs. The module of a command is imported when the command is called: all of
them take a quarter of a second. What a command needs to work is imported when it runs: the gateway takes a second.
"""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from gateway.cli.closed_pipes import tolerate_closed_pipes
from gateway.cli.groups import LazyGroup
from gateway.feature import Command
from gateway.feature_loader import FeatureConflictError, FeatureError, load_features
from gateway.shipped_features import CLONE_ONLY

COMMANDS = {
    "serve": Command(
        "gateway.cli.serve:serve",
        "Start the gateway. SIGTERM and Ctrl-C drain it.",
        place=10,
    ),
    "ask": Command(
        "gateway.cli.ask:ask",
        "Send a request, show its steps, print its answer. Ctrl-C cancels it.",
        place=30,
    ),
    "doctor": Command(
        "gateway.cli.doctor:doctor",
        "Check the configuration, store, models, skills and files; exit code 1 if something is broken.",
        place=50,
    ),
    "mcp": Command(
        "gateway.cli.mcp:app",
        "Serve MCP over stdin and stdout. `mcp install CLIENT` adds Stepgate to an IDE.",
        place=60,
    ),
    "graph": Command(
        "gateway.cli.graph:graph",
        "Print the workflow as a Mermaid diagram.",
        place=70,
    ),
    "usage": Command(
        "gateway.cli.usage:usage",
        "Show runs, model calls, tokens and cost of ended runs.",
        place=100,
    ),
    "migrate": Command(
        "gateway.cli.migrate:migrate",
        "Create the tables, or bring them to this version's schema, as the first start of a gateway does.",
        place=110,
    ),
    "prune": Command(
        "gateway.cli.prune:prune",
        "Delete ended runs, idle conversations and tasks that are older than AGENT_KEEP_DAYS.",
        place=120,
    ),
    "backup": Command(
        "gateway.cli.backup:backup",
        "Copy the data folder and its database, even while a gateway runs. The copy contains the same secrets.",
        place=130,
    ),
    "restore": Command(
        "gateway.cli.backup:restore",
        "Restore a backup while no gateway runs. The current database is moved aside, not overwritten.",
        place=140,
    ),
    "runs": Command(
        "gateway.cli.runs:app",
        "Runs: list, show, resume, cancel, approve, reject, fork, save.",
        place=170,
    ),
    "skills": Command(
        "gateway.cli.skills:app",
        "Skills: list skills, check skill folders.",
        place=220,
    ),
    "tools": Command(
        "gateway.cli.tools:app",
        "Tools: list, call, generate and apply them.",
        place=230,
    ),
    "mcp-servers": Command(
        "gateway.cli.mcp_servers:app",
        "Foreign MCP servers: list, add, remove, test, log in, review.",
        place=240,
    ),
    "file-roots": Command("gateway.cli.file_roots:app", "Folders that may be read: list, add, remove.", place=235),
    "models": Command("gateway.cli.models:app", "Models: list, use, probe, pull, remove.", place=245),
    "memory": Command(
        "gateway.cli.memory:app",
        "Memory: list and delete your memories.",
        place=250,
    ),
    "keys": Command(
        "gateway.cli.keys:app",
        "API keys with scopes, limits and budgets.",
        place=260,
    ),
    "audit": Command(
        "gateway.cli.audit:app",
        "The audit record: who did what, when.",
        place=270,
    ),
    "users": Command(
        "gateway.cli.users:app",
        "Owners: delete an owner's data.",
        place=280,
    ),
}
"""The commands of the kernel; features add theirs."""


class Commands(LazyGroup):
    """All commands: a command of an installed package is looked for where no other has the name, and for the help."""

    def load_deferred(self, *, with_installed: bool) -> Mapping[str, Command]:
        """See `LazyGroup.load_deferred`. Raises `FeatureConflictError`."""
        features = load_features(with_installed=with_installed).list_commands()
        if conflicting_names := sorted(COMMANDS.keys() & features):
            raise FeatureConflictError(
                f"a feature claims the command {conflicting_names[0]!r}, which Stepgate has itself"
            )
        return dict(sorted({**COMMANDS, **features}.items(), key=lambda item: item[1].place))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """See `LazyGroup.resolve_command`. Raises `ConfigError` for a command that a wheel does not have."""
        package = CLONE_ONLY.get(args[0]) if args else None
        if package is not None and find_spec(package) is None:
            from agent.core.errors import ConfigError  # noqa: PLC0415 - not needed for the help

            raise ConfigError(f"stepgate {args[0]} works in a clone of the repository only, after `make dev`")
        return super().resolve_command(ctx, args)


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
    except FeatureError as error:
        print(f"stepgate: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except Exception as error:
        from agent.core.errors import AgentError  # noqa: PLC0415 - loads Pydantic

        message = error.message if isinstance(error, AgentError) else _describe_file_error(error)
        if message is None:
            raise
        print(f"stepgate: {message}", file=sys.stderr)
        raise SystemExit(1) from None


def _describe_file_error(error: Exception) -> str | None:
    """What is wrong with a file or folder, such as one that may not be written; None for other errors."""
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return None
    return f"{os.fsdecode(error.filename)}: {error.strerror}"

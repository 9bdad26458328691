"""The `stepgate` command: one file a command group. `main` turns our errors into one clear line and an exit code."""

import sys

import typer

from agent.core.errors import AgentError
from gateway.cli import ask, doctor, mcp, mcp_servers, memory, runs, serve, skills, tools

app = typer.Typer(
    name="stepgate",
    help="A self-hosted agent gateway: plans a request, runs the plan under supervision, answers with its trace.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("ask")(ask.ask)
app.command("doctor")(doctor.doctor)
app.command("mcp")(mcp.mcp)
app.add_typer(runs.app, name="runs")
app.add_typer(skills.app, name="skills")
app.add_typer(tools.app, name="tools")
app.add_typer(mcp_servers.app, name="mcp-servers")
app.add_typer(memory.app, name="memory")


def main() -> None:
    """Run the command line; exit code 1 with one line on stderr for every error of ours."""
    try:
        app()
    except AgentError as error:
        print(f"stepgate: {error.message}", file=sys.stderr)
        raise SystemExit(1) from None

"""`stepgate graph`: the workflow as a Mermaid diagram, for the configured driver."""

from typing import Annotated, Literal

import typer

from gateway.cli.session import load_command_settings
from gateway.quiet_interrupt import QuietInterrupt


def graph(
    workflow: Annotated[
        Literal["loop", "langgraph"] | None, typer.Option(help="The driver; default AGENT_WORKFLOW.")
    ] = None,
) -> None:
    """Print the workflow as a Mermaid diagram."""
    chosen = workflow or load_command_settings().workflow
    with QuietInterrupt():
        from agent.execution.graph import compile_graph  # noqa: PLC0415 - the engine; other commands need less
        from agent.execution.workflow import render_mermaid  # noqa: PLC0415

    print(render_mermaid() if chosen == "loop" else compile_graph().get_graph().draw_mermaid().strip())

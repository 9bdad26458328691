"""`stepgate graph`: the workflow as Mermaid, as the configured driver walks it."""

from typing import Annotated, Literal

import typer

from gateway.cli.session import settings_of_command
from gateway.loading import Loading


def graph(
    workflow: Annotated[
        Literal["loop", "langgraph"] | None, typer.Option(help="Which driver's; AGENT_WORKFLOW when not given.")
    ] = None,
) -> None:
    """Print the workflow as Mermaid."""
    chosen = workflow or settings_of_command().workflow
    with Loading():
        from agent.execution.graph import compiled_graph  # noqa: PLC0415 - the engine; other commands need less
        from agent.execution.workflow import mermaid  # noqa: PLC0415

    print(mermaid() if chosen == "loop" else compiled_graph().get_graph().draw_mermaid().strip())

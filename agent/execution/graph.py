"""The workflow as a LangGraph `StateGraph` (`AGENT_WORKFLOW=langgraph`, the extra `langgraph`).

The stages, `choose_next_stage` and the log are the same; only the loop that calls the stages differs. The graph's state
holds only the position in the workflow. The run's state is in its log, so the graph needs no checkpointer.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from agent.core.errors import ConfigError
from agent.core.extras import format_install_hint
from agent.execution.workflow import ROUTES, StageName, choose_next_stage, run_stage
from agent.run_context.run import Run

MAX_STAGES = 200
"""A run with three replans passes 20 stages. More than this limit is a defect of the routing."""


class GraphState(TypedDict):
    """The graph's state: the completed stages and the next one."""

    passed: list[StageName]
    next: StageName | None


@dataclass(frozen=True, slots=True)
class GraphContext:
    """The run that the stages work on."""

    run: Run


def build_langgraph_driver() -> Callable[[Run], Awaitable[None]]:
    """A driver that runs the compiled graph. Raises `ConfigError` without the extra."""
    graph = compile_graph()

    async def drive(run: Run) -> None:
        start: GraphState = {"passed": [], "next": choose_next_stage(run.state)}
        await graph.ainvoke(start, context=GraphContext(run), config={"recursion_limit": MAX_STAGES})

    return drive


def compile_graph() -> Any:
    """Compiles the graph: one node per stage, and conditional edges to the stages that may follow."""
    try:
        from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 - an extra, and half a second of imports
    except ImportError as error:
        raise ConfigError(
            f"AGENT_WORKFLOW: langgraph is not installed; {format_install_hint('langgraph')}, or unset it"
        ) from error
    graph = StateGraph(GraphState, context_schema=GraphContext)
    for stage, followers in ROUTES.items():
        graph.add_node(stage, _build_node(stage))
        graph.add_conditional_edges(stage, _route, [follower or END for follower in followers])
    graph.add_conditional_edges(START, _route, [*ROUTES, END])  # a resumed run starts at the end of its log
    return graph.compile()


def _build_node(stage: StageName) -> Any:
    # LangGraph reads the annotation to inject the argument, so it must not be a forward reference.
    async def node(state: GraphState, runtime: Any) -> GraphState:
        run: Run = runtime.context.run
        await run_stage(run, stage)
        return {"passed": [*state["passed"], stage], "next": choose_next_stage(run.state)}

    return node


def _route(state: GraphState) -> str:
    return state["next"] or "__end__"

"""The workflow as a LangGraph `StateGraph` (`AGENT_WORKFLOW=langgraph`, the extra `langgraph`).

The same stages, the same `next_stage`, the same log: only who walks from stage to stage differs. The graph's state
holds where the walk stands and nothing else; what a run is stands in its log, so no checkpointer is needed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypedDict

from agent.core.errors import ConfigError
from agent.execution.run import Run
from agent.execution.workflow import ROUTES, StageName, next_stage, run_stage

MAX_STAGES = 200
"""A run of three replans passes 20 stages; more is a defect of the routing, not a long run."""


class Walk(TypedDict):
    """The graph's state: the stages passed, and the one to come."""

    passed: list[StageName]
    next: StageName | None


@dataclass(frozen=True, slots=True)
class Walker:
    """Who walks: the run the stages work on."""

    run: Run


def langgraph_driver() -> Callable[[Run], Awaitable[None]]:
    """Drives runs through the compiled graph. `ConfigError` without the extra."""
    graph = compiled_graph()

    async def drive(run: Run) -> None:
        start: Walk = {"passed": [], "next": next_stage(run.state)}
        await graph.ainvoke(start, context=Walker(run), config={"recursion_limit": MAX_STAGES})

    return drive


def compiled_graph() -> Any:
    """The graph: a node a stage, and from each a conditional edge to the stages that may follow it."""
    try:
        from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 - an extra, and half a second of imports
    except ImportError as error:
        raise ConfigError(
            "AGENT_WORKFLOW: langgraph is not installed; install the extra `stepgate[langgraph]`, or unset it"
        ) from error
    graph = StateGraph(Walk, context_schema=Walker)
    for stage, followers in ROUTES.items():
        graph.add_node(stage, _node(stage))
        graph.add_conditional_edges(stage, _where_to, [follower or END for follower in followers])
    graph.add_conditional_edges(START, _where_to, [*ROUTES, END])  # a resumed run begins where its log ends
    return graph.compile()


def _node(stage: StageName) -> Any:
    # The annotation must not be a forward reference: LangGraph reads it to know what to inject.
    async def node(state: Walk, runtime: Any) -> Walk:
        run: Run = runtime.context.run
        await run_stage(run, stage)
        return {"passed": [*state["passed"], stage], "next": next_stage(run.state)}

    return node


def _where_to(state: Walk) -> str:
    return state["next"] or "__end__"

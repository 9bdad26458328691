"""Finds the user's own sources that a run has not asked, after a search of another one found nothing."""

import logging

from agent.core.errors import AgentError
from agent.execution.ground import COLLECTION_TOOLS, FILE_TOOLS
from agent.run_context.run import Run
from agent.run_context.run_tools import allowed_tools

log = logging.getLogger(__name__)

SEARCH_TOOLS = frozenset({"search_files", "search_knowledge", "memory_search"})
"""Tools whose empty result says only that their own source holds nothing. An empty list of tickets is an answer."""


async def list_unasked_sources(run: Run, tool: str) -> tuple[str, ...]:
    """Returns the sources that hold something and that no step of the plan asks, each with its search tool.

    Returns () unless `tool` searches a source and a planner can make the first new plan of the run. Memories are no
    source of their own: those that fit are in every prompt."""
    state = run.state
    routed = state.understanding is not None and state.understanding.route == "plan"
    fixed = run.room.knowledge or run.room.required_tools or not run.plans_with_model
    if tool not in SEARCH_TOOLS or fixed or not routed or len(state.plans) != 1 or not run.room.budgets.max_replans:
        return ()
    allowed = set(allowed_tools(run))
    asked = set().union(*(_list_step_tools(run, step.tool) for step in state.plans[0].plan.steps))
    found = []
    try:
        if "search_files" in allowed and not asked & FILE_TOOLS and await run.engine.ground.list_files():
            found.append("the user's files (search_files)")
        if "search_knowledge" in allowed and not asked & COLLECTION_TOOLS:
            collections = await run.engine.ground.list_collections(state.owner)
            found += ["the document collections (search_knowledge)"] if any(collections.values()) else []
    except (OSError, AgentError) as error:  # the search that found nothing then stays the answer
        log.warning("a source cannot be listed: %s", error)
    return tuple(found)


def _list_step_tools(run: Run, name: str) -> set[str]:
    """Returns the tool of a step, or the tools of its skill."""
    return (
        {name, *run.engine.skills.get(name).select_tools(allowed_tools(run))} if name in run.engine.skills else {name}
    )
